"""The generalised normal distribution.

f(x) = β / (2 Γ(1/β)) · exp(-|x|^β)
"""

from __future__ import annotations

from typing import Any

from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import abs, exp, log, sign
from namoo.scipy.special.gammas import gammainc, gammaln

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, beta: Any) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        beta: the shape: 1 is Laplace's distribution, 2 is normal.

    Example:
        >>> logpdf(0.0, 1.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, beta = promote_inexact("gennorm.logpdf", x, beta)
    return log(beta * 0.5) - gammaln(1 / beta) - abs(x) ** beta


def pdf(x: Any, beta: Any) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        beta: the shape: 1 is Laplace's distribution, 2 is normal.

    Example:
        >>> pdf(0.0, 1.0).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, beta))


def cdf(x: Any, beta: Any) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        beta: the shape: 1 is Laplace's distribution, 2 is normal.

    Example:
        >>> cdf(0.0, 1.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, beta = promote_inexact("gennorm.cdf", x, beta)
    return 0.5 * (1 + sign(x) * gammainc(1 / beta, abs(x) ** beta))


_guard(globals())
