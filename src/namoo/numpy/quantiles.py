"""Quantiles, percentiles and medians, with and without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import true_divide
from namoo.numpy.cumulative import cumsum
from namoo.numpy.number_parts import isnan
from namoo.numpy.promote import array_of, as_type, promote_types
from namoo.numpy.reductions import any, reduced_axes, sum
from namoo.numpy.same_type import choose, const, is_complex, strong
from namoo.numpy.taking import take_along_axis
from namoo.primitives import bits, sorting
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes
from namoo.primitives.dimensions import size_array

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _last(x: Array, axes: tuple[int, ...]) -> Array:
    """The array with some axes merged into a last one."""
    others = [i for i in range(x.ndim) if i not in axes]
    merged = (*(x.shape[i] for i in others), math.prod(x.shape[i] for i in axes))
    return shapes.reshape(shapes.transpose(x, (*others, *axes)), merged)


def _weights_of(x: Array, weights: Array, axis: Any, axes: tuple[int, ...]) -> Array:
    if weights.shape == x.shape:
        return weights
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    if weights.shape != tuple(x.shape[i] for i in axes):
        raise ValueError(
            f"Weights shape {weights.shape} must match reduction axes "
            f"{tuple(x.shape[i] for i in axes)}"
        )
    order = np.argsort(axes).tolist()
    return shapes.broadcast_in_dim(
        shapes.transpose(weights, order), x.shape, [axes[i] for i in order]
    )


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    skip_nan: bool,
) -> Array:
    x = array_of(name, a)
    q = array_of(name, q)
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in METHODS:
        raise ValueError(f"method of jnp.{name} can only be one of {METHODS}, got {method!r}")
    if is_complex(x):
        raise ValueError(f"jnp.{name} of complex numbers is not defined: they have no order.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    (q,) = promote_types(name, q, to=dtypes.to_inexact_dtype)
    axes = reduced_axes(axis, x.ndim, name)
    if weights is None:
        (x,) = promote_types(name, x, to=dtypes.to_inexact_dtype)
    else:
        x, weights = _checked_weights(name, x, weights, method, axis, axes)
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    values = _last(x, axes)
    values = _nan_first(values) if not skip_nan else choose(isnan(values), const(x, np.nan), values)
    if method == "inverted_cdf":
        heavy = None if weights is None else _last(weights, axes)
        result = _by_weight(values, heavy, q, skip_nan)
    else:
        result = _by_position(sorting.sort(values), q, method, skip_nan)
    if keepdims:
        result = shapes.reshape(result, (*q.shape, *kept))
    return as_type(result, x.dtype)


def _checked_weights(name, x, weights, method, axis, axes) -> tuple[Array, Array]:
    weights = array_of(name, weights)
    if is_complex(weights):
        raise ValueError("Weights cannot be complex types.")
    if method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights."
        )
    x, weights = promote_types(name, x, weights, to=dtypes.to_inexact_dtype)
    return x, _weights_of(x, weights, axis, axes)


def _nan_first(values: Array) -> Array:
    """All NaN where one element is: then every quantile is NaN."""
    return choose(any(isnan(values), -1, keepdims=True), const(values, np.nan), values)


def _by_position(values: Array, q: Array, method: str, skip_nan: bool) -> Array:
    """Interpolate between the neighbours of position q · (n - 1) in sorted values.

    Returns an array whose first axis is that of `q`, if it has one.
    """
    n = values.shape[-1]
    if 0 in values.shape[:-1]:
        return shapes.full((*q.shape, *values.shape[:-1]), np.nan, values.dtype)
    if skip_nan and not n:
        raise IndexError("a quantile of no elements is not defined: the axis is empty")
    if skip_nan:
        counts = sum(bits.bitwise_not(isnan(values)), -1, dtype=q.dtype)
    else:
        counts = shapes.broadcast(size_array(n, q.dtype), values.shape[:-1])
    lead = (*q.shape, *counts.shape)
    q = shapes.broadcast_in_dim(q, lead, range(q.ndim))
    counts = shapes.broadcast_in_dim(counts, lead, range(len(lead) - counts.ndim, len(lead)))
    last = lax.sub(counts, strong(counts, 1))
    place = lax.mul(q, last)
    low, high = lax.floor(place), lax.ceil(place)
    upper = lax.sub(place, low)
    lower = lax.sub(strong(upper, 1), upper)
    below, above = (_at_places(values, p, last) for p in (low, high))
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "nearest":
        return lax.select(lax.le(upper, strong(upper, 0.5)), below, above)
    if method == "midpoint":
        return lax.mul(lax.add(below, above), strong(below, 0.5))
    return lax.add(lax.mul(as_type(below, q.dtype), lower), lax.mul(as_type(above, q.dtype), upper))


def _at_places(values: Array, places: Array, last: Array) -> Array:
    """The elements of sorted rows at given positions, with or without q's axis."""
    zero = strong(places, 0)
    places = lax.max(zero, lax.min(places, last))
    index = as_type(places, np.dtype(np.int32))
    extra = index.ndim - (values.ndim - 1)
    # The axis of q is last during the computation, and moves to the front afterwards.
    order = (*range(extra, index.ndim), *range(extra))
    index = shapes.transpose(index, order)
    if not extra:
        index = shapes.expand_dims(index, (index.ndim,))
    found = take_along_axis(values, index, axis=-1, mode="clip")
    if not extra:
        return shapes.squeeze(found, (found.ndim - 1,))
    return shapes.moveaxis(found, found.ndim - 1, 0)


