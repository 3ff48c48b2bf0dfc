"""Functions of complex numbers, which are pairs of real values here.

For complex64 they are computed in float64 where squares would overflow or cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp as math_exp
from typing import Any

from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.math import functions

Pair = tuple[Value, Value]
Rule = Callable[..., Any]

_INF = float("inf")
_REAL = functions.FUNCTIONS


def _number(like: Value, value: float) -> Value:
    return constant(like.elem, value)


def _wide(f: Function, *values: Value) -> list[Value]:
    return [f.convert(v, "f64") for v in values]


def _narrow(f: Function, elem: str, *values: Value) -> Any:
    return tuple(f.convert(v, elem) for v in values)


def _is(f: Function, x: Value, value: float) -> Value:
    return f.compare("eq", x, _number(x, value))


def _infinite(f: Function, x: Value) -> Value:
    return _is(f, f.fabs(x), _INF)


def _times(f: Function, x: Value, y: Value) -> Value:
    """x·y, but zero where x is zero, even if y is infinite or NaN."""
    one = _number(x, 1.0)
    sign = f.select(f.unordered(y), one, f.intrinsic("copysign", one, y))
    return f.mul(x, f.select(_is(f, x, 0.0), sign, y))


def divide(f: Function, x: Pair, y: Pair) -> Pair:
    """Smith's algorithm: scale by the larger part of y, so that squares do not overflow."""
    (a, b), (c, d) = x, y
    wide = f.compare("ge", f.fabs(c), f.fabs(d))
    big, small = f.select(wide, c, d), f.select(wide, d, c)
    ratio = f.fdiv(small, big)
    denominator = f.add(big, f.mul(small, ratio))
    p, q = f.select(wide, a, b), f.select(wide, b, a)
    re = f.fdiv(f.add(p, f.mul(q, ratio)), denominator)
    part = f.mul(p, ratio)
    im = f.fdiv(f.select(wide, f.sub(q, part), f.sub(part, q)), denominator)
    nothing = _is(f, f.select(wide, f.fabs(c), f.fabs(d)), 0.0)
    none = f.fabs(c)
    return f.select(nothing, f.fdiv(a, none), re), f.select(nothing, f.fdiv(b, none), im)


def exp(f: Function, z: Pair) -> Pair:
    """eᵃ·(cos b + i·sin b)."""
    a, b = z
    cos, sin = _REAL["cos"](f, b), _REAL["sin"](f, b)
    # eᵃ may overflow where its product with a small cosine does not.
    half = _REAL["exp"](f, f.mul(a, _number(a, 0.5)))
    large = f.compare("gt", a, _number(a, 88.0 if a.elem == "f32" else 709.0))
    size = _REAL["exp"](f, a)
    re = f.select(large, f.mul(f.mul(half, cos), half), f.mul(size, cos))
    im = f.select(large, f.mul(f.mul(half, sin), half), f.mul(size, sin))
    re = f.select(_is(f, b, 0.0), size, re)
    im = f.select(_is(f, b, 0.0), b, im)
    # If eᵃ is zero, so is the result, even for an angle that is NaN.
    vanishes = f.compare("eq", a, _number(a, -_INF))
    unknown = f.unordered(cos)
    gone = f.and_(vanishes, unknown)
    zero = _number(a, 0.0)
    re = f.select(gone, zero, re)
    im = f.select(gone, f.intrinsic("copysign", zero, b), im)
    return f.select(f.and_(_is(f, a, _INF), unknown), _number(a, _INF), re), im


