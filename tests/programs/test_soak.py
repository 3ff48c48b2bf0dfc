"""Many calls of a train step leave no memory behind; `bench/soak.py` makes a million of them.

Neither do many programs: new functions, constants, shapes, static arguments.
"""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.engines.native.cache import programs

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import soak

STEPS = dict(soak.steps())


@pytest.mark.parametrize("name", STEPS)
def test_blocks_do_not_grow_with_calls(name):
    blocks, _ = soak.growth(soak.soak(STEPS[name], 1000))
    # One object left by each call would be 900 of them.
    assert blocks < 300


def test_a_leak_is_seen():
    kept = []

    def leaking(params, scale):
        kept.append((params, scale))
        return params, scale

    blocks, _ = soak.growth(soak.soak(leaking, 1000))
    assert blocks > 300


total = namoo.jit(lambda x: (x * 2).sum())
power = namoo.jit(lambda x, k: x**k, static_argnums=1)

# What makes a program that is new for each number.
NEW_PROGRAMS = {
    "constants": lambda i: namoo.jit(lambda x: x * float(i))(jnp.ones(3)),
    "arrays": lambda i: namoo.jit(lambda x: x * np.arange(i, i + 3))(jnp.ones(3)),
    "shapes": lambda i: total(jnp.ones(i + 1)),
    "static arguments": lambda i: power(jnp.ones(3), i),
    "scan": lambda i: lax.scan(lambda c, x: (c * i + x, c), 0.0, jnp.ones(4)),
    "scan of arrays": lambda i: lax.scan(lambda c, x: (c, x * np.full(3, i)), 0.0, jnp.ones(4)),
    "while_loop": lambda i: lax.while_loop(lambda x: x < i, lambda x: x * i, 2.0),
    "cond": lambda i: lax.cond(i % 2 == 0, lambda x: x * i, lambda x: x - i, 2.0),
    "fori_loop": lambda i: lax.fori_loop(0, 3, lambda _, x: x * i, 2.0),
    "lowered": lambda i: namoo.jit(lambda x: x * float(i)).lower(1.0).compile()(1.0),
}


@pytest.mark.parametrize("name", NEW_PROGRAMS)
def test_programs_are_let_go(monkeypatch, name):
    """Machine code and all else: what is kept is bounded, whatever the number of programs."""
    monkeypatch.setattr("namoo.api.jit._PROGRAMS_LIMIT", 4)
    monkeypatch.setattr("namoo.api.jit._SHARED_LIMIT", 4)
    namoo.config.update("engine", "native")
    namoo.clear_caches()
    gc.collect()
    before = len(programs._alive)
    blocks = []
    for i in range(60):
        NEW_PROGRAMS[name](i + 1000)
        if i % 30 == 29:
            gc.collect()
            blocks.append(sys.getallocatedblocks())
            # C++ recognises the last 16 kinds of calls of a function.
            assert len(programs._alive) - before <= 4 + 16
    # Each program is more than a hundred of them.
    assert blocks[-1] - blocks[0] < 30 * 30
