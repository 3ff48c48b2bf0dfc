"""The geometric distribution: the number of trials up to the first success.

P(k) = (1 - p)ᵏ⁻¹ p for k = 1, 2, …
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp, log
from namoo.scipy.special.entropies import xlog1py
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of k trials.

    Args:
        k: numbers of trials.
        p: the probability of a success.
        loc: added to the numbers of trials.

    Example:
        >>> logpmf(2, 0.5).round(4)
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    k, p, loc = promote_strong("geom.logpmf", k, p, loc)
    x = k - loc
    return jnp.where(x <= 0, -jnp.inf, xlog1py(x - 1, -p) + log(p))


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of k trials.

    Args:
        k: numbers of trials.
        p: the probability of a success.
        loc: added to the numbers of trials.

    Example:
        >>> pmf(2, 0.5)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, p, loc))


_guard(globals())
