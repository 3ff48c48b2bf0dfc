"""Functions on trees: nested containers with arrays, or anything else, at their leaves.

A node of a tree is a dict, list, tuple, named tuple, OrderedDict, defaultdict, None, or an
instance of a registered class; everything else is a leaf. The leaves of a dict are in the order of
its sorted keys. None is a node without children.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from namoo._lazy import lazy
from namoo._tree import fast
from namoo._tree.compare import broadcast_prefix, diff
from namoo._tree.diff import Difference, TreeMismatchError, mismatch
from namoo._tree.fast import flatten as _flatten
from namoo._tree.fast import flatten_with_path as _flatten_with_path
from namoo._tree.keys import KeyPath
from namoo._tree.structure import PyTreeDef
from namoo.errors import boundary

__all__ = [
    "Difference",
    "all",
    "broadcast",
    "diff",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

_UNSPECIFIED: Any = object()


class TreeTransposeError(TreeMismatchError, TypeError):
    """A tree to transpose does not have the outer structure composed with the inner."""


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Takes a tree apart into the list of its leaves and its structure.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      The leaves, and the structure, from which `unflatten` builds the tree again.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    >>> flatten({"b": [1, 2], "a": (3, None)})
    ([3, 1, 2], PyTreeDef({'a': (*, None), 'b': [*, *]}))
    """
    return _flatten(tree, is_leaf)


@boundary
def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Builds the tree of a structure with the given leaves.

    Args:
      treedef: a structure, from `flatten` or `structure`.
      leaves: as many objects as the structure has leaves.

    Returns:
      The tree.

    Raises:
      ValueError: if there are more leaves or fewer.

    >>> unflatten(structure({"a": (0, None), "b": [0, 0]}), [3, 1, 2])
    {'a': (3, None), 'b': [1, 2]}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Lists the leaves of a tree.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      The leaves.

    >>> leaves({"b": [1, 2], "a": (3, None)})
    [3, 1, 2]
    """
    return fast.leaves(tree, is_leaf)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Returns the structure of a tree: what remains without the leaves.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      The structure; equal, and of equal hash, for every tree that differs only in its leaves.

    >>> structure({"b": [1, 2], "a": (3, None)})
    PyTreeDef({'a': (*, None), 'b': [*, *]})
    """
    return _flatten(tree, is_leaf)[1]


@boundary
def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Applies a function to every leaf, and to the leaves of other trees in the same places.

    Args:
      f: takes a leaf of `tree`, and what each tree of `rest` has in its place.
      tree: a tree.
      *rest: trees with the nodes of `tree`; where `tree` has a leaf, they may have subtrees.
      is_leaf: takes each subtree of `tree`, from the root; True makes it a leaf.

    Returns:
      The tree of the structure of `tree` that has the results for leaves.

    Raises:
      ValueError: if a tree of `rest` has other nodes. Its `differences` lists where.

    >>> map(lambda w, g: w - g, {"w": [5, 6], "b": 7}, {"w": [1, 2], "b": 3})
    {'b': 4, 'w': [4, 4]}
    """
    result = fast.map(f, tree, rest, is_leaf)
    if result is fast.MISMATCH:
        _columns("map", structure(tree, is_leaf), rest)  # tells where
    return result


def _columns(name: str, treedef: PyTreeDef, rest: tuple[Any, ...]) -> list[list[Any]]:
    """What the other trees of a map have in the places of the first one's leaves."""
    columns = []
    for i, other in enumerate(rest):
        subtrees = treedef.subtrees_of(other)
        if subtrees is None:
            which = "the second tree" if len(rest) == 1 else f"rest[{i}]"
            raise mismatch(
                f"tree.{name}: {which} does not have the structure of the first",
                diff(treedef, other, prefix="expected"),
                name="tree_map tree",
            )
        columns.append(subtrees)
    return columns


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Folds the leaves of a tree from the first to the last.

    Args:
      function: takes the value so far and a leaf, returns the next value.
      tree: a tree.
      initializer: the value to start from; the first leaf, if not given.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      The last value.

    Raises:
      TypeError: if there are no leaves and no initializer.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 10)
    16
    """
    if initializer is _UNSPECIFIED:
        return functools.reduce(function, leaves(tree, is_leaf))
    return functools.reduce(function, leaves(tree, is_leaf), initializer)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combines the leaves of a tree in pairs, as a balanced tree of depth log2 of their number.

    Args:
      operation: an associative function of two values.
      tree: a tree.
      identity: the result where there are no leaves.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      The combination of all leaves, in their order.

    Raises:
      TypeError: if there are no leaves and no identity.

    >>> reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """

    def combine(values):
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        return operation(combine(values[:half]), combine(values[half:]))

    values = leaves(tree, is_leaf)
    if values:
        return combine(values)
    if identity is _UNSPECIFIED:
        raise TypeError("reduce_associative of a tree without leaves needs an identity")
    return identity


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Tells whether every leaf is true.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
      False if a leaf is false; True if there is none.

    >>> all({"a": True, "b": [1, 0]})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


