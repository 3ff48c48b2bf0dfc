"""Dataclasses that are trees.

    @struct.dataclass
    class TrainState:
        params: dict
        step: int
        apply_fn: Callable = struct.field(pytree_node=False)

The fields are the children of a node, named by attribute in key paths; those declared with
`pytree_node=False` (or `static=True`) are part of the structure. Instances cannot be changed;
`state.replace(step=1)` makes a new one. `PyTreeNode` is the same as a base class.

A tree is rebuilt without calling `__init__` or `__post_init__`: their checks apply to objects that
a user creates, not to the placeholders, tracers and booleans that transformations put into a tree.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, dataclass_transform, overload

import numpy as np

from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.tree.keys import GetAttrKey
from namoo.tree.registry import NodeType, register_entry

__all__ = ["PyTreeNode", "dataclass", "field", "mappable_dataclass", "replace"]
__dir__ = __all__.copy

T = TypeVar("T")
_MADE = "_namoo_struct"


def field(
    pytree_node: bool = True,
    *,
    static: bool = False,
    converter: Callable[[Any], Any] | None = None,
    metadata: Mapping[Any, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Declare a field of a dataclass or a `namoo.Module`.

    Args:
        pytree_node: whether the field is a child of the tree; False makes it part of the structure.
        static: the opposite of `pytree_node`, for those who prefer to say so.
        converter: a function that is applied to every value that is assigned to the field.
        metadata: anything else to keep with the field.
        **kwargs: what `dataclasses.field` takes: `default`, `default_factory`, `init`, `kw_only`, …

    Returns:
        The field.

    Example:
        >>> @dataclass
        ... class Scale:
        ...     factor: float
        ...     axis: int = field(pytree_node=False, default=0)
        >>> from namoo import tree
        >>> tree.leaves(Scale(2.0, axis=1))
        [2.0]
    """
    is_node = pytree_node and not static
    given = {**(metadata or {}), "pytree_node": is_node, "static": not is_node}
    if converter is not None:
        given["converter"] = converter
    return dataclasses.field(metadata=given, **kwargs)


def is_static(f: dataclasses.Field) -> bool:
    """Return whether a field is declared static in any of the supported ways."""
    return bool(f.metadata.get("static", False)) or not f.metadata.get("pytree_node", True)


def check_static(owner: type, name: str, value: Any, declared: str) -> None:
    """Reject a value that cannot be part of a tree's structure, naming its field.

    Structures are compared and hashed to look up compiled programs. An array, or a value without a
    hash, would fail there, far from the line that created the object.
    """
    where = f"the field {owner.__name__}.{name} {declared}"
    if contains_array(value):
        raise TypeError(
            f"{where}, but was given {describe(value)}. An array is data: declare the field "
            "without static=True or pytree_node=False; or give it a number, a tuple, or another "
            "value that can be hashed."
        )
    try:
        hash(value)
    except TypeError as error:
        instead = _INSTEAD.get(type(value), "a value with __hash__ and __eq__")
        raise TypeError(
            f"{where}, but was given {describe(value)}, which cannot be hashed ({error}). Static "
            "values decide which compiled program is used, so they must be hashable: use "
            f"{instead}, or make the field data."
        ) from None


_INSTEAD = {list: "a tuple", set: "a frozenset", dict: "a tuple of (key, value) pairs"}


def contains_array(value: Any) -> bool:
    """Return whether a value is an array or a built-in container of arrays."""
    if isinstance(value, (Array, np.ndarray)):
        return True
    if type(value) in (tuple, list, set, frozenset):
        return any(map(contains_array, value))
    return type(value) is dict and any(map(contains_array, value.values()))


def describe(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, (Array, np.ndarray)):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '…'} of type {type(value).__name__}"


