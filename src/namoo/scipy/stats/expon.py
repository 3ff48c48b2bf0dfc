"""The exponential distribution.

f(x) = e⁻ˣ for x ≥ 0, shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.nn.activations import log1mexp
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, expm1, log, log1p

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> logpdf(1.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_inexact("expon.logpdf", x, loc, scale)
    return jnp.where(x < loc, -jnp.inf, -((x - loc) / scale + log(scale)))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> pdf(1.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> cdf(1.0).round(4)
        Array(0.6321, dtype=float32, weak_type=True)
    """
    return -expm1(logsf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> logcdf(1.0).round(4)
        Array(-0.4587, dtype=float32, weak_type=True)
    """
    return log1mexp(-logsf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> sf(1.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logsf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> logsf(1.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_inexact("expon.logsf", x, loc, scale)
    return -jnp.where(x < loc, 0, (x - loc) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability q.

    Args:
        q: probabilities; NaN outside of [0, 1].
        loc: the start of the support.
        scale: the mean distance from there; 1 / rate.

    Example:
        >>> ppf(0.5).round(4)
        Array(0.6931, dtype=float32, weak_type=True)
    """
    q, loc, scale = promote_inexact("expon.ppf", q, loc, scale)
    return jnp.where((q >= 0) & (q <= 1), loc - scale * log1p(-q), jnp.nan)


_guard(globals())
