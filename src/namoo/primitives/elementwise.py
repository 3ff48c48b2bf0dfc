"""Arithmetic, elementary functions, comparison and selection, element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from namoo import _dtypes
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero, is_linear
from namoo.primitives import families as fam
from namoo.primitives.families import (
    Elementwise,
    align_batch,
    binary,
    common_shape,
    compare,
    floating,
    inexact,
    number,
    operands,
    ordered,
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
    instantiate,
    moveaxis,
    ones,
    reshape,
    shape_of,
    unbroadcast,
    zeros,
)


def _is_complex(x: Any) -> bool:
    return aval_of(x).dtype.kind == "c"


def full_like(x: Any, value: Any) -> Any:
    """A scalar of the type of `x`, for use in elementwise formulas."""
    return np.asarray(value, aval_of(x).dtype)


# ---- linear in every operand, or in each one separately


class Neg(Elementwise):
    def transpose(self, ct, x):
        return [neg(ct)]


neg_p = Neg("neg", np.negative, jvp=[lambda t, y, x: neg(t)], dtypes=number, stablehlo="negate")


def neg(x: Any) -> Any:
    """-x"""
    return neg_p.bind(x)


class Add(Elementwise):
    def transpose(self, ct, x, y):
        return [
            unbroadcast(ct, x.aval.shape) if is_linear(x) else None,
            unbroadcast(ct, y.aval.shape) if is_linear(y) else None,
        ]


add_p = Add(
    "add", np.add, jvp=[lambda t, o, x, y: t, lambda t, o, x, y: t], dtypes=number, stablehlo="add"
)


def add(x: Any, y: Any) -> Any:
    """x + y, of operands of one dtype."""
    return add_p.bind(*operands("add", x, y))


class Sub(Elementwise):
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
    """x - y, of operands of one dtype."""
    return sub_p.bind(*operands("sub", x, y))


class Mul(Elementwise):
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


def mul(x: Any, y: Any) -> Any:
    """x · y, of operands of one dtype."""
    return mul_p.bind(*operands("mul", x, y))


def _divide(x, y):
    if x.dtype not in INTEGERS:
        return np.divide(x, y)
    # Integers divide towards zero; x / 0 has all bits set, as compiled code has it.
    zero = y == 0
    x, y = _wide(x), _wide(y)
    quotient = x // np.where(zero, 1, y).astype(y.dtype)
    if x.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * y != x))
    return np.where(zero, np.array(-1).astype(x.dtype), quotient)


def _wide(x):
    """int4 and its kin as int32: NumPy computes more with that."""
    return x.astype(np.int32) if x.dtype.kind == "V" else x


class Div(Elementwise):
    def transpose(self, ct, x, y):
        return [unbroadcast(div(ct, y), x.aval.shape), None]


div_p = Div(
    "div",
    lambda x, y: _divide(x, y).astype(x.dtype, copy=False),
    jvp=[lambda t, o, x, y: div(t, y), lambda t, o, x, y: div(mul(neg(t), o), y)],
    dtypes=number,
    stablehlo="divide",
)


def div(x: Any, y: Any) -> Any:
    """x / y, of operands of one dtype; integers divide towards zero."""
    return div_p.bind(*operands("div", x, y))


def _remainder(x, y):
    if x.dtype not in INTEGERS:
        return np.fmod(x, y)
    zero = y == 0
    wide, y = _wide(x), _wide(y)
    return np.where(zero, wide, np.fmod(wide, np.where(zero, 1, y))).astype(x.dtype)


rem_p = binary(
    "rem",
    _remainder,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: mul(neg(t), trunc(div(x, y)))],
    dtypes=real_types,
    stablehlo="remainder",
)


def rem(x: Any, y: Any) -> Any:
    """The remainder of x / y, with the sign of x."""
    return rem_p.bind(*operands("rem", x, y))


# ---- complex numbers


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


def _make_complex(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), _complex_of(x.dtype))
    out.real, out.imag = x, y
    return out


_parts = (np.float32, np.float64)

complex_p = Complex(
    "complex",
    _make_complex,
    jvp=[
        lambda t, o, x, y: complex(t, full_like(t, 0)),
        lambda t, o, x, y: complex(full_like(t, 0), t),
    ],
    dtypes=_parts,
    result=_complex_of,
    stablehlo="complex",
)


def complex(x: Any, y: Any) -> Any:
    """x + i·y"""
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


def real(x: Any) -> Any:
    """The real part of a complex array."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """The imaginary part of a complex array."""
    return imag_p.bind(x)


def conj(x: Any) -> Any:
    """The complex conjugate; real arrays become complex."""
    if not _is_complex(x):
        return complex(x, full_like(x, 0))
    return complex(real(x), neg(imag(x)))


def _conj_if_complex(x):
    return conj(x) if _is_complex(x) else x


def _abs_tangent(t, y, x):
    if _is_complex(x):
        return real(mul(t, div(conj(x), complex(_nonzero(y), full_like(y, 0)))))
    return select(ge(x, full_like(x, 0)), t, neg(t))


def _nonzero(x):
    """x with zeros replaced by ones, for denominators whose numerators vanish too."""
    return select(eq(x, full_like(x, 0)), broadcast_to(full_like(x, 1), shape_of(x)), x)


abs_p = unary(
    "abs",
    np.abs,
    jvp=_abs_tangent,
    dtypes=(np.signedinteger, np.floating, np.complexfloating),
    result=lambda dtype: _real_of(dtype) if dtype.kind == "c" else dtype,
    stablehlo="abs",
)


def abs(x: Any) -> Any:
    """|x|"""
    return abs_p.bind(x)


def _sign(x):
    # The sign of -0 is -0, which NumPy's function forgets.
    return np.copysign(np.sign(x), x) if x.dtype in FLOATS else np.sign(x)


sign_p = unary("sign", _sign, dtypes=number, stablehlo="sign")


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of x; x/|x| for complex x."""
    return sign_p.bind(x)


