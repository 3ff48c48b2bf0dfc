"""Node classes registered with both namoo and JAX."""

import collections
import dataclasses
from typing import Any, NamedTuple

import jax

import namoo.tree_util

LIBRARIES = (namoo.tree_util, jax.tree_util)


class Point(NamedTuple):
    x: Any
    y: Any


class Record:
    """An object with a value for each of its slots, comparable so that trees can be compared."""

    __slots__ = ()

    def __eq__(self, other):
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        values = ", ".join(repr(getattr(self, name)) for name in self.__slots__)
        return f"{type(self).__name__}({values})"


class Plain(Record):
    """A custom node whose children have no names."""

    __slots__ = ("aux", "children")

    def __init__(self, aux, *children):
        self.aux, self.children = aux, children


class Keyed(Record):
    """A custom node that names its children."""

    __slots__ = ("a", "aux", "b")

    def __init__(self, aux, a, b):
        self.aux, self.a, self.b = aux, a, b


class Bag(Record):
    """A custom mapping: the names of its children are data, and its metadata."""

    __slots__ = ("items",)

    def __init__(self, **items):
        self.items = items


@dataclasses.dataclass
class Dense:
    w: Any
    b: Any
    activation: Any = dataclasses.field(default="relu", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


for library in LIBRARIES:
    library.register_pytree_node(
        Plain, lambda node: (node.children, node.aux), lambda aux, children: Plain(aux, *children)
    )
    library.register_pytree_with_keys(
        Keyed,
        lambda node, key=library.GetAttrKey: (((key("a"), node.a), (key("b"), node.b)), node.aux),
        lambda aux, children: Keyed(aux, *children),
    )
    library.register_pytree_with_keys(
        Bag,
        lambda node, key=library.DictKey: (
            [(key(name), child) for name, child in node.items.items()],
            tuple(node.items),
        ),
        lambda names, children: Bag(**dict(zip(names, children, strict=True))),
    )
    library.register_dataclass(Dense)
    library.register_static(Mode)


class ListSubclass(list):
    pass


class DictSubclass(dict):
    pass


class TupleSubclass(tuple):
    pass


class PointSubclass(Point):
    pass


class LooksNamed(tuple):
    _fields = ("first", "second")

    def __new__(cls, *values):
        return tuple.__new__(cls, values)


class OrderedSubclass(collections.OrderedDict):
    pass
