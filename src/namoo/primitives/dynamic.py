"""Slices at computed places: `dynamic_slice` and `dynamic_update_slice`, each other's transpose."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import _dtypes
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive, is_linear
from namoo.core.trace import Tracer
from namoo.primitives.elementwise import add, lt, rem, select
from namoo.primitives.gather import gather_p, scatter_p
from namoo.primitives.shape import (
    Axes,
    broadcast,
    canonical_axis,
    expand_dims,
    instantiate,
    moveaxis,
    reshape,
    shape_of,
    squeeze,
    zeros,
)
from namoo.primitives.slicing import concatenate, index_in_dim, insert
from namoo.primitives.windows import (
    CLIP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)


def _box(shape: tuple[int, ...], starts: Sequence[np.ndarray], sizes: tuple[int, ...]) -> tuple:
    """The slices of a box that is moved inside the array."""
    index = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        begin = int(start)
        begin = 0 if begin < 0 else begin if begin <= n - size else n - size
        index.append(slice(begin, begin + size))
    return tuple(index)


class DynamicSlice(Primitive):
    """A box of fixed size at computed starts; it is moved inside the array where it is not."""

    name = "dynamic_slice"
    weak_operands = slice(1)

    def evaluate(self, x, *starts, slice_sizes):
        return x[_box(x.shape, starts, slice_sizes)]

    def abstract(self, x, *starts, slice_sizes):
        if len(slice_sizes) != x.ndim or not all(
            0 <= size <= n for size, n in zip(slice_sizes, x.shape, strict=True)
        ):
            raise TypeError(
                "dynamic_slice: slice_sizes must have one entry from 0 to its length for each "
                f"axis, got {slice_sizes} for an operand of shape {x.shape}."
            )
        _check_starts("dynamic_slice", x, starts)
        return x.update(shape=slice_sizes)

    def jvp(self, primals, tangents, *, slice_sizes):
        out = self.bind(*primals, slice_sizes=slice_sizes)
        return out, self.bind(tangents[0], *primals[1:], slice_sizes=slice_sizes)

    def transpose(self, ct, x, *starts, slice_sizes):
        out = dynamic_update_slice_p.bind(zeros(x.aval), ct, *starts)
        return [out, *(None for _ in starts)]

    def batch(self, xs, dims, *, slice_sizes):
        x, *starts = xs
        if all(d is None for d in dims[1:]):
            d = dims[0]
            starts.insert(d, _start_like(starts))
            sizes = insert(slice_sizes, d, shape_of(x)[d])
            return self.bind(x, *starts, slice_sizes=sizes), d
        ndim = len(slice_sizes)
        dnums = GatherDimensionNumbers(tuple(range(ndim)), (), tuple(range(ndim)))
        indices, d = _batched_starts(starts, dims[1:])
        return gather_p.batch(
            (x, indices),
            (dims[0], d),
            dimension_numbers=dnums,
            slice_sizes=slice_sizes,
            indices_are_sorted=True,
            unique_indices=True,
            mode=CLIP,
            fill_value=None,
        )


def _start_like(starts: Sequence[Any]) -> Any:
    """The start 0, of the dtype of the others."""
    dtype = aval_of(starts[0]).dtype if starts else np.int32
    return np.zeros((), dtype)


def _batched_starts(starts: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """One array of starts whose leading axis is the mapped one, and that axis."""
    size = next(shape_of(s)[d] for s, d in zip(starts, dims, strict=True) if d is not None)
    columns = [
        reshape(broadcast(s, (size,)) if d is None else s, (size, 1))
        for s, d in zip(starts, dims, strict=True)
    ]
    return concatenate(columns, 1), 0


def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    found = ", ".join(s.str_short() for s in starts)
    if len(starts) != x.ndim:
        raise TypeError(
            f"{name}: there must be one start for each axis, got {len(starts)} for an operand of "
            f"shape {x.shape}."
        )
    if any(s.shape for s in starts):
        raise TypeError(f"{name}: start_indices must be scalars, got {found}.")
    dtypes = {s.dtype for s in starts}
    if len(dtypes) > 1 or not all(_dtypes.issubdtype(dtype, np.integer) for dtype in dtypes):
        raise TypeError(f"{name}: start_indices must be integers of the same type, got: {found}.")


dynamic_slice_p = DynamicSlice()


class DynamicUpdateSlice(Primitive):
    """A copy of an array in which a box at computed starts is replaced."""

    name = "dynamic_update_slice"

    def evaluate(self, x, update, *starts):
        out = x.copy()
        out[_box(x.shape, starts, update.shape)] = update
        return out

    def abstract(self, x, update, *starts):
        if x.dtype != update.dtype:
            raise TypeError(
                "lax.dynamic_update_slice requires arguments to have the same dtypes, got "
                f"{x.dtype}, {update.dtype}."
            )
        if x.ndim != update.ndim or any(
            size > n for size, n in zip(update.shape, x.shape, strict=True)
        ):
            raise TypeError(
                "dynamic_update_slice: update must have as many axes as operand, none of them "
                f"longer; got update shape {update.shape} for operand shape {x.shape}."
            )
        _check_starts("dynamic_update_slice", x, starts)
        weak = x.weak_type and update.weak_type and all(s.weak_type for s in starts)
        return x.update(weak_type=weak)

    def jvp(self, primals, tangents):
        x, update, *starts = primals
        out = self.bind(x, update, *starts)
        dx, du, *_ = tangents
        return out, self.bind(instantiate(dx), instantiate(du), *starts)

    def transpose(self, ct, x, update, *starts):
        aval = update.aval if is_linear(update) else aval_of(update)
        dx = self.bind(ct, zeros(aval.strong()), *starts) if is_linear(x) else None
        du = None
        if is_linear(update):
            du = dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
        return [dx, du, *(None for _ in starts)]

    def batch(self, xs, dims):
        x, update, *starts = xs
        if all(d is None for d in dims[2:]):
            size = next(shape_of(a)[d] for a, d in zip(xs, dims, strict=True) if d is not None)
            x, update = (
                broadcast(a, (size,)) if d is None else moveaxis(a, d, 0)
                for a, d in zip((x, update), dims, strict=False)
            )
            return self.bind(x, update, _start_like(starts), *starts), 0
        indices, d = _batched_starts(starts, dims[2:])
        every = tuple(range(len(starts)))
        return scatter_p.batch(
            (x, indices, update),
            (dims[0], d, dims[1]),
            dimension_numbers=ScatterDimensionNumbers(every, (), every),
            indices_are_sorted=True,
            unique_indices=True,
            mode=CLIP,
        )


dynamic_update_slice_p = DynamicUpdateSlice()


def _normal_starts(
    name: str, shape: tuple[int, ...], starts: Any, negative: bool | Sequence[bool]
) -> list[Any]:
    """Scalar starts of one integer type; negative ones count from the end, where allowed."""
    if isinstance(starts, (EagerArray, Tracer, np.ndarray)):
        if len(shape_of(starts)) != 1:
            raise ValueError(
                f"{name}: start_indices must be a sequence of scalars or a 1-dimensional array, "
                f"got shape {shape_of(starts)}."
            )
        if isinstance(starts, Tracer):
            starts = [index_in_dim(starts, i, keepdims=False) for i in range(shape_of(starts)[0])]
        else:
            starts = list(np.asarray(getattr(starts, "_value", starts)))
    if len(starts) != len(shape):
        raise ValueError(
            f"{name}: the number of start_indices must be the number of axes, got {len(starts)} "
            f"for an operand of shape {shape}."
        )
    allowed = [negative] * len(shape) if isinstance(negative, bool) else list(negative)
    if len(allowed) != len(shape):
        raise ValueError(
            f"{name}: allow_negative_indices must be one boolean or one for each axis, got "
            f"{negative} for an operand of shape {shape}."
        )
    # Python integers take the type of the arrays beside them.
    dtype = next((aval_of(s).dtype for s in starts if not isinstance(s, int)), None)
    out = []
    for start, n, from_end in zip(starts, shape, allowed, strict=True):
        if isinstance(start, (int, np.integer, np.ndarray, EagerArray)) and not shape_of(start):
            out.append(_concrete_start(name, start, n, from_end, dtype))
        elif from_end and _dtypes.issubdtype(aval_of(start).dtype, np.signedinteger):
            kind = aval_of(start).dtype
            length = np.asarray(n).astype(kind)
            moved = add(start, length)
            out.append(select(lt(start, np.zeros((), kind)), moved, start))
        else:
            out.append(start)
    return out


def _concrete_start(name: str, start: Any, n: int, from_end: bool, dtype: Any) -> Any:
    own = aval_of(start)
    if not _dtypes.issubdtype(own.dtype, np.integer):
        raise TypeError(
            f"{name}: start_indices must be integers of the same type, got: {own.str_short()}."
        )
    python = isinstance(start, int)
    place = start if python else int(getattr(start, "_value", start))
    if place < 0:
        if from_end:
            place = place + n
        elif python:
            raise ValueError(
                f"{name}: index {place} is out of bounds for an axis of length {n} with "
                "allow_negative_indices=False."
            )
    kind = dtype if python and dtype is not None else own.dtype
    # A start far outside means the nearest place inside: no need to fit it into the type.
    return EagerArray(np.asarray(min(max(place, -1), n)).astype(kind), own.weak_type and python)


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A box of fixed size, at starts that may be computed.

    A box that would reach outside is moved inside: `start = clip(start, 0, length - size)`.

    Args:
      operand: an array.
      start_indices: one integer scalar for each axis, or a vector of them.
      slice_sizes: the lengths of the box; Python integers.
      allow_negative_indices: whether negative starts count from the end of their axis.

    Raises:
      TypeError: starts are not integers of one type, or the box is larger than the array.
      ValueError: the number of starts is not the number of axes.

    >>> import namoo.numpy as jnp
    >>> dynamic_slice(jnp.arange(12).reshape(3, 4), (1, 3), (2, 2))
    Array([[ 6,  7],
           [10, 11]], dtype=int32)
    """
    shape = shape_of(operand)
    starts = _normal_starts("dynamic_slice", shape, start_indices, allow_negative_indices)
    sizes = canonical_shape(slice_sizes)
    dynamic_slice_p.abstract(aval_of(operand), *map(aval_of, starts), slice_sizes=sizes)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_slice` along one axis.

    >>> import namoo.numpy as jnp
    >>> dynamic_slice_in_dim(jnp.arange(6), 2, 3)
    Array([2, 3, 4], dtype=int32)
    """
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    starts: list[Any] = [0] * len(shape)
    sizes = list(shape)
    starts[axis], sizes[axis] = start_index, operator.index(slice_size)
    return dynamic_slice(
        operand, starts, sizes, allow_negative_indices=_only(axis, shape, allow_negative_indices)
    )


def _only(axis: int, shape: tuple[int, ...], flag: bool) -> list[bool]:
    return [flag if i == axis else True for i in range(len(shape))]


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """One place along an axis, at an index that may be computed.

    >>> import namoo.numpy as jnp
    >>> dynamic_index_in_dim(jnp.arange(6).reshape(2, 3), 1, keepdims=False)
    Array([3, 4, 5], dtype=int32)
    """
    axis = canonical_axis(axis, len(shape_of(operand)))
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A copy of `operand` with the box at `start_indices` replaced by `update`.

    A box that would reach outside is moved inside: `start = clip(start, 0, length - size)`.

    Args:
      operand: an array.
      update: the new box: as many axes, the same dtype.
      start_indices: one integer scalar for each axis, or a vector of them.
      allow_negative_indices: whether negative starts count from the end of their axis.

    Raises:
      TypeError: dtypes differ, or the update is larger than the array.
      ValueError: the number of starts is not the number of axes.

    >>> import namoo.numpy as jnp
    >>> dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (3,))
    Array([0., 0., 0., 1., 1.], dtype=float32)
    """
    shape = shape_of(operand)
    starts = _normal_starts("dynamic_update_slice", shape, start_indices, allow_negative_indices)
    dynamic_update_slice_p.abstract(aval_of(operand), aval_of(update), *map(aval_of, starts))
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_update_slice` along one axis.

    >>> import namoo.numpy as jnp
    >>> dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, axis=0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    starts: list[Any] = [0] * len(shape)
    starts[axis] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=_only(axis, shape, allow_negative_indices)
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """A copy of `operand` with one place along an axis replaced by `update`.

    >>> import namoo.numpy as jnp
    >>> dynamic_update_index_in_dim(jnp.zeros(4), 7.0, 2, axis=0)
    Array([0., 0., 7., 0.], dtype=float32)
    """
    axis = canonical_axis(axis, len(shape_of(operand)))
    if len(shape_of(update)) != len(shape_of(operand)):
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Axes) -> Any:
    """Read slices along several axes at once; indices count modulo the axis.

    Args:
      src: the array to read from.
      idxs: for each axis in `axes` a vector of indices, all of one length.
      axes: the axes that are indexed; the result has one axis for them, in front.

    >>> import namoo.numpy as jnp
    >>> index_take(jnp.arange(6).reshape(2, 3), (jnp.array([0, 1]), jnp.array([2, -1])), (0, 1))
    Array([2, 5], dtype=int32)
    """
    shape, axes = shape_of(src), tuple(map(operator.index, axes))
    columns = [
        expand_dims(_modulo(index, shape[axis]), (1,))
        for index, axis in zip(idxs, axes, strict=True)
    ]
    kept = tuple(range(1, len(shape) - len(axes) + 1))
    return gather_p.bind(
        src,
        concatenate(columns, 1),
        dimension_numbers=GatherDimensionNumbers(kept, tuple(sorted(axes)), axes),
        slice_sizes=tuple(1 if d in axes else n for d, n in enumerate(shape)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _modulo(index: Any, n: int) -> Any:
    size = np.asarray(n, aval_of(index).dtype)
    return rem(add(rem(index, size), size), size)
