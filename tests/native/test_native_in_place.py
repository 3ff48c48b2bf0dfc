"""Updates of an array one after another, in loops and branches, copy it once at most."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax

N, STEPS = 10_007, 5
X = np.random.default_rng(0).standard_normal(N).astype("f4")
IDS = np.random.default_rng(1).integers(0, N, (STEPS, 3)).astype("i4")
COPY = f"i64 {4 * N}, i1 false"


def scanned(step):
    return lambda x, ids: lax.scan(lambda x, i: (step(x, i), None), x, ids)[0]


def swap(x, i):
    return x.at[i[0]].set(x[i[1]]).at[i[1]].set(x[i[0]])


def when_even(update):
    return lambda x, i: lax.cond(i[0] % 2 == 0, update, lambda x, i: x, x, i)


def loops(x, ids):
    """A loop of loops."""
    inner = lambda k, x: x.at[ids[k, 0]].add(1.0)  # noqa: E731
    return lax.fori_loop(0, 3, lambda _, x: lax.fori_loop(0, STEPS, inner, x), x)


def while_loop(x, ids):
    def body(state):
        x, k = state
        x = x.at[ids[k, 0]].set(x[ids[k, 1]])
        return lax.cond(x[0] > 0, lambda x: x.at[k].set(0.0), lambda x: x, x), k + 1

    return lax.while_loop(lambda state: state[1] < STEPS, body, (x, 0))[0]


# Each copies the whole array once, where the loop begins, and not at all if the array is donated.
CASES = {
    "two updates": scanned(lambda x, i: x.at[i[0]].set(1.0).at[i[1]].add(2.0)),
    "an update reads what another replaced": scanned(swap),
    "three slices": scanned(
        lambda x, i: lax.dynamic_update_slice(
            lax.dynamic_update_slice(
                lax.dynamic_update_slice(x, jnp.ones(4), i[:1]), jnp.zeros(4), i[1:2]
            ),
            jnp.ones(2),
            i[2:],
        )
    ),
    "an update or nothing": scanned(when_even(lambda x, i: x.at[i[1]].set(3.0))),
    "two updates or nothing": scanned(when_even(swap)),
    "one of two updates": scanned(
        lambda x, i: lax.cond(
            i[0] > 5000, lambda x: x.at[i[0]].set(1.0), lambda x: x.at[i[1]].mul(2.0), x
        )
    ),
    "a branch between updates": scanned(
        lambda x, i: when_even(swap)(x.at[i[2]].set(0.5), i).at[i[2]].add(1.0)
    ),
    "a switch in a branch": scanned(
        when_even(
            lambda x, i: lax.switch(
                i[1] % 3, [lambda x: x, lambda x: x.at[0].set(7.0), lambda x: x.at[1].add(1.0)], x
            )
        )
    ),
    "loops in a loop": loops,
    "while, with a branch": while_loop,
    "no loop": lambda x, ids: swap(swap(x, ids[0]), ids[1]),
}


@pytest.mark.parametrize("name", CASES)
def test_updates_are_in_place(name):
    fun = CASES[name]
    compiled = namoo.jit(fun).lower(X, IDS).compile()
    copies = compiled.as_text("llvm").count(COPY)
    assert copies <= 1 + name.count("branch") + name.count("nothing")
    assert compiled.memory_analysis().temp_size_in_bytes < X.nbytes
    with namoo.disable_jit():
        expected = fun(jnp.asarray(X), jnp.asarray(IDS))
    np.testing.assert_array_equal(compiled(X, IDS), expected)


def both(x, ids):
    """Two arrays that change places."""

    def step(state, i):
        a, b = state
        return (b.at[i[0]].set(1.0), a.at[i[1]].set(2.0)), None

    return lax.scan(step, (x, x + 1), ids)[0]


def read_later(x, ids):
    """What an update replaces is read after it."""

    def step(x, i):
        y = x.at[i[0]].set(1.0)
        return y.at[i[1]].set(y.sum() - x[i[0]]), x[i[1]]

    return lax.scan(step, x, ids)


def two_results(x, ids):
    """An array and an update of it."""

    def step(state, i):
        x, y = state
        return lax.cond(i[0] > 5000, lambda x, y: (x, x.at[i[1]].set(1.0)),
                        lambda x, y: (y.at[i[2]].set(2.0), x), x, y), x[0]  # fmt: skip

    return lax.scan(step, (x, x + 1), ids)


def twice(x, ids):
    """One operand that a branch gets twice."""

    def step(x, i):
        return lax.cond(i[0] > 5000, lambda a, b: a.at[i[1]].set(b[i[2]] + b[i[1]]),
                        lambda a, b: b.at[i[2]].set(a[i[2]] * 2), x, x), None  # fmt: skip

    return lax.scan(step, x, ids)[0]


def kept(x, ids):
    """An update of an argument, which is a result, too."""
    y = x.at[ids[0, 0]].set(1.0)
    return (
        y,
        y.at[ids[0, 1]].set(2.0),
        lax.cond(ids[0, 0] > 0, lambda y: y.at[0].set(9.0), lambda y: y, y),
    )


@pytest.mark.parametrize("fun", [both, read_later, two_results, twice, kept])
def test_what_is_read_later_is_not_overwritten(fun):
    with namoo.disable_jit():
        expected = fun(jnp.asarray(X), jnp.asarray(IDS))
    for found, value in zip(
        namoo.tree.leaves(namoo.jit(fun)(X, IDS)), namoo.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_donated_arrays(name):
    fun = CASES[name]
    with namoo.disable_jit():
        expected = fun(jnp.asarray(X), jnp.asarray(IDS))
    x = jnp.array(X)
    found = namoo.jit(fun, donate_argnums=0)(x, IDS)
    np.testing.assert_array_equal(found, expected)
