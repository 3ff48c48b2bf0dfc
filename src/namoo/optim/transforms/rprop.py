"""Step sizes that grow while a gradient keeps its sign."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformation, Updates, map_updates

__all__ = ["scale_by_rprop", "ScaleByRpropState"]


class ScaleByRpropState(NamedTuple):
    """For each element its step size and its last update."""

    step_sizes: Updates
    prev_updates: Updates


def scale_by_rprop(
    learning_rate: Any,
    eta_minus: Any = 0.5,
    eta_plus: Any = 1.2,
    min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformation:
    """The signs of the gradients times one step size per element, as in Rprop.

        s ← s·η⁺  where the gradient kept its sign,   s·η⁻  where it did not
        d = s·sign(g),   0 where the sign changed
        u = the d of the step before,   0 where the sign changed

    As in Optax each step is taken one call after its gradient: the first updates are 0.

    Args:
        learning_rate: the first step size.
        eta_minus: the factor where the sign changed.
        eta_plus: the factor where it did not.
        min_step_size: the smallest step size.
        max_step_size: the largest step size.

    Example:
        >>> tx = scale_by_rprop(0.1)
        >>> updates, state = tx.update(jnp.array([3.0, -1.0]), tx.init(jnp.zeros(2)))
        >>> updates, state = tx.update(jnp.array([3.0, 1.0]), state)
        >>> updates
        Array([0.1, 0. ], dtype=float32)
    """

    def init(params):
        return ScaleByRpropState(
            otu.tree_full_like(params, learning_rate), otu.tree_zeros_like(params)
        )

    def update(updates, state, params=None):
        del params
        agreement = map_updates(lambda g, before: g * before, updates, state.prev_updates)

        def resize(a, size):
            new = jnp.clip(
                size * jnp.where(a > 0, eta_plus, eta_minus), min_step_size, max_step_size
            )
            return jnp.where(a == 0, size, new)

        sizes = map_updates(resize, agreement, state.step_sizes)
        steps = map_updates(
            lambda a, g, size: jnp.where(a < 0, 0, size * jnp.sign(g)), agreement, updates, sizes
        )
        new = map_updates(
            lambda a, before: jnp.where(a < 0, 0, before), agreement, state.prev_updates
        )
        return new, ScaleByRpropState(sizes, steps)

    return GradientTransformation(init, update)
