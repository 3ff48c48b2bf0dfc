"""`at`: return a tree with some of its leaves or subtrees changed.

The user's function is called on a copy of the tree in which every leaf is a unique object: its
result shows which leaves it selects. A value that is not a leaf (a function, None) may not be
unique. Where several positions hold it, each one is replaced in turn to see which is meant.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from namoo import tree
from namoo._base.source_context import entry_point
from namoo.tree.keys import GetAttrKey, keystr
from namoo.tree.paths import Paths, paths
from namoo.tree.registry import node_type

T = TypeVar("T")
Path = tuple[Any, ...]


def at(tree: T) -> At[T]:
    """Select leaves or subtrees of a tree to change: `at(tree)[where].set(value)`.

    Args:
        tree: a tree.

    Returns:
        An object to index with a function of the tree, or a pattern as in `namoo.paths`; it then
        has the methods `set(value)`, `apply(function)` and `get()`. `set` and `apply` return a new
        tree.

    Example:
        >>> at([1, {"w": 2, "b": 3}])[lambda t: t[1]["w"]].set(5)
        [1, {'b': 3, 'w': 5}]
        >>> at([1, {"w": 2, "b": 3}])["**/b"].apply(lambda b: -b)
        [1, {'b': -3, 'w': 2}]
    """
    return At(tree)


class At(Generic[T]):
    """A tree of which parts can be selected: `at[where]`.

    Example:
        >>> from namoo import tree
        >>> tree.at({"a": [1, 2], "b": 3})[lambda t: t["a"][1]].set(5)
        {'a': [1, 5], 'b': 3}
    """

    __slots__ = ("_tree",)

    def __init__(self, tree: T):
        self._tree = tree

    def __getitem__(self, where: Callable[[T], Any] | str | Paths) -> Selection[T]:
        """Select the parts that a function returns, or that a pattern matches.

        Raises:
            ValueError: if the function does not return parts of the tree, or a pattern matches no
                leaf.
        """
        return Selection(self._tree, where)

    def __repr__(self) -> str:
        return f"at({self._tree!r})"


class Selection(Generic[T]):
    """Selected parts of a tree."""

    __slots__ = ("_leaves", "_many", "_paths", "_tree", "_treedef")

    @entry_point
    def __init__(self, of: T, where: Any):
        self._tree = of
        self._leaves, self._treedef = tree.flatten(of)
        if isinstance(where, (str, Paths)):
            mask = where if isinstance(where, Paths) else paths(where)
            flags = tree.leaves(mask(of))
            self._paths: list[Any] = [i for i, is_in in enumerate(flags) if is_in]
            self._many = None
        elif callable(where):
            self._paths, self._many = _find(of, self._treedef, self._leaves, where)
        else:
            raise TypeError(
                f"at[…] takes a function of the tree, as in at[lambda m: m.weight], or a pattern "
                f"of paths, as in at['**/weight'], not {where!r} of type {type(where).__name__}"
            )

    def get(self) -> Any:
        """Return the selected value, or a list of values if several parts were selected."""
        found = [
            self._leaves[p] if isinstance(p, int) else _get(self._tree, p) for p in self._paths
        ]
        return found[0] if self._many is None and len(found) == 1 else found

    @entry_point
    def set(self, value: Any) -> T:
        """Return the tree with a new value in place of the selected parts.

        Args:
            value: the new value. If the function returned a tuple or list, a tuple or list of as
                many values, or one value for all parts.

        Returns:
            A new tree.
        """
        count = len(self._paths)
        if self._many is not None and isinstance(value, (tuple, list)):
            if len(value) != count:
                raise ValueError(
                    f"at[…].set got {len(value)} values for {count} positions; give one for each, "
                    "or one that is not a tuple or list for all"
                )
            return self._put(list(value))
        return self._put([value] * count)

    @entry_point
    def apply(self, function: Callable[[Any], Any]) -> T:
        """Return the tree with a function applied to the selected parts.

        Args:
            function: takes the old value, returns the new one.

        Returns:
            A new tree.
        """
        old = [self._leaves[p] if isinstance(p, int) else _get(self._tree, p) for p in self._paths]
        return self._put([function(x) for x in old])

    def _put(self, values: list[Any]) -> T:
        leaves, by_path = list(self._leaves), []
        for position, value in zip(self._paths, values, strict=True):
            if isinstance(position, int):
                leaves[position] = value
            else:
                by_path.append((position, value))
        out = self._treedef.unflatten(leaves) if len(by_path) < len(values) else self._tree
        for path, value in by_path:
            out = put_path(out, path, value)
        return out


class _LeafProxy:
    """The stand-in for a leaf in the copy that the user's function sees; it has its attributes."""

    __slots__ = ("_leaf", "_number")
    _is_immutable = True

    def __init__(self, number: int, leaf: Any):
        self._number, self._leaf = number, leaf

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leaf, name)


