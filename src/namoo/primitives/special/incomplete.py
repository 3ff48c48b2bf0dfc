"""Special functions that XLA computes by programs: incomplete gamma and beta, Bessel functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base.caches import cached
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
    sub,
)
from namoo.primitives.families import Elementwise, floating, operands, unary
from namoo.primitives.shape import broadcast_to, shape_of
from namoo.primitives.special.functions import (
    Rule,
    digamma,
    in_dtype,
    lgamma,
    no_derivative,
)

__all__ = [
    "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "igamma",
    "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "random_gamma_grad",
    "regularized_incomplete_beta_p",
]  # fmt: skip


@cached("primitives.special SciPy module or programs", bound=1, keyed_by="nothing", kept=True)
def scipy() -> Any:
    """SciPy's special functions, or our replacements, including programs."""
    try:
        import scipy.special
    except ModuleNotFoundError:
        from namoo.primitives.special import programs_on_host

        return programs_on_host
    return scipy.special


def program(name: str) -> Rule:
    """Make a rule from a program of `special.programs`, for the engines that compile."""

    def rule(hlo, *operands):
        from namoo.primitives.special import programs

        return getattr(programs, name)(hlo, *operands)

    return rule


def _gamma_density(a, x):
    """x^(a-1) e⁻ˣ / Γ(a)"""
    power = mul(sub(a, full_like(a, 1)), log(x))
    return exp(sub(sub(power, x), lgamma(a)))


igamma_p = Elementwise(
    "igamma",
    in_dtype(lambda a, x: scipy().gammainc(a, x)),
    jvp=[
        lambda t, o, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, o, a, x: mul(t, _gamma_density(a, x)),
    ],
    dtypes=floating,
    formula=program("igamma"),
)
igammac_p = Elementwise(
    "igammac",
    in_dtype(lambda a, x: scipy().gammaincc(a, x)),
    jvp=[
        lambda t, o, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, o, a, x: neg(mul(t, _gamma_density(a, x))),
    ],
    dtypes=floating,
    formula=program("igammac"),
)


def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function, P(a, x) = ∫₀ˣ t^(a-1) e⁻ᵗ dt / Γ(a).

    Example:
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
        out[lower] = -(xl / al) * (total * (np.log(xl) - scipy().psi(al + 1)) + derivative)
    if upper.any():
        au, xu = a[upper], x[upper]
        value, derivative = _upper_fraction(au, xu)
        out[upper] = xu * (value * (np.log(xu) - scipy().psi(au)) + derivative)
    return out


def _igamma_grad_a(a, x):
    slope = _implicit_slope(a, x)
    density = np.exp((a - 1) * np.log(x) - x - scipy().gammaln(a))
    return np.where(slope == 0, slope, -slope * density)


igamma_grad_a_p = Elementwise(
    "igamma_grad_a",
    in_dtype(_igamma_grad_a, single=False),
    jvp=[
        no_derivative(
            "igamma_grad_a",
            "a",
            NotImplementedError,
            "igamma has one derivative by a; further ones are by x.",
        ),
        lambda t, o, a, x: mul(t, mul(_gamma_density(a, x), sub(log(x), digamma(a)))),
    ],
    dtypes=floating,
    formula=program("igamma_grad_a"),
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
    in_dtype(_implicit_slope, single=False),
    jvp=[
        no_derivative(
            "random_gamma_grad",
            "a",
            NotImplementedError,
            "samples of the gamma distribution have one derivative by their shape parameter.",
        ),
        _random_gamma_slope,
    ],
    dtypes=floating,
    formula=program("random_gamma_grad"),
)


def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative by a of a sample x of the gamma distribution with shape a.

    The sample keeps its quantile while a changes: dx/da = -(∂P/∂a) / (∂P/∂x), P = igamma(a, x).

    Example:
        >>> round(float(random_gamma_grad(2.0, 1.0)), 3)
        0.751
    """
    return random_gamma_grad_p.bind(*operands("random_gamma_grad", a, x))


def _beta_density(a, b, x):
    """x^(a-1) (1-x)^(b-1) / B(a, b)"""
    one = full_like(x, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return exp(sub(powers, log_beta))


regularized_incomplete_beta_p = Elementwise(
    "regularized_incomplete_beta",
    in_dtype(lambda a, b, x: scipy().betainc(a, b, x), single=False),
    jvp=[
        no_derivative("betainc", "a", ValueError, "differentiate by x."),
        no_derivative("betainc", "b", ValueError, "differentiate by x."),
        lambda t, o, a, b, x: mul(t, _beta_density(a, b, x)),
    ],
    dtypes=floating,
    formula=program("betainc"),
)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function, ∫₀ˣ t^(a-1) (1-t)^(b-1) dt / B(a, b).

    Example:
        >>> float(betainc(1.0, 1.0, 0.5))
        0.5
    """
    name = regularized_incomplete_beta_p.name
    a, b = operands(name, a, b)
    a, x = operands(name, a, x)
    b, x = operands(name, b, x)
    return regularized_incomplete_beta_p.bind(a, b, x)


bessel_i0e_p = unary(
    "bessel_i0e",
    in_dtype(lambda x: scipy().i0e(x)),
    jvp=lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(sign(x), y))),
    dtypes=floating,
    formula=program("bessel_i0e"),
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
    in_dtype(lambda x: scipy().i1e(x)),
    jvp=_bessel_i1e_tangent,
    dtypes=floating,
    stablehlo="chlo.bessel_i1e",
    formula=program("bessel_i1e"),
)


def bessel_i0e(x: Any) -> Any:
    """exp(-|x|) · I₀(x), the scaled modified Bessel function of order 0.

    Example:
        >>> float(bessel_i0e(0.0))
        1.0
    """
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: Any) -> Any:
    """exp(-|x|) · I₁(x), the scaled modified Bessel function of order 1."""
    return bessel_i1e_p.bind(x)
