"""Flatten trees; `PyTreeDef`, the structure of a tree without its leaves.

A structure is held in nested tuples, so that hashing and comparing it run in C and stop early at
identical parts. A leaf is None. A node is `(class, metadata, child, child, ...)`, or, if all of its
children are leaves, `(class, metadata, number of children)`. The second form is used whenever it is
possible, so that equal structures are equal tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

from namoo.tree.difference import (
    Difference,
    Structures,
    TreeMismatchError,
    Values,
    find_differences,
    mismatch,
)
from namoo.tree.keys import KeyPath, keystr
from namoo.tree.metadata import (
    can_be_frozen,
    frozen,
    incomparable_error,
    is_comparable,
    unhashable_error,
)
from namoo.tree.registry import NodeType, leaf_types, node_type, nodes

Structure = tuple[Any, ...] | None


class PyTreeDef:
    """The structure of a tree: its nodes, their metadata, and where the leaves are.

    Two structures are equal if they have equal nodes and metadata at the same positions. A
    structure can be hashed unless its metadata contains arrays.

    Example:
        >>> from namoo import tree
        >>> treedef = tree.structure({"w": 1.0, "b": [2.0, 3.0]})
        >>> treedef
        PyTreeDef({'b': [*, *], 'w': *})
        >>> treedef.unflatten([1, 2, 3])
        {'b': [1, 2], 'w': 3}
    """

    __slots__ = ("__weakref__", "_hash", "_num_leaves", "_structure")

    def __init__(self, structure: Structure, num_leaves: int | None = None):
        self._structure = structure
        self._num_leaves = num_leaves
        self._hash: int | None = None

    @property
    def num_leaves(self) -> int:
        """The number of leaves of a tree of this structure."""
        if self._num_leaves is None:
            self._num_leaves = _count_leaves(self._structure)
        return self._num_leaves

    @property
    def num_nodes(self) -> int:
        """The number of nodes of a tree of this structure, including leaves."""
        return _count_nodes(self._structure)

    def node_data(self) -> tuple[type, Any] | None:
        """Return the class and the metadata of the root, or None if it is a leaf."""
        if self._structure is None:
            return None
        cls, meta = self._structure[:2]
        return (cls, list(meta)) if cls is dict else (cls, meta)

    def children(self) -> list[PyTreeDef]:
        """Return the structures of the root's children."""
        return [PyTreeDef(child) for child in _children(self._structure)]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree of this structure with the given leaves.

        Args:
            leaves: as many objects as the structure has leaves; they may be trees themselves.

        Raises:
            ValueError: if there are more or fewer.
        """
        return unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Flatten a tree only as far as this structure goes.

        Args:
            tree: a tree with the nodes of this structure. Where the structure has a leaf, the tree
                may have any subtree.

        Returns:
            The subtrees at the positions of the structure's leaves.

        Raises:
            ValueError: if the nodes of the tree differ.
        """
        subtrees = self.subtrees_of(tree)
        if subtrees is None:
            differences = find_differences(self, tree, Structures(), Values(), prefix="expected")
            error = mismatch("the tree does not have the structure of the treedef", differences)
            raise TreeMismatchError(f"{error}\n{differences[0].summary}", differences)
        return subtrees

    def subtrees_of(self, tree: Any) -> list[Any] | None:
        """Return what `flatten_up_to` returns, or None where that raises an error."""
        return subtrees_of(self, tree)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` in place of each leaf.

        Example:
            >>> from namoo import tree
            >>> tree.structure([0, 0]).compose(tree.structure({"a": 0}))
            PyTreeDef([{'a': *}, {'a': *}])
        """
        return PyTreeDef(_compose(self._structure, inner._structure))

    def walk(
        self,
        f_node: Callable[[tuple[Any, ...], Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Fold the structure from the leaves to the root.

        Args:
            f_node: takes the tuple of a node's results and the node's metadata.
            f_leaf: takes a leaf; None leaves it unchanged.
            leaves: as many objects as the structure has leaves.

        Returns:
            The result of the root.
        """
        leaves = self._exactly(leaves)
        results = leaves if f_leaf is None else [f_leaf(leaf) for leaf in leaves]
        return _walk(self._structure, f_node, iter(results))

    def from_iterable_tree(self, tree: Any) -> Any:
        """Build the tree of this structure from nested iterables, one for each node.

        Example:
            >>> from namoo import tree
            >>> tree.structure({"a": 0, "b": (0, 0)}).from_iterable_tree([1, [2, 3]])
            {'a': 1, 'b': (2, 3)}
        """
        return _from_iterables(self._structure, tree)

    @staticmethod
    def from_node_data_and_children(
        registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """Build the structure that has the given `node_data()` and `children()`."""
        structures = [child._structure for child in children]
        if node_data is None:
            if structures:
                raise ValueError(f"a leaf has no children, but {len(structures)} were given")
            return LEAF
        cls, meta = node_data
        entry = known(cls)
        return PyTreeDef(_node(cls, tuple(meta) if entry.kind == "dict" else meta, structures))

    make_from_node_data_and_children = from_node_data_and_children

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        try:
            return self._structure == other._structure
        except RecursionError:
            raise
        except Exception:
            self._raise_incomparable(other)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash(self._structure)
            except RecursionError:
                raise
            except Exception:
                try:
                    self._structure, self._hash = _frozen(self._structure)
                except TypeError:
                    self._raise_unhashable()
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({_to_string(self._structure)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A flat list: pickle recurses, and would reach its limit at half the depth that we support.
        return _from_postorder, (list(_postorder(self._structure)),)

    def _exactly(self, leaves: Iterable[Any]) -> list[Any] | tuple[Any, ...]:
        count = self.num_leaves
        if type(leaves) is not list and type(leaves) is not tuple:
            leaves = list(islice(leaves, count + 1))
        if len(leaves) < count:
            paths = leaf_paths(self)[len(leaves) :]
            raise TreeMismatchError(
                f"too few leaves: the structure has {count}, but {len(leaves)} were given; "
                f"the first place without one is {keystr(paths[0]) or 'the root'}",
                [
                    Difference(path, "missing", "a leaf", "nothing", "missing leaf")
                    for path in paths
                ],
            )
        if len(leaves) > count:
            raise ValueError(f"too many leaves: the structure has {count}, but more were given")
        return leaves

    def _raise_unhashable(self) -> NoReturn:
        for path, cls, meta in _nodes_with_paths(self._structure):
            if not can_be_frozen(meta):
                raise unhashable_error(path, known(cls), meta) from None
        raise AssertionError("a structure of hashable parts was not hashable")

    def _raise_incomparable(self, other: PyTreeDef) -> NoReturn:
        # The comparison raised before it found a difference: both agree up to that node.
        ours, theirs = _nodes_with_paths(self._structure), _nodes_with_paths(other._structure)
        for (path, cls, meta), (_, _, other_meta) in zip(ours, theirs, strict=False):
            if not is_comparable(meta, other_meta):
                raise incomparable_error(path, known(cls), meta, other_meta) from None
        raise AssertionError("structures of comparable parts were not comparable")


LEAF = PyTreeDef(None, 1)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Split a tree into its leaves and its structure; see `namoo.tree.flatten`."""
    leaves: list[Any] = []
    try:
        if is_leaf is not None:
            structure = _flatten_unless(tree, is_leaf, leaves)
        else:
            cls = type(tree)
            entry = nodes.get(cls) or node_type(cls)
            if entry is None:
                return [tree], LEAF
            structure = _flatten(tree, entry, leaves)
    except RecursionError as error:
        too_deep(error)
    return leaves, PyTreeDef(structure, len(leaves))


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build a tree; see `PyTreeDef.unflatten`."""
    leaves = treedef._exactly(leaves)
    if treedef._structure is None:
        return leaves[0]
    return _unflatten(treedef._structure, iter(leaves))


def subtrees_of(treedef: PyTreeDef, tree: Any) -> list[Any] | None:
    """Return the subtrees at a structure's leaves; see `PyTreeDef.subtrees_of`."""
    subtrees: list[Any] = []
    return subtrees if _flatten_up_to(treedef._structure, tree, subtrees) else None


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Split a tree into leaves with their paths, and its structure; see `namoo.tree`."""
    leaves: list[tuple[KeyPath, Any]] = []
    try:
        structure = _flatten_with_path(tree, (), is_leaf, is_leaf_takes_path, leaves)
    except RecursionError as error:
        too_deep(error)
    return leaves, PyTreeDef(structure, len(leaves))


def leaf_paths(treedef: PyTreeDef) -> list[KeyPath]:
    """Return the key paths of a structure's leaves without needing a tree."""
    return [path for path, structure in _preorder(treedef._structure) if structure is None]


def broadcast_leaves(leaves: list[Any], prefix: PyTreeDef, full: PyTreeDef) -> list[Any] | None:
    """Repeat each leaf of a prefix for every leaf that `full` has below it.

    Returns:
        As many objects as `full` has leaves; None if `prefix` is not a prefix of `full`.
    """
    result: list[Any] = []
    unused = iter(leaves)
    todo = [(prefix._structure, full._structure)]
    while todo:
        part, whole = todo.pop()
        if part is None:
            result += [next(unused)] * _count_leaves(whole)
        elif whole is None or part[0] is not whole[0] or not same_meta(part[0], part[1], whole[1]):
            return None
        else:
            parts, wholes = _children(part), _children(whole)
            if len(parts) != len(wholes):
                return None
            todo += zip(reversed(parts), reversed(wholes), strict=True)
    return result


def too_deep(error: RecursionError) -> NoReturn:
    raise RecursionError(
        "the tree is nested more deeply than Python's recursion limit allows, or it contains itself"
    ) from error


# The recursive functions below use loops instead of comprehensions, so that each level of the tree
# costs one frame of the Python stack.


def _flatten(tree: Any, entry: NodeType, leaves: list[Any]) -> Structure:
    children, meta = entry.flatten(tree)
    if leaf_types.issuperset(map(type, children)):
        leaves.extend(children)
        return entry.cls, meta, len(children)
    structures: list[Structure] = []
    for child in children:
        cls = type(child)
        child_entry = nodes.get(cls) or node_type(cls)
        if child_entry is None:
            leaves.append(child)
            structures.append(None)
        else:
            structures.append(_flatten(child, child_entry, leaves))
    return _node(entry.cls, meta, structures)


def _flatten_unless(tree: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Structure:
    entry = None if verdict(is_leaf(tree)) else node_type(type(tree))
    if entry is None:
        leaves.append(tree)
        return None
    children, meta = entry.flatten(tree)
    structures: list[Structure] = []
    for child in children:
        structures.append(_flatten_unless(child, is_leaf, leaves))
    return _node(entry.cls, meta, structures)


def _flatten_with_path(
    tree: Any,
    path: KeyPath,
    is_leaf: Callable[..., bool] | None,
    is_leaf_takes_path: bool,
    leaves: list[tuple[KeyPath, Any]],
) -> Structure:
    entry = node_type(type(tree))
    if is_leaf is not None and verdict(
        is_leaf(path, tree) if is_leaf_takes_path else is_leaf(tree)
    ):
        entry = None
    if entry is None:
        leaves.append((path, tree))
        return None
    pairs, meta = entry.flatten_with_keys(tree)
    structures: list[Structure] = []
    for key, child in pairs:
        structures.append(
            _flatten_with_path(child, (*path, key), is_leaf, is_leaf_takes_path, leaves)
        )
    return _node(entry.cls, meta, structures)


def verdict(answer: Any) -> bool:
    if answer is True or answer is False:
        return answer
    if answer is None:
        return False
    raise ValueError(f"is_leaf must return True or False, but returned {answer!r}")


def _flatten_up_to(structure: Structure, tree: Any, subtrees: list[Any]) -> bool:
    if structure is None:
        subtrees.append(tree)
        return True
    cls, meta = structure[0], structure[1]
    if type(tree) is not cls:
        return False
    if cls is dict:
        # Looking the keys up is faster than sorting them again.
        if len(tree) != len(meta) or not all(map(tree.__contains__, meta)):
            return False
        children = [*map(tree.__getitem__, meta)]
    else:
        children, found = (nodes.get(cls) or known(cls)).flatten(tree)
        if found is not meta and not same_meta(cls, meta, found):
            return False
    if type(structure[2]) is int:
        subtrees.extend(children)
        return len(children) == structure[2]
    if len(children) != len(structure) - 2:
        return False
    for child_structure, child in zip(structure[2:], children, strict=True):
        if not _flatten_up_to(child_structure, child, subtrees):
            return False
    return True


def _unflatten(structure: tuple[Any, ...], leaves: Iterator[Any]) -> Any:
    cls, first = structure[0], structure[2]
    if type(first) is int:
        children = [*islice(leaves, first)]
    else:
        children = []
        for child in structure[2:]:
            children.append(next(leaves) if child is None else _unflatten(child, leaves))
    return (nodes.get(cls) or known(cls)).unflatten(structure[1], children)


def _walk(structure: Structure, f_node: Callable[..., Any], leaves: Iterator[Any]) -> Any:
    if structure is None:
        return next(leaves)
    results = []
    for child in _children(structure):
        results.append(_walk(child, f_node, leaves))
    cls, meta = structure[:2]
    if cls is dict:
        meta = list(meta)
    elif known(cls).kind == "namedtuple":
        meta = cls
    return f_node(tuple(results), meta)


def _from_iterables(structure: Structure, tree: Any) -> Any:
    if structure is None:
        return tree
    structures, subtrees = _children(structure), list(tree)
    if len(structures) != len(subtrees):
        raise ValueError(
            f"{PyTreeDef(structure)!r} has {len(structures)} children at its root, but "
            f"{len(subtrees)} were given"
        )
    children = []
    for child, subtree in zip(structures, subtrees, strict=True):
        children.append(_from_iterables(child, subtree))
    return known(structure[0]).unflatten(structure[1], children)


def _compose(outer: Structure, inner: Structure) -> Structure:
    if outer is None or inner is None:
        return inner if outer is None else outer
    structures: list[Structure] = []
    for child in _children(outer):
        structures.append(_compose(child, inner))
    return _node(outer[0], outer[1], structures)


def _to_string(structure: Structure) -> str:
    if structure is None:
        return "*"
    children = []
    for child in _children(structure):
        children.append(_to_string(child))
    cls, meta = structure[:2]
    match known(cls).kind:
        case "none":
            return "None"
        case "tuple":
            return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
        case "list":
            return f"[{', '.join(children)}]"
        case "dict":
            items = zip(meta, children, strict=True)
            return "{" + ", ".join([f"{key!r}: {child}" for key, child in items]) + "}"
        case "namedtuple":
            return f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(children)}])"
        case _:
            return f"CustomNode({cls.__name__}[{meta}], [{', '.join(children)}])"


def _node(cls: type, meta: Any, structures: list[Structure]) -> tuple[Any, ...]:
    """Return the canonical tuple of a node."""
    return (cls, meta, *structures) if any(structures) else (cls, meta, len(structures))


def _children(structure: Structure) -> tuple[Structure, ...]:
    if structure is None:
        return ()
    return (None,) * structure[2] if type(structure[2]) is int else structure[2:]


def same_meta(cls: type, meta: Any, other: Any) -> bool:
    try:
        return bool(meta == other)
    except Exception:
        raise incomparable_error((), known(cls), meta, other) from None


def known(cls: type) -> NodeType:
    entry = node_type(cls)
    if entry is None:
        raise RuntimeError(f"{cls!r} is not registered as a tree node")
    return entry


def _frozen(structure: Structure) -> tuple[Structure, int]:
    """Return a copy of a structure whose metadata cannot change, and its hash."""
    if structure is None:
        return None, hash(None)
    cls, meta, *rest = structure
    meta, code = frozen(meta)
    if type(structure[2]) is int:
        return (cls, meta, structure[2]), hash((cls, code, structure[2]))
    children = [_frozen(child) for child in rest]
    return (cls, meta, *(child for child, _ in children)), hash(
        (cls, code, *(child_code for _, child_code in children))
    )


def _count_leaves(structure: Structure) -> int:
    count, todo = 0, [structure]
    while todo:
        part = todo.pop()
        if part is None:
            count += 1
        elif type(part[2]) is int:
            count += part[2]
        else:
            todo += part[2:]
    return count


def _count_nodes(structure: Structure) -> int:
    return sum(1 for _ in _postorder(structure))


def _preorder(structure: Structure) -> Iterator[tuple[KeyPath, Structure]]:
    todo: list[tuple[KeyPath, Structure]] = [((), structure)]
    while todo:
        path, part = todo.pop()
        yield path, part
        if part is not None:
            children = _children(part)
            keys = known(part[0]).keys(part[1], len(children))
            todo += [
                ((*path, key), child)
                for key, child in zip(reversed(keys), reversed(children), strict=True)
            ]


def _nodes_with_paths(structure: Structure) -> Iterator[tuple[KeyPath, type, Any]]:
    return ((path, *part[:2]) for path, part in _preorder(structure) if part is not None)


def _postorder(structure: Structure) -> list[tuple[type, Any, int] | None]:
    """Return the nodes in postorder as tuples of class, metadata and number of children."""
    items: list[tuple[type, Any, int] | None] = []
    todo = [structure]
    while todo:
        part = todo.pop()
        if part is None:
            items.append(None)
        else:
            children = _children(part)
            items.append((part[0], part[1], len(children)))
            todo += children
    return items[::-1]


def _from_postorder(items: list[tuple[type, Any, int] | None]) -> PyTreeDef:
    done: list[Structure] = []
    for item in items:
        if item is None:
            done.append(None)
        else:
            cls, meta, count = item
            known(cls)
            first = len(done) - count
            done[first:] = [_node(cls, meta, done[first:])]
    return PyTreeDef(done[0])
