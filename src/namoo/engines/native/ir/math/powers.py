"""Exponentials, logarithms, powers, roots and hyperbolic functions as straight-line vector code.

Error bounds are in units in the last place (ulp) of the exact result; the tests check them.  The
polynomials are weighted minimax approximations on the reduced interval (Remez exchange in 50
digits), with the coefficient of the lowest power first.
"""

from __future__ import annotations

import math

from namoo.engines.native.ir.function import Function, Value, constant, is_float
from namoo.engines.native.ir.vectors import (
    BIAS,
    FRACTION,
    LEAST_NORMAL,
    Number,
    fma,
    horner,
    muladd,
    nearest,
    parts_of,
    power_of_two,
    reduced,
    scaled,
    split,
    through_double,
    vector_rule,
    where,
)

_INF = math.inf
_NAN = math.nan
_LN2 = (0.6931471805599453, 2.3190468138462996e-17, 5.707708438416212e-34)
_LOG2E = 1.4426950408889634
_LOG2E_LOW = 2.0355273740931033e-17

# (eʳ - 1 - r) / r² for |r| ≤ ln(2)/2; relative error of eʳ: 2⁻²⁸, 2⁻⁵⁷ and, short, 2⁻³⁹.
_EXP = {
    "f32": (
        0.4999999327103563,
        0.1666651775804299,
        0.04166841836898068,
        0.00836906338847168,
        0.0013814044861427271,
    ),
    "f64": (
        0.5000000000000011,
        0.166666666666664,
        0.0416666666665247,
        0.008333333333501147,
        0.0013888888945264776,
        0.00019841269497001057,
        2.480149123237472e-05,
        2.755759065265112e-06,
        2.763096751549258e-07,
        2.500002353442667e-08,
    ),
}
_EXP_SHORT = (
    0.5000000000444431,
    0.16666666787943568,
    0.0416666643335875,
    0.008333280789738776,
    0.0013889203926490666,
    0.0001990960604123166,
    2.470704493729386e-05,
)

# (2ʳ - 1) / r for |r| ≤ 1/2; 2⁻²⁸ and 2⁻⁵⁷.
_EXP2 = {
    "f32": (
        0.6931472035077029,
        0.24022647828881097,
        0.05550330931506408,
        0.009618443693664774,
        0.00133995165596447,
        0.0001535280844036014,
    ),
    "f64": (
        0.6931471805599453,
        0.24022650695910133,
        0.05550410866482001,
        0.00961812910759268,
        0.0013333558146788433,
        0.00015403530459089633,
        1.5252733483971503e-05,
        1.3215434226971944e-06,
        1.0178201733565453e-07,
        7.073975043074452e-09,
        4.434682696409007e-10,
    ),
}

# (log(1 + r) - r) / r² for 1 + r in [√½, √2], 2⁻²⁷; then the same of log₂, less r·log₂(e).
_LOG_F32 = (
    -0.49999988421828934,
    0.3333332666045446,
    -0.25001579752517916,
    0.20001921553642762,
    -0.16609088255160823,
    0.14182679912739943,
    -0.1324384160372988,
    0.129000566637284,
    -0.0761478380071589,
)
_LOG2_F32 = (
    -0.7213473534067819,
    0.48089825069369524,
    -0.3606965512334751,
    0.28856673033690483,
    -0.23961849259407644,
    0.2046128197662543,
    -0.19106824604020037,
    0.18610847775947587,
    -0.10985810826734427,
)
# (2·atanh(s)/s - 2) / s² in s² for the same interval, s = r/(2 + r); 2⁻⁵⁹ and, short, 2⁻³⁷.
_LOG_F64 = (
    0.6666666666666735,
    0.39999999999407704,
    0.28571428744090555,
    0.2222219838397106,
    0.18183574866430427,
    0.15313763725742516,
    0.14798983632429977,
)
_LOG_SHORT = (0.6666666563719312, 0.4000033724095816, 0.2853716826203845, 0.2358498546603001)
# The same without its first coefficient, 2/3: (2·atanh(s)/s - 2 - 2/3·s²) / s⁴; 2⁻⁷³.
_LOG_LONG = (
    0.39999999999999974,
    0.2857142857144533,
    0.22222222217482843,
    0.18181818876920186,
    0.15384556418881085,
    0.1333633486106304,
    0.11674463599587155,
    0.11991975201420167,
)

