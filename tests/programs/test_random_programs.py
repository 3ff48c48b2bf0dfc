"""Random programs under random chains of transformations, against JAX.

A program is a list of steps; each step picks an operation and operands by numbers that hypothesis
draws.  Steps keep their values between -1 and 1, so that derivatives of all orders stay small.
"""

from __future__ import annotations

import functools

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import namoo
import namoo.numpy
from both_libraries import (  # noqa: F401
    JAX,
    NAMOO,
    assert_agree,
    both_in_x64,
    jax_compiles_quickly,
)

# Operations: each takes the modules, a function `pick(n) -> 0..n-1`, and one or two values.


def reduced(J, jnp, lax, pick, x):
    if not x.ndim:
        return x**2
    fun = (jnp.sum, jnp.mean, jnp.max, jnp.prod, jnp.min)[pick(5)]
    return fun(x, axis=pick(x.ndim), keepdims=bool(pick(2)))


def reshaped(J, jnp, lax, pick, x):
    ways = (
        lambda: x.reshape(-1),
        lambda: x.T,
        lambda: x[None],
        lambda: jnp.squeeze(x),
        lambda: jnp.flip(x),
        lambda: jnp.moveaxis(x, 0, -1) if x.ndim else x,
        lambda: jnp.broadcast_to(x, (2, *x.shape)),
    )
    return ways[pick(len(ways))]()


def indexed(J, jnp, lax, pick, x):
    if not x.ndim:
        return x
    n = x.shape[0]
    ways = (
        lambda: x[pick(n)],
        lambda: x[:: pick(2) + 1],
        lambda: x[jnp.array([pick(n), pick(n)])],
        lambda: x[jnp.argmax(jnp.sum(x.reshape(n, -1), 1))],
        lambda: x.at[pick(n)].set(x[pick(n)] * 0.5),
        lambda: x.at[jnp.array([pick(n), pick(n)])].add(0.3),
        lambda: lax.dynamic_slice_in_dim(x, jnp.argmin(x.reshape(n, -1)[:, 0]), 1),
        lambda: jnp.take(x, jnp.arange(n)[::-1], axis=0),
    )
    return ways[pick(len(ways))]()


def ordered(J, jnp, lax, pick, x):
    if not x.ndim:
        return x
    axis = pick(x.ndim)
    fun = (
        jnp.sort,
        jnp.cumsum,
        jnp.cumprod,
        lambda v, axis: jnp.roll(v, 1, axis),
        lambda v, axis: jnp.take_along_axis(v, jnp.argsort(v, axis), axis),
    )
    return fun[pick(len(fun))](x, axis=axis)


def elementary(J, jnp, lax, pick, x):
    ways = (
        jnp.sin,
        jnp.cos,
        jnp.exp,
        jnp.tanh,
        jnp.square,
        jnp.abs,
        lambda v: -v,
        lambda v: v**3,
        lambda v: jnp.log(2.0 + v),
        lambda v: jnp.sqrt(1.5 + v),
        lambda v: 1 / (2 + v),
        lambda v: (1.5 + v) ** 1.5,
        lambda v: jnp.where(v > 0.1, v, jnp.sin(v * 2)),
        lambda v: jnp.clip(v, -0.5, 0.5),
        lambda v: jnp.arctan2(v, 2.0),
        lax.logistic,
    )
    return ways[pick(len(ways))](x)


def combined(J, jnp, lax, pick, x, y):
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return jnp.outer(x, y) if x.size * y.size <= 64 else jnp.sum(x) * y
    ways = (
        lambda: x + y,
        lambda: x * y,
        lambda: x - y,
        lambda: x / (2 + y),
        lambda: jnp.maximum(x, y + 0.01),
        lambda: jnp.where(x < y, x, y * 0.5),
        lambda: jnp.stack([jnp.broadcast_to(x, shape), jnp.broadcast_to(y, shape)], pick(2) * -1),
        lambda: jnp.concatenate([jnp.broadcast_to(v, shape).reshape(-1) for v in (x, y)]),
    )
    return ways[pick(len(ways))]()


def multiplied(J, jnp, lax, pick, x, y):
    if x.ndim == 2 and y.ndim == 2 and x.shape[0] == y.shape[0]:
        return x.T @ y
    if x.ndim and y.ndim and x.shape[-1] == y.shape[0]:
        return jnp.dot(x, y)
    return jnp.tensordot(x, x, axes=x.ndim) * y


