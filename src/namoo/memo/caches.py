"""Clear all caches, and report on them.

The caches declare themselves in `namoo._base.caches`.  Run as a program, this module prints the
page `docs/caches.md`:

    python -m namoo.memo.caches > docs/caches.md
"""

from __future__ import annotations

import ast
import gc
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from namoo._base.caches import caches, program_keys, register
from namoo._base.runtime import native
from namoo.core.jaxpr import Jaxpr

if native is not None:
    register(
        "runtime memory pool",
        None,
        bound="bytes in use since the last clear_caches()",
        keyed_by="size of the buffer; entries are bytes",
        entries=lambda: native.pool_info()["cached"],
        clear=lambda: native.pool_limit(None),
    )


def clear_caches() -> None:
    """Forget all traced and compiled programs, and all other results that are remembered.

    Most of the memory that is kept for results of programs is given back.  What is forgotten is
    computed again when it is needed.  Caches of facts that cannot change, such as the features of
    the processor, are left alone; `docs/caches.md` lists all of them.

    Example:
        >>> import namoo
        >>> namoo.clear_caches()
    """
    for cache in list(caches.values()):
        if not cache.kept:
            cache.clear()


class Row(NamedTuple):
    """One line of a memory report.

    Attributes:
        name: the cache.
        entries: how many entries it has now.
        bound: how many it may have, or why there cannot be many.
        size: about how many bytes its entries take.
        keyed_by: what decides an entry.
    """

    name: str
    entries: int
    bound: int | str
    size: int
    keyed_by: str


class MemoryReport(list[Row]):
    """The rows of a memory report, the largest cache first; printed as a table."""

    def __repr__(self) -> str:
        lines = [("cache", "entries", "bound", "bytes", "keyed by")]
        for row in self:
            bound = str(row.bound) if isinstance(row.bound, int) else "-"
            lines.append((row.name, str(row.entries), bound, f"{row.size:,}", row.keyed_by))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            f"{name:<{widths[0]}}  {entries:>{widths[1]}}  {bound:>{widths[2]}}  "
            f"{size:>{widths[3]}}  {key}"
            for name, entries, bound, size, key in lines
        )


def memory_report() -> MemoryReport:
    """Report what every cache holds.

    Sizes are estimates: an object that two caches share counts for both, and memory outside Python
    (machine code, buffers of devices) does not count.

    Returns:
        A list of rows with the fields `name`, `entries`, `bound`, `size` (in bytes) and `keyed_by`,
        the largest first.  It prints as a table.

    Example:
        >>> import namoo
        >>> f = namoo.jit(lambda x: x + 1)
        >>> f(1), f(1.0)
        (Array(2, dtype=int32, weak_type=True), Array(2., dtype=float32, weak_type=True))
        >>> report = namoo.memory_report()
        >>> [row.bound for row in report if row.name == "api.jit programs and recognised calls"]
        [4096]
        >>> all(row.entries <= row.bound for row in report if isinstance(row.bound, int))
        True
    """
    rows = [
        Row(c.name, c.entries(), c.bound, 0 if c.holder is None else _size(c.holder), c.keyed_by)
        for c in list(caches.values())
    ]
    kept: dict[str, list[Any]] = {key: [] for key in program_keys}
    for jaxpr in gc.get_objects():
        if type(jaxpr) is Jaxpr:
            for key, value in list(jaxpr.cache.items()):
                kept.setdefault(key[0] if type(key) is tuple else key, []).append(value)
    for key, values in kept.items():
        keyed_by = ", ".join(filter(None, ["the program", program_keys.get(key)]))
        rows.append(Row(f"program: {key}", len(values), _WITH_PROGRAM, _size(values), keyed_by))
    return MemoryReport(sorted(rows, key=lambda row: (-row.size, row.name)))


_WITH_PROGRAM = "dies with its program"

# Reached from nearly every object, and alive without any cache.
_SHARED = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
    types.FrameType,
)
_MOST_OBJECTS = 100_000


def _size(holder: Any) -> int:
    """About how many bytes an object and all that it refers to take; large ones are cut short."""
    total, waiting, seen = 0, [holder], {id(caches)}
    while waiting and len(seen) < _MOST_OBJECTS:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, _SHARED):
            continue
        seen.add(id(x))
        total += sys.getsizeof(x)
        if not isinstance(x, np.ndarray):
            waiting += gc.get_referents(x)
    return total


class Declaration(NamedTuple):
    """A cache as the source declares it."""

    name: str
    module: str
    bound: str
    keyed_by: str
    kept: bool


def declarations() -> Iterator[Declaration]:
    """Find all declarations in the source of the package, without importing anything.

    Raises:
        ValueError: the arguments of a declaration are not literals.
    """
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "namoo._base.caches import" in text:
            parts = path.relative_to(root).with_suffix("").parts
            yield from _declared(ast.parse(text), ".".join(parts).removesuffix(".__init__"))


def _declared(tree: ast.Module, module: str) -> Iterator[Declaration]:
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="cached" | "register" | "per_program" | "program_key" as kind),
                args=[ast.Constant(value=str(name)), *_],
            ):
                read = {
                    k.arg: ast.literal_eval(constants.get(getattr(k.value, "id", ""), k.value))
                    for k in node.keywords
                    if k.arg in ("bound", "keyed_by", "kept")
                }
                keyed_by = read.get("keyed_by", "")
                if kind in ("per_program", "program_key"):
                    name, read["bound"] = f"program: {name}", _WITH_PROGRAM
                    keyed_by = ", ".join(filter(None, ["the program", keyed_by]))
                yield Declaration(
                    name, module, str(read["bound"]), keyed_by, read.get("kept", False)
                )


_PAGE = """# Caches

Everything the library remembers, generated from the declarations in the source by
`python -m namoo.memo.caches > docs/caches.md`.

`namoo.clear_caches()` empties every cache but those marked *kept*: their entries are facts that
stay true, and there are few of them. `namoo.memory_report()` shows how full the caches are.

A number in the column *bound* is the largest number of entries; otherwise the column says why there
cannot be many. Programs (jaxprs) carry what is derived from them; these entries die with their
program, and are listed last.

| cache | module | bound | keyed by | |
|---|---|---|---|---|
"""


def page() -> str:
    """The text of `docs/caches.md`."""
    found = sorted(declarations(), key=lambda d: (d.name.startswith("program: "), d.name))
    rows = [
        f"| {d.name} | `{d.module}` | {d.bound} | {d.keyed_by} | {'kept' if d.kept else ''} |\n"
        for d in found
    ]
    return _PAGE + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
