"""Cut arrays and join them: slices at static and dynamic starts, padding, concatenation."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo.analysis import sharding_rules as rules
from namoo.analysis.checks import Guard
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive, is_linear
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import dimension
from namoo.eager import attach_shortcuts
from namoo.primitives.elementwise import select, sub
from namoo.primitives.gather import gather_p, scatter_p
from namoo.primitives.gather_dimensions import (
    CLIP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from namoo.primitives.shape import (
    broadcast,
    broadcast_to,
    canonical_axis,
    expand_dims,
    instantiate,
    moveaxis,
    reduce_sum,
    reshape,
    shape_of,
    squeeze,
    zeros,
)
from namoo.primitives.slice_starts import box, check_starts, normal_starts

__all__ = [
    "concatenate", "concatenate_p", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_slice_p", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_slice_p",
    "index_in_dim", "pad", "pad_p", "slice", "slice_in_dim", "slice_p",
]  # fmt: skip

Sizes = Sequence[int]
_range = builtins.slice


class Slice(Primitive):
    """A box of an array, with strides."""

    name, linear = "slice", True

    def evaluate(self, x, *, start_indices, limit_indices, strides):
        if strides is None:
            return x[tuple(map(_range, start_indices, limit_indices))]
        return x[tuple(map(_range, start_indices, limit_indices, strides))]

    def abstract(self, x, *, start_indices, limit_indices, strides):
        _check_slice(x.shape, start_indices, limit_indices, strides)
        steps = strides or (1,) * x.ndim
        shape = tuple(
            -((start - limit) // step)
            for start, limit, step in zip(start_indices, limit_indices, steps, strict=True)
        )
        return x.update(shape=shape)

    def sharded(self, x, *, start_indices, limit_indices, strides):
        steps = strides or (1,) * len(x.shape)
        sizes = zip(start_indices, limit_indices, steps, strict=True)
        return rules.resized(
            "slicing", x, [-((start - stop) // step) for start, stop, step in sizes]
        )

    def transpose(self, ct, x, *, start_indices, limit_indices, strides):
        shape, steps = x.aval.shape, strides or (1,) * x.aval.ndim
        config = []
        for n, start, kept, step in zip(shape, start_indices, shape_of(ct), steps, strict=True):
            covered = start + (kept - 1) * step + 1 if kept else start
            config.append((start, n - covered, step - 1))
        return [pad(ct, _zero(ct), config)]

    def batch(self, xs, dims, *, start_indices, limit_indices, strides):
        (x,), (d,) = xs, dims
        out = self.bind(
            x,
            start_indices=_insert(start_indices, d, 0),
            limit_indices=_insert(limit_indices, d, shape_of(x)[d]),
            strides=None if strides is None else _insert(strides, d, 1),
        )
        return out, d

    def native(self, emit, x, *, start_indices, limit_indices, strides):
        strides = strides or (1,) * len(start_indices)

        def where(index):
            return [
                i * step + start
                for i, step, start in zip(index, strides, start_indices, strict=True)
            ]

        return emit.reindex(x, where, key=("slice", tuple(start_indices), tuple(strides)))

    def stablehlo(self, hlo, x, *, start_indices, limit_indices, strides):
        return hlo.slice(x, start_indices, limit_indices, strides)


slice_p = Slice()


def _insert(items: tuple, place: int, item: Any) -> tuple:
    return (*items[:place], item, *items[place:])


def _zero(x: Any) -> Any:
    """The scalar zero of the dtype of `x`."""
    return zeros(ShapedArray((), aval_of(x).dtype))


def _check_slice(shape, starts, limits, strides) -> None:
    where = (
        f"got start_indices={starts}, limit_indices={limits}, strides={strides} for an operand of "
        f"shape {shape}."
    )
    lengths = {len(shape), len(starts), len(limits), len(shape if strides is None else strides)}
    if len(lengths) > 1:
        raise TypeError(f"slice needs one start, limit and stride for each axis; {where}")
    if not all(0 <= a <= b <= n for a, b, n in zip(starts, limits, shape, strict=True)):
        raise TypeError(f"slice needs 0 <= start <= limit <= length on each axis; {where}")
    if strides is not None and min(strides, default=1) < 1:
        raise TypeError(f"slice strides must be positive; {where}")


def slice(
    operand: Any, start_indices: Sizes, limit_indices: Sizes, strides: Sizes | None = None
) -> Any:
    """The box of `operand` from `start_indices` up to `limit_indices`, both static.

    Args:
        operand: an array.
        start_indices: where the box begins on each axis.
        limit_indices: where it ends on each axis; the limit is not part of it.
        strides: the step between elements on each axis; 1 by default.

    Raises:
        TypeError: the box is not inside the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> slice(jnp.arange(12).reshape(3, 4), (1, 0), (3, 4), (1, 2))
        Array([[ 4,  6],
               [ 8, 10]], dtype=int32)
    """
    shape = shape_of(operand)
    starts = tuple(map(dimension, start_indices))
    limits = tuple(map(dimension, limit_indices))
    steps = None if strides is None else tuple(map(operator.index, strides))
    if (
        limits == shape
        and all(s == 0 for s in starts)
        and (steps is None or all(s == 1 for s in steps))
        and isinstance(operand, (EagerArray, Tracer))
    ):
        return operand
    _check_slice(shape, starts, limits, steps)
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """`slice` along one axis; negative indices count from its end.

    Example:
        >>> import namoo.numpy as jnp
        >>> slice_in_dim(jnp.arange(6), -3, None)
        Array([3, 4, 5], dtype=int32)
    """
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    start = 0 if start_index is None else dimension(start_index)
    limit = n if limit_index is None else dimension(limit_index)
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    steps[axis] = operator.index(stride)
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """One index along an axis, whose length becomes 1, or which is removed.

    Example:
        >>> import namoo.numpy as jnp
        >>> index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
        Array([2, 5], dtype=int32)
    """
    index, axis = operator.index(index), canonical_axis(axis, len(shape_of(operand)))
    n = shape_of(operand)[axis]
    place = index + n if index < 0 else index
    if not 0 <= place < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    out = slice_in_dim(operand, place, place + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


class Pad(Primitive):
    """Pad around and between the elements; negative amounts remove elements."""

    name, linear = "pad", True

    def evaluate(self, x, value, *, padding_config):
        shape = _padded_shape(x.shape, padding_config)
        out = np.full(shape, value, x.dtype)
        source, target = [], []
        for n, size, (low, _, inner) in zip(x.shape, shape, padding_config, strict=True):
            step = inner + 1
            first = max(0, -(low // step))  # the first element that is not cut off
            last = min(n - 1, (size - 1 - low) // step)
            source.append(_range(first, max(first, last + 1)))
            target.append(_range(low + first * step, max(0, low + last * step + 1), step))
        out[tuple(target)] = x[tuple(source)]
        return out

    def abstract(self, x, value, *, padding_config):
        if x.dtype != value.dtype:
            raise TypeError(
                "pad: operand and padding_value must have the same dtype, got "
                f"{x.dtype} and {value.dtype}."
            )
        if value.shape:
            raise ValueError(f"pad: padding_value must be a scalar, got shape {value.shape}.")
        if len(padding_config) != x.ndim:
            raise ValueError(
                "pad: padding_config must have one entry (low, high, interior) for each axis, got "
                f"{padding_config} for an operand of shape {x.shape}."
            )
        if any(inner < 0 for _, _, inner in padding_config):
            raise ValueError(
                "pad: interior padding in padding_config must be nonnegative, got "
                f"{padding_config}."
            )
        shape = _padded_shape(x.shape, padding_config)
        if any(n < 0 for n in shape):
            raise ValueError(
                "Dimension size after padding is not at least 0: pad would give shape "
                f"{shape}, from padding_config {padding_config} and an operand of shape {x.shape}."
            )
        return x.update(shape=shape, weak_type=x.weak_type and value.weak_type)

    def sharded(self, x, value, *, padding_config):
        sizes = zip(x.shape, padding_config, strict=True)
        shape = [n + lo + hi + max(n - 1, 0) * inner for n, (lo, hi, inner) in sizes]
        return rules.resized("padding", x, shape)

    def jvp(self, primals, tangents, *, padding_config):
        out = self.bind(*primals, padding_config=padding_config)
        return out, self.bind(*map(instantiate, tangents), padding_config=padding_config)

    def transpose(self, ct, x, value, *, padding_config):
        aval = x.aval if is_linear(x) else aval_of(x)
        cut = tuple((-low, -high, 0) for low, high, _ in padding_config)
        inside = self.bind(ct, _zero(ct), padding_config=cut)
        inner = [i + 1 for _, _, i in padding_config]
        kept = slice(inside, (0,) * aval.ndim, shape_of(inside), inner)
        dvalue = None
        if is_linear(value):
            dvalue = sub(_total(ct), _total(kept))
        return [kept if is_linear(x) else None, dvalue]

    def batch(self, xs, dims, *, padding_config):
        (x, value), (dx, dv) = xs, dims
        if dv is None:
            return self.bind(x, value, padding_config=_insert(padding_config, dx, (0, 0, 0))), dx
        # Each example has its own value: pad with anything, and choose afterwards.
        size = shape_of(value)[0]
        x = broadcast(x, (size,)) if dx is None else moveaxis(x, dx, 0)
        config = ((0, 0, 0), *padding_config)
        out = self.bind(x, _zero(x), padding_config=config)
        inside = self.bind(np.ones(shape_of(x), np.bool_), np.False_, padding_config=config)
        column = reshape(value, (size, *(1,) * len(padding_config)))
        return select(inside, out, broadcast_to(column, shape_of(out))), 0

    def native(self, emit, x, value, *, padding_config):
        return emit.pad(x, value, padding_config)

    def stablehlo(self, hlo, x, value, *, padding_config):
        return hlo.pad(x, value, padding_config)


pad_p = Pad()


def _total(x: Any) -> Any:
    return reduce_sum(x, range(len(shape_of(x))))


def _padded_shape(shape: tuple[int, ...], config: Any) -> tuple[int, ...]:
    return tuple(
        low + high + n + max(n - 1, 0) * inner
        for n, (low, high, inner) in zip(shape, config, strict=True)
    )


def pad(operand: Any, padding_value: Any, padding_config: Sequence[Sequence[int]]) -> Any:
    """Put `padding_value` before, after and between the elements along each axis.

    Args:
        operand: an array.
        padding_value: a scalar of the same dtype.
        padding_config: for each axis `(low, high, interior)`: how many values go before the first
          element, after the last one, and between two; negative `low` and `high` cut off.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the configuration does not fit the operand.

    Example:
        >>> import namoo.numpy as jnp
        >>> pad(jnp.array([1, 2, 3]), 0, [(1, -1, 1)])
        Array([0, 1, 0, 2, 0], dtype=int32)
    """
    aval = aval_of(operand)
    config = tuple(tuple(map(dimension, entry)) for entry in padding_config)
    pad_p.abstract(aval, aval_of(padding_value), padding_config=config)
    return pad_p.bind(operand, padding_value, padding_config=config)


class Concatenate(Primitive):
    """Put arrays one after another along an axis."""

    name, linear = "concatenate", True

    def evaluate(self, *xs, dimension):
        return np.concatenate(xs, dimension)

    def abstract(self, *xs, dimension):
        first = xs[0]
        shapes = ", ".join(str(x.shape) for x in xs)
        if len({x.ndim for x in xs}) > 1:
            raise TypeError(
                f"concatenate: arrays must have the same number of axes, got shapes {shapes}."
            )
        if not 0 <= dimension < first.ndim:
            raise TypeError(
                f"concatenate: dimension {dimension} is out of bounds for shapes {shapes}."
            )
        if len({x.shape[:dimension] + x.shape[dimension + 1 :] for x in xs}) > 1:
            raise TypeError(
                "concatenate: arrays must have the same lengths on all axes but the joined one "
                f"({dimension}), got shapes {shapes}."
            )
        if any(x.dtype != first.dtype for x in xs):
            raise TypeError(
                "lax.concatenate requires arguments to have the same dtypes, got "
                f"{', '.join(str(x.dtype) for x in xs)}. (namoo.numpy.concatenate promotes types.)"
            )
        shape = list(first.shape)
        shape[dimension] = sum(x.shape[dimension] for x in xs)
        return ShapedArray(tuple(shape), first.dtype, all(x.weak_type for x in xs))

    def sharded(self, *xs, dimension):
        what = "All operands should have the same sharding. Got shardings"
        return rules.same("concatenate:", xs, what)

    def jvp(self, primals, tangents, *, dimension):
        out = self.bind(*primals, dimension=dimension)
        return out, self.bind(*map(instantiate, tangents), dimension=dimension)

    def transpose(self, ct, *xs, dimension):
        cts, start = [], 0
        for x in xs:
            size = (x.aval.shape if is_linear(x) else shape_of(x))[dimension]
            part = slice_in_dim(ct, start, start + size, 1, dimension) if is_linear(x) else None
            cts.append(part)
            start += size
        return cts

    def batch(self, xs, dims, *, dimension):
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        xs = [
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        ]
        return self.bind(*xs, dimension=dimension + 1), 0

    def native(self, emit, *xs, dimension):
        return emit.concatenate(xs, dimension)

    def stablehlo(self, hlo, *xs, dimension):
        return hlo.concatenate(xs, dimension)


concatenate_p = Concatenate()


def concatenate(operands: Any, dimension: int) -> Any:
    """Join arrays of one dtype along an axis.

    Args:
        operands: arrays whose other axes have the same lengths.
        dimension: the axis to join along.

    Raises:
        TypeError: shapes or dtypes do not fit.
        ValueError: there are no operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
        Array([1, 2, 3], dtype=int32)
    """
    if not isinstance(operands, (list, tuple)) and shape_of(operands):
        rows = range(shape_of(operands)[0])
        operands = [index_in_dim(operands, i, keepdims=False) for i in rows]
    if len(operands) == 0:
        raise ValueError("concatenate needs at least one array, got none.")
    dimension = operator.index(dimension)
    first = operands[0]
    if len(operands) == 1 and isinstance(first, (EagerArray, Tracer)) and first.ndim > dimension:
        return first
    concatenate_p.abstract(*map(aval_of, operands), dimension=dimension)
    return concatenate_p.bind(*operands, dimension=dimension)


class DynamicSlice(Primitive):
    """A box of fixed size at computed starts; it is clamped into the array."""

    name = "dynamic_slice"
    weak_operands = _range(1)

    def evaluate(self, x, *starts, slice_sizes):
        return x[box(x.shape, starts, slice_sizes)]

    def abstract(self, x, *starts, slice_sizes):
        if len(slice_sizes) != x.ndim or not all(
            0 <= size <= n for size, n in zip(slice_sizes, x.shape, strict=True)
        ):
            raise TypeError(
                "dynamic_slice: slice_sizes must have one entry from 0 to its length for each "
                f"axis, got {slice_sizes} for an operand of shape {x.shape}."
            )
        check_starts("dynamic_slice", x, starts)
        return x.update(shape=slice_sizes)

    def sharded(self, x, *starts, slice_sizes):
        return rules.resized("dynamic_slice", x, slice_sizes)

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
            sizes = _insert(slice_sizes, d, shape_of(x)[d])
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
            mode=_mode(),
            fill_value=None,
        )

    def native(self, emit, x, *starts, slice_sizes):
        def element(k, index, x, *starts):
            at = []
            for i, start, n, size in zip(index, starts, x.shape, slice_sizes, strict=True):
                at.append(i + k.start(start, n - size))
            return k.at(x, at)

        return emit.compute([x, *starts], element, key=("dynamic_slice", tuple(slice_sizes)))

    def stablehlo(self, hlo, x, *starts, slice_sizes):
        return hlo.dynamic_slice(x, starts, slice_sizes)

    def guards(self, x, *starts, slice_sizes):
        boxes = zip(x.shape, slice_sizes, strict=True)
        return [Guard(i + 1, i, n, size) for i, (n, size) in enumerate(boxes)]


def _start_like(starts: Sequence[Any]) -> Any:
    """The start 0, of the dtype of the others."""
    dtype = aval_of(starts[0]).dtype if starts else np.int32
    return np.zeros((), dtype)


def _mode() -> GatherScatterMode:
    """The mode of gather and scatter for dynamic slices."""
    return PROMISE_IN_BOUNDS if config.strict else CLIP


def _batched_starts(starts: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """One array of starts whose leading axis is the mapped one, and that axis."""
    size = next(shape_of(s)[d] for s, d in zip(starts, dims, strict=True) if d is not None)
    columns = [
        reshape(broadcast(s, (size,)) if d is None else s, (size, 1))
        for s, d in zip(starts, dims, strict=True)
    ]
    return concatenate(columns, 1), 0


dynamic_slice_p = DynamicSlice()


class DynamicUpdateSlice(Primitive):
    """A copy of an array in which a box at computed starts is replaced."""

    name = "dynamic_update_slice"

    def evaluate(self, x, update, *starts):
        if x.dtype != update.dtype:  # NumPy would convert the update
            self.abstract(*map(aval_of, (x, update, *starts)))
        out = x.copy()
        out[box(x.shape, starts, update.shape)] = update
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
        check_starts("dynamic_update_slice", x, starts)
        weak = x.weak_type and update.weak_type and all(s.weak_type for s in starts)
        return x.update(weak_type=weak)

    def sharded(self, x, update, *starts):
        what = "operand sharding must be equal to update sharding, got"
        return rules.same("dynamic_update_slice", [x, update], what)

    def jvp(self, primals, tangents):
        x, update, *starts = primals
        out = self.bind(x, update, *starts)
        dx, du, *_ = tangents
        return out, self.bind(instantiate(dx), instantiate(du), *starts)

    def transpose(self, ct, x, update, *starts):
        aval = update.aval if is_linear(update) else aval_of(update)
        nothing = zeros(aval.update(dtype=aval_of(ct).dtype, weak_type=False))
        dx = self.bind(ct, nothing, *starts) if is_linear(x) else None
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
            mode=_mode(),
        )

    def native(self, emit, x, update, *starts):
        return emit.update_slice(x, update, starts)

    def stablehlo(self, hlo, x, update, *starts):
        return hlo.dynamic_update_slice(x, update, starts)

    def guards(self, x, update, *starts):
        boxes = zip(x.shape, update.shape, strict=True)
        return [Guard(i + 2, i, n, size) for i, (n, size) in enumerate(boxes)]


dynamic_update_slice_p = DynamicUpdateSlice()


def _scalars(name: str, starts: Any) -> Sequence[Any]:
    """Starts as a sequence, where they may be one vector."""
    if not isinstance(starts, (EagerArray, Tracer, np.ndarray)):
        return starts
    if len(shape_of(starts)) != 1:
        raise ValueError(
            f"{name}: start_indices must be a sequence of scalars or a 1-dimensional array, "
            f"got shape {shape_of(starts)}."
        )
    if isinstance(starts, Tracer):
        return [index_in_dim(starts, i, keepdims=False) for i in range(shape_of(starts)[0])]
    return list(np.asarray(getattr(starts, "_value", starts)))


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

    Example:
        >>> import namoo.numpy as jnp
        >>> dynamic_slice(jnp.arange(12).reshape(3, 4), (1, 3), (2, 2))
        Array([[ 6,  7],
               [10, 11]], dtype=int32)
    """
    shape = shape_of(operand)
    starts = _scalars("dynamic_slice", start_indices)
    starts = normal_starts("dynamic_slice", shape, starts, allow_negative_indices)
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

    Example:
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


