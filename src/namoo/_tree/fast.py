"""The functions on trees that are called most: in C++ where that was built, else the reference."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from namoo._accelerator import native
from namoo._tree import registry
from namoo._tree import structure as reference
from namoo._tree.keys import DictKey, SequenceKey
from namoo._tree.structure import PyTreeDef

Leaf = Callable[..., bool] | None


def _leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    return reference.flatten(tree, is_leaf)[0]


def _map(f: Callable[..., Any], tree: Any, rest: tuple[Any, ...], is_leaf: Leaf) -> Any:
    """The mapped tree, or MISMATCH where a tree of `rest` has other nodes."""
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
