"""Special functions: error functions, the gamma and beta families, zeta and Bessel functions.

SciPy computes the values and is imported when the first one is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._accelerator import native
from namoo.core.avals import aval_of
from namoo.primitives.elementwise import (
    abs,
    add,
    div,
    exp,
    full_like,
    gt,
    log,
    log1p,
    mul,
    neg,
    select,
    sign,
    square,
    sub,
)
from namoo.primitives.families import Elementwise, accepts, floating, operands, unary
from namoo.primitives.shape import broadcast_to, shape_of

Rule = Callable[..., Any]


@functools.cache
def _scipy() -> Any:
    import scipy.special

    return scipy.special


def _in_dtype(compute: Rule, single: bool = True) -> Rule:
    """Evaluate in single or double precision, and round to the operands' type.

    With `single` false, single precision is computed in double: where it would lose digits.
    """

    def evaluate(*xs):
        dtype = xs[0].dtype
        # SciPy would convert integers and mixed types by itself; the abstract rule explains them.
        is_floating = dtype.kind == "f" or dtype.kind == "V" and accepts(dtype, floating)
        if not is_floating or any(x.dtype != dtype for x in xs):
            raise TypeError("special functions take operands of one floating type")
        if dtype == np.float64 or dtype == np.float32 and single:
            return compute(*xs)
        wide = np.float32 if single else np.float64
        return np.asarray(compute(*(x.astype(wide) for x in xs))).astype(dtype)

    return evaluate


def _no_derivative(name: str, argument: str, error: type[Exception], advice: str) -> Rule:
    """A jvp rule for an operand by which no derivative is known."""

    def rule(*_):
        raise error(f"The derivative of {name} by its argument {argument!r} is not known: {advice}")

    return rule


def _program(name: str) -> Rule:
    """The rule of that name in `special_programs`, which is written in terms of this module."""

    def rule(hlo, *operands):
        from namoo.primitives import special_programs

        return getattr(special_programs, name)(hlo, *operands)

    return rule


# ---- error functions

erf_p = unary(
    "erf",
    _in_dtype(lambda x: _scipy().erf(x)),
    jvp=lambda t, y, x: mul(t, _gauss(x)),
    dtypes=floating,
    stablehlo="chlo.erf",
)
erfc_p = unary(
    "erfc",
    _in_dtype(lambda x: _scipy().erfc(x)),
    jvp=lambda t, y, x: neg(mul(t, _gauss(x))),
    dtypes=floating,
    stablehlo="chlo.erfc",
)


def _gauss(x):
    """2/√π · exp(-x²): the derivative of erf."""
    return mul(full_like(x, 2 / np.sqrt(np.pi)), exp(neg(square(x))))


def erf(x: Any) -> Any:
    """The error function, 2/√π ∫₀ˣ exp(-t²) dt.

    >>> float(erf(0.0))
    0.0
    """
    return erf_p.bind(x)


def erfc(x: Any) -> Any:
    """1 - erf(x), exact where erf(x) is close to 1."""
    return erfc_p.bind(x)


# Giles (2010), "Approximating the erfinv function": polynomials in w = -log(1 - x²), for the
# centre (w < 5) and for the tails, highest power first.
_CENTRE = np.array(
    [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ],
    np.float32,
)
_TAIL = np.array(
    [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ],
    np.float32,
)


def _erf_inv(x):
    if x.dtype == np.float64:
        return _scipy().erfinv(x)
    out = np.empty(x.size, np.float32)
    flat = x.reshape(-1)
    # In blocks, so that all steps of the polynomial find their numbers in the cache.
    for start in range(0, x.size, BLOCK):
        block = slice(start, start + BLOCK)
        erf_inv_into(flat[block], out[block])
    return out.reshape(x.shape)


BLOCK = 1 << 16


def erf_inv_into(x: np.ndarray, out: np.ndarray) -> None:
    """The inverse error function of a row of float32 numbers, into other memory or their own."""
    w = np.multiply(x, x)
    np.negative(w, out=w)
    np.log1p(w, out=w)
    np.negative(w, out=w)
    ratio = np.empty_like(w)
    _polynomial(_CENTRE, w - np.float32(2.5), ratio)
    tail = np.flatnonzero(~(w < 5))
    if tail.size:
        far = np.empty(tail.size, np.float32)
        _polynomial(_TAIL, np.sqrt(w[tail]) - np.float32(3), far)
        # At ±1 the ratio is infinite, and `far` is not a number.
        far[np.abs(x[tail]) == 1] = np.inf
        ratio[tail] = far
    np.multiply(x, ratio, out=out)


def _polynomial(coefficients: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Horner's rule.

    XLA evaluates these polynomials with fused multiply-adds, that is with one rounding a step.
    Doing the same keeps normal samples equal to JAX's, which an exact erf_inv would not.
    """
    if native is not None:
        native.horner(coefficients, v, out)
        return
    out[...] = coefficients[0]
    for c in coefficients[1:]:
        out[...] = _fused(out, v, c)


