"""Transformations in all orders, against JAX.

A program is written once, as a function of the modules `(J, jnp, lax)`, and run with JAX and with
namoo; values, dtypes, weak types and tree structures must agree.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import namoo
from both_libraries import JAX, NAMOO, assert_agree, both_in_x64, jax_compiles_quickly  # noqa: F401


def vector(n=3, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 1.2, n)


def matrix(n=2, m=3, seed=1):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, m))


PROGRAMS = {}


def program(x, only=None):
    """Register a function `(J, jnp, lax) -> f`, and the point at which `f` is transformed."""

    def register(make):
        PROGRAMS[make.__name__] = (make, x, only)
        return make

    return register


@program(vector())
def elementwise(J, jnp, lax):
    return lambda x: jnp.sin(x) * jnp.exp(-(x**2)) + jnp.tanh(x) / (1 + x**1.5)


@program({"w": matrix(), "b": vector(2), "x": (vector(3, 2), vector(2, 3))})
def network(J, jnp, lax):
    def f(p):
        h = jnp.tanh(p["w"] @ p["x"][0] + p["b"])
        return {"loss": jnp.log(jnp.sum(jnp.exp(h * p["x"][1]))), "hidden": [h, h**2]}

    return f


@program(matrix())
def reductions(J, jnp, lax):
    def f(x):
        return (
            jnp.mean(x, axis=0),
            jnp.var(x),
            jnp.max(x, axis=1),
            jnp.prod(x, axis=1, keepdims=True),
            jnp.cumsum(x, axis=0),
            jnp.argmax(x),
        )

    return f


@program(matrix(4, 3))
def indexing(J, jnp, lax):
    def f(x):
        rows = x[np.array([2, 0, 2])]
        return rows[:, ::-1], x[1:, None, -1], x.at[0].set(x[1] ** 2).at[:, 1].add(x[0, 0])

    return f


@program(np.array([-1.5, -0.2, 0.3, 0.9]))
def choices(J, jnp, lax):
    def f(x):
        y = jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), x**2)
        return jnp.clip(y, 0.1, 0.8) + jnp.abs(x) + jnp.maximum(x, 0.25) * (x > 0)

    return f


@program((vector(2), matrix(4, 2)))
def scan(J, jnp, lax):
    def f(args):
        init, xs = args

        def body(carry, x):
            h, total, i = carry
            h = jnp.tanh(h * x + init)
            return (h, total + jnp.sum(h), i + 1), (h * x, i)

        return lax.scan(body, (init, 0.0, 0), xs)

    return f


@program(matrix(4, 2))
def scan_backward(J, jnp, lax):
    def f(xs):
        w = jnp.sum(xs, 0)
        return lax.scan(lambda c, x: (jnp.sin(c + x * w), c), w, xs, reverse=True, unroll=2)

    return f


@program(vector())
def fori_loop(J, jnp, lax):
    return lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * x + i, x)


@program(vector(), only="forward")
def while_loop(J, jnp, lax):
    def f(x):
        def go_on(state):
            return (state[0] < 5) & (jnp.sum(state[1]) < 20.0)

        return lax.while_loop(go_on, lambda s: (s[0] + 1, s[1] * 1.5 + jnp.sin(x)), (0, x))

    return f


@program(vector())
def cond(J, jnp, lax):
    def f(x):
        low = lax.cond(jnp.sum(x) < 1.5, lambda y: jnp.sin(y), lambda y: y**2 * x, x)
        return lax.cond(True, lambda: low, lambda: -x), low

    return f


@program((np.array(2.3), vector()))
def switch(J, jnp, lax):
    def f(args):
        index, x = args
        i = jnp.floor(index).astype(jnp.int32)
        return lax.switch(i, [lambda v: v, lambda v: jnp.sin(v), lambda v: v * x], x * 2)

    return f


@program((matrix(3, 2), matrix(2, 4, 5)))
def products(J, jnp, lax):
    def f(args):
        a, b = args
        return jnp.einsum("ij,jk->k", a, b), (a @ b).T, jnp.outer(a[0], b[:, 0]), a.sum(0) @ b

    return f


@program(np.array([[0.3, -1.0, 0.7], [2.0, 0.1, -0.4]]))
def sorting(J, jnp, lax):
    return lambda x: (jnp.sort(x), jnp.take_along_axis(x, jnp.argsort(-x), 1), lax.top_k(x, 2))


@program(vector())
def custom_jvp(J, jnp, lax):
    @J.custom_jvp
    def g(x, y):
        return jnp.sin(x) * y

    @g.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return g(x, y), 2 * jnp.cos(x) * y * dx + jnp.sin(x) * dy * 3

    return lambda x: g(x, x**2) + g(2.0, x)


@program(vector(), only="reverse")
def custom_vjp(J, jnp, lax):
    @J.custom_vjp
    def g(x, y):
        return jnp.sin(x) * y, y

    def forward(x, y):
        return g(x, y), (jnp.cos(x), x, y)

    def backward(res, cts):
        c, x, y = res
        return 2 * c * y * cts[0], jnp.sin(x) * cts[0] * 3 + cts[1]

    g.defvjp(forward, backward)
    return lambda x: g(x, x**2)


@program(vector())
def checkpointed(J, jnp, lax):
    @J.checkpoint
    def g(x, s):
        return jnp.sin(jnp.sin(x) * s)

    @functools.partial(J.checkpoint, policy=J.checkpoint_policies.dots_saveable)
    def h(x):
        return jnp.tanh(jnp.outer(x, x) @ x)

    return lambda x: g(h(x), 2.0) + g(x, x)


@program(vector())
def nested_jit(J, jnp, lax):
    @J.jit
    def inner(x, y):
        return {"a": jnp.sin(x) * y, "b": y}

    @functools.partial(J.jit, static_argnums=1)
    def power(x, n):
        return x**n

    return lambda x: (inner(power(x, 3), x), inner(2.0, power(x, 2))["a"])


@program(matrix(3, 3))
def joining(J, jnp, lax):
    def f(x):
        y = jnp.concatenate([x, x[:1] ** 2], axis=0)
        return jnp.stack([y, -y], axis=1).reshape(2, -1), jnp.pad(x, ((1, 0), (0, 2))), x.T[None]

    return f


@program(vector(4))
def integers(J, jnp, lax):
    def f(x):
        n = jnp.arange(4)
        return x * n + (x > 0.5), n // 2, n.astype(x.dtype) * x, jnp.round(x * 10).astype(int)

    return f


@program(vector(3))
def complex_numbers(J, jnp, lax):
    def f(x):
        z = x + 1j * x**2
        return jnp.abs(z * jnp.exp(1j * x)), jnp.real(z**2), jnp.imag(jnp.conj(z) * z**3)

    return f


@program(matrix(5, 2))
def associative_scan(J, jnp, lax):
    def f(x):
        return lax.associative_scan(lambda a, b: a * b + jnp.sin(b), x), lax.cumprod(x, axis=1)

    return f


@program((vector(3), matrix(4, 3)))
def vmap_inside(J, jnp, lax):
    def f(args):
        w, xs = args
        return J.vmap(lambda w, x: jnp.sin(w * x).sum(), in_axes=(None, 0))(w, xs)

    return f


@program(vector(3))
def grad_inside(J, jnp, lax):
    def f(x):
        slope = J.grad(lambda y: jnp.sum(jnp.sin(y) * x**2))
        value, pull = J.vjp(lambda y: y**2 * x, x)
        return slope(x * 2), pull(jnp.cos(value))[0], J.jacfwd(lambda y: y**3)(x)

    return f


@program(vector(5))
def dynamic_slices(J, jnp, lax):
    def f(x):
        start = jnp.argmax(x)
        piece = lax.dynamic_slice(x, (start,), (2,))
        return lax.dynamic_update_slice(x, piece**2, (1,)), lax.dynamic_index_in_dim(x, start)

    return f


@program(matrix(4, 2))
def mapped(J, jnp, lax):
    return lambda xs: lax.map(lambda x: (jnp.sin(x), x.sum()), xs, batch_size=3)


@program((vector(2), matrix(3, 2)))
def checkpointed_scan(J, jnp, lax):
    def f(args):
        w, xs = args

        @J.checkpoint
        def body(c, x):
            c = jnp.tanh(c * w + x)
            return c, jnp.sin(c)

        return lax.scan(body, w, xs)

    return f


@program(vector())
def stopped(J, jnp, lax):
    def f(x):
        y = lax.stop_gradient(jnp.sin(x))
        return y * x + lax.stop_gradient(x) ** 2

    return f


@program(matrix(3, 3))
def solving(J, jnp, lax):
    def f(x):
        a = x @ x.T + 2 * jnp.eye(3)
        return jnp.linalg.solve(a, x[0]), jnp.linalg.cholesky(a), jnp.linalg.slogdet(a)[1]

    return f


@program(matrix(3, 2))
def scan_of_cond(J, jnp, lax):
    def f(xs):
        def body(c, x):
            c = lax.cond(jnp.sum(x) > 0, lambda c: c * x, lambda c: jnp.sin(c) - x, c)
            return c, c.sum()

        return lax.scan(body, xs[0], xs)

    return f


def loss_of(jnp, f):
    """A scalar that depends on every real result of `f`."""

    def loss(x):
        total = 0.0
        for i, leaf in enumerate(jax_or_namoo_leaves(f(x))):
            if jnp.issubdtype(leaf.dtype, jnp.floating):
                total = total + jnp.sum(jnp.sin(leaf + i))
        return total

    return loss


def jax_or_namoo_leaves(tree):
    leaves = jax.tree.leaves(tree)
    return leaves if all(hasattr(x, "dtype") for x in leaves) else namoo.tree.leaves(tree)


def batch_of(J, jnp, x, n=2, axis=0):
    """Examples around `x`, stacked."""
    return J.tree.map(lambda v: jnp.stack([v * (1 + 0.1 * i) for i in range(n)], axis=axis), x)


def tangents_of(J, jnp, x, shift=0.0):
    def one(v):
        return jnp.cos(jnp.arange(v.size, dtype=v.dtype) + shift).reshape(v.shape)

    return J.tree.map(one, x)


def cotangents_of(J, jnp, out):
    """Cotangents for results, float0 for integers."""

    def one(v):
        if not jnp.issubdtype(v.dtype, jnp.inexact):
            return np.zeros(v.shape, jax.dtypes.float0)
        return jnp.cos(jnp.arange(v.size, dtype=v.dtype)).reshape(v.shape)

    return J.tree.map(one, out)


def push(J, jnp, f, x):
    return J.jvp(f, (x,), (tangents_of(J, jnp, x),))


def pull(J, jnp, f, x):
    out, back = J.vjp(f, x)
    return out, back(cotangents_of(J, jnp, out))


def hvp(J, jnp, f, x):
    """Reverse over reverse: the Hessian times a direction."""
    slope = J.grad(loss_of(jnp, f))

    def along(x):
        dots = J.tree.map(lambda a, b: jnp.vdot(a, b), slope(x), tangents_of(J, jnp, x))
        return sum(jax_or_namoo_leaves(dots))

    return J.grad(along)(x)


def linearized(J, jnp, f, x):
    out, line = J.linearize(f, x)
    return out, line(tangents_of(J, jnp, x)), line(tangents_of(J, jnp, x, 1.0))


def grad_of_vmap(J, jnp, f, x):
    return J.grad(lambda b: jnp.sum(J.vmap(loss_of(jnp, f))(b)))(batch_of(J, jnp, x))


# name -> (how to compute it, its modes); the first of a group is what JAX computes for the group.
GROUPS = {
    "value": (
        "both",
        {
            "plain": lambda J, jnp, f, x: f(x),
            "jit": lambda J, jnp, f, x: J.jit(f)(x),
            "jit of jit": lambda J, jnp, f, x: J.jit(lambda y: J.jit(f)(y))(x),
            "checkpoint": lambda J, jnp, f, x: J.checkpoint(f)(x),
        },
    ),
    "vmap": (
        "both",
        {
            "vmap": lambda J, jnp, f, x: J.vmap(f)(batch_of(J, jnp, x)),
            "jit of vmap": lambda J, jnp, f, x: J.jit(J.vmap(f))(batch_of(J, jnp, x)),
            "vmap of jit": lambda J, jnp, f, x: J.vmap(J.jit(f))(batch_of(J, jnp, x)),
            "last axis": lambda J, jnp, f, x: J.vmap(f, in_axes=-1)(batch_of(J, jnp, x, axis=-1)),
        },
    ),
    "vmap of vmap": (
        "both",
        {
            "vmap of vmap": lambda J, jnp, f, x: J.vmap(J.vmap(f, out_axes=-1))(
                batch_of(J, jnp, batch_of(J, jnp, x), 3)
            ),
        },
    ),
    "grad": (
        "reverse",
        {
            "grad": lambda J, jnp, f, x: J.grad(loss_of(jnp, f))(x),
            "jit of grad": lambda J, jnp, f, x: J.jit(J.grad(loss_of(jnp, f)))(x),
            "grad of jit": lambda J, jnp, f, x: J.grad(J.jit(loss_of(jnp, f)))(x),
            "grad of checkpoint": lambda J, jnp, f, x: J.grad(J.checkpoint(loss_of(jnp, f)))(x),
        },
    ),
    "vmap of grad": (
        "reverse",
        {
            "vmap of grad": lambda J, jnp, f, x: J.vmap(J.grad(loss_of(jnp, f)))(
                batch_of(J, jnp, x)
            ),
            "jit of vmap of grad": lambda J, jnp, f, x: J.jit(J.vmap(J.grad(loss_of(jnp, f))))(
                batch_of(J, jnp, x)
            ),
            "grad of vmap": grad_of_vmap,
            "jit of grad of vmap": lambda J, jnp, f, x: J.jit(lambda y: grad_of_vmap(J, jnp, f, y))(
                x
            ),
        },
    ),
    "jvp": (
        "forward",
        {
            "jvp": push,
            "jvp of jit": lambda J, jnp, f, x: push(J, jnp, J.jit(f), x),
            "jit of jvp": lambda J, jnp, f, x: J.jit(lambda y: push(J, jnp, f, y))(x),
        },
    ),
    "vmap of jvp": (
        "forward",
        {
            "vmap of jvp": lambda J, jnp, f, x: J.vmap(lambda y: push(J, jnp, f, y))(
                batch_of(J, jnp, x)
            ),
        },
    ),
    "linearize": (
        "forward",
        {
            "linearize": linearized,
            "linearize of jit": lambda J, jnp, f, x: linearized(J, jnp, J.jit(f), x),
        },
    ),
    "vjp": (
        "reverse",
        {
            "vjp": pull,
            "vjp of jit": lambda J, jnp, f, x: pull(J, jnp, J.jit(f), x),
            "jit of vjp": lambda J, jnp, f, x: J.jit(lambda y: pull(J, jnp, f, y))(x),
        },
    ),
    "jacobian": (
        "all",
        {
            "jacrev": lambda J, jnp, f, x: J.jacrev(real_results(J, jnp, f))(x),
            "jacfwd": lambda J, jnp, f, x: J.jacfwd(real_results(J, jnp, f))(x),
            "jit of jacfwd": lambda J, jnp, f, x: J.jit(J.jacfwd(real_results(J, jnp, f)))(x),
        },
    ),
    "hessian": (
        "all",
        {
            "hessian": lambda J, jnp, f, x: J.hessian(loss_of(jnp, f))(x),
            "jacrev of jacfwd": lambda J, jnp, f, x: J.jacrev(J.jacfwd(loss_of(jnp, f)))(x),
            "jacfwd of grad of jit": lambda J, jnp, f, x: J.jacfwd(J.grad(J.jit(loss_of(jnp, f))))(
                x
            ),
        },
    ),
    "hvp": (
        "reverse",
        {
            "grad of grad": hvp,
            "jit of grad of grad": lambda J, jnp, f, x: J.jit(lambda y: hvp(J, jnp, f, y))(x),
        },
    ),
    "jvp of vjp": (
        "all",
        {
            "jvp of vjp": lambda J, jnp, f, x: push(
                J, jnp, lambda y: pull(J, jnp, real_results(J, jnp, f), y)[1], x
            ),
        },
    ),
}


def real_results(J, jnp, f):
    """`f` with its floating results only, of which a Jacobian exists."""

    def real(x):
        leaves = jax_or_namoo_leaves(f(x))
        return [y for y in leaves if jnp.issubdtype(y.dtype, jnp.floating)]

    return real


def possible(only, modes):
    """Whether a program that knows one mode only can go through a group."""
    return only is None or modes in ("both", only)


def collect(failures, how, check):
    """Run one of several checks of a test, and keep its failure."""
    try:
        check()
    except Exception as error:  # noqa: BLE001 - all of them are raised at the end
        error.add_note(f"in {how}")
        failures.append(error)


@pytest.mark.parametrize("name", PROGRAMS)
@both_in_x64
def test_programs(name):
    make, x, only = PROGRAMS[name]
    groups = {g: ways for g, (modes, ways) in GROUPS.items() if possible(only, modes)}

    @jax.jit
    def oracle(x):
        firsts = {g: next(iter(ways.values())) for g, ways in groups.items()}
        return {g: first(*JAX[:2], make(*JAX), x) for g, first in firsts.items()}

    wanted = oracle(jax.tree.map(jax.numpy.asarray, x))
    x = namoo.tree.map(namoo.numpy.asarray, x)
    failures = []
    for group, ways in groups.items():
        for how, way in ways.items():
            check = lambda: assert_agree(way(*NAMOO[:2], make(*NAMOO), x), wanted[group])  # noqa: B023, E731
            collect(failures, how, check)
    if failures:
        raise ExceptionGroup(f"{len(failures)} ways of transforming {name} fail", failures)
