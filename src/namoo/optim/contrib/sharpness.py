"""Sharpness-aware minimisation: the gradient at the worst point nearby."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    apply_updates,
    init_empty_state,
    require_params,
)

__all__ = ["normalize", "NormalizeState", "sam", "SAMState"]

NormalizeState = EmptyState


def normalize() -> GradientTransformation:
    """Updates of norm 1, as one vector.

        u = g / ‖g‖

    Example:
        >>> tx = normalize()
        >>> tx.update(jnp.array([3.0, 4.0]), tx.init(None))[0]
        Array([0.6, 0.8], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        size = otu.tree_norm(updates)
        return tree.map(lambda g: g / size, updates), state

    return GradientTransformation(init_empty_state, update)


class SAMState(NamedTuple):
    """The position in a round, both optimisers' states, and the parameters to return to."""

    steps_since_sync: Any
    opt_state: Any
    adv_state: Any
    cache: Params | None


def sam(
    optimizer: GradientTransformation,
    adv_optimizer: GradientTransformation,
    sync_period: int = 2,
    reset_state: bool = True,
    opaque_mode: bool = False,
    batch_axis_name: str | None = None,
) -> GradientTransformationExtraArgs:
    """Minimise the loss at the worst point nearby, for flat minima.

        q = p + (a step of adv_optimizer uphill),   p ← p + (a step of optimizer with ∇f(q))

    A round has `sync_period` calls of `update`: all but the last go uphill, the last steps from
    where the round began. With `opaque_mode` one call makes the whole round.

    Args:
        optimizer: the optimiser.
        adv_optimizer: makes the steps uphill, such as `chain(normalize(), sgd(0.05))`.
        sync_period: the number of gradients in a round.
        reset_state: reset the state of `adv_optimizer` in each round.
        opaque_mode: `update` takes `grad_fn(params, i)` and makes the round itself.
        batch_axis_name: a mapped axis over which these gradients are averaged.

    Example:
        >>> from namoo.optim import chain, sgd
        >>> opt = sam(sgd(0.1), chain(normalize(), sgd(0.5)), opaque_mode=True)
        >>> params = jnp.array([3.0, 4.0])
        >>> grad_fn = lambda p, i: 2 * p
        >>> opt.update(grad_fn(params, 0), opt.init(params), params, grad_fn=grad_fn)[0]
        Array([-0.66      , -0.88000005], dtype=float32)
    """
    if sync_period < 1:
        raise ValueError(f"sam: sync_period must be at least 1, got {sync_period}.")

    def init(params):
        return SAMState(
            jnp.zeros([], jnp.int32),
            optimizer.init(params),
            adv_optimizer.init(params),
            None if opaque_mode else params,
        )

    def uphill(updates, state, params):
        updates, state = adv_optimizer.update(updates, state, params)
        return tree.map(lambda u: -u, updates), state

    def one_call(updates, state, params=None, *, grad_fn=None):
        del grad_fn
        require_params("sam", params)
        first = state.steps_since_sync == 0
        last = state.steps_since_sync == sync_period - 1
        up, adv_state = uphill(updates, state.adv_state, params)
        down, opt_state = optimizer.update(updates, state.opt_state, state.cache)
        back = tree.map(lambda c, p, u: c - p + u, state.cache, params, down)
        new = otu.tree_where(last, back, up)
        fresh = adv_optimizer.init(params) if reset_state else state.adv_state
        return new, SAMState(
            (state.steps_since_sync + 1) % sync_period,
            otu.tree_where(last, opt_state, state.opt_state),
            otu.tree_where(last, fresh, adv_state),
            otu.tree_where(first, params, state.cache),
        )

    def whole_round(updates, state, params=None, *, grad_fn=None):
        require_params("sam", params)
        if grad_fn is None:
            raise ValueError(
                "sam: with opaque_mode=True write `update(grads, state, params, grad_fn=...)`, "
                "where grad_fn(params, i) is the gradient."
            )
        point, adv_state = params, state.adv_state
        for i in range(sync_period - 1):
            step, adv_state = uphill(updates, adv_state, point)
            point = apply_updates(point, step)
            updates = grad_fn(point, i)
            if batch_axis_name is not None:
                updates = lax.pmean(updates, axis_name=batch_axis_name)
        if reset_state:
            adv_state = adv_optimizer.init(params)
        new, opt_state = optimizer.update(updates, state.opt_state, params)
        return new, SAMState(jnp.zeros([], jnp.int32), opt_state, adv_state, None)

    return GradientTransformationExtraArgs(init, whole_round if opaque_mode else one_call)