# (sinh(r)/r - 1) / r² in r² for |r| ≤ 1; 2⁻³⁴ and 2⁻⁶³.
_SINH = {
    "f32": (
        0.1666666649078062,
        0.008333350560728117,
        0.00019836057526944104,
        2.8175637148677986e-06,
    ),
    "f64": (
        0.16666666666666669,
        0.008333333333333137,
        0.00019841269841440088,
        2.7557319154366645e-06,
        2.5052123582427585e-08,
        1.6057223947799547e-10,
        7.759866577450246e-13,
    ),
}

# (tanh(r)/r - 1) / r² in r² for |r| ≤ 0.35; 2⁻²⁴ and 2⁻⁵⁶.
_TANH = {
    "f32": (
        -0.3333266327380833,
        0.13299828689033216,
        -0.04914870397609386,
    ),
    "f64": (
        -0.33333333333332515,
        0.13333333333116631,
        -0.05396825377157405,
        0.021869479888938295,
        -0.008863024656286966,
        0.0035891180189848507,
        -0.0014306914191069247,
        0.0004746338214583111,
    ),
}

# Beyond these, eˣ is 0 or infinite even after it is rounded.
_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}


def _exp_minus_one(r: Number, coefficients) -> Number:
    """eʳ - 1 for |r| ≤ ln(2)/2."""
    return muladd(r * r, horner(r, coefficients), r)


def exp_of(x: Number) -> Number:
    """eˣ of a Number: see `exp`."""
    low, high = _EXP_RANGE[x.elem]
    x = x.at_least(low).at_most(high)
    k, bits = nearest(x, _LOG2E, 2 * BIAS[x.elem])
    r = reduced(x, k, parts_of(x.elem, _LN2)[:2])
    return scaled(_exp_minus_one(r, _EXP[x.elem]) + 1.0, k, bits)


def exp_normal(x: Number) -> Number:
    """eˣ of a Number where the result is a normal number, within 1.5 ulp."""
    k, bits = nearest(x, _LOG2E, BIAS[x.elem])
    r = reduced(x, k, parts_of(x.elem, _LN2)[:2])
    power = power_of_two(bits)
    return muladd(power, _exp_minus_one(r, _EXP[x.elem]), power)


def exp_closer(x: Number) -> Number:
    """eˣ of a Number with at most 1 ulp of error, for formulas that add errors of their own."""
    low, high = _EXP_RANGE[x.elem]
    x = x.at_least(low).at_most(high)
    k, bits = nearest(x, _LOG2E, 2 * BIAS[x.elem])
    upper, lower, _ = parts_of(x.elem, _LN2)
    # This difference is exact, so the rounding error of r affects small terms only.
    exact = fma(k, -upper, x)
    lost = k * lower
    r = exact - lost
    return scaled((exact + muladd(r * r, horner(r, _EXP[x.elem]), -lost)) + 1.0, k, bits)


def exp_short(x: Number) -> Number:
    """eˣ in f64 lanes with 38 good bits, for |x| ≤ 700 only."""
    k, bits = nearest(x, _LOG2E, BIAS["f64"])
    r = reduced(x, k, _LN2[:2])
    return (_exp_minus_one(r, _EXP_SHORT) + 1.0) * power_of_two(bits)


@vector_rule
def exp(x: Number) -> Number:
    """eˣ with at most 1.5 ulp of error."""
    return exp_of(x)