def _fused(x: np.ndarray, y: np.ndarray, z: np.float32) -> np.ndarray:
    """x·y + z of float32 numbers, rounded once, as a double that rounds to it.

    The product is exact as a double.  The sum is rounded to an odd number where it is not exact,
    so that rounding it again cannot meet a tie that was none.
    """
    product = x.astype(np.float64) * y
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    even = total.view(np.int64) & 1 == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.copysign(np.inf, lost)), total)


erf_inv_p = unary(
    "erf_inv",
    _in_dtype(_erf_inv),
    jvp=lambda t, y, x: mul(t, mul(full_like(x, np.sqrt(np.pi) / 2), exp(square(y)))),
    dtypes=floating,
    stablehlo="chlo.erf_inv",
)


def erf_inv(x: Any) -> Any:
    """The inverse of erf: the y with erf(y) = x; infinite at ±1 and NaN beyond.

    >>> float(erf_inv(1.0))
    inf
    """
    return erf_inv_p.bind(x)


# ---- the gamma family


def _lgamma(x):
    return np.where(np.isneginf(x), -x, _scipy().gammaln(x))


def _digamma(x):
    # At zero and below, the integers are poles with both signs.
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, x.dtype.type(np.nan), _scipy().psi(x))


lgamma_p = unary(
    "lgamma",
    _in_dtype(_lgamma),
    jvp=lambda t, y, x: mul(t, digamma(x)),
    dtypes=floating,
    stablehlo="chlo.lgamma",
)
digamma_p = unary(
    "digamma",
    _in_dtype(_digamma),
    jvp=lambda t, y, x: mul(t, polygamma(full_like(x, 1), x)),
    dtypes=floating,
    stablehlo="chlo.digamma",
)


def lgamma(x: Any) -> Any:
    """log |Γ(x)|

    >>> float(lgamma(2.0))
    0.0
    """
    return lgamma_p.bind(x)


def digamma(x: Any) -> Any:
    """The derivative of log Γ(x)."""
    return digamma_p.bind(x)


def _zeta(x, q):
    pole = (q <= 0) & (q == np.floor(q))
    two_signed = pole & (x % 2 != 0) & (x != 1)
    return np.where(two_signed, q.dtype.type(np.nan), _scipy().zeta(x, q))


def _polygamma(m, x):
    # (-1)ᵐ⁺¹ m! ζ(m+1, x), and digamma for m = 0.
    known = (m >= 0) & (m == np.floor(m))
    order = np.where(known, m, 1.0)
    factorial = _scipy().gamma(order + 1)
    series = np.where(order % 2 == 1, factorial, -factorial) * _zeta(order + 1, x)
    return np.where(known, np.where(m == 0, _digamma(x), series), np.nan)


zeta_p = Elementwise(
    "zeta",
    _in_dtype(_zeta, single=False),
    jvp=[
        _no_derivative("zeta", "x", NotImplementedError, "it is differentiable by q only."),
        lambda t, o, x, q: neg(mul(t, mul(x, zeta(add(x, full_like(x, 1)), q)))),
    ],
    dtypes=floating,
    stablehlo=_program("zeta"),
)
polygamma_p = Elementwise(
    "polygamma",
    _in_dtype(_polygamma, single=False),
    jvp=[
        _no_derivative("polygamma", "m", ValueError, "m is an order; differentiate by x."),
        lambda t, o, m, x: mul(t, polygamma(add(m, full_like(m, 1)), x)),
    ],
    dtypes=floating,
    stablehlo=_program("polygamma"),
)


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, Σₙ (n + q)⁻ˣ over n = 0, 1, 2, …

    >>> round(float(zeta(2.0, 1.0)), 4)
    1.6449
    """
    return zeta_p.bind(*operands("zeta", x, q))


def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order m of digamma at x; m is a whole number of floating type.

    >>> round(float(polygamma(1.0, 1.0)), 4)
    1.6449
    """
    return polygamma_p.bind(*operands("polygamma", m, x))


def _gamma_density(a, x):
    """x^(a-1) e⁻ˣ / Γ(a)"""
    power = mul(sub(a, full_like(a, 1)), log(x))
    return exp(sub(sub(power, x), lgamma(a)))


