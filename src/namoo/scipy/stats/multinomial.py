"""The multinomial distribution: how often each of several outcomes occurs in n trials.

P(x) = n! / ∏ xᵢ! · ∏ pᵢ^xᵢ
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.dtypes import to_numeric_dtype
from namoo._base.source_context import at_user_line
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact, promote_types
from namoo.primitives.elementwise import exp
from namoo.scipy.special.entropies import xlogy
from namoo.scipy.special.gammas import gammaln

__all__ = ["logpmf", "pmf"]
__dir__ = __all__.copy


def logpmf(x: Any, n: Any, p: Any) -> Array:
    """The logarithm of the probability of counts.

    Args:
        x: counts, integers; outcomes are along the last axis. The result is -∞ where they do not
            sum to n.
        n: the number of trials, an integer or an array of them.
        p: the probabilities of the outcomes, along the last axis.

    Raises:
        ValueError: x or n is not of integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
        Array(-0.6931, dtype=float32)
    """
    (p,) = promote_inexact("multinomial.logpmf", p)
    x, n = promote_types("multinomial.logpmf", x, n, to=to_numeric_dtype)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise ValueError(
            f"multinomial.logpmf: x and n must be of integer type, got {x.dtype}." + at_user_line()
        )
    x, n = x.astype(p.dtype), n.astype(p.dtype)
    value = gammaln(n + 1) + jnp.sum(xlogy(x, p) - gammaln(x + 1), axis=-1)
    return jnp.where(jnp.sum(x, axis=-1) == n, value, -jnp.inf)


def pmf(x: Any, n: Any, p: Any) -> Array:
    """The probability of counts.

    Args:
        x: counts, integers; outcomes are along the last axis. The result is 0 where they do not
            sum to n.
        n: the number of trials, an integer or an array of them.
        p: the probabilities of the outcomes, along the last axis.

    Raises:
        ValueError: x or n is not of integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
        Array(0.5, dtype=float32)
    """
    return exp(logpmf(x, n, p))


_guard(globals())
