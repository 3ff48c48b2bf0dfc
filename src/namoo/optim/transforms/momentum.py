"""Memory of past updates: a decaying sum, a moving average."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformation, Updates, map_updates
from namoo.optim.numerics import safe_increment
from namoo.optim.tree_utils.casting import canonical

__all__ = ["ema", "EmaState", "trace", "TraceState"]


class TraceState(NamedTuple):
    """The decaying sum of past updates."""

    trace: Updates


def trace(
    decay: Any, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """A decaying sum of past updates: momentum.

        t ← g + decay·t
        u = t                   or, with `nesterov`,   u = g + decay·t

    Args:
        decay: decay rate of the sum.
        nesterov: use Nesterov momentum.
        accumulator_dtype: the type of the sum; that of the parameters by default.

    Example:
        >>> tx = trace(0.9)
        >>> state = tx.init(jnp.zeros(1))
        >>> for _ in range(3):
        ...     updates, state = tx.update(jnp.ones(1), state)
        >>> updates
        Array([2.71], dtype=float32)
    """
    accumulator_dtype = canonical(accumulator_dtype)

    def init(params):
        return TraceState(otu.tree_zeros_like(params, accumulator_dtype))

    def update(updates, state, params=None):
        del params
        total = map_updates(lambda g, t: g + decay * t, updates, state.trace)
        new = map_updates(lambda g, t: g + decay * t, updates, total) if nesterov else total
        return new, TraceState(otu.tree_cast(total, accumulator_dtype))

    return GradientTransformation(init, update)


class EmaState(NamedTuple):
    """The moving average of past updates."""

    count: Any
    ema: Updates


def ema(decay: Any, debias: bool = True, accumulator_dtype: Any = None) -> GradientTransformation:
    """An exponential moving average of past updates.

        m ← decay·m + (1 - decay)·g
        u = m / (1 - decayᵗ)    with `debias`, else   u = m

    Args:
        decay: decay rate of the average.
        debias: correct for the bias of its start at zero.
        accumulator_dtype: the type of the average; that of the parameters by default.

    Example:
        >>> tx = ema(0.9)
        >>> updates, state = tx.update(jnp.array([2.0]), tx.init(jnp.zeros(1)))
        >>> updates, state.ema
        (Array([1.9999995], dtype=float32), Array([0.2], dtype=float32))
    """
    accumulator_dtype = canonical(accumulator_dtype)

    def init(params):
        return EmaState(jnp.zeros([], jnp.int32), otu.tree_zeros_like(params, accumulator_dtype))

    def update(updates, state, params=None):
        del params
        average = otu.tree_update_moment(updates, state.ema, decay, 1)
        count = safe_increment(state.count)
        new = otu.tree_bias_correction(average, decay, count) if debias else average
        return new, EmaState(count, otu.tree_cast(average, accumulator_dtype))

    return GradientTransformation(init, update)