# ---- rounding

floor_p = unary("floor", np.floor, dtypes=floating, stablehlo="floor")
ceil_p = unary("ceil", np.ceil, dtypes=floating, stablehlo="ceil")


def floor(x: Any) -> Any:
    """The largest integer that is not above x."""
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """The smallest integer that is not below x."""
    return ceil_p.bind(x)


def trunc(x: Any) -> Any:
    """x rounded towards zero."""
    return select(lt(x, full_like(x, 0)), ceil(x), floor(x))


class RoundingMethod(IntEnum):
    """How `round` treats a number halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round(x, *, rounding_method):
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


round_p = unary("round", _round, dtypes=floating)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer; halves go away from zero, or to even."""
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


is_finite_p = unary("is_finite", np.isfinite, dtypes=floating, result=fam.boolean)


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""
    return is_finite_p.bind(x)


class NextAfter(Elementwise):
    """A step of one bit is no function to differentiate: the rule is missing, as it is in JAX."""

    jvp = Primitive.jvp


nextafter_p = NextAfter("nextafter", np.nextafter, dtypes=floating)


def nextafter(x: Any, y: Any) -> Any:
    """The next representable number after x towards y."""
    return nextafter_p.bind(*operands("nextafter", x, y))


# ---- powers, exponentials, logarithms


def _scaled(t, factor, y):
    return mul(mul(t, full_like(y, factor)), y)


exp_p = unary("exp", np.exp, jvp=lambda t, y, x: mul(t, y), dtypes=inexact, stablehlo="exponential")
exp2_p = unary("exp2", np.exp2, jvp=lambda t, y, x: _scaled(t, np.log(2), y), dtypes=inexact)
log_p = unary("log", np.log, jvp=lambda t, y, x: div(t, x), dtypes=inexact, stablehlo="log")


def _log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    a, b = x.real, x.imag
    near = np.log1p(a * (2 + a) + b * b) / 2
    return _make_complex(
        np.where(np.abs(x) < 0.5, near, np.log(np.abs(1 + x))), np.arctan2(b, 1 + a)
    )


log1p_p = unary(
    "log1p", _log1p, jvp=lambda t, y, x: div(t, add(x, full_like(x, 1))), dtypes=inexact
)
expm1_p = unary(
    "expm1", np.expm1, jvp=lambda t, y, x: mul(t, add(y, full_like(y, 1))), dtypes=inexact
)


def _from_above(fun):
    """`fun`, with its values on a branch cut those of the side of +0, as compiled code has it."""
    return lambda x: fun(x + 0 if x.dtype.kind == "c" else x)


def _in_single(fun):
    """`fun`, in float32 for narrower types: a formula of several steps is rounded once."""
    return lambda x: fun(x if x.dtype.itemsize >= 4 else x.astype(np.float32)).astype(x.dtype)


