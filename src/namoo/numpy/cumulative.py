"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import add, multiply
from namoo.numpy.number_parts import isnan
from namoo.numpy.promote import array_of, as_type
from namoo.numpy.reductions import refuse_out, static_axes, wide_integer
from namoo.numpy.same_type import choose, strong, to_bool
from namoo.primitives import cumulative as lax
from namoo.primitives import shape as shapes
from namoo.primitives.slicing import concatenate


def _running(
    name: str,
    reduction: Callable[..., Any],
    a: Any,
    axis: Any,
    dtype: Any,
    *,
    nan: int | None = None,
    promote_integers: bool = False,
) -> Array:
    """The common implementation: `nan` replaces NaN, unless it is None."""
    x = array_of(name, a)
    axis = static_axes(axis, name)
    if axis is None or not x.ndim:
        x = shapes.reshape(x, (x.size,))
    axis = shapes.canonical_axis(0 if axis is None else axis, x.ndim)
    if nan is not None:
        x = choose(isnan(x), strong(x, nan), x)
    if dtype is None:
        wide = promote_integers or x.dtype == np.bool_
        work = result = wide_integer(x.dtype) if wide else x.dtype
    else:
        work = result = dtypes.check_user_dtype_supported(dtype, name)
        if result == np.bool_:
            x, work = to_bool(x), wide_integer(result)
    return as_type(reduction(as_type(x, work), axis), result)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """The running sum along an axis.

    Args:
        a: the array.
        axis: the axis; None for the flattened array.
        dtype: type to sum in.
        out: not supported.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    refuse_out("cumsum", out)
    return _running("cumsum", lax.cumsum, a, axis, dtype)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """The running product along an axis.

    Args:
        a, axis, dtype, out: as for `cumsum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    refuse_out("cumprod", out)
    return _running("cumprod", lax.cumprod, a, axis, dtype)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """The running sum along an axis, in which NaN counts as zero.

    Args:
        a, axis, dtype, out: as for `cumsum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
        Array([1., 1., 4.], dtype=float32)
    """
    refuse_out("nancumsum", out)
    return _running("nancumsum", lax.cumsum, a, axis, dtype, nan=0)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """The running product along an axis, in which NaN counts as one.

    Args:
        a, axis, dtype, out: as for `cumsum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
        Array([2., 2., 6.], dtype=float32)
    """
    refuse_out("nancumprod", out)
    return _running("nancumprod", lax.cumprod, a, axis, dtype, nan=1)


def _with_initial(
    name: str, reduction: Callable[..., Any], x: Any, axis: Any, dtype: Any, first: int | None
) -> Array:
    """The array API's form: an axis must be named where there are several."""
    x = array_of(name, x)
    if not x.ndim:
        raise ValueError(
            f"The input must be non-scalar to take jnp.{name} of it, but a scalar was given."
        )
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"jnp.{name}: The input array has rank {x.ndim}, however no axis was given; pass "
                "axis=."
            )
        axis = 0
    axis = shapes.canonical_axis(axis, x.ndim)
    wide = name == "cumulative_sum"
    out = _running(name, reduction, x, axis, dtype, promote_integers=wide)
    if first is None:
        return out
    shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    return concatenate([shapes.full(shape, first, out.dtype), out], axis)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The running sum along an axis, as the array API standard has it.

    Args:
        x: an array of at least one axis.
        axis: the axis; may be left out where there is only one.
        dtype: type to sum in; narrow integers are widened by default.
        include_initial: begin with the empty sum, 0.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    first = 0 if include_initial else None
    return _with_initial("cumulative_sum", lax.cumsum, x, axis, dtype, first)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The running product along an axis, as the array API standard has it.

    Args:
        x, axis, dtype: as for `cumulative_sum`.
        include_initial: begin with the empty product, 1.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    first = 1 if include_initial else None
    return _with_initial("cumulative_prod", lax.cumprod, x, axis, dtype, first)


add.define(accumulate=cumsum)
multiply.define(accumulate=cumprod)


attach_shortcuts(globals())
