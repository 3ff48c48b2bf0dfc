"""Arrays joined into one: side by side, in a new axis, in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.short import short
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.creation import user_dtype
from namoo.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, index_tuple
from namoo.numpy.promote import array_of, arrays_of, as_type, promote_types
from namoo.numpy.reductions import refuse_out
from namoo.primitives import shape as lax
from namoo.primitives import slicing


def _operands(name: str, arrays: Any, dtype: Any) -> list[Array]:
    """The arrays to join, of one type; an array counts as the sequence of its rows."""
    if isinstance(arrays, (Array, np.ndarray)):
        whole = array_of(name, arrays)
        rows = [slicing.index_in_dim(whole, i, 0, keepdims=False) for i in range(whole.shape[0])]
        return _typed(name, rows, dtype) if rows else []
    if not isinstance(arrays, Sequence):
        arrays = list(arrays)
    return _typed(name, arrays, dtype) if len(arrays) else []


def _typed(name: str, arrays: Sequence[Any], dtype: Any) -> list[Array]:
    if dtype is None:
        return promote_types(name, *arrays)
    dtype = user_dtype(dtype, name)
    return [as_type(x, dtype) for x in arrays_of(name, *arrays)]


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Array:
    """Arrays joined along an axis.

    Args:
        arrays: a sequence of arrays that agree in all other axes.
        axis: the axis; None joins the flattened arrays.
        dtype: type of the result; the common type by default.

    Raises:
        ValueError: no arrays, or scalars.
        TypeError: shapes that do not agree.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3.5])])
        Array([1. , 2. , 3.5], dtype=float32)
    """
    _refuse_second_array("concatenate", axis, ValueError)
    operands = _operands("concatenate", arrays, dtype)
    if not operands:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        operands, axis = [lax.reshape(x, (x.size,)) for x in operands], 0
    if any(not x.ndim for x in operands):
        raise ValueError("Zero-dimensional arrays cannot be concatenated; use jnp.stack.")
    (axis,) = index_tuple(axis)
    axis = lax.canonical_axis(axis, operands[0].ndim)
    _check_alike("concatenate", operands, axis)
    return slicing.concatenate(operands, axis)


def _refuse_second_array(
    name: str, second: Any, error: type[Exception], expected: str = "an axis"
) -> None:
    """Refuse an array where something else is expected: the arrays were given one by one."""
    if getattr(second, "ndim", 0):
        raise error(
            f"jnp.{name} takes a list of arrays and {expected}, but its second argument is "
            f"{short(second)}. Write jnp.{name}([a, b])."
        )


def _check_alike(name: str, operands: list[Array], axis: int) -> None:
    rest = {(x.ndim, x.shape[:axis], x.shape[axis + 1 :]) for x in operands}
    if len(rest) > 1:
        raise TypeError(
            f"Cannot concatenate arrays with shapes that differ in axes other than {axis} "
            f"(jnp.{name}): got {', '.join(str(x.shape) for x in operands)}." + at_user_line()
        )


def concat(arrays: Any, /, *, axis: Any = 0) -> Array:
    """Arrays joined along an axis: the array API's name of `concatenate`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of equal shape joined along a new axis.

    Args:
        arrays: a sequence of arrays.
        axis: place of the new axis in the result.
        out: not supported.
        dtype: type of the result; the common type by default.

    Raises:
        ValueError: no arrays, or different shapes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    _refuse_second_array("stack", axis, TypeError)
    refuse_out("stack", out)
    operands = _operands("stack", arrays, dtype)
    if not operands:
        raise ValueError("Need at least one array to stack.")
    shapes = {x.shape for x in operands}
    if len(shapes) > 1:
        raise ValueError(
            "All input arrays must have the same shape in jnp.stack, got "
            f"{', '.join(str(x.shape) for x in operands)}." + at_user_line()
        )
    axis = lax.canonical_axis(axis, operands[0].ndim + 1)
    return slicing.concatenate([lax.expand_dims(x, (axis,)) for x in operands], axis)


def _all_at_least(change: Any, tup: Any) -> list[Array]:
    items = tup if isinstance(tup, (list, tuple)) else list(tup)
    return [change(x) for x in items]


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays joined as rows, along the first of at least two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    _refuse_second_array("vstack", dtype, ValueError, "a dtype")
    return concatenate(_all_at_least(atleast_2d, tup), 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays joined along the second axis; vectors along their only one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    _refuse_second_array("hstack", dtype, ValueError, "a dtype")
    arrays = _all_at_least(atleast_1d, tup)
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays joined along the last of at least three axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])]).shape
        (1, 2, 2)
    """
    _refuse_second_array("dstack", dtype, ValueError, "a dtype")
    return concatenate(_all_at_least(atleast_3d, tup), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Vectors joined as columns of a matrix; matrices are joined side by side.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    columns = []
    for x in _all_at_least(lambda v: array_of("column_stack", v), tup):
        columns.append(lax.transpose(atleast_2d(x), (1, 0)) if x.ndim < 2 else x)
    return concatenate(columns, 1)


def block(arrays: Any) -> Array:
    """An array put together from nested lists of blocks.

    The innermost lists are joined along the last axis, those around them along the one before.

    Args:
        arrays: an array, or nested lists of arrays of equal depth.

    Raises:
        ValueError: a tuple among the lists, empty lists, or lists of unequal depth.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))], [jnp.full((1, 3), 2.0)]])
        Array([[1., 1., 0.],
               [2., 2., 2.]], dtype=float32)
    """
    return _block(arrays)[0]


def _block(x: Any) -> tuple[Array, int]:
    if isinstance(x, tuple):
        raise ValueError("jnp.block does not allow tuples: only lists can hold blocks.")
    if not isinstance(x, list):
        return array_of("block", x), 1
    if not x:
        raise ValueError("jnp.block does not allow empty list arguments")
    parts, depths = zip(*(_block(item) for item in x), strict=True)
    if len(set(depths)) > 1:
        raise ValueError("Mismatched list depths in jnp.block")
    rank = max(depths[0], *(part.ndim for part in parts))
    parts = [lax.reshape(p, (*(1,) * (rank - p.ndim), *p.shape)) for p in parts]
    return concatenate(parts, -depths[0]), depths[0] + 1


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """An array with values joined to its end.

    Args:
        arr: the array.
        values: what is joined.
        axis: the axis; None joins the flattened arrays.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.append(jnp.array([1, 2]), 3)
        Array([1, 2, 3], dtype=int32)
    """
    arrays = arrays_of("append", arr, values)
    if axis is None:
        arrays, axis = [lax.reshape(x, (x.size,)) for x in arrays], 0
    return concatenate(arrays, axis)


attach_shortcuts(globals())