def _find(of: Any, treedef: Any, leaves: list[Any], where: Callable) -> tuple[list[Any], Any]:
    """Return what a function selects (leaf numbers or paths), and its type if a sequence."""
    copy = treedef.unflatten([_LeafProxy(i, x) for i, x in enumerate(leaves)])
    found = where(copy)
    nodes = {id(node): path for path, node in walk(copy) if _is_open(node)}
    if id(found) not in nodes and type(found) in (tuple, list) and found:
        many = list(found)
        return [
            _position_of(of, copy, x, nodes, lambda t, i=i: where(t)[i], f"[{i}]")
            for i, x in enumerate(many)
        ], type(found)
    return [_position_of(of, copy, found, nodes, where, "")], None


def _position_of(of: Any, copy: Any, found: Any, nodes: dict, where: Callable, which: str) -> Any:
    if type(found) is _LeafProxy:
        return found._number
    if id(found) in nodes:
        return nodes[id(found)]
    same = [path for path, value in walk(copy) if value is found]
    for path in same:
        # The function returns the mark only if it was put at the position that the function reads.
        mark = _LeafProxy(-1, found)
        if len(same) == 1 or _reads(where, put_path(copy, path, mark), mark):
            return path
    raise ValueError(
        f"at[…]: the function must return a part of the tree that it is given, but its result"
        f"{which} is {found!r}, which is not a part of it. It may not compute a new value: to "
        "change a value, write at[lambda m: m.weight].apply(f)."
    )


def _reads(where: Callable, changed: Any, mark: Any) -> bool:
    """Return whether the function returns the mark that was put at one position."""
    try:
        return where(changed) is mark
    except Exception:
        # The function needs the real value of a position other than the one it returns.
        return False


def _is_open(node: Any) -> bool:
    """Return whether a value has children; an empty node cannot be recognised by identity."""
    return type(node) is not _LeafProxy and any(True for _ in _parts(node))


def walk(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every node and every other value of a tree, as the user sees it."""
    yield path, node
    for key, part in _parts(node):
        yield from walk(part, (*path, key))


def _parts(node: Any) -> list[tuple[Any, Any]]:
    if hasattr(type(node), "_form"):
        return [(GetAttrKey(name), node.__dict__[name]) for name in type(node)._fields]
    entry = node_type(type(node))
    return [] if entry is None else list(entry.flatten_with_keys(node)[0])


def _get(node: Any, path: Path) -> Any:
    for key in path:
        node = next(part for k, part in _parts(node) if k == key)
    return node


def put_path(node: Any, path: Path, value: Any) -> Any:
    """Return a copy of a node with another value at a path."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    parts = _parts(node)
    if hasattr(type(node), "_form"):
        old = dict((k.name, part) for k, part in parts)[key.name]
        return node.replace(**{key.name: put_path(old, rest, value)})
    entry = node_type(type(node))
    assert entry is not None, keystr(path)
    children = [put_path(part, rest, value) if k == key else part for k, part in parts]
    return entry.unflatten(entry.flatten(node)[1], children)