@vector_rule
def exp2(x: Number) -> Number:
    """2ˣ with at most 1.5 ulp of error."""
    bias = BIAS[x.elem]
    x = x.at_least(-bias - FRACTION[x.elem] - 1.0).at_most(bias + 2.0)
    k, bits = nearest(x, 1.0, 2 * bias)
    r = x - k
    return scaled(muladd(r, horner(r, _EXP2[x.elem]), 1.0), k, bits)


@vector_rule
def expm1(x: Number) -> Number:
    """eˣ - 1 with at most 2 ulp of error."""
    high = _EXP_RANGE[x.elem][1]
    inner = x.at_least({"f32": -18.0, "f64": -38.0}[x.elem]).at_most(high)
    # With half of 2ᵏ, the greatest results do not overflow in between.
    k, bits = nearest(inner, _LOG2E, BIAS[x.elem] - 1)
    r = reduced(inner, k, parts_of(x.elem, _LN2)[:2])
    half = power_of_two(bits)
    out = muladd(half, _exp_minus_one(r, _EXP[x.elem]), half - 0.5) * 2.0
    return where(abs(x) < 2.0 ** -(FRACTION[x.elem] + 2), x, out)


@vector_rule
def logistic(x: Number) -> Number:
    """1 / (1 + e⁻ˣ) with at most 2 ulp of error."""
    # The exponential of a negative number cannot overflow.
    power = exp_closer(-abs(x))
    share = power / (power + 1.0)
    # a/(1 + e) = a - a·e/(1 + e): the rounding of 1 + e matters less.
    a = where(x < 0.0, power, 1.0)
    return fma(a, -share, a)


@vector_rule
def tanh(x: Number) -> Number:
    """tanh(x) with at most 2 ulp of error."""
    # u/(1 + u) with u = (e²ˣ - 1)/2; near 0, where its errors would add up, a polynomial.
    size = abs(x)
    cut = size.at_most({"f32": 10.0, "f64": 20.0}[x.elem])
    k, bits = nearest(cut, 2 * _LOG2E, BIAS[x.elem] - 1)
    r = reduced(cut + cut, k, parts_of(x.elem, _LN2)[:2])
    half = power_of_two(bits)
    u = muladd(half, _exp_minus_one(r, _EXP[x.elem]), half - 0.5)
    z = size * size
    near = muladd(size * z, horner(z, _TANH[x.elem]), size)
    return where(size < 0.35, near, u / (u + 1.0)).copysign(x)


def _half_exp(x: Number) -> Number:
    """eˣ/2 for x ≥ 0, without overflow in between."""
    x = x.at_most(_EXP_RANGE[x.elem][1] + 1.0)
    k, bits = nearest(x, _LOG2E, 2 * BIAS[x.elem] - 1)
    r = reduced(x, k, parts_of(x.elem, _LN2)[:2])
    return scaled(_exp_minus_one(r, _EXP[x.elem]) + 1.0, k - 1.0, bits)


@vector_rule
def sinh(x: Number) -> Number:
    """sinh(x) with at most 2 ulp of error."""
    z = x * x
    near = muladd(x * z, horner(z, _SINH[x.elem]), x)
    half = _half_exp(abs(x))
    far = (half - 0.25 / half).copysign(x)
    return where(abs(x) < 1.0, near, far)


@vector_rule
def cosh(x: Number) -> Number:
    """cosh(x) with at most 2 ulp of error."""
    half = _half_exp(abs(x))
    return half + 0.25 / half


def _normal_split(x: Number) -> tuple[Number, Number]:
    """m and e of x = m·2ᵉ for positive x, subnormal ones included."""
    up = FRACTION[x.elem] + 2
    tiny = x < LEAST_NORMAL[x.elem]
    m, e, _ = split(where(tiny, x * 2.0**up, x))
    return m, where(tiny, e - float(up), e)


