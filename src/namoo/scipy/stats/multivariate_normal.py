"""The multivariate normal distribution.

f(x) = exp(-½ (x - μ)ᵀ Σ⁻¹ (x - μ)) / √((2π)ⁿ det Σ)
"""

from __future__ import annotations

import math
from typing import Any

from namoo import numpy as jnp
from namoo._base.dtypes import to_inexact_dtype
from namoo._base.source_context import at_user_line
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.lax.linalg import cholesky, triangular_solve
from namoo.numpy.promote import promote_types
from namoo.primitives.elementwise import exp

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


_LOG_TURN = math.log(2 * math.pi)


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """The logarithm of the density.

    Args:
        x: points; coordinates are along the last axis.
        mean: the mean, one point or many; a scalar where there is one dimension.
        cov: the covariance: matrices in the last two axes, or a scalar for a multiple of the unit
            matrix.
        allow_singular: must be None.

    Raises:
        ValueError: the matrices do not fit the mean.
        NotImplementedError: `allow_singular` is given.

    Example:
        >>> import namoo.numpy as jnp
        >>> logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(-1.8379, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf takes regular covariances only: leave allow_singular out."
            + at_user_line()
        )
    x, mean, cov = promote_types("multivariate_normal.logpdf", x, mean, cov, to=to_inexact_dtype)
    if not mean.shape:
        return -(jnp.square(x - mean) / cov + (_LOG_TURN + jnp.log(cov))) / 2
    n = mean.shape[-1]
    y = x - mean
    if not cov.shape:
        return -(jnp.sum(y * y, -1) / cov + n * (_LOG_TURN + jnp.log(cov))) / 2
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            "multivariate_normal.logpdf: the covariance must have shape (..., n, n) for a mean of "
            f"shape (..., n); got cov={cov.shape}, mean={mean.shape}." + at_user_line()
        )
    lower = cholesky(cov)
    batch = jnp.broadcast_shapes(lower.shape[:-2], y.shape[:-1])
    z = triangular_solve(
        jnp.broadcast_to(lower, (*batch, n, n)),
        jnp.broadcast_to(y, (*batch, n))[..., None],
        left_side=True,
        lower=True,
    )[..., 0]
    log_root = jnp.sum(jnp.log(jnp.diagonal(lower, axis1=-2, axis2=-1)), -1)
    return -(jnp.sum(z * z, -1) + n * _LOG_TURN) / 2 - log_root


def pdf(x: Any, mean: Any, cov: Any) -> Array:
    """The density.

    Args:
        x: points; coordinates are along the last axis.
        mean: the mean, one point or many; a scalar where there is one dimension.
        cov: the covariance: matrices in the last two axes, or a scalar for a multiple of the unit
            matrix.

    Raises:
        ValueError: the matrices do not fit the mean.

    Example:
        >>> import namoo.numpy as jnp
        >>> pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(0.1592, dtype=float32)
    """
    return exp(logpdf(x, mean, cov))


_guard(globals())
