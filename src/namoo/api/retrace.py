"""Explain why a function was traced again: how a call differs from the nearest earlier one."""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from namoo._base.caches import register
from namoo._base.config import TRACED, config
from namoo._base.short import short
from namoo._base.source_context import Source
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Jaxpr
from namoo.transforms.arguments import is_array, parameter_names
from namoo.tree import diff
from namoo.tree.difference import clauses
from namoo.tree.keys import SequenceKey, keystr
from namoo.tree_util import PyTreeDef


class Signature:
    """Everything that decides whether a traced program can be used for a call.

    Attributes:
        tree: the structure of the arguments.
        avals: the type of each array leaf; for other leaves, `Fixed` values.
        static: names and values of static arguments.
        axes, config: the named axes and the settings.
        names: the names of the arguments that may be given by position, without static ones.
    """

    __slots__ = ("avals", "axes", "config", "names", "static", "tree")

    def __init__(
        self,
        tree: PyTreeDef,
        avals: tuple,
        static: tuple,
        axes: tuple,
        config: tuple,
        names: Sequence[str],
    ):
        self.tree, self.avals, self.static = tree, avals, static
        self.axes, self.config, self.names = axes, config, names


class Fixed(NamedTuple):
    """A leaf that is not an array: part of the program."""

    kind: type
    value: Any


def signature_of(
    fun: Callable, tree: PyTreeDef, leaves: Sequence[Any], static: Sequence, axes: tuple
) -> Signature:
    """Return the signature of a call under the current settings.

    Args:
        fun: the function that is called.
        tree, leaves: its arguments that are data: a pair of the positional and the keyword ones.
        static: the number or keyword of each static argument, and its value.
        axes: the named axes.
    """
    avals = tuple(aval_of(x) if is_array(x) else Fixed(type(x), x) for x in leaves)
    names = parameter_names(fun)
    named = tuple((names[n] if isinstance(n, int) and n < len(names) else n, v) for n, v in static)
    numbers = {n for n, _ in static}
    data = [name for i, name in enumerate(names) if i not in numbers]
    return Signature(tree, avals, named, axes, config.trace_key(), data)


class Retrace:
    """One trace of a function.

    Attributes:
        reasons: how the call differs from the nearest earlier one, argument by argument.
        source: the user's line that made the call.
        seconds: how long tracing took.
        compiling: how long each compilation of the program took, in seconds; empty until it runs.
        notes: what makes the program large, by the user's lines.
        sources: the user's lines of a large program's operations, from which notes are made when
            they are read.
        number: how many functions of one definition were traced, if it is the first trace of a
            further one; otherwise 0.
    """

    __slots__ = ("_notes", "compiling", "number", "reasons", "seconds", "source", "sources")

    def __init__(
        self,
        reasons: tuple[str, ...],
        source: Source | None,
        seconds: float,
        compiling: list[float],
        notes: tuple[str, ...] = (),
        sources: Sequence[Source | None] = (),
        number: int = 0,
    ):
        self.reasons, self.source, self.number = reasons, source, number
        self.seconds, self.compiling = seconds, compiling
        self._notes, self.sources = notes, sources

    @property
    def notes(self) -> tuple[str, ...]:
        self.settle()
        return self._notes

    def settle(self) -> None:
        """Make the notes now, and keep no sources: a function may have many records."""
        if self.sources:
            self._notes, self.sources = (*_unrolled(self.sources), *self._notes), ()

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        times = f"{self.seconds * 1e3:.1f} ms"
        if self.compiling:
            times += f", compiled in {sum(self.compiling) * 1e3:.1f} ms"
        head = f"traced{where} ({times})"
        head += ", because" if self.reasons else ": never seen function"
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([head, *(f"  {line}" for line in (*self.reasons, *notes))])

    __repr__ = __str__


