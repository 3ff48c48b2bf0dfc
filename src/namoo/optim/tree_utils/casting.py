"""Types of trees."""

from __future__ import annotations

import functools
from typing import Any

from namoo import numpy as jnp
from namoo import tree, tree_util
from namoo.dtypes import canonicalize_dtype

__all__ = ["tree_cast", "tree_cast_like", "tree_dtype"]

Tree = Any


def canonical(dtype: Any) -> Any:
    """The type that arrays of `dtype` have; None stays None."""
    return None if dtype is None else canonicalize_dtype(dtype)


def tree_cast(tree_: Tree, dtype: Any) -> Tree:
    """Every leaf as `dtype`; the tree itself if that is None.

    Example:
        >>> tree_cast([jnp.ones(1)], jnp.float16)
        [Array([1.], dtype=float16)]
    """
    return tree_ if dtype is None else tree.map(lambda x: x.astype(dtype), tree_)


def tree_cast_like(tree_: Tree, other_tree: Tree) -> Tree:
    """Every leaf in the type of its counterpart.

    Example:
        >>> tree_cast_like([jnp.ones(1)], [jnp.ones(1, jnp.int32)])
        [Array([1], dtype=int32)]
    """
    return tree.map(
        lambda x, o: jnp.asarray(x).astype(o.dtype) if hasattr(o, "dtype") else x, tree_, other_tree
    )


def _lower(a, b):
    both = jnp.promote_types(a, b)
    if both == a:
        return b
    if both == b:
        return a
    raise ValueError(f"tree_dtype: neither {a} nor {b} can be promoted to the other.")


def tree_dtype(tree_: Tree, mixed_dtype_handler: str | None = None) -> Any:
    """The type of a tree's leaves.

    Args:
        tree_: a tree of arrays.
        mixed_dtype_handler: the result for leaves of several types: None raises, 'promote' the type
          they promote to, 'highest' and 'lowest' the last and first of them in promotion.

    Example:
        >>> tree_dtype([jnp.ones(1), jnp.ones(1, jnp.float16)], "lowest")
        dtype('float16')
    """
    dtypes = [jnp.asarray(x).dtype for x in tree.leaves(tree_)]
    if not dtypes:
        return jnp.asarray([]).dtype
    if mixed_dtype_handler is None:
        for path, leaf in tree.leaves_with_path(tree_):
            if jnp.asarray(leaf).dtype != dtypes[0]:
                raise ValueError(
                    f"tree_dtype: expected {dtypes[0]} at every leaf, but "
                    f"{tree_util.keystr(path)} has {jnp.asarray(leaf).dtype}. Say which is wanted "
                    "with mixed_dtype_handler='promote', 'highest' or 'lowest'."
                )
        return dtypes[0]
    choices = {
        "promote": jnp.promote_types,
        "highest": lambda a, b: b if _lower(a, b) == a else a,
        "lowest": _lower,
    }
    if mixed_dtype_handler not in choices:
        raise ValueError(
            f"tree_dtype: mixed_dtype_handler must be None or one of {list(choices)}, "
            f"got {mixed_dtype_handler!r}."
        )
    return functools.reduce(choices[mixed_dtype_handler], dtypes)