def scanned(J, jnp, lax, pick, x, y):
    if not x.ndim:
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c + i * y.sum().astype(x.dtype)), x)
    reverse, kind = bool(pick(2)), pick(3)

    def body(carry, row):
        c, n = carry
        c = jnp.tanh(c * row + (y.mean().astype(x.dtype) if kind else 0.3))
        return (c, n + 1), (c if kind < 2 else c.sum() * n)

    (last, _), rows = lax.scan(body, (x[0], 0), x, reverse=reverse)
    return rows if pick(2) else last


def branched(J, jnp, lax, pick, x, y):
    test, mean = jnp.sum(x) > 0.2, y.mean().astype(x.dtype)
    if pick(2):
        return lax.cond(test, jnp.sin, lambda v: v * jnp.cos(mean), x)
    index = jnp.clip(jnp.floor(jnp.sum(y) * 3), 0, 2).astype(jnp.int32)
    return lax.switch(index, [lambda v: v, lambda v: -v, lambda v: v * mean], x)


def wrapped(J, jnp, lax, pick, x, y):
    """A small function of one array under a transformation of its own."""
    scale = y.mean().astype(x.dtype)

    def inner(v):
        return jnp.sin(v * scale) + v**2

    @J.custom_jvp
    def ruled(v, s):
        return jnp.sin(v) * s

    @ruled.defjvp
    def _(primals, tangents):
        (v, s), (dv, ds) = primals, tangents
        return ruled(v, s), jnp.cos(v) * dv * s * 0.5 + jnp.sin(v) * ds

    @J.custom_vjp
    def backward_only(v, s):
        return jnp.sin(v) * s

    backward_only.defvjp(
        lambda v, s: (backward_only(v, s), (v, s)),
        lambda kept, ct: (ct * jnp.cos(kept[0]) * kept[1] * 0.5, jnp.sum(ct * jnp.sin(kept[0]))),
    )

    def until_small(v):
        return lax.while_loop(lambda c: jnp.sum(c**2) > 0.3, lambda c: c * 0.5, v)

    ways = (
        lambda: backward_only(x, scale),
        lambda: until_small(x),
        lambda: J.jit(inner)(x),
        lambda: J.checkpoint(inner)(x),
        lambda: J.vmap(inner, in_axes=-1, out_axes=0)(x) if x.ndim else inner(x),
        lambda: J.grad(lambda v: jnp.sum(inner(v)))(x),
        lambda: J.jvp(inner, (x,), (jnp.ones_like(x),))[1],
        lambda: J.vjp(inner, x)[1](x)[0],
        lambda: ruled(x, scale),
        lambda: ruled(x, 2.0),
        lambda: lax.stop_gradient(x) * x,
        lambda: lax.map(inner, x) if x.ndim else x,
    )
    return ways[pick(len(ways))]()


ONE = (reduced, reshaped, indexed, ordered, elementary, elementary)
TWO = (combined, combined, multiplied, scanned, branched, wrapped)
LARGEST = 48


def picker(numbers):
    """`pick(n)` reads the next of the drawn numbers, as one of 0 to n - 1."""
    rest = iter(numbers)
    return lambda n: next(rest, 0) % n


def build(steps, J, jnp, lax):
    """The function of two arrays that a list of steps describes."""

    def fun(x, y):
        values = [x, y]
        for numbers in steps:
            pick = picker(numbers)
            first = values[-1 - pick(min(3, len(values)))]
            if pick(2):
                new = ONE[pick(len(ONE))](J, jnp, lax, pick, first)
            else:
                second = values[pick(len(values))]
                new = TWO[pick(len(TWO))](J, jnp, lax, pick, first, second)
            values.append(jnp.sin(new) if new.size <= LARGEST else jnp.sin(new.reshape(-1)[:3]))
        return {"last": values[-1], "all": sum(jnp.sum(v * 0.5) for v in values)}

    return fun


# Transformations: each takes a function of (x, y) to another one.


def loss_of(J, jnp, fun):
    return lambda x, y: sum(jnp.sum(jnp.sin(v)) for v in J.tree.leaves(fun(x, y)))


def mapped(J, jnp, pick, fun):
    """vmap of x, of y or of both, over any axis."""
    which, out = pick(3), -pick(2)

    def batch(v, axis):
        return jnp.stack([v, v * 0.9], axis)

    def new(x, y):
        x_axis = None if which == 1 else pick(x.ndim + 1) - (x.ndim + 1) * pick(2)
        y_axis = None if which == 0 else pick(y.ndim + 1)
        args = [v if a is None else batch(v, a) for v, a in ((x, x_axis), (y, y_axis))]
        return J.vmap(fun, in_axes=(x_axis, y_axis), out_axes=out)(*args)

    return new


