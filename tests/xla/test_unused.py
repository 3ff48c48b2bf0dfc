"""Arguments that a compiled function does not use: they may lie anywhere, or be gone."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from unused_argument_cases import CASES, HOW, outcome

pytest.importorskip("jaxlib")


@pytest.fixture(scope="module")
def oracle():
    script = Path(__file__).parents[1] / "support" / "unused_argument_cases.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = zip(
        itertools.product(CASES, [False, True], HOW), json.loads(done.stdout), strict=True
    )
    return dict(answers)


@pytest.mark.parametrize("engine", ["xla", "native", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_as_in_jax(name, engine, oracle, eight_devices):
    namoo.config.update("engine", engine)
    for keep, how in itertools.product([False, True], [*HOW, "again"]):
        wanted = oracle[name, keep, "called" if how == "again" else how]
        assert outcome(namoo, name, keep, how) == wanted, f"keep_unused={keep}, {how}"


@pytest.mark.parametrize("engine", ["xla", "native"])
@pytest.mark.parametrize("keep", [False, True])
def test_programs_are_given_what_they_use(engine, keep, monkeypatch):
    f = namoo.jit(lambda a, b, c, d: a["y"] * d, keep_unused=keep, engine=engine)
    args = {"x": jnp.ones(2), "y": np.ones(3)}, "a label", jnp.ones(4), 2
    assert len(f.trace(*args).jaxpr.in_avals) == 4
    main = f.lower(*args).as_text("stablehlo").split("@main")[1].split("->")[0]
    assert main.count("%") == (4 if keep else 2)
    f(*args)
    if f.calls is not None:
        monkeypatch.setattr(type(f), "general", None)
    for _ in range(2):
        assert f(*args).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_not_used_does_not_go_to_the_device(keep, monkeypatch):
    from namoo.engines.xla import pjrt

    sent, put = [], pjrt.put
    monkeypatch.setattr(pjrt, "put", lambda kind, *rest: sent.append(kind) or put(kind, *rest))
    x, y, z = (jnp.full(3, float(i)) for i in range(3))
    f = namoo.jit(lambda a, b: (a + y, b + z)[0], engine="xla", keep_unused=keep)
    for _ in range(3):
        assert f(x, np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    # Arrays have their buffers from then on; NumPy's may have changed.
    assert len(sent) == (3 + 3 if keep else 2)


@pytest.mark.parametrize("engine", ["xla", "native", "interpreter"])
def test_another_type_of_what_is_not_used_is_another_program(engine):
    f = namoo.jit(lambda a, b: a + 1, engine=engine)
    for shape in (2, 3, 2, 3):
        assert f(1.0, jnp.ones(shape)) == 2.0
    assert f._cache_size() == 2
