"""Special functions and gamma numbers in compiled programs: values of eager mode, no host."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
import namoo.scipy.special as special
from namoo import lax, random
from namoo.primitives.special.more_functions import erfcx

rng = np.random.default_rng(0)
POSITIVE = rng.gamma(1.0, 3.0, 101)
OTHER = rng.gamma(1.0, 3.0, 101)
SHARES = rng.uniform(size=101)
SIGNED = 4 * rng.normal(size=101)
ENDS = np.array([-np.inf, -3, -2.5, -1, -0.0, 0.0, 0.3, 1, 2, 50, 1e9, np.inf, np.nan])
FUNCTIONS = {
    "igamma": (lax.igamma, POSITIVE, OTHER),
    "igammac": (lax.igammac, POSITIVE, OTHER),
    "igamma_grad_a": (lax.igamma_grad_a, POSITIVE, OTHER),
    "random_gamma_grad": (lax.random_gamma_grad, POSITIVE, OTHER),
    "betainc": (lax.betainc, POSITIVE, OTHER, SHARES),
    "betaln": (special.betaln, POSITIVE, OTHER),
    "bessel_i0e": (lax.bessel_i0e, SIGNED),
    "bessel_i1e": (lax.bessel_i1e, SIGNED),
    "log_ndtr": (special.log_ndtr, SIGNED),
    "ndtri": (special.ndtri, SHARES),
    "zeta": (lax.zeta, POSITIVE + 1.01, OTHER),
    "zeta of negative numbers": (lax.zeta, np.floor(POSITIVE) + 2, SIGNED),
    "polygamma": (lax.polygamma, np.floor(POSITIVE), OTHER),
    "erfcx": (erfcx, SIGNED / 2),
    "zeta at the ends": (lax.zeta, *map(np.ravel, np.meshgrid([0.5, 1, 1.5, 2, 3, 30], ENDS))),
    "polygamma at the ends": (lax.polygamma, *map(np.ravel, np.meshgrid([0, 1, 2, 0.5], ENDS))),
    "bessel_i1e at the ends": (lax.bessel_i1e, ENDS),
}


def compiled(f, *args):
    """The result of a compiled function that must not ask the host for anything."""
    program = namoo.jit(f).lower(*args).compile()
    assert not program.host_operations()
    return np.asarray(program(*args))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    f, *args = FUNCTIONS[name]
    with namoo.enable_x64(True):
        args = [jnp.asarray(x, dtype) for x in args]
        # Both compute in double precision.
        tolerance = 1e-6 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(compiled(f, *args), np.asarray(f(*args)), rtol=tolerance)


def test_loops_end_where_the_last_lane_does():
    # Elements that need few steps and many, in one vector and alone.
    a = jnp.asarray([1e-3, 1e4, 1.0, 2e5, 0.5])
    x = jnp.asarray([1e-3, 1e4, 2.0, 1.9e5, 0.0])
    whole = compiled(lax.igamma, a, x)
    alone = [compiled(lax.igamma, a[i], x[i]) for i in range(5)]
    np.testing.assert_array_equal(whole, alone)
    np.testing.assert_allclose(whole, np.asarray(lax.igamma(a, x)), rtol=1e-6)


KEY = random.key(3)
ALPHA = rng.gamma(1.0, 2.0, (7, 33))
SAMPLERS = {
    "gamma": lambda a: random.gamma(KEY, a),
    "loggamma": lambda a: random.loggamma(KEY, a),
    "keys": lambda a: namoo.vmap(random.gamma)(random.split(KEY, 7), a),
    "one": lambda a: random.gamma(KEY, a[0, 0]),
    "beta": lambda a: random.beta(KEY, a, a + 1),
    "dirichlet": lambda a: random.dirichlet(KEY, a),
    "t": lambda a: random.t(KEY, a + 1),
    "derivative": namoo.grad(lambda a: random.gamma(KEY, a).sum()),
    "nan": lambda a: random.gamma(KEY, jnp.where(a > 2, jnp.nan, a)),
    "another generator": lambda a: random.gamma(random.key(1, impl="philox4x32"), a),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name, dtype):
    with namoo.enable_x64(dtype == "float64"):
        alpha = jnp.asarray(ALPHA, dtype)
        found, expected = compiled(SAMPLERS[name], alpha), np.asarray(SAMPLERS[name](alpha))
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-10)
