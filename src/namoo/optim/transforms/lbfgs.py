"""Curvature from the last few steps: the two-loop recursion of L-BFGS."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformation, Params, Updates, require_params
from namoo.optim.numerics import safe_increment

__all__ = ["scale_by_lbfgs", "ScaleByLBFGSState"]


class ScaleByLBFGSState(NamedTuple):
    """The last parameters and gradients, and the differences of the steps before."""

    count: Any
    params: Params
    updates: Params
    diff_params_memory: Any
    diff_updates_memory: Any
    weights_memory: Any


def _real_vdot(x: Any, y: Any) -> Any:
    return jnp.real(otu.tree_vdot(x, y))


def _precondition(vector: Updates, steps: Any, changes: Any, rhos: Any, first: Any, scale: Any):
    """The inverse Hessian times a vector; `first` is the index of the oldest step."""
    size = rhos.shape[0]
    order = (first + jnp.arange(size)) % size

    def at(memory, i):
        return tree.map(lambda x: x[i], memory)

    def newest_to_oldest(vec, i):
        alpha = rhos[i] * _real_vdot(at(steps, i), vec)
        new = otu.tree_add_scale(vec, -alpha, at(changes, i))
        return otu.tree_cast_like(new, vec), alpha

    def oldest_to_newest(vec, i_alpha):
        i, alpha = i_alpha
        beta = rhos[i] * _real_vdot(at(changes, i), vec)
        new = otu.tree_add_scale(vec, alpha - beta, at(steps, i))
        return otu.tree_cast_like(new, vec), None

    vector, alphas = lax.scan(newest_to_oldest, vector, order, reverse=True)
    vector, _ = lax.scan(oldest_to_newest, otu.tree_scale(scale, vector), (order, alphas))
    return vector


def scale_by_lbfgs(
    memory_size: int = 10, scale_init_precond: bool = True
) -> GradientTransformation:
    """Gradients times an estimate of the inverse Hessian, from the last steps.

        sₖ = pₖ₊₁ - pₖ,   yₖ = gₖ₊₁ - gₖ,   ρₖ = 1 / ⟨yₖ, sₖ⟩,   P₀ = γ·I
        Pₖ₊₁ = (I - ρₖ·sₖyₖᵀ) Pₖ (I - ρₖ·yₖsₖᵀ) + ρₖ·sₖsₖᵀ,   u = P·g

    Args:
        memory_size: how many steps are kept.
        scale_init_precond: γ = ⟨y, s⟩ / ‖y‖² of the last step (for the first min(1, 1 / ‖g‖));
          False takes 1.

    Example:
        >>> tx = scale_by_lbfgs()
        >>> params = jnp.array([1.0, 2.0])
        >>> tx.update(2 * params, tx.init(params), params)[0]
        Array([0.4472136, 0.8944272], dtype=float32)
    """
    if memory_size < 1:
        raise ValueError(f"scale_by_lbfgs: memory_size must be at least 1, got {memory_size}.")

    def init(params):
        memory = tree.map(lambda p: jnp.zeros((memory_size, *p.shape), p.dtype), params)
        return ScaleByLBFGSState(
            count=jnp.zeros([], jnp.int32),
            params=otu.tree_zeros_like(params),
            updates=otu.tree_zeros_like(params),
            diff_params_memory=memory,
            diff_updates_memory=memory,
            weights_memory=jnp.zeros(memory_size),
        )

    def update(updates, state, params=None):
        require_params("scale_by_lbfgs", params)
        started = state.count > 0
        step = otu.tree_sub(params, state.params)
        change = otu.tree_sub(updates, state.updates)
        product = _real_vdot(change, step)
        rho = jnp.where(product == 0.0, 0.0, 1.0 / product)

        # The first call has no step behind it: zeros in the memory leave it without effect.
        step, change, rho = tree.map(
            lambda x: jnp.where(started, x, jnp.zeros_like(x)), (step, change, rho)
        )
        place = (state.count - 1) % memory_size
        steps, changes, rhos = tree.map(
            lambda memory, new: memory.at[place].set(new),
            (state.diff_params_memory, state.diff_updates_memory, state.weights_memory),
            (step, change, rho),
        )
        if scale_init_precond:
            square = otu.tree_norm(change, squared=True)
            gamma = jnp.where(square > 0.0, _real_vdot(change, step) / square, 1.0)
            at_first = jnp.minimum(1.0, 1.0 / otu.tree_norm(lax.stop_gradient(updates)))
            gamma = jnp.where(started, gamma, at_first)
        else:
            gamma = 1.0
        new = _precondition(updates, steps, changes, rhos, state.count % memory_size, gamma)
        return new, ScaleByLBFGSState(
            count=safe_increment(state.count),
            params=params,
            updates=updates,
            diff_params_memory=steps,
            diff_updates_memory=changes,
            weights_memory=rhos,
        )

    return GradientTransformation(init, update)