def _log_size(f: Function, a: Value, b: Value) -> Value:
    """log|a + ib|."""
    if a.elem == "f32":
        a, b = _wide(f, a, b)
        square = f.fma(a, a, f.mul(b, b))
        out = f.mul(_REAL["log"](f, square), _number(a, 0.5))
        out = f.select(f.or_(_infinite(f, a), _infinite(f, b)), _number(a, _INF), out)
        return f.convert(out, "f32")
    a, b = f.fabs(a), f.fabs(b)
    big, small = f.maximum(a, b), f.minimum(a, b)
    one = _number(a, 1.0)
    ratio = f.select(f.compare("eq", big, small), one, f.fdiv(small, big))
    far = f.add(
        _REAL["log"](f, big), f.mul(_REAL["log1p"](f, f.mul(ratio, ratio)), _number(a, 0.5))
    )
    # Near 1 the terms would cancel.
    excess = f.fma(f.sub(big, one), f.add(big, one), f.mul(small, small))
    near = f.mul(_REAL["log1p"](f, excess), _number(a, 0.5))
    close = f.compare("lt", f.fabs(excess), _number(a, 0.75))
    out = f.select(close, near, far)
    out = f.select(_is(f, big, 0.0), _number(a, -_INF), out)
    return f.select(f.or_(_infinite(f, a), _infinite(f, b)), _number(a, _INF), out)


def log(f: Function, z: Pair) -> Pair:
    """log|z| + i·arg z."""
    a, b = z
    return _log_size(f, a, b), _REAL["atan2"](f, b, a)


def log1p(f: Function, z: Pair) -> Pair:
    """log(1 + z), exact near 0."""
    elem = z[0].elem
    a, b = _wide(f, *z)
    two = _number(a, 2.0)
    near = f.mul(
        _REAL["log1p"](f, f.fma(a, f.add(a, two), f.mul(b, b))),
        _number(a, 0.5),
    )
    moved = f.add(a, _number(a, 1.0))
    size = f.fma(a, a, f.mul(b, b))
    re = f.select(f.compare("lt", size, _number(a, 0.25)), near, _log_size(f, moved, b))
    return _narrow(f, elem, re, _REAL["atan2"](f, b, moved))


def expm1(f: Function, z: Pair) -> Pair:
    """eᶻ - 1, exact near 0: (eᵃ - 1)·cos b - 2 sin²(b/2) + i·eᵃ·sin b."""
    a, b = z
    half = _REAL["sin"](f, f.mul(b, _number(b, 0.5)))
    re = f.sub(
        f.mul(_REAL["expm1"](f, a), _REAL["cos"](f, b)),
        f.mul(_number(a, 2.0), f.mul(half, half)),
    )
    return re, _times(f, _REAL["sin"](f, b), _REAL["exp"](f, a))


def sqrt(f: Function, z: Pair) -> Pair:
    """The root with a nonnegative real part; on the branch cut, its limit from above."""
    zero = _number(z[0], 0.0)
    return _root(f, (f.add(z[0], zero), f.add(z[1], zero)))


def _root(f: Function, z: Pair) -> Pair:
    elem = z[0].elem
    a, b = _wide(f, *z)
    zero = _number(a, 0.0)
    back: Value = _number(a, 1.0)
    if elem == "f64":
        # Scaled by powers of four, so that squares neither overflow nor underflow.
        size = f.maximum(f.fabs(a), f.fabs(b))
        large = f.compare("gt", size, _number(a, 2.0**500))
        small = f.compare("lt", size, _number(a, 2.0**-500))

        def chosen(if_large: float, if_small: float) -> Value:
            out = f.select(small, _number(a, if_small), _number(a, 1.0))
            return f.select(large, _number(a, if_large), out)

        by, back = chosen(2.0**-540, 2.0**540), chosen(2.0**270, 2.0**-270)
        a, b = f.mul(a, by), f.mul(b, by)
    length = f.sqrt(f.fma(a, a, f.mul(b, b)))
    t = f.sqrt(f.mul(f.add(length, f.fabs(a)), _number(a, 0.5)))
    other = f.fdiv(f.fabs(b), f.mul(t, _number(a, 2.0)))
    other = f.select(_is(f, t, 0.0), zero, other)
    right = f.compare("ge", a, zero)
    re, im = f.select(right, t, other), f.select(right, other, t)
    im = f.intrinsic("copysign", im, b)
    re, im = f.mul(re, back), f.mul(im, back)
    tall = _infinite(f, b)
    re = f.select(tall, _number(a, _INF), re)
    im = f.select(tall, b, im)
    # At ±∞ + i·NaN one part of the root is infinite.
    flat = f.and_(_infinite(f, a), f.unordered(b))
    re = f.select(f.and_(flat, right), _number(a, _INF), re)
    im = f.select(f.and_(flat, f.not_(right)), _number(a, _INF), im)
    return _narrow(f, elem, re, im)


