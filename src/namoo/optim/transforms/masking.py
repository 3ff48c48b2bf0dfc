"""Transformations of some of the parameters: masks."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import tree
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    with_extra_args_support,
)
from namoo.optim.tree_utils.state_utils import ParamsPlaceholder

__all__ = ["masked", "MaskedNode", "MaskedState"]


class MaskedState(NamedTuple):
    """The state of the transformation inside the mask."""

    inner_state: Any


class MaskedNode(NamedTuple):
    """Placeholder in a tree for masked leaves: a node without leaves."""


def resolve_mask(mask: MaskOrFn, example: Any) -> Any:
    """The tree of bools of a mask: the mask itself, or its result for the example."""
    # A model whose leaves are bools is a tree, also where the model can be called.
    leaves = tree.leaves(mask)
    is_function = bool(leaves) and all(callable(leaf) for leaf in leaves)
    return mask(example) if is_function else mask


def masked(
    inner: GradientTransformation, mask: MaskOrFn, *, mask_compatible_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Apply a transformation where a mask holds; other updates pass unchanged.

    Args:
        inner: a transformation.
        mask: a tree of bools like the parameters (or a prefix of it), or a function that makes one
          from the parameters, and from the updates.
        mask_compatible_extra_args: mask those extra arguments of `update` that are trees like the
          updates as well.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import scale
        >>> tx = masked(scale(10.0), {"w": True, "b": False})
        >>> params = {"w": jnp.ones(1), "b": jnp.ones(1)}
        >>> tx.update(params, tx.init(params))[0]
        {'b': Array([1.], dtype=float32), 'w': Array([10.], dtype=float32)}
    """
    inner = with_extra_args_support(inner)

    def hide(values, kept):
        return tree.map(lambda keep, value: value if keep else MaskedNode(), kept, values)

    def init(params):
        if isinstance(params, ParamsPlaceholder):
            return MaskedState(inner.init(params))
        return MaskedState(inner.init(hide(params, resolve_mask(mask, params))))

    def update(updates, state, params=None, **extra_args):
        kept = resolve_mask(mask, updates)
        if mask_compatible_extra_args:
            structure = tree.structure(updates)
            extra_args = {
                name: hide(value, kept) if tree.structure(value) == structure else value
                for name, value in extra_args.items()
            }
        new, inner_state = inner.update(
            hide(updates, kept),
            state.inner_state,
            None if params is None else hide(params, kept),
            **extra_args,
        )
        new = tree.map(lambda keep, n, old: n if keep else old, kept, new, updates)
        return new, MaskedState(inner_state)

    return GradientTransformationExtraArgs(init, update)
