"""Matrix products by groups of rows, and of scaled operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import aval_of
from namoo.primitives.bits import bitwise_and
from namoo.primitives.contract import dot_general
from namoo.primitives.cumulative import cumsum
from namoo.primitives.elementwise import full_like, ge, lt, mul, select, sub
from namoo.primitives.families import accepts
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    convert_element_type,
    moveaxis,
    reshape,
    shape_of,
    transpose,
)

__all__ = ["ragged_dot", "ragged_dot_general", "RaggedDotDimensionNumbers", "scaled_dot"]

Axes = tuple[int, ...]


class _RaggedFields(NamedTuple):
    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Axes
    rhs_group_dimensions: Axes


class RaggedDotDimensionNumbers(_RaggedFields):
    """Which axes of a ragged product are which.

    Args:
        dot_dimension_numbers: contracting and batch axes, as for `dot_general`.
        lhs_ragged_dimensions: the one axis of the left operand that is divided into groups.
        rhs_group_dimensions: the axis of the right operand over groups; none where the ragged axis
            is a contracting or a batch one.
    """

    __slots__ = ()

    def __new__(
        cls,
        dot_dimension_numbers: Any,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ):
        (xc, yc), (xb, yb) = dot_dimension_numbers
        numbers = ((tuple(xc), tuple(yc)), (tuple(xb), tuple(yb)))
        return super().__new__(
            cls, numbers, tuple(lhs_ragged_dimensions), tuple(rhs_group_dimensions)
        )


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply the rows of a matrix, in groups one after the other, by the matrix of each group.

    Args:
        lhs: an array (m, k).
        rhs: an array (g, k, n), with a matrix for each group.
        group_sizes: integers (g,): how many rows belong to each group.  Rows after the last group
            give zero.
        precision, preferred_element_type, out_sharding: as for `dot_general`.
        group_offset: an array (1,): groups before this one give zero.

    Returns:
        An array (m, n).

    Example:
        >>> import namoo.numpy as jnp
        >>> rhs = jnp.array([[[1.0]], [[10.0]]])
        >>> ragged_dot(jnp.ones((4, 1)), rhs, jnp.array([1, 2])).reshape(-1)
        Array([ 1., 10., 10.,  0.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            ragged_dot,
            lhs,
            rhs,
            group_sizes,
            precision,
            preferred_element_type,
            group_offset,
        )
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset
    )


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """`dot_general` with an axis of the left operand that is divided into groups.

    Where the ragged axis is a free one, each element is multiplied by the right operand of its
    group. Where it is a contracting one, there is a sum for each group, along a new first axis.
    Where it is a batch axis, the groups change nothing.

    Args:
        lhs, rhs: the operands.
        group_sizes: integers (…, g), the sizes of the groups; the axes before the last are the
            batch axes and the axes of the same kind that precede the ragged one, or none.
        ragged_dot_dimension_numbers: which axes are which.
        precision, preferred_element_type, out_sharding: as for `dot_general`.
        group_offset: an array (1,): groups before this one give zero.

    Raises:
        TypeError: axes or sizes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> sums = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
        >>> x = jnp.arange(4.0)[:, None]
        >>> ragged_dot_general(x, jnp.ones((4, 1)), jnp.array([1, 3]), sums).reshape(-1)
        Array([0., 6.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            ragged_dot_general,
            lhs,
            rhs,
            group_sizes,
            ragged_dot_dimension_numbers,
            precision,
            preferred_element_type,
            group_offset,
        )
    numbers = RaggedDotDimensionNumbers(*ragged_dot_dimension_numbers)
    (xc, yc), (xb, yb) = dimensions = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "ragged_dot_general expects exactly one lhs ragged dimension, got "
            f"{numbers.lhs_ragged_dimensions}."
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    ndim = len(shape_of(lhs))
    if not 0 <= ragged < ndim:
        raise TypeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less "
            f"than the number of axes of the lhs value, got {ragged} for {ndim} axes."
        )
    if not accepts(aval_of(group_sizes).dtype, (np.integer,)):
        raise TypeError(
            "ragged_dot_general requires integers in group_sizes, got dtype "
            f"{aval_of(group_sizes).dtype}."
        )
    free = tuple(i for i in range(ndim) if i not in (*xc, *xb))
    _check_groups(numbers, free, shape_of(rhs), shape_of(group_sizes))
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    same = next(axes for axes in (xb, xc, free) if ragged in axes)
    outer = (*(() if same is xb else xb), *same[: same.index(ragged)])
    sizes = shape_of(group_sizes)
    wanted = (*(shape_of(lhs)[i] for i in outer), *sizes[-1:])
    if len(sizes) != 1 and (not sizes or sizes != wanted):
        raise TypeError(
            f"ragged_dot_general: expected group_sizes to have shape {wanted}, got {sizes}."
        )
    if ragged in xb:
        return dot_general(lhs, rhs, dimensions, **options)
    masked = _masked(lhs, group_sizes, group_offset, ragged, outer)
    xc, xb = (tuple(i + 1 for i in axes) for axes in (xc, xb))
    if ragged in free:
        contracting = ((0, *xc), (*numbers.rhs_group_dimensions, *yc))
        return dot_general(masked, rhs, (contracting, (xb, yb)), **options)
    return moveaxis(dot_general(masked, rhs, ((xc, yc), (xb, yb)), **options), len(xb), 0)


