"""Distributions with parameters that can be trained."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo import random
from namoo.scipy.stats import norm

__all__ = ["multi_normal", "MultiNormalDiagFromLogScale"]

Array = Any


class MultiNormalDiagFromLogScale:
    """Independent normal variables, by their means and the logarithms of their deviations."""

    def __init__(self, loc: Any, log_scale: Any):
        self._mean, self._log_scale = jnp.asarray(loc), jnp.asarray(log_scale)
        self._shape = jnp.broadcast_shapes(self._mean.shape, self._log_scale.shape)

    def sample(self, shape: Any, key: Any) -> Array:
        """Random values, of `shape` and the variables' own shape."""
        noise = random.normal(key, (*shape, *self._shape))
        return noise * jnp.exp(self._log_scale) + self._mean

    def log_prob(self, x: Any) -> Array:
        """The logarithm of the density."""
        each = norm.logpdf(x, self._mean, jnp.exp(self._log_scale))
        return jnp.sum(each, axis=tuple(range(-len(self._shape), 0)))

    @property
    def log_scale(self) -> Array:
        """The logarithms of the deviations."""
        return self._log_scale

    @property
    def params(self) -> list[Array]:
        """Means and logarithms of deviations."""
        return [self._mean, self._log_scale]


def multi_normal(loc: Any, log_scale: Any) -> MultiNormalDiagFromLogScale:
    """Independent normal variables, whose parameters can be trained.

    Args:
        loc: the means.
        log_scale: the logarithms of the standard deviations.

    Example:
        >>> multi_normal(jnp.zeros(2), jnp.zeros(2)).log_prob(jnp.zeros(2))
        Array(-1.8378772, dtype=float32)
    """
    return MultiNormalDiagFromLogScale(loc, log_scale)