@boundary
def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turns a tree of trees inside out.

    Args:
      outer_treedef: the structure from the root.
      inner_treedef: the structure of every subtree in the places of its leaves; found in the first
        such subtree, if None.
      pytree_to_transpose: a tree of the structure `outer_treedef.compose(inner_treedef)`.

    Returns:
      The tree of the structure `inner_treedef.compose(outer_treedef)` with the same leaves.

    Raises:
      TypeError: if the tree does not have as many leaves as the two structures together.

    >>> transpose(structure([0, 0]), None, [{"x": 1, "y": 2}, {"x": 3, "y": 4}])
    {'x': [1, 3], 'y': [2, 4]}
    """
    flat, treedef = _flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise IndexError(
                "tree.transpose: the outer structure has no leaf, so there is no subtree that "
                "shows the inner structure; give inner_treedef"
            )
        inner_treedef = structure(subtrees[0])
    inner, outer = inner_treedef.num_leaves, outer_treedef.num_leaves
    if len(flat) != inner * outer:
        expected = outer_treedef.compose(inner_treedef)
        raise mismatch(
            "tree.transpose: Mismatch of the tree and the outer structure composed with the inner",
            diff(expected, treedef),
            TreeTransposeError,
        )
    return inner_treedef.unflatten([outer_treedef.unflatten(flat[i::inner]) for i in range(inner)])


@boundary
def broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Repeats each leaf of a prefix for every leaf that a full tree has in its place.

    Args:
      prefix_tree: a tree with the nodes of `full_tree` that may end before it.
      full_tree: a tree.
      is_leaf: takes each subtree of `prefix_tree`, from the root; True makes it a leaf.

    Returns:
      The tree of the structure of `full_tree` whose leaves are those of `prefix_tree`.

    Raises:
      ValueError: if `prefix_tree` is not a prefix. Its `differences` lists where.

    >>> broadcast({"a": 0, "b": 1}, {"a": [7, 8], "b": {"c": 9}})
    {'a': [0, 0], 'b': {'c': 1}}
    """
    treedef = structure(full_tree)
    title = "tree.broadcast: prefix_tree is not a prefix of full_tree"
    return treedef.unflatten(broadcast_prefix(prefix_tree, treedef, is_leaf, title=title))


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Takes a tree apart into the list of its leaves, each with its path, and its structure.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
      The pairs of key path and leaf, and the structure.

    >>> flatten_with_path({"a": [1]})
    ([((DictKey(key='a'), SequenceKey(idx=0)), 1)], PyTreeDef({'a': [*]}))
    """
    return _flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Lists the leaves of a tree, each with its path.

    Args:
      tree: a tree.
      is_leaf: takes each subtree, from the root; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
      The pairs of key path and leaf.

    >>> leaves_with_path({"a": [1]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return _flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@boundary
def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies a function to every leaf and its path, as `map` does.

    Args:
      f: takes the path of a leaf, the leaf, and what each tree of `rest` has in its place.
      tree: a tree.
      *rest: trees with the nodes of `tree`.
      is_leaf: takes each subtree of `tree`, from the root; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
      The tree of the structure of `tree` that has the results for leaves.

    Raises:
      ValueError: if a tree of `rest` has other nodes. Its `differences` lists where.

    >>> from namoo.tree_util import keystr
    >>> map_with_path(lambda path, x: f"{keystr(path)} = {x}", {"a": [1, 2]})
    {'a': ["['a'][0] = 1", "['a'][1] = 2"]}
    """
    pairs, treedef = _flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _columns("map_with_path", treedef, rest)
    return treedef.unflatten(
        [f(path, leaf, *row) for (path, leaf), *row in zip(pairs, *columns, strict=True)]
    )


# A type checker lets `dataclasses.field` stand for a value of any type, and only that.
if TYPE_CHECKING:
    from dataclasses import field as static
else:

    def static(**kwargs):
        """Declares a field of a dataclass to be static: part of the structure, not a leaf.

        Args:
          **kwargs: what `dataclasses.field` takes.

        Returns:
          The field, with `static=True` in its metadata, which `tree_util.register_dataclass` reads.

        >>> from dataclasses import dataclass
        >>> from namoo.tree_util import register_dataclass
        >>> @register_dataclass
        ... @dataclass
        ... class Scale:
        ...     factor: float
        ...     axis: int = static(default=0)
        >>> flatten(Scale(2.0, axis=1))
        ([2.0], PyTreeDef(CustomNode(Scale[(1,)], [*])))
        """
        import dataclasses  # loaded by whoever has one

        metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
        return dataclasses.field(metadata=metadata, **kwargs)


# Functions of trees of arrays are written on the rows below; they arrive when they are first used.
_TABLE = {
    "_module.update": "at",
    "_trees": (
        "add allclose cast count full_like global_norm nbytes ones_like random_like scale sub "
        "summary vdot zeros_like"
    ),
}

__getattr__, __dir__ = lazy(__name__, _TABLE)
