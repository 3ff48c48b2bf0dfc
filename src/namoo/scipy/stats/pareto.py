"""The Pareto distribution.

f(x) = b / xᵇ⁺¹ for x ≥ 1, shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.nn.activations import log1mexp
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, expm1, log, pow
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def _standard(x: Array, loc: Array, scale: Array) -> tuple[Array, Array]:
    """Whether x is below the support, and x in its units (1 below it, where all is finite)."""
    below = x < loc + scale
    return below, jnp.where(below, 1, (x - loc) / scale)


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> logpdf(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = promote_strong("pareto.logpdf", x, b, loc, scale)
    below, y = _standard(x, loc, scale)
    return jnp.where(below, -jnp.inf, log(b / scale) - (b + 1) * log(y))


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> pdf(1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> cdf(2.0, 1.0).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return -expm1(logsf(x, b, loc, scale))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> logcdf(2.0, 1.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = promote_inexact("pareto.logcdf", x, b, loc, scale)
    below, y = _standard(x, loc, scale)
    return jnp.where(below, -jnp.inf, log1mexp(b * log(y)))


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> sf(2.0, 1.0).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logsf(x, b, loc, scale))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> logsf(2.0, 1.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = promote_strong("pareto.logsf", x, b, loc, scale)
    below, y = _standard(x, loc, scale)
    return jnp.where(below, 0, -b * log(y))


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability q.

    Args:
        q: probabilities; NaN outside of [0, 1].
        b: the shape, above 0.
        loc: added to the values.
        scale: the scale of values; the support begins at loc + scale.

    Example:
        >>> ppf(0.5, 1.0).round(4)
        Array(2., dtype=float32, weak_type=True)
    """
    q, b, loc, scale = promote_strong("pareto.ppf", q, b, loc, scale)
    quantile = loc + scale * pow(1 - q, -1 / b)
    return jnp.where((q >= 0) & (q <= 1), quantile, jnp.nan)


_guard(globals())
