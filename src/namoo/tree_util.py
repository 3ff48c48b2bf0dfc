"""Registering classes as nodes of trees, key paths, and the older names of `namoo.tree`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo import tree
from namoo._base.source_context import make_entry_points as _guard
from namoo.tree import fast
from namoo.tree.classes import (
    Partial,
    register_dataclass,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from namoo.tree.compare import broadcast_prefix, prefix_errors
from namoo.tree.difference import Difference, TreeMismatchError, mismatch
from namoo.tree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
)
from namoo.tree.registry import (
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    register_pytree_node,
)
from namoo.tree.treedef import PyTreeDef, leaf_paths

__all__ = [
    "Difference",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "TreeMismatchError",
    "all_leaves",
    "broadcast_prefix",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "leaf_paths",
    "mismatch",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
__dir__ = __all__.copy

tree_all = tree.all
tree_broadcast = tree.broadcast
tree_flatten = tree.flatten
tree_flatten_with_path = tree.flatten_with_path
tree_leaves = tree.leaves
tree_leaves_with_path = tree.leaves_with_path
tree_map = tree.map
tree_map_with_path = tree.map_with_path
tree_reduce = tree.reduce
tree_reduce_associative = tree.reduce_associative
tree_structure = tree.structure
tree_transpose = tree.transpose
tree_unflatten = tree.unflatten


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether all objects are leaves.

    Args:
        iterable: the objects.
        is_leaf: takes each object, and each subtree of it; True makes it a leaf.

    Returns:
        True if every object is a leaf.

    Example:
        >>> all_leaves([1, "a"]), all_leaves([1, [2]])
        (True, False)
    """
    items = list(iterable)
    leaves = tree.leaves(items, is_leaf)
    return len(leaves) == len(items) and all(map(operator.is_, items, leaves))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Lists the structures of the children of a structure's root.

    Args:
        treedef: a structure.

    Returns:
        One structure for each child.

    Example:
        >>> treedef_children(tree.structure([(1, 2), 3, {"a": 4}]))
        [PyTreeDef((*, *)), PyTreeDef(*), PyTreeDef({'a': *})]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure is a single leaf.

    Args:
        treedef: a structure.

    Returns:
        True for the structure of a leaf, and for that of a node without children.

    Example:
        >>> treedef_is_leaf(tree.structure(1)), treedef_is_leaf(tree.structure([1]))
        (True, False)
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Makes the structure of a tuple from the structures of its children.

    Args:
        treedefs: structures.

    Returns:
        The structure.

    Example:
        >>> treedef_tuple([tree.structure([1, 2]), tree.structure({"a": 3})])
        PyTreeDef(([*, *], {'a': *}))
    """
    return PyTreeDef.from_node_data_and_children(default_registry, (tuple, None), treedefs)


class PyTreeRegistry:
    """The table of node classes as an object; there is one, `default_registry`."""

    def flatten(
        self, tree: Any, leaf_predicate: Callable[[Any], bool] | None = None
    ) -> tuple[list[Any], PyTreeDef]:
        return fast.flatten(tree, leaf_predicate)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[[Any, Any], bool] | None = None
    ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
        return fast.flatten_with_path(tree, leaf_predicate, is_leaf_takes_path=True)

    def flatten_one_level(self, tree: Any) -> tuple[Sequence[Any], Any] | None:
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    def flatten_one_level_with_keys(
        self, tree: Any
    ) -> tuple[Sequence[tuple[Any, Any]], Any] | None:
        return flatten_one_level_with_keys(tree) if is_tree_node(type(tree)) else None

    def is_node(self, type: type) -> bool:
        return is_tree_node(type)

    def register_node(
        self,
        type: type,
        to_iterable: Callable[..., Any],
        from_iterable: Callable[..., Any],
        to_iterable_with_keys: Callable[..., Any] | None = None,
    ) -> None:
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(
        self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str]
    ) -> None:
        register_dataclass(type, data_fields, meta_fields)

    def __reduce__(self) -> str:
        return "default_registry"


default_registry = PyTreeRegistry()

_guard(globals())
