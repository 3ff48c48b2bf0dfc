"""Differences of neighbouring elements."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import subtract
from namoo.numpy.creation import concrete
from namoo.numpy.joining import concatenate
from namoo.numpy.logic import not_equal
from namoo.numpy.promote import array_of, as_type, broadcast_to
from namoo.primitives import shape as lax
from namoo.primitives.slicing import slice_in_dim


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """The differences of neighbours along an axis: a[i+1] - a[i].

    Args:
        a: an array of at least one axis; of booleans, whether neighbours differ.
        n: how many times.
        axis: the axis.
        prepend, append: values to put before and after the array first.

    Raises:
        ValueError: a scalar, or negative `n`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diff(jnp.array([1, 4, 9, 16])), jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
        (Array([3, 5, 7], dtype=int32), Array([2, 2], dtype=int32))
    """
    x = array_of("diff", a)
    n = operator.index(concrete(n, "the 'n' argument of jnp.diff"))
    axis = operator.index(concrete(axis, "the 'axis' argument of jnp.diff"))
    if n == 0:
        return x
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not x.ndim:
        raise ValueError("diff requires input that is at least one dimensional; got a scalar")
    axis = lax.canonical_axis(axis, x.ndim)
    parts = [_border(part, x, axis) for part in (prepend, append)]
    parts = [part for part in (parts[0], x, parts[1]) if part is not None]
    if len(parts) > 1:
        x = concatenate(parts, axis)
    difference = not_equal if x.dtype == np.bool_ else subtract
    for _ in range(n):
        size = x.shape[axis]
        later = slice_in_dim(x, min(1, size), size, axis=axis)
        x = difference(later, slice_in_dim(x, 0, max(size - 1, 0), axis=axis))
    return x


def _border(part: Any, x: Array, axis: int) -> Array | None:
    if part is None:
        return None
    part = array_of("diff", part)
    return part if part.ndim else broadcast_to(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbours in the flattened array.

    Args:
        ary: the array.
        to_end, to_begin: values to put after and before the differences.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
        Array([0, 3, 5], dtype=int32)
    """
    x = array_of("ediff1d", ary)
    x = lax.reshape(x, (x.size,))
    parts = [slice_in_dim(x, min(1, x.size), x.size), slice_in_dim(x, 0, max(x.size - 1, 0))]
    parts = [subtract(*parts)]
    if to_begin is not None:
        parts.insert(0, _flat_like(to_begin, x))
    if to_end is not None:
        parts.append(_flat_like(to_end, x))
    return concatenate(parts, 0)


def _flat_like(part: Any, x: Array) -> Array:
    part = as_type(array_of("ediff1d", part), x.dtype)
    return lax.reshape(part, (part.size,))


attach_shortcuts(globals())
