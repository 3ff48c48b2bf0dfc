"""The Cauchy distribution.

f(x) = 1 / (π (1 + x²)), shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

import math
from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import atan2, exp, log, log1p, square, tan
from namoo.scipy.stats.arguments import log_probability, promote_strong

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> logpdf(0.0).round(4)
        Array(-1.1447, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("cauchy.logpdf", x, loc, scale)
    return -(log(scale * math.pi) + log1p(square((x - loc) / scale)))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> pdf(0.0).round(4)
        Array(0.3183, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def _below(z: Array) -> Array:
    # As an angle: atan(z) / π + 1 / 2 would lose all digits far below 0.
    return atan2(jnp.ones_like(z), -z) * (1 / math.pi)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("cauchy.cdf", x, loc, scale)
    return _below((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> logcdf(0.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_probability(cdf(x, loc, scale), sf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("cauchy.sf", x, loc, scale)
    return _below((loc - x) / scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> logsf(0.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_probability(sf(x, loc, scale), cdf(x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability q.

    Args:
        q: probabilities.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> ppf(0.75).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    q, loc, scale = promote_strong("cauchy.ppf", q, loc, scale)
    return tan(q * math.pi - math.pi / 2) * scale + loc


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile from above: values above it have probability q.

    Args:
        q: probabilities.
        loc: the median.
        scale: half of the distance between the quartiles.

    Example:
        >>> isf(0.25).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    q, loc, scale = promote_strong("cauchy.isf", q, loc, scale)
    return tan(math.pi / 2 - q * math.pi) * scale + loc


_guard(globals())
