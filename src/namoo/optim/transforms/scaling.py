"""Updates times a number: a constant, a schedule, a norm, a ratio of norms."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo._base.short import short
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    ScalarOrSchedule,
    Schedule,
    Updates,
    identity,
    init_empty_state,
    map_updates,
    require_params,
)
from namoo.optim.numerics import safe_increment, safe_norm, safe_root_mean_squares

__all__ = [
    "centralize", "normalize_by_update_norm", "scale", "scale_by_distance_over_gradients",
    "scale_by_learning_rate", "scale_by_optimistic_gradient", "scale_by_param_block_norm",
    "scale_by_param_block_rms", "scale_by_polyak", "scale_by_schedule", "scale_by_sign",
    "scale_by_trust_ratio", "ScaleByDistanceOverGradientsState", "ScaleByOptimisticGradientState",
    "ScaleByScheduleState", "ScaleByTrustRatioState", "ScaleState",
]  # fmt: skip

ScaleState = EmptyState
ScaleByTrustRatioState = EmptyState


def scale(step_size: Any) -> GradientTransformation:
    """Updates times a number.

        u = s·g

    Example:
        >>> tx = scale(-0.1)
        >>> tx.update(jnp.array([2.0]), tx.init(None))[0]
        Array([-0.2], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        return tree.map(lambda g: step_size * g, updates), state

    return GradientTransformation(init_empty_state, update)


class ScaleByScheduleState(NamedTuple):
    """The number of steps that were made."""

    count: Any


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Updates times a function of the step.

        u = s(t)·g,    t = 0, 1, 2, …

    Example:
        >>> tx = scale_by_schedule(lambda step: 0.5**step)
        >>> state = tx.init(None)
        >>> for _ in range(3):
        ...     updates, state = tx.update(jnp.array([1.0]), state)
        >>> updates, state
        (Array([0.25], dtype=float32), ScaleByScheduleState(count=Array(3, dtype=int32)))
    """

    def init(params):
        del params
        return ScaleByScheduleState(jnp.zeros([], jnp.int32))

    def update(updates, state, params=None):
        del params
        step_size = step_size_fn(state.count)
        new = tree.map(lambda g: jnp.array(step_size, dtype=g.dtype) * g, updates)
        return new, ScaleByScheduleState(safe_increment(state.count))

    return GradientTransformation(init, update)


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformation:
    """Updates times the learning rate, downhill.

        u = -α(t)·g

    Args:
        learning_rate: a number or a schedule; with None nothing changes.
        flip_sign: False keeps the sign, for updates that are negated already.

    Example:
        >>> tx = scale_by_learning_rate(0.1)
        >>> tx.update(jnp.array([2.0]), tx.init(None))[0]
        Array([-0.2], dtype=float32)
    """
    if learning_rate is None:
        return identity()
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        schedule: Schedule = learning_rate
        return scale_by_schedule(lambda count: sign * schedule(count))
    if not isinstance(learning_rate, (int, float)) and not hasattr(learning_rate, "dtype"):
        raise TypeError(
            f"learning_rate must be a number or a schedule, got {short(learning_rate)}. The "
            "parameters go to tx.init(params)."
        )
    return scale(sign * learning_rate)


def scale_by_sign() -> GradientTransformation:
    """The signs of the updates.

    Example:
        >>> tx = scale_by_sign()
        >>> tx.update(jnp.array([-3.0, 0.0, 5.0]), tx.init(None))[0]
        Array([-1.,  0.,  1.], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        return tree.map(jnp.sign, updates), state

    return GradientTransformation(init_empty_state, update)


def scale_by_param_block_norm(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each array of updates times the norm of its parameter.

        u = max(‖p‖, min_scale)·g

    Example:
        >>> tx = scale_by_param_block_norm()
        >>> tx.update(jnp.array([1.0, 1.0]), tx.init(None), jnp.array([3.0, 4.0]))[0]
        Array([5., 5.], dtype=float32)
    """

    def update(updates, state, params=None):
        require_params("scale_by_param_block_norm", params)
        return map_updates(lambda g, p: g * safe_norm(p, min_scale), updates, params), state

    return GradientTransformation(init_empty_state, update)


def scale_by_param_block_rms(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each array of updates times the root mean square of its parameter.

        u = max(√mean(p²), min_scale)·g

    Example:
        >>> tx = scale_by_param_block_rms()
        >>> tx.update(jnp.array([1.0, 1.0]), tx.init(None), jnp.array([3.0, 3.0]))[0]
        Array([3., 3.], dtype=float32)
    """

    def update(updates, state, params=None):
        require_params("scale_by_param_block_rms", params)
        new = map_updates(lambda g, p: g * safe_root_mean_squares(p, min_scale), updates, params)
        return new, state

    return GradientTransformation(init_empty_state, update)


def scale_by_trust_ratio(
    min_norm: Any = 0.0, trust_coefficient: Any = 1.0, eps: Any = 0.0
) -> GradientTransformation:
    """Each array of updates scaled to the norm of its parameter, as in LARS and LAMB.

        u = c·‖p‖ / (‖g‖ + ε)·g,   u = g where a norm is 0

    Args:
        min_norm: the smallest value of the norms.
        trust_coefficient: the factor c.
        eps: added to the denominator.

    Example:
        >>> tx = scale_by_trust_ratio()
        >>> tx.update(jnp.array([1.0, 0.0]), tx.init(None), jnp.array([3.0, 4.0]))[0]
        Array([5., 0.], dtype=float32)
    """

    def update(updates, state, params=None):
        require_params("scale_by_trust_ratio", params)

        def rescale(g, p):
            p_norm, g_norm = safe_norm(p, min_norm), safe_norm(g, min_norm)
            ratio = trust_coefficient * p_norm / (g_norm + eps)
            unusable = (p_norm == 0.0) | (g_norm == 0.0)
            return g * jnp.where(unusable, jnp.array(1.0, dtype=p.dtype), ratio)

        return map_updates(rescale, updates, params), state

    return GradientTransformation(init_empty_state, update)


def normalize_by_update_norm(scale_factor: Any = 1.0, eps: Any = 1e-6) -> GradientTransformation:
    """Updates divided by their norm as one vector.

        u = s·g / (‖g‖ + ε)

    Example:
        >>> tx = normalize_by_update_norm()
        >>> tx.update(jnp.array([3.0, 4.0]), tx.init(None))[0]
        Array([0.5999999 , 0.79999983], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        size = (otu.tree_norm(updates) + eps) / scale_factor
        return tree.map(lambda g: g / size, updates), state

    return GradientTransformation(init_empty_state, update)


def centralize() -> GradientTransformation:
    """Updates of matrices (and larger arrays) without their mean over all axes but the first.

        u = g - mean(g)

    Example:
        >>> tx = centralize()
        >>> tx.update(jnp.array([[1.0, 3.0]]), tx.init(None))[0]
        Array([[-1.,  1.]], dtype=float32)
    """

    def update(updates, state, params=None):
        del params

        def centre(g):
            if g.ndim < 2:
                return g
            return g - g.mean(tuple(range(1, g.ndim)), keepdims=True)

        return tree.map(centre, updates), state

    return GradientTransformation(init_empty_state, update)


class ScaleByOptimisticGradientState(NamedTuple):
    """The updates of the step before."""

    is_initial_step: Any
    previous_gradient: Updates


def scale_by_optimistic_gradient(alpha: Any = 1.0, beta: Any = 1.0) -> GradientTransformation:
    """Updates that expect the gradient to keep changing in the same way.

        u = (α + β)·gₜ - β·gₜ₋₁

    Example:
        >>> tx = scale_by_optimistic_gradient()
        >>> _, state = tx.update(jnp.array([1.0]), tx.init(jnp.zeros(1)))
        >>> tx.update(jnp.array([3.0]), state)[0]
        Array([5.], dtype=float32)
    """

    def init(params):
        return ScaleByOptimisticGradientState(jnp.array(True), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params

        def extrapolate(g, before):
            before = jnp.where(state.is_initial_step, g, before)
            return (alpha + beta) * g - beta * before

        new = map_updates(extrapolate, updates, state.previous_gradient)
        return new, ScaleByOptimisticGradientState(jnp.array(False), updates)

    return GradientTransformation(init, update)


class ScaleByDistanceOverGradientsState(NamedTuple):
    """The distance each parameter moved, and the sum of its squared gradients."""

    max_dist: Any
    grad_sum_of_squares: Any
    init_params: Any


def scale_by_distance_over_gradients(
    reps_rel: Any = 1e-6, eps: Any = 1e-8, param_dtype: Any = jnp.float32, global_scale: Any = 1.0
) -> GradientTransformation:
    """A learning rate for each array, from the distance it moved and the size of its gradients.

        d ← max(d, ‖p - p₀‖),   G ← G + ‖g‖²,   u = s·d / √(G + ε)·g

    Args:
        reps_rel: the first distance, relative to 1 + ‖p₀‖.
        eps: added to the sum of squares.
        param_dtype: the type in which the first parameters are kept.
        global_scale: the factor s.

    Example:
        >>> tx = scale_by_distance_over_gradients(reps_rel=0.1)
        >>> params = jnp.array([3.0, 4.0])
        >>> tx.update(jnp.array([1.0, 0.0]), tx.init(params), params)[0]
        Array([0.6, 0. ], dtype=float32)
    """

    def distance(x, y=0.0):
        return jnp.sqrt(jnp.square(x - y).sum())

    def init(params):
        return ScaleByDistanceOverGradientsState(
            tree.map(lambda p: reps_rel * (1 + distance(p)), params),
            tree.map(lambda p: jnp.zeros(1), params),
            otu.tree_cast(params, param_dtype),
        )

    def update(updates, state, params=None):
        require_params("scale_by_distance_over_gradients", params)
        dist = tree.map(
            lambda d, p, p0: jnp.maximum(d, distance(p, p0)),
            state.max_dist,
            params,
            state.init_params,
        )
        total = tree.map(lambda s, g: s + jnp.square(g).sum(), state.grad_sum_of_squares, updates)
        new = map_updates(
            lambda g, d, s: global_scale * (d / jnp.sqrt(s + eps)) * g, updates, dist, total
        )
        return new, ScaleByDistanceOverGradientsState(dist, total, state.init_params)

    return GradientTransformation(init, update)


def scale_by_polyak(
    f_min: Any = 0.0, max_learning_rate: Any = 1.0, eps: Any = 0.0, variant: str = "sps"
) -> GradientTransformationExtraArgs:
    """Polyak's step size, from the loss and its minimum.

        u = min((f(p) - f_min) / (‖g‖² + ε), max_learning_rate)·g

    Args:
        f_min: the minimum of the loss, or a lower bound of it.
        max_learning_rate: the largest step size.
        eps: added to the denominator.
        variant: 'sps', or 'sps+', which takes a negative gap as 0.

    Returns:
        a transformation whose `update` takes the loss as `value`.

    Example:
        >>> tx = scale_by_polyak()
        >>> tx.update(jnp.array([2.0, 0.0]), tx.init(None), value=1.0)[0]
        Array([0.5, 0. ], dtype=float32)
    """
    if variant not in ("sps", "sps+"):
        raise ValueError(f"scale_by_polyak: variant must be 'sps' or 'sps+', got {variant!r}.")

    def update(updates, state, params=None, *, value, **extra_args):
        del params, extra_args
        square = otu.tree_norm(updates, squared=True)
        gap = jnp.array(value - f_min).astype(square.dtype)
        if variant == "sps+":
            gap = jnp.maximum(gap, 0)
        step = jnp.where(
            square + eps <= jnp.finfo(float).eps,
            jnp.array(0.0),
            jnp.minimum(gap / (square + eps), max_learning_rate),
        )
        return otu.tree_scale(step, updates), state

    return GradientTransformationExtraArgs(init_empty_state, update)
