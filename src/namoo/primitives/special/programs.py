"""Special functions as programs of elementary operations, for engines without SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo.primitives.special.formulas import (
    Number,
    as_function,
    exp,
    formula,
    log,
    log1p,
    program,
    repeat,
    rounded,
    size,
    sqrt,
    square,
    where,
)
from namoo.primitives.special.functions import digamma_p, erf_inv_p, erfc_p, lgamma_p

_EPS = float(np.finfo(np.float64).eps)

erfc, erf_inv, lgamma, digamma = (
    as_function(p.bind) for p in (erfc_p, erf_inv_p, lgamma_p, digamma_p)
)

_MANY = 1e8
"""Series and fraction take about √a steps; above this, the limit for large a is used."""


def _series_step(n, a, x, term, slope, total, derivative):
    """S = Σₙ xⁿ / ((a+1)…(a+n)) and dS/da, where P(a, x) = xᵃ e⁻ˣ S / Γ(a+1)."""
    term, slope = term * (x / (a + n)), slope - 1 / (a + n)
    change = term * slope
    total, derivative = total + term, derivative + change
    moving = (size(change) > _EPS * size(derivative)) | (term > _EPS * total)
    return moving, term, slope, total, derivative


def _fraction_step(n, a, x, b, d, dd, change, dchange, total, derivative):
    """F and dF/da by Steed's method, where Q(a, x) = xᵃ e⁻ˣ F / Γ(a); see `special`."""
    b, c = b + 2, n * (a - n)
    new = 1 / (b + c * d)
    dnew = -(new * new * (n * d + c * dd - 1))
    factor = -(c * d * new)
    dfactor = -(n * d * new + c * (dd * new + d * dnew))
    change, dchange = factor * change, dfactor * change + factor * dchange
    total, derivative = total + change, derivative + dchange
    moving = (size(change) > _EPS * size(total)) | (size(dchange) > _EPS * size(derivative))
    return moving, b, new, dnew, change, dchange, total, derivative


def _inside(a, x):
    return (x > 0) & (a > 0) & x.finite & a.finite


def _above(a, x):
    """Where the continued fraction is more accurate."""
    return _inside(a, x) & (x > 1) & (x > a) & (a <= _MANY)


def _below(a, x):
    return _inside(a, x) & (a <= _MANY) & ~_above(a, x)


def _lower_and_upper(hlo: Any, a: Any, x: Any) -> tuple[list[Any], list[Any]]:
    """S and dS/da where the series is accurate, and F and dF/da where the fraction is."""

    def chosen(here, a0, x0):
        # Elsewhere, values for which the loop ends quickly.
        return hlo.apply(
            lambda a, x: [
                where(here(Number(a), Number(x)), Number(v), v0).x for v, v0 in ((a, a0), (x, x0))
            ],
            a,
            x,
        )

    one, zero = (hlo.constant(v, np.float64, a.shape) for v in (1.0, 0.0))
    low = chosen(_below, 1.0, 0.5)
    lower = repeat(hlo, _series_step, low, [one, zero, one, zero])[2:]
    high = chosen(_above, 1.0, 2.0)
    b, d, dd = hlo.apply(
        lambda a, x: [
            (Number(x) + 1 - Number(a)).x,
            (1 / (Number(x) + 1 - Number(a))).x,
            square(1 / (Number(x) + 1 - Number(a))).x,
        ],
        *high,
    )
    upper = repeat(hlo, _fraction_step, high, [b, d, dd, d, dd, d, dd])[5:]
    return lower, upper


def _divergence(a, x):
    """x/a - 1 - log(x/a), also where x is close to a."""
    m = (x - a) / a
    near = square(m) * (0.5 - m * (1 / 3 - m * (0.25 - m * (0.2 - m * (1 / 6 - m / 7)))))
    return where(size(m) < 1e-3, near, m - log1p(m))


def _stirling(a):
    """log Γ(a) - (a - ½) log a + a - ½ log 2π, for large a."""
    r = 1 / square(a)
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / a


def _weight(a, x):
    """xᵃ e⁻ˣ / Γ(a+1); by Stirling's series for large a, where the powers would lose digits."""
    large = exp(-(a * _divergence(a, x)) - _stirling(a)) / sqrt(2 * np.pi * a)
    return where(a > 20, large, exp(a * log(x) - x - lgamma(a + 1)))


