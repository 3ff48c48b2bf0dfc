"""The Dirichlet distribution, of points whose coordinates are positive and sum to 1.

f(x) = Γ(Σ αᵢ) / ∏ Γ(αᵢ) · ∏ xᵢ^(αᵢ - 1)
"""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.dtypes import to_inexact_dtype
from namoo._base.source_context import at_user_line
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_types
from namoo.primitives.elementwise import exp
from namoo.scipy.special.entropies import xlogy
from namoo.scipy.special.gammas import gammaln

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, alpha: Any) -> Array:
    """The logarithm of the density.

    Args:
        x: points; coordinates are along the first axis, and the last one may be left out. The
            result is -∞ for points outside of the simplex.
        alpha: the parameters, a vector.

    Raises:
        ValueError: alpha is not a vector, or x has another number of coordinates.

    Example:
        >>> import namoo.numpy as jnp
        >>> logpdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 1.0]))
        Array(0., dtype=float32)
    """
    x, alpha = promote_types("dirichlet.logpdf", x, alpha, to=to_inexact_dtype)
    if alpha.ndim != 1:
        raise ValueError(
            f"dirichlet.logpdf: alpha must be one-dimensional, got shape {alpha.shape}."
            + at_user_line()
        )
    n = alpha.shape[0]
    if x.ndim == 0 or x.shape[0] not in (n, n - 1):
        raise ValueError(
            f"dirichlet.logpdf: the first axis of x must have the length of alpha, or one less; "
            f"got shapes x={x.shape}, alpha={alpha.shape}." + at_user_line()
        )
    if x.shape[0] != n:
        x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)], axis=0)
    inside = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    normalizer = jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha))
    powers = alpha.reshape(n, *[1] * (x.ndim - 1)) - 1
    value = jnp.sum(xlogy(powers, jnp.where(inside, x, 1)), axis=0) - normalizer
    return jnp.where(inside, value, -jnp.inf)


def pdf(x: Any, alpha: Any) -> Array:
    """The density.

    Args:
        x: points; coordinates are along the first axis, and the last one may be left out. The
            result is 0 for points outside of the simplex.
        alpha: the parameters, a vector.

    Raises:
        ValueError: alpha is not a vector, or x has another number of coordinates.

    Example:
        >>> import namoo.numpy as jnp
        >>> pdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 1.0]))
        Array(1., dtype=float32)
    """
    return exp(logpdf(x, alpha))


_guard(globals())