igamma_p = Elementwise(
    "igamma",
    _in_dtype(lambda a, x: _scipy().gammainc(a, x)),
    jvp=[
        lambda t, o, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, o, a, x: mul(t, _gamma_density(a, x)),
    ],
    dtypes=floating,
    stablehlo=_program("igamma"),
)
igammac_p = Elementwise(
    "igammac",
    _in_dtype(lambda a, x: _scipy().gammaincc(a, x)),
    jvp=[
        lambda t, o, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, o, a, x: neg(mul(t, _gamma_density(a, x))),
    ],
    dtypes=floating,
    stablehlo=_program("igammac"),
)


def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function, P(a, x) = ∫₀ˣ t^(a-1) e⁻ᵗ dt / Γ(a).

    >>> round(float(igamma(1.0, 1.0)), 4)
    0.6321
    """
    return igamma_p.bind(*operands("igamma", a, x))


def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function, Q(a, x) = 1 - P(a, x)."""
    return igammac_p.bind(*operands("igammac", a, x))


_EPS = np.finfo(np.float64).eps


def _lower_series(a, x):
    """S = Σₙ xⁿ / ((a+1)…(a+n)) and dS/da, where P(a, x) = xᵃ e⁻ˣ S / Γ(a+1)."""
    term, slope = np.ones_like(a), np.zeros_like(a)  # slope: of the term's logarithm
    total, derivative = np.ones_like(a), np.zeros_like(a)
    n, moving = 0, np.ones(a.shape, bool)
    # An element stops where it has converged, so that it does not depend on its neighbours.
    while moving.any():
        n += 1
        term = term * (x / (a + n))
        slope = slope - 1 / (a + n)
        change = term * slope
        total = np.where(moving, total + term, total)
        derivative = np.where(moving, derivative + change, derivative)
        moving &= np.abs(change) > _EPS * np.abs(derivative)
    return total, derivative


def _upper_fraction(a, x):
    """F and dF/da, where Q(a, x) = xᵃ e⁻ˣ F / Γ(a).

    F = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - …))), summed from the front by Steed's method:
    F = Δ₀ + Δ₁ + … with Δₙ = -cₙ Dₙ₋₁ Dₙ Δₙ₋₁, Dₙ = 1/(bₙ + cₙ Dₙ₋₁), cₙ = -n(n-a).
    """
    b = x + 1 - a
    d = 1 / b
    dd = d * d  # the names with one more d are derivatives by a
    total, derivative = d, dd
    change, dchange = d, dd
    n, moving = 0, np.ones(a.shape, bool)
    while moving.any():
        n += 1
        b, c = b + 2, -n * (n - a)
        new = 1 / (b + c * d)
        dnew = -new * new * (n * d + c * dd - 1)
        factor = -c * d * new
        dfactor = -(n * d * new + c * (dd * new + d * dnew))
        change, dchange = factor * change, dfactor * change + factor * dchange
        d, dd = new, dnew
        total = np.where(moving, total + change, total)
        derivative = np.where(moving, derivative + dchange, derivative)
        moving &= (np.abs(change) > _EPS * np.abs(total)) | (
            np.abs(dchange) > _EPS * np.abs(derivative)
        )
    return total, derivative


_MANY = 1e8
"""Series and fraction take about √a steps; above this, the limit is exact to 9 digits or more."""


def _slope_in_the_limit(a, x):
    """dx/da where the quantile is Φ(√a η), η²/2 = λ - 1 - log λ, λ = x/a: the limit of large a."""
    excess = x / a - 1
    share = np.where(excess == 0, 0.0, (excess - np.log1p(excess)) / excess)
    return (1 + excess) * (1 - share)


def _implicit_slope(a, x):
    """-(∂P/∂a) / (∂P/∂x) where 0 < x < ∞ and 0 < a < ∞; 0 at x = 0, NaN elsewhere."""
    a, x = np.broadcast_arrays(a, x)
    inside = (x > 0) & (a > 0) & np.isfinite(x) & np.isfinite(a)
    out = np.where((x == 0) & (a > 0), 0.0, np.nan)
    large = inside & (a > _MANY)
    upper = inside & (x > 1) & (x > a) & ~large
    lower = inside & ~upper & ~large
    if large.any():
        out[large] = _slope_in_the_limit(a[large], x[large])
    if lower.any():
        al, xl = a[lower], x[lower]
        total, derivative = _lower_series(al, xl)
        out[lower] = -(xl / al) * (total * (np.log(xl) - _scipy().psi(al + 1)) + derivative)
    if upper.any():
        au, xu = a[upper], x[upper]
        value, derivative = _upper_fraction(au, xu)
        out[upper] = xu * (value * (np.log(xu) - _scipy().psi(au)) + derivative)
    return out


