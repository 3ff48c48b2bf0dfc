"""Schedule-free optimisation: averages of the parameters instead of a schedule."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim import tree_utils as otu
from namoo.optim.alias import sgd
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    ScalarOrSchedule,
    apply_updates,
    require_params,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.schedules import warmup_constant_schedule
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.rms import scale_by_rms
from namoo.optim.transforms.scaling import scale_by_learning_rate

__all__ = [
    "schedule_free", "schedule_free_adamw", "schedule_free_eval_params", "schedule_free_sgd",
    "ScheduleFreeState",
]  # fmt: skip


class ScheduleFreeState(NamedTuple):
    """The iterates z of the inner optimiser, and the weights of their average."""

    b1: Any
    weight_sum: Any
    step_count: Any
    max_lr: Any
    base_optimizer_state: Any
    z: Params


def _average(y, z, b1):
    """The averages x, from the parameters y = b1·x + (1 - b1)·z."""
    return tree.map(lambda y, z: (y - (1.0 - b1) * z) / b1, y, z)


def schedule_free_eval_params(state: Any, params: Params) -> Params:
    """The parameters to evaluate a model with: the averages, not those that are trained.

    Args:
        state: the state of a schedule-free optimiser, also inside that of a chain.
        params: the parameters that are trained.

    Raises:
        ValueError: there is no such state.

    Example:
        >>> opt = schedule_free_sgd(0.1)
        >>> params = jnp.array([1.0])
        >>> schedule_free_eval_params(opt.init(params), params)
        Array([1.], dtype=float32)
    """
    found = otu.tree_get(state, "ScheduleFreeState")
    if found is None:
        raise ValueError(
            "schedule_free_eval_params: the state holds no ScheduleFreeState. Pass the state of "
            "schedule_free, schedule_free_sgd or schedule_free_adamw."
        )
    return _average(params, found.z, found.b1)


def schedule_free(
    base_optimizer: GradientTransformation,
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Optimise without a schedule: gradients at a point between the iterates and their average.

        y = b1·x + (1 - b1)·z   (the parameters),   z ← z + (step of the optimiser with ∇f(y))
        c = wₜ / Σ w,   w = max(α)^power,           x ← (1 - c)·x + c·z

    Evaluate with `schedule_free_eval_params`.

    Args:
        base_optimizer: the optimiser, without momentum.
        learning_rate: its learning rate, for the weights of the average.
        b1: how close the parameters are to the average.
        weight_lr_power: the exponent of the weights.
        state_dtype: the type of z; that of the parameters by default.

    Example:
        >>> opt = schedule_free(sgd(0.1), learning_rate=0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10000008, -0.20000017], dtype=float32)
    """
    base_optimizer = with_extra_args_support(base_optimizer)

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        return ScheduleFreeState(
            b1=jnp.asarray(b1, dtype),
            weight_sum=jnp.zeros([], dtype),
            step_count=jnp.ones([], jnp.int32),
            max_lr=jnp.zeros([], dtype),
            base_optimizer_state=base_optimizer.init(params),
            # A copy: donating the parameters must not invalidate z.
            z=tree.map(lambda p: jnp.array(p, dtype=state_dtype), params),
        )

    def update(updates, state, params=None, **extra_args):
        require_params("schedule_free", params)
        rate = learning_rate
        if callable(rate):
            rate = jnp.asarray(rate(state.step_count), state.max_lr.dtype)
        max_lr = jnp.maximum(state.max_lr, rate)
        weight = max_lr**weight_lr_power
        weight_sum = state.weight_sum + weight
        # 0 / 0 before the learning rate is positive: nothing to average yet.
        part = jnp.where((weight_sum == 0) & (weight == 0), 0.0, weight / weight_sum)
        steps, inner = base_optimizer.update(
            updates, state.base_optimizer_state, params, **extra_args
        )
        z = apply_updates(state.z, steps)
        x = tree.map(lambda x, z: (1.0 - part) * x + part * z, _average(params, state.z, b1), z)
        new = tree.map(lambda x, z, y: b1 * x + (1.0 - b1) * z - y, x, z, params)
        return new, ScheduleFreeState(
            b1=state.b1,
            weight_sum=weight_sum,
            step_count=safe_increment(state.step_count),
            max_lr=max_lr,
            base_optimizer_state=inner,
            z=z,
        )

    return GradientTransformationExtraArgs(init, update)


def _warmed(learning_rate: Any, warmup_steps: int | None) -> Any:
    return (
        learning_rate
        if warmup_steps is None
        else warmup_constant_schedule(0, learning_rate, warmup_steps)
    )


def schedule_free_sgd(
    learning_rate: Any = 1.0,
    warmup_steps: int | None = None,
    b1: Any = 0.9,
    weight_decay: Any = None,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent without a schedule; see `schedule_free`.

    Example:
        >>> opt = schedule_free_sgd(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10000008, -0.20000017], dtype=float32)
    """
    rate = _warmed(learning_rate, warmup_steps)
    inner = sgd(rate)
    if weight_decay is not None:
        inner = chain(add_decayed_weights(weight_decay), inner)
    return schedule_free(inner, rate, b1, weight_lr_power, state_dtype)


def schedule_free_adamw(
    learning_rate: Any = 0.0025,
    warmup_steps: int | None = None,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """AdamW without a schedule and without its own momentum; see `schedule_free`.

    Example:
        >>> opt = schedule_free_adamw(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09999943, -0.09999931], dtype=float32)
    """
    rate = _warmed(learning_rate, warmup_steps)
    inner = chain(
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(rate),
    )
    return schedule_free(inner, rate, b1, weight_lr_power, state_dtype)
