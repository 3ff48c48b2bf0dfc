"""Splitting a tree by what its leaves are, and joining the parts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import _dtypes, tree
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.errors import boundary
from namoo.paths import Paths, paths

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
    """Tells whether a leaf is an array of namoo, a traced one included.

    >>> import numpy as np, namoo.numpy as jnp
    >>> is_array(jnp.ones(2)), is_array(np.ones(2)), is_array(1.0)
    (True, False, False)
    """
    return isinstance(x, Array)


def is_array_like(x: Any) -> bool:
    """Tells whether a leaf is an array of namoo or NumPy, or a Python number.

    >>> import numpy as np
    >>> is_array_like(np.ones(2)), is_array_like(1.0), is_array_like("a")
    (True, True, False)
    """
    return isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex))


def is_inexact_array(x: Any) -> bool:
    """Tells whether a leaf is an array of namoo with a floating or complex dtype: a parameter.

    >>> import namoo.numpy as jnp
    >>> is_inexact_array(jnp.ones(2)), is_inexact_array(jnp.arange(2))
    (True, False)
    """
    return isinstance(x, Array) and _is_inexact(x)


def is_inexact_array_like(x: Any) -> bool:
    """Tells whether a leaf is like an array, with a floating or complex dtype.

    >>> is_inexact_array_like(1.0), is_inexact_array_like(1)
    (True, False)
    """
    return is_array_like(x) and _is_inexact(x)


def _is_inexact(x: Any) -> bool:
    return _dtypes.issubdtype(aval_of(x).dtype, np.inexact)


Spec = Callable[[Any], bool] | Paths | str | Any


def _mask(of: Any, spec: Spec) -> Any:
    """A tree of booleans from a function of a leaf, a pattern, or a tree of booleans in front."""
    if isinstance(spec, Paths):
        return spec(of)
    if isinstance(spec, str):
        return paths(spec)(of)
    # A model may be callable and is a tree all the same.
    chosen = tree.broadcast(spec, of)
    return tree.map(lambda s, x: bool(s(x)) if callable(s) else bool(s), chosen, of)


@boundary
def filter(tree_: Any, spec: Spec, inverse: bool = False, replace: Any = None) -> Any:
    """Keeps the leaves that a predicate or a pattern chooses; the others become None.

    Args:
      tree_: a tree.
      spec: a function of a leaf, a pattern or `Paths`, or a tree of booleans (or functions) that
        may end before `tree_` does.
      inverse: keep the others instead.
      replace: what stands in the place of those that are not kept.

    Returns:
      A tree of the same nodes.

    >>> filter({"w": 1.0, "n": 3}, lambda x: isinstance(x, float))
    {'n': None, 'w': 1.0}
    """
    mask = _mask(tree_, spec)
    return tree.map(lambda m, x: x if m != inverse else replace, mask, tree_)


@boundary
def partition(tree_: Any, spec: Spec, replace: Any = None) -> tuple[Any, Any]:
    """Splits a tree in two by a predicate or a pattern.

    Args:
      tree_: a tree.
      spec: a function of a leaf, a pattern or `Paths`, or a tree of booleans (or functions) that
        may end before `tree_` does.
      replace: what stands in each part for the leaves of the other.

    Returns:
      `(chosen, rest)`; `combine` makes them one again.

    >>> partition({"w": 1.0, "n": 3}, "w")
    ({'n': None, 'w': 1.0}, {'n': 3, 'w': None})
    """
    mask = _mask(tree_, spec)
    chosen = tree.map(lambda m, x: x if m else replace, mask, tree_)
    return chosen, tree.map(lambda m, x: replace if m else x, mask, tree_)


@boundary
def combine(*trees: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Joins trees that `partition` or `filter` made: in each place, the first that is not None.

    Args:
      *trees: trees of the same nodes, with None where another has the leaf.
      is_leaf: takes each subtree of the first, from the root; True makes it a leaf.

    Returns:
      The tree.

    Raises:
      ValueError: if the trees have different nodes.

    >>> combine({"w": 1.0, "n": None}, {"w": None, "n": 3})
    {'n': 3, 'w': 1.0}
    """

    def stops(x: Any) -> bool:
        return x is None or (is_leaf is not None and is_leaf(x))

    return tree.map(lambda *xs: next((x for x in xs if x is not None), None), *trees, is_leaf=stops)