def _only(axis: int, shape: tuple[int, ...], flag: bool) -> bool | list[bool]:
    return flag or [flag if i == axis else True for i in range(len(shape))]


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """One index along an axis, which may be traced.

    Example:
        >>> import namoo.numpy as jnp
        >>> dynamic_index_in_dim(jnp.arange(6).reshape(2, 3), 1, keepdims=False)
        Array([3, 4, 5], dtype=int32)
    """
    axis = canonical_axis(axis, len(shape_of(operand)))
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else _without_axis(out, axis)


def _without_axis(x: Any, axis: int) -> Any:
    return squeeze(x, (axis,))


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

    Example:
        >>> import namoo.numpy as jnp
        >>> dynamic_update_slice(jnp.zeros(5), jnp.ones(2), (3,))
        Array([0., 0., 0., 1., 1.], dtype=float32)
    """
    shape = shape_of(operand)
    starts = _scalars("dynamic_update_slice", start_indices)
    starts = normal_starts("dynamic_update_slice", shape, starts, allow_negative_indices)
    dynamic_update_slice_p.abstract(aval_of(operand), aval_of(update), *map(aval_of, starts))
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis.

    Example:
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
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """A copy of `operand` with one index along an axis replaced by `update`.

    Example:
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


attach_shortcuts(globals())
