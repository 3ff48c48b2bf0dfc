"""Arithmetic, complex parts and rounding, element by element."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.lazy import later
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive, is_linear
from namoo.primitives import families as fam
from namoo.primitives.compare import eq, ge, lt, select
from namoo.primitives.families import (
    Elementwise,
    accepts,
    floating,
    integer,
    number,
    operands,
    unary,
)
from namoo.primitives.families import (
    real as real_types,
)
from namoo.primitives.shape import (
    FLOATS,
    INTEGERS,
    broadcast_to,
    convert_element_type,
    shape_of,
    unbroadcast,
)

__all__ = [
    "abs", "abs_p", "add", "add_p", "ceil", "ceil_p", "complex", "complex_p", "conj", "conj_p",
    "div", "div_p", "floor", "floor_p", "imag", "imag_p", "is_finite", "is_finite_p", "mul",
    "mul_p", "neg", "neg_p", "nextafter", "nextafter_p", "real", "real_p", "rem", "rem_p", "round",
    "round_p", "RoundingMethod", "sign", "sign_p", "sub", "sub_p",
]  # fmt: skip

checks = later("namoo.analysis.checks")


def _is_complex(x: Any) -> bool:
    return aval_of(x).dtype.kind == "c"


def full_like(x: Any, value: Any) -> Any:
    """A scalar of the type of `x`, for use in elementwise formulas."""
    aval = aval_of(x)
    return EagerArray(np.asarray(value, aval.dtype), aval.weak_type)


class Arithmetic(Elementwise):
    """An operation whose result may not fit the type of its integers."""

    def guards(self, *avals, **params):
        return checks.overflow(self, avals[0], params)


class Neg(Arithmetic):
    def transpose(self, ct, x):
        return [neg(ct)]


neg_p = Neg("neg", np.negative, jvp=[lambda t, y, x: neg(t)], dtypes=number, stablehlo="negate")


def neg(x: Any) -> Any:
    """-x

    Example:
        >>> neg(2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    return neg_p.bind(x)


class Add(Arithmetic):
    def transpose(self, ct, x, y):
        return [
            unbroadcast(ct, x.aval.shape) if is_linear(x) else None,
            unbroadcast(ct, y.aval.shape) if is_linear(y) else None,
        ]


add_p = Add(
    "add", np.add, jvp=[lambda t, o, x, y: t, lambda t, o, x, y: t], dtypes=number, stablehlo="add"
)


def add(x: Any, y: Any) -> Any:
    """x + y, of operands of one dtype.

    Example:
        >>> add(2.0, 3.0)
        Array(5., dtype=float32, weak_type=True)
    """
    return add_p.bind(*operands("add", x, y))


class Sub(Arithmetic):
    def transpose(self, ct, x, y):
        return [
            unbroadcast(ct, x.aval.shape) if is_linear(x) else None,
            neg(unbroadcast(ct, y.aval.shape)) if is_linear(y) else None,
        ]


sub_p = Sub(
    "sub",
    np.subtract,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: neg(t)],
    dtypes=number,
    stablehlo="subtract",
)


