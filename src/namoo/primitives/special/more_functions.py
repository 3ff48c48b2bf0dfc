"""More special functions: relatives of the error function, integrals, Bessel functions, harmonics.

SciPy computes the values; its formulas are better than a program of elementary functions
could be. The derivatives are programs of primitives, so they exist to every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import ShapedArray, aval_of
from namoo.primitives.elementwise import (
    abs,
    add,
    complex,
    cos,
    div,
    exp,
    full_like,
    gt,
    imag,
    integer_pow,
    log,
    log1p,
    lt,
    max,
    mul,
    neg,
    real,
    rem,
    select,
    sin,
    sqrt,
    square,
    sub,
)
from namoo.primitives.elementwise import round as nearest
from namoo.primitives.families import (
    Elementwise,
    binary,
    common_shape,
    floating,
    operands,
    unary,
)
from namoo.primitives.shape import broadcast_to, convert_element_type, shape_of
from namoo.primitives.special.functions import digamma, erf, in_dtype, no_derivative
from namoo.primitives.special.incomplete import program, scipy

complexes = (np.complexfloating,)


def _of(x, value):
    return full_like(x, value)


def _choose(condition, x, y):
    """x or y, where either may be a scalar."""
    shape = shape_of(condition)
    return select(condition, broadcast_to(x, shape), broadcast_to(y, shape))


def _near_zero(x, coefficients, away):
    """`away(x)`, or near 0, where it is 0/0, the first terms of its power series."""
    small = lt(abs(x), _of(x, 0.02))
    series = _of(x, 0)
    for c in reversed(coefficients):
        series = add(mul(series, x), _of(x, c))
    return _choose(small, series, away(_choose(small, _of(x, 1), x)))


_SLOPE = 2 / np.sqrt(np.pi)


def _tail(x, near, sign):
    """`near`, but for x > 25, where its terms cancel, Σ (2k-1)!! uᵏ, k = 1 … 7, u = ±1/2x²."""
    far = gt(x, _of(x, 25))
    u = div(_of(x, sign / 2), square(_choose(far, x, _of(x, 25))))
    series = _of(x, 0)
    for k in range(7, 0, -1):
        series = mul(mul(u, _of(x, 2 * k - 1)), add(series, _of(x, 1)))
    return _choose(far, series, near)


def _erfcx_tangent(t, y, x):
    near = sub(mul(_of(x, 2 / _SLOPE), mul(x, y)), _of(x, 1))
    return mul(t, mul(_of(x, _SLOPE), _tail(x, near, -1)))


def _dawsn_tangent(t, y, x):
    return neg(mul(t, _tail(abs(x), sub(mul(_of(x, 2), mul(x, y)), _of(x, 1)), 1)))


erfcx_p = unary(
    "erfcx",
    in_dtype(lambda x: scipy().erfcx(x)),
    jvp=_erfcx_tangent,
    dtypes=floating,
    formula=program("erfcx"),
)
wofz_p = unary(
    "wofz",
    lambda z: scipy().wofz(z),
    jvp=lambda t, y, z: mul(t, sub(_of(z, 1j * _SLOPE), mul(_of(z, 2), mul(z, y)))),
    dtypes=complexes,
)
dawsn_p = unary("dawsn", in_dtype(lambda x: scipy().dawsn(x)), jvp=_dawsn_tangent, dtypes=floating)


def erfcx(x: Any) -> Any:
    """exp(x²) · erfc(x), which neither overflows nor underflows for large x.

    Example:
        >>> float(erfcx(0.0))
        1.0
    """
    return erfcx_p.bind(x)


def wofz(z: Any) -> Any:
    """The Faddeeva function exp(-z²) · erfc(-iz) of a complex z.

    Example:
        >>> complex_one = wofz(0j)
        >>> float(complex_one.real)
        1.0
    """
    return wofz_p.bind(z)


def dawsn(x: Any) -> Any:
    """Dawson's integral, exp(-x²) ∫₀ˣ exp(t²) dt.

    Example:
        >>> float(dawsn(0.0))
        0.0
    """
    return dawsn_p.bind(x)


# The slope of the logarithm is density / Φ(x), whose exponentials cancel in erfcx.
log_ndtr_p = unary(
    "log_ndtr",
    in_dtype(lambda x: scipy().log_ndtr(x)),
    jvp=lambda t, y, x: div(
        mul(t, _of(x, np.sqrt(2 / np.pi))), erfcx(mul(x, _of(x, -np.sqrt(0.5))))
    ),
    dtypes=floating,
    formula=program("log_ndtr"),
)
ndtri_p = unary(
    "ndtri",
    in_dtype(lambda p: scipy().ndtri(p)),
    jvp=lambda t, y, p: mul(t, mul(_of(p, np.sqrt(2 * np.pi)), exp(mul(_of(p, 0.5), square(y))))),
    dtypes=floating,
    formula=program("ndtri"),
)


def log_ndtr(x: Any) -> Any:
    """The logarithm of the normal distribution function, log Φ(x).

    Example:
        >>> round(float(log_ndtr(0.0)), 4)
        -0.6931
    """
    return log_ndtr_p.bind(x)


def ndtri(p: Any) -> Any:
    """The quantile of the normal distribution: the x with Φ(x) = p; NaN outside of [0, 1].

    Example:
        >>> float(ndtri(0.5))
        0.0
    """
    return ndtri_p.bind(p)


def _owens_t_by_h(t, out, h, a):
    density = mul(exp(mul(_of(h, -0.5), square(h))), _of(h, -np.sqrt(0.125 / np.pi)))
    return mul(t, mul(density, erf(mul(mul(a, h), _of(h, np.sqrt(0.5))))))


def _owens_t_by_a(t, out, h, a):
    stretch = add(square(a), _of(a, 1))
    power = exp(mul(_of(h, -0.5), mul(square(h), stretch)))
    return mul(t, div(power, mul(_of(a, 2 * np.pi), stretch)))


owens_t_p = binary(
    "owens_t",
    in_dtype(lambda h, a: scipy().owens_t(h, a), single=False),
    jvp=[_owens_t_by_h, _owens_t_by_a],
    dtypes=floating,
)


def owens_t(h: Any, a: Any) -> Any:
    """Owen's function, 1/2π ∫₀ᵃ exp(-h²(1 + t²)/2) / (1 + t²) dt.

    Example:
        >>> float(owens_t(0.0, 1.0))
        0.125
    """
    return owens_t_p.bind(*operands("owens_t", h, a))


expi_p = unary(
    "expi",
    in_dtype(lambda x: scipy().expi(x)),
    jvp=lambda t, y, x: mul(t, div(exp(x), x)),
    dtypes=floating,
)


def expi(x: Any) -> Any:
    """The exponential integral, ∫ eᵗ/t dt from -∞ to x.

    Example:
        >>> float(expi(0.0))
        -inf
    """
    return expi_p.bind(x)


_EPS = np.finfo(np.float64).eps


def _expn_series(n, x):
    """For fractional n and 0 < x ≤ 1: Γ(1-n) xⁿ⁻¹ - Σₖ (-x)ᵏ / (k! (k+1-n))."""
    total = scipy().gamma(1 - n) * x ** (n - 1)
    power = np.ones_like(x)
    for k in range(30):
        total = total - power / (k + 1 - n)
        power = power * -x / (k + 1)
    return total


def _expn_fraction(n, x):
    """For x > 1: e⁻ˣ / (x+n - 1·n/(x+n+2 - 2(n+1)/(x+n+4 - …))), from the front."""
    b = x + n
    d = change = total = 1 / b
    k, moving = 0, np.ones(x.shape, bool)
    while moving.any():
        k += 1
        b, c = b + 2, -k * (n + k - 1)
        new = 1 / (b + c * d)
        change = -c * d * new * change
        d = new
        total = np.where(moving, total + change, total)
        moving &= np.abs(change) > _EPS * np.abs(total)
    return total * np.exp(-x)


def _expn_low(n, x):
    """For n < 1: xⁿ⁻¹ Γ(1-n, x)."""
    return scipy().gamma(1 - n) * scipy().gammaincc(1 - n, x) * x ** (n - 1)


def _expn(n, x):
    n, x = np.broadcast_arrays(n, x)
    whole = (n == np.floor(n)) & (n >= 1)
    # Beyond 2³¹ the integral is e⁻ˣ / (x + n) to the last digit.
    order = np.where(whole & (n < 2**31), n, 1).astype(np.int64)
    out = np.where(n < 2**31, scipy().expn(order, x), np.exp(-x) / (x + n))
    inside = ~whole & (x > 0) & np.isfinite(x)
    parts = (
        (inside & (n < 1), _expn_low),
        (inside & (n > 1) & (x <= 1), _expn_series),
        (inside & (n > 1) & (x > 1), _expn_fraction),
    )
    for part, compute in parts:
        if part.any():
            out[part] = compute(n[part], x[part])
    out = np.where(x == 0, np.where(n > 1, 1 / (n - 1), np.inf), out)
    out = np.where(np.isposinf(x), 0, out)
    return np.where((x < 0) | np.isnan(n) | np.isnan(x), np.nan, out)


expn_p = binary(
    "expn",
    in_dtype(_expn, single=False),
    jvp=[
        no_derivative("expn", "n", NotImplementedError, "n is an order; differentiate by x."),
        lambda t, o, n, x: neg(mul(t, expn(sub(n, _of(n, 1)), x))),
    ],
    dtypes=floating,
)


def expn(n: Any, x: Any) -> Any:
    """The exponential integral of order n, ∫ e⁻ˣᵗ / tⁿ dt from 1 to ∞.

    Example:
        >>> float(expn(2.0, 0.0))
        1.0
    """
    return expn_p.bind(*operands("expn", n, x))


_SINC_SERIES = (1, 0, -1 / 6, 0, 1 / 120, 0, -1 / 5040)

si_p = unary(
    "si",
    in_dtype(lambda x: scipy().sici(x)[0]),
    jvp=lambda t, y, x: mul(t, _near_zero(x, _SINC_SERIES, lambda x: div(sin(x), x))),
    dtypes=floating,
)
ci_p = unary(
    "ci",
    in_dtype(lambda x: scipy().sici(x)[1]),
    jvp=lambda t, y, x: mul(t, div(cos(x), x)),
    dtypes=floating,
)


def si(x: Any) -> Any:
    """The sine integral, ∫₀ˣ sin(t)/t dt.

    Example:
        >>> float(si(0.0))
        0.0
    """
    return si_p.bind(x)


def ci(x: Any) -> Any:
    """The cosine integral, γ + log |x| + ∫₀ˣ (cos(t) - 1)/t dt.

    Example:
        >>> float(ci(0.0))
        -inf
    """
    return ci_p.bind(x)


def _half_square(x):
    """x²/2 up to multiples of 2, without the digits that x² loses where x is large."""
    two = _of(x, 2)
    part = rem(x, two)
    return mul(rem(mul(part, sub(x, div(part, two))), two), _of(x, np.pi))


fresnel_s_p = unary(
    "fresnel_s",
    in_dtype(lambda x: scipy().fresnel(x)[0]),
    jvp=lambda t, y, x: mul(t, sin(_half_square(x))),
    dtypes=floating,
)
fresnel_c_p = unary(
    "fresnel_c",
    in_dtype(lambda x: scipy().fresnel(x)[1]),
    jvp=lambda t, y, x: mul(t, cos(_half_square(x))),
    dtypes=floating,
)


def fresnel_s(x: Any) -> Any:
    """The Fresnel integral ∫₀ˣ sin(πt²/2) dt.

    Example:
        >>> float(fresnel_s(0.0))
        0.0
    """
    return fresnel_s_p.bind(x)


def fresnel_c(x: Any) -> Any:
    """The Fresnel integral ∫₀ˣ cos(πt²/2) dt.

    Example:
        >>> float(fresnel_c(0.0))
        0.0
    """
    return fresnel_c_p.bind(x)


_LOG_SERIES = tuple((-1) ** (k + 1) / (k + 1) for k in range(9))


def _spence_slope(x):
    """log(x) / (1 - x), which is -1 at 1."""
    return _near_zero(sub(x, _of(x, 1)), _LOG_SERIES, lambda w: neg(div(log1p(w), w)))


spence_p = unary(
    "spence",
    in_dtype(lambda x: scipy().spence(x)),
    jvp=lambda t, y, x: mul(t, _spence_slope(x)),
    dtypes=floating,
)


def spence(x: Any) -> Any:
    """The dilogarithm in SciPy's form, ∫ log(t) / (1 - t) dt from 1 to x.

    Example:
        >>> float(spence(1.0))
        0.0
    """
    return spence_p.bind(x)


# B₂ₖ / 2k for k = 1 … 8.
_STIRLING = (
    1 / 12,
    -1 / 120,
    1 / 252,
    -1 / 240,
    1 / 132,
    -691 / 32760,
    1 / 12,
    -3617 / 8160,
)


def _complex_digamma(z):
    """ψ(z): shifted by its recurrence to where Stirling's series has all digits."""
    one = _of(z, 1)
    left = lt(real(z), _of(real(z), 0.5))
    right = _choose(left, sub(one, z), z)
    far = add(right, _of(z, 8))
    w = integer_pow(far, -2)
    series = _of(z, 0)
    for c in reversed(_STIRLING):
        series = mul(w, add(series, _of(z, c)))
    out = sub(sub(log(far), div(_of(z, 0.5), far)), series)
    for k in range(8):
        out = sub(out, div(one, add(right, _of(z, k))))
    return _choose(left, sub(out, _pi_cotangent(_choose(left, z, _of(z, 0.5)))), out)