def reciprocal(f: Function, z: Pair) -> Pair:
    one = _number(z[0], 1.0), _number(z[0], 0.0)
    return divide(f, one, z)


def rsqrt(f: Function, z: Pair) -> Pair:
    """1/√z."""
    return reciprocal(f, _root(f, z))


def logistic(f: Function, z: Pair) -> Pair:
    """1/(1 + e⁻ᶻ), or eᶻ/(1 + eᶻ) where that does not overflow."""
    elem = z[0].elem
    # In the wide type the sum does not cancel close to a pole.
    a, b = _wide(f, *z)
    zero, one = _number(a, 0.0), _number(a, 1.0)
    left = f.compare("lt", a, zero)
    re, im = exp(f, tuple(f.select(left, v, f.neg(v)) for v in (a, b)))  # type: ignore[arg-type]
    above = f.select(left, re, one), f.select(left, im, zero)
    return _narrow(f, elem, *divide(f, above, (f.add(re, one), f.add(im, zero))))


def _hyperbolic(f: Function, a: Value, elem: str) -> tuple[Value, Value, Value]:
    """sinh a and cosh a, divided by a factor, and the factor: these do not overflow."""
    sinh, cosh, one = _REAL["sinh"](f, a), _REAL["cosh"](f, a), _number(a, 1.0)
    if elem == "f32":
        return sinh, cosh, one
    size = f.fabs(a)
    large = f.compare("gt", size, _number(a, 700.0))
    half = f.mul(_REAL["exp"](f, f.sub(size, _number(a, 700.0))), _number(a, 0.5))
    sinh = f.select(large, f.intrinsic("copysign", half, a), sinh)
    return sinh, f.select(large, half, cosh), f.select(large, _number(a, math_exp(700.0)), one)


def sinh(f: Function, z: Pair) -> Pair:
    """sinh a·cos b + i·cosh a·sin b."""
    elem = z[0].elem
    a, b = _wide(f, *z)
    sinh, cosh, factor = _hyperbolic(f, a, elem)
    cos, sin = _REAL["cos"](f, b), _REAL["sin"](f, b)
    re = f.mul(_times(f, sinh, cos), factor)
    im = f.mul(_times(f, sin, cosh), factor)
    re = f.select(f.and_(_infinite(f, a), f.unordered(cos)), _number(a, _INF), re)
    return _narrow(f, elem, re, im)


def cosh(f: Function, z: Pair) -> Pair:
    """cosh a·cos b + i·sinh a·sin b."""
    elem = z[0].elem
    a, b = _wide(f, *z)
    sinh, cosh, factor = _hyperbolic(f, a, elem)
    cos, sin = _REAL["cos"](f, b), _REAL["sin"](f, b)
    re = f.mul(_times(f, cos, cosh), factor)
    im = f.mul(_times(f, sin, sinh), factor)
    re = f.select(f.and_(_infinite(f, a), f.unordered(cos)), _number(a, _INF), re)
    im = f.select(f.and_(_is(f, a, 0.0), f.unordered(sin)), _number(a, 0.0), im)
    return _narrow(f, elem, re, im)


def tanh(f: Function, z: Pair) -> Pair:
    """Kahan's form: (β·ρ·s + i·tan b)/(1 + β·s²) with β = 1 + tan² b, s = sinh a, ρ = cosh a."""
    elem = z[0].elem
    a, b = _wide(f, *z)
    one = _number(a, 1.0)
    tan = _REAL["tan"](f, b)
    beta = f.fma(tan, tan, one)
    far = f.compare("gt", f.fabs(a), _number(a, 20.0))
    near = f.select(far, _number(a, 0.0), a)
    s = _REAL["sinh"](f, near)
    rho = f.sqrt(f.fma(s, s, one))
    below = f.fma(f.mul(beta, s), s, one)
    re = f.fdiv(f.mul(f.mul(beta, rho), s), below)
    im = f.fdiv(tan, below)
    # At a pole of the tangent, the limit.
    tall = _infinite(f, tan)
    re = f.select(tall, f.fdiv(rho, s), re)
    im = f.select(tall, _number(a, 0.0), im)
    small = f.mul(_number(a, 4.0), _REAL["exp"](f, f.mul(f.fabs(a), _number(a, -2.0))))
    angle = f.mul(_REAL["sin"](f, b), _REAL["cos"](f, b))
    re = f.select(far, f.intrinsic("copysign", one, a), re)
    im = f.select(far, _times(f, small, f.select(f.unordered(angle), b, angle)), im)
    # A NaN angle leaves the parts that do not depend on it: zeros, and limits.
    lost = f.and_(f.unordered(angle), f.not_(_infinite(f, a)))
    re = f.select(lost, f.select(_is(f, a, 0.0), a, angle), re)
    im = f.select(lost, angle, im)
    im = f.select(_is(f, b, 0.0), b, im)
    return _narrow(f, elem, re, im)


