"""Gradients that keep the examples they come from private."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import random, tree
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    ScalarOrSchedule,
    identity,
)
from namoo.optim.transforms.adding import as_key, one_key
from namoo.optim.transforms.clipping import per_example_global_norm_clip
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.momentum import trace
from namoo.optim.transforms.scaling import scale_by_learning_rate

__all__ = ["differentially_private_aggregate", "DifferentiallyPrivateAggregateState", "dpsgd"]


class DifferentiallyPrivateAggregateState(NamedTuple):
    """The key of the next step."""

    rng_key: Any


def differentially_private_aggregate(
    l2_norm_clip: Any, noise_multiplier: Any, key: Any = None, *, seed: int | None = None
) -> GradientTransformation:
    """The mean of clipped gradients with noise.

        u = (Σ clip(gᵢ) + ε) / n,   ε ~ N(0, (clip·multiplier)²)

    Unlike others it takes gradients of each example, along the first axis: put it first.

    Args:
        l2_norm_clip: the largest norm of one example's gradient.
        noise_multiplier: the noise's standard deviation over that norm.
        key: a key or an integer; 0 by default.
        seed: another name of `key`.

    Example:
        >>> from namoo import numpy as jnp
        >>> tx = differentially_private_aggregate(1.0, 0.0, key=0)
        >>> tx.update(jnp.array([[3.0], [0.5]]), tx.init(jnp.zeros(1)))[0]
        Array([0.75], dtype=float32)
    """
    first = as_key(one_key("differentially_private_aggregate", key, seed))
    deviation = l2_norm_clip * noise_multiplier

    def init(params):
        del params
        return DifferentiallyPrivateAggregateState(first)

    def update(updates, state, params=None):
        del params
        leaves, structure = tree.flatten(updates)
        examples = leaves[0].shape[0]
        totals, _ = per_example_global_norm_clip(leaves, l2_norm_clip)
        next_key, *keys = random.split(state.rng_key, len(leaves) + 1)
        new = [
            (g + deviation * random.normal(k, g.shape, g.dtype)) / examples
            for g, k in zip(totals, keys, strict=True)
        ]
        return tree.unflatten(structure, new), DifferentiallyPrivateAggregateState(next_key)

    return GradientTransformation(init, update)


def dpsgd(
    learning_rate: ScalarOrSchedule,
    l2_norm_clip: Any,
    noise_multiplier: Any,
    seed: Any,
    momentum: Any = None,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Gradient descent that keeps examples private; see `differentially_private_aggregate`.

    Example:
        >>> from namoo import numpy as jnp
        >>> opt = dpsgd(0.1, 1.0, 0.0, seed=0)
        >>> opt.update(jnp.array([[3.0], [0.5]]), opt.init(jnp.zeros(1)))[0]
        Array([-0.075], dtype=float32)
    """
    return chain(
        differentially_private_aggregate(l2_norm_clip, noise_multiplier, seed),
        identity() if momentum is None else trace(momentum, nesterov),
        scale_by_learning_rate(learning_rate),
    )
