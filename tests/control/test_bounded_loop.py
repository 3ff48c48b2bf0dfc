"""`while_loop` with `max_steps`: derivatives against the unrolled loop, on every engine."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.control.bounded_loop import schedule
from namoo.experimental import checkify
from namoo.test_util import check_grads

X = np.array([0.1, 0.2, 0.3], np.float32)
W = np.array([0.5, 0.1, 0.2], np.float32)
ENGINES = ("interpreter", "native", "xla")


def goes_on(state):
    return jnp.sum(state["x"] ** 2) < 50.0


def body(w):
    def step(state):
        x = state["x"] * 1.1 + jnp.sin(w * state["x"])
        return {"n": state["n"] + 1, "x": x}

    return step


def looped(x, w, max_steps):
    return lax.while_loop(goes_on, body(w), {"n": 0, "x": x}, max_steps=max_steps)["x"]


def unrolled(x, w, max_steps):
    state = {"n": 0, "x": x}
    for _ in range(min(max_steps, 60)):
        go = goes_on(state)
        new = body(w)(state)
        state = namoo.tree.map(lambda a, b, go=go: jnp.where(go, a, b), new, state)
    return state["x"]


def total(f, max_steps):
    return lambda x, w: jnp.sum(jnp.cos(f(x, w, max_steps)))


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: namoo.grad(f, (0, 1)),
    "jvp": lambda f: lambda x, w: namoo.jvp(f, (x, w), (w, x)),
    "grad of grad": lambda f: namoo.grad(lambda x, w: jnp.sum(namoo.grad(f)(x, w) ** 2), (0, 1)),
    "jvp of grad": lambda f: lambda x, w: namoo.jvp(namoo.grad(f), (x, w), (w, x)),
    "grad of jvp": lambda f: namoo.grad(lambda x, w: namoo.jvp(f, (x, w), (w, x))[1], (0, 1)),
    "hessian": lambda f: namoo.hessian(f),
    "checkpoint": lambda f: namoo.grad(namoo.checkpoint(f), (0, 1)),
}
BATCHED = {
    "vmap": lambda f: namoo.vmap(f, (0, None)),
    "vmap of grad": lambda f: namoo.vmap(namoo.grad(f, (0, 1)), (0, None)),
    "vmap of both": lambda f: namoo.vmap(namoo.grad(f, (0, 1))),
    "grad of vmap": lambda f: namoo.grad(lambda x, w: namoo.vmap(f, (0, None))(x, w).sum(), (0, 1)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("max_steps", [0, 1, 7, 40, 100, 5000])
def test_transformations_equal_those_of_the_unrolled_loop(name, max_steps):
    transform = TRANSFORMS[name]
    expected = transform(total(unrolled, max_steps))(X, W)
    np_close(transform(total(looped, max_steps))(X, W), expected)
    np_close(namoo.jit(transform(total(looped, max_steps)))(X, W), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("max_steps", [7, 100])
@pytest.mark.parametrize("name", ["grad", "grad of grad"])
def test_engines(name, max_steps, engine):
    transform = TRANSFORMS[name]
    run = namoo.jit(transform(total(looped, max_steps)), engine=engine)
    np_close(run(X, W), transform(total(unrolled, max_steps))(X, W))


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("max_steps", [7, 100])
def test_examples_that_stop_apart(name, max_steps):
    xs = np.stack([X, 3 * X, 100 * X, X[::-1]])
    ws = W if "both" not in name else np.stack([W, W, 2 * W, W])
    transform = BATCHED[name]
    expected = transform(total(unrolled, max_steps))(xs, ws)
    np_close(transform(total(looped, max_steps))(xs, ws), expected)
    np_close(namoo.jit(transform(total(looped, max_steps)))(xs, ws), expected)


def np_close(found, expected):
    for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_the_value_is_that_of_jax_and_the_bound_stops_the_loop():
    def run(lib, x, **bound):
        return lib.lax.while_loop(lambda x: x < 100.0, lambda x: 3.0 * x, x, **bound)

    assert float(run(namoo, 2.0, max_steps=50)) == float(run(jax, 2.0))
    assert run(namoo, 2.0, max_steps=2) == 18.0
    with namoo.disable_jit(True):
        assert run(namoo, 2.0, max_steps=2) == 18.0


def test_derivatives_by_finite_differences():
    with namoo.enable_x64(True):
        f = lambda x, w: looped(x, w, 1000)  # noqa: E731
        check_grads(f, (X.astype(np.float64), W.astype(np.float64)), order=2, rtol=1e-4)


@pytest.mark.parametrize("name", ["vmap of grad", "grad of vmap"])
def test_examples_that_have_stopped_add_no_nan(name):
    # The derivative of sqrt at 0, where the second example stops at once, is infinite.
    def f(x, w):
        return lax.while_loop(lambda x: x > 0.5, lambda x: jnp.sqrt(x) - 0.2, x, max_steps=9) * w

    found = BATCHED[name](f)(np.array([3.0, 0.0], np.float32), 1.0)
    assert all(np.all(np.isfinite(x)) for x in found)


def runs_of_the_body(f, *args):
    """How often the body runs when a compiled function is called."""
    count = []

    def step(x):
        namoo.debug.callback(lambda: count.append(None))
        return x * 1.5

    namoo.jit(f(step))(*args)
    namoo.effects_barrier()
    return len(count)


def test_a_batch_stops_with_its_last_example():
    def f(step):
        loop = lambda x: lax.while_loop(lambda x: x < 10.0, step, x, max_steps=4000)  # noqa: E731
        return namoo.vmap(namoo.grad(loop))

    alone = runs_of_the_body(f, jnp.ones(1))
    assert runs_of_the_body(f, jnp.array([1.0, 20.0, 5.0])) <= 3 * alone < 100


def memory(max_steps, f=looped):
    run = namoo.jit(namoo.grad(total(f, max_steps)), engine="native").lower(X, W).compile()
    assert not run.host_operations()
    return run.memory_analysis().temp_size_in_bytes


def test_memory_grows_as_the_logarithm_of_the_bound():
    assert memory(10**6) < 3 * memory(1000)


@pytest.mark.parametrize("max_steps", [1, 2, 63, 64, 65, 4096, 4097, 10**7])
def test_the_schedule_covers_the_bound(max_steps):
    assert max_steps <= np.prod(schedule(max_steps), dtype=object) <= 4 * max_steps


def test_checks_inside():
    def f(x):
        def step(x):
            checkify.check(x < 30.0, "too large: {x}", x=x)
            return 2.0 * x

        return lax.while_loop(lambda x: x < 100.0, step, x, max_steps=20)

    error, out = checkify.checkify(f)(3.0)
    assert out == 192.0 and "too large: 48.0" in str(error.get())
    assert namoo.grad(lambda x: checkify.checkify(f)(x)[1])(3.0) == 64.0


def test_references():
    def f(x):
        ref = namoo.new_ref(jnp.zeros(3))

        def step(x):
            ref[...] += x
            return x * 1.5

        lax.while_loop(lambda x: jnp.sum(x) < 10.0, step, x, max_steps=100)
        return ref[...].sum()

    steps = 7
    np.testing.assert_allclose(
        namoo.grad(f)(X), np.full(3, sum(1.5**i for i in range(steps))), 1e-6
    )


def test_export():
    f = namoo.jit(namoo.grad(total(looped, 100)))
    back = namoo.export.deserialize(namoo.export.export(f)(X, W).serialize())
    np.testing.assert_array_equal(back.call(X, W), f(X, W))


@pytest.mark.parametrize("bad", [-1, 2.5, "many", True])
def test_bounds_that_are_no_number_of_iterations(bad):
    with pytest.raises(ValueError, match="max_steps.*number of iterations"):
        lax.while_loop(lambda x: x < 1, lambda x: x + 1, 0, max_steps=bad)


def test_a_traced_bound():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="max_steps"):
        namoo.jit(lambda n: lax.while_loop(lambda x: x < 1, lambda x: x + 1, 0, max_steps=n))(3)
