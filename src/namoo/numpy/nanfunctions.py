"""Reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import subtract
from namoo.numpy.number_parts import isnan
from namoo.numpy.promote import array_of, as_type
from namoo.numpy.reductions import (
    all,
    check_where,
    identity_of,
    max,
    mean,
    min,
    prod,
    refuse_out,
    squared_size,
    static_axes,
    sum,
    variance_dtypes,
)
from namoo.numpy.same_type import choose, is_kind, strong
from namoo.numpy.selection import where as select_where
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.shape import convert_element_type


def _without_nan(
    name: str,
    reduce: Callable[..., Array],
    a: Any,
    axis: Any,
    identity: Any,
    nan_if_all: bool,
    keepdims: bool,
    where: Any,
    **options: Any,
) -> Array:
    x = array_of(name, a)
    where = check_where(name, where)
    axis = static_axes(axis, name)
    if not is_kind(x, np.inexact):
        return reduce(x, axis=axis, keepdims=keepdims, where=where, **options)
    nan = isnan(x)
    filled = choose(nan, identity_of(x, identity), x)
    out = reduce(filled, axis=axis, keepdims=keepdims, where=where, **options)
    if not nan_if_all:
        return out
    return choose(all(nan, axis, keepdims=keepdims), strong(x, np.nan), out)


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The sum over axes, in which NaN counts as zero.

    Args:
        a, axis, dtype, out, keepdims, initial, where: as for `sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
        Array(4., dtype=float32)
    """
    options = {"dtype": dtype, "out": out, "initial": initial}
    return _without_nan("nansum", sum, a, axis, 0, False, keepdims, where, **options)


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The product over axes, in which NaN counts as one.

    Args:
        a, axis, dtype, out, keepdims, initial, where: as for `prod`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
        Array(6., dtype=float32)
    """
    options = {"dtype": dtype, "out": out, "initial": initial}
    return _without_nan("nanprod", prod, a, axis, 1, False, keepdims, where, **options)


def nanmax(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The largest element over axes that is not NaN; NaN where all are.

    Args:
        a, axis, out, keepdims, initial, where: as for `max`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(3., dtype=float32)
    """
    options = {"out": out, "initial": initial}
    empty_is_nan = initial is None
    return _without_nan("nanmax", max, a, axis, -np.inf, empty_is_nan, keepdims, where, **options)


def nanmin(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The smallest element over axes that is not NaN; NaN where all are.

    Args:
        a, axis, out, keepdims, initial, where: as for `min`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    options = {"out": out, "initial": initial}
    empty_is_nan = initial is None
    return _without_nan("nanmin", min, a, axis, np.inf, empty_is_nan, keepdims, where, **options)


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: Any = None,
) -> Array:
    """The mean over axes of the elements that are not NaN.

    Args:
        a, axis, dtype, out, keepdims, where: as for `mean`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2., dtype=float32)
    """
    x = array_of("nanmean", a)
    refuse_out("nanmean", out)
    where = check_where("nanmean", where)
    if not is_kind(x, np.inexact):
        return mean(x, axis, dtype, keepdims=keepdims, where=where)
    dtype = x.dtype if dtype is None else dtypes.check_user_dtype_supported(dtype, "nanmean")
    valid = bits.bitwise_not(isnan(x))
    n = sum(valid, axis, dtype=dtype, keepdims=keepdims, where=where)
    return lax.div(nansum(x, axis, dtype=dtype, keepdims=keepdims, where=where), n)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """The variance over axes of the elements that are not NaN.

    Args:
        a, axis, dtype, out, ddof, keepdims, where, mean: as for `var`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    x = array_of("nanvar", a)
    refuse_out("nanvar", out)
    where = check_where("nanvar", where)
    work, result = variance_dtypes(x.dtype, dtype, "nanvar")
    axis = static_axes(axis, "nanvar")
    x = as_type(x, work)
    if mean is None:
        center = nanmean(x, axis, dtype=work, keepdims=True, where=where)
    else:
        center = as_type(array_of("nanvar", mean), work)
    nan = isnan(x)
    square = squared_size(choose(nan, strong(x, 0), subtract(x, center)))
    n = subtract(sum(bits.bitwise_not(nan), axis, keepdims=keepdims, where=where), ddof)
    empty = lax.le(n, strong(n, 0))
    total = sum(square, axis, keepdims=keepdims, where=where)
    total = select_where(empty, np.nan, total)
    divisor = convert_element_type(select_where(empty, 1, n), total.dtype)
    return as_type(lax.div(total, divisor), result)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """The standard deviation over axes of the elements that are not NaN.

    Args:
        a, axis, dtype, out, ddof, keepdims, where, mean: as for `var`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    array_of("nanstd", a)
    where = check_where("nanstd", where)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


attach_shortcuts(globals())
