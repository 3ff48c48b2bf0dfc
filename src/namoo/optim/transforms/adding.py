"""Terms added to updates: weight decay, noise."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import dtypes, random
from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    EmptyState,
    GradientTransformation,
    MaskOrFn,
    ScalarOrSchedule,
    map_updates,
    require_params,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.masking import masked

__all__ = [
    "add_decayed_weights", "add_noise", "AddDecayedWeightsState", "AddNoiseState",
    "WeightDecaySchedule",
]  # fmt: skip

AddDecayedWeightsState = EmptyState


class WeightDecaySchedule(NamedTuple):
    """The number of steps, for a weight decay that follows a schedule."""

    count: Any


def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: MaskOrFn = None
) -> GradientTransformation:
    """Updates plus a fraction of the parameters.

        u = g + λ(t)·p

    Args:
        weight_decay: the factor λ, a number or a schedule.
        mask: where to add it: a tree of bools like the parameters, or a function that makes one.

    Example:
        >>> tx = add_decayed_weights(0.1, mask={"w": True, "b": False})
        >>> params = {"w": jnp.array([2.0]), "b": jnp.array([2.0])}
        >>> tx.update({"w": jnp.array([1.0]), "b": jnp.array([1.0])}, tx.init(params), params)[0]
        {'b': Array([1.], dtype=float32), 'w': Array([1.2], dtype=float32)}
    """

    def init(params):
        del params
        return (
            WeightDecaySchedule(jnp.zeros([], jnp.int32))
            if callable(weight_decay)
            else EmptyState()
        )

    def update(updates, state, params=None):
        require_params("add_decayed_weights", params)
        if isinstance(weight_decay, int | float) and weight_decay == 0.0:
            return updates, state
        factor = weight_decay
        if callable(weight_decay):
            factor = weight_decay(state.count)
            state = WeightDecaySchedule(safe_increment(state.count))
        return map_updates(lambda g, p: g + factor * p, updates, params), state

    tx = GradientTransformation(init, update)
    return tx if mask is None else masked(tx, mask)


class AddNoiseState(NamedTuple):
    """The number of steps, and the key of the next."""

    count: Any
    rng_key: Any


def as_key(key_or_seed: Any) -> Any:
    """A typed key from a key of either kind, or from an integer."""
    if hasattr(key_or_seed, "dtype"):
        if jnp.issubdtype(key_or_seed.dtype, dtypes.prng_key):
            return key_or_seed
        if jnp.ndim(key_or_seed):
            return random.wrap_key_data(key_or_seed)
    return random.key(key_or_seed)


def one_key(name: str, key: Any, seed: Any) -> Any:
    """The key of an optimiser that can be given as `key` or, in older code, as `seed`."""
    if key is not None and seed is not None:
        raise ValueError(f"{name}: give either `key` or `seed`, not both.")
    return next((k for k in (key, seed) if k is not None), 0)


def add_noise(
    eta: Any, gamma: Any, key: Any = None, *, seed: int | None = None
) -> GradientTransformation:
    """Normal noise of falling variance on the updates.

        u = g + ε,   ε ~ N(0, η / tᵞ)

    Args:
        eta: the variance at the first step.
        gamma: the exponent of its decay.
        key: a key or an integer; 0 by default.
        seed: another name of `key`.

    Example:
        >>> tx = add_noise(1.0, 0.55, key=0)
        >>> tx.update(jnp.zeros(2), tx.init(None))[0]
        Array([ 0.19890743, -0.77017707], dtype=float32)
    """
    first = one_key("add_noise", key, seed)

    def init(params):
        del params
        return AddNoiseState(jnp.zeros([], jnp.int32), as_key(first))

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        deviation = jnp.sqrt(eta / count**gamma)
        next_key, this_key = random.split(state.rng_key)
        noise = otu.tree_random_like(this_key, updates)
        new = map_updates(lambda g, n: g + deviation.astype(g.dtype) * n, updates, noise)
        return new, AddNoiseState(count, next_key)

    return GradientTransformation(init, update)
