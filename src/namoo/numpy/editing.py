"""Elements repeated, chosen, inserted and left out; indices in other forms; bits packed."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.core.trace import Tracer
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import divmod as array_divmod
from namoo.numpy.creation import array, asarray, concrete, user_dtype, zeros_like
from namoo.numpy.grids import indices as grid_indices
from namoo.numpy.joining import concatenate
from namoo.numpy.manipulation import moveaxis, ravel, swapaxes
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    as_type,
    broadcast_arrays,
    broadcast_to,
    promote_types,
)
from namoo.numpy.reductions import any, reduced_axes, refuse_out
from namoo.numpy.same_type import is_kind, strong
from namoo.numpy.searching import nonzero
from namoo.numpy.selection import clip, where
from namoo.numpy.taking import take
from namoo.primitives import bits, cumulative, slicing
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes

RAISE_ADVICE = (
    "The error occurred because {} was jit-compiled with mode='raise'. "
    "Use mode='wrap' or mode='clip' instead."
)


def known_values(x: Any, what: str, advice: str) -> np.ndarray:
    """The values of an array that decide a shape; an error if they are not known."""
    if isinstance(x, Tracer):
        x = x.concrete(f"a concrete array for {what}", advice)
    return np.asarray(x)


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element repeated along an axis.

    Args:
        a: the array.
        repeats: how often: a number, or one for each element along the axis.
        axis: the axis; None for the flattened array.
        total_repeat_length: length of the result along the axis. With it `repeats` may be traced;
            a longer result is cut off, a shorter one repeats the last element.
        out_sharding: the sharding of the result; it has no effect on one device.

    Raises:
        ConcretizationTypeError: traced `repeats` without `total_repeat_length`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.repeat(jnp.array([1, 2]), 2), jnp.repeat(jnp.array([5, 6]), jnp.array([1, 3]))
        (Array([1, 1, 2, 2], dtype=int32), Array([5, 6, 6, 6], dtype=int32))
    """
    x = array_of("repeat", a)
    counts = array_of("repeat", repeats)
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
    axis = shapes.canonical_axis(operator.index(concrete(axis, "axis of jnp.repeat")), x.ndim)
    n = x.shape[axis]
    if total_repeat_length is None:
        known = known_values(
            counts,
            "the repeats of jnp.repeat, which decide the shape of the result",
            "Pass total_repeat_length=n, or a Python integer.",
        )
        if not known.ndim:
            return _spread(x, axis, int(known))
        total = int(np.broadcast_to(known.ravel(), (n,)).sum())
    else:
        total = operator.index(total_repeat_length)
    counts = broadcast_to(ravel(counts), (n,))
    if not total:
        return zeros_like(x, shape=(*x.shape[:axis], 0, *x.shape[axis + 1 :]))
    if not n:
        return x
    # Element k of the result comes from the first position whose running count is above k.
    ends = cumulative.cumsum(as_type(counts, np.dtype(np.int32)), 0)
    from namoo.numpy.searching import searchsorted

    places = searchsorted(ends, np.arange(total, dtype=np.int32), "right")
    return take(x, lax.min(places, strong(places, n - 1)), axis=axis)


