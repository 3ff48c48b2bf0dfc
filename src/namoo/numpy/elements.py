"""Choosing, rounding, limiting, testing and taking apart single elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import _dtypes, errors
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace
from namoo.numpy import fast
from namoo.numpy.arithmetic import (
    choose,
    const,
    is_complex,
    is_kind,
    refuse_complex,
    strong,
    to_bool,
)
from namoo.numpy.logic import bitwise_or, greater, less, maximum, minimum
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    as_type,
    broadcast_shapes,
    check_arraylike,
    check_mixing,
    promote,
    promote_inexact,
    promote_types,
)
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.compare import eq_p, ne_p
from namoo.primitives.shape import broadcast_to, convert_element_type
from namoo.transforms.recall import recalled


@recalled
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
    if size is None and fill_value is None:
        done = _quick_where(condition, x, y)
        if done is not None:
            return done
    if x is None and y is None:
        from namoo.numpy.searching import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    return _where(condition, x, y)


def _where(condition: Any, x: Any, y: Any) -> Array:
    check_arraylike("where", condition, x, y)
    (test,) = arrays_of("where", condition)
    test = to_bool(test)
    x, y = promote_types("where", x, y)
    shapes = [test.shape, x.shape, y.shape]
    shape = broadcast_shapes(*shapes)
    if test.shape:
        test = broadcast_to(test, shape)
    return lax.select(test, broadcast_to(x, shape), broadcast_to(y, shape))


def _quick_where(condition: Any, x: Any, y: Any) -> Array | None:
    """`where` of concrete operands of one type, or an array and a Python float; else None."""
    if type(condition) is not EagerArray or context.trace is not eval_trace:
        return None
    test = condition._value
    if test.dtype.char != "?":
        return None
    if type(x) is EagerArray:
        a, weak = x._value, x._weak
        if type(y) is EagerArray:
            b, weak = y._value, weak and y._weak
            # Promotion makes booleans strongly typed; the general way says so.
            if a.dtype is not b.dtype or weak and a.dtype.char == "?":
                return None
        elif type(y) is float and a.dtype in fast.INEXACT:
            b = y
        else:
            return None
    elif type(y) is EagerArray and type(x) is float and y._value.dtype in fast.INEXACT:
        a, b, weak = x, y._value, y._weak
    else:
        return None
    try:
        return EagerArray(np.where(test, a, b), weak)
    except ValueError:
        # Shapes that do not fit: the general way says which.
        return None


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
        funclist: a function or constant for each condition, and perhaps one more for where none
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


@recalled
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
    return _dtypes.issubdtype(_dtypes.dtype_of(x), np.complexfloating)


def fmin(x1: Any, x2: Any) -> Array:
    """The smaller of two numbers; the other one where one is NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 2.0)
        Array([1., 2.], dtype=float32)
    """
    check_mixing("fmin", x1, x2)
    return _where(bitwise_or(less(x1, x2), isnan(x2)), x1, x2)


def fmax(x1: Any, x2: Any) -> Array:
    """The larger of two numbers; the other one where one is NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 2.0)
        Array([2., 2.], dtype=float32)
    """
    check_mixing("fmax", x1, x2)
    return _where(bitwise_or(greater(x1, x2), isnan(x2)), x1, x2)


def _whole(x: Array) -> bool:
    return not is_kind(x, np.inexact)


@fast.unary(np.floor, "f", promote)
def floor(x: Any, /) -> Array:
    """The largest integer that is not above x, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.floor(jnp.array([-1.5, 1.5]))
        Array([-2.,  1.], dtype=float32)
    """
    return x if _whole(x) else lax.floor(x)


@fast.unary(np.ceil, "f", promote)
def ceil(x: Any, /) -> Array:
    """The smallest integer that is not below x, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ceil(jnp.array([-1.5, 1.5]))
        Array([-1.,  2.], dtype=float32)
    """
    return x if _whole(x) else lax.ceil(x)


@fast.unary(np.trunc, "f", promote)
def trunc(x: Any) -> Array:
    """x rounded towards zero, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.trunc(jnp.array([-1.5, 1.5]))
        Array([-1.,  1.], dtype=float32)
    """
    return x if _whole(x) else lax.trunc(x)


def _to_even(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


@fast.unary(np.rint, "f", promote)
def rint(x: Any, /) -> Array:
    """The nearest integer as a float; halves go to the even one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.rint(jnp.array([0.5, 1.5, -2.7]))
        Array([ 0.,  2., -3.], dtype=float32)
    """
    if _whole(x):
        return convert_element_type(x, _dtypes.default_float_dtype())
    if is_complex(x):
        return lax.complex(_to_even(lax.real(x)), _to_even(lax.imag(x)))
    return _to_even(x)


def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals; halves go to the even digit.

    Args:
        a: the array.
        decimals: how many digits after the point; negative ones count to its left.
        out: not supported.

    Raises:
        NotImplementedError: `out`, or negative `decimals` of integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.round(jnp.array([1.234, 2.5]), 1), jnp.round(2.5)
        (Array([1.2, 2.5], dtype=float32), Array(2., dtype=float32, weak_type=True))
    """
    x = array_of("round", a)
    decimals = static_index(decimals, "the 'decimals' argument of jnp.round")
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported.")
    if is_kind(x, np.integer):
        if decimals < 0:
            raise NotImplementedError(
                "integer np.round not implemented for decimals < 0; convert to float first"
            )
        return x
    if x.dtype == np.bool_:
        raise ValueError("jnp.round takes numbers, not booleans: convert them to float first.")
    if decimals > np.log10(float(_dtypes.finfo(x.dtype).max)):
        return x

    def decimal(part):
        if not decimals:
            return _to_even(part)
        wide = convert_element_type(part, np.float32) if part.dtype == np.float16 else part
        factor = const(wide, 10.0**decimals)
        near = lax.div(_to_even(lax.mul(wide, factor)), factor)
        return convert_element_type(near, part.dtype, part.weak_type)

    if is_complex(x):
        return lax.complex(decimal(lax.real(x)), decimal(lax.imag(x)))
    return decimal(x)