sqrt_p = unary(
    "sqrt",
    _from_above(np.sqrt),
    jvp=lambda t, y, x: div(mul(t, full_like(x, 0.5)), y),
    dtypes=inexact,
    stablehlo="sqrt",
)
rsqrt_p = unary(
    "rsqrt",
    _in_single(lambda x: 1 / np.sqrt(x)),
    jvp=lambda t, y, x: mul(t, mul(full_like(x, -0.5), div(y, x))),
    dtypes=inexact,
    stablehlo="rsqrt",
)
cbrt_p = unary(
    "cbrt",
    np.cbrt,
    jvp=lambda t, y, x: mul(t, mul(full_like(x, 1 / 3), integer_pow(y, -2))),
    dtypes=floating,
    stablehlo="cbrt",
)


logistic_p = unary(
    "logistic",
    _in_single(lambda x: 1 / (1 + np.exp(-x))),
    jvp=lambda t, y, x: mul(t, mul(y, sub(full_like(y, 1), y))),
    dtypes=inexact,
    stablehlo="logistic",
)
square_p = unary(
    "square",
    np.square,
    jvp=lambda t, y, x: mul(t, mul(full_like(x, 2), x)),
    dtypes=number,
)


def exp(x: Any) -> Any:
    """eˣ"""
    return exp_p.bind(x)


