"""A learning rate that is reduced when the loss no longer falls."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformationExtraArgs
from namoo.optim.numerics import safe_increment

__all__ = ["reduce_on_plateau", "ReduceLROnPlateauState"]


class ReduceLROnPlateauState(NamedTuple):
    """The factor, the best loss, and how long ago it was found."""

    scale: Any
    best_value: Any
    plateau_count: Any
    cooldown_count: Any
    count: Any
    avg_value: Any


def reduce_on_plateau(
    factor: float = 0.1,
    patience: Any = 10,
    rtol: float = 1e-4,
    atol: float = 0.0,
    cooldown: Any = 0,
    accumulation_size: Any = 1,
    min_scale: Any = 0.0,
) -> GradientTransformationExtraArgs:
    """Multiply updates by a factor that falls when the loss does not; `update` takes `value`.

    Put it after an optimiser in a `chain`.

    Args:
        factor: the factor is multiplied by this.
        patience: the number of losses without improvement before that.
        rtol: a loss is better if it is below (1 - rtol)·best - atol.
        atol: see `rtol`.
        cooldown: the number of losses ignored after a reduction.
        accumulation_size: how many losses are averaged to one.
        min_scale: the least factor.

    Example:
        >>> tx = reduce_on_plateau(factor=0.5, patience=2)
        >>> state = tx.init(jnp.zeros(1))
        >>> for _ in range(3):
        ...     updates, state = tx.update(jnp.array([1.0]), state, value=7.0)
        >>> updates
        Array([0.5], dtype=float32)
    """
    if not 0.0 < factor < 1.0:
        raise ValueError(f"reduce_on_plateau: factor must be between 0 and 1, got {factor}.")
    if not 0.0 <= rtol <= 1.0 or atol < 0.0 or rtol == atol == 0.0:
        raise ValueError(
            "reduce_on_plateau: rtol must be in [0, 1], atol not negative, and one of them "
            f"positive, got rtol={rtol} and atol={atol}."
        )

    def init(params):
        low, high = (otu.tree_dtype(params, kind) for kind in ("lowest", "highest"))
        zero = jnp.zeros([], jnp.int32)
        return ReduceLROnPlateauState(
            scale=jnp.asarray(1.0, low),
            best_value=jnp.asarray(jnp.inf, high),
            plateau_count=zero,
            cooldown_count=zero,
            count=zero,
            avg_value=jnp.zeros([], high),
        )

    def judge(state):
        """The state after a whole average of losses."""
        better = state.avg_value < (1 - rtol) * state.best_value - atol
        waited = jnp.where(better, 0, safe_increment(state.plateau_count))
        cooling = state.cooldown_count > 0
        reduce = ~cooling & (waited == patience)
        scale = jnp.maximum(jnp.where(reduce, state.scale * factor, state.scale), min_scale)
        return ReduceLROnPlateauState(
            scale=jnp.where(cooling, state.scale, scale).astype(state.scale.dtype),
            best_value=jnp.where(better, state.avg_value, state.best_value),
            plateau_count=jnp.where(cooling | reduce, 0, waited),
            cooldown_count=jnp.where(
                cooling, state.cooldown_count - 1, jnp.where(reduce, cooldown, 0)
            ).astype(jnp.int32),
            count=jnp.zeros([], jnp.int32),
            avg_value=jnp.zeros_like(state.avg_value),
        )

    def update(updates, state, params=None, *, value, **extra_args):
        del params, extra_args
        count = safe_increment(state.count)
        dtype = state.avg_value.dtype
        average = (state.count * state.avg_value + jnp.asarray(value).astype(dtype)) / count
        state = state._replace(avg_value=average.astype(dtype), count=count)
        state = otu.tree_where(count == accumulation_size, judge(state), state)
        return tree.map(lambda g: state.scale * g, updates), state

    return GradientTransformationExtraArgs(init, update)
