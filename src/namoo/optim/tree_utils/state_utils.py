"""Reading and changing the states of optimisers: by name, or where they follow the parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from namoo import tree, tree_util

__all__ = ["NamedTupleKey", "tree_get", "tree_get_all_with_path", "tree_map_params", "tree_set"]

Tree = Any
Path = tuple[Any, ...]
Filter = Callable[[Path, Any], bool]


@dataclasses.dataclass(frozen=True)
class NamedTupleKey:
    """The part of a path that leads into a field of a NamedTuple, with the tuple's class name."""

    tuple_name: str
    name: str

    def __str__(self) -> str:
        return f"{self.tuple_name}.{self.name}"


def _is_named_tuple(node: Any) -> bool:
    return isinstance(node, tuple) and hasattr(node, "_fields")


def _children(node: Any) -> list[tuple[Any, Any]]:
    """The children of a node with their keys; none for a leaf."""
    if _is_named_tuple(node):
        name = type(node).__name__
        return [(NamedTupleKey(name, field), getattr(node, field)) for field in node._fields]
    if isinstance(node, dict):
        return [(tree_util.DictKey(key), value) for key, value in node.items()]
    pairs = tree.flatten_with_path(node, is_leaf=lambda x: x is not node)[0]
    return [(path[0], child) for path, child in pairs if path]


def _name(key: Any) -> Any:
    """The name of a child; only fields of NamedTuples and keys of dicts have names."""
    match key:
        case NamedTupleKey():
            return key.name
        case tree_util.DictKey():
            return key.key
    return None


def _found(node: Any, path: Path, key: Any) -> Iterator[tuple[Path, Any]]:
    if _is_named_tuple(node) and type(node).__name__ == key:
        yield path, node
    for step, child in _children(node):
        here = (*path, step)
        if _name(step) == key:
            yield here, child
        yield from _found(child, here, key)


def tree_get_all_with_path(
    tree_: Tree, key: Any, filtering: Filter | None = None
) -> list[tuple[Path, Any]]:
    """All values of a name in a tree, with their paths.

    A name is a field of a NamedTuple, a key of a dict, or the class of a NamedTuple.

    Args:
        tree_: any tree, most often the state of an optimiser.
        key: the name.
        filtering: keeps the values for which `filtering(path, value)` holds.

    Example:
        >>> [str(path[-1]) for path, _ in tree_get_all_with_path([{"a": {"a": 1}}], "a")]
        ["['a']", "['a']"]
    """
    found = _found(tree_, (), key)
    return [(p, v) for p, v in found if filtering is None or filtering(p, v)]


def tree_get(tree_: Tree, key: Any, default: Any = None, filtering: Filter | None = None) -> Any:
    """The one value of a name in a tree.

    Args:
        tree_: any tree, most often the state of an optimiser.
        key: a field of a NamedTuple, a key of a dict, or the class of a NamedTuple.
        default: the result if there is no such name.
        filtering: looks only at values for which `filtering(path, value)` holds.

    Raises:
        KeyError: there are several; `filtering` can distinguish them.

    Example:
        >>> tree_get({"outer": {"count": 3}}, "count")
        3
    """
    found = tree_get_all_with_path(tree_, key, filtering)
    if len(found) > 1:
        places = ", ".join("/".join(str(step) for step in path) for path, _ in found[:5])
        raise KeyError(
            f"tree_get: there are {len(found)} values called {key!r}, at {places}. Choose one with "
            "filtering=lambda path, value: ..., or take all with tree_get_all_with_path."
        )
    return found[0][1] if found else default


def tree_set(tree_: Tree, filtering: Filter | None = None, /, **kwargs: Any) -> Tree:
    """The tree with new values for names.

    Args:
        tree_: any tree, most often the state of an optimiser.
        filtering: replaces only values for which `filtering(path, value)` holds.
        **kwargs: for each name its new value; all values of that name are replaced.

    Raises:
        KeyError: there is no such name.

    Example:
        >>> tree_set({"outer": {"count": 3, "mu": 0.5}}, count=4)
        {'outer': {'count': 4, 'mu': 0.5}}
    """
    for key in kwargs:
        if not tree_get_all_with_path(tree_, key, filtering):
            kept = "" if filtering is None else " that the filter accepts"
            names = sorted({str(n) for n in _names(tree_)})
            raise KeyError(
                f"tree_set: there is no value called {key!r}{kept}. The tree has: "
                f"{', '.join(names) or 'no names'}."
            )

    def wanted(name, path, value):
        return name in kwargs and (filtering is None or filtering(path, value))

    def rebuild(node, path):
        if _is_named_tuple(node) and wanted(type(node).__name__, path, node):
            return kwargs[type(node).__name__]
        new = []
        for step, child in _children(node):
            here = (*path, step)
            name = _name(step)
            new.append(kwargs[name] if wanted(name, here, child) else rebuild(child, here))
        if not new:
            return node
        if _is_named_tuple(node):
            return type(node)(*new)
        if isinstance(node, dict):
            structure = tree.structure(node, is_leaf=lambda x: x is not node)
            by_key = dict(zip(node, new, strict=True))
            order = tree.flatten_with_path(node, is_leaf=lambda x: x is not node)[0]
            return tree.unflatten(structure, [by_key[path[0].key] for path, _ in order])
        return tree.unflatten(tree.structure(node, is_leaf=lambda x: x is not node), new)

    return rebuild(tree_, ())


def _names(node: Any) -> Iterator[Any]:
    if _is_named_tuple(node):
        yield type(node).__name__
    for step, child in _children(node):
        if (name := _name(step)) is not None:
            yield name
        yield from _names(child)


@tree_util.register_pytree_node_class
class ParamsPlaceholder:
    """A placeholder for all parameters, to find where a state mirrors them: it has no leaves."""

    def tree_flatten(self):
        return (), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        del aux, children
        return cls()


def tree_map_params(
    initable: Any,
    f: Callable[..., Any],
    state: Tree,
    /,
    *rest: Any,
    transform_non_params: Callable[..., Any] | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """`f` of every part of a state that mirrors the parameters, such as Adam's `mu` and `nu`.

    Args:
        initable: the transformation the state belongs to, or its `init`.
        f: a function of a leaf of the state, and of those of `rest`.
        state: the state.
        *rest: trees like the parameters.
        transform_non_params: a function of the other leaves; they stay unchanged without it.
        is_leaf: whether a node is a tree of parameters.

    Example:
        >>> from namoo import numpy as jnp
        >>> from namoo.optim import scale_by_adam
        >>> tx = scale_by_adam()
        >>> state = tx.init({"w": jnp.zeros(1)})
        >>> tree_map_params(tx, lambda x: x + 1, state)
        ScaleByAdamState(count=Array(0, dtype=int32), mu={'w': Array([1.], dtype=float32)},
                         nu={'w': Array([1.], dtype=float32)})
    """
    init = initable.init if hasattr(initable, "init") else initable
    pattern = init(ParamsPlaceholder())

    def visit(mark, value):
        if isinstance(mark, ParamsPlaceholder):
            return tree.map(f, value, *rest, is_leaf=is_leaf)
        return value if transform_non_params is None else transform_non_params(value)

    return tree.map(visit, pattern, state, is_leaf=lambda x: isinstance(x, ParamsPlaceholder))
