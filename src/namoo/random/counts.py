"""Counts of events, by rejection.

All elements draw together, and draw again until each has been accepted: with the same bits, they
are the same as JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo import lax
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, entry_point
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.primitives.shape import broadcast_to
from namoo.random.arguments import (
    array_of,
    float_dtype,
    int_dtype,
    sample_shape,
    sampler,
    shape_tuple,
)
from namoo.random.keys import clone, single, split
from namoo.random.uniforms import unit

Step = Callable[..., tuple]


def _repeat(body: Step, going: Callable[..., Array], most: int, *state: Any) -> tuple:
    """Repeat `body` while any element continues, at most `most` times."""
    limit = np.int32(min(most, 2**31 - 1))
    return lax.while_loop(
        lambda carry: jnp.any(going(*carry[1:])) & (carry[0] < limit),
        lambda carry: (carry[0] + 1, *body(*carry[1:])),
        (np.int32(0), *state),
    )[1:]


def _either(mask: Array, chosen: Callable[[], Array], other: Callable[[], Array]) -> Array:
    """Elements of `chosen()` where the mask holds, else of `other()`."""
    return jnp.where(mask, chosen(), other())


def _zeros(shape: tuple[int, ...], dtype: Any) -> EagerArray:
    return EagerArray(np.zeros(shape, dtype))


@sampler
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Counts with probability lamᵏ·exp(-lam)/k!.

    Below a mean of 10, the number of exponential times that fit into `lam` (Knuth); above, the
    transformed rejection PTRS of Hörmann (1993).

    Args:
        key: a key.
        lam: the mean.
        shape: shape of the sample; that of `lam` by default.
        dtype: an integer type; `int32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `lam` is not an array.
        ValueError: the type is not an integer type, or `lam` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.poisson(random.key(0), 3.0, (4,)).shape
        (4,)
    """
    one, _ = single("poisson", key)
    dtype = int_dtype("poisson", dtype)
    lam = array_of("poisson", "lam", lam)
    shape = sample_shape("poisson", shape, lam.shape)
    lam = broadcast_to(lam.astype(np.float32), shape)
    number, most = lam.dtype.type, dtypes.iinfo(dtype).max
    small = jnp.isnan(lam) | (lam < number(10))
    # Where one method is not used, it gets a mean for which it stops soon.
    count = _either(
        small,
        lambda: _poisson_by_times(one, jnp.where(small, lam, number(0)), dtype, most),
        lambda: _poisson_by_rejection(clone(one), jnp.where(small, number(1e5), lam), dtype, most),
    )
    return jnp.where(lam == 0, dtype.type(0), count)


def _poisson_by_times(key: Any, lam: Array, dtype: np.dtype, most: int) -> Array:
    def body(count, key, log_product):
        key, subkey = split(key)
        count = jnp.where(log_product > -lam, count + dtype.type(1), count)
        return count, key, log_product + jnp.log(unit(subkey, lam.shape, lam.dtype))

    state = (_zeros(lam.shape, dtype), key, _zeros(lam.shape, lam.dtype))
    count, _, _ = _repeat(body, lambda _, __, total: total > -lam, most, *state)
    return count - dtype.type(1)


