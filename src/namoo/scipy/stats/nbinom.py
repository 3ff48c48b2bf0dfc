"""The negative binomial distribution: the number of failures before the n-th success.

P(k) = (k + n - 1 over n - 1) · pⁿ (1 - p)ᵏ
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp
from namoo.scipy.special.entropies import xlog1py, xlogy
from namoo.scipy.special.gammas import gammaln
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k failures.

    Args:
        k: numbers of failures.
        n: the number of successes.
        p: the probability of a success.
        loc: added to the numbers of failures.

    Example:
        >>> logpmf(0, 1, 0.5).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, p, loc = promote_strong("nbinom.logpmf", k, n, p, loc)
    outside = k < loc
    y = jnp.where(outside, 0, k - loc)
    ways = gammaln(y + n) - gammaln(n) - gammaln(y + 1)
    return jnp.where(outside, -jnp.inf, ways + xlogy(n, p) + xlog1py(y, -p))


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k failures.

    Args:
        k: numbers of failures.
        n: the number of successes.
        p: the probability of a success.
        loc: added to the numbers of failures.

    Example:
        >>> pmf(0, 1, 0.5).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, p, loc))


_guard(globals())
