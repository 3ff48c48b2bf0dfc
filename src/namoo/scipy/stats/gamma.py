"""The gamma distribution.

f(x) = xᵃ⁻¹ e⁻ˣ / Γ(a) for x ≥ 0, shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, log
from namoo.scipy.special.entropies import xlogy
from namoo.scipy.special.gammas import gammainc, gammaincc, gammaln
from namoo.scipy.stats.arguments import log_probability, promote_strong

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


def _standard(x: Array, loc: Array, scale: Array) -> tuple[Array, Array]:
    """Whether x is below the support, and x in its units (1 below it, where all is finite)."""
    below = x < loc
    return below, jnp.where(below, 1, (x - loc) / scale)


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> logpdf(1.0, 2.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    x, a, loc, scale = promote_strong("gamma.logpdf", x, a, loc, scale)
    below, y = _standard(x, loc, scale)
    value = xlogy(a - 1, y) - y - (gammaln(a) + log(scale))
    return jnp.where(below, -jnp.inf, value)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> pdf(1.0, 2.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> cdf(1.0, 1.0).round(4)
        Array(0.6321, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = promote_strong("gamma.cdf", x, a, loc, scale)
    below, y = _standard(x, loc, scale)
    return jnp.where(below, 0, gammainc(a, y))


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> logcdf(1.0, 1.0).round(4)
        Array(-0.4587, dtype=float32, weak_type=True)
    """
    return log_probability(cdf(x, a, loc, scale), sf(x, a, loc, scale))


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> sf(1.0, 1.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = promote_inexact("gamma.sf", x, a, loc, scale)
    below, y = _standard(x, loc, scale)
    return jnp.where(below, 1, gammaincc(a, y))


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        a: the shape, above 0.
        loc: the start of the support.
        scale: the scale of values; 1 / rate.

    Example:
        >>> logsf(1.0, 1.0).round(4)
        Array(-1., dtype=float32, weak_type=True)
    """
    return log_probability(sf(x, a, loc, scale), cdf(x, a, loc, scale))


_guard(globals())
