"""Summaries of samples: the most frequent value, ranks, the standard error of the mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.numpy.promote import array_of, promote_inexact
from namoo.primitives.cumulative import cummax, cummin
from namoo.primitives.shape import canonical_axis
from namoo.primitives.sorting import sort_key_val


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array


def _check_nan_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"stats.{name}: nan_policy must be 'propagate', 'omit' or 'raise', got {nan_policy!r}."
            + at_user_line()
        )
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"stats.{name} has nan_policy='propagate' only, got {nan_policy!r}: whether there are "
            "NaNs is not known while a program is traced. Remove them, or test for them, before "
            "the call." + at_user_line()
        )


def _starts(x: Array) -> Array:
    """Where a new value begins in a vector that is sorted, along the last axis; NaNs are equal."""
    before, after = x[..., :-1], x[..., 1:]
    changes = (before != after) & ~((before != before) & (after != after))
    return jnp.concatenate([jnp.ones_like(x[..., :1], dtype=bool), changes], axis=-1)


def mode(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value; the smallest of several.

    Args:
        a: an array.
        axis: the axis along which to count; all elements if None.
        nan_policy: must be 'propagate': NaN is a value like others.
        keepdims: keep the axis with length 1.

    Returns:
        The values and their counts; NaN and 0 without elements.

    Raises:
        ValueError: an unknown `nan_policy`, or an axis that does not exist.
        NotImplementedError: another `nan_policy`.

    Example:
        >>> import namoo.numpy as jnp
        >>> mode(jnp.array([2, 1, 2, 1, 3]))
        ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    x = jnp.atleast_1d(array_of("mode", a))
    _check_nan_policy("mode", nan_policy)
    if axis is None:
        shape = (1,) * x.ndim if keepdims else ()
        x = x.ravel()
    else:
        axis = canonical_axis(axis, x.ndim)
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape) if keepdims or i != axis)
        x = jnp.moveaxis(x, axis, -1)
    if x.shape[-1] == 0:
        dtype = dtypes.default_float_dtype()
        return ModeResult(jnp.full(shape, jnp.nan, dtype), jnp.zeros(shape, dtype))
    x = jnp.sort(x, axis=-1)
    place = jnp.broadcast_to(jnp.arange(x.shape[-1]), x.shape)
    # How many equal elements there are up to each one: most at the end of the longest run.
    length = place - cummax(jnp.where(_starts(x), place, 0), x.ndim - 1) + 1
    last = jnp.argmax(length, axis=-1, keepdims=True)
    value, count = (jnp.take_along_axis(y, last, axis=-1) for y in (x, length))
    return ModeResult(value.reshape(shape), count.reshape(shape))


def rankdata(
    a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The rank of each element, from 1 for the smallest.

    Args:
        a: an array.
        method: the rank of ties: the 'average', the 'min' or the 'max' of their ranks, the
            rank among different values ('dense'), or ranks in order of occurrence ('ordinal').
        axis: the axis along which to rank; all elements, in a vector, if None.
        nan_policy: must be 'propagate': where there is a NaN, all ranks are NaN.

    Returns:
        Ranks of the default floating type.

    Raises:
        ValueError: an unknown `method` or `nan_policy`.
        NotImplementedError: another `nan_policy`.

    Example:
        >>> import namoo.numpy as jnp
        >>> rankdata(jnp.array([30, 10, 20, 10]))
        Array([4. , 1.5, 3. , 1.5], dtype=float32)
    """
    x = array_of("rankdata", a)
    _check_nan_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(
            "stats.rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got "
            f"{method!r}." + at_user_line()
        )
    if axis is not None:
        return jnp.moveaxis(_ranks(jnp.moveaxis(x, axis, -1), method), -1, axis)
    return _ranks(x.ravel(), method)


def _ranks(x: Array, method: str) -> Array:
    """Ranks along the last axis."""
    dtype = dtypes.default_float_dtype()
    n, last = x.shape[-1], x.ndim - 1
    place = jnp.broadcast_to(jnp.arange(n), x.shape)
    ordered, order = sort_key_val(x, place)
    first = _starts(ordered)
    end = jnp.concatenate([first[..., 1:], jnp.ones_like(first[..., :1])], axis=-1)
    low = cummax(jnp.where(first, place, 0), last)
    high = cummin(jnp.where(end, place, n), last, reverse=True)
    ranks = {
        "ordinal": lambda: place + 1,
        "dense": lambda: jnp.cumsum(first, axis=-1),
        "min": lambda: low + 1,
        "max": lambda: high + 1,
        "average": lambda: (low + high).astype(dtype) / 2 + 1,
    }[method]()
    back = jnp.argsort(order, axis=-1)
    ranks = jnp.take_along_axis(ranks.astype(dtype), back, axis=-1)
    unknown = jnp.any(jnp.isnan(x), axis=-1, keepdims=True)
    return jnp.where(unknown, np.asarray(np.nan, dtype), ranks)


def sem(
    a: Any,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of the mean.

        sem(a) = std(a) / √n

    Args:
        a: an array.
        axis: the axis along which to take it; all elements if None.
        ddof: subtracted from n in the standard deviation.
        nan_policy: 'propagate', or 'omit' to skip NaNs.
        keepdims: keep the axis with length 1.

    Raises:
        ValueError: another `nan_policy`.

    Example:
        >>> import namoo.numpy as jnp
        >>> sem(jnp.array([1.0, 2.0, 3.0])).round(4)
        Array(0.5774, dtype=float32)
    """
    (x,) = promote_inexact("sem", a)
    if nan_policy == "propagate":
        size = x.size if axis is None else x.shape[axis]
        return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / np.sqrt(size).astype(x.dtype)
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        spread = jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
        return spread / jnp.sqrt(count).astype(x.dtype)
    raise ValueError(
        f"stats.sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}." + at_user_line()
    )