def around(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals: another name of `round`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.around(jnp.array([1.26]), 1)
        Array([1.3], dtype=float32)
    """
    return round(a, decimals, out)


def static_index(x: Any, what: str) -> int:
    """A Python integer, or an error that names the argument that must be one."""
    from namoo.core.trace import INTEGER_ADVICE, Tracer

    if isinstance(x, Tracer):
        x.concrete(f"a concrete value for {what}")
        x.refuse(errors.ConcretizationTypeError, f"a concrete integer for {what}", INTEGER_ADVICE)
    return operator.index(x)


@fast.unary(np.conjugate, "fiuc", promote)
def conjugate(x: Any, /) -> Array:
    """The complex conjugate; real arrays are returned as they are.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.conjugate(jnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    return lax.conj(x) if is_complex(x) else x


conj = conjugate


@fast.unary(np.real, "fiucb", promote)
def real(val: Any, /) -> Array:
    """The real part; real arrays are returned as they are.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.real(jnp.array([1 + 2j, 3]))
        Array([1., 3.], dtype=float32)
    """
    return lax.real(val) if is_complex(val) else val


@fast.unary(np.imag, "c", promote)
def imag(val: Any, /) -> Array:
    """The imaginary part; zeros for real arrays.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.imag(jnp.array([1 + 2j, 3]))
        Array([2., 0.], dtype=float32)
    """
    if is_complex(val):
        return lax.imag(val)
    return broadcast_to(EagerArray(strong(val, 0), val.weak_type), val.shape)


def angle(z: Any, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, in (-π, π].

    Args:
        z: the array; negative real numbers have angle π.
        deg: in degrees instead of radians.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
        Array([ 90., 180.], dtype=float32)
    """
    z = array_of("angle", z)
    x, y = real(z), imag(z)
    if not is_kind(x, np.inexact) or (not is_complex(z) and not z.ndim):
        dtype = _dtypes.default_float_dtype()
        x, y = convert_element_type(x, dtype), convert_element_type(y, dtype)
    out = lax.atan2_p.bind(y, x)
    return lax.mul(out, const(out, 180 / np.pi)) if deg else out


def iscomplex(x: Any) -> Array:
    """Whether elements have an imaginary part other than zero.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.iscomplex(jnp.array([1 + 2j, 3]))
        Array([ True, False], dtype=bool)
    """
    y = imag(x)
    return ne_p.bind(y, const(y, 0))


def isreal(x: Any) -> Array:
    """Whether elements have no imaginary part.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isreal(jnp.array([1 + 2j, 3]))
        Array([False,  True], dtype=bool)
    """
    y = imag(x)
    return eq_p.bind(y, const(y, 0))


def _all(x: Array, value: bool) -> Array:
    """An array of one truth value in the shape of `x`."""
    return broadcast_to(EagerArray(np.asarray(value)), x.shape)


@fast.unary(np.isnan, "fc", promote)
def isnan(x: Any, /) -> Array:
    """Whether elements are NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    return ne_p.bind(x, x)


@fast.unary(np.isfinite, "fc", promote)
def isfinite(x: Any, /) -> Array:
    """Whether elements are neither infinite nor NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
    """
    if _whole(x):
        return _all(x, True)
    if is_complex(x):
        return bits.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


@fast.unary(np.isinf, "fc", promote)
def isinf(x: Any, /) -> Array:
    """Whether elements are infinite, of either sign.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
        Array([False,  True, False], dtype=bool)
    """
    if _whole(x):
        return _all(x, False)
    if is_complex(x):
        return bits.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return eq_p.bind(lax.abs(x), strong(x, np.inf))


def _is_infinity(name: str, x: Any, value: float, out: None) -> Array:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    x = array_of(name, x)
    refuse_complex(name, x, ValueError)
    return _all(x, False) if _whole(x) else eq_p.bind(x, strong(x, value))


def isposinf(x: Any, /, out: None = None) -> Array:
    """Whether elements are +∞.

    Raises:
        ValueError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return _is_infinity("isposinf", x, np.inf, out)


def isneginf(x: Any, /, out: None = None) -> Array:
    """Whether elements are -∞.

    Raises:
        ValueError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return _is_infinity("isneginf", x, -np.inf, out)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether |a - b| ≤ atol + rtol · |b|, element by element.

    Args:
        a, b: arrays, broadcast against one another.
        rtol, atol: relative and absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0 + 1e-7, 2.1]))
        Array([ True, False], dtype=bool)
    """
    a, b = promote("isclose", a, b)
    if _dtypes.is_extended(a.dtype):
        return eq_p.bind(a, b)
    a, b = promote_inexact("isclose", a, b)
    part = _dtypes.finfo(a.dtype).dtype if is_complex(a) else a.dtype
    relative, absolute = as_type(rtol, part), as_type(atol, part)
    limit = lax.add(lax.mul(lax.abs(b), relative), absolute)
    near = bits.bitwise_and(isfinite(b), lax.le(lax.abs(lax.sub(a, b)), limit))
    near = bits.bitwise_or(eq_p.bind(a, b), near)
    if equal_nan:
        near = bits.bitwise_or(near, bits.bitwise_and(isnan(a), isnan(b)))
    return near


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Replace NaN and the infinities by finite numbers.

    Args:
        x: the array; integers are returned as they are.
        copy: has no effect.
        nan: what NaN becomes.
        posinf, neginf: what infinities become; the largest numbers of the type by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
        Array([1., 0., 9.], dtype=float32)
    """
    x = array_of("nan_to_num", x)
    if _whole(x):
        return x
    if is_complex(x):
        parts = (
            nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
            for part in (lax.real(x), lax.imag(x))
        )
        return lax.complex(*parts)
    info = _dtypes.finfo(x.dtype)
    out = choose(isnan(x), as_type(nan, x.dtype), x)
    for infinity, limit, value in ((np.inf, info.max, posinf), (-np.inf, info.min, neginf)):
        value = np.asarray(limit, x.dtype) if value is None else value
        hit = eq_p.bind(out, const(x, infinity))
        out = choose(hit, as_type(value, x.dtype), out)
    return out
