"""Many calls of a train step leave no memory behind; `bench/soak.py` makes a million of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

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
