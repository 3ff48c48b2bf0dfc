"""All parameters as one vector, for transformations that are slow on many small arrays."""

from __future__ import annotations

import itertools
from typing import Any

from namoo import numpy as jnp
from namoo import tree
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)

__all__ = ["flatten"]


def _joined(values: Any) -> Any:
    return jnp.concatenate([jnp.reshape(x, [-1]) for x in tree.leaves(values)])


def _parted(vector: Any, example: Any) -> Any:
    leaves, structure = tree.flatten(example)
    ends = list(itertools.accumulate(jnp.size(x) for x in leaves))
    parts = jnp.split(vector, ends[:-1])
    shaped = [jnp.reshape(part, jnp.shape(x)) for part, x in zip(parts, leaves, strict=True)]
    return tree.unflatten(structure, shaped)


def flatten(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """Apply a transformation to all parameters as one vector.

    Transformations of whole arrays, such as `scale_by_trust_ratio`, see a single one.

    Example:
        >>> from namoo.optim import sgd
        >>> tx = flatten(sgd(1.0, momentum=0.9))
        >>> params = {"w": jnp.ones((1, 2)), "b": jnp.ones(1)}
        >>> updates, state = tx.update(params, tx.init(params), params)
        >>> updates["w"], state[0].trace
        (Array([[-1., -1.]], dtype=float32), Array([1., 1., 1.], dtype=float32))
    """
    inner = with_extra_args_support(inner)

    def init(params):
        return inner.init(_joined(params))

    def update(updates, state, params=None, **extra_args):
        flat = None if params is None else _joined(params)
        vector, state = inner.update(_joined(updates), state, flat, **extra_args)
        return _parted(vector, updates), state

    return GradientTransformationExtraArgs(init, update)