def sub(x: Any, y: Any) -> Any:
    """x - y, of operands of one dtype.

    Example:
        >>> sub(2.0, 3.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    return sub_p.bind(*operands("sub", x, y))


class Mul(Arithmetic):
    def transpose(self, ct, x, y):
        if is_linear(x):
            return [unbroadcast(mul(ct, y), x.aval.shape), None]
        return [None, unbroadcast(mul(x, ct), y.aval.shape)]


mul_p = Mul(
    "mul",
    np.multiply,
    jvp=[lambda t, o, x, y: mul(t, y), lambda t, o, x, y: mul(x, t)],
    dtypes=number,
    stablehlo="multiply",
)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """x · y, of operands of one dtype.

    Args:
        x, y: the factors.
        out_dtype: the type of the product; factors of any types are converted to it first.

    Example:
        >>> mul(2.0, 3.0)
        Array(6., dtype=float32, weak_type=True)
    """
    if out_dtype is not None:
        out_dtype = dtypes.canonicalize_dtype(out_dtype)
        weak = aval_of(x).weak_type and aval_of(y).weak_type
        x, y = (convert_element_type(z, out_dtype, weak) for z in (x, y))
    return mul_p.bind(*operands("mul", x, y))


def _divide(x, y):
    if x.dtype not in INTEGERS:
        return np.divide(x, y)
    # Integers divide towards zero; x / 0 has all bits set, as in compiled code.
    zero = y == 0
    quotient = x // np.where(zero, 1, y).astype(y.dtype)
    if x.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * y != x))
    return np.where(zero, np.array(-1).astype(x.dtype), quotient).astype(x.dtype)


class Quotient(Elementwise):
    """An operation that divides by its second operand."""

    def guards(self, x, y):
        return [checks.Guard(1)] if accepts(y.dtype, integer) else []


def _quotient_in_xla(name, by_zero):
    """Return a lowering in which XLA never divides integers by zero.

    XLA defines x / 0, but its compiler crashes when it folds such constants. `by_zero` maps x, and
    the emitter of constants, to the result for a divisor of zero.
    """

    def lower(hlo, x, y):
        x, y = hlo.alike(x, y)
        if x.dtype not in INTEGERS:
            return hlo.elementwise(name, x, y)
        zero = hlo.compare(y, hlo.constant(0, y.dtype, y.shape), "EQ")
        safe = hlo.select(zero, hlo.constant(1, y.dtype, y.shape), y)
        return hlo.select(zero, by_zero(hlo, x), hlo.op(name, x, safe))

    return lower


class Div(Quotient):
    def transpose(self, ct, x, y):
        return [unbroadcast(div(ct, y), x.aval.shape), None]


div_p = Div(
    "div",
    _divide,
    jvp=[lambda t, o, x, y: div(t, y), lambda t, o, x, y: div(mul(neg(t), o), y)],
    dtypes=number,
    stablehlo=_quotient_in_xla("divide", lambda hlo, x: hlo.constant(-1, x.dtype, x.shape)),
)


def div(x: Any, y: Any) -> Any:
    """x / y, of operands of one dtype; integers divide towards zero.

    Example:
        >>> import namoo.numpy as jnp
        >>> div(jnp.array([7, -7]), jnp.array([2, 2]))
        Array([ 3, -3], dtype=int32)
    """
    return div_p.bind(*operands("div", x, y))


def _remainder(x, y):
    if x.dtype not in INTEGERS:
        return np.fmod(x, y)
    zero = y == 0
    return np.where(zero, x, np.fmod(x, np.where(zero, 1, y))).astype(x.dtype)


rem_p = Quotient(
    "rem",
    _remainder,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: mul(neg(t), trunc(div(x, y)))],
    dtypes=real_types,
    stablehlo=_quotient_in_xla("remainder", lambda hlo, x: x),
)


def rem(x: Any, y: Any) -> Any:
    """The remainder of x / y, with the sign of x.

    Example:
        >>> import namoo.numpy as jnp
        >>> rem(jnp.array([7, -7]), jnp.array([2, 2]))
        Array([ 1, -1], dtype=int32)
    """
    return rem_p.bind(*operands("rem", x, y))


class Complex(Elementwise):
    def transpose(self, ct, x, y):
        return [
            unbroadcast(real(ct), x.aval.shape) if is_linear(x) else None,
            unbroadcast(imag(neg(ct)), y.aval.shape) if is_linear(y) else None,
        ]


def _complex_of(dtype):
    return np.dtype(np.complex64 if dtype == np.float32 else np.complex128)


def _real_of(dtype):
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def make_complex(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), _complex_of(x.dtype))
    out.real, out.imag = x, y
    return out


_parts = (np.float32, np.float64)

complex_p = Complex(
    "complex",
    make_complex,
    jvp=[
        lambda t, o, x, y: complex(t, full_like(t, 0)),
        lambda t, o, x, y: complex(full_like(t, 0), t),
    ],
    dtypes=_parts,
    result=_complex_of,
    stablehlo="complex",
)


def complex(x: Any, y: Any) -> Any:
    """x + i·y

    Example:
        >>> complex(1.0, 2.0)
        Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return complex_p.bind(*operands("complex", x, y))


class Real(Elementwise):
    def transpose(self, ct, x):
        return [complex(ct, full_like(ct, 0))]


class Imag(Elementwise):
    def transpose(self, ct, x):
        return [complex(full_like(ct, 0), neg(ct))]


real_p = Real(
    "real",
    np.real,
    jvp=[lambda t, y, x: real(t)],
    dtypes=(np.complexfloating,),
    result=_real_of,
    stablehlo="real",
)
imag_p = Imag(
    "imag",
    np.imag,
    jvp=[lambda t, y, x: imag(t)],
    dtypes=(np.complexfloating,),
    result=_real_of,
    stablehlo="imag",
)


def _conj_in_xla(hlo, x):
    real, imag = hlo.parts(x)
    return hlo.op("complex", real, hlo.op("negate", imag, result=imag), result=x)


class Conj(Elementwise):
    """Linear over the real numbers only, as `real` and `imag` are."""

    def transpose(self, ct, x):
        return [conj(ct)]


conj_p = Conj(
    "conj",
    np.conj,
    jvp=[lambda t, y, x: conj(t)],
    dtypes=(np.complexfloating,),
    stablehlo=_conj_in_xla,
)


def real(x: Any) -> Any:
    """The real part of a complex array.

    Example:
        >>> real(1.0 + 2.0j)
        Array(1., dtype=float32, weak_type=True)
    """
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """The imaginary part of a complex array.

    Example:
        >>> imag(1.0 + 2.0j)
        Array(2., dtype=float32, weak_type=True)
    """
    return imag_p.bind(x)


