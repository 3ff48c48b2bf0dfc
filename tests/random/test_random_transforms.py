"""Samplers under jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import random
from random_oracle import assert_close, both_set

P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
CALLS = {
    "bits": lambda k: random.bits(k, (3,), "uint16"),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 7)),
    "uniform": lambda k: random.uniform(k, (3,)),
    "uniform between": lambda k: random.uniform(k, (3,), minval=-1, maxval=2.0),
    "normal": lambda k: random.normal(k, (3,)),
    "complex normal": lambda k: random.normal(k, (3,), "complex64").imag,
    "half normal": lambda k: random.normal(k, (3,), "bfloat16").astype(float),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (3,)),
    "randint": lambda k: random.randint(k, (3,), 0, 10),
    "narrow randint": lambda k: random.randint(k, (3,), jnp.array([0, 1, 2]), 300, "uint8"),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (3,), mode="high"),
    "rademacher": lambda k: random.rademacher(k, (3,)),
    "gumbel": lambda k: random.gumbel(k, (3,), mode="high"),
    "laplace": lambda k: random.laplace(k, (3,)),
    "logistic": lambda k: random.logistic(k, (3,)),
    "cauchy": lambda k: random.cauchy(k, (3,)),
    "exponential": lambda k: random.exponential(k, (3,)),
    "lognormal": lambda k: random.lognormal(k, 0.5, (3,)),
    "maxwell": lambda k: random.maxwell(k, (3,)),
    "double_sided_maxwell": lambda k: random.double_sided_maxwell(k, 1.0, 2.0, (3,)),
    "pareto": lambda k: random.pareto(k, 3.0, (3,)),
    "rayleigh": lambda k: random.rayleigh(k, 0.5, (3,)),
    "triangular": lambda k: random.triangular(k, 0.0, 1.0, 3.0, (3,)),
    "wald": lambda k: random.wald(k, 2.0, (3,)),
    "weibull_min": lambda k: random.weibull_min(k, 2.0, 3.0, (3,)),
    "gamma": lambda k: random.gamma(k, jnp.array([0.3, 2.0, 9.0])),
    "loggamma": lambda k: random.loggamma(k, 0.1, (3,)),
    "beta": lambda k: random.beta(k, 2.0, 0.5, (3,)),
    "dirichlet": lambda k: random.dirichlet(k, jnp.ones(3), (2,)),
    "chisquare": lambda k: random.chisquare(k, 3.0, (3,)),
    "f": lambda k: random.f(k, 3.0, 2.0, (3,)),
    "t": lambda k: random.t(k, 3.0, (3,)),
    "generalized_normal": lambda k: random.generalized_normal(k, 1.5, (3,)),
    "ball": lambda k: random.ball(k, 3, 1.5, (3,)),
    "poisson": lambda k: random.poisson(k, jnp.array([0.5, 3.0, 20.0])),
    "binomial": lambda k: random.binomial(k, jnp.array([5, 50, 200]), 0.3),
    "multinomial": lambda k: random.multinomial(k, 20, jnp.asarray(P)),
    "geometric": lambda k: random.geometric(k, 0.3, (3,)),
    "categorical": lambda k: random.categorical(k, jnp.arange(4.0), shape=(3,)),
    "categorical without": lambda k: random.categorical(k, jnp.log(P), shape=(3,), replace=False),
    "choice": lambda k: random.choice(k, 5, (3,)),
    "choice by p": lambda k: random.choice(k, 4, (3,), p=jnp.asarray(P)),
    "choice without": lambda k: random.choice(k, jnp.arange(5), (3,), replace=False),
    "choice by p without": lambda k: random.choice(k, 4, (3,), replace=False, p=jnp.asarray(P)),
    "permutation": lambda k: random.permutation(k, 10),
    "permutation of rows": lambda k: random.permutation(k, jnp.arange(6).reshape(3, 2)),
    "permutation of lines": lambda k: random.permutation(
        k, jnp.arange(6).reshape(3, 2), independent=True
    ),
    "multivariate_normal": lambda k: random.multivariate_normal(k, jnp.ones(2), jnp.eye(2) + 0.5),
    "orthogonal": lambda k: random.orthogonal(k, 3),
}


def same(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_jit_and_vmap(name):
    call = CALLS[name]
    keys = random.split(random.key(3), 4)
    loop = np.stack([np.asarray(call(key)) for key in keys])
    same(namoo.jit(call)(keys[1]), loop[1])
    same(namoo.vmap(call)(keys), loop)
    same(namoo.jit(namoo.vmap(call))(keys), loop)
    same(namoo.vmap(call)(random.key_data(keys)), loop)
    same(namoo.lax.map(call, keys), loop)


def test_vmap_over_parameters():
    key = random.key(0)
    values = jnp.array([0.5, 2.0, 30.0])
    for draw in (
        lambda x: random.gamma(key, x, (4,)),
        lambda x: random.poisson(key, x, (4,)),
        lambda x: random.binomial(key, 40.0, x / 40, (4,)),
        lambda x: random.uniform(key, (4,), minval=-x, maxval=x),
        lambda x: random.randint(key, (4,), 0, x.astype(int) + 1),
    ):
        same(namoo.vmap(draw)(values), np.stack([draw(x) for x in values]))


def test_nested_vmap():
    keys = random.split(random.key(0), (2, 3))
    found = namoo.vmap(namoo.vmap(lambda k, a: random.gamma(k, a, (2,)), (0, None)))(
        keys, jnp.array([0.5, 3.0])
    )
    wanted = [
        [random.gamma(keys[i, j], a, (2,)) for j in range(3)] for i, a in enumerate((0.5, 3.0))
    ]
    same(found, np.array(wanted))


X = np.array([0.6, 1.5, 4.0], np.float32)
SMOOTH = {
    "uniform": lambda r, jnp, k, x: r.uniform(k, (3,), minval=-x, maxval=x * x),
    "truncated_normal": lambda r, jnp, k, x: r.truncated_normal(k, -x, 2 * x),
    "lognormal": lambda r, jnp, k, x: r.lognormal(k, x),
    "pareto": lambda r, jnp, k, x: r.pareto(k, x),
    "rayleigh": lambda r, jnp, k, x: r.rayleigh(k, x),
    "triangular": lambda r, jnp, k, x: r.triangular(k, -x, x / 2, 2 * x),
    "wald": lambda r, jnp, k, x: r.wald(k, x),
    "weibull_min": lambda r, jnp, k, x: r.weibull_min(k, x, 2 * x, (3,)),
    "double_sided_maxwell": lambda r, jnp, k, x: r.double_sided_maxwell(k, x, 2 * x, (2,)),
    "multivariate_normal": lambda r, jnp, k, x: r.multivariate_normal(
        k, x, jnp.diag(x) + 0.2, (2,)
    ),
    "gamma": lambda r, jnp, k, x: r.gamma(k, x),
    "loggamma": lambda r, jnp, k, x: r.loggamma(k, x / 10),
    "beta": lambda r, jnp, k, x: r.beta(k, x, 2 * x),
    "dirichlet": lambda r, jnp, k, x: r.dirichlet(k, x, (2,)),
    "chisquare": lambda r, jnp, k, x: r.chisquare(k, x),
    "t": lambda r, jnp, k, x: r.t(k, x),
    "generalized_normal": lambda r, jnp, k, x: r.generalized_normal(k, x, (3,)),
}
WEIGHTS = np.array([0.3, -1.0, 2.0], np.float32)


def total(r, jnp, call, key):
    return lambda x: jnp.sum(call(r, jnp, key, x) * WEIGHTS)


@pytest.fixture(scope="module")
def gradients():
    """JAX's gradients of all of them, compiled as one program."""

    def program(x):
        key = jax.random.key(6)
        return [jax.grad(total(jax.random, jax.numpy, f, key))(x) for f in SMOOTH.values()]

    return dict(zip(SMOOTH, jax.jit(program)(X), strict=True))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name, gradients):
    fun = total(random, jnp, SMOOTH[name], random.key(6))
    found = namoo.grad(fun)(X)
    assert_close(found, gradients[name], 3e-5)
    assert_close(namoo.jit(namoo.grad(fun))(X), gradients[name], 3e-5)
    forward = namoo.jacfwd(fun)(X)
    assert_close(forward, gradients[name], 3e-5)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "normal"])
