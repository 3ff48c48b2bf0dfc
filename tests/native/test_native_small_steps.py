"""Loops whose steps change a few elements of a large array run without kernels."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax

N, STEPS = 1009, 40
X = np.random.default_rng(0).standard_normal(N).astype("f4")
IDS = np.random.default_rng(1).integers(-20, N + 20, (STEPS, 2)).astype("i4")
IDS[::4, 1] = IDS[::4, 0]  # the same element twice


def scanned(step):
    return lambda x, ids: lax.scan(step, x, ids)


def numpy_scanned(step):
    def run(x, ids):
        state, out = x, []
        for i in ids:
            state, y = step(state, i)
            out.append(y)
        return state, np.array(out, "f4")

    return run


def at(i):
    """Where NumPy reads what JAX reads: negative indices from the end, then clamped."""
    return min(max(i + N if i < 0 else i, 0), N - 1)


def put(x, i, value, combine=lambda old, new: new):
    """A copy of an array with one element changed, unless the index is out of bounds."""
    x, i = x.copy(), i + N if i < 0 else i
    if 0 <= i < N:
        x[i] = combine(x[i], np.float32(value))
    return x


def plus(a, b):
    return a + b


def swap(x, i):
    return x.at[i].set(x[i[::-1]]), x[i[0]]


def numpy_swap(x, i):
    old = x[at(i[0])], x[at(i[1])]
    return put(put(x, i[0], old[1]), i[1], old[0]), old[0]


def old_after(x, i):
    """The old array is read after the update, as the program is written."""
    y = x.at[i[0]].set(1.0)
    return y.at[i[1]].add(x[i[0]]), x[i[1]]


def numpy_old_after(x, i):
    return put(put(x, i[0], 1), i[1], x[at(i[0])], plus), x[at(i[1])]


def overlapping(x, i):
    """A slice is written over another that overlaps it."""
    part = lax.dynamic_slice(x, (i[0],), (9,))
    x = lax.dynamic_update_slice(x, part + 1, (i[0] + 4,))
    return x, lax.dynamic_slice(x, (i[0],), (9,)).sum() + part[0]


def numpy_overlapping(x, i):
    # A negative start counts from the end; each is clamped to the array.
    j = int(np.clip(i[0] + N if i[0] < 0 else i[0], 0, N - 9))
    k = int(np.clip(i[0] + 4 + N if i[0] + 4 < 0 else i[0] + 4, 0, N - 9))
    part, x = x[j : j + 9].copy(), x.copy()
    x[k : k + 9] = part + 1
    return x, x[j : j + 9].sum() + part[0]


def branches(x, i):
    """Both branches read the old array; one updates it, one returns it."""
    return lax.cond(
        i[0] % 2 == 0,
        lambda x: (x.at[i[0]].mul(x[i[1]]).at[i[1]].set(x[i[0]]), x[i[1]]),
        lambda x: (x, x[i[0]]),
        x,
    )


def numpy_branches(x, i):
    if i[0] % 2:
        return x, x[at(i[0])]
    a, b = x[at(i[0])], x[at(i[1])]
    return put(put(x, i[0], b, lambda old, new: old * new), i[1], a), b


def nested(x, i):
    """A loop in a loop, whose bound is data; then a reading of both arrays."""

    def step(state):
        y, k = state
        return y.at[i[1] + k].add(x[i[0]]), k + 1

    y, k = lax.while_loop(lambda s: (s[1] < 5) & (s[0][s[1]] < 2), step, (x, 0))
    return y, y[i[0]] + k


def numpy_nested(x, i):
    y, k = x, 0
    while k < 5 and y[k] < 2:
        y, k = put(y, i[1] + k, x[at(i[0])], plus), k + 1
    return y, y[at(i[0])] + k


def two_arrays(x, i):
    """Two carries that begin as the same array, and read each other."""
    a, b = x
    return (a.at[i[0]].set(b[i[1]]), b.at[i[1]].add(a[i[0]])), b[i[0]]


def numpy_two_arrays(x, i):
    a, b = x
    return (put(a, i[0], b[at(i[1])]), put(b, i[1], a[at(i[0])], plus)), b[at(i[0])]


def crossed(x, i):
    """Two carries that change places."""
    a, b = x
    return (b.at[i[0]].set(1.0), a), a[i[1]]


def numpy_crossed(x, i):
    a, b = x
    return (put(b, i[0], 1), a), a[at(i[1])]


def returned_twice(x, i):
    a, b = x
    a = a.at[i[0]].set(b[i[0]] + 1)
    return (a, a), b[i[1]]


def numpy_returned_twice(x, i):
    a, b = x
    a = put(a, i[0], b[at(i[0])] + 1)
    return (a, a), b[at(i[1])]


def both(step):
    return lambda x, ids: lax.scan(step, (x, x), ids)


def numpy_both(step):
    return lambda x, ids: numpy_scanned(step)((x, x), ids)


def read_around(step):
    """The array that the loop begins with is read inside of the loop and after it."""

    def run(x, ids):
        y, out = lax.scan(lambda y, i: step(y.at[i[0]].add(x[i[1]]), i), x, ids)
        return y, out + x[0]

    return run


def numpy_read_around(step):
    def run(x, ids):
        changed = numpy_scanned(lambda y, i: step(put(y, i[0], x[at(i[1])], plus), i))
        y, out = changed(x, ids)
        return y, out + x[0]

    return run


def loops(x, ids):
    """Loops of fixed length in one another."""

    def inner(i, j, x):
        return x.at[ids[i, 0]].add(x[ids[j, 1]])

    return lax.fori_loop(
        0, 12, lambda i, x: lax.fori_loop(0, 11, lambda j, x: inner(i, j, x), x), x
    )


def numpy_loops(x, ids):
    for i in range(12):
        for j in range(11):
            x = put(x, ids[i, 0], x[at(ids[j, 1])], plus)
    return x


# Each with its oracle, and whether all of it runs without kernels.
CASES = {
    "swap": (scanned(swap), numpy_scanned(numpy_swap), True),
    "old value after": (scanned(old_after), numpy_scanned(numpy_old_after), True),
    "overlapping": (scanned(overlapping), numpy_scanned(numpy_overlapping), True),
    "branches": (scanned(branches), numpy_scanned(numpy_branches), True),
    "nested": (scanned(nested), numpy_scanned(numpy_nested), False),
    "two arrays": (both(two_arrays), numpy_both(numpy_two_arrays), False),
    "crossed": (both(crossed), numpy_both(numpy_crossed), False),
    "returned twice": (both(returned_twice), numpy_both(numpy_returned_twice), False),
    "read around": (read_around(swap), numpy_read_around(numpy_swap), False),
    "loops": (loops, numpy_loops, True),
}


@pytest.mark.parametrize("donated", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values(name, donated):
    fun, oracle, _ = CASES[name]
    found = namoo.jit(fun, donate_argnums=0 if donated else ())(jnp.array(X), IDS)
    for ours, theirs in zip(
        namoo.tree.leaves(found), namoo.tree.leaves(oracle(X, IDS)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][2]])
def test_loops_without_kernels(name):
    compiled = namoo.jit(CASES[name][0]).lower(X, IDS).compile()
    _, loops = compiled.as_text("llvm").split("define i32 @entry")[1].split("\nL", 1)
    assert "call void @k" not in loops
    assert compiled.as_text("llvm").count("@llvm.memcpy") <= 2  # a declaration, and the first copy
    assert compiled.memory_analysis().temp_size_in_bytes < X.nbytes


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_types(dtype):
    x = jnp.asarray(np.arange(100) % 3).astype(dtype)
    ids = np.array([3, -1, 250, 3, 7], "i4")

    def step(x, i):
        y = x.at[i].set(x[i + 1]) if dtype == "bool" else x.at[i].add(x[i + 1])
        return lax.dynamic_update_slice(y, y[:2], (i,)), y[i]

    found = namoo.jit(lambda x: lax.scan(step, x, ids))(x)
    with namoo.disable_jit():
        expected = lax.scan(step, x, ids)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_empty_arrays_and_updates():
    def step(state, i):
        x, none = state
        return (x.at[i[:0]].set(1.0).at[i[0]].add(none.sum()), none), none

    start = jnp.array(X), jnp.zeros((0, 3))
    (x, none), stacked = namoo.jit(lambda s: lax.scan(step, s, IDS))(start)
    np.testing.assert_array_equal(x, X)
    assert (none.shape, stacked.shape) == ((0, 3), (STEPS, 0, 3))
