"""The registry of node classes: how each class is flattened and rebuilt.

One table maps a class to its `NodeType`. Subclasses do not inherit the entry: a subclass of `dict`
is a leaf. Named tuples are the exception: they are nodes without being registered.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo._base.caches import register
from namoo._base.runtime import native
from namoo.tree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

_NoneType = type(None)


class NodeType:
    """How the instances of one class are flattened, rebuilt and named.

    Attributes:
        cls: the class.
        kind: 'none', 'tuple', 'list', 'dict', 'namedtuple', 'custom' or 'dataclass'.
        flatten: node -> (list or tuple of children, metadata).
        unflatten: (metadata, list of children) -> node.
        flatten_with_keys: node -> (list or tuple of (key, child), metadata).
        keys: (metadata, number of children) -> keys, for when there is no instance.
        meta_names: names of the first entries of the metadata tuple; entries that repeat the keys
            of the children need no name. None if the metadata is opaque.

        functions: for the C++ runtime: the user's functions behind `flatten` and `unflatten`.
        fields: for the C++ runtime: the names of a dataclass's data and meta fields.
        init: for the C++ runtime: the `__init__` of a dataclass if it only assigns the fields.
    """

    __slots__ = (
        "cls",
        "fields",
        "flatten",
        "flatten_with_keys",
        "functions",
        "init",
        "keys",
        "kind",
        "meta_names",
        "unflatten",
    )

    def __init__(
        self,
        cls: type,
        kind: str,
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],
        unflatten: Callable[[Any, list[Any]], Any],
        keys: Callable[[Any, int], Sequence[Any]],
        flatten_with_keys: Callable[[Any], tuple[Sequence[tuple[Any, Any]], Any]] | None = None,
        meta_names: tuple[str, ...] | None = None,
        functions: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
        fields: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
        init: Any = None,
    ):
        self.cls = cls
        self.kind = kind
        self.flatten = flatten
        self.unflatten = unflatten
        self.keys = keys
        self.flatten_with_keys = flatten_with_keys or self._flatten_then_name
        self.meta_names = meta_names
        self.functions = functions
        self.fields = fields
        self.init = init

    def _flatten_then_name(self, node: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, meta = self.flatten(node)
        return list(zip(self.keys(meta, len(children)), children, strict=True)), meta


nodes: dict[type, NodeType] = {}

# A program may create thousands of classes: beyond this number, named tuples in `nodes` and the
# leaf classes below are evicted.
_REMEMBERED = 4096

# Classes known to be leaves. They need not be tested for being named tuples again, and a node whose
# children are all leaves is recognised by one set operation.
leaf_types: set[type] = register(
    "tree.registry leaf classes", set(), bound=_REMEMBERED, keyed_by="class"
)

# Classes that were registered and cannot be registered again; `nodes` also has named tuples.
_registered: set[type] = set()


def node_type(cls: type) -> NodeType | None:
    """Return the entry of a class, or None where its instances are leaves."""
    entry = nodes.get(cls)
    if entry is not None or cls in leaf_types:
        return entry
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        if len(nodes) - len(_registered) > _REMEMBERED:
            for other in nodes.keys() - _registered:
                nodes.pop(other, None)
        entry = nodes[cls] = _namedtuple_type(cls)
        return entry
    if len(leaf_types) > _REMEMBERED:
        leaf_types.clear()
    leaf_types.add(cls)
    return None


def is_tree_node(typ: type) -> bool:
    """Return whether instances of a class are nodes, and not leaves.

    Args:
        typ: a class.

    Returns:
        True for the built-in containers, for named tuples and for registered classes.

    Example:
        >>> [is_tree_node(cls) for cls in (dict, list, tuple, type(None), float)]
        [True, True, True, True, False]
    """
    return node_type(typ) is not None


def register_entry(entry: NodeType) -> None:
    cls = entry.cls
    if not isinstance(cls, type):
        raise TypeError(f"only a class can be registered as a tree node, not {cls!r}")
    if cls in _registered:
        raise ValueError(
            f"{cls!r} is already registered as a tree node; a class can be registered once. "
            "If this is a notebook cell run again, define the class again as well."
        )
    _registered.add(cls)
    nodes[cls] = entry
    leaf_types.discard(cls)
    if native is not None:
        native.forget_class(cls)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, tuple[Any, ...]], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Register a class as a node.

    Args:
        nodetype: the class. Its subclasses stay leaves.
        flatten_func: takes an instance, returns `(children, aux_data)`. The children are trees; the
            auxiliary data is part of the structure, and must be hashable and comparable.
        unflatten_func: takes `aux_data` and the tuple of children, returns an instance. The
            children may be any objects, so it should not check or convert them.
        flatten_with_keys_func: like `flatten_func`, with `(key, child)` instead of each child.
            Without it the children are named by their position.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
        >>> from namoo import tree
        >>> tree.leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """
    for function in (flatten_func, unflatten_func):
        if not callable(function):
            raise TypeError(
                f"register_pytree_node of {nodetype!r} takes two functions, one to flatten and "
                f"one to unflatten, not {function!r}"
            )
    checked = _checked_flatten(nodetype, flatten_func)
    if flatten_with_keys_func is None:
        named, keys = None, _flat_indices
    else:
        named = _checked_flatten_with_keys(nodetype, flatten_with_keys_func)
        keys = _keys_of_rebuilt(unflatten_func, named)
    register_entry(
        NodeType(
            nodetype,
            "custom",
            checked,
            lambda meta, children: unflatten_func(meta, tuple(children)),
            keys,
            named,
            functions=(flatten_func, unflatten_func),
        )
    )


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """Split one node into its children, without flattening them.

    Args:
        tree: a node: a built-in container, a named tuple or an instance of a registered class.

    Returns:
        The children, and the metadata that rebuilds the node from them.

    Raises:
        ValueError: if the object is a leaf.

    Example:
        >>> flatten_one_level({"b": [1, 2], "a": {"c": 3}})
        ([{'c': 3}, [1, 2]], ('a', 'b'))
    """
    entry = _node_type_of_value(tree)
    children, meta = entry.flatten(tree)
    return list(children), entry.cls if entry.kind == "namedtuple" else meta


