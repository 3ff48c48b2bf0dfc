"""Indices of elements: extremes, elements that are not zero, positions in a sorted array."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.source_context import called_function
from namoo.core.array import Array, EagerArray
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import exceeds, is_symbolic
from namoo.eager import attach_shortcuts
from namoo.numpy.creation import concrete, zeros
from namoo.numpy.logic import less
from namoo.numpy.promote import array_of, arrays_of, as_type, promote_types, to_array
from namoo.numpy.reductions import all, refuse_out
from namoo.numpy.same_type import choose, is_kind, strong, to_bool
from namoo.primitives import bits, cumulative, reduction
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes
from namoo.primitives.dimensions import size_array

SIZE_ADVICE = """\
The number of elements that are not zero decides the shape of the result. Pass size=n to
jnp.{name}, and fill_value=… for the places that are left over; or use jnp.where(mask, a, b)."""


def _extreme(name: str, locate: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    refuse_out(name, out)
    x = array_of(name, a)
    kept = tuple(range(x.ndim)) if axis is None else (operator.index(axis),)
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
    axis = shapes.canonical_axis(axis, x.ndim)
    if not x.shape[axis]:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    dtype = dtypes.default_int_dtype()
    reduction.check_places(name, x.shape, axis, dtype)
    result = locate(x, axis, dtype)
    return shapes.expand_dims(result, kept) if keepdims else result


def argmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the largest element along an axis: the first such element, or the first NaN.

    Args:
        a: the array.
        axis: the axis; None for the flattened array.
        out: not supported.
        keepdims: keep the axis, with length 1.

    Raises:
        ValueError: no elements.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.argmax(jnp.array([[1, 5], [7, 4]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    return _extreme("argmax", reduction.argmax, a, axis, out, keepdims)


def argmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the smallest element along an axis: the first such element, or the first NaN.

    Args:
        a, axis, out, keepdims: as for `argmax`.

    Raises:
        ValueError: no elements.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.argmin(jnp.array([[1, 5], [7, 4]]), axis=1)
        Array([0, 1], dtype=int32)
    """
    return _extreme("argmin", reduction.argmin, a, axis, out, keepdims)


def _nan_extreme(name: str, fun: Any, worst: float, a: Any, axis: Any, out: Any, keepdims: Any):
    refuse_out(name, out)
    x = array_of(name, a)
    if not is_kind(x, np.inexact):
        return fun(x, axis, keepdims=keepdims)
    nan = lax.ne(x, x)
    place = fun(choose(nan, strong(x, worst), x), axis, keepdims=keepdims)
    nothing = all(nan, axis, keepdims=bool(keepdims))
    return choose(nothing, strong(place, -1), place)


def nanargmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the largest element along an axis that is not NaN; -1 where all are.

    Args:
        a, axis, out, keepdims: as for `argmax`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2, dtype=int32)
    """
    return _nan_extreme("nanargmax", argmax, -np.inf, a, axis, out, keepdims)


def nanargmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the smallest element along an axis that is not NaN; -1 where all are.

    Args:
        a, axis, out, keepdims: as for `argmax`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanargmin(jnp.array([jnp.nan, 1.0, 3.0]))
        Array(1, dtype=int32)
    """
    return _nan_extreme("nanargmin", argmin, np.inf, a, axis, out, keepdims)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, an array for each axis.

    Args:
        a: an array of at least one axis.
        size: how many indices to return. Needed under `jit`, where it cannot depend on values:
            surplus indices are cut off, missing ones filled.
        fill_value: what missing indices are filled with; a number, or one for each axis.

    Raises:
        ValueError: a scalar.
        ConcretizationTypeError: a traced array without `size`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nonzero(jnp.array([0, 5, 0, 7]))
        (Array([1, 3], dtype=int32),)
        >>> jnp.nonzero(jnp.array([0, 5, 0, 7]), size=3, fill_value=-1)
        (Array([ 1,  3, -1], dtype=int32),)
    """
    x = array_of("nonzero", a)
    if not x.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    mask = to_bool(x)
    if size is None:
        return _found(x, mask)
    size = operator.index(concrete(size, "the size argument of jnp.nonzero"))
    default = dtypes.default_int_dtype()
    if not x.size or not size:
        return tuple(zeros(size, default) for _ in x.shape)
    flat = shapes.reshape(mask, (mask.size,))
    # The running count of true elements is the place of each of them, from 1 on.
    counts = cumulative.cumsum(as_type(flat, default), 0)
    targets = choose(flat, lax.sub(counts, strong(counts, 1)), strong(counts, size))
    indices = shapes.iota(default, mask.size)
    places = zeros(size, default).at[targets].set(indices, mode="drop")
    filled = lax.ge(shapes.iota(default, size), counts[-1])
    strides = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(values) != x.ndim or any(np.ndim(v) for v in values):
        raise ValueError(
            f"fill_value must be a scalar or a tuple of length {x.ndim}; got {fill_value}"
        )
    out = []
    for stride, n, value in zip(strides, x.shape, values, strict=True):
        index = lax.rem(lax.div(places, strong(places, stride)), strong(places, n))
        fill = 0 if value is None else as_type(to_array(value), default)
        out.append(choose(filled, strong(places, fill) if value is None else fill, index))
    return tuple(out)


def _found(x: Array, mask: Array) -> tuple[Array, ...]:
    """The indices of true elements, as many as there are: they must be known."""
    if isinstance(mask, Tracer):
        name = called_function("nonzero")
        mask.refuse(
            errors.ConcretizationTypeError,
            f"a concrete array for jnp.{name} without size",
            SIZE_ADVICE.format(name=name),
        )
    dtype = dtypes.default_int_dtype()
    return tuple(EagerArray(i.astype(dtype)) for i in np.nonzero(np.asarray(mask)))


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero, in the flattened array.

    Args:
        a, size, fill_value: as for `nonzero`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 7]]))
        Array([1, 2, 3], dtype=int32)
    """
    x = array_of("flatnonzero", a)
    return nonzero(shapes.reshape(x, (x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero, one in each row.

    Args:
        a, size, fill_value: as for `nonzero`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.argwhere(jnp.array([[0, 5], [6, 0]]))
        Array([[0, 1],
               [1, 0]], dtype=int32)
    """
    x = array_of("argwhere", a)
    found = nonzero(shapes.reshape(x, (1,)) if not x.ndim else x, size=size, fill_value=fill_value)
    from namoo.numpy.joining import stack

    rows = stack(found, 1)
    return rows if x.ndim else shapes.reshape(rows[:0], (rows.shape[0], 0))[: rows.shape[0]]


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Array:
    """The indices at which values would be inserted to keep an array sorted.

    Args:
        a: the sorted vector.
        v: the values.
        side: 'left' for before equal elements, 'right' for after them.
        sorter: indices that sort `a`, if it is not sorted.
        method: 'scan', 'scan_unrolled', 'sort' or 'compare_all': how XLA would search. It changes
            no result.

    Raises:
        ValueError: `a` is not a vector, or an unknown side or method.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.searchsorted(jnp.array([1, 3, 3, 5]), jnp.array([0, 3, 9]))
        Array([0, 1, 4], dtype=int32)
    """
    x, values = arrays_of("searchsorted", a, v)
    if x.ndim != 1:
        raise ValueError(f"a should be 1-dimensional in jnp.searchsorted, got shape {x.shape}")
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'")
    if method not in ("default", "scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'")
    x, values = promote_types("searchsorted", x, values)
    if sorter is not None:
        x = x[array_of("searchsorted", sorter)]
    wanted = np.int64 if exceeds(x.shape[0], 2**31 - 1) else np.int32
    dtype = dtypes.check_user_dtype_supported(wanted, "searchsorted")
    return _bisect(x, values, side, dtype)


def _bisect(x: Array, values: Array, side: str, dtype: Any) -> Array:
    """How many elements come before each value, by halving the range of the answers.

    Halves are rounded so that all values search ranges of one length: it is known beforehand, and
    no element out of bounds is read.
    """
    n = x.shape[0]
    if is_symbolic(n):
        return _bisect_any_length(x, values, side, dtype)
    before = shapes.broadcast(EagerArray(np.zeros((), dtype)), values.shape)
    length = n
    while length > 1:
        half = length // 2
        length -= half
        here = x.at[lax.add(before, strong(before, half - 1))].get(mode="clip")
        further = lax.add(before, strong(before, half))
        before = choose(_is_passed(here, values, side), further, before)
    if not n:
        return before
    last = _is_passed(x.at[before].get(mode="clip"), values, side)
    return lax.add(before, as_type(last, dtype))


def _bisect_any_length(x: Array, values: Array, side: str, dtype: Any) -> Array:
    """The same for a length that is a symbol: ranges of values differ, and may be empty."""
    low = shapes.broadcast(EagerArray(np.zeros((), dtype)), values.shape)
    high = shapes.broadcast(size_array(x.shape[0], dtype), values.shape)
    for _ in range(np.iinfo(dtype).bits):
        middle = lax.add(low, lax.div(lax.sub(high, low), strong(low, 2)))
        right = _is_passed(x.at[middle].get(mode="clip"), values, side)
        right = bits.bitwise_and(right, lax.lt(low, high))
        low, high = (
            choose(right, lax.add(middle, strong(low, 1)), low),
            choose(right, high, lax.min(middle, high)),
        )
    return low


def _is_passed(here: Array, values: Array, side: str) -> Array:
    """Whether values belong after an element."""
    if side == "left":
        return _before(here, values)
    if not is_kind(here, np.inexact) or is_kind(here, np.complexfloating):
        return bits.bitwise_not(_before(values, here))
    # One comparison with each element: whether a value is NaN is known beforehand.
    return bits.bitwise_or(lax.le(here, values), lax.ne(values, values))


def _before(x: Array, y: Array) -> Array:
    """Whether x sorts before y; NaN comes after all numbers, as in `sort`."""
    smaller = less(x, y)
    if not is_kind(x, np.inexact):
        return smaller
    return bits.bitwise_or(smaller, bits.bitwise_and(lax.ne(y, y), lax.eq(x, x)))


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin that each value falls into.

    Args:
        x: the values.
        bins: the edges, rising or falling.
        right: whether a bin includes its right edge instead of its left one.
        method: as for `searchsorted`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.digitize(jnp.array([0.5, 1.5, 9.0]), jnp.array([0.0, 1.0, 2.0]))
        Array([1, 2, 3], dtype=int32)
    """
    x, edges = arrays_of("digitize", x, bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got shape {edges.shape}")
    n = edges.shape[0]
    if not n:
        return zeros(x.shape, np.int32)
    side = "left" if right else "right"
    options = {} if method is None else {"method": method}
    rises = lax.ge(edges[-1], edges[0])
    place = searchsorted(lax.select(rises, edges, shapes.rev(edges, (0,))), x, side, **options)
    return lax.select(rises, place, lax.sub(strong(place, n), place))


attach_shortcuts(globals())
