"""The normal distribution.

f(x) = 1/√2π · exp(-x²/2), shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

import math
from typing import Any

from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import array_of
from namoo.primitives.elementwise import exp, log, square
from namoo.scipy.special.normal import log_ndtr, ndtr, ndtri
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> logpdf(0.0).round(4)
        Array(-0.9189, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("norm.logpdf", x, loc, scale)
    variance = square(scale)
    return (log(variance * (2 * math.pi)) + square(x - loc) / variance) / -2


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> pdf(0.0).round(4)
        Array(0.3989, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> cdf(0.0)
        Array(0.5, dtype=float32)
    """
    x, loc, scale = promote_strong("norm.cdf", x, loc, scale)
    return ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> logcdf(-20.0).round(2)
        Array(-203.92, dtype=float32)
    """
    x, loc, scale = promote_strong("norm.logcdf", x, loc, scale)
    return log_ndtr((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> sf(0.0)
        Array(0.5, dtype=float32)
    """
    x, loc, scale = promote_strong("norm.sf", x, loc, scale)
    return ndtr((loc - x) / scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> logsf(20.0).round(2)
        Array(-203.92, dtype=float32)
    """
    x, loc, scale = promote_strong("norm.logsf", x, loc, scale)
    return log_ndtr((loc - x) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability q.

    Args:
        q: probabilities, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> ppf(0.975).round(3)
        Array(1.96, dtype=float32)
    """
    quantile = ndtri(q) * array_of("norm.ppf", scale) + array_of("norm.ppf", loc)
    return quantile.astype(dtypes.default_float_dtype())


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile from above: values above it have probability q.

    Args:
        q: probabilities, float32 or float64.
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> isf(0.025).round(3)
        Array(1.96, dtype=float32)
    """
    return ppf(1 - array_of("norm.isf", q), loc, scale)


_guard(globals())
