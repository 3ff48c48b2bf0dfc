"""Taylor mode against JAX's, and against nested forward mode where JAX has no rule."""

import functools
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.jet import jet as jaxs_jet

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, assert_same, fail_alike
from namoo import lax
from namoo.experimental.jet import jet

X = np.array([0.3, 0.7, 0.9], np.float32)
SERIES = [np.array(row, np.float32) for row in ([1, 0.5, 2], [0.3, -1, 0], [0, 0.2, 1], [1, 1, -1])]
M = np.array([[1, 0.2, 0], [0.5, 2, 1], [0, 1, 3]], np.float32)


def taylor(L) -> Any:
    return jet if L is OURS else jaxs_jet


PROGRAMS = {
    **{
        name: lambda L, x, name=name: getattr(L.jnp, name)(x)
        for name in "exp expm1 log log1p sin cos tanh sinh cosh sqrt square arctanh arcsinh".split()
    },
    "logistic": lambda L, x: L.lax.logistic(x),
    "erf": lambda L, x: L.lax.erf(x),
    "power": lambda L, x: x**3 + x**-2,
    "pow": lambda L, x: L.lax.pow(x, x + 1),
    "product": lambda L, x: x * x * L.jnp.sin(x),
    "quotient": lambda L, x: L.jnp.sin(x) / (1 + x * x),
    "reciprocal": lambda L, x: 2.0 / x,
    "by a number": lambda L, x: x / 3.0,
    "matmul": lambda L, x: (M @ x) @ (M * x) @ x,
    "arctan2": lambda L, x: L.jnp.arctan2(x, x * x),
    "abs and sign": lambda L, x: L.jnp.abs(x - 0.5) * L.jnp.sign(x),
    "where": lambda L, x: L.jnp.where(x > 0.5, x * x, L.jnp.exp(x)),
    "shapes": lambda L, x: L.jnp.concatenate([x[::-1], x[None].T[:, 0] * x])[1:4],
    "max": lambda L, x: L.jnp.max(x * x) + L.jnp.cumsum(x),
    "constant": lambda L, x: L.jnp.ones(2),
    "integers": lambda L, x: (L.jnp.floor(x).astype(int), x),
}


@functools.cache
def wanted():
    """All programs in JAX, compiled as one."""

    def run(x, series):
        return {
            name: jaxs_jet(functools.partial(program, THEIRS), (x,), (series,))
            for name, program in PROGRAMS.items()
        }

    return jax.jit(run)(X, SERIES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    found = jet(functools.partial(PROGRAMS[name], OURS), (X,), (SERIES,))
    assert_same(found, wanted()[name], rtol=2e-4, weak=False)


def test_several_arguments_and_factors():
    def run(L, scaled):
        fun = lambda x, y: {"p": L.jnp.sin(x) * y, "q": y}  # noqa: E731
        return taylor(L)(fun, (X, X + 1), (SERIES[:3], SERIES[1:]), factorial_scaled=scaled)

    for scaled in (True, False):
        assert_same(run(OURS, scaled), run(THEIRS, scaled), rtol=1e-4, weak=False)


def nested(fun, x, series):
    """All derivatives along the curve, by forward mode in forward mode."""

    def along(t):
        terms = [s * t**k / np.prod(np.arange(1, k + 1)) for k, s in enumerate(series, 1)]
        return fun(x + sum(terms))

    derivatives = [along]
    for _ in series:
        derivatives.append(lambda t, f=derivatives[-1]: namoo.jvp(f, (t,), (1.0,))[1])
    return [f(0.0) for f in derivatives]


WHERE_JAX_HAS_NO_RULE = {
    "scan": lambda x: lax.scan(lambda c, y: (c * jnp.sin(y), c + y), x[0], x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.cos(c), x),
    "while_loop": lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * c + c, x),
    "cond": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
    "custom_jvp": lambda x: namoo.nn.relu(x) * namoo.nn.softplus(x),
    "jit": lambda x: namoo.jit(lambda y: jnp.sin(y) * y)(x),
    "solve": lambda x: jnp.linalg.solve(M + jnp.outer(x, x), x),
    "prod": lambda x: jnp.prod(x),
    "sort": lambda x: jnp.sort(-x) ** 2,
}


@pytest.mark.parametrize("name", WHERE_JAX_HAS_NO_RULE)
def test_as_nested_forward_mode(name):
    fun = WHERE_JAX_HAS_NO_RULE[name]
    with namoo.enable_x64():
        x, series = X.astype(float), [s.astype(float) for s in SERIES[:3]]
        value, terms = jet(fun, (x,), (series,))
        for k, wanted in enumerate(nested(fun, x, series)):
            leaves, tree = namoo.tree.flatten(wanted)
            lists = tree.flatten_up_to(terms)
            found = namoo.tree.leaves(value) if k == 0 else [own[k - 1] for own in lists]
            for a, b in zip(found, leaves, strict=True):
                np.testing.assert_allclose(a, b, 1e-9, 1e-9)


def test_transformed():
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]  # noqa: E731
    np.testing.assert_allclose(namoo.vmap(third)(X), -np.cos(X), 1e-5)
    np.testing.assert_allclose(namoo.jit(namoo.grad(third))(0.5), np.sin(0.5), 1e-5)


def test_high_order_costs_little():
    """Operations in the program grow with the cube of the order, not exponentially."""

    def equations(order):
        series = ((1.0, *[0.0] * (order - 1)),)
        fun = lambda x: jet(lambda x: jnp.exp(x * jnp.sin(x)), (x,), series)  # noqa: E731
        return len(namoo.make_jaxpr(fun)(0.5).eqns)

    assert equations(12) < 8 * equations(6)


REFUSED = {
    "lengths": lambda L: taylor(L)(lambda x, y: x * y, (2.0, 3.0), ((1.0, 0.0), (1.0,))),
    "trees": lambda L: taylor(L)(lambda d: d["a"], ({"a": 2.0},), ({"a": [1.0]},)),
    "numbers of arguments": lambda L: taylor(L)(lambda x, y: x, (2.0, 3.0), ((1.0,),)),
    "integers": lambda L: taylor(L)(lambda x: x * x, (2,), ((1, 0),)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    assert "jet" in fail_alike(REFUSED[name])


def test_shapes_of_terms():
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        jet(jnp.sin, (X,), ((X[:2],),))


def test_conditions_are_constant():
    b, x, y = jnp.array([True, False]), jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    series = [(jnp.ones(2), jnp.ones(2)), (x, x), (y, y)]
    value, terms = jet(lambda b, x, y: jnp.where(b, x, y**2), (b, x, y), series)
    np.testing.assert_array_equal(value, [1.0, 16.0])
    np.testing.assert_array_equal(terms, [[1.0, 32.0], [1.0, 64.0]])
