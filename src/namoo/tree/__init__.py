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

from namoo._base.lazy import lazy
from namoo._base.source_context import entry_point, hide_internal_frames
from namoo.tree import fast
from namoo.tree.compare import broadcast_prefix, diff
from namoo.tree.difference import Difference, TreeMismatchError, mismatch
from namoo.tree.fast import flatten as _flatten
from namoo.tree.fast import flatten_with_path as _flatten_with_path
from namoo.tree.keys import KeyPath
from namoo.tree.treedef import PyTreeDef

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
    """Split a tree into the list of its leaves and its structure.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        The leaves, and the structure, from which `unflatten` builds the tree again.

    Raises:
        ValueError: if the keys of a dict cannot be sorted.

    Example:
        >>> flatten({"b": [1, 2], "a": (3, None)})
        ([3, 1, 2], PyTreeDef({'a': (*, None), 'b': [*, *]}))
    """
    try:  # `flatten` and `leaves` are called too often to be wrapped as entry points
        return _flatten(tree, is_leaf)
    except Exception as error:
        hide_internal_frames(error)
        raise


@entry_point
def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build the tree of a structure with the given leaves.

    Args:
        treedef: a structure, from `flatten` or `structure`.
        leaves: as many objects as the structure has leaves.

    Returns:
        The tree.

    Raises:
        ValueError: if the number of leaves differs.

    Example:
        >>> unflatten(structure({"a": (0, None), "b": [0, 0]}), [3, 1, 2])
        {'a': (3, None), 'b': [1, 2]}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """List the leaves of a tree.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        The leaves.

    Example:
        >>> leaves({"b": [1, 2], "a": (3, None)})
        [3, 1, 2]
    """
    try:
        return fast.leaves(tree, is_leaf)
    except Exception as error:
        hide_internal_frames(error)
        raise


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of a tree: the tree without its leaves.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        The structure; equal, and of equal hash, for every tree that differs only in its leaves.

    Example:
        >>> structure({"b": [1, 2], "a": (3, None)})
        PyTreeDef({'a': (*, None), 'b': [*, *]})
    """
    return flatten(tree, is_leaf)[1]


@entry_point
def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Apply a function to every leaf, and to the corresponding leaves of other trees.

    Args:
        f: takes a leaf of `tree`, and the subtree of each tree in `rest` at the same position.
        tree: a tree.
        *rest: trees with the nodes of `tree`; where `tree` has a leaf, they may have subtrees.
        is_leaf: takes each subtree of `tree`, from the root; True makes it a leaf.

    Returns:
        A tree of the same structure as `tree`, with the results as leaves.

    Raises:
        ValueError: if the nodes of a tree in `rest` differ. Its `differences` lists where.

    Example:
        >>> map(lambda w, g: w - g, {"w": [5, 6], "b": 7}, {"w": [1, 2], "b": 3})
        {'b': 4, 'w': [4, 4]}
    """
    result = fast.map(f, tree, rest, is_leaf)
    if result is fast.MISMATCH:
        _columns("map", structure(tree, is_leaf), rest)  # raises an error that says where
    return result


def _columns(name: str, treedef: PyTreeDef, rest: tuple[Any, ...]) -> list[list[Any]]:
    """Return the subtrees of the other trees of a map at the first tree's leaves."""
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


