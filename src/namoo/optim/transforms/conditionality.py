"""Transformations that are applied at some steps only."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from namoo import numpy as jnp
from namoo import tree
from namoo.control.cond import cond
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment

__all__ = [
    "apply_if_finite", "ApplyIfFiniteState", "conditionally_mask", "conditionally_transform",
    "ConditionallyMaskState", "ConditionallyTransformState", "ConditionFn",
]  # fmt: skip


class ConditionFn(Protocol):
    """Decides from the number of the step, and extra arguments, whether to transform."""

    def __call__(self, step: Any, **extra_args: Any) -> Any: ...


class ConditionallyTransformState(NamedTuple):
    """The inner state, and the number of steps."""

    inner_state: Any
    step: Any


def conditionally_transform(
    inner: GradientTransformation,
    should_transform_fn: ConditionFn,
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Transform at some steps; at the others updates pass unchanged.

    Args:
        inner: a transformation.
        should_transform_fn: whether to apply it, a function of the step.
        forward_extra_args: give the extra arguments of `update` to that function too.

    Example:
        >>> from namoo.optim import scale
        >>> tx = conditionally_transform(scale(10.0), lambda step: step >= 1)
        >>> updates, state = tx.update(jnp.array([1.0]), tx.init(None))
        >>> updates, tx.update(jnp.array([1.0]), state)[0]
        (Array([1.], dtype=float32), Array([10.], dtype=float32))
    """
    inner = with_extra_args_support(inner)

    def init(params):
        return ConditionallyTransformState(inner.init(params), jnp.zeros([], jnp.int32))

    def update(updates, state, params=None, **extra_args):
        seen = extra_args if forward_extra_args else {}
        new, inner_state = cond(
            should_transform_fn(state.step, **seen),
            lambda: inner.update(updates, state.inner_state, params, **extra_args),
            lambda: (updates, state.inner_state),
        )
        return new, ConditionallyTransformState(inner_state, safe_increment(state.step))

    return GradientTransformationExtraArgs(init, update)


class ConditionallyMaskState(NamedTuple):
    """The number of steps, and the inner state."""

    step: Any
    inner_state: Any


def conditionally_mask(
    inner: GradientTransformation,
    should_transform_fn: ConditionFn,
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Transform at some steps; at the others updates are zero.

    Args:
        inner: a transformation.
        should_transform_fn: whether to apply it, a function of the step.
        forward_extra_args: give the extra arguments of `update` to that function too.

    Example:
        >>> from namoo.optim import scale
        >>> tx = conditionally_mask(scale(10.0), lambda step: step >= 1)
        >>> updates, state = tx.update(jnp.array([1.0]), tx.init(None))
        >>> updates, tx.update(jnp.array([1.0]), state)[0]
        (Array([0.], dtype=float32), Array([10.], dtype=float32))
    """
    inner = with_extra_args_support(inner)

    def init(params):
        return ConditionallyMaskState(jnp.zeros([], jnp.int32), inner.init(params))

    def update(updates, state, params=None, **extra_args):
        seen = extra_args if forward_extra_args else {}
        new, inner_state = cond(
            should_transform_fn(state.step, **seen),
            lambda: inner.update(updates, state.inner_state, params, **extra_args),
            lambda: (otu.tree_zeros_like(updates), state.inner_state),
        )
        return new, ConditionallyMaskState(safe_increment(state.step), inner_state)

    return GradientTransformationExtraArgs(init, update)


class ApplyIfFiniteState(NamedTuple):
    """How many updates in a row, and in all, were not finite; whether the last was."""

    notfinite_count: Any
    last_finite: Any
    total_notfinite: Any
    inner_state: Any


def apply_if_finite(
    inner: GradientTransformation, max_consecutive_errors: int
) -> GradientTransformationExtraArgs:
    """Skip steps whose gradients hold inf or nan.

    Args:
        inner: an optimiser.
        max_consecutive_errors: after more of them in a row the step is taken anyway.

    Example:
        >>> from namoo.optim import sgd
        >>> tx = apply_if_finite(sgd(0.1), 5)
        >>> updates, state = tx.update(jnp.array([jnp.inf, 1.0]), tx.init(jnp.zeros(2)))
        >>> updates, state.total_notfinite
        (Array([0., 0.], dtype=float32), Array(1, dtype=int32))
    """
    inner = with_extra_args_support(inner)

    def init(params):
        zero = jnp.zeros([], jnp.int32)
        return ApplyIfFiniteState(zero, jnp.array(True), zero, inner.init(params))

    def update(updates, state, params=None, **extra_args):
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(u)) for u in tree.leaves(updates)]))
        in_a_row = jnp.where(finite, 0, safe_increment(state.notfinite_count))
        new, inner_state = cond(
            finite | (in_a_row > max_consecutive_errors),
            lambda: inner.update(updates, state.inner_state, params, **extra_args),
            lambda: (otu.tree_zeros_like(updates), state.inner_state),
        )
        in_all = jnp.where(finite, state.total_notfinite, safe_increment(state.total_notfinite))
        return new, ApplyIfFiniteState(in_a_row, finite, in_all, inner_state)

    return GradientTransformationExtraArgs(init, update)
