"""The package's plan, checked on its text: which module may import which, how long a file may be.

Nothing here imports namoo. Every file is parsed, so an import inside a function counts as much as
one at the top. Only imports under ``if TYPE_CHECKING:`` are ignored.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

# A row imports from itself and from the rows above it. A module belongs to the entry that names it
# or the closest package around it; "" is namoo/__init__.py: only compat may `import namoo`.
ROWS: dict[str, tuple[str, ...]] = {
    "base": (
        "_base",
        "_config",
        "_dtypes",
        "_runtime",
        "dtypes",
        "dimensions",
        "errors",
        "monitoring",
        "version",
    ),
    "tree": ("tree", "tree_util"),
    "core": ("core",),
    "analysis": ("analysis",),
    "eager": ("eager",),  # what a library module calls to get its shortcuts
    "primitives": ("primitives",),
    "transforms": ("transforms",),
    "control": ("control",),
    "memo": ("memo",),
    "engines": ("engines",),
    "devices": ("devices",),
    "api": ("api", "devices.pmap", "devices.shard_map"),
    "lax": ("lax",),
    "numpy": ("numpy",),
    "random": ("random",),
    "shortcuts": (  # the tables, which `eager` loads by name
        "eager.arranging",
        "eager.composed",
        "eager.creation",
        "eager.custom_rules",
        "eager.elementwise",
        "eager.indexing",
        "eager.linalg",
        "eager.operators",
        "eager.random",
        "eager.reductions",
        "eager.repeated",
        "eager.shortcuts",
    ),
    "structs": ("module", "tree.arithmetic", "struct"),
    "namespaces": (
        "ad",
        "ad_checkpoint",
        "api_util",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "distributed",
        "dlpack",
        "example_libraries",
        "experimental",
        "export",
        "ffi",
        "extend",
        "flatten_util",
        "image",
        "inspect",
        "interpreters",
        "launch",
        "lessons",
        "lib",
        "pytest_plugin",
        "nn",
        "ops",
        "profiler",
        "ref",
        "scipy",
        "sharding",
        "stages",
        "test_util",
        "typing",
    ),
    "models": ("checkpoints", "mixed", "optim", "data", "train"),
    "public": ("", "__main__"),
    "compat": ("compat",),
}

ENTRIES = {entry: row for row, entries in ROWS.items() for entry in entries}

# Rows that see less than everything above them: an engine takes a program and knows nothing of the
# rules and transformations that made it.
NARROW: dict[str, tuple[str, ...]] = {"engines": ("base", "tree", "core", "analysis")}

# Single modules that an upper row may reach down to, with the reason.
INVERSIONS: dict[str, str] = {
    "api.wiring": "sets all other late attachments of the package",
    "analysis.checking_trace": "the bottom trace, while a setting checks eager operations",
    "analysis.reflection": "names of jax.core that namoo.core serves",
    "devices.sharding.shardings": "the sharding of a type, which splits nothing",
    "extend.backend": "the client of a device",
    "numpy._methods": "gives Array and Tracer their operators, methods and `.at`",
}

# Third parties that only one corner of the package may import, wherever the import stands.
CORNERS: dict[str, tuple[str, ...]] = {
    "jax": ("compat",),  # the name that namoo answers to there
    "jaxlib": ("engines.xla",),
    "llvmlite": ("engines.native",),
}

# Files past the limit, with the reason why they are one idea.
LINE_LIMIT = 800
LONG_FILES: dict[str, str] = {
    "optim/alias.py": "the list of optimisers: each a signature, a formula, an example and a chain",
}

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
BANNER = re.compile(r"^\s*# ?[-=*#]{3,}", re.MULTILINE)
# A section of a docstring whose text is not indented by four, or an example outside of one.
OTHER_STYLE = re.compile(
    r"^(Args|Attributes|Example|Raises|Returns|Yields):\n(?! {4}\S)|^Parameters\n-|^:param|^>>>",
    re.MULTILINE,
)
HOST_PATH = re.compile(r"/(?:work|tmp|root|home|farm|opt)/\w")


class Import(NamedTuple):
    target: str
    line: int


def module_name(path: Path) -> str:
    """The dotted name inside the package: ``src/namoo/core/array.py`` is ``core.array``."""
    parts = path.relative_to(SOURCE / "namoo").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted((SOURCE / "namoo").rglob("*.py"))}


@cache
def row_of(module: str) -> str | None:
    """The row of the longest table entry that is the module or a package around it."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if row := ENTRIES.get(".".join(parts[:length])):
            return row
    return None


