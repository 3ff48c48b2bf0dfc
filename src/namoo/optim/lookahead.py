"""Two copies of the parameters, a fast one that explores and a slow one that follows."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim.base import GradientTransformation, Params, require_params

__all__ = ["lookahead", "LookaheadParams", "LookaheadState"]


class LookaheadState(NamedTuple):
    """The fast optimiser's state, and the number of steps since the copies were synchronised."""

    fast_state: Any
    steps_since_sync: Any


class LookaheadParams(NamedTuple):
    """The two copies of the parameters."""

    fast: Params
    slow: Params

    @classmethod
    def init_synced(cls, params: Params) -> LookaheadParams:
        """Both copies from the same parameters."""
        return cls(fast=params, slow=params)


def lookahead(
    fast_optimizer: GradientTransformation,
    sync_period: int,
    slow_step_size: Any,
    reset_state: bool = False,
) -> GradientTransformation:
    """Lookahead: a slow copy of the parameters follows a fast one.

        fast ← fast + u;   every `sync_period` steps   slow ← slow + s·(fast - slow),  fast ← slow

    Parameters and updates are `LookaheadParams`; gradients are those at `params.fast`.

    Args:
        fast_optimizer: the optimiser of the fast copy.
        sync_period: the number of steps between synchronisations.
        slow_step_size: how far the slow copy goes, s.
        reset_state: reset the fast optimiser after each synchronisation.

    Example:
        >>> from namoo.optim import apply_updates, sgd
        >>> opt = lookahead(sgd(0.5), sync_period=2, slow_step_size=0.5)
        >>> params = LookaheadParams.init_synced(jnp.array([1.0]))
        >>> state = opt.init(params)
        >>> for _ in range(2):
        ...     updates, state = opt.update(jnp.array([1.0]), state, params)
        ...     params = apply_updates(params, updates)
        ...     print(params.fast, params.slow)
        [0.5] [1.]
        [0.5] [0.5]
    """
    if sync_period < 1:
        raise ValueError(f"lookahead: sync_period must be at least 1, got {sync_period}.")

    def init(params):
        return LookaheadState(
            fast_optimizer.init(getattr(params, "fast", params)), jnp.zeros([], jnp.int32)
        )

    def update(updates, state, params: Any = None):
        require_params("lookahead", params)
        updates, fast_state = fast_optimizer.update(updates, state.fast_state, params.fast)
        meet = state.steps_since_sync == sync_period - 1
        ahead = tree.map(lambda f, u, s: f + u - s, params.fast, updates, params.slow)
        slow = tree.map(lambda a: jnp.where(meet, slow_step_size * a, jnp.zeros_like(a)), ahead)
        fast = tree.map(
            lambda u, a: jnp.where(meet, u - (1 - slow_step_size) * a, u), updates, ahead
        )
        if reset_state:
            fresh = fast_optimizer.init(params.fast)
            fast_state = tree.map(lambda now, new: jnp.where(meet, new, now), fast_state, fresh)
        steps = (state.steps_since_sync + 1) % sync_period
        return LookaheadParams(fast, slow), LookaheadState(fast_state, steps)

    return GradientTransformation(init, update)