def _spread(x: Array, axis: int, count: int) -> Array:
    shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    places = [i for i in range(len(shape)) if i != axis + 1]
    merged = (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
    return shapes.reshape(shapes.broadcast_in_dim(x, shape, places), merged)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each position, the element of the array that an index selects.

    Args:
        a: an array of integers.
        choices: arrays to choose from, broadcast against `a`.
        out: not supported.
        mode: what indices out of range do: 'raise', 'wrap' or 'clip'.

    Raises:
        ValueError: an index out of range, with mode 'raise'.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
        Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    index, *options = arrays_of("choose", a, *choices)
    if not is_kind(index, np.integer):
        raise ValueError("`a` array must be integer typed")
    n = len(options)
    if mode == "raise":
        known = known_values(
            index, "jnp.choose with mode='raise'", RAISE_ADVICE.format("jnp.choose")
        )
        if ((known < 0) | (known >= n)).any():
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        index = lax.rem(
            lax.add(lax.rem(index, strong(index, n)), strong(index, n)), strong(index, n)
        )
    elif mode == "clip":
        index = clip(index, 0, n - 1)
    else:
        raise ValueError(f"{mode=} not understood. Must be 'raise', 'wrap', or 'clip'")
    index, *options = broadcast_arrays(index, *promote_types("choose", *options)) if n else [index]
    table = array(options)
    return table[(index, *grid_indices(index.shape, sparse=True))]


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The slices along an axis for which a condition holds.

    Args:
        condition: boolean vector.
        a: the array.
        axis: the axis; None for the flattened array.
        size: how many slices to return, for use under `jit`.
        fill_value: what missing slices are filled with.
        out: not supported.

    Raises:
        ValueError: a condition that is true beyond the end of the axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
        Array([1, 3], dtype=int32)
    """
    refuse_out("compress", out)
    mask, x, fill = arrays_of("compress", condition, a, fill_value)
    mask = as_type(mask, np.dtype(np.bool_))
    if mask.ndim != 1:
        raise ValueError("condition must be a 1D array")
    x, axis = (ravel(x), 0) if axis is None else (moveaxis(x, axis, 0), axis)
    n = x.shape[0]
    mask, beyond = mask[:n], mask[n:]
    x = x[: mask.shape[0]]
    if size is None:
        if bool(any(beyond)):
            raise ValueError("condition contains entries that are out of bounds")
        return moveaxis(x[mask], 0, axis)
    if not 0 <= size <= x.shape[0]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"{size=} for a.shape[axis]={x.shape[0]}"
        )
    (places,) = nonzero(mask, size=size, fill_value=x.shape[0])
    found = take(x, places, axis=0, mode="clip")
    held = lax.lt(places, strong(places, x.shape[0]))
    held = shapes.reshape(held, (size, *(1,) * (x.ndim - 1)))
    return moveaxis(where(held, found, as_type(fill, x.dtype)), 0, axis)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """The elements for which a condition holds, as a vector.

    Args:
        condition: boolean array of the size of `arr`.
        arr: the array.
        size, fill_value: as for `compress`.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.arange(6)
        >>> jnp.extract(x % 2 == 0, x)
        Array([0, 2, 4], dtype=int32)
    """
    condition, x = arrays_of("extract", condition, arr)
    return compress(ravel(condition), ravel(x), size=size, fill_value=fill_value)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """The array with values put where a mask holds, one after another, repeated as needed.

    Args:
        arr: the array.
        mask: boolean array of its size.
        vals: the values.
        inplace: must be False: arrays are immutable.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.place(jnp.zeros(4), jnp.array([1, 0, 1, 1]), jnp.array([5.0, 6.0]), inplace=False)
        Array([5., 0., 6., 5.], dtype=float32)
    """
    if inplace:
        raise ValueError("Arrays are immutable: write x = jnp.place(x, mask, vals, inplace=False)")
    x, held, values = arrays_of("place", arr, mask, vals)
    values = ravel(values)
    if x.size != held.size:
        raise ValueError("place: arr and mask must be the same size")
    if not values.size:
        raise ValueError("Cannot place values from an empty array")
    if not x.size:
        return x
    flat = as_type(ravel(held), np.dtype(np.bool_))
    count = cumulative.cumsum(as_type(flat, np.dtype(np.int32)), 0)
    index = lax.rem(lax.sub(count, strong(count, 1)), strong(count, values.size))
    chosen = take(values, index, mode="clip")
    return shapes.reshape(where(flat, as_type(chosen, x.dtype), ravel(x)), x.shape)


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without some slices along an axis.

    Args:
        arr: the array.
        obj: an index, a slice, an array of indices, or a mask.
        axis: the axis; None for the flattened array.
        assume_unique_indices: promise that no index comes twice: then they may be traced.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.delete(jnp.array([4, 5, 6]), 1)
        Array([4, 6], dtype=int32)
    """
    x = array_of("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = shapes.canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(obj, (int, np.integer)):
        i = shapes.canonical_axis(int(obj), n, "index")
        parts = (
            slicing.slice_in_dim(x, 0, i, axis=axis),
            slicing.slice_in_dim(x, i + 1, n, axis=axis),
        )
        return concatenate(parts, axis)
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    index = array_of("delete", obj)
    if isinstance(index, Tracer) and assume_unique_indices and is_kind(index, np.integer):
        return _delete_traced(x, ravel(index), axis)
    advice = "Pass assume_unique_indices=True if no index comes twice."
    known = known_values(index, "the obj of jnp.delete, which decides the shape", advice)
    keep = np.ones(n, bool)
    if known.dtype == np.bool_:
        if known.shape != (n,):
            raise ValueError(
                "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with "
                f"length matching specified axis, {n}; got shape {known.shape}."
            )
        keep = ~known
    elif known.dtype.kind in "iu":
        keep[known] = False
    else:
        raise ValueError(
            f"np.delete(arr, obj): got obj.dtype={known.dtype}; must be integer or bool."
        )
    return take(x, np.flatnonzero(keep).astype(np.int32), axis=axis)


def _delete_traced(x: Array, index: Array, axis: int) -> Array:
    n, count = x.shape[axis], index.shape[0]
    index = where(index < 0, index + n, index)
    keep = array(np.ones(n, bool)).at[index].set(False)
    (places,) = nonzero(keep, size=n - count)
    return take(x, places, axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """The array with values inserted before some indices along an axis.

    Args:
        arr: the array.
        obj: an index, a slice, or a vector of indices.
        values: what is inserted, broadcast as needed.
        axis: the axis; None for the flattened array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
        Array([1, 9, 2, 3], dtype=int32)
    """
    x, values = arrays_of("insert", arr, values)
    if axis is None:
        x, axis = ravel(x), 0
    axis = shapes.canonical_axis(operator.index(concrete(axis, "axis of jnp.insert")), x.ndim)
    n = x.shape[axis]
    index = asarray(np.arange(n)[obj] if isinstance(obj, slice) else obj)
    if index.ndim > 1:
        raise ValueError(
            "jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; got "
            f"shape {index.shape}"
        )
    if not is_kind(index, np.integer):
        if index.size or isinstance(obj, Array):
            raise ValueError(f"jnp.insert(): index array must be integer typed; got {index.dtype}")
        index = as_type(index, dtypes.default_int_dtype())
    values = array(values, ndmin=x.ndim, dtype=x.dtype, copy=False)
    if index.size == 1:
        if not index.ndim:
            values = moveaxis(values, 0, axis)
        index = broadcast_to(ravel(index), (values.shape[axis],))
    count = sizes.broadcast_shapes(index.shape, (values.shape[axis],))[0]
    shape = [*x.shape]
    shape[axis] = n + count
    index = clip(where(index < 0, index + n, index), 0, n)
    from namoo.primitives.sorting import sort_key_val

    # Values go after those that are inserted before them; equal indices keep their order.
    _, order = sort_key_val(index, np.arange(count, dtype=index.dtype))
    index = index.at[order].add(np.arange(count, dtype=index.dtype))
    old = array(np.ones(n + count, bool)).at[index].set(False)
    (places,) = nonzero(old, size=n)
    lead = (slice(None),) * axis
    out = zeros_like(x, shape=tuple(shape))
    return out.at[(*lead, index)].set(values).at[(*lead, places)].set(x)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """The array without zeros at its ends.

    Args:
        filt: a concrete array.
        trim: 'f' for the front, 'b' for the back, 'fb' for both.
        axis: which axes; all by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
        Array([1, 0, 2], dtype=int32)
    """
    x = array_of("trim_zeros", filt)
    advice = "The result's shape depends on values; jnp.where keeps the shape."
    nonzero_at = known_values(x, "the argument of jnp.trim_zeros", advice) != 0
    axes = reduced_axes(axis, x.ndim, "trim_zeros")
    ends = trim.lower()
    index = []
    for i in range(x.ndim):
        others = tuple(j for j in range(x.ndim) if j != i)
        held = np.flatnonzero(nonzero_at.any(axis=others))
        if i not in axes or not ("f" in ends or "b" in ends):
            index.append(slice(None))
        elif not held.size:
            index.append(slice(0, 0))
        else:
            start = int(held[0]) if "f" in ends else None
            index.append(slice(start, int(held[-1]) + 1 if "b" in ends else None))
    return x[tuple(index)]


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """The index along each axis, for indices into the flattened array.

    Args:
        indices: an array of integers; those out of range are clamped.
        shape: the shape, or its only length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unravel_index(jnp.array([5, 6]), (2, 4))
        (Array([1, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    index = array_of("unravel_index", indices)
    sizes = list(shape) if isinstance(shape, (tuple, list)) or np.ndim(shape) else [shape]
    if builtin_any(np.ndim(n) for n in sizes):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    out: list[Any] = []
    for n in reversed(sizes):
        index, rest = array_divmod(index, n)
        out.insert(0, rest)
    above = index > 0
    below = index < -1 if not is_kind(index, np.unsignedinteger) else np.asarray(False)
    return tuple(where(above, n - 1, where(below, 0, i)) for n, i in zip(sizes, out, strict=True))


def builtin_any(values: Any) -> bool:
    """Python's `any`; in this module that name is the reduction."""
    return True in map(bool, values)


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """The index into the flattened array, for an index along each axis.

    Args:
        multi_index: an array of integers for each axis.
        dims: the shape.
        mode: what indices out of range do: 'raise', 'wrap', 'clip' or 'ignore'.
        order: 'C' for the last axis fastest, 'F' for the first.
        dtype: type of the result.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ravel_multi_index((jnp.array([1, 1]), jnp.array([1, 2])), (2, 4))
        Array([5, 6], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise AssertionError(f"{len(multi_index)=} is not {len(dims)=}")
    sizes = [operator.index(concrete(d, "`dims` of ravel_multi_index")) for d in dims]
    parts = arrays_of("ravel_multi_index", *multi_index)
    if dtype is None:
        kind = dtypes.result_type(int, *parts)
    else:
        kind = user_dtype(dtype, "ravel_multi_index")
    if not dtypes.issubdtype(kind, np.integer):
        raise ValueError(f"dtype={kind} is not an integer type.")
    if math.prod(sizes) - 1 > dtypes.iinfo(kind).max:
        raise ValueError(
            f"jnp.ravel_multi_index: {kind} is not large enough to hold flattened indices for "
            f"{dims=}. Pass a wider dtype."
        )
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(f"invalid {mode=}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order not in ("C", "F"):
        raise ValueError(f"invalid {order=}. Expected 'C' or 'F'")
    strides = [math.prod(sizes[i + 1 :] if order == "C" else sizes[:i]) for i in range(len(sizes))]
    out: Any = EagerArray(np.zeros((), kind))
    for part, n, stride in zip(parts, sizes, strides, strict=True):
        index = _in_range(part, n, mode)
        out = out + as_type(index, kind) * stride
    return out


def _in_range(index: Array, n: int, mode: str) -> Array:
    if mode == "raise":
        advice = RAISE_ADVICE.format("ravel_multi_index")
        known = known_values(index, "ravel_multi_index with mode='raise'", advice)
        if not is_kind(index, np.integer):
            raise TypeError("only int indices permitted")
        if ((known < 0) | (known >= n)).any():
            raise ValueError("invalid entry in coordinates array")
    if not is_kind(index, np.integer):
        raise TypeError("only int indices permitted")
    if mode == "clip":
        return clip(index, 0, n - 1)
    return index % n if mode == "wrap" else index


def _bit_order(order: str) -> np.ndarray:
    if order not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    line = np.arange(8, dtype=np.uint8)
    return line if order == "little" else line[::-1].copy()


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Truth values packed as the bits of bytes along an axis.

    Args:
        a: an array of integers or booleans.
        axis: the axis; None for the flattened array.
        bitorder: whether the first element is the highest bit ('big') or the lowest.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
        Array([131, 128], dtype=uint8)
    """
    x = array_of("packbits", a)
    if is_kind(x, np.inexact):
        raise TypeError(f"Expected an array of integer or boolean data type, got {x.dtype}")
    shifts = _bit_order(bitorder)
    x = as_type(lax.ne(x, strong(x, 0)), np.dtype(np.uint8))
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    x = swapaxes(x, axis, -1)
    missing = -x.shape[-1] % 8
    config = [(0, 0, 0)] * (x.ndim - 1) + [(0, missing, 0)]
    x = slicing.pad(x, np.uint8(0), config)
    x = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    shifts = shapes.broadcast_in_dim(shifts, x.shape, (x.ndim - 1,))
    packed = shapes.reduce_sum(bits.shift_left(x, shifts), (x.ndim - 1,))
    return swapaxes(packed, axis, -1)


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes along an axis, as zeros and ones.

    Args:
        a: an array of uint8.
        axis: the axis; None for the flattened array.
        count: how many bits; missing ones are zero.
        bitorder: whether the highest bit comes first ('big') or the lowest.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unpackbits(jnp.array([131], dtype="uint8"))
        Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    x = array_of("unpackbits", a)
    if x.dtype != np.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type, got {x.dtype}")
    shifts = _bit_order(bitorder)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    x = swapaxes(x, axis, -1)
    shape = (*x.shape, 8)
    wide = shapes.broadcast_in_dim(x, shape, range(x.ndim))
    shifted = bits.shift_right_logical(wide, shapes.broadcast_in_dim(shifts, shape, (x.ndim,)))
    out = bits.bitwise_and(shifted, np.uint8(1))
    out = shapes.reshape(out, (*x.shape[:-1], 8 * x.shape[-1]))
    if count is not None:
        n = out.shape[-1]
        kept = count if count >= 0 else n + count
        config = [(0, 0, 0)] * (out.ndim - 1) + [(0, kept - n, 0)]
        out = slicing.pad(out, np.uint8(0), config)
    return swapaxes(out, axis, -1)


attach_shortcuts(globals())
