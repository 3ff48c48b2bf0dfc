"""The Gumbel distribution of maxima, skewed to the right.

f(x) = exp(-x - e⁻ˣ), shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.nn.activations import log1mexp
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, expm1, log
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = __all__.copy


def _standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
    """x in units of the scale, NaN where that is not positive; and the scale."""
    x, loc, scale = promote_inexact(f"gumbel_r.{name}", x, loc, scale)
    return jnp.where(scale > 0, (x - loc) / scale, jnp.nan), scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> logpdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    z, scale = _standard("logpdf", x, loc, scale)
    return -(z + exp(-z)) - log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> pdf(0.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values up to x.

    Args:
        x: the upper limit.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> logcdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    z, _ = _standard("logcdf", x, loc, scale)
    return -exp(-z)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> cdf(0.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logcdf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the probability of values above x.

    Args:
        x: the lower limit.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> logsf(0.0).round(4)
        Array(-0.4587, dtype=float32, weak_type=True)
    """
    z, _ = _standard("logsf", x, loc, scale)
    return log1mexp(exp(-z))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x.

    Args:
        x: the lower limit.
        loc: the mode.
        scale: the scale of values, above 0; otherwise the result is NaN.

    Example:
        >>> sf(0.0).round(4)
        Array(0.6321, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("gumbel_r.sf", x, loc, scale)
    return -expm1(logcdf(x, loc, scale))


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability p.

    Args:
        p: probabilities; NaN outside of (0, 1).
        loc: the mode.
        scale: the scale of values.

    Example:
        >>> ppf(0.5).round(4)
        Array(0.3665, dtype=float32, weak_type=True)
    """
    p, loc, scale = promote_inexact("gumbel_r.ppf", p, loc, scale)
    inside = (p > 0) & (p < 1)
    return jnp.where(inside, loc - scale * log(-log(p)), jnp.nan)


_guard(globals())