def exp2(x: Any) -> Any:
    """2ˣ"""
    return exp2_p.bind(x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return log_p.bind(x)


def log1p(x: Any) -> Any:
    """log(1 + x), exact for small x."""
    return log1p_p.bind(x)


def expm1(x: Any) -> Any:
    """eˣ - 1, exact for small x."""
    return expm1_p.bind(x)


def sqrt(x: Any) -> Any:
    """The square root."""
    return sqrt_p.bind(x)


def rsqrt(x: Any) -> Any:
    """1 / √x"""
    return rsqrt_p.bind(x)


def cbrt(x: Any) -> Any:
    """The real cube root."""
    return cbrt_p.bind(x)


def logistic(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)"""
    return logistic_p.bind(x)


def square(x: Any) -> Any:
    """x²"""
    return square_p.bind(x)


def reciprocal(x: Any) -> Any:
    """1 / x"""
    return integer_pow(x, -1)


def _integer_power(x, *, y):
    if y < 0:
        return (1 / _integer_power(x, y=-y)).astype(x.dtype)
    out, base = None, x
    while y:
        if y & 1:
            out = base if out is None else out * base
        y >>= 1
        base = base * base if y else base
    return np.ones_like(x) if out is None else out


def _integer_pow_tangent(t, out, x, *, y):
    return mul(t, mul(full_like(x, y), integer_pow(x, y - 1)))


integer_pow_p = unary("integer_pow", _integer_power, jvp=_integer_pow_tangent, dtypes=number)


def integer_pow(x: Any, y: int) -> Any:
    """xʸ for a Python integer y, by repeated multiplication."""
    if y == 0 or y == 1:
        aval = integer_pow_p.abstract(aval_of(x), y=y)
        return convert_element_type(x, aval.dtype, aval.weak_type) if y else ones(aval)
    if y < 0 and not fam.accepts(aval_of(x).dtype, inexact):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow(x, {y}) of dtype "
            f"{aval_of(x).dtype}: convert x to a floating type first."
        )
    return integer_pow_p.bind(x, y=y)


class Pow(Elementwise):
    """x to the power y; y may be an integer array while x is inexact."""

    def abstract(self, x, y):
        if not fam.accepts(x.dtype, inexact) or not (
            y.dtype == x.dtype or fam.accepts(y.dtype, fam.integer)
        ):
            raise TypeError(
                f"lax.pow requires an inexact base and an exponent of the same dtype or of integer "
                f"dtype, got {x.dtype} and {y.dtype}."
            )
        shape = common_shape("pow", [x.shape, y.shape])
        return ShapedArray(shape, x.dtype, x.weak_type and y.weak_type)


def _pow_tangent_base(t, out, x, y):
    if aval_of(y).dtype == aval_of(x).dtype:
        return mul(t, mul(y, pow(x, sub(y, full_like(y, 1)))))
    # An integer exponent is exact: where it is 0 the derivative is 0, whatever x is.
    factor = convert_element_type(y, aval_of(x).dtype)
    slope = mul(factor, pow(x, sub(y, full_like(y, 1))))
    return mul(t, select(_like(slope, eq(y, full_like(y, 0))), zeros(aval_of(slope)), slope))


def _like(x, value):
    return broadcast_to(value, shape_of(x))


def _pow_tangent_exponent(t, out, x, y):
    # At x = 0 the derivative is 0 where y > 0: log is taken of 1 there.
    return mul(t, mul(log(_nonzero(x)), out))


def _power(x, y):
    if y.dtype != x.dtype:
        if y.dtype not in INTEGERS:
            raise TypeError(f"pow of {x.dtype} and {y.dtype}")
        y = y.astype(x.dtype)
    return np.power(x, y)


pow_p = Pow(
    "pow",
    _power,
    jvp=[_pow_tangent_base, _pow_tangent_exponent],
    dtypes=inexact,
    same_dtypes=False,
    stablehlo="power",
)


def pow(x: Any, y: Any) -> Any:
    """xʸ"""
    if not _dtypes.is_python_scalar(y) and fam.accepts(aval_of(y).dtype, fam.integer):
        return pow_p.bind(x, y)
    return pow_p.bind(*operands("pow", x, y))


# ---- trigonometry


def _of(x, value):
    return full_like(x, value)


sin_p = unary("sin", np.sin, jvp=lambda t, y, x: mul(t, cos(x)), dtypes=inexact, stablehlo="sine")
cos_p = unary(
    "cos", np.cos, jvp=lambda t, y, x: neg(mul(t, sin(x))), dtypes=inexact, stablehlo="cosine"
)
tan_p = unary(
    "tan",
    np.tan,
    jvp=lambda t, y, x: mul(t, add(_of(x, 1), square(y))),
    dtypes=inexact,
    stablehlo="tan",
)
asin_p = unary(
    "asin",
    _from_above(np.arcsin),
    jvp=lambda t, y, x: mul(t, rsqrt(sub(_of(x, 1), square(x)))),
    dtypes=inexact,
)
acos_p = unary(
    "acos",
    _from_above(np.arccos),
    jvp=lambda t, y, x: mul(t, neg(rsqrt(sub(_of(x, 1), square(x))))),
    dtypes=inexact,
)
atan_p = unary(
    "atan", np.arctan, jvp=lambda t, y, x: div(t, add(_of(x, 1), square(x))), dtypes=inexact
)
sinh_p = unary("sinh", np.sinh, jvp=lambda t, y, x: mul(t, cosh(x)), dtypes=inexact)
cosh_p = unary("cosh", np.cosh, jvp=lambda t, y, x: mul(t, sinh(x)), dtypes=inexact)
tanh_p = unary(
    "tanh",
    np.tanh,
    jvp=lambda t, y, x: mul(t, mul(add(_of(y, 1), y), sub(_of(y, 1), y))),
    dtypes=inexact,
    stablehlo="tanh",
)
asinh_p = unary(
    "asinh",
    _from_above(np.arcsinh),
    jvp=lambda t, y, x: mul(t, rsqrt(add(square(x), _of(x, 1)))),
    dtypes=inexact,
)
acosh_p = unary(
    "acosh",
    _from_above(np.arccosh),
    jvp=lambda t, y, x: mul(t, mul(rsqrt(sub(x, _of(x, 1))), rsqrt(add(x, _of(x, 1))))),
    dtypes=inexact,
)
atanh_p = unary(
    "atanh",
    np.arctanh,
    jvp=lambda t, y, x: mul(reciprocal(add(_of(x, 1), x)), div(t, sub(_of(x, 1), x))),
    dtypes=inexact,
)


def _atan2(x, y):
    if x.dtype.kind == "c":
        return (-1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))).astype(x.dtype)
    return np.arctan2(x, y)


atan2_p = binary(
    "atan2",
    _atan2,
    jvp=[
        lambda t, o, x, y: mul(t, div(y, add(square(x), square(y)))),
        lambda t, o, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
    ],
    dtypes=inexact,
    stablehlo="atan2",
)


def sin(x: Any) -> Any:
    """sin x"""
    return sin_p.bind(x)


def cos(x: Any) -> Any:
    """cos x"""
    return cos_p.bind(x)


def tan(x: Any) -> Any:
    """tan x"""
    return tan_p.bind(x)


def asin(x: Any) -> Any:
    """The angle in [-π/2, π/2] whose sine is x."""
    return asin_p.bind(x)


def acos(x: Any) -> Any:
    """The angle in [0, π] whose cosine is x."""
    return acos_p.bind(x)


def atan(x: Any) -> Any:
    """The angle in [-π/2, π/2] whose tangent is x."""
    return atan_p.bind(x)


def sinh(x: Any) -> Any:
    """sinh x"""
    return sinh_p.bind(x)


def cosh(x: Any) -> Any:
    """cosh x"""
    return cosh_p.bind(x)


def tanh(x: Any) -> Any:
    """tanh x"""
    return tanh_p.bind(x)


def asinh(x: Any) -> Any:
    """The inverse of sinh."""
    return asinh_p.bind(x)


def acosh(x: Any) -> Any:
    """The inverse of cosh."""
    return acosh_p.bind(x)


def atanh(x: Any) -> Any:
    """The inverse of tanh."""
    return atanh_p.bind(x)


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x): atan(x / y) in the right quadrant."""
    return atan2_p.bind(*operands("atan2", x, y))


# ---- comparison and selection

_comparable = (*fam.anything, _dtypes.extended)
# Python's operators, unlike NumPy's functions, also compare random keys.
eq_p = compare("eq", operator.eq, dtypes=_comparable)
ne_p = compare("ne", operator.ne, dtypes=_comparable)
lt_p = compare("lt", np.less, dtypes=ordered)
le_p = compare("le", np.less_equal, dtypes=ordered)
gt_p = compare("gt", np.greater, dtypes=ordered)
ge_p = compare("ge", np.greater_equal, dtypes=ordered)


def eq(x: Any, y: Any) -> Any:
    """x = y"""
    return eq_p.bind(*operands("eq", x, y))


def ne(x: Any, y: Any) -> Any:
    """x ≠ y"""
    return ne_p.bind(*operands("ne", x, y))


def lt(x: Any, y: Any) -> Any:
    """x < y"""
    return lt_p.bind(*operands("lt", x, y))


def le(x: Any, y: Any) -> Any:
    """x ≤ y"""
    return le_p.bind(*operands("le", x, y))


def gt(x: Any, y: Any) -> Any:
    """x > y"""
    return gt_p.bind(*operands("gt", x, y))


def ge(x: Any, y: Any) -> Any:
    """x ≥ y"""
    return ge_p.bind(*operands("ge", x, y))


def _share(t, out, x, y):
    """The tangent where x is the extreme one; half of it where both are."""
    one, half, zero = (_like(out, full_like(out, v)) for v in (1, 0.5, 0))
    return mul(t, select(eq(x, y), half, select(eq(x, out), one, zero)))


def _extreme(name: str, evaluate: Callable[..., Any], stablehlo: str) -> Elementwise:
    rules = [lambda t, o, x, y: _share(t, o, x, y), lambda t, o, x, y: _share(t, o, y, x)]
    return binary(name, evaluate, jvp=rules, stablehlo=stablehlo)


max_p = _extreme("max", np.maximum, "maximum")
min_p = _extreme("min", np.minimum, "minimum")


def max(x: Any, y: Any) -> Any:
    """The larger of x and y, or NaN where one is; at ties each has half of the derivative."""
    return max_p.bind(*operands("max", x, y))


def min(x: Any, y: Any) -> Any:
    """The smaller of x and y, or NaN where one is; at ties each has half of the derivative."""
    return min_p.bind(*operands("min", x, y))


class SelectN(Primitive):
    """Choose each element from one of several arrays: `which` is boolean or an index."""

    name = "select_n"
    weak_operands = slice(1, None)

    def evaluate(self, which, *cases):
        if len(cases) == 1:
            return cases[0]
        if which.dtype == np.bool_:
            return np.where(which, cases[1], cases[0])
        out = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            out = np.where(which <= i, cases[i], out)
        return out

    def abstract(self, which, *cases):
        first = cases[0]
        if any((c.shape, c.dtype) != (first.shape, first.dtype) for c in cases):
            raise TypeError(
                "select cases must have the same shapes and dtypes, got "
                f"{', '.join(c.str_short() for c in cases)}."
            )
        if which.dtype != np.bool_ and which.dtype != np.int32:
            raise TypeError(f"select `which` must be boolean or int32, got {which.dtype}.")
        if which.dtype == np.bool_ and len(cases) > 2:
            raise TypeError(
                f"select with boolean `which` takes at most two cases, got {len(cases)}."
            )
        if which.shape and which.shape != first.shape:
            raise TypeError(
                "select `which` must be scalar or have the same shape as cases, got `which` shape "
                f"{which.shape} but case shape {first.shape}."
            )
        return first.update(weak_type=all(c.weak_type for c in cases))

    def jvp(self, primals, tangents):
        which, *cases = primals
        out = self.bind(which, *cases)
        return out, self.bind(which, *map(instantiate, tangents[1:]))

    def transpose(self, ct, which, *cases):
        zero = zeros(aval_of(ct))
        return [
            None,
            *(
                select_n(which, *(ct if i == j else zero for j in range(len(cases))))
                if is_linear(case)
                else None
                for i, case in enumerate(cases)
            ),
        ]

    def batch(self, xs, dims):
        which, *cases = xs
        if dims[0] is None and not shape_of(which):
            cases, d = align_batch(cases, dims[1:])
            return self.bind(which, *cases), d
        # A scalar case cannot stay unbatched beside a batched choice: cases have one full shape.
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        shape = next(
            shape_of(x) if d is None else tuple(np.delete(shape_of(x), d))
            for x, d in zip(cases, dims[1:], strict=True)
        )
        shape = (size, *map(int, shape))
        out = []
        for x, d in zip(xs, dims, strict=True):
            if d is None:
                out.append(broadcast_to(x, shape) if shape_of(x) or x is not which else x)
            else:
                x = moveaxis(x, d, 0)
                extra = (1,) * (len(shape) - len(shape_of(x)))
                out.append(broadcast_to(reshape(x, (size, *extra, *shape_of(x)[1:])), shape))
        return self.bind(*out), 0


select_n_p = SelectN()


def select_n(which: Any, *cases: Any) -> Any:
    """Choose from `cases` by `which`: false/0 takes the first, true/1 the second, and so on.

    >>> import namoo.numpy as jnp
    >>> select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([10,  2], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    select_n_p.abstract(aval_of(which), *map(aval_of, cases))
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` holds, `on_false` elsewhere."""
    return select_n_p.bind(pred, on_false, on_true)


class Clamp(Primitive):
    """Limit x to an interval."""

    name = "clamp"

    def evaluate(self, low, x, high):
        return np.minimum(np.maximum(low, x), high)

    def abstract(self, low, x, high):
        if low.dtype != x.dtype or high.dtype != x.dtype:
            raise TypeError(
                "lax.clamp requires arguments to have the same dtypes, got "
                f"{low.dtype}, {x.dtype}, {high.dtype}."
            )
        for name, bound in (("min", low), ("max", high)):
            if bound.shape and bound.shape != x.shape:
                raise TypeError(
                    f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                    f"{name}.shape={bound.shape}, operand.shape={x.shape}."
                )
        return x.update(weak_type=x.weak_type and low.weak_type and high.weak_type)

    def jvp(self, primals, tangents):
        low, x, high = primals
        dlow, dx, dhigh = tangents
        out = self.bind(low, x, high)
        zero = zeros(aval_of(out))
        parts = (
            (dlow, _both(gt(low, x), lt(low, high))),
            (dx, _both(gt(x, low), lt(x, high))),
            (dhigh, lt(high, x)),
        )
        total: Any = Zero.of(out)
        for t, mask in parts:
            if type(t) is not Zero:
                shape = shape_of(out)
                term = select(broadcast_to(mask, shape), broadcast_to(t, shape), zero)
                total = fam.add_any(total, term)
        return out, total

    def batch(self, xs, dims):
        (low, x, high), (dl, dx, dh) = xs, dims
        if dl is None and dh is None and not shape_of(low) and not shape_of(high):
            return self.bind(low, x, high), dx
        xs, d = align_batch(xs, dims)
        shape = shape_of(xs[1]) or next(shape_of(x) for x in xs if shape_of(x))
        return self.bind(xs[0], broadcast_to(xs[1], shape), xs[2]), d


def _both(p, q):
    return min(p, q)


clamp_p = Clamp()


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max].

    >>> import namoo.numpy as jnp
    >>> clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    dtype = aval_of(x).dtype
    low, high = (np.asarray(b, dtype) if _dtypes.is_python_scalar(b) else b for b in (min, max))
    return clamp_p.bind(low, x, high)
