"""Split a tree by a property of its leaves, and join the parts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import tree
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.tree.paths import Paths, paths

__all__ = [
    "combine",
    "filter",
    "is_array",
    "is_array_like",
    "is_inexact_array",
    "is_inexact_array_like",
    "partition",
]


def is_array(x: Any) -> bool:
    """Return whether a leaf is an array of namoo, including tracers.

    Example:
        >>> import numpy as np, namoo.numpy as jnp
        >>> is_array(jnp.ones(2)), is_array(np.ones(2)), is_array(1.0)
        (True, False, False)
    """
    return isinstance(x, Array)


def is_array_like(x: Any) -> bool:
    """Return whether a leaf is an array of namoo or NumPy, or a Python number.

    Example:
        >>> import numpy as np
        >>> is_array_like(np.ones(2)), is_array_like(1.0), is_array_like("a")
        (True, True, False)
    """
    return isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex))


def is_inexact_array(x: Any) -> bool:
    """Return whether a leaf is an array of namoo with a floating-point or complex dtype.

    Example:
        >>> import namoo.numpy as jnp
        >>> is_inexact_array(jnp.ones(2)), is_inexact_array(jnp.arange(2))
        (True, False)
    """
    return isinstance(x, Array) and _is_inexact(x)


def is_inexact_array_like(x: Any) -> bool:
    """Return whether a leaf is array-like with a floating-point or complex dtype.

    Example:
        >>> is_inexact_array_like(1.0), is_inexact_array_like(1)
        (True, False)
    """
    return is_array_like(x) and _is_inexact(x)


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(aval_of(x).dtype, np.inexact)


Spec = Callable[[Any], bool] | Paths | str | Any


def _mask(of: Any, spec: Spec) -> Any:
    """Return a tree of booleans from a predicate, a pattern, or a prefix tree of booleans."""
    if isinstance(spec, Paths):
        return spec(of)
    if isinstance(spec, str):
        return paths(spec)(of)
    # A model may be callable, but it is a tree, not a predicate.
    chosen = tree.broadcast(spec, of)
    return tree.map(lambda s, x: bool(s(x)) if callable(s) else bool(s), chosen, of)


@entry_point
def filter(tree_: Any, spec: Spec, inverse: bool = False, replace: Any = None) -> Any:
    """Keep the leaves that a predicate or a pattern selects; replace the others by None.

    Args:
        tree_: a tree.
        spec: a function of a leaf, a pattern or `Paths`, or a tree of booleans (or functions) that
            may end before `tree_` does.
        inverse: keep the others instead.
        replace: the value that replaces the leaves that are not kept.

    Returns:
        A tree of the same nodes.

    Example:
        >>> filter({"w": 1.0, "n": 3}, lambda x: isinstance(x, float))
        {'n': None, 'w': 1.0}
    """
    mask = _mask(tree_, spec)
    return tree.map(lambda m, x: x if m != inverse else replace, mask, tree_)


@entry_point
def partition(tree_: Any, spec: Spec, replace: Any = None) -> tuple[Any, Any]:
    """Split a tree in two by a predicate or a pattern.

    Args:
        tree_: a tree.
        spec: a function of a leaf, a pattern or `Paths`, or a tree of booleans (or functions) that
            may end before `tree_` does.
        replace: the value that each part has instead of the other part's leaves.

    Returns:
        `(chosen, rest)`; `combine` is the inverse.

    Example:
        >>> partition({"w": 1.0, "n": 3}, "w")
        ({'n': None, 'w': 1.0}, {'n': 3, 'w': None})
    """
    mask = _mask(tree_, spec)
    chosen = tree.map(lambda m, x: x if m else replace, mask, tree_)
    return chosen, tree.map(lambda m, x: replace if m else x, mask, tree_)


@entry_point
def combine(*trees: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Join trees made by `partition` or `filter`: take the first leaf that is not None.

    Args:
        *trees: trees of the same nodes, with None where another has the leaf.
        is_leaf: takes each subtree of the first, from the root; True makes it a leaf.

    Returns:
        The tree.

    Raises:
        ValueError: if the trees have different nodes.

    Example:
        >>> combine({"w": 1.0, "n": None}, {"w": None, "n": 3})
        {'n': 3, 'w': 1.0}
    """

    def stops(x: Any) -> bool:
        return x is None or (is_leaf is not None and is_leaf(x))

    return tree.map(lambda *xs: next((x for x in xs if x is not None), None), *trees, is_leaf=stops)