def _poisson_by_rejection(key: Any, lam: Array, dtype: np.dtype, most: int) -> Array:
    log_lam = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def body(count, accepted, key):
        key, first, second = split(key, 3)
        u = unit(first, lam.shape, lam.dtype) - 0.5
        v = unit(second, lam.shape, lam.dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + lam + 0.43)
        s = jnp.log(v * inverse_alpha / (a / (us * us) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        bad = (k < 0) | (us < 0.013) & (v > us)
        accept = (us >= 0.07) & (v <= quick) | ~bad & (s <= t)
        return jnp.where(accept, k, count), accepted | accept, key

    state = (EagerArray(np.full(lam.shape, -1, lam.dtype)), _zeros(lam.shape, np.bool_), key)
    count, _, _ = _repeat(body, lambda _, accepted, __: ~accepted, most, *state)
    return count.astype(dtype)


@entry_point
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """How many of n trials succeed, each with probability p.

    Below a mean of 10, by counting geometric numbers of trials; above, the transformed rejection
    BTRS of Hörmann (1993).

    Args:
        key: a key.
        n: the number of trials.
        p: the probability of success.
        shape: shape of the sample; that of the parameters by default.
        dtype: a floating type; `float32` by default.

    Returns:
        Counts, of a floating type; NaN where n or p is not valid.

    Raises:
        TypeError: `n` or `p` is not an array.
        ValueError: the type is not floating, or parameters that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.binomial(random.key(0), 10, 0.3, (3,))
        Array([2., 2., 1.], dtype=float32)
    """
    one, _ = single("binomial", key)
    dtype = float_dtype("binomial", dtype)
    n, p = array_of("binomial", "n", n), array_of("binomial", "p", p)
    shape = sample_shape("binomial", shape, n.shape, p.shape)
    kind = dtypes.to_inexact_dtype(jnp.result_type(n, p))
    n, p = (broadcast_to(x.astype(kind), shape) for x in (n, p))
    return _binomials(one, n, p, dtypes.finfo(dtype)).astype(dtype)


def _binomials(key: Any, n: Array, p: Array, info: Any) -> Array:
    """Counts, given a typed key and floating arrays of the sample's shape."""
    most = int(min(float(info.max), 2**31 - 1))
    number = p.dtype.type
    # Count failures where they are rarer.
    rare = p < number(0.5)
    q = jnp.where(rare, p, 1 - p)
    bad_n = jnp.isnan(n) | (n < 0)
    bad_q = jnp.isnan(q) | (q < 0)
    q = jnp.where(bad_q, number(0.01), q)
    small = bad_n | (n * q <= 10)
    whole = jnp.floor(n)
    # Where one method is not used, it gets parameters for which it stops soon.
    out = _either(
        small,
        lambda: _binomial_by_trials(key, jnp.where(small, whole, number(0)), q, most),
        lambda: _binomial_by_rejection(
            clone(key), jnp.where(small, number(1e4), whole), jnp.where(small, number(0.5), q), most
        ),
    )
    infinite = jnp.isinf(n)
    out = jnp.where(bad_q | bad_n, number(np.nan), out)
    out = jnp.where(infinite & ~(bad_q | bad_n), number(np.inf), out)
    return jnp.where(rare | bad_n | bad_q | infinite, out, whole - out)


def _binomial_by_trials(key: Any, n: Array, p: Array, most: int) -> Array:
    log_q = jnp.log1p(-p)

    def body(count, total, key):
        subkey, key = split(key)
        count = jnp.where(total <= n, count + 1, count)
        return count, total + jnp.ceil(jnp.log(unit(subkey, n.shape, n.dtype)) / log_q), key

    state = (_zeros(n.shape, n.dtype), _zeros(n.shape, n.dtype), key)
    count, _, _ = _repeat(body, lambda _, total, __: total <= n, most, *state)
    return count - 1


# log k! - [log √(2π) + (k+½)·log(k+1) - (k+1)] for k = 0…9; beyond, Stirling's series.
_TAIL = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.0207906721037650,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _stirling_tail(k: Array) -> Array:
    number = k.dtype.type
    near = jnp.clip(k, number(0), number(9))
    square = (near + 1) * (near + 1)
    series = (number(1 / 12) - (number(1 / 360) - number(1 / 1260) / square) / square) / (near + 1)
    table = EagerArray(np.asarray(_TAIL).astype(k.dtype))
    exact = jnp.take(table, jnp.floor(near).astype(np.int32), mode="clip")
    return jnp.where(k <= 9, exact, series)


def _binomial_by_rejection(key: Any, n: Array, p: Array, most: int) -> Array:
    spread = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    quick = 0.92 - 4.2 / b
    ratio = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = jnp.floor((n + 1) * p)

    def body(count, accepted, key):
        key, first, second = split(key, 3)
        u = unit(first, n.shape, n.dtype)
        v = unit(second, n.shape, n.dtype)
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + c)
        outside = (k < 0) | (k > n)
        left = jnp.log(v * alpha / (a / (us * us) + b))
        right = (
            (m + 0.5) * jnp.log((m + 1) / (ratio * (n - m + 1)))
            + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * jnp.log(ratio * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        accept = (us >= 0.07) & (v <= quick) | ~outside & (left <= right)
        return jnp.where(accept, k, count), accepted | accept, key

    state = (EagerArray(np.full(n.shape, -1, n.dtype)), _zeros(n.shape, np.bool_), key)
    count, _, _ = _repeat(body, lambda _, accepted, __: ~accepted, most, *state)
    return count


@entry_point
def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: Any = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """How many of n draws fall into each category.

    The count of each category is binomial, given the remaining draws and probability.

    Args:
        key: a key.
        n: the number of draws.
        p: the probability of each category, along the last axis.
        shape: shape of the sample, with the axis of categories; that of `p` by default.
        dtype: its type; that of the parameters by default.
        unroll: how many categories one iteration of a compiled loop handles.

    Raises:
        TypeError: `n` or `p` is not an array.
        ValueError: `p` has no axis, or the shapes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> random.multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5])).sum()
        Array(10., dtype=float32)
    """
    one, _ = single("multinomial", key)
    n, p = array_of("multinomial", "n", n), array_of("multinomial", "p", p)
    if not p.ndim:
        raise ValueError("random.multinomial: p needs an axis of categories, got a scalar.")
    kind = dtypes.to_inexact_dtype(jnp.result_type(n, p))
    shape = p.shape if shape is None else shape_tuple(shape)
    try:
        p = jnp.broadcast_to(p.astype(kind), shape)
        n = jnp.broadcast_to(n.astype(kind), shape[:-1])
    except ValueError as error:
        raise ValueError(
            f"random.multinomial: n of shape {n.shape} and p of shape {p.shape} do not fit "
            f"shape={shape}, whose last axis is that of the categories." + at_user_line()
        ) from error
    p = jnp.moveaxis(p, -1, 0)
    left = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(left == 0, kind.type(1), left)
    keys = split(one, shape[-1])
    step = partial(_draw_category, info=dtypes.finfo(kind))
    out = jnp.moveaxis(_draw_categories(step, n, ratios, keys, unroll), 0, -1)
    return out if dtype is None else out.astype(dtypes.check_user_dtype_supported(dtype))


def _draw_categories(step: Step, n: Array, ratios: Array, keys: Any, unroll: Any) -> Array:
    return lax.scan(step, n, (ratios, keys), unroll=unroll)[1]


def _draw_category(n: Array, pair: tuple[Array, Any], info: Any) -> tuple[Array, Array]:
    ratio, key = pair
    count = _binomials(key, n, jnp.clip(ratio, 0, 1), info)
    return n - count, count


attach_shortcuts(globals())
