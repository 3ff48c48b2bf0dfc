"""The tree structures of arguments and results in a file, and the node classes it may contain."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from namoo import tree_util
from namoo.tree.registry import node_type
from namoo.tree.treedef import PyTreeDef

T = TypeVar("T")
_MAX_DEPTH = 900


class _Serialization(NamedTuple):
    """How the nodes of a class are written."""

    cls: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    make: Callable[[Any, Sequence[Any]], Any]


_by_class: dict[type, _Serialization] = {}
_by_name: dict[str, _Serialization] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Register how the nodes of a class are written into exported files.

    Args:
        nodetype: a class that is registered as a node of trees.
        serialized_name: its name in files.
        serialize_auxdata: converts the aux data of a node to bytes.
        deserialize_auxdata: the inverse of `serialize_auxdata`.
        from_children: makes a node from its aux data and its children; by default the function that
            the class is registered with.

    Returns:
        The class, so that this can be a decorator.

    Raises:
        ValueError: the class or the name is already registered, or the class is not a pytree node.

    Example:
        >>> import namoo
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> namoo.tree_util.register_pytree_node(
        ...     Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children)
        ... )
        >>> _ = register_pytree_node_serialization(
        ...     Pair,
        ...     serialized_name="docs.Pair",
        ...     serialize_auxdata=lambda aux: b"",
        ...     deserialize_auxdata=lambda data: None,
        ... )
    """
    if nodetype in _by_class:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration "
            f"was with serialized_name `{_by_class[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. "
            f"Previous registration was for type `{_by_name[serialized_name].cls}`."
        )
    if from_children is None:
        entry = node_type(nodetype)
        if entry is None:
            raise ValueError(
                "If `from_children` is not present, you must call first "
                f"`tree_util.register_pytree_node` for `{nodetype}`"
            )
        unflatten = entry.unflatten
        from_children = lambda aux, children: unflatten(aux, [*children])  # noqa: E731
    made = _Serialization(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_class[nodetype] = _by_name[serialized_name] = made
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Register a named tuple for exported files.

    Args:
        nodetype: the class.
        serialized_name: its name in files.

    Returns:
        The class, so that this can be a decorator.

    Raises:
        ValueError: it is not a named tuple, or the class or the name is already registered.

    Example:
        >>> from collections import namedtuple
        >>> Point = namedtuple("Point", "x y")
        >>> register_namedtuple_serialization(Point, serialized_name="docs.Point").__name__
        'Point'
    """
    fields: Any = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or fields is None:
        raise ValueError(
            "Use `export.register_pytree_node_serialization` for types other than "
            "`collections.namedtuple`."
        )

    def make(keys: Any, children: Sequence[Any]) -> Any:
        return nodetype(**dict(zip(keys, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda aux: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=make,
    )


def _write_keys(keys: Any) -> bytes:
    if not all(isinstance(key, str) for key in keys):
        raise ValueError(
            "Serialization of collections.OrderedDict is supported only when the keys are "
            f"strings. Found keys: {keys}."
        )
    return json.dumps(keys).encode()


register_pytree_node_serialization(
    OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_write_keys,
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
    from_children=lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
)


def write_tree(treedef: PyTreeDef) -> list[Any]:
    """Write a structure as a list of its nodes, parents first.

    A leaf is `"*"`; another node is a list that begins with its kind and ends with its number of
    children.

    Raises:
        ValueError: a class has no registered serialization.
        TypeError: a key of a dictionary is not a string.
    """
    out: list[Any] = []
    todo = [treedef]
    while todo:
        node = todo.pop()
        data, children = node.node_data(), node.children()
        if data is None:
            out.append("*")
            continue
        cls, aux = data
        if cls in (type(None), tuple, list):
            out.append([{type(None): "none", tuple: "tuple", list: "list"}[cls], len(children)])
        elif cls is dict:
            for key in aux:
                if not isinstance(key, str):
                    raise TypeError(
                        "Serialization is supported only for dictionaries with string keys. "
                        f"Found key {key} of type {type(key)}."
                    )
            out.append(["dict", list(aux), len(children)])
        elif cls in _by_class:
            entry = _by_class[cls]
            text = entry.write(aux)
            if not isinstance(text, (bytes, bytearray)):
                raise ValueError(
                    f"The custom serialization function for {cls} must return a `bytes` object. "
                    f"It returned a {type(text)}."
                )
            out.append(["custom", entry.name, bytes(text).hex(), len(children)])
        else:
            raise ValueError(
                f"Cannot serialize PyTreeDef containing an unregistered type `{cls}`. Use "
                "`export.register_pytree_node_serialization` or "
                "`export.register_namedtuple_serialization`."
            )
        todo += reversed(children)
    return out


def read_tree(nodes: Any) -> PyTreeDef:
    """Read a structure that `write_tree` wrote.

    Raises:
        ValueError: it is not a structure, or a class is not registered.
    """
    if not isinstance(nodes, list):
        raise ValueError("the structure of a tree must be a list of nodes")
    stack: list[tuple[Any, int]] = []  # example trees, and how deep they are
    for node in reversed(nodes):
        if node == "*":
            stack.append((0, 1))
            continue
        count = node[-1] if isinstance(node, list) and node else None
        if type(count) is not int or not 0 <= count <= len(stack):
            raise ValueError(f"the structure of a tree has no node {node!r:.80}")
        parts = [stack.pop() for _ in range(count)]
        depth = 1 + max((depth for _, depth in parts), default=0)
        if depth > _MAX_DEPTH:
            raise ValueError(f"a tree is more than {_MAX_DEPTH} nodes deep")
        stack.append((_made(node, [x for x, _ in parts]), depth))
    if len(stack) != 1:
        raise ValueError(f"the structure of a tree has {len(stack)} roots")
    return tree_util.tree_structure(stack[0][0])


def _made(node: list[Any], children: list[Any]) -> Any:
    match node:
        case ["none", 0]:
            return None
        case ["tuple", _]:
            return tuple(children)
        case ["list", _]:
            return children
        case ["dict", list(keys), _] if len({*map(str, keys)}) == len(keys) == len(children):
            return dict(zip(map(str, keys), children, strict=True))
        case ["custom", str(name), str(digits), _]:
            if name not in _by_name:
                raise ValueError(
                    f"Cannot deserialize a PyTreeDef containing an unregistered type `{name}`. "
                    "Use `export.register_pytree_node_serialization` or "
                    "`export.register_namedtuple_serialization`."
                )
            entry = _by_name[name]
            return entry.make(entry.read(bytes.fromhex(digits)), children)
    raise ValueError(f"the structure of a tree has no node {node!r:.80}")