def _check_groups(numbers: RaggedDotDimensionNumbers, free: Axes, rhs: Axes, sizes: Axes) -> None:
    (_, yc), (_, yb) = numbers.dot_dimension_numbers
    group = numbers.rhs_group_dimensions
    if numbers.lhs_ragged_dimensions[0] not in free:
        if group:
            raise TypeError(
                "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged "
                f"dimension is contracting or batch, got {group}."
            )
        return
    if len(group) != 1:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs ragged "
            f"dimension is noncontracting, got {group}."
        )
    if group[0] in (*yc, *yb) or not 0 <= group[0] < len(rhs):
        raise TypeError(
            "ragged_dot_general requires rhs group dimension numbers to be distinct from "
            f"contracting and batch dimensions, and to be axes of the rhs; got {group[0]} for "
            f"shape {rhs}."
        )
    if not sizes or rhs[group[0]] != sizes[-1]:
        raise TypeError(
            "ragged_dot_general: expected rhs group dimension size to be "
            f"{sizes[-1] if sizes else 'the last length of group_sizes'}, got {rhs[group[0]]}, for "
            f"group_sizes of shape {sizes}."
        )


def _masked(lhs: Any, sizes: Any, offset: Any, ragged: int, outer: Axes) -> Any:
    """The left operand once for each group, with zeros where an element is not in it."""
    shape = shape_of(lhs)
    groups = shape_of(sizes)[-1]
    prefix = tuple(shape[i] for i in outer)
    if len(shape_of(sizes)) == 1:
        outer, prefix = (), ()
    n = len(prefix)
    ends = cumsum(sizes, n)
    starts = sub(ends, sizes)
    full = (*prefix, groups, shape[ragged])
    place = broadcasted_iota(aval_of(ends).dtype, full, n + 1)
    starts, ends = (broadcast_in_dim(v, full, range(n + 1)) for v in (starts, ends))
    inside = bitwise_and(ge(place, starts), lt(place, ends))
    if offset is not None:
        number = broadcasted_iota(aval_of(offset).dtype, full, n)
        inside = bitwise_and(inside, ge(number, reshape(offset, ())))
    # The mask's axes in the order in which the result, (group, *lhs), has them.
    axes = (*(i + 1 for i in outer), 0, ragged + 1)
    order = np.argsort(axes)
    wide = (groups, *shape)
    inside = broadcast_in_dim(transpose(inside, order), wide, [axes[i] for i in order])
    lhs = broadcast_in_dim(lhs, wide, range(1, len(wide)))
    return select(inside, lhs, broadcast_in_dim(full_like(lhs, 0), wide, ()))


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of two operands of low precision, each with a scale for every few elements.

    (lhs · lhs_scale) @ (rhs · rhs_scale)

    Args:
        lhs, rhs: the operands, of rank 2, or 3 with a batch axis first.
        lhs_scale, rhs_scale: scales like the operand, but shorter along the contracting axis by a
            factor of at least 2; None for 1.
        dimension_numbers: as for `dot_general`, with one contracting axis.
        preferred_element_type: the type of the product; bfloat16 by default.

    Raises:
        TypeError: shapes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, scale = jnp.ones((1, 4)), jnp.array([[1.0, 10.0]])
        >>> scaled_dot(x, jnp.ones((4, 1)), lhs_scale=scale, preferred_element_type=jnp.float32)
        Array([[22.]], dtype=float32)
    """
    ndim = len(shape_of(lhs))
    if ndim < 2 or len(shape_of(rhs)) < 2:
        raise TypeError(
            "scaled_dot multiplies matrices, with or without a batch axis; got shapes "
            f"{shape_of(lhs)} and {shape_of(rhs)}."
        )
    if dimension_numbers is None:
        batch = () if ndim == 2 else (0,)
        dimension_numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    (xc, yc), _ = dimension_numbers
    dtype = dtypes.canonicalize_dtype(
        dtypes.bfloat16 if preferred_element_type is None else preferred_element_type
    )
    return dot_general(
        _scaled("lhs", lhs, lhs_scale, tuple(xc), dtype),
        _scaled("rhs", rhs, rhs_scale, tuple(yc), dtype),
        dimension_numbers,
        preferred_element_type=dtype,
    )


def _scaled(name: str, x: Any, scale: Any, contracting: Axes, dtype: Any) -> Any:
    """An operand times its scale, in the type of the product."""
    x = convert_element_type(x, dtype)
    if scale is None:
        return x
    shape, small = shape_of(x), shape_of(scale)
    if len(small) != len(shape):
        raise TypeError(f"scaled_dot: {name} has shape {shape}, but its scale has {small}.")
    wide: list[int] = []
    for i, (size, count) in enumerate(zip(shape, small, strict=True)):
        if i not in contracting and size != count:
            raise TypeError(
                f"scaled_dot: axis {i} of {name} has length {size}, but that of its scale {count}."
            )
        if i in contracting and (count == 0 or size % count or size < 2 * count):
            raise TypeError(
                f"scaled_dot: the contracting axis {i} of {name} has length {size}, which must be "
                f"at least 2 times, and a multiple of, that of its scale, {count}."
            )
        wide += [count, size // count]
    scale = broadcast_in_dim(convert_element_type(scale, dtype), wide, range(0, 2 * len(shape), 2))
    return mul(x, reshape(scale, shape))
