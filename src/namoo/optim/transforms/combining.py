"""Several transformations as one: after each other, or each for its own group of parameters."""

from __future__ import annotations

import collections
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from namoo import tree
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from namoo.optim.transforms.masking import masked

__all__ = [
    "chain", "multi_transform", "MultiTransformState", "named_chain", "partition",
    "PartitionState",
]  # fmt: skip


def chain(*args: Any) -> GradientTransformationExtraArgs:
    """Apply transformations one after the other.

    Args:
        *args: transformations; the updates of each go to the next.

    Returns:
        a transformation whose state is the tuple of their states. Extra keyword arguments of
        `update` go to all that take them.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import clip, scale
        >>> tx = chain(clip(1.0), scale(-0.1))
        >>> updates, state = tx.update(jnp.array([5.0, 0.5]), tx.init(None))
        >>> updates
        Array([-0.1 , -0.05], dtype=float32)
    """
    transforms = [with_extra_args_support(tx) for tx in args]

    def init(params):
        return tuple(tx.init(params) for tx in transforms)

    def update(updates, state, params=None, **extra_args):
        if len(state) != len(transforms):
            raise ValueError(
                f"chain: there are {len(transforms)} transformations, but the state has "
                f"{len(state)} parts. Make the state with this chain's own `init`."
            )
        new_state = []
        for tx, part in zip(transforms, state, strict=True):
            updates, part = tx.update(updates, part, params, **extra_args)
            new_state.append(part)
        return updates, tuple(new_state)

    return GradientTransformationExtraArgs(init, update)


def named_chain(*args: tuple[str, Any]) -> GradientTransformationExtraArgs:
    """Apply transformations one after the other, with a state that is read by name.

    Args:
        *args: pairs of a name and a transformation.

    Returns:
        a transformation whose state is a dict of their states.

    Raises:
        ValueError: two have the same name.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import scale, trace
        >>> tx = named_chain(("momentum", trace(0.9)), ("rate", scale(-0.1)))
        >>> tx.init(jnp.zeros(2))["momentum"]
        TraceState(trace=Array([0., 0.], dtype=float32))
    """
    names = [name for name, _ in args]
    if len(set(names)) != len(names):
        raise ValueError(f"named_chain: every name may occur only once, got {names}.")
    transforms = [(name, with_extra_args_support(tx)) for name, tx in args]

    def init(params):
        return collections.OrderedDict((name, tx.init(params)) for name, tx in transforms)

    def update(updates, state, params=None, **extra_args):
        new_state = collections.OrderedDict()
        for name, tx in transforms:
            updates, new_state[name] = tx.update(updates, state[name], params, **extra_args)
        return updates, new_state

    return GradientTransformationExtraArgs(init, update)


class PartitionState(NamedTuple):
    """The states of the groups, by label."""

    inner_states: Mapping[Hashable, Any]


MultiTransformState = PartitionState


def partition(
    transforms: Mapping[Hashable, GradientTransformation],
    param_labels: Any,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Transform each group of parameters in its own way.

    Args:
        transforms: for each label its transformation.
        param_labels: a tree of labels like the parameters (or a prefix of it), or a function of the
          parameters that returns one.
        mask_compatible_extra_args: give each group only its part of those extra arguments of
          `update` that are trees like the updates.

    Raises:
        ValueError: (by `init`) a label has no transformation.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import scale, set_to_zero
        >>> parts = {"fast": scale(-1.0), "frozen": set_to_zero()}
        >>> tx = partition(parts, {"w": "fast", "b": "frozen"})
        >>> params = {"w": jnp.ones(1), "b": jnp.ones(1)}
        >>> tx.update(params, tx.init(params))[0]
        {'b': Array([0.], dtype=float32), 'w': Array([-1.], dtype=float32)}
    """
    transforms = {label: with_extra_args_support(tx) for label, tx in transforms.items()}

    def groups(labels):
        for label, tx in transforms.items():
            mask = tree.map(lambda found, label=label: found == label, labels)
            yield (
                label,
                masked(tx, mask, mask_compatible_extra_args=mask_compatible_extra_args),
            )

    def labels_of(example):
        return param_labels(example) if callable(param_labels) else param_labels

    def init(params):
        labels = labels_of(params)
        if unknown := set(tree.leaves(labels)) - set(transforms):
            raise ValueError(
                f"partition: no transformation for the labels {sorted(map(repr, unknown))}; there "
                f"are transformations for {sorted(map(repr, transforms))}."
            )
        return PartitionState({label: tx.init(params) for label, tx in groups(labels)})

    def update(updates, state, params=None, **extra_args):
        inner_states = {}
        for label, tx in groups(labels_of(updates)):
            updates, inner_states[label] = tx.update(
                updates, state.inner_states[label], params, **extra_args
            )
        return updates, PartitionState(inner_states)

    return GradientTransformationExtraArgs(init, update)


multi_transform = partition
