"""The beta distribution.

f(x) = xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) for 0 ≤ x ≤ 1, shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp, log
from namoo.scipy.special.entropies import xlog1py, xlogy
from namoo.scipy.special.gammas import betainc, betaln
from namoo.scipy.stats.arguments import log_probability, promote_strong

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        a, b: parameters above 0; otherwise the result is NaN.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> logpdf(0.5, 2.0, 2.0).round(4)
        Array(0.4055, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = promote_strong("beta.logpdf", x, a, b, loc, scale)
    outside = (x > loc + scale) | (x < loc)
    y = jnp.where(outside, 0.5, (x - loc) / scale)
    value = xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b) - log(scale)
    value = jnp.where(outside, -jnp.inf, value)
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        a, b: parameters above 0; otherwise the result is NaN.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> pdf(0.5, 2.0, 2.0).round(4)
        Array(1.5, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, a, b, loc, scale))


def _up_to(y: Array, a: Array, b: Array) -> Array:
    """The probability of values up to y in the standard distribution."""
    below, above = y <= 0, y >= 1
    # At and beyond its ends the density may be infinite: there the integral is not evaluated.
    inner = betainc(a, b, jnp.where(below | above, 0.5, y))
    return jnp.where((a > 0) & (b > 0), jnp.where(below, 0, jnp.where(above, 1, inner)), jnp.nan)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        a, b: parameters above 0; there is no derivative with respect to them.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> cdf(0.25, 1.0, 1.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = promote_strong("beta.cdf", x, a, b, loc, scale)
    return _up_to((x - loc) / scale, a, b)


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        a, b: parameters above 0; there is no derivative with respect to them.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> logcdf(0.5, 1.0, 1.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_probability(cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        a, b: parameters above 0; there is no derivative with respect to them.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> sf(0.25, 1.0, 1.0)
        Array(0.75, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = promote_strong("beta.sf", x, a, b, loc, scale)
    return _up_to(1 - (x - loc) / scale, b, a)


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        a, b: parameters above 0; there is no derivative with respect to them.
        loc: the start of the support.
        scale: the length of the support.

    Example:
        >>> logsf(0.5, 1.0, 1.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_probability(sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale))


_guard(globals())
