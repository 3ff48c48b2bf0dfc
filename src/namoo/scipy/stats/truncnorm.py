"""The truncated normal distribution: the normal one, given that values are between a and b.

f(x) = φ(x) / (Φ(b) - Φ(a)) for a ≤ x ≤ b, shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.nn.activations import log1mexp
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, log1p
from namoo.scipy.special.normal import log_ndtr, ndtr
from namoo.scipy.stats import norm

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


def _log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)), for a ≤ b."""
    # Right of 0 both are close to 1: the mirror image has the same mass and more digits.
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = high <= 0
    top = log_ndtr(jnp.where(tail, high, 0))
    in_tail = top + log1mexp(top - log_ndtr(jnp.where(tail, low, -1)))
    missing = ndtr(jnp.where(tail, -1, low)) + ndtr(jnp.where(tail, -1, -high))
    return jnp.where(tail, in_tail, log1p(-missing))


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> logpdf(0.0, -1.0, 1.0).round(4)
        Array(-0.5372, dtype=float32)
    """
    x, a, b, loc, scale = promote_inexact("truncnorm.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    value = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    value = jnp.where((z < a) | (z > b), -jnp.inf, value)
    return jnp.where(a >= b, jnp.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> pdf(0.0, -1.0, 1.0).round(4)
        Array(0.5844, dtype=float32)
    """
    return exp(logpdf(x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> logcdf(0.0, -1.0, 1.0).round(4)
        Array(-0.6931, dtype=float32)
    """
    x, a, b, loc, scale = promote_inexact("truncnorm.logcdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    inside = (z > a) & (z < b)
    # Outside of the limits the whole mass is taken, whose derivatives are finite.
    mass = _log_mass(a, b)
    below = _log_mass(a, jnp.where(inside, z, b)) - mass
    above = _log_mass(jnp.where(inside, z, a), b) - mass
    # Close to 1, the logarithm has the digits of the part that is missing.
    almost = inside & (below > -0.1)
    value = jnp.where(almost, log1p(-exp(jnp.where(almost, above, -1))), below)
    value = jnp.where(inside, value, jnp.where(z >= b, 0, -jnp.inf))
    return jnp.where((a < b) & ~jnp.isnan(z), value, jnp.nan)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> cdf(0.0, -1.0, 1.0).round(4)
        Array(0.5, dtype=float32)
    """
    return exp(logcdf(x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> logsf(0.0, -1.0, 1.0).round(4)
        Array(-0.6931, dtype=float32)
    """
    x, a, b, loc, scale = promote_inexact("truncnorm.logsf", x, a, b, loc, scale)
    return logcdf(-x, -b, -a, -loc, scale)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        a, b: the limits, in units of `scale` around `loc`; NaN unless a < b.
        loc: the mean of the normal distribution.
        scale: its standard deviation.

    Example:
        >>> sf(0.0, -1.0, 1.0).round(4)
        Array(0.5, dtype=float32)
    """
    return exp(logsf(x, a, b, loc, scale))


_guard(globals())