def _pi_cotangent(z):
    """π cot πz, from the one of e^±2πiz that does not overflow."""
    x, y = real(z), imag(z)
    turned = complex(sub(x, nearest(x)), y)
    side = _choose(lt(y, _of(y, 0)), _of(z, -1j), _of(z, 1j))
    q = exp(mul(mul(_of(z, 2 * np.pi), side), turned))
    one = _of(z, 1)
    return mul(mul(_of(z, -np.pi), side), div(add(one, q), sub(one, q)))


loggamma_p = unary(
    "loggamma",
    lambda z: scipy().loggamma(z),
    jvp=lambda t, y, z: mul(t, _complex_digamma(z)),
    dtypes=complexes,
)


def loggamma(z: Any) -> Any:
    """The logarithm of Γ(z) for complex z, whose only cut is the negative real axis.

    Example:
        >>> float(loggamma(1j).real) < 0
        True
    """
    return loggamma_p.bind(z)


def _betaln(a, b):
    # SciPy's sum of logarithms is inf - inf where an operand is infinite.
    out = scipy().betaln(a, b)
    endless = (np.isposinf(a) & (b > 0)) | (np.isposinf(b) & (a > 0))
    return np.where(endless, out.dtype.type(-np.inf), out)


betaln_p = binary(
    "betaln",
    in_dtype(_betaln),
    jvp=[
        lambda t, o, a, b: mul(t, sub(digamma(a), digamma(add(a, b)))),
        lambda t, o, a, b: mul(t, sub(digamma(b), digamma(add(a, b)))),
    ],
    dtypes=floating,
    formula=program("betaln"),
)
poch_p = binary(
    "poch",
    in_dtype(lambda z, m: np.where(np.isnan(m), m, scipy().poch(z, m))),
    jvp=[
        lambda t, o, z, m: mul(t, mul(o, sub(digamma(add(z, m)), digamma(z)))),
        lambda t, o, z, m: mul(t, mul(o, digamma(add(z, m)))),
    ],
    dtypes=floating,
)


