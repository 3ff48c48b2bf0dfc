"""Elementary functions, extremes and limits, element by element.

Arithmetic and comparison, which they are built on, are exported here, too.

The argument `accuracy` of some functions has no effect: results are as exact as NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero
from namoo.primitives import families as fam
from namoo.primitives.arithmetic import Arithmetic, make_complex, nonzero
from namoo.primitives.arithmetic import RoundingMethod as RoundingMethod
from namoo.primitives.arithmetic import abs as abs
from namoo.primitives.arithmetic import add as add
from namoo.primitives.arithmetic import ceil as ceil
from namoo.primitives.arithmetic import complex as complex
from namoo.primitives.arithmetic import conj as conj
from namoo.primitives.arithmetic import div as div
from namoo.primitives.arithmetic import floor as floor
from namoo.primitives.arithmetic import full_like as full_like
from namoo.primitives.arithmetic import imag as imag
from namoo.primitives.arithmetic import is_finite as is_finite
from namoo.primitives.arithmetic import mul as mul
from namoo.primitives.arithmetic import neg as neg
from namoo.primitives.arithmetic import nextafter as nextafter
from namoo.primitives.arithmetic import real as real
from namoo.primitives.arithmetic import rem as rem
from namoo.primitives.arithmetic import round as round
from namoo.primitives.arithmetic import sign as sign
from namoo.primitives.arithmetic import sub as sub
from namoo.primitives.arithmetic import trunc as trunc
from namoo.primitives.compare import eq as eq
from namoo.primitives.compare import ge as ge
from namoo.primitives.compare import gt as gt
from namoo.primitives.compare import le as le
from namoo.primitives.compare import lt as lt
from namoo.primitives.compare import ne as ne
from namoo.primitives.compare import select as select
from namoo.primitives.compare import select_n as select_n
from namoo.primitives.families import (
    Elementwise,
    align_batch,
    binary,
    common_shape,
    floating,
    inexact,
    number,
    operands,
    unary,
)
from namoo.primitives.shape import (
    INTEGERS,
    broadcast_to,
    convert_element_type,
    ones,
    shape_of,
    zeros,
)

__all__ = [
    "acos", "acos_p", "acosh", "acosh_p", "asin", "asin_p", "asinh", "asinh_p", "atan", "atan2",
    "atan2_p", "atan_p", "atanh", "atanh_p", "cbrt", "cbrt_p", "clamp", "clamp_p", "cos", "cos_p",
    "cosh", "cosh_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "integer_pow",
    "integer_pow_p", "log", "log1p", "log1p_p", "log_p", "logistic", "logistic_p", "max", "max_p",
    "min", "min_p", "pow", "pow_p", "reciprocal", "rsqrt", "rsqrt_p", "sin", "sin_p", "sinh",
    "sinh_p", "sqrt", "sqrt_p", "square", "square_p", "tan", "tan_p", "tanh", "tanh_p",
]  # fmt: skip


exp_p = unary("exp", np.exp, jvp=lambda t, y, x: mul(t, y), dtypes=inexact, stablehlo="exponential")


def _exp2(x):
    if x.dtype.kind != "c":
        return np.exp2(x)
    parts = (part.astype(np.float64) * np.log(2) for part in (x.real, x.imag))
    return np.exp(make_complex(*parts)).astype(x.dtype)


exp2_p = unary(
    "exp2",
    _exp2,
    jvp=lambda t, y, x: mul(mul(t, full_like(y, np.log(2))), y),
    dtypes=inexact,
    stablehlo=lambda hlo, x: hlo.op("power", hlo.constant(2, x.dtype, x.shape), x),
)
log_p = unary("log", np.log, jvp=lambda t, y, x: div(t, x), dtypes=inexact, stablehlo="log")


def _log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    a, b = x.real, x.imag
    near = np.log1p(a * (2 + a) + b * b) / 2
    return make_complex(
        np.where(np.abs(x) < 0.5, near, np.log(np.abs(1 + x))), np.arctan2(b, 1 + a)
    )


log1p_p = unary(
    "log1p",
    _log1p,
    jvp=lambda t, y, x: div(t, add(x, full_like(x, 1))),
    dtypes=inexact,
    stablehlo="log_plus_one",
)


def _expm1(x):
    out = np.expm1(x)
    if x.dtype.kind != "c":
        return out
    # The exponential of a real number is real, even where it overflows.
    return make_complex(out.real, np.where(x.imag == 0, x.imag, out.imag))


expm1_p = unary(
    "expm1",
    _expm1,
    jvp=lambda t, y, x: mul(t, add(y, full_like(y, 1))),
    dtypes=inexact,
    stablehlo="exponential_minus_one",
)


def _from_above(fun):
    """`fun`, with the values on a branch cut taken from the side of +0, as in compiled code."""
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


def _logistic(x):
    if x.dtype.kind != "c":
        return 1 / (1 + np.exp(-x))
    # In complex128 the sum does not cancel close to a pole; of two forms one does not overflow.
    left = x.real < 0
    power = np.exp(np.where(left, x, -x).astype(np.complex128))
    return np.where(left, power, 1) / (1 + power)


logistic_p = unary(
    "logistic",
    _in_single(_logistic),
    jvp=lambda t, y, x: mul(t, mul(y, sub(full_like(y, 1), y))),
    dtypes=inexact,
    stablehlo="logistic",
)
square_p = unary(
    "square",
    np.square,
    jvp=lambda t, y, x: mul(t, mul(full_like(x, 2), x)),
    dtypes=number,
    stablehlo=lambda hlo, x: hlo.op("multiply", x, x),
)


def exp(x: Any, accuracy: Any = None) -> Any:
    """eˣ

    Example:
        >>> exp(1.0)
        Array(2.718282, dtype=float32, weak_type=True)
    """
    return exp_p.bind(x)


def exp2(x: Any, accuracy: Any = None) -> Any:
    """2ˣ

    Example:
        >>> exp2(3.0)
        Array(8., dtype=float32, weak_type=True)
    """
    return exp2_p.bind(x)


def log(x: Any, accuracy: Any = None) -> Any:
    """The natural logarithm.

    Example:
        >>> log(2.0)
        Array(0.6931472, dtype=float32, weak_type=True)
    """
    return log_p.bind(x)


def log1p(x: Any, accuracy: Any = None) -> Any:
    """log(1 + x), exact for small x.

    Example:
        >>> log1p(1e-10)
        Array(1.e-10, dtype=float32, weak_type=True)
    """
    return log1p_p.bind(x)


def expm1(x: Any, accuracy: Any = None) -> Any:
    """eˣ - 1, exact for small x.

    Example:
        >>> expm1(1e-10)
        Array(1.e-10, dtype=float32, weak_type=True)
    """
    return expm1_p.bind(x)


def sqrt(x: Any, accuracy: Any = None) -> Any:
    """The square root.

    Example:
        >>> sqrt(2.0)
        Array(1.4142135, dtype=float32, weak_type=True)
    """
    return sqrt_p.bind(x)


def rsqrt(x: Any, accuracy: Any = None) -> Any:
    """1 / √x

    Example:
        >>> rsqrt(4.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return rsqrt_p.bind(x)


def cbrt(x: Any, accuracy: Any = None) -> Any:
    """The real cube root.

    Example:
        >>> cbrt(-8.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    return cbrt_p.bind(x)


def logistic(x: Any, accuracy: Any = None) -> Any:
    """1 / (1 + e⁻ˣ)

    Example:
        >>> logistic(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return logistic_p.bind(x)


def square(x: Any) -> Any:
    """x²

    Example:
        >>> square(3.0)
        Array(9., dtype=float32, weak_type=True)
    """
    return square_p.bind(x)


def reciprocal(x: Any) -> Any:
    """1 / x

    Example:
        >>> reciprocal(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
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


def _integer_pow_in_xla(hlo, x, *, y):
    one = hlo.constant(1, x.dtype, x.shape)
    out, base, rest = one, x, -y if y < 0 else y
    while rest:
        if rest & 1:
            out = base if out is one else hlo.op("multiply", out, base)
        rest >>= 1
        base = hlo.op("multiply", base, base) if rest else base
    return hlo.op("divide", one, out) if y < 0 else out


integer_pow_p = Arithmetic(
    "integer_pow",
    _integer_power,
    jvp=[lambda t, out, x, *, y: mul(t, mul(full_like(x, y), integer_pow(x, y - 1)))],
    dtypes=number,
    stablehlo=_integer_pow_in_xla,
)


def integer_pow(x: Any, y: int) -> Any:
    """xʸ for a Python integer y, by repeated multiplication.

    Example:
        >>> integer_pow(2.0, 10)
        Array(1024., dtype=float32, weak_type=True)
    """
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
        y = convert_element_type(y, aval_of(y).dtype)  # the derivative is strong, as in JAX
        return mul(t, mul(y, pow(x, sub(y, full_like(y, 1)))))
    # An integer exponent is exact: where it is 0 the derivative is 0, whatever x is.
    factor = convert_element_type(y, aval_of(x).dtype)
    slope = mul(factor, pow(x, sub(y, full_like(y, 1))))
    return mul(t, select(_like(slope, eq(y, full_like(y, 0))), zeros(aval_of(slope)), slope))


def _like(x, value):
    return broadcast_to(value, shape_of(x))


def _pow_tangent_exponent(t, out, x, y):
    # At x = 0 the derivative is 0 where y > 0: there log is evaluated at 1 instead.
    return mul(t, mul(log(nonzero(x)), out))


def _power(x, y):
    if y.dtype != x.dtype:
        if y.dtype not in INTEGERS:
            raise TypeError(f"pow of {x.dtype} and {y.dtype}")
        y = y.astype(x.dtype)
    if x.dtype.kind == "c":
        return _complex_power(x, y)
    if y.ndim == 0 and y == 0.5:
        return root_by_power(x)
    return np.power(x, y.copy() if 0 in y.strides else y)


def root_by_power(x: np.ndarray) -> np.ndarray:
    """x ** 0.5: For a single exponent NumPy takes the square root, which differs at -∞ and -0."""
    return np.sqrt(np.where(x == -np.inf, np.inf, x + 0).astype(x.dtype, copy=False))


def _complex_power(x, y):
    """exp(y·log x) in complex128; 0ʸ is 1 for y = 0, 0 where re y > 0, and NaN elsewhere."""
    log, w = np.log(x.astype(np.complex128)), y.astype(np.complex128)
    c, d = w.real, w.imag

    def turned(part):  # d·part, which is 0 where d is
        return d * np.where(d == 0, np.copysign(~np.isnan(part), part), part)

    out = np.exp(make_complex(c * log.real - turned(log.imag), c * log.imag + turned(log.real)))
    out = np.where(x == 0, np.where(c > 0, 0, complex(np.nan, np.nan)), out)
    return np.where(w == 0, 1, out).astype(x.dtype)


pow_p = Pow(
    "pow",
    _power,
    jvp=[_pow_tangent_base, _pow_tangent_exponent],
    dtypes=inexact,
    same_dtypes=False,
    stablehlo=lambda hlo, x, y: hlo.elementwise("power", x, hlo.convert(y, x.dtype)),
)


def pow(x: Any, y: Any) -> Any:
    """xʸ

    Example:
        >>> pow(2.0, 0.5)
        Array(1.4142135, dtype=float32, weak_type=True)
    """
    return pow_p.bind(*operands("pow", x, y))


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
    stablehlo="chlo.asin",
)
acos_p = unary(
    "acos",
    _from_above(np.arccos),
    jvp=lambda t, y, x: mul(t, neg(rsqrt(sub(_of(x, 1), square(x))))),
    dtypes=inexact,
    stablehlo="chlo.acos",
)
atan_p = unary(
    "atan",
    np.arctan,
    jvp=lambda t, y, x: div(t, add(_of(x, 1), square(x))),
    dtypes=inexact,
    stablehlo="chlo.atan",
)
sinh_p = unary(
    "sinh", np.sinh, jvp=lambda t, y, x: mul(t, cosh(x)), dtypes=inexact, stablehlo="chlo.sinh"
)
cosh_p = unary(
    "cosh", np.cosh, jvp=lambda t, y, x: mul(t, sinh(x)), dtypes=inexact, stablehlo="chlo.cosh"
)
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
    stablehlo="chlo.asinh",
)
acosh_p = unary(
    "acosh",
    _from_above(np.arccosh),
    jvp=lambda t, y, x: mul(t, mul(rsqrt(sub(x, _of(x, 1))), rsqrt(add(x, _of(x, 1))))),
    dtypes=inexact,
    stablehlo="chlo.acosh",
)
atanh_p = unary(
    "atanh",
    np.arctanh,
    jvp=lambda t, y, x: mul(reciprocal(add(_of(x, 1), x)), div(t, sub(_of(x, 1), x))),
    dtypes=inexact,
    stablehlo="chlo.atanh",
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


def sin(x: Any, accuracy: Any = None) -> Any:
    """sin x

    Example:
        >>> sin(1.0)
        Array(0.841471, dtype=float32, weak_type=True)
    """
    return sin_p.bind(x)


def cos(x: Any, accuracy: Any = None) -> Any:
    """cos x

    Example:
        >>> cos(1.0)
        Array(0.5403023, dtype=float32, weak_type=True)
    """
    return cos_p.bind(x)


def tan(x: Any, accuracy: Any = None) -> Any:
    """tan x

    Example:
        >>> tan(1.0)
        Array(1.5574077, dtype=float32, weak_type=True)
    """
    return tan_p.bind(x)


def asin(x: Any) -> Any:
    """The angle in [-π/2, π/2] whose sine is x.

    Example:
        >>> asin(1.0)
        Array(1.5707964, dtype=float32, weak_type=True)
    """
    return asin_p.bind(x)


def acos(x: Any) -> Any:
    """The angle in [0, π] whose cosine is x.

    Example:
        >>> acos(0.0)
        Array(1.5707964, dtype=float32, weak_type=True)
    """
    return acos_p.bind(x)


def atan(x: Any) -> Any:
    """The angle in [-π/2, π/2] whose tangent is x.

    Example:
        >>> atan(1.0)
        Array(0.7853982, dtype=float32, weak_type=True)
    """
    return atan_p.bind(x)


def sinh(x: Any) -> Any:
    """sinh x

    Example:
        >>> sinh(1.0)
        Array(1.1752012, dtype=float32, weak_type=True)
    """
    return sinh_p.bind(x)


def cosh(x: Any) -> Any:
    """cosh x

    Example:
        >>> cosh(1.0)
        Array(1.5430807, dtype=float32, weak_type=True)
    """
    return cosh_p.bind(x)


def tanh(x: Any, accuracy: Any = None) -> Any:
    """tanh x

    Example:
        >>> tanh(1.0)
        Array(0.7615942, dtype=float32, weak_type=True)
    """
    return tanh_p.bind(x)


def asinh(x: Any) -> Any:
    """The inverse of sinh.

    Example:
        >>> asinh(1.0)
        Array(0.8813736, dtype=float32, weak_type=True)
    """
    return asinh_p.bind(x)


def acosh(x: Any) -> Any:
    """The inverse of cosh.

    Example:
        >>> acosh(2.0)
        Array(1.316958, dtype=float32, weak_type=True)
    """
    return acosh_p.bind(x)


def atanh(x: Any) -> Any:
    """The inverse of tanh.

    Example:
        >>> atanh(0.5)
        Array(0.54930615, dtype=float32, weak_type=True)
    """
    return atanh_p.bind(x)


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x): atan(x / y) in the right quadrant.

    Example:
        >>> atan2(1.0, -1.0)
        Array(2.3561945, dtype=float32, weak_type=True)
    """
    return atan2_p.bind(*operands("atan2", x, y))


def _share(t, out, x, y):
    """The tangent where x is the extreme; half of it where x and y are equal."""
    one, half, zero = (_like(out, full_like(out, v)) for v in (1, 0.5, 0))
    return mul(t, select(eq(x, y), half, select(eq(x, out), one, zero)))


def _extreme(name: str, evaluate: Callable[..., Any], stablehlo: str) -> Elementwise:
    rules = [lambda t, o, x, y: _share(t, o, x, y), lambda t, o, x, y: _share(t, o, y, x)]
    return binary(
        name,
        evaluate,
        jvp=rules,
        stablehlo=lambda hlo, x, y: hlo.combine(stablehlo, *hlo.alike(x, y)),
    )


max_p = _extreme("max", np.maximum, "maximum")
min_p = _extreme("min", np.minimum, "minimum")


def max(x: Any, y: Any) -> Any:
    """The larger of x and y, or NaN where one is; at ties each has half of the derivative.

    Example:
        >>> max(1.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return max_p.bind(*operands("max", x, y))


def min(x: Any, y: Any) -> Any:
    """The smaller of x and y, or NaN where one is; at ties each has half of the derivative.

    Example:
        >>> min(1.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return min_p.bind(*operands("min", x, y))


class Clamp(Primitive):
    """Limit x to an interval."""

    name = "clamp"

    def evaluate(self, low, x, high):
        same_types = low.dtype == x.dtype == high.dtype
        if not same_types or not all(b.shape in ((), x.shape) for b in (low, high)):
            self.abstract(*(EagerArray(v).aval for v in (low, x, high)))
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

    def native(self, emit, low, x, high):
        return emit.map("clamp", low, x, high)

    def stablehlo(self, hlo, low, x, high):
        low, high = hlo.alike(low, high)
        return hlo.combine("minimum", hlo.combine("maximum", low, x), high)


def _both(p, q):
    return min(p, q)


clamp_p = Clamp()


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max].

    Example:
        >>> import namoo.numpy as jnp
        >>> clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return clamp_p.bind(min, x, max)
