"""With `config.memo` off every answer is the same; and the rooms below know nothing of memory."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import namoo
import namoo.numpy as jnp
from namoo._base.caches import caches
from namoo._base.config import config

X = jnp.ones((4, 3))
SOURCE = Path(__file__).parents[2] / "src" / "namoo"


@pytest.fixture
def without_memo():
    """Run a function with the memory switched off."""

    def run(f, *args):
        before = config.memo
        namoo.config.update("memo", False)
        try:
            return f(*args)
        finally:
            namoo.config.update("memo", before)

    return run


def test_nothing_is_remembered_without_memory(without_memo):
    namoo.clear_caches()
    for _ in range(3):
        without_memo(namoo.grad(lambda x: jnp.sin(x).sum()), X)
        without_memo(namoo.vmap(lambda x: namoo.lax.cond(x[0] > 0, lambda: x, lambda: -x)), X)
    names = [name for name in caches if name.startswith("memo.") and "identity" not in name]
    assert len(names) == 3
    assert [caches[name].entries() for name in names] == [0, 0, 0]


@pytest.mark.parametrize("file", ["test_vmap.py", "test_grad.py"])
def test_tests_of_transformations_pass_without_memory(file, tmp_path):
    """The environment variable switches the memory off, and a part of the suite does not mind."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x"]
    found = subprocess.run(
        [*command, f"tests/transforms/{file}", "-k", "not remember and not memory"],
        cwd=SOURCE.parents[1],
        env={**os.environ, "NAMOO_MEMO": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stdout[-2000:]


ROOMS = ("core", "transforms", "control")
FILES = [p for room in ROOMS for p in sorted((SOURCE / room).rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_rooms_below_have_no_memory(path):
    """Derived programs are declared by `per_program`; all else is `Trace.memory`'s."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wrong = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("namoo.memo"):
                wrong.append(module)
            case ast.Name(id="cached" | "lru_cache") | ast.Attribute(attr="lru_cache"):
                wrong.append(f"line {node.lineno}: a cache of a function")
            case ast.Attribute(attr="cache", ctx=ast.Load()) if path.name != "jaxpr.py":
                wrong.append(f"line {node.lineno}: reads a cache")
    assert not wrong