class Explanation(list):
    """The traces of a function, oldest first; prints as one text."""

    def __init__(self, name: str, items: Sequence[Retrace]):
        super().__init__(items)
        self.name = name

    def __str__(self) -> str:
        count = f"{self.name}: traced {len(self)} time{'s' * (len(self) != 1)}"
        return "\n".join([count, *(f"{i + 1}. {t}" for i, t in enumerate(self))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from namoo._base import html

        return html.fragment(self.table())

    def table(self) -> str:
        """Return the traces as a table of HTML."""
        from namoo._base import html, units

        rows = [
            [
                str(number),
                html.escape(trace.source or ""),
                "<br>".join(map(html.escape, (*trace.reasons, *trace.notes))) or "first call",
                units.seconds(trace.seconds),
                units.seconds(sum(trace.compiling)),
            ]
            for number, trace in enumerate(self, 1)
        ]
        head = ["", "call", "reason", "traced in", "compiled in"]
        return f"<p><b>{html.escape(self.name)}</b></p>" + html.table(head, rows, left=3)


Paths = Callable[[], Sequence[str]]
"""A function that returns the names of all leaves."""


def reasons(new: Signature, paths: Paths, earlier: Sequence[Signature]) -> tuple[str, ...]:
    """Return how a call differs from the nearest of the earlier ones; empty for the first call."""
    # The latest of several that are equally close.
    found = (tuple(_differences(old, new, paths)) for old in reversed(earlier))
    return min(found, key=len, default=())


def _differences(old: Signature, new: Signature, paths: Paths):
    if old.tree != new.tree:
        passed = _passed_otherwise(old, new)
        for words in passed or _other_structures(old, new):
            yield f"different input pytree, {words}"
    else:
        for path, a, b in zip(paths(), old.avals, new.avals, strict=True):
            if a != b:
                yield f"different input types: at {path}, {_change(a, b)}"
    for (name, a), (_, b) in zip(old.static, new.static, strict=False):
        # As the cache does: values of other classes or hashes are not compared, which may raise.
        if type(a) is not type(b) or hash(a) != hash(b) or a != b:
            yield (
                f"different value of static args: at {name}, now {short(b)} and before {short(a)}"
            )
    if len(old.static) != len(new.static):
        yield "different number of static args"
    if old.axes != new.axes:
        yield (
            f"different tracing context: at the named axes, now {dict(new.axes)} and before "
            f"{dict(old.axes)}"
        )
    if old.config != new.config:
        for name, a, b in zip(TRACED, old.config, new.config, strict=True):
            if a != b:
                yield f"different tracing context: at {name}, now {b} and before {a}"


def _layout(signature: Signature) -> dict[str, str]:
    """How each argument was passed, by its name."""
    positional, keywords = signature.tree.children()
    given, names = len(positional.children()), [*signature.names]
    names += [f"args[{i}]" for i in range(len(names), given)]
    data = keywords.node_data()
    by_name = dict.fromkeys(data[1] if data is not None else (), "by keyword")
    return {**dict.fromkeys(names[:given], "by position"), **by_name}


def _passed_otherwise(old: Signature, new: Signature) -> list[str]:
    """Which arguments are passed differently: by position, by name, or not at all."""
    before, now = _layout(old), _layout(new)
    return [
        f"at {name}, now {now.get(name, 'left out')} and before {before.get(name, 'left out')}"
        for name in {**now, **before}
        if now.get(name) != before.get(name)
    ]


def _other_structures(old: Signature, new: Signature) -> list[str]:
    """Where the structures of arguments differ, by their names."""
    names = list(_layout(new))
    out = []
    for difference in diff(old.tree, new.tree)[:5]:
        node = difference.node_path
        if len(node) < 2:
            out.append(str(difference))
            continue
        place, rest = node[1], node[2:]
        name = names[place.idx] if isinstance(place, SequenceKey) else place.key  # type: ignore[attr-defined]
        out.append(f"at {name}{keystr(rest)}: {clauses([difference])}")
    return out


def _change(a: Any, b: Any) -> str:
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        if (a.shape, a.dtype) == (b.shape, b.dtype):
            now, before = (f"{x.str_short()}{{weak_type={x.weak_type}}}" for x in (b, a))
            return f"now {now} and before {before} (a Python number is weak, an array is not)"
    return f"now {_words(b)} and before {_words(a)}"


def _words(x: Any) -> str:
    return f"the static value {short(x.value)}" if isinstance(x, Fixed) else x.str_short()


_MANY_OPERATIONS = 500
_LARGE_CONSTANT = 1 << 20


def operation_sources(jaxpr: Jaxpr) -> list[Source | None]:
    """Return the user's line of each operation of a large program; nothing for others."""
    return [eqn.source for eqn in jaxpr.eqns] if len(jaxpr.eqns) >= _MANY_OPERATIONS else []


def _unrolled(sources: Sequence[Source | None]) -> list[str]:
    """Return a note on the line that most operations of a large program come from."""
    known = [source for source in sources if source is not None]
    by_position = {source.position: source for source in known}
    lines: Counter[str] = Counter()
    for position, count in Counter([source.position for source in known]).items():
        lines[str(by_position[position])] += count
    return [
        f"{count} of {len(sources)} operations come from {line}: a Python loop is unrolled there. "
        "lax.scan or lax.fori_loop keeps it one operation."
        for line, count in lines.most_common(1)
        if count >= _MANY_OPERATIONS // 5
    ]


def constant_notes(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[str, ...]:
    """Return a note on each large array that a program captures, by the user's lines.

    Args:
        jaxpr: the program; its first inputs are what it closes over.
        consts: the values of those.
    """
    notes = []
    for var, value in zip(jaxpr.invars, consts, strict=False):
        size = getattr(value, "nbytes", 0)
        if size >= _LARGE_CONSTANT:
            uses = (eqn.source for eqn in jaxpr.eqns if var in eqn.invars)
            where = next(uses, None) or "an unknown line"
            notes.append(
                f"{short(value)} of {size / 1e6:.0f} MB is closed over at {where}: it is part of "
                "the program. Pass it as an argument."
            )
    return tuple(notes)


class _Line:
    """The functions with one code object: the newest of them, and how many were traced."""

    __slots__ = ("closure", "count", "owner")

    def __init__(self, count: int, owner: Any, closure: dict[str, str]):
        self.count, self.owner, self.closure = count, owner, closure


_LINES_LIMIT = 1024
_lines: OrderedDict[CodeType, _Line] = register(
    "api.retrace functions by line",
    OrderedDict(),
    bound=_LINES_LIMIT,
    keyed_by="code of a function under jit",
)


def new_function_reasons(fun: Any, owner: Any) -> tuple[int, tuple[str, ...]]:
    """Return why a function is traced for the first time although another of its definition was.

    Args:
        fun: the function.
        owner: the object that equal functions share; it is not kept alive.

    Returns:
        How many functions of this definition were traced, and the reasons; 0 and none for the
        first of them.
    """
    code = getattr(fun, "__code__", None)
    if code is None:
        return 0, ()
    cells = zip(code.co_freevars, fun.__closure__ or (), strict=False)
    closure = {name: _cell_words(cell) for name, cell in cells}
    before = _lines.pop(code, None)
    count = before.count if before is not None else 0
    is_known = before is not None and before.owner() is owner
    _lines[code] = _Line(count + (not is_known), weakref.ref(owner), closure)
    while len(_lines) > _LINES_LIMIT:
        _lines.popitem(last=False)
    if before is None or is_known:
        return 0, ()
    changed = [n for n in closure if closure[n] != before.closure.get(n)]
    start = f"new function, number {count + 1} of this definition"
    reasons = tuple(
        f"{start}: at the closed-over {n}, now {closure[n]} and before {before.closure.get(n)}"
        for n in changed
    )
    return count + 1, reasons or (start,)


def _cell_words(cell: Any) -> str:
    try:
        return short(cell.cell_contents)
    except ValueError:  # it has no value yet
        return "nothing"


_REMEDIES = {
    "different input types": "pad arrays to a few sizes, and pass numbers always as numbers or "
    "always as arrays",
    "different input pytree": "pass the same arguments in the same way, in one structure",
    "different value of static args": "pass what changes as data, not as a static argument",
    "different tracing context": "set the setting once, outside of the loop",
    "new function": "define the function once, and pass what it closes over as an argument",
}
_WARNED_AFTER = 5


def warn_of_retraces(name: str, records: Sequence[Retrace]) -> None:
    """Log a warning when one line has caused five traces of a function after its first.

    It is logged, not raised as a Python warning: a program that turns those into errors must not
    fail because of its speed.
    """
    last = records[-1]
    kind = last.reasons[0].partition(":")[0].partition(",")[0] if last.reasons else ""
    if last.number:
        count = last.number - 1
    else:
        count = len([r for r in records if r.reasons and r.source == last.source])
    if count != _WARNED_AFTER:
        return
    import logging

    remedy = _REMEDIES.get(kind, "")
    logging.getLogger("namoo").warning(
        "%s was traced %d times at %s, the last time because\n  %s\n"
        "%s%s.explain() lists all traces.",
        name,
        count + 1,
        last.source,
        "\n  ".join(last.reasons[:3]),
        f"To trace once, {remedy}. " if remedy else "",
        name,
    )
