"""The binomial distribution: the number of successes in n trials.

P(k) = (n over k) · pᵏ (1 - p)ⁿ⁻ᵏ
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, log1p
from namoo.scipy.special.entropies import xlog1py, xlogy
from namoo.scipy.special.gammas import betaln

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k successes.

    Args:
        k: numbers of successes.
        n: the number of trials.
        p: the probability of a success.
        loc: added to the numbers of successes.

    Example:
        >>> logpmf(1, 2, 0.5).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, p, loc = promote_inexact("binom.logpmf", k, n, p, loc)
    inside = (k >= loc) & (k < loc + n + 1)
    y = jnp.where(inside, k - loc, 0)
    trials = jnp.where(inside, n, 0)
    ways = -log1p(trials) - betaln(trials - y + 1, y + 1)
    value = ways + xlogy(y, p) + xlog1py(trials - y, -p)
    return jnp.where(inside, value, -jnp.inf)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k successes.

    Args:
        k: numbers of successes.
        n: the number of trials.
        p: the probability of a success.
        loc: added to the numbers of successes.

    Example:
        >>> pmf(1, 2, 0.5).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, p, loc))


_guard(globals())
