"""The logarithm of the gamma function and its derivative as straight-line vector code.

Both are computed in f64 lanes for f32 too: near their zeros large numbers cancel.  `powers` says
where the coefficients of the polynomials come from; those of the series in 1/x are Bernoulli
numbers.
"""

from __future__ import annotations

import math

from namoo.engines.native.ir.math.powers import log_of
from namoo.engines.native.ir.math.trig import sin_series
from namoo.engines.native.ir.vectors import (
    Number,
    fma,
    horner,
    muladd,
    through_double,
    vector_rule,
    where,
)

_INF = math.inf
_NAN = math.nan

# lgamma(y) / ((y - 1)·(y - 2)) in y - 1.5 for y in [0.5, 2.5]; 2⁻⁵⁷.
_LGAMMA = (
    0.4831289505409809,
    -0.14595989591430614,
    0.06291140107456285,
    -0.03130848750099944,
    0.01679709863143454,
    -0.009425622449324454,
    0.005446457832962029,
    -0.0032120740474551957,
    0.0019229164262385859,
    -0.0011644150672776932,
    0.0007115179637241736,
    -0.00043798755777942305,
    0.0002713198233009239,
    -0.00016896029512873193,
    0.00010532631385371239,
    -6.590183616894596e-05,
    4.327799448396443e-05,
    -2.8294972888451204e-05,
    1.1095398654089828e-05,
    -4.0576717357851654e-06,
    2.272298110282853e-05,
    -2.1673736859954276e-05,
    -3.1654393763683097e-05,
    3.343169051461696e-05,
    5.769860190257107e-05,
    -5.5486226697266784e-05,
    -6.999029107366246e-05,
    6.460146739784502e-05,
    6.569855763562663e-05,
    -5.77966289096955e-05,
    -4.409147614221165e-05,
    3.7253433718180095e-05,
    2.0541270406056452e-05,
    -1.668384041341569e-05,
    -5.898096335893202e-06,
    4.6213807440493625e-06,
    8.197778187752061e-07,
    -6.185276173931437e-07,
)
# B₂ₖ/(2k·(2k - 1)) and B₂ₖ/(2k): for x ≥ 8 the first term left out is below 2⁻⁵³.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
    43867 / 244188,
)
_DIGAMMA = (
    1 / 12,
    -1 / 120,
    1 / 252,
    -1 / 240,
    1 / 132,
    -691 / 32760,
    1 / 12,
    -3617 / 8160,
    43867 / 14364,
    -174611 / 6600,
)


def _sine_and_cosine_pi(x: Number) -> tuple[Number, Number]:
    """sin(πx) and cos(πx), up to a common sign: the parity of the nearest integer."""
    r = x - Number(x.f, x.f.intrinsic("rint", x.value))
    return sin_series(r * math.pi), sin_series((0.5 - abs(r)) * math.pi)


@vector_rule
@through_double
def lgamma(x: Number, *, short: bool) -> Number:
    """log|Γ(x)| with at most 2 ulp of error in f32.

    In f64, at most 4 ulp for x > 0; below 0, where the function has zeros, 4 ulp plus 4e-15.
    """
    del short
    # Γ(x)·Γ(1 - x) = π / sin(πx)
    reflected = x < 0.5
    y = where(reflected, 1.0 - x, x)
    # Γ(y) = (y - 1)·…·(y - n)·Γ(y - n) reduces y to [1.5, 2.5); Stirling's series serves y ≥ 8.
    factors, rest = y.like(1.0), y
    for i in range(1, 7):
        further = y >= i + 1.5
        factors = where(further, factors * (y - float(i)), factors)
        rest = where(further, y - float(i), rest)
    small = y < 8.0
    log = log_of(where(small, factors, y))
    series = horner(rest - 1.5, _LGAMMA)
    near = fma((rest - 1.0) * (rest - 2.0), series, log)
    inverse = 1.0 / y
    far = horner(inverse * inverse, _STIRLING) * inverse + 0.41893853320467274
    far = fma(y - 0.5, log - 1.0, far)
    out = where(small, near, far)
    sine, _ = _sine_and_cosine_pi(x)
    other = where(sine.equals(0.0), _INF, log_of(math.pi / abs(sine)) - out)
    out = where(reflected, other, out)
    # Adding 0 makes the result at 1 a positive zero.
    return where(abs(x) < _INF, out + 0.0, abs(x))


@vector_rule
@through_double
def digamma(x: Number, *, short: bool) -> Number:
    """The derivative of log Γ(x) with at most 2 ulp of error in f32; NaN at 0, -1, -2, …

    In f64, at most 4 ulp plus 4e-15, which matters near its zeros.
    """
    del short
    reflected = x < 0.0
    y = where(reflected, 1.0 - x, x)
    small = y < 8.0
    high = where(small, y + 8.0, y)
    inverse = 1.0 / high
    square = inverse * inverse
    out = muladd(square, -horner(square, _DIGAMMA), muladd(inverse, -0.5, log_of(high)))
    # The sum of 1/y … 1/(y + 7) is the logarithmic derivative of their product, which is
    # z·(z + 6)·(z + 10)·(z + 12) with z = y² + 7y.
    low = y.at_most(8.0)
    z = low * (low + 7.0)
    product = z * (z + 6.0) * ((z + 10.0) * (z + 12.0))
    derivative = horner(z, (720.0, 504.0, 84.0, 4.0)) * muladd(low, 2.0, 7.0)
    out = where(small, out - derivative / product, out)
    sine, cosine = _sine_and_cosine_pi(x)
    out = where(reflected, out - math.pi * cosine / sine, out)
    pole = (x <= 0.0) & x.floor().equals(x)
    return where(pole, _NAN, out)