def replace(instance: T, **changes: Any) -> T:
    """Return a copy of an instance with other values for some of its fields.

    Args:
        instance: an instance of a dataclass.
        **changes: new values by name.

    Returns:
        The new instance, made by the constructor, so that `__post_init__` runs.

    Raises:
        TypeError: if the class has no such field.

    Example:
        >>> @dataclass
        ... class Point:
        ...     x: float
        ...     y: float
        >>> Point(1.0, 2.0).replace(y=3.0)
        Point(x=1.0, y=3.0)
    """
    names = [f.name for f in dataclasses.fields(instance)]  # type: ignore[arg-type]
    for name in changes:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Its fields are {names}."
            raise TypeError(f"{type(instance).__name__} has no field {name!r}. {hint}")
    return dataclasses.replace(instance, **changes)  # type: ignore[type-var]


def register_fields(cls: type) -> None:
    """Register a dataclass as a node whose instances are rebuilt without their constructor."""
    fields = dataclasses.fields(cls)
    data = tuple(f.name for f in fields if not is_static(f))
    meta = tuple(f.name for f in fields if is_static(f))
    keys = [GetAttrKey(name) for name in data]
    new, put = object.__new__, object.__setattr__

    def flatten(node):
        return [getattr(node, n) for n in data], tuple([getattr(node, n) for n in meta])

    def unflatten(meta_values, children):
        node = new(cls)
        for name, value in zip(data, children, strict=True):
            put(node, name, value)
        for name, value in zip(meta, meta_values, strict=True):
            put(node, name, value)
        return node

    register_entry(
        NodeType(
            cls,
            "dataclass",
            flatten,
            unflatten,
            lambda meta, count: keys,
            meta_names=meta,
            fields=(data, meta),
            # Declared to only assign the fields, so that the C++ runtime does not call it either.
            init=cls.__init__,
        )
    )


def _checked_init(cls: type) -> None:
    """Make the constructor reject static values that cannot be part of a structure."""
    fields = dataclasses.fields(cls)
    static = [f.name for f in fields if is_static(f)]
    converters = {f.name: f.metadata["converter"] for f in fields if "converter" in f.metadata}
    if not static and not converters:
        return
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if type(self) is cls:
            for name, convert in converters.items():
                object.__setattr__(self, name, convert(getattr(self, name)))
            for name in static:
                check_static(cls, name, getattr(self, name), "is static")

    cls.__init__ = __init__  # type: ignore[method-assign]


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field, dataclasses.field))
def dataclass(cls: type[T], /) -> type[T]: ...
@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field, dataclasses.field))
def dataclass(
    *, frozen: bool = True, mappable_dataclass: bool = False, **kwargs: Any
) -> Callable[[type[T]], type[T]]: ...
def dataclass(
    cls: Any = None,
    /,
    *,
    frozen: bool = True,
    mappable_dataclass: bool = False,
    **kwargs: Any,
) -> Any:
    """Turn a class into a dataclass whose instances are nodes of trees.

    Args:
        cls: the class.
        frozen: whether instances cannot be changed; True unless said otherwise.
        mappable_dataclass: make instances mappings too, from the names of the fields to their
            values: `x["a"]`, `dict(x)`, and a constructor that takes what `dict` takes.
        **kwargs: what `dataclasses.dataclass` takes: `kw_only`, `order`, `eq`, `repr`, …

    Returns:
        The class, with methods `replace(**changes)`, `to_tuple()`, and `from_tuple(values)`.

    Raises:
        TypeError: when an instance is made with an array or an unhashable value in a static field.

    Example:
        >>> @dataclass
        ... class Dense:
        ...     w: float
        ...     b: float
        ...     activation: str = field(pytree_node=False, default="relu")
        >>> from namoo import tree
        >>> tree.map(lambda x: 10 * x, Dense(1.0, 2.0))
        Dense(w=10.0, b=20.0, activation='relu')
        >>> Dense(1.0, 2.0, activation=["relu"])
        Traceback (most recent call last):
          ...
        TypeError: the field Dense.activation is static, but was given ['relu'] of type list, which
        cannot be hashed (unhashable type: 'list'). ...
    """
    if cls is None:
        return functools.partial(
            dataclass, frozen=frozen, mappable_dataclass=mappable_dataclass, **kwargs
        )
    if _MADE in cls.__dict__:
        return cls
    cls = dataclasses.dataclass(frozen=frozen, **kwargs)(cls)
    _checked_init(cls)
    if mappable_dataclass:
        cls = _as_mapping(cls)
    cls.replace = replace
    cls.to_tuple = _to_tuple
    cls.from_tuple = classmethod(_from_tuple)
    setattr(cls, _MADE, True)
    register_fields(cls)
    return cls