def _limit(a, x, sign):
    """P(a, x) for very large a: Φ(√a η), η²/2 = λ - 1 - log λ, with its first correction.

    With sign -1 it is 1 - P(a, x).
    """
    half, m = _divergence(a, x), (x - a) / a
    eta = sqrt(2 * half) * where(m < 0, -1.0, where(m > 0, 1.0, m))
    near = where(size(m) < 1e-3, m / 12 - 1 / 3, 1 / m - 1 / eta)
    correction = exp(-(a * half)) / sqrt(2 * np.pi * a) * near
    return 0.5 * erfc(-sign * eta * sqrt(a / 2)) - sign * correction


def _lower_share(a, x, total, fraction):
    weight = _weight(a, x)
    out = where(_above(a, x), 1 - weight * a * fraction, weight * total)
    return _at_the_ends(a, x, where(a > _MANY, _limit(a, x, 1), out), 0.0)


def _upper_share(a, x, total, fraction):
    weight = _weight(a, x)
    out = where(_above(a, x), weight * a * fraction, 1 - weight * total)
    return _at_the_ends(a, x, where(a > _MANY, _limit(a, x, -1), out), 1.0)


def _at_the_ends(a, x, out, at_zero):
    out = where(x.equals(0) | (a.equals(np.inf) & x.finite), at_zero, out)
    out = where((x.equals(np.inf) & a.finite) | (a.equals(0) & (x > 0)), 1 - at_zero, out)
    valid = (x >= 0) & (a >= 0) & ((a > 0) | (x > 0)) & (x.finite | a.finite)
    return where(valid, out, np.nan)


def _gamma_share(share: Callable[..., Number]) -> Callable[..., Any]:
    def compute(hlo, a, x):
        (total, _), (fraction, _) = _lower_and_upper(hlo, a, x)
        return formula(share)(hlo, a, x, total, fraction)

    return program(compute)


igamma = _gamma_share(_lower_share)
igammac = _gamma_share(_upper_share)


def _slope(a, x, total, dtotal, fraction, dfraction):
    """-(∂P/∂a) / (∂P/∂x); 0 at x = 0, NaN where there is none."""
    low = -(x / a) * (total * (log(x) - digamma(a + 1)) + dtotal)
    high = x * (fraction * (log(x) - digamma(a)) + dfraction)
    excess = (x - a) / a
    limit = (1 + excess) * (1 - where(excess.equals(0), excess, _divergence(a, x) / excess))
    out = where(_above(a, x), high, where(a > _MANY, limit, low))
    return where(_inside(a, x), out, where(x.equals(0) & (a > 0), x * 0, np.nan))


def _gamma_slope(finish: Callable[..., Number]) -> Callable[..., Any]:
    def compute(hlo, a, x):
        lower, upper = _lower_and_upper(hlo, a, x)
        return formula(finish)(hlo, a, x, *lower, *upper)

    return program(compute)


def _slope_by_a(a, x, *parts):
    slope = _slope(a, x, *parts)
    density = exp((a - 1) * log(x) - x - lgamma(a))
    return where(slope.equals(0), slope, -slope * density)


random_gamma_grad = _gamma_slope(_slope)
igamma_grad_a = _gamma_slope(_slope_by_a)


def _beta_step(n, a, b, x, c, d, total):
    """A pair of terms of the continued fraction, by Lentz's method."""
    even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
    odd = -((a + n) * (a + b + n) * x) / ((a + 2 * n) * (a + 2 * n + 1))
    for term in (even, odd):
        d, c = 1 / (1 + term * d), 1 + term / c
        change = c * d
        total = total * change
    return size(change - 1) > _EPS, c, d, total


