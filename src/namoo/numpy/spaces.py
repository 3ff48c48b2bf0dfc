"""Ranges with a number of points: linear and geometric."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.dimensions.sizes import maybe
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import multiply, power, sign
from namoo.numpy.creation import constant, static_count, user_dtype
from namoo.numpy.device_arguments import placed
from namoo.numpy.elementary import log10
from namoo.numpy.promote import arrays_of, as_type, broadcast_shapes, broadcast_to, check_ranks
from namoo.numpy.same_type import const
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes
from namoo.primitives.dimensions import size_array
from namoo.primitives.shape import convert_element_type
from namoo.primitives.slicing import concatenate


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers from `start` to `stop`, which is included exactly.

    Args:
        start, stop: numbers or arrays, broadcast against one another.
        num: how many.
        endpoint: whether `stop` is the last one.
        retstep: also return the step.
        dtype: type of the result; a float type by default.
        axis: the axis of the numbers in the result, for array bounds.
        device: the device or the sharding of the array.

    Returns:
        The array, or a pair of it and the step.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linspace(0, 1, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if device is not None:
        made = linspace(start, stop, num, endpoint, retstep, dtype, axis)
        if retstep:
            return placed("jnp.linspace", made[0], device), made[1]
        return placed("jnp.linspace", made, device)
    num = static_count(num, "the 'num' argument of jnp.linspace")
    axis = static_count(axis, "the 'axis' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    a, b = arrays_of("linspace", start, stop)
    check_ranks("linspace", [a.shape, b.shape])
    kind = user_dtype(dtype, "linspace")
    if kind is None:
        kind = dtypes.to_inexact_dtype(dtypes.result_type(a, b))
    wide = dtypes.to_inexact_dtype(kind)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = (broadcast_to(as_type(v, wide), shape) for v in (a, b))
    place = axis + len(shape) + 1 if axis < 0 else axis
    first, last = (shapes.expand_dims(v, (place,)) for v in (a, b))
    steps = num - 1 if endpoint else num
    if maybe(operator.gt, num, 1):
        delta = lax.div(lax.sub(b, a), const(a, steps))
        real = dtypes.finfo(wide).dtype
        line = lax.div(shapes.iota(real, steps), size_array(steps, real))
        line = convert_element_type(line, wide)
        line = shapes.broadcast_in_dim(line, [*shape[:place], steps, *shape[place:]], (place,))
        out = lax.add(lax.mul(first, lax.sub(const(a, 1), line)), lax.mul(last, line))
        out = concatenate([out, last], place) if endpoint else out
    elif num == 1:
        delta = lax.sub(b, a) if not endpoint else constant((), np.nan, wide)
        out = first
    else:
        delta = constant((), np.nan, wide)
        out = constant((*shape[:place], 0, *shape[place:]), 0, wide)
    if dtypes.issubdtype(kind, np.integer):
        out = lax.floor(out)
    out = convert_element_type(out, kind)
    return (out, delta) if retstep else out


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Powers of a base with evenly spaced exponents, from base^start to base^stop.

    Args:
        start, stop: the first and last exponent.
        num, endpoint, dtype, axis: as in `linspace`.
        base: the base.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logspace(0, 2, 3)
        Array([  1.,  10., 100.], dtype=float32)
    """
    a, b = arrays_of("logspace", start, stop)
    check_ranks("logspace", [a.shape, b.shape])
    kind = user_dtype(dtype, "logspace")
    if kind is None:
        kind = dtypes.to_inexact_dtype(dtypes.result_type(a, b))
    wide = dtypes.to_inexact_dtype(kind)
    line = linspace(as_type(a, wide), as_type(b, wide), num, endpoint, axis=axis)
    return convert_element_type(power(base, line), kind)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Numbers from `start` to `stop` whose quotients are equal.

    Args:
        start, stop: the first and last number, of equal sign.
        num, endpoint, dtype, axis: as in `linspace`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.geomspace(1, 100, 3).round(3)
        Array([  1.,  10., 100.], dtype=float32)
    """
    a, b = arrays_of("geomspace", start, stop)
    check_ranks("geomspace", [a.shape, b.shape])
    kind = user_dtype(dtype, "geomspace")
    if kind is None:
        kind = dtypes.to_inexact_dtype(dtypes.result_type(a, b))
    wide = dtypes.to_inexact_dtype(kind)
    a, b = as_type(a, wide), as_type(b, wide)
    direction = sign(a)
    first, last = (log10(lax.div(v, direction)) for v in (a, b))
    line = multiply(logspace(first, last, num, endpoint, 10.0, wide), direction)
    place = shapes.canonical_axis(axis, line.ndim)
    return convert_element_type(shapes.moveaxis(line, 0, place), kind)


attach_shortcuts(globals())