def _tail(r: Number) -> tuple[Number, Number]:
    """log(1 + r) = r - r²/2 + t for 1 + r in [√½, √2] in f64: r²/2 and t."""
    s = r / (r + 2.0)
    z = s * s
    square = r * r * 0.5
    return square, s * muladd(z, horner(z, _LOG_F64), square)


def _log_sum(r: Number, e: Number) -> Number:
    """log(1 + r) + e·ln 2."""
    high, low, _ = parts_of(r.elem, _LN2)
    if r.elem == "f32":
        return fma(e, high, r + muladd(r * r, horner(r, _LOG_F32), e * low))
    square, t = _tail(r)
    return fma(e, high, r - (square - fma(e, low, t)))


def _log_edges(x: Number, out: Number) -> Number:
    """`out`, a logarithm of positive finite x, with the right values for all other x."""
    out = where(x < _INF, out, x)
    return where(x > 0.0, out, where(x.equals(0.0), x.like(-_INF), _NAN))


def log_of(x: Number) -> Number:
    """log(x) of a Number: see `log`."""
    m, e = _normal_split(x)
    return _log_edges(x, _log_sum(m - 1.0, e))


@vector_rule
def log(x: Number) -> Number:
    """log(x) with at most 1 ulp of error."""
    return log_of(x)


