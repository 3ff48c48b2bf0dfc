"""Measurements of the updates, kept in the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Updates,
    stateless,
    with_extra_args_support,
)
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.momentum import ema

__all__ = ["measure_with_ema", "monitor", "MonitorState", "snapshot", "SnapshotState"]


class SnapshotState(NamedTuple):
    """The last measurement, by its name."""

    measurement: dict[str, Any]


def snapshot(measure_name: str, measure: Callable[[Updates], Any]) -> GradientTransformation:
    """Keep a function of the updates in the state; the updates pass unchanged.

    Args:
        measure_name: its name, for `tree_get`.
        measure: the function.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import tree_utils
        >>> tx = snapshot("norm", tree_utils.tree_norm)
        >>> _, state = tx.update(jnp.array([3.0, 4.0]), tx.init(jnp.zeros(2)))
        >>> tree_utils.tree_get(state, "norm")
        Array(5., dtype=float32)
    """

    def init(params):
        return SnapshotState({measure_name: measure(params)})

    def update(updates, state, params=None):
        del state, params
        return updates, SnapshotState({measure_name: measure(updates)})

    return GradientTransformation(init, update)


class MonitorState(NamedTuple):
    """The last measurements by name, and the states of the measuring transformations."""

    measurements: dict[str, Any]
    measure_states: tuple[Any, ...]


def monitor(measures: dict[str, Any]) -> GradientTransformationExtraArgs:
    """Keep several measurements of the updates in the state; the updates pass unchanged.

    Args:
        measures: for each name a function of the updates, or a transformation whose updates are the
          measurement, such as `measure_with_ema`.

    Example:
        >>> from namoo import numpy as jnp
        >>> tx = monitor({"largest": lambda g: jnp.max(jnp.abs(g))})
        >>> _, state = tx.update(jnp.array([3.0, -4.0]), tx.init(jnp.zeros(2)))
        >>> state.measurements
        {'largest': Array(4., dtype=float32)}
    """

    def as_transform(measure):
        if callable(measure):
            return with_extra_args_support(stateless(lambda updates, _: measure(updates)))
        return with_extra_args_support(measure)

    transforms = {name: as_transform(measure) for name, measure in measures.items()}

    def init(params):
        return MonitorState({}, tuple(tx.init(params) for tx in transforms.values()))

    def update(updates, state, params=None, **extra_args):
        results = [
            tx.update(updates, part, params, **extra_args)
            for tx, part in zip(transforms.values(), state.measure_states, strict=True)
        ]
        measurements = {name: r[0] for name, r in zip(transforms, results, strict=True)}
        return updates, MonitorState(measurements, tuple(r[1] for r in results))

    return GradientTransformationExtraArgs(init, update)


def measure_with_ema(
    measure: Callable[[Updates], Any],
    decay: Any,
    debias: bool = True,
    accumulator_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """The moving average of a measurement, for `monitor`.

    Args:
        measure: a function of the updates.
        decay: decay rate of the average.
        debias: correct for the bias of its start at zero.
        accumulator_dtype: the type of the average.

    Example:
        >>> from namoo import numpy as jnp
        >>> tx = monitor({"mean": measure_with_ema(jnp.mean, 0.9)})
        >>> state = tx.init(jnp.zeros(2))
        >>> for g in [1.0, 2.0]:
        ...     _, state = tx.update(jnp.array([g, g]), state)
        >>> state.measurements["mean"]
        Array(1.5263153, dtype=float32)
    """
    average = ema(decay, debias, accumulator_dtype)
    of_measure = average._replace(init=lambda params: average.init(measure(params)))
    return chain(stateless(lambda updates, _: measure(updates)), of_measure)