def test_gradients_of_a_batch(name):
    draw = {
        "gamma": random.gamma,
        "loggamma": random.loggamma,
        "normal": lambda key, x: x * random.normal(key),
    }[name]
    keys = random.split(random.key(1), 3)
    found = namoo.vmap(namoo.grad(lambda x, key: draw(key, x)))(jnp.asarray(X), keys)
    wanted = [
        namoo.grad(lambda x, key=key: draw(key, x))(x) for x, key in zip(X, keys, strict=True)
    ]
    same(found, np.array(wanted))


def test_discrete_samples_have_no_derivative():
    def loss(p):
        key = random.key(0)
        hard = random.bernoulli(key, p).astype(float) + random.categorical(
            key, jnp.stack([p, 1 - p])
        )
        return hard * p

    same(namoo.grad(loss)(0.4), loss(0.4) / 0.4)


def test_programs_show_keys():
    text = str(namoo.make_jaxpr(lambda key: random.bits(random.split(key)[0], (3,)))(random.key(0)))
    assert "key<fry>[]" in text
    assert "random_split[shape=(2,)]" in text
    assert "random_bits[bit_width=32 shape=(3,)]" in text


def test_shapes_without_computing():
    out = namoo.eval_shape(
        lambda key: (random.split(key, 3), random.normal(key, (2,))), random.key(0)
    )
    assert (out[0].shape, str(out[0].dtype)) == ((3,), "key<fry>")
    assert (out[1].shape, out[1].dtype) == ((2,), np.float32)