def mappable_dataclass(cls: Any) -> Any:
    """Turn a dataclass into a mapping and a tree.

    Args:
        cls: a dataclass, or a class to make one of.

    Returns:
        A class whose instances are also mappings from the names of their fields to their values.

    Example:
        >>> @mappable_dataclass
        ... class Batch:
        ...     x: float
        ...     y: float
        >>> batch = Batch(x=1.0, y=2.0)
        >>> batch["x"], list(batch), Batch({"x": 3.0, "y": 4.0})
        (1.0, ['x', 'y'], Batch(x=3.0, y=4.0))
    """
    if dataclasses.is_dataclass(cls) and _MADE not in vars(cls):
        given: Any = cls
        made: Any = _as_mapping(given)
        made.replace = replace
        made.to_tuple, made.from_tuple = _to_tuple, classmethod(_from_tuple)
        setattr(made, _MADE, True)
        register_fields(made)
        return made
    make: Any = dataclass(mappable_dataclass=True)
    return make(cls)


def _to_tuple(self: Any) -> tuple[Any, ...]:
    """Return the values of all fields, in their order."""
    return tuple(getattr(self, f.name) for f in dataclasses.fields(self))


def _from_tuple(cls: Any, values: Any) -> Any:
    """Return an instance from the values of all fields, in their order."""
    fields = dataclasses.fields(cls)
    return cls(**dict(zip([f.name for f in fields], values, strict=True)))


class _ByName(Mapping):
    """The methods that make a dataclass a mapping from the names of its fields."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:  # type: ignore[attr-defined]
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter([f.name for f in dataclasses.fields(self)])  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(dataclasses.fields(self))  # type: ignore[arg-type]


def _as_mapping(cls: type) -> type:
    """Return a subclass of `Mapping` with the attributes of a dataclass."""
    original = cls.__init__
    names = [f.name for f in dataclasses.fields(cls)]

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        if len(args) > 1 or (args and kwargs):
            raise ValueError(
                f"{cls.__name__} is a mapping: it takes its fields by name, or one dict of them, "
                f"not {len(args)} positional arguments."
            )
        given = dict(*args, **kwargs)
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"{cls.__name__} has no fields {unknown}; its fields are {names}.")
        original(self, **given)

    bases = tuple(b for b in cls.__bases__ if b is not object)
    if not any(issubclass(b, _ByName) for b in bases):
        bases = (*bases, _ByName)
    body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    made = type(cls)(cls.__name__, bases, {**body, "__init__": __init__})
    made.__qualname__ = cls.__qualname__
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(field, dataclasses.field))
class PyTreeNode:
    """A base class whose subclasses become dataclasses and trees, like those of `dataclass`.

    Example:
        >>> class Line(PyTreeNode):
        ...     slope: float
        ...     offset: float = 0.0
        >>> from namoo import tree
        >>> tree.leaves(Line(2.0).replace(offset=1.0))
        [2.0, 1.0]
    """

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__()
        dataclass(**kwargs)(cls)

    def replace(self: T, **changes: Any) -> T:
        """Return a copy with other values for some of the fields."""
        return replace(self, **changes)


_guard(globals())