def log_short(x: Number) -> Number:
    """log(x) of positive normal x in f64 lanes, with a relative error of 2⁻³⁶."""
    m, e, _ = split(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return muladd(e, _LN2[0], muladd(s * z, horner(z, _LOG_SHORT), s + s))


@vector_rule
def log2(x: Number) -> Number:
    """log₂(x) with at most 1.5 ulp of error."""
    m, e = _normal_split(x)
    return _log_edges(x, (_log2_f32 if x.elem == "f32" else _log2_f64)(m - 1.0, e))


def _log2_f32(r: Number, e: Number) -> Number:
    high, low, _ = parts_of("f32", (_LOG2E, _LOG2E_LOW))
    return e + fma(r, high, muladd(r * r, horner(r, _LOG2_F32), r * low))


def _log2_f64(r: Number, e: Number) -> Number:
    square, t = _tail(r)
    # log(1 + r) as a sum of two numbers, the first of which is correctly rounded.
    first = r - square
    second = ((r - first) - square) + t
    product = first * _LOG2E
    rest = fma(first, _LOG2E, -product) + fma(second, _LOG2E, first * _LOG2E_LOW)
    total = e + product
    # e is 0 or the greater: the rounding error of the sum is known.
    return total + ((e - total) + product + rest)


def log1p_of(x: Number) -> Number:
    """log(1 + x) of a Number: see `log1p`."""
    u = x + 1.0
    m, e, exponent = split(u)
    # 1 + x = (1 + r)·2ᵉ with r = x·2⁻ᵉ + (2⁻ᵉ - 1), where only the addition rounds: the rounding
    # error of 1 + x does not matter.
    one = BIAS[x.elem] << FRACTION[x.elem]
    inverse = (one - exponent).as_float()
    r = where(x < 2.0**60, fma(x, inverse, inverse - 1.0), m - 1.0)
    out = _log_edges(u, _log_sum(r, e))
    return where(abs(x) < 2.0 ** -(FRACTION[x.elem] + 2), x, out)


@vector_rule
def log1p(x: Number) -> Number:
    """log(1 + x) with at most 1.5 ulp of error."""
    return log1p_of(x)


@vector_rule
@through_double
def asinh(x: Number, *, short: bool) -> Number:
    """asinh(x) with at most 1 ulp of error in f32, 2 in f64."""
    size = abs(x)
    if short:
        far = log_short(size + muladd(x, x, 1.0).sqrt())
        out = where(size > 2.0**-18, far, fma(x * x, size * (-1 / 6), size))
        return where(size < _INF, out, size).copysign(x)
    # log(x + √(x² + 1)) = log1p(x + x²/(1 + √(x² + 1))), and log(2x) where x² would overflow.
    large = size > 2.0**500
    z = where(large, 1.0, size)
    square = z * z
    near = log1p_of(z + square / ((square + 1.0).sqrt() + 1.0))
    return where(large, log_of(size) + _LN2[0], near).copysign(x)


@vector_rule
@through_double
def acosh(x: Number, *, short: bool) -> Number:
    """acosh(x) with at most 1 ulp of error in f32, 3 in f64."""
    if short:
        out = log_short(x + muladd(x, x, -1.0).sqrt())
        return where(x >= 1.0, where(x < _INF, out, x), _NAN)
    # With t = x - 1 it is log1p(t + √(2t + t²)): exact near 1.
    large = x > 2.0**500
    t = where(large, 1.0, x - 1.0)
    near = log1p_of(t + (t * (t + 2.0)).sqrt())
    return where(x < 1.0, _NAN, where(large, log_of(x) + _LN2[0], near))


@vector_rule
@through_double
def atanh(x: Number, *, short: bool) -> Number:
    """atanh(x) with at most 1 ulp of error in f32, 2 in f64."""
    size = abs(x)
    if short:
        far = log_short((size + 1.0) / (1.0 - size))
        far = where(size < 1.0, far, where(size.equals(1.0), x.like(_INF), _NAN))
    else:
        far = log1p_of((size + size) / (1.0 - size))
    # Near 0, doubling and halving would round subnormal numbers.
    return where(size < 2.0**-20, fma(x * x, x * (1 / 3), x), (far * 0.5).copysign(x))


@vector_rule
def rsqrt(x: Number) -> Number:
    """1/√x with at most 1.5 ulp of error."""
    return 1.0 / x.sqrt()


# By type: the shift that leaves 21 or 32 bits of a float; the number that a third of these is
# subtracted from, which gives the bits of the inverse cube root; the Newton steps before the last.
_CBRT = {"f32": (10, 0x54A2FA8C >> 10, 2), "f64": (32, 0x553EF0FF, 3)}


@vector_rule
def cbrt(x: Number) -> Number:
    """The real cube root, with at most 1 ulp of error."""
    shift, start, steps = _CBRT[x.elem]
    size = abs(x)
    tiny = size < 2 * LEAST_NORMAL[x.elem]
    y = where(tiny, size * 2.0**54, size)
    # The bits of a float are nearly its logarithm, so a third of the upper ones, computed in
    # floating point, gives y^(-1/3) with 5 good bits.
    anchor = 2.0 ** FRACTION[x.elem]
    upper = ((y.bits() >> shift) | y.like(anchor).bits()).as_float() - anchor
    _, bits = nearest(upper, -1 / 3, start)
    inverse = (bits << shift).as_float()
    for _ in range(steps):
        inverse = inverse * fma(y * inverse, inverse * inverse * (-1 / 3), 4 / 3)
    root = y * inverse * inverse
    # One Newton step, whose residual y - root³ is nearly exact.  It is computed on halves, which do
    # not overflow.
    square = root * root
    lost = fma(root, root, -square)
    rest = fma(root * 0.5, -square, y * 0.5) * 2.0 - lost * root
    root = fma(rest * inverse, inverse * (1 / 3), root)
    root = where(tiny, root * 2.0**-18, root)
    return where((size > 0.0) & (size < _INF), root.copysign(x), x + x)


@vector_rule
@through_double
def hypot(x: Number, y: Number, *, short: bool) -> Number:
    """√(x² + y²) with at most 1.5 ulp of error, without overflow on the way."""
    x, y = abs(x), abs(y)
    infinite = x.equals(_INF) | y.equals(_INF)
    if short:
        return where(infinite, _INF, muladd(x, x, y * y).sqrt())
    size = where(x < y, y, x)
    large, small = size > 2.0**500, size < 2.0**-450
    factor = where(large, x.like(2.0**-600), where(small, x.like(2.0**600), 1.0))
    back = where(large, x.like(2.0**600), where(small, x.like(2.0**-600), 1.0))
    x, y = x * factor, y * factor
    return where(infinite, _INF, muladd(x, x, y * y).sqrt() * back)


def _log2_short(x: Number) -> tuple[Number, Number | None]:
    """log₂(x) in f64 lanes for positive normal x, with a relative error of 2⁻³⁶."""
    m, e, _ = split(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return muladd(muladd(s * z, horner(z, _LOG_SHORT), s + s), _LOG2E, e), None


def _log2_long(x: Number) -> tuple[Number, Number | None]:
    """log₂(x) of positive x as a sum of two numbers, with a relative error below 2⁻⁶⁴."""
    m, e = _normal_split(x)
    # A pair (a, a_) represents the sum a + a_, where a_ is the rounding error of a.
    r, d = m - 1.0, m + 1.0
    s = r / d
    s_ = (fma(s, -d, r) - s * (m - (d - 1.0))) / d
    z = s * s
    z_ = fma(s, s, -z) + (s + s) * s_
    # log(m) = 2s + s·z·(2/3 + z·T(z))
    u = z * horner(z, _LOG_LONG)
    b = u + 2 / 3
    b_ = (2 / 3 - b) + u + 3.700743415417188e-17
    c = z * b
    c_ = fma(z, b, -c) + fma(z, b_, z_ * b)
    w = s * c
    w_ = fma(s, c, -w) + fma(s, c_, s_ * c)
    log = s + s + w
    log_ = ((s + s) - log + w) + (s_ + s_ + w_)
    p = log * _LOG2E
    p_ = fma(log, _LOG2E, -p) + fma(log, _LOG2E_LOW, log_ * _LOG2E)
    total = e + p
    return total, (e - total) + p + p_


@through_double
def _power(x: Number, y: Number, *, short: bool) -> Number:
    """xʸ for x ≥ 0; NaN where y·log₂(x) is."""
    exponent, rest = (_log2_short if short else _log2_long)(x)
    exponent = where(x.equals(0.0), -_INF, where(x < _INF, exponent, x))
    # 1 to any power is 1.
    y = where(exponent.equals(0.0), 0.0, y)
    product = y * exponent
    if rest is None:
        cut = product.at_least(-160.0).at_most(160.0)
        k, bits = nearest(cut, 1.0, BIAS["f64"])
        r = cut - k
        return muladd(r, horner(r, _EXP2["f32"]), 1.0) * power_of_two(bits)
    cut = product.at_least(-1080.0).at_most(1030.0)
    k, bits = nearest(cut, 1.0, 2 * BIAS["f64"])
    lost = fma(y, rest, fma(y, exponent, -product))
    r = (cut - k) + where(abs(product) < 1100.0, lost, 0.0)
    return scaled(muladd(r, horner(r, _EXP2["f64"]), 1.0), k, bits)


@vector_rule
def pow(x: Number, y: Number) -> Number:
    """xʸ with at most 1 ulp of error in f32, 1.5 in f64; at 0, ∞ and NaN as in C."""
    out = _power(abs(x), y)
    half = y * 0.5
    whole = y.floor().equals(y)
    odd = whole & half.floor().differs(half)
    out = where(odd, out.copysign(x), out)
    out = where((x < 0.0) & (x > -_INF) & ~whole, _NAN, out)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, out)


def integer_pow(f: Function, x: Value, *, y: int) -> Value:
    """xʸ for a Python integer y, by repeated multiplication: an error of about |y|/2 ulp."""
    if y == 0:
        return f.splat(constant(x.elem, 1), x.lanes) if x.lanes else constant(x.elem, 1)
    out, base, rest = None, x, abs(y)
    while rest:
        if rest & 1:
            out = base if out is None else f.mul(out, base)
        rest >>= 1
        base = f.mul(base, base) if rest else base
    assert out is not None
    if y > 0:
        return out
    assert is_float(x.elem), "integers have no negative powers"
    return f.fdiv(constant(x.elem, 1), out)
