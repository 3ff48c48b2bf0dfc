"""The beta-binomial distribution: binomial, with a beta-distributed probability of success.

P(k) = (n over k) · B(k + a, n - k + b) / B(a, b)
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp, floor, log1p
from namoo.scipy.special.gammas import betaln
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k successes.

    Args:
        k: numbers of successes, rounded down.
        n: the number of trials, not below 0; otherwise the result is NaN.
        a, b: parameters of the beta distribution, above 0; otherwise the result is NaN.
        loc: added to the numbers of successes.

    Example:
        >>> logpmf(1, 2, 1.0, 1.0).round(4)
        Array(-1.0986, dtype=float32, weak_type=True)
    """
    k, n, a, b, loc = promote_strong("betabinom.logpmf", k, n, a, b, loc)
    y = floor(k) - loc
    outside = (y < 0) | (y > n)
    y = jnp.where(outside, 0, y)
    ways = -log1p(n) - betaln(n - y + 1, y + 1)
    value = ways + betaln(y + a, n - y + b) - betaln(a, b)
    value = jnp.where(outside, -jnp.inf, value)
    return jnp.where((n < 0) | (a <= 0) | (b <= 0), jnp.nan, value)


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The probability of k successes.

    Args:
        k: numbers of successes, rounded down.
        n: the number of trials, not below 0; otherwise the result is NaN.
        a, b: parameters of the beta distribution, above 0; otherwise the result is NaN.
        loc: added to the numbers of successes.

    Example:
        >>> pmf(1, 2, 1.0, 1.0).round(4)
        Array(0.3333, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, a, b, loc))


_guard(globals())
