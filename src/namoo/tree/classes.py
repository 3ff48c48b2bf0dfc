"""Register classes as nodes by their methods or fields; `Partial`, a function that is a tree."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from namoo.tree.keys import GetAttrKey
from namoo.tree.registry import NodeType, register_entry, register_pytree_node

Class = TypeVar("Class", bound=type)


def register_pytree_node_class(cls: Class) -> Class:
    """Register a class as a node, using its methods `tree_flatten` and `tree_unflatten`.

    Args:
        cls: a class with a method `tree_flatten()` that returns `(children, aux_data)`, and a class
            method `tree_unflatten(aux_data, children)` that returns an instance.

    Returns:
        The class, so that this can be used as a decorator.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> @register_pytree_node_class
        ... class Line:
        ...     def __init__(self, slope, offset):
        ...         self.slope, self.offset = slope, offset
        ...     def tree_flatten(self):
        ...         return (self.slope, self.offset), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux_data, children):
        ...         return cls(*children)
        >>> from namoo import tree
        >>> tree.map(lambda x: 10 * x, Line(1, 2)).offset
        20
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, tuple[Any, ...]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Register a class as a node whose children have keys.

    Args:
        nodetype: the class.
        flatten_with_keys: takes an instance, returns `(pairs, aux_data)`, where each pair is a
            `(key, child)`.
        unflatten_func: takes `aux_data` and the tuple of children, returns an instance.
        flatten_func: returns the same children in the same order without their keys; optional, for
            speed.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> register_pytree_with_keys(
        ...     Point,
        ...     lambda p: (((GetAttrKey("x"), p.x), (GetAttrKey("y"), p.y)), None),
        ...     lambda _, xy: Point(*xy),
        ... )
        >>> from namoo import tree
        >>> tree.leaves_with_path(Point(1, 2))
        [((GetAttrKey(name='x'),), 1), ((GetAttrKey(name='y'),), 2)]
    """

    def flatten_and_forget_keys(node):
        pairs, meta = flatten_with_keys(node)
        return [child for _, child in pairs], meta

    register_pytree_node(
        nodetype, flatten_func or flatten_and_forget_keys, unflatten_func, flatten_with_keys
    )


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Register a class as a node whose children have keys, using its own methods.

    Args:
        cls: a class with a method `tree_flatten_with_keys()` that returns `(pairs, aux_data)`, a
            class method `tree_unflatten(aux_data, children)`, and, for speed, `tree_flatten()`.

    Returns:
        The class, so that this can be used as a decorator.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> @register_pytree_with_keys_class
        ... class Box:
        ...     def __init__(self, content):
        ...         self.content = content
        ...     def tree_flatten_with_keys(self):
        ...         return ((GetAttrKey("content"), self.content),), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux_data, children):
        ...         return cls(*children)
        >>> from namoo import tree
        >>> tree.leaves_with_path(Box(3))
        [((GetAttrKey(name='content'),), 3)]
    """
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, operator.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten, flatten
    )
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Register a dataclass as a node: its data fields are children, the others are static.

    Args:
        nodetype: a dataclass, or a class like one: its constructor takes every field by keyword.
        data_fields: the fields that are children, in the order of the leaves.
        meta_fields: the fields that are part of the structure. They must hold hashable values.
            Where neither is given, every field of the dataclass is data except those declared with
            `namoo.tree.static()` or `dataclasses.field(metadata={"static": True})`.
        drop_fields: fields that are neither; a rebuilt instance has their default.

    Returns:
        The class, so that this can be used as a decorator.

    Raises:
        TypeError: if only one of data_fields and meta_fields is given, or neither and the class is
            not a dataclass.
        ValueError: if the fields named are not those of the constructor, or the class is registered
            already.

    Example:
        >>> from namoo import tree
        >>> import dataclasses
        >>> @register_dataclass
        ... @dataclasses.dataclass
        ... class Dense:
        ...     w: float
        ...     b: float
        ...     activation: str = tree.static(default="relu")
        >>> tree.flatten(Dense(1.0, 2.0))
        ([1.0, 2.0], PyTreeDef(CustomNode(Dense[('relu',)], [*, *])))
    """
    data, meta = _fields_of(nodetype, data_fields, meta_fields, drop_fields)
    get_data, get_meta = _getter(data), _getter(meta)
    keys = [GetAttrKey(name) for name in data]

    names = data + meta

    def unflatten(meta_values, data_values):
        return nodetype(**dict(zip(names, (*data_values, *meta_values), strict=True)))

    register_entry(
        NodeType(
            nodetype,
            "dataclass",
            lambda node: (get_data(node), get_meta(node)),
            unflatten,
            lambda meta_values, count: keys,
            meta_names=meta,
            fields=(data, meta),
            init=_assigning_init(nodetype, names),
        )
    )
    return nodetype


def _assigning_init(cls: type, names: tuple[str, ...]) -> Any:
    """Return the generated `__init__` of a dataclass if it only assigns all fields."""
    import dataclasses  # already loaded where a dataclass exists

    init: Any = cls.__init__
    code = getattr(init, "__code__", None)
    if code is None or not code.co_qualname.startswith("__create_fn__.<locals>."):
        return None
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    plain = (
        sorted(parameters) == sorted(names) == sorted(f.name for f in dataclasses.fields(cls))  # type: ignore[arg-type]
        and not hasattr(cls, "__post_init__")
        and type(cls).__call__ is type.__call__
        and cls.__new__ is object.__new__
        and (frozen or cls.__setattr__ is object.__setattr__)
        and not getattr(cls, "__abstractmethods__", None)
    )
    return init if plain else None


def _fields_of(
    cls: type,
    data_fields: Sequence[str] | None,
    meta_fields: Sequence[str] | None,
    drop_fields: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the data fields and the meta fields, after checking them."""
    import dataclasses

    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got {data_fields=} {meta_fields=}."
        )
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is "
                f"not a dataclass. Got nodetype={cls!r}."
            )
        fields = [field for field in dataclasses.fields(cls) if field.name not in drop_fields]
        data = tuple(f.name for f in fields if not f.metadata.get("static", False))
        meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    else:
        data, meta = tuple(data_fields), tuple(meta_fields)
    if overlap := [name for name in data if name in meta]:
        raise ValueError(
            f"data_fields and meta_fields must not overlap: a field of {cls!r} is one or the "
            f"other. Overlapping fields: {set(overlap)}."
        )
    if dataclasses.is_dataclass(cls):
        wanted = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in drop_fields]
        missing = [name for name in wanted if name not in data and name not in meta]
        unexpected = [name for name in (*data, *meta) if name not in wanted]
        if missing or unexpected:
            raise ValueError(
                f"data_fields and meta_fields must include all dataclass fields, which the "
                f"constructor of {cls!r} takes, and no others."
                + (f" Missing fields: {set(missing)}; drop_fields may name them." * bool(missing))
                + (f" Unexpected fields: {set(unexpected)}." * bool(unexpected))
            )
    return data, meta


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads attributes into a tuple, in C where there are several."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    if not names:
        return lambda node: ()
    [name] = names
    return lambda node: (getattr(node, name),)


