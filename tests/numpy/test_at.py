"""`x.at[i].set(y)` copies `x`, unless nobody can ask for it any more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from jax_oracle import agree
from namoo._base.runtime import native

KEPT: list = []


def address(x) -> int:
    return x._value.ctypes.data


def fresh():
    """A new array, and where its memory is."""
    x = jnp.zeros(100)
    return x, address(x)


def make(where):
    x, where[0] = fresh()
    return x


def keeping(where, keep):
    x = make(where)
    KEPT.append(keep(x))
    return x


IN_PLACE = {
    "a temporary": lambda at: make(at).at[3].set(1.0),
    "two updates": lambda at: make(at).at[3].set(0.5).at[3].add(0.5),
    "a slice": lambda at: make(at).at[3:4].max(1.0),
    "an array of indices": lambda at: make(at).at[np.array([3])].add(1.0),
    "given away": lambda at: [make(at)].pop().at[3].set(1.0),
}
COPIED = {
    "a name": lambda at: named(make(at)),
    "a list": lambda at: keeping(at, lambda x: x).at[3].set(1.0),
    "a view of NumPy": lambda at: keeping(at, np.asarray).at[3].set(1.0),
    "a memoryview": lambda at: keeping(at, view).at[3].set(1.0),
    "a slice of it": lambda at: keeping(at, lambda x: x[2:5]).at[3].set(1.0),
    "dlpack": lambda at: keeping(at, np.from_dlpack).at[3].set(1.0),
    "a closure": lambda at: keeping(at, lambda x: lambda: x).at[3].set(1.0),
    "the place": lambda at: keep_place(make(at).at[3]),
    "the helper": lambda at: keep_helper(make(at).at),
    "an iterator": lambda at: keeping(at, iter).at[3].set(1.0),
}


def view(x):
    """The array's own buffer, where Python or the C++ part lets it have one."""
    buffer: Any = x if native is not None else np.asarray(x)
    return memoryview(buffer)


def named(x):
    return x.at[3].set(1.0)


def keep_place(place):
    out = place.set(1.0)
    assert place.get() == 0.0
    return out


def keep_helper(helper):
    out = helper[3].set(1.0)
    assert helper[3].get() == 0.0
    return out


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_array_that_nobody_holds_is_not_copied(name):
    where = [0]
    out = IN_PLACE[name](where)
    assert address(out) == where[0]
    np.testing.assert_array_equal(out, np.eye(1, 100, 3, dtype=np.float32)[0])


@pytest.mark.parametrize("name", COPIED)
def test_an_array_that_somebody_holds_is_copied(name):
    KEPT.clear()
    where = [0]
    out = COPIED[name](where)
    assert address(out) != where[0]
    np.testing.assert_array_equal(out, np.eye(1, 100, 3, dtype=np.float32)[0])
    for kept in KEPT:
        values: Any = kept() if callable(kept) else kept
        assert not any(float(v) for v in values)


def test_what_is_refused_is_not_half_done():
    x = jnp.zeros((2, 3))
    with pytest.raises(ValueError, match="broadcast"):
        jnp.asarray(x * 1.0).at[0].set(jnp.ones(2))
    np.testing.assert_array_equal(x, np.zeros((2, 3)))


@pytest.mark.parametrize("make", [jnp.zeros, jnp.ones, lambda n: jnp.broadcast_to(1.0, (n,))])
def test_constants_of_programs_keep_their_values(make):
    f = namoo.jit(lambda: make(3))
    for _ in range(3):
        before = np.array(f())
        np.testing.assert_array_equal(f().at[1].set(7.0), [before[0], 7.0, before[2]])
        np.testing.assert_array_equal(f(), before)


@pytest.mark.parametrize("mode", [None, "drop", "clip"])
@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_min", "segment_max"])
def test_negative_segments_do_not_count_from_the_end(name, mode):
    import jax

    data, ids = np.array([1.0, 2.0, 3.0, 4.0], "f"), np.array([0, -1, 1, 3], np.int32)
    wanted = getattr(jax.ops, name)(data, ids, 3, mode=mode)
    for run in (lambda f: f, namoo.jit):
        found = run(lambda x, i: getattr(namoo.ops, name)(x, i, 3, mode=mode))(data, ids)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("mode", [None, "drop"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_tangents_of_extremes_at_nan(name, mode):
    """They are 0 at a NaN that an update meets, and pass through one that no update meets."""
    x = np.array([np.nan, np.nan, 1.0, 5.0, np.nan, 2.0], "f")
    places = np.array([1, 2, 3, 4, 4, 5, 9])
    updates = np.array([3.0, 3.0, np.nan, 1.0, 2.0, 2.0, 7.0], "f")
    tangents = np.ones(6, "f"), np.arange(10.0, 80.0, 10.0).astype("f")

    def program(lib):
        def update(x, updates):
            return getattr(lib.jnp.asarray(x).at[places], name)(updates, mode=mode)

        def push(x, updates):
            return lib.jvp(update, (x, updates), tangents)

        pull = lib.grad(lambda x, u: lib.jnp.nansum(update(x, u)), (0, 1))
        return push(x, updates), lib.jit(push)(x, updates), pull(x, updates)

    agree(program)
