"""Choosing between the elements of arrays, and limiting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.logic import bitwise_or, greater, less, maximum, minimum
from namoo.numpy.number_parts import has_whole_elements, isnan
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    as_type,
    broadcast_shapes,
    check_arraylike,
    check_mixing,
    promote_types,
)
from namoo.numpy.same_type import (
    choose,
    choose_promoted,
    const,
    is_complex,
    to_bool,
)
from namoo.primitives import elementwise as lax
from namoo.primitives.compare import eq_p
from namoo.primitives.shape import broadcast_to


def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """`x` where the condition holds, `y` elsewhere; with one argument, where it holds.

    Args:
        condition: an array; numbers other than zero count as true.
        x, y: arrays or numbers, broadcast against the condition and one another.
        size, fill_value: for one argument, as in `nonzero`.

    Returns:
        An array of the common type of `x` and `y`; or the tuple `nonzero(condition)`.

    Raises:
        TypeError: only one of `x` and `y`.
        ValueError: `size` with both, or shapes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.array([-1.0, 2.0])
        >>> jnp.where(x > 0, x, 0.0), jnp.where(x > 0)
        (Array([0., 2.], dtype=float32), (Array([1], dtype=int32),))
    """
    if x is None and y is None:
        from namoo.numpy.searching import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "jnp.where got one of x and y. Write jnp.where(condition, x, y) to choose between two "
            "values, jnp.where(condition) for the indices where it holds."
        )
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    return choose_promoted(condition, x, y)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """For each element, the first choice whose condition holds, else `default`.

    Args:
        condlist: conditions, in order of precedence.
        choicelist: as many arrays to choose from.
        default: the value where no condition holds.

    Raises:
        ValueError: lists of different lengths, or empty ones.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.arange(5)
        >>> jnp.select([x < 2, x > 3], [x, x * 10], -1)
        Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    conditions = arrays_of("select", *condlist)
    out, *choices = promote_types("select", default, *choicelist)
    shape = broadcast_shapes(*(x.shape for x in (out, *conditions, *choices)))
    out = broadcast_to(out, shape)
    for condition, x in reversed(list(zip(conditions, choices, strict=True))):
        mask = broadcast_to(to_bool(condition), shape)
        out = lax.select(mask, broadcast_to(x, shape), out)
    return out


def piecewise(
    x: Any, condlist: Any, funclist: Sequence[Any | Callable[..., Any]], *args: Any, **kw: Any
) -> Array:
    """A function given in pieces: for each element, the last piece whose condition holds.

    Args:
        x: the argument.
        condlist: boolean arrays of the shape of `x`.
        funclist: a function or constant for each condition, and optionally one more for where none
            holds (else 0).
        args, kw: passed on to the functions.

    Raises:
        ValueError: too many or too few functions.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.array([-2.0, 0.0, 3.0])
        >>> jnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v * 10, 7])
        Array([ 2.,  7., 30.], dtype=float32)
    """
    from namoo.numpy.creation import asarray

    x = array_of("piecewise", x)
    conditions = asarray(condlist, dtype=bool)
    count = len(condlist)
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; "
            f"got {len(funclist)}"
        )
    default = funclist[-1] if len(funclist) > count else 0

    def piece(fun):
        value = fun(x, *args, **kw) if callable(fun) else fun
        value = as_type(array_of("piecewise", value), x.dtype)
        return broadcast_to(value, x.shape)

    out = piece(default)
    for i in range(count):
        out = lax.select(broadcast_to(conditions[i], x.shape), piece(funclist[i]), out)
    return out


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Limit the elements to an interval; `max` wins where the limits cross.

    Args:
        arr: the array.
        min, max: limits, or None for no limit; broadcast against the array.

    Raises:
        ValueError: no array, or complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.clip(jnp.array([-1.0, 0.5, 2.0]), 0.0, 1.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr)
    for value in (arr, min, max):
        if type(value) not in _REAL_NUMBERS and _is_complex_value(value):
            raise ValueError(
                "Clip received a complex value. Complex values have no ordering and cannot be "
                "clipped. Clip jnp.real(x) or jnp.abs(x) instead."
            )
    if min is not None:
        check_mixing("clip", arr, min)
        arr = maximum(arr, min)
    if max is not None:
        check_mixing("clip", arr, max)
        arr = minimum(arr, max)
    return array_of("clip", arr)


_REAL_NUMBERS = (float, int, type(None))


def _is_complex_value(x: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype_of(x), np.complexfloating)


def fmin(x1: Any, x2: Any) -> Array:
    """The smaller of two numbers; the other one where one is NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 2.0)
        Array([1., 2.], dtype=float32)
    """
    check_mixing("fmin", x1, x2)
    return choose_promoted(bitwise_or(less(x1, x2), isnan(x2)), x1, x2)


def fmax(x1: Any, x2: Any) -> Array:
    """The larger of two numbers; the other one where one is NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 2.0)
        Array([2., 2.], dtype=float32)
    """
    check_mixing("fmax", x1, x2)
    return choose_promoted(bitwise_or(greater(x1, x2), isnan(x2)), x1, x2)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Replace NaN and the infinities by finite numbers.

    Args:
        x: the array; integers are returned unchanged.
        copy: has no effect.
        nan: what NaN becomes.
        posinf, neginf: what infinities become; the largest numbers of the type by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
        Array([1., 0., 9.], dtype=float32)
    """
    x = array_of("nan_to_num", x)
    if has_whole_elements(x):
        return x
    if is_complex(x):
        parts = (
            nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
            for part in (lax.real(x), lax.imag(x))
        )
        return lax.complex(*parts)
    info = dtypes.finfo(x.dtype)
    out = choose(isnan(x), as_type(nan, x.dtype), x)
    for infinity, limit, value in ((np.inf, info.max, posinf), (-np.inf, info.min, neginf)):
        value = np.asarray(limit, x.dtype) if value is None else value
        hit = eq_p.bind(out, const(x, infinity))
        out = choose(hit, as_type(value, x.dtype), out)
    return out


attach_shortcuts(globals())
