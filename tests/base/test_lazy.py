"""Namespaces load their names late: nothing heavy at import, nothing missing afterwards."""

import ast
import gc
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import namoo
import namoo.numpy as jnp
from namoo._base.lazy import names_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SPACES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "namoo").rglob("*.pyi")
)


def test_generated_files_are_current():
    command = [sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def names_in_stub(module) -> dict[str, tuple[str, str]]:
    """Each name of the stub with the module and the name it is imported from."""
    path = Path(module.__file__).with_suffix(".pyi")
    found, private = {}, set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            # `import x` without `as x` is for the stub itself.
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module, alias.name)
                if alias.asname is None:
                    private.add(alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            [target], source = node.targets, node.value
            assert isinstance(target, ast.Name) and isinstance(source, ast.Name)
            found[target.id] = found[source.id]
    return {name: source for name, source in found.items() if name not in private}


@pytest.mark.parametrize("space", SPACES)
def test_the_stub_is_the_table(space):
    module = importlib.import_module(space)
    table = {
        name: (f"namoo.{source}", own) if own else tuple(f"namoo.{source}".rsplit(".", 1))
        for name, (source, own) in names_of(module._TABLE).items()
    }
    found = names_in_stub(module)
    assert {name: found.get(name) for name in table} == table
    assert found.keys() - table.keys() <= {"Array"}


@pytest.mark.parametrize("space", SPACES)
def test_every_name_loads_and_is_listed(space):
    module = importlib.import_module(space)
    names = list(names_of(module._TABLE))
    assert set(names) <= set(dir(module))
    for name in names:
        assert getattr(module, name) is getattr(module, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'namoo.numpy' has no attribute 'zeroes'"):
        importlib.import_module("namoo.numpy").zeroes  # noqa: B018


def modules_after(code: str) -> set[str]:
    """What a fresh interpreter has loaded after some code."""
    report = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "import namoo, namoo.numpy, namoo.tree",
            {"llvmlite", "scipy", "jaxlib", "opt_einsum", "namoo.core", "namoo.primitives"},
        ),
        (
            "import namoo.numpy as jnp; jnp.ones(3) + 1",
            {"llvmlite", "scipy", "jaxlib", "opt_einsum", "namoo.api", "namoo.lax"},
        ),
        (
            "import namoo.numpy as jnp; jnp.zeros(3)",
            {
                "namoo.tree",
                "namoo.transforms.stage",
                "namoo.primitives.gather",
                "namoo._base.hints",
            },
        ),
        (
            "from namoo.numpy import creation, elementary",
            {"namoo._base.hints", "difflib"},
        ),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code, unwanted):
    assert not modules_after(code) & unwanted


@pytest.mark.parametrize(
    "use",
    [
        "x + x",
        "1 - x",
        "x.sum()",
        "x.at[0].set(3)",
        "x[0]",
        "repr(x)",
        "len(x)",
        "x.__array__()",
        "import namoo; namoo.Array.mean(x)",
        "x == x",
        "list(x)",
    ],
)
def test_methods_arrive_with_their_first_use(use):
    code = "import numpy\nfrom namoo.core.array import EagerArray\nx = EagerArray(numpy.ones(3))\n"
    assert "namoo.numpy._methods" not in modules_after(code)
    assert "namoo.numpy._methods" in modules_after(code + use)


def test_what_does_not_exist_is_still_missing():
    code = "from namoo.core.array import EagerArray\nprint(hasattr(EagerArray(None), 'absent'))"
    assert "False" in modules_after(code)


def test_a_function_may_have_the_name_of_its_module():
    code = "import namoo.tree.paths, namoo.tree\nimport namoo\nprint(callable(namoo.paths))"
    assert "True" in modules_after(code)


GARBAGE = """
import gc, sys, threading
count = [0]
gc.callbacks.append(lambda phase, info: count.__setitem__(0, count[0] + (phase == "start")))
{before}
import namoo, namoo.numpy as jnp
threads = [threading.Thread(target=getattr, args=(namoo, n)) for n in ("jit", "grad", "vmap")]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
jnp.ones(3) + 1
print(gc.isenabled(), gc.get_freeze_count() > 0, count[0] < 20)
import weakref
class Thing: pass
thing = Thing()
thing.own = thing
gone = weakref.ref(thing)
namoo.nn.relu
del thing
gc.collect()
print(gone() is None)
"""


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ("", "True False True True"),
        ("gc.disable()", "False False True True"),
        ("gc.freeze()", "True True True True"),
    ],
)
def test_the_garbage_collector_rests_while_modules_load(before, seen):
    code = GARBAGE.format(before=before)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == seen.split()


YOUNG = """
import gc
import namoo
seen = []
gc.callbacks.append(lambda phase, info: seen.append(len(gc.get_objects(0))))
namoo.numpy.ones(3)
kept = [[] for _ in range(2000)]
print(0 < max(seen) < 5000)
"""


def test_what_was_loaded_is_not_looked_through_afterwards():
    out = subprocess.run([sys.executable, "-c", YOUNG], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["True"]


@pytest.mark.parametrize(
    ("before", "within"),
    [(700, 50_000), (0, 0), (80_000, 80_000)],
    ids=["often", "never", "rarely"],
)
def test_the_garbage_collector_waits_while_a_function_is_traced(before, within):
    seen = []

    def f(x):
        seen.append(gc.get_threshold()[0])
        if x.ndim:
            namoo.jit(f)(x[0])
            seen.append(gc.get_threshold()[0])
        return x

    others = gc.get_threshold()
    try:
        gc.set_threshold(before, *others[1:])
        namoo.jit(f)(jnp.ones(3))
        with pytest.raises(ZeroDivisionError):
            namoo.jit(lambda x: 1 // 0)(1.0)
        assert seen == [within] * 3
        assert gc.get_threshold() == (before, *others[1:])
        namoo.jit(lambda x: gc.set_threshold(900, 5, before))(1.0)  # what a user sets stays
        assert gc.get_threshold() == (900, 5, before)
    finally:
        gc.set_threshold(*others)


TIMEOUT = """
import os, sys
read = []
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            read.append(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Finder())
{before}
import namoo
namoo.tree.map
print("numpy" in sys.modules)
namoo.jit
print(*read, os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ("", "False 20 None"),
        ("os.environ['OPENBLAS_THREAD_TIMEOUT'] = '9'", "False 9 9"),
        ("import numpy", "True None None"),
    ],
)
def test_threads_of_numpy_sleep_early_unless_told_otherwise(before, seen):
    code = TIMEOUT.format(before=before)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == seen.split()