def _by_weight(values: Array, weights: Array | None, q: Array, skip_nan: bool) -> Array:
    """The first sorted value at which the running weight reaches q times the whole weight."""
    heavy: Any
    if weights is None:
        values = sorting.sort(values)
        heavy = shapes.broadcast(const(values, 1), values.shape)
    else:
        values, heavy = sorting.sort_key_val(values, weights)
    zero = const(heavy, 0)
    bad = bits.bitwise_or(lax.lt(heavy, zero), isnan(heavy))
    nan = isnan(values)
    clean = choose(bits.bitwise_or(bad, nan), zero, heavy)
    running = cumsum(clean, -1)
    total = running[..., -1]
    rows = total.shape
    lead = (*q.shape, *rows)
    goal = lax.mul(
        shapes.broadcast_in_dim(q, lead, range(q.ndim)),
        as_type(shapes.broadcast(total, q.shape), q.dtype),
    )
    running = shapes.broadcast(as_type(running, q.dtype), q.shape)
    goal = shapes.broadcast_in_dim(goal, running.shape, range(len(lead)))
    place = sum(lax.lt(running, goal), -1, dtype=q.dtype)
    if skip_nan:
        count = sum(bits.bitwise_not(nan), -1, dtype=q.dtype)
    else:
        count = shapes.broadcast(np.asarray(values.shape[-1], q.dtype), rows)
    last = shapes.broadcast(lax.sub(count, strong(count, 1)), q.shape)
    found = _at_places(values, place, last)
    lost = any(bad, -1)
    if skip_nan:
        lost = bits.bitwise_or(lost, lax.eq(count, strong(count, 0)))
    else:
        lost = bits.bitwise_or(lost, any(nan, -1))
    return choose(shapes.broadcast(lost, q.shape), const(found, np.nan), found)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """The value that is not exceeded by a fraction q of the elements over axes.

    Args:
        a: the array.
        q: a fraction in [0, 1], or a vector of them: then the first axis of the result.
        axis: an axis, a tuple of axes, or None for all.
        out, overwrite_input: not supported.
        method: between two elements, 'linear', 'lower', 'higher', 'midpoint' or 'nearest'; or
            'inverted_cdf'.
        keepdims: keep the axes, with length 1.
        weights: of the elements, for 'inverted_cdf'.

    Returns:
        The quantiles; NaN where an element is NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.quantile(jnp.arange(5.0), jnp.array([0.25, 0.5]))
        Array([1., 2.], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """`quantile` of the elements that are not NaN.

    Args:
        a, q, axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
        Array(2., dtype=float32)
    """
    return _quantile(
        "nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True
    )


def _fraction(name: str, q: Any) -> Array:
    (q,) = promote_types(name, q, to=dtypes.to_inexact_dtype)
    return true_divide(q, 100)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`quantile`, with the fraction in percent.

    Args:
        a, axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.
        q: a number in [0, 100], or a vector of them.
        out_sharding: the sharding of the result; it has no effect on one device.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.percentile(jnp.arange(5.0), 75)
        Array(3., dtype=float32)
    """
    q = _fraction("percentile", q)
    return quantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """`percentile` of the elements that are not NaN.

    Args:
        a, q, axis, out, overwrite_input, method, keepdims, weights: as for `percentile`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
        Array(2., dtype=float32)
    """
    q = _fraction("nanpercentile", q)
    return nanquantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element over axes, or the mean of the two middle ones.

    Args:
        a, axis, out, overwrite_input, keepdims: as for `quantile`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.median(jnp.array([1.0, 5.0, 2.0, 4.0]))
        Array(3., dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of the elements that are not NaN.

    Args:
        a, axis, out, overwrite_input, keepdims: as for `quantile`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0, 4.0]))
        Array(2., dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


attach_shortcuts(globals())