def _betainc(hlo: Any, a: Any, b: Any, x: Any) -> Any:
    def swapped(a, b, x):
        # The fraction converges quickly on this side of the mean.
        return x > (a + 1) / (a + b + 2)

    def begin(a, b, x):
        a, b, x = map(Number, (a, b, x))
        swap = swapped(a, b, x)
        good = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a + b <= _MOST)
        p, q, y = where(swap, b, a), where(swap, a, b), where(swap, 1 - x, x)
        p, q, y = (where(good, v, v0) for v, v0 in ((p, 1.0), (q, 1.0), (y, 0.5)))
        d = 1 / (1 - (p + q) * y / (p + 1))
        return [v.x for v in (p, q, y, y * 0 + 1, d, d)]

    p, q, y, *state = hlo.apply(begin, a, b, x)
    total = repeat(hlo, _beta_step, [p, q, y], state)[2]

    def finish(a, b, x, p, q, y, total):
        log_beta = lgamma(p) + lgamma(q) - lgamma(p + q)
        part = exp(p * log(y) + q * log1p(-y) - log_beta) * total / p
        out = where(swapped(a, b, x), 1 - part, part)
        # For very large a and b the distribution is normal.
        mean = 1 / (1 + b / a)
        normal = 0.5 * erfc((mean - x) * sqrt((a + b) / (2 * mean * (1 - mean))))
        out = where(a + b > _MOST, normal, out)
        out = where(a.equals(0) | b.equals(np.inf), 1.0, out)
        out = where(b.equals(0) | a.equals(np.inf), 0.0, out)
        out = where(x.equals(0), 0.0, where(x.equals(1), 1.0, out))
        both = (a.equals(0) & b.equals(0)) | (a.equals(np.inf) & b.equals(np.inf))
        return where((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~both, out, np.nan)

    return formula(finish)(hlo, a, b, x, p, q, y, total)


_MOST = 1e12
"""The fraction takes about √(a + b) steps."""


betainc = program(_betainc)


def _betaln(a, b):
    low, high = where(a < b, a, b), where(a < b, b, a)
    total = low + high
    # log Γ(high) - log Γ(high + low), both of which are large.
    change = _stirling(high) - _stirling(total) + low - low * log(high)
    change = change - (total - 0.5) * log1p(low / high)
    plain = lgamma(low) + (lgamma(high) - lgamma(total))
    out = where((total >= 20) & (high >= 20), lgamma(low) + change, plain)
    out = where(high.equals(np.inf) & (low > 0), -np.inf, out)
    out = where(high.equals(np.inf) & (low < 0), np.inf, out)
    return where(low.equals(0) | high.equals(0), np.inf, out)


betaln = program(formula(_betaln))


# Chebyshev's series of exp(-x) I₀(x) for x = 4 (t + 1), and of √x times it for x = 16 / (t + 1).
_NEAR = (
    0.33839763720473803,
    -0.30468267234319835,
    0.17162090152220866,
    -0.09490109704804753,
    0.0493052842396706,
    -0.02373741480589939,
    0.01054646039459488,
    -0.004324309995050483,
    0.0016394756169411959,
    -0.0005763755745384457,
    0.0001885028850956094,
    -5.754195010058786e-05,
    1.6448448070363608e-05,
    -4.416738358117844e-06,
    1.1173875386132533e-06,
    -2.6707938501413394e-07,
    6.046994975791863e-08,
    -1.3000249723486383e-08,
    2.6598232315729515e-09,
    -5.18979092108592e-10,
    9.675731049707537e-11,
    -1.7267520746599985e-11,
    2.9538464267157377e-12,
    -4.845337094513032e-13,
    7.498631345489078e-14,
    -1.0070648019204024e-14,
    -8.692121096961121e-16,
    1.8577731945394287e-15,
    -3.0353034900324853e-15,
    2.419939248987646e-15,
)
_FAR = (
    0.40224520550705445,
    0.003369116478255703,
    6.889758346911352e-05,
    2.891370520866329e-06,
    2.048918589337877e-07,
    2.2666689898768896e-08,
    3.3962319471876738e-09,
    4.940602422126068e-10,
    1.1888818212730195e-11,
    -3.149916943440639e-11,
    -1.3216159227608609e-11,
    -1.7941828270381901e-12,
    7.179194107884903e-13,
    3.853029006961606e-13,
    1.510912607148963e-14,
    -4.1509724950246477e-14,
    -1.0075273948473296e-14,
    3.8050370934880366e-15,
    1.112746258772032e-15,
    -3.2802043909379626e-16,
    -1.127885663653284e-15,
)


def _chebyshev(coefficients: Sequence[float], t: Number) -> Number:
    b0, b1 = t * 0, t * 0
    for c in coefficients[:0:-1]:
        b0, b1 = 2 * t * b0 - b1 + c, b0
    return t * b0 - b1 + coefficients[0]


def _bessel_i0e(x):
    x = size(x)
    far = where(x <= 8, 8.0, x)
    return where(x <= 8, _chebyshev(_NEAR, x / 4 - 1), _chebyshev(_FAR, 16 / far - 1) / sqrt(far))


bessel_i0e = program(formula(_bessel_i0e))


def _tail_series(x):
    """erfcx(x)·x·√π for large x."""
    r = 1 / (2 * square(x))
    return 1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r * (1 - 9 * r))))


