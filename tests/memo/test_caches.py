"""The register of caches: complete, bounded, cleared by `clear_caches`, and documented."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import namoo
import namoo.numpy as jnp
from namoo._base.caches import caches
from namoo.memo.caches import declarations, page

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "namoo"
FILES = {p.relative_to(SOURCE).as_posix(): p for p in sorted(SOURCE.rglob("*.py"))}

# Tables that functions fill, and that are no caches: what they hold cannot be computed again.
NOT_CACHES = {
    "caches": "the register itself",
    "program_keys": "the register itself",
    "_notified": "listeners of settings",
    "_events": "listeners",
    "_durations": "listeners",
    "_time_spans": "listeners",
    "_scalars": "listeners",
    "_KEY_FORMS": "kinds of random keys",
    "_BY_NUMPY": "kinds of random keys",
    "_pending": "checkpoints that are being written",
    "_emitting": "threads at work",
    "_working": "threads at work",
    "_ahead": "a compilation under way",
    "_shared": "how this process takes part in a cluster",
    "_joined": "the cluster that the process is in",
    "_replaying": "functions that declared themselves",
    "_replaying_files": "functions that declared themselves",
    "_used": "random keys that were used: a check, not a result",
    "_replaced": "methods that the profiler stands in for",
    "_drawn": "progress bars on the screen",
    "nodes": "registered classes of pytree nodes",
    "_by_class": "classes that were registered for exported files",
    "_by_name": "classes that were registered for exported files",
    "_registered": "registered classes of pytree nodes",
    "vmappables": "registered classes that vmap maps over",
    "TABLE": "how operations are emitted",
    "COMPLEX": "how operations are emitted",
    "_COSTS": "how operations are emitted",
    "KINDS": "kinds of nodes that declared themselves",
    "_errors": "errors of foreign functions that are not yet raised",
    "_targets": "foreign functions that the user registered",
}

CONTAINERS = {
    *("dict", "list", "set", "OrderedDict", "defaultdict", "deque", "Counter", "ChainMap"),
    *("WeakKeyDictionary", "WeakValueDictionary", "WeakSet"),
}
FILLING = {"add", "append", "extend", "insert", "setdefault", "update", "appendleft"}


def called(node):
    """The last name of what a call calls: `f` of `a.b.f(...)`."""
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def tables(tree):
    """Names that a module binds to a mutable container."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            value = node.value
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp) or (
                isinstance(value, ast.Call) and called(value) in CONTAINERS
            ):
                yield from (t.id for t in targets if isinstance(t, ast.Name))


def filled(tree):
    """Names that functions of a module fill."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                match node:
                    case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                        yield name
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                        if attr in FILLING:
                            yield name


def outside_functions(node):
    """The nodes that run when a module is imported; of functions, only the decorators."""
    yield node
    inner = node.decorator_list if isinstance(node, ast.FunctionDef) else ast.iter_child_nodes(node)
    for child in () if isinstance(node, ast.Lambda) else inner:
        yield from outside_functions(child)


def function_caches(tree):
    """Lines with a cache of `functools` that lives as long as its module."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        for alias in node.names
    } & {"cache", "lru_cache"}
    for node in outside_functions(tree):
        match node:
            case ast.Name(id=name) if name in imported:
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="functools"), attr="cache" | "lru_cache"):
                yield node.lineno


@pytest.mark.parametrize("name", FILES)
def test_every_cache_is_registered(name):
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    own = {*tables(tree)} & {*filled(tree)}
    assert own <= NOT_CACHES.keys(), "declare it with namoo._base.caches.register"
    assert not [*function_caches(tree)], "declare it with namoo._base.caches.cached"


@pytest.mark.parametrize(
    ("code", "tables_found", "functions_found"),
    [
        ("a = {}\ndef f(x): a[x] = 1", 1, 0),
        ("a: dict = {}\ndef f(x): return a.setdefault(x, 1)", 1, 0),
        ("a = weakref.WeakKeyDictionary()\nf = lambda x: a.update(x)", 1, 0),
        ("a = {1: 2}\ndef f(x): return a[x]", 0, 0),
        ("a = register('a', {}, bound=1)\ndef f(x): a[x] = 1", 0, 0),
        ("import functools\n@functools.cache\ndef f(x): pass", 0, 1),
        ("from functools import lru_cache\n@lru_cache(4)\ndef f(x): pass", 0, 1),
        ("f = functools.lru_cache(4)(g)", 0, 1),
        ("def f(x):\n    g = functools.cache(h)\n    return g(x)", 0, 0),
        ("a = x.cache", 0, 0),
    ],
)
def test_the_check_itself(code, tables_found, functions_found):
    tree = ast.parse(code)
    assert len({*tables(tree)} & {*filled(tree)}) == tables_found
    assert len([*function_caches(tree)]) == functions_found


def test_names_are_unique_and_bounds_are_told():
    found = [*declarations()]
    assert len(found) > 80
    assert [name for name, n in Counter(d.name for d in found).items() if n > 1] == []
    assert [d.name for d in found if not d.bound or not d.keyed_by] == []


def test_the_page_is_current():
    assert (ROOT / "docs" / "caches.md").read_text(encoding="utf-8") == page(), (
        "run: python -m namoo.memo.caches > docs/caches.md"
    )


def entries(*names):
    return [caches[name].entries() for name in names]


def test_clear_caches_forgets_what_was_traced():
    def f(x):
        return (jnp.sin(x) * x).sum()

    for _ in range(3):
        namoo.grad(f)(jnp.ones(3))
    namoo.jit(f)(jnp.ones(3))
    namoo.vmap(lambda x: namoo.lax.cond(x > 0, lambda: x, lambda: -x))(jnp.ones(3))
    names = [
        "memo.trace_cache programs",
        "memo.linear_steps backward passes",
        "api.jit programs and recognised calls",
    ]
    assert all(entries(*names))
    namoo.clear_caches()
    assert [c.name for c in caches.values() if not c.kept and c.entries()] in (
        [],
        ["runtime memory pool"],  # what is in use now bounds what is kept
    )
    assert namoo.grad(f)(jnp.ones(3)).shape == (3,)


def test_functions_without_an_entry_of_their_own_are_cleared_too():
    traces = []

    class Callable:  # a function that can be neither hashed nor referenced weakly
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x):
            traces.append(1)
            return x + 1

    f = namoo.jit(Callable())
    f(1.0)
    f(1.0)
    namoo.clear_caches()
    f(1.0)
    assert len(traces) == 2


def test_the_report_is_a_table():
    namoo.grad(lambda x: jnp.sin(x))(1.0)
    report = namoo.memory_report()
    assert {row.name for row in report} >= set(caches)
    assert all(row.entries <= row.bound for row in report if isinstance(row.bound, int))
    text = repr(report).splitlines()
    assert text[0].split() == ["cache", "entries", "bound", "bytes", "keyed", "by"]
    assert len(text) == len(report) + 1
