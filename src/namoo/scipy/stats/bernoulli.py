"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.same_type import const
from namoo.primitives.elementwise import exp
from namoo.scipy.special.entropies import xlog1py, xlogy
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["cdf", "logpmf", "pmf", "ppf"]
__dir__ = __all__.copy


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k.

    Args:
        k: outcomes.
        p: the probability of 1.
        loc: added to the outcomes.

    Example:
        >>> logpmf(1, 0.5).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, p, loc = promote_strong("bernoulli.logpmf", k, p, loc)
    x = k - loc
    value = xlogy(x, p) + xlog1py(1 - x, -p)
    return jnp.where((x < 0) | (x > 1), -jnp.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k.

    Args:
        k: outcomes.
        p: the probability of 1.
        loc: added to the outcomes.

    Example:
        >>> pmf(0, 0.25).round(4)
        Array(0.75, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Array:
    """The probability of outcomes up to k.

    Args:
        k: the upper limit.
        p: the probability of 1; NaN outside of [0, 1].

    Example:
        >>> cdf(0, 0.25)
        Array(0.75, dtype=float32, weak_type=True)
    """
    k, p = promote_strong("bernoulli.cdf", k, p)
    unknown = jnp.isnan(k) | jnp.isnan(p) | (p < 0) | (p > 1)
    value = jnp.where(k < 0, const(k, 0), jnp.where(k < 1, 1 - p, const(k, 1)))
    return jnp.where(unknown, jnp.nan, value)


def ppf(q: Any, p: Any) -> Array:
    """The quantile: the first outcome up to which the probability is at least q.

    Args:
        q: probabilities; NaN outside of [0, 1].
        p: the probability of 1; NaN outside of [0, 1].

    Example:
        >>> ppf(0.9, 0.25)
        Array(1., dtype=float32, weak_type=True)
    """
    q, p = promote_strong("bernoulli.ppf", q, p)
    unknown = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    value = jnp.where(q <= 1 - p, const(q, 0), const(q, 1))
    return jnp.where(unknown, jnp.nan, value)


_guard(globals())