@entry_point
def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Fold the leaves of a tree from the first to the last.

    Args:
        function: takes the value so far and a leaf, returns the next value.
        tree: a tree.
        initializer: the value to start from; the first leaf, if not given.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        The last value.

    Raises:
        TypeError: if there are no leaves and no initializer.

    Example:
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
    """Combine the leaves of a tree in pairs, as a balanced tree of depth log2 of their number.

    Args:
        operation: an associative function of two values.
        tree: a tree.
        identity: the result where there are no leaves.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        The combination of all leaves, in their order.

    Raises:
        TypeError: if there are no leaves and no identity.

    Example:
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
    """Return whether every leaf is true.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.

    Returns:
        False if a leaf is false; True if there is none.

    Example:
        >>> all({"a": True, "b": [1, 0]})
        False
    """
    return builtins.all(leaves(tree, is_leaf))


@entry_point
def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Exchange the outer and the inner structure of a tree of trees.

    Args:
        outer_treedef: the structure from the root.
        inner_treedef: the structure of every subtree at the leaves of the outer structure. If None,
            it is taken from the first such subtree.
        pytree_to_transpose: a tree of the structure `outer_treedef.compose(inner_treedef)`.

    Returns:
        The tree of the structure `inner_treedef.compose(outer_treedef)` with the same leaves.

    Raises:
        TypeError: if the tree does not have as many leaves as the two structures together.

    Example:
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


@entry_point
def broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Repeat each leaf of a prefix for every leaf that the full tree has below it.

    Args:
        prefix_tree: a tree with the nodes of `full_tree` that may end before it.
        full_tree: a tree.
        is_leaf: takes each subtree of `prefix_tree`, from the root; True makes it a leaf.

    Returns:
        A tree of the same structure as `full_tree`, whose leaves are those of `prefix_tree`.

    Raises:
        ValueError: if `prefix_tree` is not a prefix. Its `differences` lists where.

    Example:
        >>> broadcast({"a": 0, "b": 1}, {"a": [7, 8], "b": {"c": 9}})
        {'a': [0, 0], 'b': {'c': 1}}
    """
    treedef = structure(full_tree)
    title = "tree.broadcast: prefix_tree is not a prefix of full_tree"
    return treedef.unflatten(broadcast_prefix(prefix_tree, treedef, is_leaf, title=title))


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Split a tree into the list of its leaves, each with its path, and its structure.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.
        is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
        The pairs of key path and leaf, and the structure.

    Example:
        >>> flatten_with_path({"a": [1]})
        ([((DictKey(key='a'), SequenceKey(idx=0)), 1)], PyTreeDef({'a': [*]}))
    """
    return _flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """List the leaves of a tree, each with its path.

    Args:
        tree: a tree.
        is_leaf: takes each subtree, from the root; True makes it a leaf.
        is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
        The pairs of key path and leaf.

    Example:
        >>> leaves_with_path({"a": [1]})
        [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return _flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@entry_point
def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to every leaf and its path; otherwise like `map`.

    Args:
        f: takes the path of a leaf, the leaf, and the subtree of each tree in `rest` at the same
            position.
        tree: a tree.
        *rest: trees with the nodes of `tree`.
        is_leaf: takes each subtree of `tree`, from the root; True makes it a leaf.
        is_leaf_takes_path: call `is_leaf` with the path and the subtree.

    Returns:
        A tree of the same structure as `tree`, with the results as leaves.

    Raises:
        ValueError: if the nodes of a tree in `rest` differ. Its `differences` lists where.

    Example:
        >>> from namoo.tree_util import keystr
        >>> map_with_path(lambda path, x: f"{keystr(path)} = {x}", {"a": [1, 2]})
        {'a': ["['a'][0] = 1", "['a'][1] = 2"]}
    """
    pairs, treedef = _flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _columns("map_with_path", treedef, rest)
    return treedef.unflatten(
        [f(path, leaf, *row) for (path, leaf), *row in zip(pairs, *columns, strict=True)]
    )


# Type checkers accept `dataclasses.field` itself, but no wrapper of it, as a value of any type.
if TYPE_CHECKING:
    from dataclasses import field as static
else:

    def static(**kwargs):
        """Declare a field of a dataclass to be static: part of the structure, not a leaf.

        Args:
            **kwargs: what `dataclasses.field` takes.

        Returns:
            The field, with `static=True` in its metadata, which `tree_util.register_dataclass`
            reads.

        Example:
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
        import dataclasses  # already loaded where a dataclass exists

        metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
        return dataclasses.field(metadata=metadata, **kwargs)


# Functions of trees of arrays need modules that import this one, so they are loaded on first use.
_TABLE = {
    "module.update": "at",
    "tree.arithmetic": (
        "add allclose cast count full_like global_norm nbytes ones_like random_like scale sub "
        "summary vdot zeros_like"
    ),
}

__getattr__, __dir__ = lazy(__name__, _TABLE, guarded=True)