def conj(x: Any) -> Any:
    """The complex conjugate; real arrays become complex.

    Example:
        >>> conj(1.0 + 2.0j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    if not _is_complex(x):
        return complex(x, full_like(x, 0))
    return conj_p.bind(x)


def _abs_tangent(t, y, x):
    if _is_complex(x):
        return real(mul(t, div(conj(x), complex(nonzero(y), full_like(y, 0)))))
    return select(ge(x, full_like(x, 0)), t, neg(t))


def nonzero(x):
    """x with zeros replaced by ones, for denominators whose numerators vanish too."""
    return select(eq(x, full_like(x, 0)), broadcast_to(full_like(x, 1), shape_of(x)), x)


def _abs_in_xla(hlo, x):
    out = hlo.op("abs", x)
    if x.dtype.kind != "c":
        return out
    # A number with an infinite part is infinite, even if the other part is NaN.
    infinity = hlo.constant(np.inf, out.dtype, x.shape)
    parts = [hlo.op("abs", part, result=part) for part in hlo.parts(x)]
    far = [hlo.compare(part, infinity, "EQ") for part in parts]
    return hlo.select(hlo.combine("or", *far), infinity, out)


abs_p = unary(
    "abs",
    np.abs,
    jvp=_abs_tangent,
    dtypes=(np.signedinteger, np.floating, np.complexfloating),
    result=lambda dtype: _real_of(dtype) if dtype.kind == "c" else dtype,
    stablehlo=_abs_in_xla,
)


def abs(x: Any) -> Any:
    """|x|

    Example:
        >>> abs(-2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return abs_p.bind(x)


def _sign(x):
    # The sign of -0 is -0, which NumPy's function loses.
    if x.dtype.kind != "c":
        return np.copysign(np.sign(x), x) if x.dtype in FLOATS else np.sign(x)
    parts = x.real, x.imag
    # Where one part is infinite, that part decides the direction.
    infinite = np.isinf(parts[0]) ^ np.isinf(parts[1])
    parts = [np.where(infinite, np.copysign(np.isinf(v), v), v) for v in parts]
    size = np.hypot(*parts)
    return make_complex(*(np.where(size == 0, v, v / size).astype(v.dtype) for v in parts))


def _sign_in_xla(hlo, x):
    if not accepts(x.dtype, (np.unsignedinteger,)):
        return hlo.op("sign", x)
    return hlo.op("minimum", x, hlo.constant(1, x.dtype, x.shape))


sign_p = unary("sign", _sign, dtypes=number, stablehlo=_sign_in_xla)


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of x; x/|x| for complex x.

    Example:
        >>> sign(-2.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    return sign_p.bind(x)


floor_p = unary("floor", np.floor, dtypes=floating, stablehlo="floor")
ceil_p = unary("ceil", np.ceil, dtypes=floating, stablehlo="ceil")


def floor(x: Any) -> Any:
    """The largest integer that is not above x.

    Example:
        >>> floor(-1.5)
        Array(-2., dtype=float32, weak_type=True)
    """
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """The smallest integer that is not below x.

    Example:
        >>> ceil(-1.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    return ceil_p.bind(x)


def trunc(x: Any) -> Any:
    """x rounded towards zero.

    Example:
        >>> trunc(-1.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    return select(lt(x, full_like(x, 0)), ceil(x), floor(x))


class RoundingMethod(IntEnum):
    """How `round` treats a number halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round(x, *, rounding_method):
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    # Some 8-bit types cannot represent zero.
    wide = x.astype(np.float32) if x.dtype.itemsize == 1 else x
    whole = np.trunc(wide)
    return np.where(np.abs(wide - whole) >= 0.5, whole + np.sign(wide), whole).astype(x.dtype)


_ROUND = {
    RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}
round_p = unary(
    "round",
    _round,
    dtypes=floating,
    stablehlo=lambda hlo, x, rounding_method: hlo.op(_ROUND[rounding_method], x),
)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer; halves go away from zero, or to even.

    Example:
        >>> import namoo.numpy as jnp
        >>> round(jnp.array([0.5, 1.5, -2.5]))
        Array([ 1.,  2., -3.], dtype=float32)
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


is_finite_p = unary(
    "is_finite", np.isfinite, dtypes=floating, result=fam.boolean, stablehlo="is_finite"
)


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
    """
    return is_finite_p.bind(x)


class NextAfter(Elementwise):
    """A step of one bit has no derivative: there is no jvp rule, as in JAX."""

    jvp = Primitive.jvp


def _next_after_in_xla(hlo, x, y):
    x, y = hlo.alike(x, y)
    if x.dtype == dtypes.float8_e8m0fnu:  # XLA reads its highest bit as a sign
        return hlo.host(np.nextafter, x, y)
    return hlo.op("chlo.next_after", x, y)


nextafter_p = NextAfter("nextafter", np.nextafter, dtypes=floating, stablehlo=_next_after_in_xla)


def nextafter(x: Any, y: Any) -> Any:
    """The next representable number after x towards y.

    Example:
        >>> nextafter(1.0, 2.0)
        Array(1.0000001, dtype=float32, weak_type=True)
    """
    return nextafter_p.bind(*operands("nextafter", x, y))