def flatten_one_level_with_keys(tree: Any) -> tuple[Sequence[tuple[Any, Any]], Any]:
    """Split one node into its children, like `flatten_one_level`, with the key of each child.

    Args:
        tree: a node.

    Returns:
        The `(key, child)` pairs, and the metadata that rebuilds the node.

    Raises:
        ValueError: if the object is a leaf.

    Example:
        >>> flatten_one_level_with_keys({"a": [1, 2]})
        ([(DictKey(key='a'), [1, 2])], ('a',))
    """
    entry = _node_type_of_value(tree)
    pairs, meta = entry.flatten_with_keys(tree)
    return pairs, entry.cls if entry.kind == "namedtuple" else meta


def _node_type_of_value(tree: Any) -> NodeType:
    entry = node_type(type(tree))
    if entry is None:
        raise ValueError(
            f"can't tree-flatten type {type(tree)!r}, which is a leaf; "
            "register_pytree_node makes the instances of a class nodes"
        )
    return entry


def _checked_flatten(cls: type, flatten: Callable[..., Any]) -> Callable[..., Any]:
    def checked(node):
        result = flatten(node)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(
                "The to_iterable function for a custom PyTree node should return a "
                f"(children, aux_data) tuple, got {result!r}, from that of {cls!r}"
            )
        if isinstance(result[0], (tuple, list)):
            return result
        return _children_of(cls, result), result[1]

    return checked


def _checked_flatten_with_keys(
    cls: type, flatten_with_keys: Callable[..., Any]
) -> Callable[..., Any]:
    def checked(node):
        result = flatten_with_keys(node)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(
                f"the flatten-with-keys function of {cls!r} must return a tuple "
                f"(pairs, aux_data), but returned {result!r}"
            )
        pairs = _children_of(cls, result)
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(
                    f"the flatten-with-keys function of {cls!r} must return each child as a "
                    f"tuple (key, child), but returned {pair!r}"
                )
        return pairs, result[1]

    return checked


