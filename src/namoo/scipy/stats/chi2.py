"""The chi-squared distribution: the sum of the squares of `df` standard normal values.

    f(x) = (x/2)^(df/2 - 1) e^(-x/2) / (2 Γ(df/2)) for x ≥ 0, shifted by `loc`, scaled by `scale`

It is the gamma distribution of shape df/2 and scale 2.
"""

from __future__ import annotations

from typing import Any

from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp
from namoo.scipy.stats import gamma
from namoo.scipy.stats.arguments import log_probability, promote_strong

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


def _as_gamma(name: str, x: Any, df: Any, loc: Any, scale: Any) -> tuple[Array, ...]:
    x, df, loc, scale = promote_strong(f"chi2.{name}", x, df, loc, scale)
    return x, df / 2, loc, scale * 2


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> logpdf(1.0, 2.0).round(4)
        Array(-1.1931, dtype=float32, weak_type=True)
    """
    return gamma.logpdf(*_as_gamma("logpdf", x, df, loc, scale))


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> pdf(1.0, 2.0).round(4)
        Array(0.3033, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> cdf(1.0, 2.0).round(4)
        Array(0.3935, dtype=float32, weak_type=True)
    """
    return gamma.cdf(*_as_gamma("cdf", x, df, loc, scale))


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> logcdf(1.0, 2.0).round(4)
        Array(-0.9328, dtype=float32, weak_type=True)
    """
    return log_probability(cdf(x, df, loc, scale), sf(x, df, loc, scale))


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> sf(1.0, 2.0).round(4)
        Array(0.6065, dtype=float32, weak_type=True)
    """
    return gamma.sf(*_as_gamma("sf", x, df, loc, scale))


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        df: the degrees of freedom.
        loc: the start of the support.
        scale: the scale of values.

    Example:
        >>> logsf(1.0, 2.0).round(4)
        Array(-0.5, dtype=float32, weak_type=True)
    """
    return log_probability(sf(x, df, loc, scale), cdf(x, df, loc, scale))


_guard(globals())
