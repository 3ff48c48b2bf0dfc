"""Parameters that do not move."""

from __future__ import annotations

from namoo import tree
from namoo.optim.base import GradientTransformation, MaskOrFn, set_to_zero
from namoo.optim.transforms.combining import partition
from namoo.optim.transforms.masking import masked, resolve_mask

__all__ = ["freeze", "selective_transform"]


def freeze(mask: MaskOrFn) -> GradientTransformation:
    """Do not move the parameters where a mask holds.

    Put it last in a `chain`: what comes after it can move them again.

    Args:
        mask: a tree of bools like the parameters, or a function that makes one.

    Example:
        >>> from namoo import numpy as jnp
        >>> tx = freeze({"w": False, "b": True})
        >>> params = {"w": jnp.ones(1), "b": jnp.ones(1)}
        >>> tx.update(params, tx.init(params))[0]
        {'b': Array([0.], dtype=float32), 'w': Array([1.], dtype=float32)}
    """
    return masked(set_to_zero(), mask)


def selective_transform(
    optimizer: GradientTransformation, *, freeze_mask: MaskOrFn
) -> GradientTransformation:
    """Apply an optimiser to the parameters that are not frozen, and keep no state for the others.

    Args:
        optimizer: a transformation.
        freeze_mask: a tree of bools like the parameters, or a function that makes one; True where
          the parameters stay unchanged.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import sgd
        >>> tx = selective_transform(sgd(0.1), freeze_mask={"w": False, "b": True})
        >>> params = {"w": jnp.ones(1), "b": jnp.ones(1)}
        >>> tx.update(params, tx.init(params))[0]
        {'b': Array([0.], dtype=float32), 'w': Array([-0.1], dtype=float32)}
    """

    def labels(params):
        frozen = resolve_mask(freeze_mask, params)
        return tree.map(lambda f: "freeze" if f else "train", frozen)

    return partition({"train": optimizer, "freeze": set_to_zero()}, labels)