def test_one_trace_for_all_keys():
    traces = []

    @namoo.jit
    def draw(key):
        traces.append(key)
        return random.normal(key, (2,))

    for seed in range(3):
        draw(random.key(seed))
    assert len(traces) == 1
    draw(random.PRNGKey(0))
    draw(random.key(0, impl="rbg"))
    assert len(traces) == 3


def test_settings_are_part_of_the_program():
    draw = namoo.jit(lambda key: random.bits(key, (3,)))
    first = draw(random.key(0))
    with both_set(threefry_partitionable=False):
        second = draw(random.key(0))
        np.testing.assert_array_equal(second, random.bits(random.key(0), (3,)))
    assert not np.array_equal(first, second)


def test_keys_as_closures_and_static_structure():
    keys = {"a": random.key(0), "b": random.split(random.key(1), 2)}
    found = namoo.jit(lambda ks: namoo.tree.map(lambda k: random.key_data(k).sum(), ks))(keys)
    wanted = namoo.tree.map(lambda k: random.key_data(k).sum(), keys)
    assert namoo.tree.all(namoo.tree.map(lambda a, b: bool(a == b), found, wanted))
    closed = namoo.jit(lambda x: x * random.normal(keys["a"]))(2.0)
    same(closed, 2 * random.normal(keys["a"]))


def test_remat_draws_the_same_numbers():
    def layer(x, key):
        return jnp.sin(x) * random.bernoulli(key, 0.5, x.shape)

    x, key = jnp.arange(6.0), random.key(0)
    plain = namoo.grad(lambda x: layer(x, key).sum())(x)
    again = namoo.grad(lambda x: namoo.checkpoint(layer)(x, key).sum())(x)
    same(again, plain)