def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the beta function, log |Γ(a) Γ(b) / Γ(a+b)|.

    Example:
        >>> float(betaln(1.0, 1.0))
        0.0
    """
    return betaln_p.bind(*operands("betaln", a, b))


def poch(z: Any, m: Any) -> Any:
    """The rising factorial, Γ(z+m) / Γ(z).

    Example:
        >>> float(poch(2.0, 3.0))
        24.0
    """
    return poch_p.bind(*operands("poch", z, m))


def _bessel_jn_tangent(t, out, z, *, v):
    if v == 0:
        return neg(mul(t, bessel_jn(z, 1)))
    return mul(t, mul(sub(bessel_jn(z, v - 1), bessel_jn(z, v + 1)), _of(z, 0.5)))


bessel_jn_p = unary(
    "bessel_jn",
    lambda z, *, v: in_dtype(lambda z: scipy().jv(v, z), single=False)(z),
    jvp=_bessel_jn_tangent,
    dtypes=floating,
)


def bessel_jn(z: Any, v: int) -> Any:
    """The Bessel function of the first kind Jᵥ(z), of a non-negative integer order v.

    Example:
        >>> float(bessel_jn(0.0, 0))
        1.0
    """
    return bessel_jn_p.bind(z, v=v)


class SphericalHarmonic(Elementwise):
    """Real angles and integers to complex numbers."""

    def abstract(self, n, m, theta, phi):
        avals = [n, m, theta, phi]
        shape = common_shape(self.name, [aval.shape for aval in avals])
        wide = theta.dtype in (np.float32, np.float64)
        if n.dtype.kind not in "iu" or m.dtype != n.dtype or phi.dtype != theta.dtype or not wide:
            raise TypeError(
                "sph_harm_y takes n and m of one integer dtype, and angles that are both float32 "
                f"or both float64; got {', '.join(str(aval.dtype) for aval in avals)}."
            )
        return ShapedArray(
            shape, dtypes.to_complex_dtype(theta.dtype), all(aval.weak_type for aval in avals)
        )


def _harmonic(n, m, theta, phi):
    if theta.dtype.kind != "f" or theta.dtype.itemsize < 4 or n.dtype.kind not in "iu":
        raise TypeError("the abstract rule explains")
    out = scipy().sph_harm_y(n, m, theta.astype(np.float64), phi.astype(np.float64))
    out = np.asarray(np.where(np.abs(m) > n, 0, out))
    return out.astype(dtypes.to_complex_dtype(theta.dtype))


def _ladder(n, m, theta, phi, step):
    """√((n-sm)(n+sm+1)) e⁻ⁱˢᵠ Yₙᵐ⁺ˢ for s = ±1: m raised or lowered."""
    dtype = aval_of(theta).dtype
    degree, order = (convert_element_type(x, dtype) for x in (n, m))
    order = mul(order, _of(order, step))
    up = mul(sub(degree, order), add(degree, add(order, _of(order, 1))))
    size = sqrt(max(up, _of(up, 0)))
    turn = complex(mul(size, cos(phi)), mul(size, mul(sin(phi), _of(phi, -step))))
    return mul(turn, sph_harm_y(n, add(m, _of(m, step)), theta, phi))


def _harmonic_by_theta(t, out, n, m, theta, phi):
    slope = sub(_ladder(n, m, theta, phi, 1), _ladder(n, m, theta, phi, -1))
    # Outside of [0, π] the value is that at the angle with the same cosine.
    outside = lt(sin(theta), _of(theta, 0))
    half = _choose(outside, _of(slope, -0.5), _of(slope, 0.5))
    return mul(_complex(t, out), mul(slope, half))


def _harmonic_by_phi(t, out, n, m, theta, phi):
    return mul(_complex(t, out), mul(mul(_complex(m, out), _of(out, 1j)), out))


def _complex(x, like):
    return convert_element_type(x, aval_of(like).dtype)


sph_harm_y_p = SphericalHarmonic(
    "sph_harm_y",
    _harmonic,
    jvp=[None, None, _harmonic_by_theta, _harmonic_by_phi],
    dtypes=(np.integer,),
    same_dtypes=False,
)


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    """The spherical harmonic Yₙᵐ at polar angle theta and azimuth phi; 0 where |m| > n.

    Operands have one shape or are scalars.

    Example:
        >>> round(float(sph_harm_y(1, 0, 0.0, 0.0).real), 4)
        0.4886
    """
    return sph_harm_y_p.bind(n, m, theta, phi)
