"""Sorting several arrays by some of them, and the k largest elements.

`sort` puts NaN last and treats -0 and 0 as equal.  `top_k` orders all floats: NaN above infinity,
0 above -0, and a NaN with a minus sign below everything.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.primitives.cumulative import accepted
from namoo.primitives.elementwise import neg
from namoo.primitives.families import accepts, floating, ordered
from namoo.primitives.gather import gather
from namoo.primitives.gather_dimensions import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from namoo.primitives.shape import (
    broadcast,
    broadcasted_iota,
    canonical_axis,
    convert_element_type,
    expand_dims,
    moveaxis,
    shape_of,
    zeros,
)

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "sort_p", "top_k", "top_k_p"]


def _sortable(x: np.ndarray) -> list[np.ndarray]:
    """Arrays of types that NumPy sorts well, which, as successive keys, sort like `x`."""
    if x.dtype.kind == "c":
        return [np.real(x), np.imag(x)]
    if x.dtype.isbuiltin != 1:
        return [x.astype(np.float32 if accepts(x.dtype, floating) else np.int8)]
    return [x]


def _sort_values(x: np.ndarray, axis: int, is_stable: bool) -> np.ndarray:
    """One array sorted by itself."""
    if x.dtype.isbuiltin != 1:
        return np.sort(_sortable(x)[0], axis, kind="stable").astype(x.dtype)
    out = x.copy()
    # Only zeros of both signs show whether a sort of floats is stable; others are far faster.
    keep = is_stable and x.dtype.kind == "f" and (x.size < 500 or _has_negative_zero(x))
    out.sort(axis, kind="stable" if keep else None)
    return out


def _has_negative_zero(x: np.ndarray) -> bool:
    return bool(((x == 0) & np.signbit(x)).any())


def _take_along(x: np.ndarray, order: np.ndarray, axis: int) -> np.ndarray:
    """Elements at given indices along one axis."""
    return x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)


class Sort(Primitive):
    """Sort along one axis by the first `num_keys` operands, and reorder the others with them."""

    name = "sort"
    multiple_results = True

    def evaluate(self, *xs, dimension, is_stable, num_keys):
        for x in xs:
            if x.shape != xs[0].shape:
                raise TypeError("shapes differ")
        for x in xs[:num_keys]:
            if x.dtype not in _SORTED_TYPES:
                raise TypeError("keys cannot be ordered")
        if len(xs) == 1 and xs[0].dtype.kind != "c":
            return [_sort_values(xs[0], dimension, is_stable)]
        keys = [part for x in xs[:num_keys] for part in _sortable(x)]
        if len(keys) == 1:
            order = np.argsort(keys[0], dimension, kind="stable")
        else:
            order = np.lexsort(keys[::-1], dimension)
        return [_take_along(x, order, dimension) for x in xs]

    def abstract(self, *avals, dimension, is_stable, num_keys):
        if len({a.shape for a in avals}) > 1:
            shapes = " ".join(str(aval.shape) for aval in avals)
            raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
        for aval in avals[:num_keys]:
            if not accepts(aval.dtype, _SORTED):
                raise TypeError(
                    f"sort cannot order elements of dtype {aval.dtype}: keys are numbers or "
                    "booleans. Other arrays may go along, after the first num_keys operands."
                )
        weak = all(a.weak_type for a in avals)
        return [a.update(weak_type=weak) for a in avals]

    def sharded(self, *xs, dimension, **params):
        for x in xs:
            what = "Arguments to sort must be unsharded over the sorting dimension"
            rules.unsplit(what, x, [dimension])
        return [rules.same("sort", xs, "arguments must have the same shardings, got")] * len(xs)

    def jvp(self, primals, tangents, *, dimension, is_stable, num_keys):
        places = broadcasted_iota(np.int32, shape_of(primals[0]), dimension)
        *outs, order = self.bind(
            *primals, places, dimension=dimension, is_stable=is_stable, num_keys=num_keys
        )
        if all(aval_of(x).weak_type for x in primals):  # the indices are never weak
            outs = [convert_element_type(x, aval_of(x).dtype, weak_type=True) for x in outs]
        out_tangents = [
            Zero.of(out) if is_zero(t) else take_along(t, order, dimension, unique=True)
            for out, t in zip(outs, tangents, strict=True)
        ]
        return outs, out_tangents

    def batch(self, xs, dims, *, dimension, **params):
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        xs = [
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        ]
        return self.bind(*xs, dimension=dimension + 1, **params), [0] * len(xs)

    def native(self, emit, *xs, dimension, is_stable, num_keys):
        return emit.sort(xs, dimension, num_keys)

    def stablehlo(self, hlo, *xs, dimension, is_stable, num_keys):
        def before(*pairs):
            out = None
            for x, y in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))[:num_keys]):
                x, y = _normal_in_xla(hlo, x), _normal_in_xla(hlo, y)
                less = hlo.less(x, y, total=True)
                tie = hlo.op("not", hlo.less(y, x, total=True), result=less)
                out = less if out is None else hlo.combine("or", less, hlo.combine("and", tie, out))
            return [out]

        kinds = [((), x.dtype) for x in xs for _ in range(2)]
        return hlo.op(
            "sort",
            *xs,
            result=list(hlo.avals),
            dimension=dimension,
            is_stable=is_stable,
            regions=[hlo.region(kinds, before)],
        )


def _normal_in_xla(hlo: Any, x: Any) -> Any:
    """`x` with one zero and one NaN, so that the total order of floats is the order of sorting."""
    if x.dtype.kind == "c":
        return hlo.op("complex", *(_normal_in_xla(hlo, part) for part in hlo.parts(x)), result=x)
    if not accepts(x.dtype, floating):
        return x
    zero, nan = hlo.constant(0, x.dtype), hlo.constant(np.nan, x.dtype)
    x = hlo.select(hlo.compare(x, zero, "EQ"), zero, x)
    return hlo.select(hlo.compare(x, x, "NE"), nan, x)


_SORTED = (*ordered, np.complexfloating)
_SORTED_TYPES = accepted(_SORTED)


sort_p = Sort()


def take_along(x: Any, indices: Any, axis: int, unique: bool = False) -> Any:
    """Elements of `x` at given indices along one axis; the indices must be valid."""
    if 0 in shape_of(indices):
        return zeros(aval_of(x).update(shape=shape_of(indices)))
    others = tuple(i for i in range(len(shape_of(x))) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(
        x,
        expand_dims(indices, (len(shape_of(indices)),)),
        numbers,
        (1,) * len(shape_of(x)),
        unique_indices=unique,
        mode=PROMISE_IN_BOUNDS,
    )


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort one array, or several arrays in the same way, along an axis.

    NaN comes last; -0 and 0 are treated as equal; complex numbers are ordered by their real part,
    and then by their imaginary part.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the axis.
        is_stable: whether equal elements keep their order.
        num_keys: how many of the arrays are compared, the first one first.

    Returns:
        The sorted array, or a tuple of the arrays.

    Raises:
        ValueError: the axis or `num_keys` is out of range.
        TypeError: the shapes differ, or there is no array.

    Example:
        >>> import namoo.numpy as jnp
        >>> sort((jnp.array([3, 1, 2]), jnp.array([10, 20, 30])))
        (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    several = isinstance(operand, Sequence)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort requires at least one operand")
    num_keys = operator.index(num_keys)
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    outs = sort_p.bind(
        *operands,
        dimension=canonical_axis(dimension, len(shape_of(operands[0]))),
        is_stable=bool(is_stable),
        num_keys=num_keys,
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """Sort `keys` along an axis, and `values` with them.

    Example:
        >>> import namoo.numpy as jnp
        >>> sort_key_val(jnp.array([3, 1, 2]), jnp.array([10, 20, 30]))[1]
        Array([20, 30, 10], dtype=int32)
    """
    return sort((keys, values), dimension, is_stable)


def _descending(x: np.ndarray) -> np.ndarray:
    """Signed integers whose increasing order is the decreasing total order of the elements."""
    if x.dtype.kind in "bi":
        return ~x
    if x.dtype.kind == "u":
        sign = x.dtype.type(1 << (8 * x.itemsize - 1))
        return (~x ^ sign).view(f"i{x.itemsize}")
    if accepts(x.dtype, (np.integer,)):
        return ~x.astype(np.int8)
    bits = np.ascontiguousarray(x).view(f"i{x.itemsize}")
    # Below zero, larger bits mean smaller numbers.
    highest = np.iinfo(bits.dtype).max
    return ~np.where(bits < 0, bits ^ highest, bits)


class TopK(Primitive):
    """The k largest elements along an axis, in order, and their indices."""

    name = "top_k"
    multiple_results = True

    def evaluate(self, x, *, k, axis):
        rank = _descending(x)
        n = x.shape[axis]
        if 0 < k <= n // 8 and rank.itemsize <= 4:
            # For few out of many: one number combines rank and index, so that no two are equal.
            line = [1] * x.ndim
            line[axis] = n
            code = (rank.astype(np.int64) << 32) | np.arange(n).reshape(line)
            code.partition(k - 1, axis)
            code = code[(slice(None),) * axis + (slice(k),)]
            order = np.sort(code, axis) & 0xFFFFFFFF
        else:
            order = rank.argsort(axis, kind="stable")[(slice(None),) * axis + (slice(k),)]
        return [_take_along(x, order, axis), order.astype(np.int32)]

    def abstract(self, x, *, k, axis):
        if k < 0:
            raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
        if k > x.shape[axis]:
            raise ValueError(
                "k argument to top_k must be no larger than size along axis; "
                f"got k={k} with shape={x.shape} and axis={axis}"
            )
        if x.shape[axis] > 2**31:
            raise ValueError(
                "top_k returns int32 indices, which will overflow for array dimensions larger than "
                f"the maximum int32 (2147483647); got shape={x.shape} and axis={axis}"
            )
        if not accepts(x.dtype, ordered):
            raise ValueError(f"top_k needs integers, floats or booleans; got dtype {x.dtype}.")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [x.update(shape=shape), x.update(shape=shape, dtype=np.dtype(np.int32))]

    def sharded(self, x, *, k, axis):
        what = "The input should be unsharded over the axis along which to compute the top_k values"
        return [rules.unsplit(what, x, [axis])] * 2

    def jvp(self, primals, tangents, *, k, axis):
        out, places = self.bind(*primals, k=k, axis=axis)
        return [out, places], [take_along(tangents[0], places, axis, unique=True), Zero.of(places)]

    def batch(self, xs, dims, *, k, axis):
        (x,), (d,) = xs, dims
        return self.bind(x, k=k, axis=axis + (axis >= d)), [d, d]

    def native(self, emit, x, *, k, axis):
        return emit.sort([x], axis, 1, top=k)

    def stablehlo(self, hlo, x, *, k, axis):
        if k == 0:
            return [hlo.constant(0, out.dtype, out.shape) for out in hlo.avals]
        order = [i for i in range(x.ndim) if i != axis] + [axis]
        moved = hlo.transpose(x, order)
        if accepts(x.dtype, (np.integer,)) and x.dtype.kind == "V":
            moved = hlo.convert(moved, np.int8)
        shape = (*moved.shape[:-1], k)
        outs = hlo.op("chlo.top_k", moved, result=[(shape, moved.dtype), (shape, np.int32)], k=k)
        values, places = (hlo.transpose(out, np.argsort(order).tolist()) for out in outs)
        return [hlo.convert(values, x.dtype), places]


top_k_p = TopK()


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """The k largest elements along an axis, largest first, and their indices.

    Of equal elements the first one comes first.  NaN is larger than all numbers.

    Args:
        operand: an array of integers, floats or booleans.
        k: how many.
        axis: along which axis.

    Returns:
        The values, and their indices of type int32, in a list.

    Raises:
        ValueError: k is negative or larger than the axis, or the operand is complex.

    Example:
        >>> import namoo.numpy as jnp
        >>> top_k(jnp.array([9.0, 3.0, 6.0, 4.0]), 2)
        [Array([9., 6.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    params = {"k": operator.index(k), "axis": canonical_axis(axis, len(shape_of(operand)))}
    top_k_p.abstract(aval_of(operand), **params)
    return top_k_p.bind(operand, **params)


def _approximate_size(n: int, rank: int, k: int, recall: float, size: int) -> int:
    """How many candidates an accelerator would keep of n elements: few enough to be fast, and
    enough that a fraction `recall` of the k largest is among them."""
    tile = 1024 if rank == 1 else 128
    if n <= tile:
        return n
    if k == 1:
        return tile
    logical = n if size < 0 else size
    wanted = n if recall == 1 else min(max(int((1 - k) / math.log(recall)), tile), n)
    halvings = (logical // wanted).bit_length() - 1
    if halvings == 0:
        return n
    halvings = min(halvings, (n // tile - 1).bit_length())
    tiles = -(-n // tile)
    return -(-tiles // (1 << halvings)) * tile


def _approximate(x, k, dimension, recall, size, aggregate) -> list[Any]:
    aval = aval_of(x)
    dimension = canonical_axis(dimension, aval.ndim)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError(f"operand must be a floating type, got {aval.dtype}")
    if not 0 < recall <= 1:
        raise ValueError(f"recall_target must be in (0, 1], got {recall}")
    n = aval.shape[dimension]
    if k > n:
        raise ValueError(f"k must be smaller than the size of reduction_dim {n}, got {k}")
    if 0 <= size < n:
        raise ValueError(
            f"reduction_input_size_override must be at least the size of the axis, {n}, got {size}"
        )
    if not aggregate:
        # A part of a larger array may have more slots for candidates than elements.
        k = min(n, _approximate_size(n, aval.ndim, k, recall, size))
    return top_k(x, k, axis=dimension)


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k largest elements along an axis, where an accelerator may miss some; here none is.

    Args:
        operand: an array of floats.
        k: how many.
        reduction_dimension: the axis.
        recall_target: what fraction of the k largest must be found.
        reduction_input_size_override: the size to compute the recall for, if `operand` is a part.
        aggregate_to_topk: whether to return k elements; otherwise all candidates.

    Returns:
        The values, largest first, and their indices.

    Example:
        >>> import namoo.numpy as jnp
        >>> approx_max_k(jnp.array([9.0, 3.0, 6.0, 4.0]), 2)
        [Array([9., 6.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approximate(
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k smallest elements along an axis, where an accelerator may miss some; here none is.

    The arguments are those of `approx_max_k`.

    Example:
        >>> import namoo.numpy as jnp
        >>> approx_min_k(jnp.array([9.0, 3.0, 6.0, 4.0]), 2)
        [Array([3., 4.], dtype=float32), Array([1, 3], dtype=int32)]
    """
    values, places = _approximate(
        neg(operand),
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )
    return [neg(values), places]
