"""The Laplace distribution.

f(x) = 1/2 · exp(-|x|), shifted by `loc` and scaled by `scale`
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import abs, exp, log, neg
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the mean distance from there.

    Example:
        >>> logpdf(0.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("laplace.logpdf", x, loc, scale)
    return -(abs(x - loc) / scale + log(scale * 2))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the mean.
        scale: the mean distance from there.

    Example:
        >>> pdf(0.0).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the mean.
        scale: the mean distance from there.

    Example:
        >>> cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_strong("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    # Each side's exponential is taken of its own numbers, so that neither overflows.
    below = z <= 0
    half = 0.5 * exp(jnp.where(below, z, neg(z)))
    return jnp.where(below, half, 1 - half)


_guard(globals())