def mapped_in_a_tree(J, jnp, pick, fun):
    """vmap of a function of a tree, with a tree of axes, over an axis that has a name."""
    name = f"axis {pick(256)}"

    def of_tree(tree):
        out = fun(tree["x"], *tree["rest"])
        mean = J.tree.map(lambda v: J.lax.pmean(v, name), out)
        return out, mean, J.lax.axis_index(name)

    def new(x, y):
        axis = pick(x.ndim + 1)
        tree = {"x": jnp.stack([x, -x, x * 0.5], axis), "rest": (y,)}
        axes = ({"x": axis, "rest": None},)
        out, mean, index = J.vmap(of_tree, in_axes=axes, out_axes=(0, None, 0), axis_name=name)(
            tree
        )
        return out, J.tree.map(lambda v: v * (1.0 + jnp.sum(index)), mean)

    return new


def differentiated(J, jnp, pick, fun):
    argnums = (0, 1, (0, 1))[pick(3)]
    return J.grad(loss_of(J, jnp, fun), argnums)


def pushed(J, jnp, pick, fun):
    return lambda x, y: J.jvp(fun, (x, y), (jnp.cos(x), jnp.sin(y)))


def pulled(J, jnp, pick, fun):
    def new(x, y):
        out, pull = J.vjp(fun, x, y)
        return pull(J.tree.map(jnp.cos, out))

    return new


def linearized(J, jnp, pick, fun):
    def new(x, y):
        out, line = J.linearize(fun, x, y)
        return out, line(jnp.cos(x), jnp.sin(y))

    return new


TRANSFORMATIONS = (
    mapped,
    mapped,
    mapped_in_a_tree,
    differentiated,
    differentiated,
    pushed,
    pulled,
    linearized,
    lambda J, jnp, pick, fun: J.jit(fun),
    lambda J, jnp, pick, fun: J.checkpoint(fun),
    lambda J, jnp, pick, fun: J.jacfwd(loss_of(J, jnp, fun), 1),
    lambda J, jnp, pick, fun: J.jacrev(loss_of(J, jnp, fun)),
)


def transform(chain, fun, J, jnp):
    for numbers in chain:
        # Transformed functions are traced several times: each trace reads the numbers anew.
        pick = picker(numbers)
        fun = repeatable(TRANSFORMATIONS[pick(len(TRANSFORMATIONS))], numbers, J, jnp, fun)
    return fun


def repeatable(make, numbers, J, jnp, fun):
    def new(x, y):
        pick = picker(numbers)
        pick(1)
        return make(J, jnp, pick, fun)(x, y)

    return new


SHAPES = [((3,), (2, 3)), ((2, 3), (3, 2)), ((), (4,)), ((2, 2), (2,)), ((1, 3), ())]


def check(steps, chain, shapes, dtypes=("float64", "float64"), tol=1e-7):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-0.9, 0.9, s).astype(d) for s, d in zip(shapes, dtypes, strict=True))
    oracle = jax.jit(transform(chain, build(steps, *JAX), *JAX[:2]))
    fun = transform(chain, build(steps, *NAMOO), *NAMOO[:2])
    args = namoo.numpy.asarray(x), namoo.numpy.asarray(y)
    try:
        wanted = oracle(x, y)
    except (TypeError, ValueError) as refusal:
        # Forward mode of custom_vjp, or reverse mode of while_loop.
        for way in (fun, namoo.jit(fun)):
            with pytest.raises(type(refusal)):
                way(*args)
        return
    except NotImplementedError:
        return  # JAX has no answer, such as twice forward through a custom_vjp function
    assert_agree(fun(*args), wanted, rtol=tol, atol=tol)
    assert_agree(namoo.jit(fun)(*args), wanted, rtol=tol, atol=tol)


numbers = st.lists(st.integers(0, 255), min_size=8, max_size=8)


programs = {
    "steps": st.lists(numbers, min_size=1, max_size=5),
    "chain": st.lists(numbers, min_size=1, max_size=3),
    "shapes": st.sampled_from(SHAPES),
}
# Each example costs a compilation in JAX, so a failure is shown as it was found.
settings = functools.partial(
    hypothesis.settings,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    phases=[hypothesis.Phase.generate],
)


@settings(max_examples=25)
@hypothesis.given(**programs)
@both_in_x64
def test_random_programs(steps, chain, shapes):
    check(steps, chain, shapes)


@settings(max_examples=10)
@hypothesis.given(**programs, dtypes=st.permutations(["float32", "float16", "bfloat16"]))
def test_random_programs_in_other_types(steps, chain, shapes, dtypes):
    """Types must agree exactly; numbers as far as half precision goes."""
    check(steps, chain[:2], shapes, dtypes[:2], tol=0.15)
