"""Order along an axis.

NaN comes last, and all NaN are equal; so are -0 and 0.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import array_of, arrays_of
from namoo.numpy.same_type import is_complex
from namoo.primitives import sorting as primitive
from namoo.primitives.reduction import check_places
from namoo.primitives.shape import broadcasted_iota, canonical_axis, reshape, rev
from namoo.primitives.slicing import concatenate, slice_in_dim


def _refuse_kind(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to jnp.{name} is not supported: write stable=True or stable=False."
        )
    if order is not None:
        raise TypeError(f"'order' argument to jnp.{name} is not supported: arrays have no fields.")


def _along(name: str, a: Any, axis: int | None) -> tuple[Array, int]:
    """The array and the axis to sort along; None means the flat array."""
    x = array_of(name, a)
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, canonical_axis(axis, x.ndim)


def _places(x: Array, axis: int) -> Any:
    """The index of each element along an axis."""
    dtype = dtypes.default_int_dtype()
    check_places("argsort", x.shape, axis, dtype)
    return broadcasted_iota(dtype, x.shape, axis)


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements along an axis in ascending order.

    Args:
        a: the array; complex numbers are ordered by real part, then by imaginary part.
        axis: the axis, or None for the flat array.
        kind, order: not supported.
        stable: whether equal elements keep their order.
        descending: largest first.

    Raises:
        TypeError: `kind` or `order` was given.
        ValueError: the axis is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sort(jnp.array([3.0, jnp.nan, 1.0, 2.0]))
        Array([ 1.,  2.,  3., nan], dtype=float32)
    """
    x, axis = _along("sort", a, axis)
    _refuse_kind("sort", kind, order)
    out = primitive.sort(x, axis, is_stable=stable)
    return rev(out, (axis,)) if descending else out


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Array:
    """The indices that sort an array along an axis.

    Args:
        a, axis, kind, order, descending: as for `sort`.
        stable: whether the indices of equal elements are ascending.
        dtype: type of the indices.

    Raises:
        TypeError: `kind` or `order` was given.
        ValueError: the axis is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.argsort(jnp.array([3.0, 1.0, 2.0]))
        Array([1, 2, 0], dtype=int32)
    """
    x, axis = _along("argsort", a, axis)
    _refuse_kind("argsort", kind, order)
    places = _places(x, axis)
    if descending and stable:
        # Reversed before and after: equal elements keep their order.
        x, places = rev(x, (axis,)), rev(places, (axis,))
    _, found = primitive.sort((x, places), axis, is_stable=stable)
    if descending:
        found = rev(found, (axis,))
    return found if dtype is None else found.astype(dtype)


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by several keys; the last one is the primary key.

    Args:
        keys: arrays of one shape, or one array of which each row is a key.
        axis: the axis to sort along.

    Raises:
        TypeError: no keys.
        ValueError: keys of different shapes, or the axis is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.lexsort((jnp.array([3, 2, 1]), jnp.array([0, 0, -1])))
        Array([2, 1, 0], dtype=int32)
    """
    keys = tuple(keys)
    if not keys:
        raise TypeError("lexsort: need a sequence of at least one key.")
    keys = arrays_of("lexsort", *keys)
    shapes = {key.shape for key in keys}
    if len(shapes) > 1:
        raise ValueError(f"lexsort: all keys need to be the same shape, got {sorted(shapes)}.")
    if not keys[0].ndim:
        return EagerArray(np.zeros((), dtypes.default_int_dtype()))
    axis = canonical_axis(axis, keys[0].ndim)
    operands = (*keys[::-1], _places(keys[0], axis))
    return primitive.sort(operands, axis, num_keys=len(keys))[-1]


def sort_complex(a: Any) -> Array:
    """The elements along the last axis in ascending order, as complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 2j, 2.0]))
        Array([1.+2.j, 2.+0.j, 2.+1.j], dtype=complex64)
    """
    x = sort(array_of("sort_complex", a), -1)
    return x.astype(dtypes.to_complex_dtype(x.dtype))


def _partition(name: str, a: Any, kth: Any, axis: int) -> tuple[Array, int, int]:
    x = array_of(name, a)
    if is_complex(x):
        raise NotImplementedError(
            f"jnp.{name} is not defined for complex numbers; use jnp.sort or jnp.argsort."
        )
    axis = canonical_axis(axis, x.ndim)
    return x, canonical_axis(operator.index(kth), x.shape[axis], "kth"), axis


def _split(x: Array, place: int, axis: int) -> tuple[Array, Array]:
    first = slice_in_dim(x, 0, place + 1, axis=axis)
    return first, slice_in_dim(x, place + 1, x.shape[axis], axis=axis)


def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """The elements along an axis, with the k-th smallest at index k.

    Those before it are not larger, those after it not smaller. (The first are ascending and the
    last descending, but do not rely on it.)

    Args:
        a: a real array.
        kth: the index; negative ones count from the end.
        axis: the axis.

    Raises:
        ValueError: `kth` or `axis` is out of range.
        NotImplementedError: complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.partition(jnp.array([5, 2, 9, 1, 7]), 2)
        Array([1, 2, 5, 9, 7], dtype=int32)
    """
    x, place, axis = _partition("partition", a, kth, axis)
    first, last = _split(primitive.sort(x, axis), place, axis)
    return concatenate([first, rev(last, (axis,))], axis)


def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """The indices that `partition` an array.

    Args:
        a, kth, axis: as for `partition`.

    Raises:
        ValueError: `kth` or `axis` is out of range.
        NotImplementedError: complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.argpartition(jnp.array([5, 2, 9, 1, 7]), 2)
        Array([3, 1, 0, 2, 4], dtype=int32)
    """
    x, place, axis = _partition("argpartition", a, kth, axis)
    first, last = _split(argsort(x, axis), place, axis)
    places = concatenate([first, primitive.sort(last, axis)], axis)
    # Unlike argsort's, these indices are 32 bits wide even with enable_x64.
    return places.astype(np.int32)


attach_shortcuts(globals())