def _children_of(cls: type, result: tuple[Any, Any]) -> tuple[Any, ...]:
    try:
        iterator = iter(result[0])
    except TypeError:
        raise ValueError(
            "The to_iterable function for a custom PyTree node should return a (children, "
            f"aux_data) tuple where 'children' is iterable, got {result!r}, from that of {cls!r}"
        ) from None
    return tuple(iterator)


def _keys_of_rebuilt(
    unflatten: Callable[..., Any], flatten_with_keys: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that finds the keys when only the metadata is known.

    It rebuilds a node from placeholders and asks for its keys. If the class rejects placeholders,
    its children are named by position: such keys are used only in error messages.

    """

    def keys(meta, count):
        try:
            pairs, _ = flatten_with_keys(unflatten(meta, tuple(object() for _ in range(count))))
        except Exception:
            return _flat_indices(meta, count)
        return [key for key, _ in pairs] if len(pairs) == count else _flat_indices(meta, count)

    return keys


def _flat_indices(meta, count):
    return [FlattenedIndexKey(i) for i in range(count)]


def _indices(meta, count):
    return [SequenceKey(i) for i in range(count)]


def _dict_keys(meta, count):
    return [DictKey(key) for key in meta]


def _flatten_sequence(node):
    return node, None


def _flatten_dict(node):
    try:
        keys = tuple(sorted(node))
    except Exception as error:
        raise ValueError(_unsortable(node, error)) from None
    return [*map(node.__getitem__, keys)], keys


def _flatten_defaultdict(node):
    try:
        keys = tuple(sorted(node))
    except TypeError as error:
        raise TypeError(_unsortable(node, error)) from None
    return [*map(node.__getitem__, keys)], (node.default_factory, keys)


def _unsortable(node, error) -> str:
    first_of_class = {}
    for key in node:
        first_of_class.setdefault(type(key), key)
    if len(first_of_class) > 1:
        which = ", ".join(f"{key!r} ({cls.__name__})" for cls, key in first_of_class.items())
    else:
        which = ", ".join(repr(key) for key in list(node)[:4])
    return (
        f"the keys of a {type(node).__name__} in a tree are sorted, and these cannot be: {which} "
        f"({error}). Use keys of one sortable type, such as str, or an OrderedDict, which keeps "
        "its own order."
    )


def _namedtuple_type(cls: Any) -> NodeType:
    def keys(meta, count):
        return [GetAttrKey(name) for name in cls._fields]

    # A class may define its own length and items, which are not its fields.
    is_plain = cls.__len__ is tuple.__len__ and cls.__getitem__ is tuple.__getitem__
    flatten = _flatten_sequence if is_plain else lambda node: (tuple(tuple.__iter__(node)), None)
    return NodeType(cls, "namedtuple", flatten, lambda meta, children: cls(*children), keys)


register_entry(
    NodeType(_NoneType, "none", lambda node: ((), None), lambda meta, children: None, _indices)
)
register_entry(
    NodeType(tuple, "tuple", _flatten_sequence, lambda meta, children: tuple(children), _indices)
)
register_entry(NodeType(list, "list", _flatten_sequence, lambda meta, children: children, _indices))
register_entry(
    NodeType(
        dict,
        "dict",
        _flatten_dict,
        # Dicts are rebuilt most often, and `strict=True` would add a third to the time.
        lambda keys, children: dict(zip(keys, children)),  # noqa: B905
        _dict_keys,
        meta_names=(),
    )
)
register_entry(
    NodeType(
        OrderedDict,
        "custom",
        lambda node: (list(node.values()), tuple(node)),
        lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
        _dict_keys,
        meta_names=(),
    )
)
register_entry(
    NodeType(
        defaultdict,
        "custom",
        _flatten_defaultdict,
        lambda meta, children: defaultdict(meta[0], zip(meta[1], children, strict=True)),
        lambda meta, count: _dict_keys(meta[1], count),
        meta_names=("default_factory",),
    )
)