def _erfcx(x):
    near = where(x < 25, where(x < -30, -30.0, x), 25.0)
    # The square is taken in two parts: its error would be multiplied by the exponential function.
    high = rounded(near * 4096) / 4096
    low = near - high
    inner = exp(square(high)) * exp(low * (near + high)) * erfc(near)
    far = where(x < 25, 25.0, x)
    return where(x < 25, inner, _tail_series(far) / (far * np.sqrt(np.pi)))


erfcx = program(formula(_erfcx))


def _log_ndtr(x):
    t = -(x * np.sqrt(0.5))
    left = log(0.5 * erfc(t))
    far = where(x < -20, t, 20.0)
    tail = log(_tail_series(far) / (far * np.sqrt(4 * np.pi))) - square(far)
    return where(x < -20, tail, where(x > 0, log1p(-0.5 * erfc(-t)), left))


log_ndtr = program(formula(_log_ndtr))


def _ndtri(p):
    low = where(p < 0.5, p, 1 - p)
    safe = where((low > 0) & (low <= 0.5), low, 0.25)
    s = -2 * log(safe)
    y = where(safe < 0.1, -sqrt(s - log(s) - np.log(2 * np.pi)), erf_inv(2 * safe - 1) * np.sqrt(2))
    for _ in range(5):
        value = _log_ndtr(y)
        # Newton's step on log Φ(y) = log p.
        y = y - (value - log(safe)) * exp(square(y) / 2 + value) * np.sqrt(2 * np.pi)
    y = where(low.equals(0), -np.inf, y)
    return where((p >= 0) & (p <= 1), where(p < 0.5, y, -y), np.nan)


ndtri = program(formula(_ndtri))


# The same series of exp(-x) I₁(x) / x, and of √x times exp(-x) I₁(x).
_NEAR_1 = (
    0.12629359322181682,
    -0.17641651835783403,
    0.10264365868984708,
    -0.052945981208094954,
    0.024726449030626468,
    -0.010564084894626149,
    0.004156422944312832,
    -0.001513572450631191,
    0.0005122859561684905,
    -0.0001617608158257912,
    4.7815651075352454e-05,
    -1.3273163655881015e-05,
    3.4702513079473874e-06,
    -8.568720262908025e-07,
    2.003294751468054e-07,
    -4.445059105931941e-08,
    9.38153708258098e-09,
    -1.8872494186816445e-09,
    3.6255861764872095e-10,
    -6.66345063244528e-11,
    1.1735744404722625e-11,
    -1.983529296233391e-12,
    3.2183188685715044e-13,
    -4.9869382816806805e-14,
    6.9639634560761836e-15,
)
_FAR_1 = (
    0.38928811750914,
    -0.009761097491361469,
    -0.00011058893876270949,
    -3.882564808897503e-06,
    -2.512236238956162e-07,
    -2.63146884611816e-08,
    -3.835380474120703e-09,
    -5.589743359537793e-10,
    -1.8975177396430144e-11,
    3.252604276772023e-11,
    1.4125438473221329e-11,
    2.035620643241558e-12,
    -7.203332580624428e-13,
    -4.0833591652000434e-13,
    -2.152187892921507e-14,
    4.273330660524792e-14,
    9.589037383058759e-15,
    -3.79840192221292e-15,
    -2.650574148347824e-15,
    3.5979449872111557e-16,
    -2.7549978759216847e-16,
    -2.6727591333568582e-17,
    -5.859510407743882e-16,
    2.05596856412066e-17,
    -3.8446612149056345e-16,
    1.3363795666784291e-17,
    -4.574530055168469e-16,
)


def _bessel_i1e(x):
    z = size(x)
    far = where(z <= 8, 8.0, z)
    near = x * _chebyshev(_NEAR_1, where(z <= 8, z, 8.0) / 4 - 1)
    tail = _chebyshev(_FAR_1, 16 / far - 1) / sqrt(far)
    return where(z <= 8, near, where(x < 0, -tail, tail))


bessel_i1e = program(formula(_bessel_i1e))
