"""`index_take`: slices along several axes at once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.avals import aval_of
from namoo.primitives.elementwise import add, rem
from namoo.primitives.gather import gather_p
from namoo.primitives.gather_dimensions import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from namoo.primitives.shape import Axes, expand_dims, shape_of
from namoo.primitives.slicing import concatenate

__all__ = ["index_take"]


def index_take(src: Any, idxs: Sequence[Any], axes: Axes) -> Any:
    """Read slices along several axes at once; indices count modulo the axis.

    Args:
        src: the array to read from.
        idxs: for each axis in `axes` a vector of indices, all of one length.
        axes: the axes that are indexed; the result has one axis for them, in front.

    Example:
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
