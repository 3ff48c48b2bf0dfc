"""The Poisson distribution.

P(k) = e^-μ μᵏ / k! for k = 0, 1, 2, …
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base.dtypes import to_inexact_dtype
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact, promote_types
from namoo.primitives.elementwise import exp, log
from namoo.scipy.special.entropies import xlogy
from namoo.scipy.special.gammas import gammaincc, gammaln
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "entropy", "logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k.

    Args:
        k: counts; the result is -∞ where they are not integers.
        mu: the mean.
        loc: added to the counts.

    Example:
        >>> logpmf(1, 1.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    k, mu, loc = promote_inexact("poisson.logpmf", k, mu, loc)
    outside = (k < loc) | (jnp.round(k) != k)
    x = jnp.where(outside, 0, k - loc)
    return jnp.where(outside, -jnp.inf, xlogy(x, mu) - gammaln(x + 1) - mu)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The probability of k.

    Args:
        k: counts; the result is 0 where they are not integers.
        mu: the mean.
        loc: added to the counts.

    Example:
        >>> pmf(1, 1.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The probability of counts up to k.

    Args:
        k: the upper limit.
        mu: the mean.
        loc: added to the counts.

    Example:
        >>> cdf(1, 1.0).round(4)
        Array(0.7358, dtype=float32, weak_type=True)
    """
    k, mu, loc = promote_strong("poisson.cdf", k, mu, loc)
    x = k - loc
    below = x < 0
    return jnp.where(below, 0, gammaincc(jnp.floor(1 + jnp.where(below, 0, x)), mu))


_SUMMED = 250
"""Counts that can occur for μ < 100: the omitted terms are below the rounding error."""


def entropy(mu: Any, loc: Any = 0) -> Array:
    """The entropy, -Σ P(k) log P(k).

    Args:
        mu: the mean.
        loc: added to the counts; it only gives its shape to the result.

    Example:
        >>> entropy(1.0).round(4)
        Array(1.3048, dtype=float32)
    """
    mu, loc = promote_types("poisson.entropy", mu, loc, to=to_inexact_dtype)
    shape = jnp.broadcast_shapes(mu.shape, loc.shape)
    large = mu >= 100
    small = jnp.where(large | (mu == 0), 1, mu)[..., None]
    terms = logpmf(np.arange(_SUMMED, dtype=mu.dtype), small)
    summed = -jnp.sum(exp(terms) * terms, axis=-1)
    many = jnp.where(large, mu, 100)
    series = 1 / 12 + (1 / 24 + 19 / (360 * many)) / many
    limit = 0.5 * log(2 * math.pi * math.e * many) - series / many
    value = jnp.where(mu == 0, 0, jnp.where(large, limit, summed))
    return jnp.broadcast_to(value.astype(mu.dtype), shape)


_guard(globals())