def _igamma_grad_a(a, x):
    slope = _implicit_slope(a, x)
    density = np.exp((a - 1) * np.log(x) - x - _scipy().gammaln(a))
    return np.where(slope == 0, slope, -slope * density)


igamma_grad_a_p = Elementwise(
    "igamma_grad_a",
    _in_dtype(_igamma_grad_a, single=False),
    jvp=[
        _no_derivative(
            "igamma_grad_a",
            "a",
            NotImplementedError,
            "igamma has one derivative by a; further ones are by x.",
        ),
        lambda t, o, a, x: mul(t, mul(_gamma_density(a, x), sub(log(x), digamma(a)))),
    ],
    dtypes=floating,
    stablehlo=_program("igamma_grad_a"),
)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of `igamma(a, x)` by a."""
    return igamma_grad_a_p.bind(*operands("igamma_grad_a", a, x))


def _random_gamma_slope(t, out, a, x):
    # d/dx of -P_a / p, with p the density: p_a / p = log x - ψ(a), p_x / p = (a-1)/x - 1.
    one = full_like(a, 1)
    return neg(mul(t, add(sub(log(x), digamma(a)), mul(out, sub(div(sub(a, one), x), one)))))


random_gamma_grad_p = Elementwise(
    "random_gamma_grad",
    _in_dtype(_implicit_slope, single=False),
    jvp=[
        _no_derivative(
            "random_gamma_grad",
            "a",
            NotImplementedError,
            "samples of the gamma distribution have one derivative by their shape parameter.",
        ),
        _random_gamma_slope,
    ],
    dtypes=floating,
    stablehlo=_program("random_gamma_grad"),
)


def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative by a of a sample x of the gamma distribution with shape a.

    The sample keeps its quantile while a changes: dx/da = -(∂P/∂a) / (∂P/∂x), P = igamma(a, x).

    >>> round(float(random_gamma_grad(2.0, 1.0)), 3)
    0.751
    """
    return random_gamma_grad_p.bind(*operands("random_gamma_grad", a, x))


# ---- beta


def _beta_density(a, b, x):
    """x^(a-1) (1-x)^(b-1) / B(a, b)"""
    one = full_like(x, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return exp(sub(powers, log_beta))


regularized_incomplete_beta_p = Elementwise(
    "regularized_incomplete_beta",
    _in_dtype(lambda a, b, x: _scipy().betainc(a, b, x), single=False),
    jvp=[
        _no_derivative("betainc", "a", ValueError, "differentiate by x."),
        _no_derivative("betainc", "b", ValueError, "differentiate by x."),
        lambda t, o, a, b, x: mul(t, _beta_density(a, b, x)),
    ],
    dtypes=floating,
    stablehlo=_program("betainc"),
)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function, ∫₀ˣ t^(a-1) (1-t)^(b-1) dt / B(a, b).

    >>> float(betainc(1.0, 1.0, 0.5))
    0.5
    """
    name = regularized_incomplete_beta_p.name
    a, b = operands(name, a, b)
    a, x = operands(name, a, x)
    b, x = operands(name, b, x)
    return regularized_incomplete_beta_p.bind(a, b, x)


# ---- Bessel functions

bessel_i0e_p = unary(
    "bessel_i0e",
    _in_dtype(lambda x: _scipy().i0e(x)),
    jvp=lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(sign(x), y))),
    dtypes=floating,
    stablehlo=_program("bessel_i0e"),
)


def _bessel_i1e_tangent(t, y, x):
    # i0e(x) - y·(sign x + 1/x); y/x tends to 1/2 at zero.
    eps = full_like(x, np.finfo(aval_of(x).dtype).eps if aval_of(x).dtype.kind == "f" else 2**-7)
    away = gt(abs(x), eps)
    safe = select(away, x, broadcast_to(eps, shape_of(x)))
    slope = sub(bessel_i0e(safe), mul(y, add(sign(safe), div(full_like(x, 1), safe))))
    return mul(t, select(away, slope, broadcast_to(full_like(x, 0.5), shape_of(x))))


bessel_i1e_p = unary(
    "bessel_i1e",
    _in_dtype(lambda x: _scipy().i1e(x)),
    jvp=_bessel_i1e_tangent,
    dtypes=floating,
    stablehlo="chlo.bessel_i1e",
)


def bessel_i0e(x: Any) -> Any:
    """exp(-|x|) · I₀(x), the scaled modified Bessel function of order 0.

    >>> float(bessel_i0e(0.0))
    1.0
    """
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: Any) -> Any:
    """exp(-|x|) · I₁(x), the scaled modified Bessel function of order 1."""
    return bessel_i1e_p.bind(x)
