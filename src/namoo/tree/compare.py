"""Compare trees: list their differences, broadcast prefixes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from namoo.tree.difference import (
    Difference,
    Structures,
    TreeMismatchError,
    Values,
    clauses,
    find_differences,
    groups,
    headline,
    mismatch,
)
from namoo.tree.keys import key_value
from namoo.tree.treedef import PyTreeDef, broadcast_leaves, flatten


def diff(
    expected: Any,
    found: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    prefix: str | None = None,
    compare_leaves: Callable[[Any, Any], str | None] | None = None,
) -> list[Difference]:
    """List where the structures of two trees differ.

    Args:
        expected: a tree, or the `PyTreeDef` of one.
        found: another.
        is_leaf: takes each subtree, from the root; True makes it a leaf. With `prefix` it is asked
            only about the tree that is the prefix.
        prefix: 'expected' or 'found', if that tree may have a leaf where the other has a subtree.
        compare_leaves: takes two leaves at the same path and describes how they differ, or returns
            None. By default leaves are not compared.

    Returns:
        The differences in the order of the leaves; empty if there are none.

    Example:
        >>> for difference in diff({"w": 1, "b": [2]}, {"w": 1, "bias": [2]}):
        ...     print(difference)
        at the root: missing key 'b'
        at the root: unexpected key 'bias' (did you mean 'b'?)
    """
    if prefix not in (None, "expected", "found"):
        raise ValueError(f"prefix must be None, 'expected' or 'found', not {prefix!r}")
    expected_side, found_side = (
        Structures()
        if isinstance(tree, PyTreeDef)
        else Values(is_leaf if prefix in (None, name) else None)
        for name, tree in (("expected", expected), ("found", found))
    )
    return find_differences(expected, found, expected_side, found_side, prefix, compare_leaves)


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    title: str = "the prefix tree is not a prefix of the full tree",
    name: str = "prefix_tree",
) -> list[Any]:
    """Repeat each leaf of a prefix for every leaf that the full tree has below it.

    Args:
        prefix_tree: a tree with the nodes of `full_tree` that may end before it.
        full_tree: a tree, or the `PyTreeDef` of one.
        is_leaf: takes each subtree of `prefix_tree`, from the root; True makes it a leaf.
        title: what an error says first.
        name: what an error calls the prefix.

    Returns:
        As many objects as `full_tree` has leaves.

    Raises:
        ValueError: if `prefix_tree` is not a prefix. Its `differences` lists where.

    Example:
        >>> broadcast_prefix((0, None), ({"a": 7, "b": 8}, 9), is_leaf=lambda x: x is None)
        [0, 0, None]
    """
    full = full_tree if isinstance(full_tree, PyTreeDef) else flatten(full_tree)[1]
    result = broadcast_leaves(*flatten(prefix_tree, is_leaf), full)
    if result is None:
        differences = diff(full_tree, prefix_tree, is_leaf, prefix="found")
        raise mismatch(title, differences, name=name)
    return result


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """List why one tree is not a prefix of another, one error for each node.

    Args:
        prefix_tree: a tree that should have the nodes of `full_tree`, but may end before it.
        full_tree: a tree, or the `PyTreeDef` of one.
        is_leaf: takes each subtree of `prefix_tree`, from the root; True makes it a leaf.

    Returns:
        Functions that take the name of the prefix tree, as its user knows it, and return the error
        to raise; none if it is a prefix.

    Example:
        >>> [error] = prefix_errors({"w": (0, 1)}, {"w": (7, 8, 9)})
        >>> print(error("in_axes"))
        pytree structure error: different lengths of tuple at key path
            in_axes['w']
        There, expected a tuple of length 3, found a tuple of length 2.
    """
    differences = diff(full_tree, prefix_tree, is_leaf, prefix="found")
    return [functools.partial(_named_error, group) for group in groups(differences)]


def _named_error(group: list[Difference], name: str) -> TreeMismatchError:
    lines = [headline(group, name), f"There, {clauses(group)}."]
    if group[0].kind in ("missing", "unexpected"):
        keys = " ".join(str(key_value(difference.path[-1])) for difference in group[:20])
        lines += ["so the symmetric difference on key sets is", f"    {keys}"]
    lines += [difference.hint for difference in group if difference.hint]
    return TreeMismatchError("\n".join(lines), group)
