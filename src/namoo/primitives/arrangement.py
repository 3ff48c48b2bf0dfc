"""Functions that arrange arrays, composed of operations on shapes and slices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of, canonical_shape
from namoo.dimensions.sizes import is_symbolic
from namoo.primitives.dimensions import size_array
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    broadcast_to,
    canonical_axis,
    common_shape,
    convert_element_type,
    copy_p,
    expand_dims,
    full,
    given_shape,
    reshape,
    shape_of,
)
from namoo.primitives.slicing import concatenate, slice_in_dim

__all__ = [
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "collapse", "dtype", "empty",
    "full_like", "shape_as_value", "stack", "stage", "tile", "unstack",
]  # fmt: skip


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that the given shapes broadcast to, by NumPy's rule.

    Example:
        >>> broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    return common_shape([canonical_shape(shape) for shape in shapes])


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """An array repeated to the shape of another one.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return broadcast_to(arr, shape_of(like_arr))


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Any:
    """An array of the shape and type of another one, filled with one value.

    Args:
        x: an array, or anything with `shape` and `dtype`.
        fill_value: a scalar.
        dtype: another type.
        shape: another shape.
        sharding: has no effect.

    Example:
        >>> import namoo.numpy as jnp
        >>> full_like(jnp.zeros((2, 1)), 7)
        Array([[7.],
               [7.]], dtype=float32)
    """
    if sharding is not None:
        return with_out_sharding(sharding, full_like, x, fill_value, dtype, shape)
    aval = aval_of(x)
    shape = aval.shape if shape is None else given_shape(shape)
    if dtype is not None or not aval.weak_type:
        return full(shape, fill_value, aval.dtype if dtype is None else dtype)
    if shape_of(fill_value):
        raise TypeError(f"full_like needs a scalar fill_value, got shape {shape_of(fill_value)}.")
    return broadcast(convert_element_type(fill_value, aval.dtype, True), shape)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """An array with leading axes of length 1 added up to the given rank.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast_to_rank(jnp.zeros(3), 3).shape
        (1, 1, 3)
    """
    ndim = len(shape_of(x))
    if ndim > rank:
        raise ValueError(f"broadcast_to_rank: the array has {ndim} axes, more than {rank}.")
    return expand_dims(x, range(rank - ndim)) if ndim < rank else x


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """An array with several neighbouring axes merged into one.

    Example:
        >>> import namoo.numpy as jnp
        >>> collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
        (6, 4)
    """
    shape = shape_of(operand)
    places = range(len(shape))[start_dimension:stop_dimension]
    if not places:
        raise ValueError(
            f"Cannot collapse dimensions of shape {shape} with start_dimension "
            f"{start_dimension} and stop_dimension {stop_dimension}: that range has no axis."
        )
    size = int(np.prod([shape[i] for i in places]))
    return reshape(operand, (*shape[: places[0]], size, *shape[places[-1] + 1 :]))


def dtype(x: Any) -> Any:
    """The dtype of a value, or the canonical form of a dtype.

    Example:
        >>> dtype(1.0)
        dtype('float32')
    """
    if x is None:
        raise ValueError("Invalid argument to dtype: None.")
    if isinstance(x, (type, str, np.dtype, dtypes.ExtendedDType)):
        return dtypes.canonicalize_dtype(x, allow_extended=True)
    return dtypes.dtype_of(x)


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array with unspecified elements; here they are zeros.

    Example:
        >>> empty((2,), "int32").shape
        (2,)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, empty, shape, dtype)
    shape = (shape,) if isinstance(shape, int) else shape
    return full(shape, 0, dtype)


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as an array of integers.

    Example:
        >>> shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    sizes, dtype = canonical_shape(shape), dtypes.default_int_dtype()
    if not any(map(is_symbolic, sizes)):
        return EagerArray(np.asarray(sizes, dtype))
    return concatenate([expand_dims(size_array(size, dtype), (0,)) for size in sizes], 0)


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Join arrays of one shape along a new axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    if not operands:
        raise ValueError("stack: there must be at least one array.")
    axis = canonical_axis(axis, len(shape_of(operands[0])) + 1)
    return concatenate([expand_dims(x, (axis,)) for x in operands], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along an axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    shape = shape_of(x)
    axis = canonical_axis(axis, len(shape))
    rest = shape[:axis] + shape[axis + 1 :]
    return tuple(reshape(slice_in_dim(x, i, i + 1, axis=axis), rest) for i in range(shape[axis]))


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """Repeat an array as a whole along each axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> tile(jnp.array([1, 2]), (2,))
        Array([1, 2, 1, 2], dtype=int32)
    """
    shape, reps = shape_of(operand), tuple(map(operator.index, reps))
    if len(reps) != len(shape) or any(r < 0 for r in reps):
        raise ValueError(
            f"tile: reps must have one non-negative number for each of the {len(shape)} axes, "
            f"got {reps}."
        )
    spread = [n for pair in zip(reps, shape, strict=True) for n in pair]
    repeated = broadcast_in_dim(operand, spread, range(1, 2 * len(shape), 2))
    return reshape(repeated, [r * n for r, n in zip(reps, shape, strict=True)])


def stage(x: Any, /) -> Any:
    """A value as an array under the current transformation.

    Example:
        >>> stage(1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    aval = aval_of(x)
    return copy_p.bind(convert_element_type(x, aval.dtype, aval.weak_type))
