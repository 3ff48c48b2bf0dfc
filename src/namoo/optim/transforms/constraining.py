"""Updates that keep the parameters in bounds, or themselves free of nan."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim.base import (
    EmptyState,
    GradientTransformation,
    init_empty_state,
    map_updates,
    require_params,
)

__all__ = ["keep_params_nonnegative", "NonNegativeParamsState", "zero_nans", "ZeroNansState"]

NonNegativeParamsState = EmptyState


def keep_params_nonnegative() -> GradientTransformation:
    """Updates after which no parameter is negative.

        u = max(g, -p)

    Put it last in a `chain`.

    Example:
        >>> tx = keep_params_nonnegative()
        >>> tx.update(jnp.array([-3.0, 1.0]), tx.init(None), jnp.array([2.0, 2.0]))[0]
        Array([-2.,  1.], dtype=float32)
    """

    def update(updates, state, params=None):
        require_params("keep_params_nonnegative", params)
        return map_updates(lambda g, p: jnp.where(p + g < 0.0, -p, g), updates, params), state

    return GradientTransformation(init_empty_state, update)


class ZeroNansState(NamedTuple):
    """For each array whether its last update held nan."""

    found_nan: Any


def zero_nans() -> GradientTransformation:
    """Updates with 0 instead of nan.

    Example:
        >>> tx = zero_nans()
        >>> tx.update(jnp.array([jnp.nan, 1.0]), tx.init(jnp.zeros(2)))
        (Array([0., 1.], dtype=float32), ZeroNansState(found_nan=Array(True, dtype=bool)))
    """

    def init(params):
        return ZeroNansState(tree.map(lambda p: jnp.array(False), params))

    def update(updates, state, params=None):
        del params, state
        found = tree.map(lambda g: jnp.any(jnp.isnan(g)), updates)
        new = tree.map(lambda g: jnp.where(jnp.isnan(g), jnp.zeros_like(g), g), updates)
        return new, ZeroNansState(found)

    return GradientTransformation(init, update)
