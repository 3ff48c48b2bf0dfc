"""The most frequently called tree functions: in C++ if it was built, else the Python reference."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from namoo._base.runtime import native
from namoo.tree import registry
from namoo.tree import treedef as reference
from namoo.tree.keys import DictKey, SequenceKey
from namoo.tree.treedef import PyTreeDef

Leaf = Callable[..., bool] | None


def _leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    return reference.flatten(tree, is_leaf)[0]


def _map(f: Callable[..., Any], tree: Any, rest: tuple[Any, ...], is_leaf: Leaf) -> Any:
    """Return the mapped tree, or MISMATCH if the nodes of a tree in `rest` differ."""
    leaves, treedef = reference.flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = []
    for other in rest:
        subtrees = treedef.subtrees_of(other)
        if subtrees is None:
            return MISMATCH
        columns.append(subtrees)
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


if native is None:
    MISMATCH: Any = object()
    flatten, flatten_with_path = reference.flatten, reference.flatten_with_path
    leaves, map = _leaves, _map
else:
    MISMATCH = native.MISMATCH
    flatten, flatten_with_path = native.flatten, native.flatten_with_path
    leaves, map = native.leaves, native.map
    native.bind_tree(
        SimpleNamespace(
            node_type=registry.node_type,
            known=reference.known,
            same_meta=reference.same_meta,
            verdict=reference.verdict,
            too_deep=reference.too_deep,
            treedef=PyTreeDef,
            leaf=reference.LEAF,
            sequence_key=SequenceKey,
            dict_key=DictKey,
        )
    )
    PyTreeDef.unflatten = native.as_method(native.unflatten)
    PyTreeDef.subtrees_of = native.as_method(native.subtrees_of)
