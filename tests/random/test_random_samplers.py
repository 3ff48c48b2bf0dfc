"""Samplers: the same key gives the same numbers as in JAX, up to a rounding."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

import namoo.numpy as jnp
from namoo import random
from random_oracle import OURS, THEIRS, assert_close, assert_equal, both_set, oracle, outcome

# Calls that need no loops: cheap to compile, so each is tried with several shapes and types.
FLOATS = {
    "uniform": lambda r, jnp, k, s, d: r.uniform(k, s, d),
    "uniform between": lambda r, jnp, k, s, d: r.uniform(k, s, d, minval=-2.0, maxval=3),
    "normal": lambda r, jnp, k, s, d: r.normal(k, s, d),
    "truncated_normal": lambda r, jnp, k, s, d: r.truncated_normal(k, -1, 2.0, s, d),
    "exponential": lambda r, jnp, k, s, d: r.exponential(k, s, d),
    "laplace": lambda r, jnp, k, s, d: r.laplace(k, s, d),
    "logistic": lambda r, jnp, k, s, d: r.logistic(k, s, d),
    "cauchy": lambda r, jnp, k, s, d: r.cauchy(k, s, d),
    "gumbel": lambda r, jnp, k, s, d: r.gumbel(k, s, d),
    "gumbel high": lambda r, jnp, k, s, d: r.gumbel(k, s, d, mode="high"),
    "gumbel highest": lambda r, jnp, k, s, d: r.gumbel(k, s, d, mode="highest"),
    "lognormal": lambda r, jnp, k, s, d: r.lognormal(k, 0.5, s, d),
    "maxwell": lambda r, jnp, k, s, d: r.maxwell(k, s, d),
    "double_sided_maxwell": lambda r, jnp, k, s, d: r.double_sided_maxwell(k, 1.0, 2.0, s, d),
    "pareto": lambda r, jnp, k, s, d: r.pareto(k, 3.0, s, d),
    "rayleigh": lambda r, jnp, k, s, d: r.rayleigh(k, 2.0, s, d),
    "triangular": lambda r, jnp, k, s, d: r.triangular(k, 0.0, 1.0, 3.0, s, d),
    "wald": lambda r, jnp, k, s, d: r.wald(k, 2.0, s, d),
    "weibull_min": lambda r, jnp, k, s, d: r.weibull_min(k, 2.0, 3.0, s, d),
}
GAMMAS = {
    "gamma": lambda r, jnp, k, s, d: r.gamma(k, 2.5, s, d),
    "small gamma": lambda r, jnp, k, s, d: r.gamma(k, 0.5, s, d),
    "loggamma": lambda r, jnp, k, s, d: r.loggamma(k, 0.01, s, d),
    "beta": lambda r, jnp, k, s, d: r.beta(k, 0.5, 2.0, s, d),
    "chisquare": lambda r, jnp, k, s, d: r.chisquare(k, 3, s, d),
    "f": lambda r, jnp, k, s, d: r.f(k, 3, 2.0, s, d),
    "t": lambda r, jnp, k, s, d: r.t(k, 3.0, s, d),
    "generalized_normal": lambda r, jnp, k, s, d: r.generalized_normal(k, 1.5, s, d),
    "ball": lambda r, jnp, k, s, d: r.ball(k, 3, 1.5, s, d),
}


def with_form(calls, shape, dtype):
    """Calls of a key, for one shape and type."""
    return {
        name: lambda r, jnp, k, call=call: call(r, jnp, k, shape, dtype)
        for name, call in calls.items()
    }


def agree(calls, seed=0, rtol=None):
    """Calls in both libraries, with typed keys and with raw ones."""
    rtol = rtol or {}
    for name, wanted in oracle(calls, seed).items():
        for key in (random.key(seed), random.PRNGKey(seed)):
            assert_close(calls[name](random, jnp, key), wanted, rtol.get(name), name)


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_floats(dtype):
    # A tail of few bits is not one rounding away, but many.
    rough = {"cauchy": 0.3, "logistic": 0.1, "wald": 0.1} if dtype else None
    agree(with_form(FLOATS, (4, 25), dtype), 7, rough)


def test_scalars():
    agree(with_form(FLOATS, (), None))


@pytest.mark.parametrize("names", [list(GAMMAS)[:5], list(GAMMAS)[5:]], ids=["first", "second"])
def test_gammas(names):
    agree(with_form({name: GAMMAS[name] for name in names}, (40,), None), seed=3)


def test_doubles():
    calls = FLOATS | {name: GAMMAS[name] for name in ("gamma", "small gamma", "loggamma")}
    with both_set(enable_x64=True):
        agree(with_form(calls, (20,), None), 1, {"gamma": 1e-11, "cauchy": 1e-10})


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float8_e3m4", "bfloat16"])
def test_uniform_of_narrow_types(dtype):
    draw = lambda r, k: r.uniform(k, (50,), dtype)  # noqa: E731
    assert_equal(draw(random, random.key(1)), draw(jax.random, jax.random.key(1)))


def test_complex_normal():
    agree({"single": lambda r, jnp, k: r.normal(k, (3, 4), complex)})
    with both_set(enable_x64=True):
        agree({"double": lambda r, jnp, k: r.normal(k, (3,), "complex128")})


@hypothesis.settings(max_examples=6)
@hypothesis.given(
    shape=st.lists(st.integers(0, 7), max_size=3).map(tuple), seed=st.integers(0, 2**32 - 1)
)
def test_any_shape(shape, seed):
    draw = lambda r, k: r.uniform(k, shape)  # noqa: E731
    assert_equal(draw(random, random.key(seed)), draw(jax.random, jax.random.key(seed)))


OTHERS = {
    "normal": lambda r, jnp, k: r.normal(k, (9,)),
    "randint": lambda r, jnp, k: r.randint(k, (9,), 0, 1000),
    "gamma": lambda r, jnp, k: r.gamma(k, 0.7, (5,)),
}


@pytest.mark.parametrize("impl", ["threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"])
def test_other_generators(impl):
    with both_set(default_prng_impl=impl):
        agree(OTHERS, 4)


def test_unpartitionable_threefry():
    with both_set(threefry_partitionable=False):
        agree(OTHERS, 4)


SPANS = [(0, 10), (-5, 5), (0, 256), (0, 300), (-128, 128), (5, 5), (5, 2), (0, 65536), (0, 10**6)]
SPANS += [(-(2**31), 2**31 - 1), (1, 2**31 - 1)]
WIDE = [(0, 2**31), (0, 2**32), (-(2**40), 2**50), (-(2**63), 2**63 - 1)]
INTEGERS = ["int32", "uint32", "int8", "uint8", "int16", "uint16", "int4", "uint4"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_randint(dtype):
    # The bounds are arguments of the oracle's compiled function, so this is quick.
    for low, high in SPANS:
        wanted = jax.random.randint(jax.random.key(5), (60,), low, high, dtype)
        key = random.key(5)
        assert_equal(random.randint(key, (60,), low, high, dtype), wanted)
        bounds = jnp.asarray(low), jnp.asarray(high)
        assert_equal(random.randint(key, (60,), *bounds, dtype), wanted)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_randint_with_64_bits(dtype):
    with both_set(enable_x64=True):
        for low, high in [*SPANS, *WIDE]:
            wanted = jax.random.randint(jax.random.key(5), (60,), low, high, dtype)
            assert_equal(random.randint(random.key(5), (60,), low, high, dtype), wanted)


def test_randint_of_arrays():
    low = np.array([[0], [-3], [7]])
    for high in (np.array([5, 9], np.int16), np.array([2**32 - 1, 9], np.uint32), 8.5):
        found = random.randint(random.key(0), (3, 2), low, high)
        assert_equal(found, jax.random.randint(jax.random.key(0), (3, 2), low, high))


DISCRETE = {
    "bernoulli": lambda r, jnp, k: r.bernoulli(k, 0.3, (40,)),
    "bernoulli array": lambda r, jnp, k: r.bernoulli(k, jnp.array([0.2, 0.7]), (9, 2)),
    "bernoulli high": lambda r, jnp, k: r.bernoulli(k, 0.3, (40,), mode="high"),
    "bernoulli half": lambda r, jnp, k: r.bernoulli(k, np.float16(0.3), (40,)),
    "rademacher": lambda r, jnp, k: r.rademacher(k, (40,)),
    "rademacher float": lambda r, jnp, k: r.rademacher(k, (40,), float),
    "rademacher byte": lambda r, jnp, k: r.rademacher(k, (40,), "uint8"),
    "rademacher bool": lambda r, jnp, k: r.rademacher(k, (40,), bool),
    "geometric": lambda r, jnp, k: r.geometric(k, 0.3, (40,)),
    "geometric array": lambda r, jnp, k: r.geometric(k, jnp.array([0.2, 1.0]), (9, 2), "int16"),
    "permutation": lambda r, jnp, k: r.permutation(k, 50),
    "permutation of an array": lambda r, jnp, k: r.permutation(k, jnp.arange(40.0)),
    "permutation of rows": lambda r, jnp, k: r.permutation(k, jnp.arange(40).reshape(10, 4)),
    "permutation of columns": lambda r, jnp, k: r.permutation(k, jnp.ones((2, 9)).cumsum(1), -1),
    "permutation of lines": lambda r, jnp, k: r.permutation(
        k, jnp.arange(40).reshape(10, 4), independent=True
    ),
    "permutation of one": lambda r, jnp, k: r.permutation(k, 1),
    "permutation of none": lambda r, jnp, k: r.permutation(k, 0),
    "long permutation": lambda r, jnp, k: r.permutation(k, 3000),
    "choice": lambda r, jnp, k: r.choice(k, 5, (30,)),
    "choice of an array": lambda r, jnp, k: r.choice(k, jnp.arange(10.0), (3, 4)),
    "choice of rows": lambda r, jnp, k: r.choice(k, jnp.arange(12).reshape(4, 3), (5,)),
    "choice of columns": lambda r, jnp, k: r.choice(k, jnp.arange(12).reshape(4, 3), (5,), axis=1),
    "choice without": lambda r, jnp, k: r.choice(k, 30, (4, 5), replace=False),
    "choice of columns without": lambda r, jnp, k: r.choice(
        k, jnp.arange(40).reshape(4, 10), (5,), replace=False, axis=-1
    ),
    "choice by p": lambda r, jnp, k: r.choice(k, 4, (30,), p=jnp.array([0.1, 0.2, 0.0, 0.7])),
    "choice by weights": lambda r, jnp, k: r.choice(k, 4, (30,), p=jnp.arange(4)),
    "choice by p without": lambda r, jnp, k: r.choice(
        k, jnp.arange(9), (6,), replace=False, p=jnp.arange(9) / 36
    ),
    "choice by p in high mode": lambda r, jnp, k: r.choice(
        k, 9, (6,), replace=False, p=jnp.arange(9) / 36, mode="high"
    ),
    "choice of nothing": lambda r, jnp, k: r.choice(k, 0, (0,)),
    "categorical": lambda r, jnp, k: r.categorical(k, jnp.arange(12.0).reshape(3, 4) / 4),
    "categorical axis": lambda r, jnp, k: r.categorical(k, jnp.arange(12.0).reshape(3, 4) / 4, 0),
    "categorical shape": lambda r, jnp, k: r.categorical(
        k, jnp.arange(12.0).reshape(3, 4) / 4, axis=0, shape=(20, 4)
    ),
    "categorical without": lambda r, jnp, k: r.categorical(
        k, jnp.arange(60.0).reshape(3, 4, 5) / 20, axis=1, shape=(2, 3, 5), replace=False
    ),
    "categorical high": lambda r, jnp, k: r.categorical(k, jnp.zeros((9, 4)), mode="high"),
    "categorical impossible": lambda r, jnp, k: r.categorical(
        k, jnp.log(jnp.array([0.0, 1.0, 0.0])), shape=(9,)
    ),
}


@pytest.mark.parametrize("part", range(2))
def test_discrete(part):
    agree(dict(list(DISCRETE.items())[part::2]), seed=9)


def test_permutation_of_keys():
    """A difference: JAX cannot order keys themselves."""
    keys = random.split(random.key(0), 5)
    order = random.permutation(random.key(1), 5)
    assert_equal(random.permutation(random.key(1), keys), keys[order])


COUNTS = {
    "poisson": lambda r, jnp, k: r.poisson(
        k, jnp.array([0.0, 0.5, 3.0, 9.9, 10.1, 50.0, 1e3, 1e8]), (50, 8)
    ),
    "awkward poisson": lambda r, jnp, k: r.poisson(k, jnp.array([-1.0, jnp.nan, jnp.inf, 1e10])),
    "poisson of an integer": lambda r, jnp, k: r.poisson(k, 4, (5,), "uint8"),
    "binomial": lambda r, jnp, k: r.binomial(
        k, jnp.array([[5], [40], [1000]]), jnp.array([0.0, 0.01, 0.3, 0.5, 0.9, 1.0]), (30, 3, 6)
    ),
    "awkward binomial": lambda r, jnp, k: r.binomial(
        k,
        jnp.array([-1.0, jnp.nan, jnp.inf, 5.5]),
        jnp.array([[0.3], [1.5], [-0.1], [jnp.nan]]),
        dtype="float16",
    ),
    "multinomial": lambda r, jnp, k: r.multinomial(
        k, jnp.array([7, 70]), jnp.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]), shape=(3, 2, 3)
    ),
    "multinomial of integers": lambda r, jnp, k: r.multinomial(
        k, 9, jnp.array([0.25, 0.75]), dtype=int
    ),
}


@pytest.mark.parametrize("kind", ["poisson", "binomial", "multinomial"])
def test_counts(kind):
    agree({name: call for name, call in COUNTS.items() if kind in name.split()}, seed=2)


def test_counts_with_64_bits():
    with both_set(enable_x64=True):
        agree({"poisson": lambda r, jnp, k: r.poisson(k, jnp.array([4.0, 40.0]), (9, 2))})
        agree({"binomial": lambda r, jnp, k: r.binomial(k, 30, np.float32(0.4), (9,))})


def test_awkward_gammas():
    values = np.array([-1.0, 0.0, np.nan, np.inf, 1e-3, 1e10], np.float32)
    agree(
        {
            "gamma": lambda r, jnp, k: r.gamma(k, values),
            "loggamma": lambda r, jnp, k: r.loggamma(k, values),
        }
    )


BROADCAST = {
    "uniform": lambda r, jnp, k: r.uniform(
        k, (3, 2), minval=jnp.zeros((3, 1)), maxval=jnp.arange(1.0, 3.0)
    ),
    "truncated_normal": lambda r, jnp, k: r.truncated_normal(k, jnp.array([-1.0, 0.5]), 2.0),
    "lognormal": lambda r, jnp, k: r.lognormal(k, jnp.array([0.5, 1.0]), (3, 2)),
    "pareto": lambda r, jnp, k: r.pareto(k, jnp.array([0.5, 1.0])),
    "rayleigh": lambda r, jnp, k: r.rayleigh(k, jnp.array([0.5, 1.0]), (3, 2)),
    "triangular": lambda r, jnp, k: r.triangular(k, jnp.zeros((3, 1)), jnp.ones(2), 4.0),
    "wald": lambda r, jnp, k: r.wald(k, jnp.array([0.5, 1.0]), (3, 2)),
    "weibull_min": lambda r, jnp, k: r.weibull_min(k, jnp.ones(2), jnp.array([2.0, 3.0]), (3, 2)),
    "weibull_min once": lambda r, jnp, k: r.weibull_min(k, jnp.ones(2), 2.0),
    "double_sided_maxwell": lambda r, jnp, k: r.double_sided_maxwell(k, jnp.ones(2), 2.0, (3,)),
    "double_sided_maxwell twice": lambda r, jnp, k: r.double_sided_maxwell(
        k, jnp.ones(2), jnp.ones((3, 1))
    ),
    "gamma": lambda r, jnp, k: r.gamma(k, jnp.array([0.5, 1.0, 4]), (2, 3)),
    "dirichlet": lambda r, jnp, k: r.dirichlet(k, jnp.ones((2, 3)), (4, 2)),
}


def test_parameters_broadcast():
    agree(BROADCAST, seed=8)


COVARIANCE = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 0.5]], np.float32)


NORMALS = {
    "one": lambda r, jnp, k, **kw: r.multivariate_normal(k, np.ones(3), COVARIANCE, **kw),
    "five": lambda r, jnp, k, **kw: r.multivariate_normal(k, np.ones(3), COVARIANCE, (5,), **kw),
    "many": lambda r, jnp, k, **kw: r.multivariate_normal(
        k, np.ones((2, 3)), COVARIANCE, (4, 2), **kw
    ),
}


def test_multivariate_normal():
    many = {
        "covariances": lambda r, jnp, k: r.multivariate_normal(
            k, np.zeros(3), np.stack([COVARIANCE, 2 * COVARIANCE]), (5, 2)
        )
    }
    agree(NORMALS | many, rtol=dict.fromkeys(NORMALS | many, 1e-5))


@pytest.mark.parametrize("method", ["eigh", "svd"])
def test_multivariate_normal_by_other_factors(method):
    """The factor is unique up to signs, which LAPACK chooses: compare what they do not change."""
    factors = [_factor(side, method) for side in (OURS, THEIRS)]
    signs = np.sign(np.sum(factors[0] * factors[1], 0))
    np.testing.assert_allclose(factors[0] * signs, factors[1], rtol=1e-4, atol=1e-5)
    for call in NORMALS.values():
        found = np.asarray(call(random, jnp, random.key(0), method=method))
        z = np.asarray(random.normal(random.key(0), found.shape))
        np.testing.assert_allclose(found, 1 + z @ factors[0].T, rtol=1e-4, atol=1e-5)


def _factor(side, method):
    if method == "svd":
        u, s, _ = side.jnp.linalg.svd(side.jnp.asarray(COVARIANCE))
        return np.asarray(u * np.sqrt(s))
    w, v = side.jnp.linalg.eigh(side.jnp.asarray(COVARIANCE))
    return np.asarray(v * np.sqrt(w))


def test_orthogonal():
    calls = {
        f"{n}, {m}, {dtype}": lambda r, jnp, k, n=n, m=m, dtype=dtype: r.orthogonal(
            k, n, (2,), dtype, m
        )
        for n, m in [(3, None), (4, 2), (2, 4), (1, 1)]
        for dtype in (None, "complex64")
    }
    agree(calls, rtol=dict.fromkeys(calls, 1e-4))


ERRORS = """\
uniform(k, (3,), 'int32') | uniform(k, (3,), 'complex64') | uniform(k, (3,), minval=jnp.zeros(2))
uniform(k, (3,), minval=[0.0, 0.0, 0.0]) | uniform(k, (2.0,)) | uniform(k, None)
uniform(k, (2,), 'float4_e2m1fn') | normal(k, (3,), 'int32') | normal(k, (2,), 'bool')
bernoulli(k, 1) | bernoulli(k, [0.2, 0.3]) | bernoulli(k, 0.5, (2,), mode='x')
bernoulli(k, jnp.array([0.2, 0.3]), (3,)) | bernoulli(k, jnp.ones((3, 2)), (2,))
beta(k, [1.0, 2.0], 2) | beta(k, jnp.ones(2), jnp.ones(3)) | beta(k, jnp.ones(2), 1.0, (1,))
beta(k, 1.0, 1.0, dtype='int32') | binomial(k, 10, 0.3, dtype='int32')
binomial(k, 10, jnp.ones(2), (3,)) | categorical(k, [0.1, 0.9])
categorical(k, jnp.ones((2, 3)), axis=2) | categorical(k, jnp.ones((2, 3)), axis=-3)
categorical(k, jnp.ones((2, 3)), shape=(3,)) | categorical(k, jnp.ones((2, 3)), shape=())
categorical(k, jnp.ones((2, 3), int)) | categorical(k, 1.0)
categorical(k, jnp.ones((2, 3)), shape=(4, 2), replace=False)
categorical(k, jnp.ones((2, 3)), mode='x') | cauchy(k, (2,), 'int32') | chisquare(k, [1, 2])
chisquare(k, jnp.array([1, 2]), (3,)) | choice(k, 0) | choice(k, -1) | choice(k, 5, 3)
choice(k, jnp.arange(5), (3,), axis=1) | choice(k, jnp.ones((2, 3)), (4,), False, axis=1)
choice(k, [1, 2, 3], (2,)) | choice(k, 5, (2,), p=jnp.ones(4)) | choice(k, jnp.array([]), (2,))
choice(k, 5, (2,), p=[0.2, 0.2, 0.2, 0.2, 0.2]) | choice(k, 5, (3, 2), False, jnp.ones(5))
choice(k, 5, (2,), p=jnp.ones((5, 1))) | dirichlet(k, 1.0) | dirichlet(k, jnp.ones((2, 3)), (3,))
double_sided_maxwell(k, 1.0, 2.0, dtype='int32') | f(k, jnp.ones(2), 2, (3,))
gamma(k, jnp.ones(2), (3,)) | gamma(k, 1.0, dtype='int32')
generalized_normal(k, 1.0, (2,), 'int32') | generalized_normal(k, jnp.ones(2), (3,))
geometric(k, 0.3, dtype='float32') | geometric(k, [0.3]) | geometric(k, jnp.ones(2) / 2, (3,))
gumbel(k, mode='x') | gumbel(k, dtype='int32') | laplace(k, (2,), 'int32') | lognormal(k, [1.0])
lognormal(k, jnp.ones(2), (3,)) | maxwell(k, (), 'int32') | multinomial(k, 10.0, [0.2, 0.8])
multinomial(k, jnp.array([10, 20]), jnp.ones(3) / 3) | multinomial(k, 10, 0.5)
multinomial(k, 10, jnp.ones((2, 3)) / 3, shape=(4, 2))
multivariate_normal(k, [1.0, 1.0], jnp.eye(2)) | multivariate_normal(k, 1.0, jnp.eye(2))
multivariate_normal(k, jnp.ones(2), jnp.eye(2), method='x')
multivariate_normal(k, jnp.ones(2), jnp.ones(2)) | multivariate_normal(k, jnp.ones(2), jnp.eye(3))
multivariate_normal(k, jnp.ones((3, 2)), jnp.eye(2), (4,))
multivariate_normal(k, jnp.ones(2), jnp.eye(2), dtype='int32') | orthogonal(k, 2.0)
orthogonal(k, 2, (3,), 'int32') | orthogonal(k, 2, m=2.0) | pareto(k, jnp.ones(2), (3,))
permutation(k, 5.0) | permutation(k, [1, 2, 3]) | permutation(k, jnp.ones((2, 3)), axis=2)
poisson(k, 3.0, dtype='float32') | poisson(k, jnp.array([1.0, 2.0]), (3,)) | poisson(k, [3.0])
randint(k, (3,), 0, 10, 'float32') | randint(k, (3,), 0, 2, 'bool') | randint(k, (3,), 0, 2**31)
randint(k, (3,), 0, jnp.arange(2)) | rayleigh(k, jnp.ones(2), (3,)) | t(k, jnp.ones(2), (3,))
triangular(k, jnp.ones(2), 2.0, 3.0, (3,)) | triangular(k, 1.0, 2.0, 3.0, dtype='int32')
triangular(k, [1.0], 2.0, 3.0) | truncated_normal(k, -1, 1, (2,), 'int32')
truncated_normal(k, jnp.ones(2), 2.0, (3,)) | wald(k, jnp.ones(2), (3,)) | ball(k, 3.0)
weibull_min(k, 1.0, 2.0, dtype='int32') | ball(k, 3, dtype='int32') | exponential(k, (2,), int)
logistic(k, (2,), 'int32') | loggamma(k, jnp.ones(2), (3,)) | normal(r.split(k)) | normal(1)"""


@pytest.mark.parametrize("text", [t.strip() for t in ERRORS.replace("\n", "|").split("|")])
def test_errors(text):
    def call(r, jnp, k):
        return eval(f"r.{text}", {"r": r, "jnp": jnp, "k": k})

    found = outcome(lambda: call(random, jnp, random.key(0)))
    wanted = outcome(lambda: call(jax.random, jax.numpy, jax.random.key(0)))
    assert isinstance(wanted, Exception), wanted
    # JAX tells lists from arrays while it traces; its error is a TypeError of that kind.
    kind = TypeError if isinstance(wanted, TypeError) else type(wanted)
    assert type(found) is kind, f"{found!r}, but JAX: {wanted!r}"


def test_lists_are_refused_with_advice():
    with pytest.raises(TypeError, match="jnp.asarray"):
        random.gamma(random.key(0), [1.0, 2.0])


def test_poisson_works_with_every_generator():
    """A difference: JAX's poisson takes threefry keys only."""
    draws = random.poisson(random.key(0, impl="philox4x32"), 4.0, (1000,))
    assert abs(float(draws.mean()) - 4) < 0.3
