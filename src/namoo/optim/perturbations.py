"""Derivatives of functions that have none, through random perturbations of their input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import lax, random, tree
from namoo import numpy as jnp
from namoo.api.map import vmap
from namoo.optim import tree_utils as otu

__all__ = ["Normal", "Gumbel", "make_perturbed_fun"]
__dir__ = __all__.copy


Array = Any


class Normal:
    """Standard normal noise.

    Example:
        >>> float(Normal().log_prob(jnp.array(2.0)))
        -2.0
    """

    def sample(self, key: Any, sample_shape: Any = (), dtype: Any = float) -> Array:
        """Random numbers."""
        return random.normal(key, sample_shape, dtype)

    def log_prob(self, inputs: Array) -> Array:
        """The logarithm of the density, up to a constant."""
        return -0.5 * inputs**2


class Gumbel:
    """Standard Gumbel noise, under which the largest of scores is a sample of their softmax.

    Example:
        >>> float(Gumbel().log_prob(jnp.array(0.0)))
        -1.0
    """

    def sample(self, key: Any, sample_shape: Any = (), dtype: Any = float) -> Array:
        """Random numbers."""
        return random.gumbel(key, sample_shape, dtype)

    def log_prob(self, inputs: Array) -> Array:
        """The logarithm of the density."""
        return -inputs - jnp.exp(-inputs)


_GUMBEL = Gumbel()


def make_perturbed_fun(
    fun: Callable[[Any], Any],
    num_samples: int = 1000,
    sigma: Any = 0.1,
    noise: Any = _GUMBEL,
    use_baseline: bool = True,
) -> Callable[[Any, Any], Any]:
    """The mean of a function under noise on its input, which is differentiable.

        F(x) = E[f(x + σ·Z)],   ∇F(x) = E[f(x + σ·Z)·∇ₓ log p(Z)]

    Args:
        fun: a function of a tree, such as an `argmax`; it needs no derivative.
        num_samples: how many samples estimate the mean.
        sigma: the size of the noise.
        noise: an object with `sample` and `log_prob`, such as `Normal()`.
        use_baseline: subtract f(x) in the derivative, for less variance.

    Returns:
        a function of a key and the input.

    Example:
        >>> hard = lambda x: jnp.where(x > 0, 1.0, 0.0)
        >>> soft = make_perturbed_fun(hard, sigma=1.0, noise=Normal())
        >>> soft(random.key(0), jnp.array([-9.0, 9.0]))
        Array([0., 1.], dtype=float32)
    """

    def perturbed(key, x):
        baseline = fun(lax.stop_gradient(x)) if use_baseline else None

        def one(key):
            z = otu.tree_random_like(key, x, noise.sample)
            moved = lax.stop_gradient(tree.map(lambda x, z: x + sigma * z, x, z))
            # The noise as a function of x, at a fixed point.
            z = tree.map(lambda x, y: (y - x) / sigma, x, moved)
            log_p = otu.tree_sum(tree.map(noise.log_prob, z))
            # 1, with the derivative of log p.
            weight = jnp.exp(log_p - lax.stop_gradient(log_p))
            value = otu.tree_scale(weight, fun(moved))
            if use_baseline:
                value = otu.tree_add_scale(value, 1 - weight, baseline)
            return value

        samples = vmap(one)(random.split(key, num_samples))
        return tree.map(lambda s: jnp.mean(s, axis=0), samples)

    return perturbed
