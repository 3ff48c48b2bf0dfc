"""`scatter_apply`: a function of one number, applied to windows of an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.source_context import at_user_line
from namoo.control.loops import while_loop
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.primitives.elementwise import add, gt, lt, select
from namoo.primitives.gather import read_back, scatter_add_p, scatter_p
from namoo.primitives.gather_dimensions import GatherScatterMode, ScatterDimensionNumbers
from namoo.primitives.reduction import reduce_max
from namoo.primitives.shape import ones, reshape, shape_of, zeros
from namoo.transforms.batch import Axis, batch, batch_to


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Apply a function to the elements of `operand` in windows, one for each index.

    An element in several windows goes through the function as many times.

    Args:
        operand: an array.
        scatter_indices: integers; the last axis holds the components of one start.
        func: a function of one number that returns one of the same type.
        dimension_numbers: how the axes belong together, see `ScatterDimensionNumbers`.
        update_shape: the shape that the updates of `scatter` would have.
        indices_are_sorted: promise that the indices increase.
        unique_indices: promise that no element is in two windows.
        mode: what windows out of bounds do: 'drop' (the default), 'clip', 'promise_in_bounds'.

    Raises:
        TypeError: axes or lengths do not fit together; `func` returns another type.

    Example:
        >>> import namoo.numpy as jnp
        >>> points = ScatterDimensionNumbers((), (0,), (0,))
        >>> index = jnp.array([[0], [2], [2]])
        >>> scatter_apply(jnp.ones(3), index, lambda v: v * 3, points, update_shape=(3,))
        Array([3., 1., 9.], dtype=float32)
    """
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }
    x, shape = aval_of(operand), canonical_shape(update_shape)
    scatter_p.abstract(x, aval_of(scatter_indices), ShapedArray(shape, x.dtype), **params)
    if not math.prod(shape):
        return operand

    def once():
        windows = read_back(operand, scatter_indices, shape, **params)
        return scatter_p.bind(operand, scatter_indices, _mapped(func, windows), **params)

    if unique_indices or math.prod(shape_of(scatter_indices)[:-1]) == 1:
        return once()
    count = scatter_add_p.bind(
        zeros(ShapedArray(x.shape, np.dtype(np.int32))),
        scatter_indices,
        ones(ShapedArray(shape, np.dtype(np.int32))),
        **params,
    )
    most = reduce_max(count, range(x.ndim))

    def again(done, out):
        return select(gt(count, done), _mapped(func, out), out)

    if isinstance(most, EagerArray):
        if int(most._value) <= 1:
            return once()
        out = operand
        for done in range(int(most._value)):
            out = again(np.int32(done), out)
        return out
    return while_loop(
        lambda carry: lt(carry[0], most),
        lambda carry: (add(carry[0], np.int32(1)), again(*carry)),
        (EagerArray(np.zeros((), np.int32)), operand),
    )[1]


def _mapped(func: Callable[[Any], Any], x: Any) -> Any:
    """A function of one number applied to every element."""
    aval = aval_of(x)
    axis = Axis(aval.size)
    (out,), (dim,) = batch(lambda v: [func(v)], axis, [reshape(x, (aval.size,))], [0])
    found = aval_of(out)
    if dim is not None:
        found = found.update(shape=tuple(n for i, n in enumerate(found.shape) if i != dim))
    if found.shape or found.dtype != aval.dtype:
        raise TypeError(
            "scatter_apply: the function must map one number to one of the same type, "
            f"{ShapedArray((), aval.dtype).str_short()}, but it returned {found.str_short()}."
            + at_user_line()
        )
    return reshape(batch_to(axis, out, dim), aval.shape)