def is_type_checking(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
    return False


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: the body of ``if TYPE_CHECKING:`` is left out, its ``else`` is not."""
    yield node
    children = node.orelse if is_type_checking(node) else ast.iter_child_nodes(node)  # type: ignore[attr-defined]
    for child in children:
        yield from walk(child)


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[Import]:
    """All imports in absolute form, by statement or by a function with a literal name."""
    package = ["namoo", *filter(None, module.split("."))]
    if not is_package:
        package = package[:-1]

    def absolute(name: str, level: int) -> str:
        base = package[: len(package) - level + 1] if level else []
        return ".".join([*base, name] if name else base)

    for node in walk(tree):
        match node:
            case ast.Import():
                yield from (Import(alias.name, node.lineno) for alias in node.names)
            case ast.ImportFrom():
                base = absolute(node.module or "", node.level)
                yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "later" | "load_module")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                level = len(name) - len(name.lstrip("."))
                yield Import(absolute(name[level:], level), node.lineno)


def inside(target: str) -> str:
    """The module that an absolute import reads: the longest name that is a file or in the table.

    ``from namoo.core import Array`` reads ``core``; ``from namoo import grad`` reads the public
    ``""``; ``from namoo import tree`` reads ``tree``.
    """
    parts = target.split(".")[1:]
    while parts and (name := ".".join(parts)) not in FILES and name not in ENTRIES:
        parts.pop()
    return ".".join(parts)


def violations(module: str, found: list[Import]) -> list[str]:
    """What a module imports against the table, one line each."""
    row = row_of(module)
    if row is None:
        return [f"namoo.{module} stands in no row: add it to ROWS"]
    order = list(ROWS)
    above = NARROW.get(row, tuple(order[: order.index(row)]))
    wrong = []
    for target, line in found:
        top = target.split(".")[0]
        if top in CORNERS and not any(
            module == corner or module.startswith(corner + ".") for corner in CORNERS[top]
        ):
            wrong.append(f"line {line}: {top} may not be imported here")
        if top != "namoo" or (read := inside(target)) in INVERSIONS:
            continue
        other = row_of(read)
        if other != row and other not in above:
            wrong.append(f"line {line}: {row} imports namoo.{read}, which is in {other}")
    return wrong


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    path = FILES[module]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return tuple(imports(tree, module, path.name == "__init__.py"))


def import_graph() -> dict[str, list[str]]:
    """For each module, the modules of the package that it imports, late imports included."""
    graph = {}
    for module in FILES:
        read = {inside(target) for target, _ in imports_of(module) if target.startswith("namoo.")}
        graph[module] = sorted((read & FILES.keys()) - {module, *INVERSIONS})
    return graph


def import_cycles(graph: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module, by Tarjan's algorithm."""
    number: dict[str, int] = {}  # in order of discovery
    lowest: dict[str, int] = {}  # the smallest number on the stack that can be reached
    stack: list[str] = []
    cycles = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            start = stack.index(module)
            if len(component := stack[start:]) > 1:
                cycles.append(sorted(component))
            del stack[start:]

    for module in graph:
        if module not in number:
            visit(module)
    return cycles


def test_modules_form_no_import_cycles():
    assert import_cycles(import_graph()) == []


@pytest.mark.parametrize(
    ("graph", "cycles"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, []),
        ({"a": ["b"], "b": ["a"]}, [["a", "b"]]),
        ({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": []}, [["b", "c"]]),
        ({"a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["c"]}, [["c", "d"], ["a", "b"]]),
        ({"a": ["b"], "b": ["c"], "c": ["d", "a"], "d": ["b"]}, [["a", "b", "c", "d"]]),
    ],
)
def test_cycles_are_found(graph, cycles):
    assert import_cycles(graph) == cycles


@pytest.mark.parametrize("module", FILES)
def test_imports_follow_the_rows(module):
    path = FILES[module]
    found = list(imports_of(module))
    # What a namespace loads late stands in its stub as imports.
    if (stub := path.with_suffix(".pyi")).exists():
        tree = ast.parse(stub.read_text(encoding="utf-8"), str(stub))
        found += imports(tree, module, is_package=True)
    assert not violations(module, found), path


@pytest.mark.parametrize(
    ("module", "code", "wrong"),
    [
        ("core.array", "from namoo import errors", 0),
        ("core.array", "from .. import errors, tree", 0),
        ("core.array", "from ..primitives import shape", 1),
        ("core.array", "def f():\n    from namoo.primitives.shape import transpose", 1),
        ("core.array", "if TYPE_CHECKING:\n    from namoo.primitives import shape", 0),
        ("core.array", "if TYPE_CHECKING:\n    pass\nelse:\n    import namoo.primitives", 1),
        ("core.array", "import importlib\nimportlib.import_module('namoo.primitives')", 1),
        ("core.array", "from importlib import import_module\nimport_module('..primitives')", 1),
        ("core.array", "shape = later('namoo.primitives.shape')", 1),
        ("core.array", "import namoo", 1),
        ("core.array", "from namoo import grad", 1),
        ("core.array", "from ..numpy import _methods", 0),
        ("core.array", "import numpy, scipy.special", 0),
        ("core.array", "import jax.numpy", 1),
        ("engines.base", "from ..core import array", 0),
        ("engines.base", "from ..primitives import shape", 1),
        ("engines.xla.client", "import jaxlib", 0),
        ("engines.base", "import jaxlib, llvmlite", 2),
        ("lax", "from ..numpy import _methods, linalg", 1),
        ("elsewhere", "", 1),
    ],
)
def test_the_check_itself(module, code, wrong, monkeypatch):
    monkeypatch.setitem(FILES, "numpy._methods", Path())
    found = list(imports(ast.parse(code), module, is_package=module == "lax"))
    assert len(violations(module, found)) == wrong


@pytest.mark.parametrize("module", FILES)
def test_files_stay_short(module):
    name = FILES[module].relative_to(SOURCE / "namoo").as_posix()
    lines = len(FILES[module].read_text(encoding="utf-8").splitlines())
    if name in LONG_FILES:
        assert lines > LINE_LIMIT, f"{name} is short again: take it out of LONG_FILES"
    else:
        assert lines <= LINE_LIMIT, f"{name}: split it, or list it in LONG_FILES with a reason"


@pytest.mark.parametrize("module", FILES)
def test_docstrings_have_one_style(module):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8")))
    found = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    assert not [doc for doc in found if OTHER_STYLE.search(doc)], "write it in Google style"


def texts() -> list[Path]:
    """Every text file of the repository that a reader sees."""
    kept = [ROOT / name for name in ("Makefile", "pyproject.toml", "README.md", "README.ko.md")]
    for folder in ("src", "tests", "tools", "examples", "docs"):
        for suffix in ("py", "pyi", "md"):
            kept += (ROOT / folder).rglob(f"*.{suffix}")
    generated = ROOT / "docs" / "api"
    return sorted(path for path in kept if path.exists() and generated not in path.parents)


@pytest.mark.parametrize(("place", "limit"), {"core": 1500, "transforms/linear.py": 350}.items())
def test_the_idea_can_be_read_in_one_sitting(place, limit):
    path = SOURCE / "namoo" / place
    files = [path] if path.is_file() else path.rglob("*.py")
    assert sum(len(f.read_text(encoding="utf-8").splitlines()) for f in files) <= limit


@pytest.mark.parametrize("path", texts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_text_is_finished_and_knows_no_machine(path):
    text = path.read_text(encoding="utf-8")
    assert not HOST_PATH.search(text)
    if path != Path(__file__):
        assert not UNFINISHED.search(text)
    assert path.suffix != ".py" or not BANNER.search(text)
