"""Random trees: one key, split over the leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import dtypes, random, tree
from namoo import numpy as jnp

__all__ = ["tree_random_like", "tree_split_key_like", "tree_unwrap_random_key_data"]

Tree = Any


def tree_split_key_like(rng_key: Any, target_tree: Tree) -> Tree:
    """A tree of keys, one for each leaf of the target.

    Example:
        >>> keys = tree_split_key_like(random.key(0), {"a": 1, "b": 2})
        >>> sorted(keys)
        ['a', 'b']
    """
    structure = tree.structure(target_tree)
    return tree.unflatten(structure, list(random.split(rng_key, structure.num_leaves)))


def tree_random_like(
    rng_key: Any,
    target_tree: Tree,
    sampler: Callable[..., Any] = random.normal,
    dtype: Any = None,
) -> Tree:
    """A tree of random arrays with the shapes and types of the target.

    Args:
        rng_key: a key.
        target_tree: a tree of arrays.
        sampler: a function `(key, shape, dtype)`, such as those of `namoo.random`.
        dtype: the type of all leaves, instead of the target's.

    Example:
        >>> tree_random_like(random.key(0), {"a": jnp.zeros(2)})
        {'a': Array([ 1.0040143, -0.9063372], dtype=float32)}
    """
    keys = tree_split_key_like(rng_key, target_tree)
    return tree.map(
        lambda leaf, key: sampler(key, jnp.shape(leaf), dtype or jnp.asarray(leaf).dtype),
        target_tree,
        keys,
    )


def tree_unwrap_random_key_data(input_tree: Tree) -> Tree:
    """The tree with its keys replaced by their bits, as for comparing or saving.

    Example:
        >>> tree_unwrap_random_key_data([random.key(0), 1.0])
        [Array([0, 0], dtype=uint32), 1.0]
    """

    def unwrap(x):
        if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, dtypes.prng_key):
            return random.key_data(x)
        return x

    return tree.map(unwrap, input_tree)
