"""`namoo.custom_batching`: functions that say themselves how they are mapped over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import tree_util
from namoo.control.loops import map as map_slices
from namoo.transforms.vmap_rule import custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
__dir__ = __all__.copy


def sequential_vmap(f: Callable) -> custom_vmap:
    """Make `vmap` of a function run it on one example after another.

    Args:
        f: a function of trees of arrays.

    Returns:
        the same function, which `vmap` turns into `lax.map`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> square = sequential_vmap(lambda x: x**2)
        >>> namoo.vmap(square)(jnp.arange(3))
        Array([0, 1, 4], dtype=int32)
    """
    out = custom_vmap(f)

    @out.def_vmap
    def rule(axis_size: int, in_batched: list, *args: Any):
        flags, tree = tree_util.tree_flatten(in_batched)
        leaves = tree_util.tree_leaves(args)

        def one(mapped):
            slices = iter(mapped)
            own = [next(slices) if b else x for x, b in zip(leaves, flags, strict=True)]
            return out(*tree.unflatten(own))

        result = map_slices(one, [x for x, b in zip(leaves, flags, strict=True) if b])
        return result, tree_util.tree_map(lambda _: True, result)

    return out
