"""Hyperparameters that live in the state, where they can be read, changed and scheduled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from namoo import numpy as jnp
from namoo.core.array import Array
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Schedule,
    StatefulSchedule,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment
from namoo.tree.paths import Paths

__all__ = [
    "inject_hyperparams", "inject_stateful_hyperparams", "InjectHyperparamsState",
    "InjectStatefulHyperparamsState", "WrappedSchedule", "WrappedScheduleState",
]  # fmt: skip


class InjectHyperparamsState(NamedTuple):
    """The number of steps, the hyperparameters, and the state of the optimiser they make."""

    count: Any
    hyperparams: dict[str, Any]
    inner_state: Any


class InjectStatefulHyperparamsState(NamedTuple):
    """The same, with the states of the schedules."""

    count: Any
    hyperparams: dict[str, Any]
    hyperparams_states: dict[str, Any]
    inner_state: Any


class WrappedScheduleState(NamedTuple):
    """The number of steps."""

    count: Any


class WrappedSchedule:
    """A schedule whose state is the number of steps.

    Example:
        >>> schedule = WrappedSchedule(lambda step: 0.1 * step)
        >>> state = schedule.update(schedule.init())
        >>> print(schedule(state))
        0.1
    """

    def __init__(self, schedule_fn: Schedule):
        self.schedule_fn = schedule_fn

    def init(self) -> WrappedScheduleState:
        """The state at the first step."""
        return WrappedScheduleState(jnp.zeros([], jnp.int32))

    def update(self, state: WrappedScheduleState, **extra_args: Any) -> WrappedScheduleState:
        """The state at the next step."""
        del extra_args
        return WrappedScheduleState(safe_increment(state.count))

    def __call__(self, state: WrappedScheduleState, **extra_args: Any) -> Any:
        """The value at this step."""
        del extra_args
        return self.schedule_fn(state.count)


def _as_float(x: Any, dtype: Any) -> Any:
    """Numbers without a type, as `dtype`; integers and typed arrays unchanged."""
    if isinstance(x, Array) and not getattr(x, "weak_type", False):
        return x
    if jnp.issubdtype(getattr(x, "dtype", type(x)), jnp.floating):
        return jnp.asarray(x, dtype=dtype)
    return x


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Keep the hyperparameters of an optimiser in its state.

    Numbers and schedules among the arguments become entries of `state.hyperparams`: the learning
    rate of a step can be read there, and another one written.

    Args:
        inner_factory: makes an optimiser, such as `adam`.
        static_args: names of arguments that stay outside, such as masks that are functions; those
          that are neither numbers nor functions, and `Paths`, do so by themselves.
        hyperparam_dtype: the type of the numbers; the highest of the parameters' by default.

    Returns:
        A function of the same arguments. Arguments that are functions are schedules of the step;
        objects with `init`, `update` and `__call__` have their own state (`StatefulSchedule`).

    Raises:
        ValueError: `static_args` names no argument of `inner_factory`.

    Example:
        >>> from namoo.optim import adam, linear_schedule
        >>> opt = inject_hyperparams(adam)(learning_rate=linear_schedule(1.0, 0.0, 10), b1=0.8)
        >>> params = jnp.array([1.0])
        >>> state = opt.init(params)
        >>> for _ in range(3):
        ...     updates, state = opt.update(params, state, params)
        >>> print(state.hyperparams["learning_rate"], state.hyperparams["b1"])
        0.8 0.8
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    if unknown := static - set(signature.parameters):
        raise ValueError(
            f"inject_hyperparams: static_args names {sorted(unknown)}, but the arguments are "
            f"{list(signature.parameters)}."
        )

    @functools.wraps(inner_factory)
    def injected(*args, **kwargs) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        schedules: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in static or isinstance(value, bool | Paths):
                others[name] = value
            elif isinstance(value, StatefulSchedule):
                schedules[name] = value
            elif callable(value):
                schedules[name] = WrappedSchedule(value)
            elif isinstance(value, int | float | Array | np.ndarray):
                numbers[name] = value
            else:
                others[name] = value

        def dtype_for(example):
            return (
                otu.tree_dtype(example, "highest") if hyperparam_dtype is None else hyperparam_dtype
            )

        def init(params):
            dtype = dtype_for(params)
            states = {name: s.init() for name, s in schedules.items()}
            values = {name: jnp.asarray(_as_float(v, dtype)) for name, v in numbers.items()}
            values |= {name: _as_float(s(states[name]), dtype) for name, s in schedules.items()}
            inner = inner_factory(**others, **values)
            return InjectStatefulHyperparamsState(
                jnp.zeros([], jnp.int32), values, states, inner.init(params)
            )

        def update(updates, state, params=None, **extra_args):
            dtype = dtype_for(params)
            before = state.hyperparams_states
            values = {name: _as_float(v, dtype) for name, v in state.hyperparams.items()}
            values |= {
                name: _as_float(s(before[name], **extra_args), dtype)
                for name, s in schedules.items()
            }
            states = {name: s.update(before[name], **extra_args) for name, s in schedules.items()}
            inner = with_extra_args_support(inner_factory(**others, **values))
            updates, inner_state = inner.update(updates, state.inner_state, params, **extra_args)
            return updates, InjectStatefulHyperparamsState(
                safe_increment(state.count), values, states, inner_state
            )

        return GradientTransformationExtraArgs(init, update)

    return injected


inject_stateful_hyperparams = inject_hyperparams
