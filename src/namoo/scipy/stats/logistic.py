"""The logistic distribution, whose distribution function is the logistic function.

F(x) = 1 / (1 + e⁻ˣ), shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, log, logistic
from namoo.scipy.special.entropies import logit
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> logpdf(0.0).round(4)
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("logistic.logpdf", x, loc, scale)
    half = (x - loc) / scale / 2
    return -2 * jnp.logaddexp(half, -half) - log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> pdf(0.0).round(4)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_inexact("logistic.cdf", x, loc, scale)
    return logistic((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_inexact("logistic.sf", x, loc, scale)
    return logistic((loc - x) / scale)


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability x.

    Args:
        x: probabilities.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> ppf(0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("logistic.ppf", x, loc, scale)
    return logit(x) * scale + loc


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile from above: values above it have probability x.

    Args:
        x: probabilities.
        loc: the mean.
        scale: the scale of values.

    Example:
        >>> isf(0.75).round(4)
        Array(-1.0986, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("logistic.isf", x, loc, scale)
    return loc - logit(x) * scale


_guard(globals())