def _of_imaginary(function: Rule) -> Rule:
    """z ↦ -i·f(i·z), which makes sin of sinh, and tan of tanh.

    These map conjugates to conjugates, so it is enough to swap the parts of z and of the result.
    """

    def run(f: Function, z: Pair) -> Pair:
        a, b = z
        re, im = function(f, (b, a))
        return im, re

    return run


def cos(f: Function, z: Pair) -> Pair:
    """cosh(i·z)."""
    a, b = z
    return cosh(f, (f.neg(b), a))


def sign(f: Function, z: Pair) -> Pair:
    """z/|z|, and 0 for 0."""
    a, b = z
    # If one part is infinite, it alone determines the direction.
    infinite = f.xor(_infinite(f, a), _infinite(f, b))
    one, nothing = _number(a, 1.0), _number(a, 0.0)
    a, b = (
        f.select(
            infinite,
            f.intrinsic("copysign", f.select(_infinite(f, v), one, nothing), v),
            v,
        )
        for v in z
    )
    size = _REAL["hypot"](f, a, b)
    zero = _is(f, size, 0.0)
    return tuple(f.select(zero, v, f.fdiv(v, size)) for v in (a, b))  # type: ignore[return-value]


def pow(f: Function, z: Pair, w: Pair | Value) -> Pair:
    """exp(w·log z), computed in float64; 0ʷ is 1 for w = 0, 0 where re w > 0, and NaN elsewhere."""
    elem = z[0].elem
    c, d = w if isinstance(w, tuple) else (w, constant(elem, 0.0))
    a, b, c, d = _wide(f, *z, c, d)
    p, q = log(f, (a, b))
    re = f.sub(f.mul(c, p), _times(f, d, q))
    im = f.add(f.mul(c, q), _times(f, d, p))
    x, y = exp(f, (re, im))
    base = f.and_(_is(f, a, 0.0), _is(f, b, 0.0))
    nothing = f.and_(_is(f, c, 0.0), _is(f, d, 0.0))
    zero, one = _number(a, 0.0), _number(a, 1.0)
    of_zero = f.select(f.compare("gt", c, zero), zero, _number(a, float("nan")))
    x = f.select(nothing, one, f.select(base, of_zero, x))
    y = f.select(nothing, zero, f.select(base, of_zero, y))
    return _narrow(f, elem, x, y)


def exp2(f: Function, z: Pair) -> Pair:
    """2ᶻ, by the natural logarithm of 2 in float64."""
    elem = z[0].elem
    a, b = (f.mul(v, _number(v, 0.6931471805599453)) for v in _wide(f, *z))
    return _narrow(f, elem, *exp(f, (a, b)))


FUNCTIONS: dict[str, Rule] = {
    "cos": cos,
    "cosh": cosh,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "logistic": logistic,
    "pow": pow,
    "rsqrt": rsqrt,
    "sign": sign,
    "sin": _of_imaginary(sinh),
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": _of_imaginary(tanh),
    "tanh": tanh,
}


def either(real: Rule, of_pairs: Rule) -> Rule:
    """A rule that dispatches on its first operand: a real value, or a pair."""

    def run(f: Function, x: Any, *rest: Any, **params: Any) -> Any:
        return (of_pairs if isinstance(x, tuple) else real)(f, x, *rest, **params)

    return run