def register_static(cls: Class) -> Class:
    """Register a class as a node without children: its instances are part of the structure.

    Args:
        cls: a class whose instances are hashable and comparable.

    Returns:
        The class, so that this can be used as a decorator.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> @register_static
        ... class Mode(str):
        ...     pass
        >>> from namoo import tree
        >>> tree.flatten([1, Mode("train")])
        ([1], PyTreeDef([*, CustomNode(Mode[train], [])]))
    """
    register_pytree_with_keys(cls, lambda node: ((), node), lambda node, children: node)
    return cls


class Partial(functools.partial):
    """A `functools.partial` that is a node: its arguments are children, its function is static.

    A partial passed to `Partial` is not merged with it: its arguments stay part of the function.

    Args:
        func: a function.
        *args: its first arguments.
        **keywords: its keyword arguments.

    Example:
        >>> from namoo import tree
        >>> add = Partial(lambda x, y: x + y, 1)
        >>> add(2)
        3
        >>> tree.leaves(add)
        [1]
        >>> tree.map(lambda x: 10 * x, add)(2)
        12
    """

    def __new__(cls, func, /, *args, **keywords):
        if not isinstance(func, functools.partial):
            return super().__new__(cls, func, *args, **keywords)
        # The constructor would merge the two; setting the state of an existing partial does not.
        self: Any = super().__new__(cls, func.func)
        self.__setstate__((func, args, keywords, None))
        return self


register_pytree_node(
    Partial,
    lambda node: ((node.args, node.keywords), node.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
