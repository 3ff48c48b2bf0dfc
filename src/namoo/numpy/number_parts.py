"""Rounding, complex parts, and tests for NaN, infinity and closeness."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import (
    array_of,
    as_type,
    promote,
    promote_inexact,
)
from namoo.numpy.same_type import (
    const,
    is_complex,
    is_kind,
    refuse_complex,
    strong,
)
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.compare import eq_p, ne_p
from namoo.primitives.shape import broadcast_to, convert_element_type


def has_whole_elements(x: Array) -> bool:
    return not is_kind(x, np.inexact)


def floor(x: Any, /) -> Array:
    """The largest integer that is not above x, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.floor(jnp.array([-1.5, 1.5]))
        Array([-2.,  1.], dtype=float32)
    """
    (x,) = promote("floor", x)
    return x if has_whole_elements(x) else lax.floor(x)


def ceil(x: Any, /) -> Array:
    """The smallest integer that is not below x, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ceil(jnp.array([-1.5, 1.5]))
        Array([-1.,  2.], dtype=float32)
    """
    (x,) = promote("ceil", x)
    return x if has_whole_elements(x) else lax.ceil(x)


def trunc(x: Any) -> Array:
    """x rounded towards zero, as a number of the same type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.trunc(jnp.array([-1.5, 1.5]))
        Array([-1.,  1.], dtype=float32)
    """
    (x,) = promote("trunc", x)
    return x if has_whole_elements(x) else lax.trunc(x)


def _to_even(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def rint(x: Any, /) -> Array:
    """The nearest integer as a float; halves go to the even one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.rint(jnp.array([0.5, 1.5, -2.7]))
        Array([ 0.,  2., -3.], dtype=float32)
    """
    (x,) = promote("rint", x)
    if has_whole_elements(x):
        return convert_element_type(x, dtypes.default_float_dtype())
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
    if decimals > np.log10(float(dtypes.finfo(x.dtype).max)):
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
    from namoo._base.tracer_advice import INTEGER_ADVICE
    from namoo.core.trace import Tracer

    if isinstance(x, Tracer):
        x.concrete(f"a concrete value for {what}")
        x.refuse(errors.ConcretizationTypeError, f"a concrete integer for {what}", INTEGER_ADVICE)
    return operator.index(x)


def conjugate(x: Any, /) -> Array:
    """The complex conjugate; real arrays are returned unchanged.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.conjugate(jnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    (x,) = promote("conjugate", x)
    return lax.conj(x) if is_complex(x) else x


conj = conjugate


def real(val: Any, /) -> Array:
    """The real part; real arrays are returned unchanged.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.real(jnp.array([1 + 2j, 3]))
        Array([1., 3.], dtype=float32)
    """
    (val,) = promote("real", val)
    return lax.real(val) if is_complex(val) else val


def imag(val: Any, /) -> Array:
    """The imaginary part; zeros for real arrays.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.imag(jnp.array([1 + 2j, 3]))
        Array([2., 0.], dtype=float32)
    """
    (val,) = promote("imag", val)
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
        dtype = dtypes.default_float_dtype()
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


def isnan(x: Any, /) -> Array:
    """Whether elements are NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    (x,) = promote("isnan", x)
    return ne_p.bind(x, x)


def isfinite(x: Any, /) -> Array:
    """Whether elements are neither infinite nor NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
    """
    (x,) = promote("isfinite", x)
    if has_whole_elements(x):
        return _all(x, True)
    if is_complex(x):
        return bits.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def isinf(x: Any, /) -> Array:
    """Whether elements are infinite, of either sign.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
        Array([False,  True, False], dtype=bool)
    """
    (x,) = promote("isinf", x)
    if has_whole_elements(x):
        return _all(x, False)
    if is_complex(x):
        return bits.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return eq_p.bind(lax.abs(x), strong(x, np.inf))


def _is_infinity(name: str, x: Any, value: float, out: None) -> Array:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    x = array_of(name, x)
    refuse_complex(name, x, ValueError)
    return _all(x, False) if has_whole_elements(x) else eq_p.bind(x, strong(x, value))


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
    if dtypes.is_extended(a.dtype):
        return eq_p.bind(a, b)
    a, b = promote_inexact("isclose", a, b)
    part = dtypes.finfo(a.dtype).dtype if is_complex(a) else a.dtype
    relative, absolute = as_type(rtol, part), as_type(atol, part)
    limit = lax.add(lax.mul(lax.abs(b), relative), absolute)
    near = bits.bitwise_and(isfinite(b), lax.le(lax.abs(lax.sub(a, b)), limit))
    near = bits.bitwise_or(eq_p.bind(a, b), near)
    if equal_nan:
        near = bits.bitwise_or(near, bits.bitwise_and(isnan(a), isnan(b)))
    return near


attach_shortcuts(globals())
