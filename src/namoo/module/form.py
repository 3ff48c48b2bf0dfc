"""Decide, once, when a module is created, which parts of it are data and which are structure.

A field holds a subtree, an array, or something else: a function, a string, a number. The latter is
configuration and belongs to the structure. The decision is stored in the structure (its `Form`), so
that a tree with other values instead of the arrays (booleans, shapes, None) has the same leaves.

Two positions that hold the same array object are one parameter: the second is *tied* to the first
and is not a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import tree
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct
from namoo.struct import check_static, describe
from namoo.tree.classes import register_static
from namoo.tree.metadata import is_immutable
from namoo.tree.registry import node_type
from namoo.tree.treedef import PyTreeDef


class _Data:
    """The marker in a form for a field that holds data."""

    def __repr__(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "DATA"


DATA = _Data()


@register_static
class Fixed:
    """A value in a container of a module that is configuration, not a leaf."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Fixed)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


@register_static
class Tied:
    """The marker for a position that holds the same array as an earlier leaf."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tied)

    def __hash__(self) -> int:
        return hash(Tied)

    def __repr__(self) -> str:
        return "tied"


class Ties:
    """Which leaves of a module are the same array.

    Attributes:
        whole: the structure of the children as the user sees them.
        hidden: the structure with `Tied` instead of every leaf that repeats another.
        index: for each leaf of `whole`, the number of the same leaf in `hidden`.
    """

    __slots__ = ("hidden", "index", "whole")

    def __init__(self, whole: PyTreeDef, hidden: PyTreeDef, index: tuple[int, ...]):
        self.whole, self.hidden, self.index = whole, hidden, index

    def hide(self, children: Sequence[Any]) -> list[Any]:
        """Return the children without the repeated leaves."""
        leaves = self.whole.flatten_up_to(list(children))
        first: dict[int, Any] = {}
        for number, leaf in zip(self.index, leaves, strict=True):
            first.setdefault(number, leaf)
        return self.hidden.unflatten(first.values())

    def show(self, children: Sequence[Any]) -> list[Any]:
        """Return the children with every repeated leaf restored."""
        kept = self.hidden.subtrees_of(list(children))
        if kept is None:  # a node rebuilt from placeholders to find its keys
            return list(children)
        return self.whole.unflatten([kept[i] for i in self.index])

    def hold(self, children: Sequence[Any]) -> bool:
        """Return whether the tied positions of the children still hold the same object."""
        leaves = self.whole.subtrees_of(list(children))
        if leaves is None:
            return False
        first: dict[int, Any] = {}
        return all(first.setdefault(i, x) is x for i, x in zip(self.index, leaves, strict=True))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ties)
            and self.index == other.index
            and self.hidden == other.hidden
            and self.whole == other.whole
        )

    def __hash__(self) -> int:
        return hash((self.hidden, self.index))

    def __repr__(self) -> str:
        return f"ties {self.index}"


class Mixed:
    """Which parts of a container in a field are configuration.

    Attributes:
        outline: the structure of the container, with modules and other nodes of a class as leaves.
        flags: for each leaf of it, whether it is configuration.
    """

    __slots__ = ("flags", "outline")

    def __init__(self, outline: PyTreeDef, flags: tuple[bool, ...]):
        self.outline, self.flags = outline, flags

    def hide(self, value: Any) -> Any:
        """Return the container with its configuration moved into the structure."""
        parts = self.outline.flatten_up_to(value)
        return self.outline.unflatten(
            [Fixed(x) if flag else x for x, flag in zip(parts, self.flags, strict=True)]
        )

    def show(self, value: Any) -> Any:
        """Undo `hide`."""
        parts = self.outline.subtrees_of(value)
        if parts is None:  # a node rebuilt from placeholders to find its keys
            return value
        return self.outline.unflatten([x.value if type(x) is Fixed else x for x in parts])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mixed) and self.flags == other.flags and self.outline == other.outline
        )

    def __hash__(self) -> int:
        return hash((self.outline, self.flags))

    def __repr__(self) -> str:
        return repr(self.outline)


class Form(tuple):
    """The metadata of a module: its static values, and `DATA` for each field that is data.

    The last entry holds everything else: the containers with configuration, the ties, and the types
    of the static values, because 1, 1.0 and True are equal but lead to different programs.
    """

    names: tuple[str, ...]
    static: tuple[tuple[str, Any], ...]
    mixed: dict[str, Mixed]
    ties: Ties | None
    is_plain: bool

    def __new__(
        cls,
        fields: Sequence[str],
        values: Sequence[Any],
        mixed: dict[str, Mixed],
        ties: Ties | None,
    ):
        types = tuple(type(v) for v in values if isinstance(v, (bool, int, float, complex)))
        self = super().__new__(cls, (*values, (tuple(mixed.items()), ties, types)))
        pairs = [*zip(fields, values, strict=True)]
        self.names = tuple(name for name, value in pairs if value is DATA)
        self.static = tuple((name, value) for name, value in pairs if value is not DATA)
        self.mixed = mixed
        self.ties = ties
        self.is_plain = not mixed and ties is None
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        names, static = iter(self.names), iter(self.static)
        values = tuple(self)[:-1]
        fields = tuple(next(names) if v is DATA else next(static)[0] for v in values)
        return fields, values, self.mixed, self.ties

    def hide(self, values: dict[str, Any]) -> list[Any]:
        """Return the children of the node, given the fields that the user sees."""
        mixed = self.mixed
        children = [mixed[n].hide(values[n]) if n in mixed else values[n] for n in self.names]
        return children if self.ties is None else self.ties.hide(children)

    def show(self, children: Sequence[Any]) -> dict[str, Any]:
        """Return the fields that the user sees, given the children of the node."""
        mixed = self.mixed
        if self.ties is not None:
            children = self.ties.show(children)
        pairs = zip(self.names, children, strict=True)
        return {name: mixed[name].show(x) if name in mixed else x for name, x in pairs}


def is_data(value: Any) -> bool:
    """Return whether a leaf is data rather than configuration."""
    return isinstance(value, (Array, np.ndarray, np.generic, ShapeDtypeStruct))


_CONTAINERS = ("tuple", "list", "dict", "namedtuple")


def _stops(value: Any) -> bool:
    """Return whether a value is not a plain container; used to walk containers only."""
    entry = node_type(type(value))
    return entry is None or entry.kind not in _CONTAINERS


def _is_fixed(value: Any) -> bool:
    return node_type(type(value)) is None and not is_data(value)


def _check_fixed(owner: type, name: str, value: Any, why: str) -> None:
    """Reject a value that is static without being declared so and could change unnoticed."""
    check_static(owner, name, value, why)
    if not is_immutable(value):
        cls = type(value).__name__
        raise TypeError(
            f"the field {owner.__name__}.{name} {why}, but was given {describe(value)}. {cls} is "
            "not a registered tree and its instances can change, which a compiled program would "
            f"not notice. Make {cls} a namoo.struct.dataclass or a namoo.Module, register it with "
            f"namoo.tree_util.register_dataclass, give it __hash__ and __eq__, or declare "
            f"{name} = namoo.struct.field(static=True) if it never changes."
        )


def make_form(
    owner: type,
    values: dict[str, Any],
    fields: Sequence[str],
    declared_static: frozenset[str],
    old: Form | None = None,
) -> Form:
    """Decide which parts of a module are data.

    Args:
        owner: the class, for messages.
        values: the fields.
        fields: their names, in order.
        declared_static: those that were declared static.
        old: the form of the module that this one is derived from. Its data stay data, and its ties
            are kept where they still hold.

    Raises:
        TypeError: if a value that is part of the structure cannot be hashed.
    """
    entries: list[Any] = []
    mixed: dict[str, Mixed] = {}
    for name in fields:
        value = values[name]
        if name in declared_static:
            check_static(owner, name, value, "is static")
            entries.append(value)
        elif _is_fixed(value) and (old is None or name not in old.names):
            _check_fixed(owner, name, value, "holds no array, so it is static")
            entries.append(value)
        else:
            entries.append(DATA)
            found = None if _stops(value) else _find_mixed(owner, name, value, old)
            if found is not None:
                mixed[name] = found
    form = Form(fields, entries, mixed, None)
    children = form.hide(values)
    ties = None if old is None else old.ties
    if ties is None or not ties.hold(children):
        ties = find_ties(children)
    return form if ties is None else Form(fields, entries, mixed, ties)


def _find_mixed(owner: type, name: str, value: Any, old: Form | None) -> Mixed | None:
    parts, outline = tree.flatten(value, is_leaf=_stops)
    flags = [_is_fixed(x) for x in parts]
    if old is not None and name in old.names:
        before = old.mixed.get(name)
        if before is None or before.outline != outline:
            was_fixed = [before is not None] * len(flags)
        else:
            was_fixed = before.flags
        flags = [now and then for now, then in zip(flags, was_fixed, strict=True)]
    for x, flag in zip(parts, flags, strict=True):
        if flag:
            _check_fixed(owner, name, x, "holds a value that is not an array, so it is static")
    return Mixed(outline, tuple(flags)) if any(flags) else None


def find_ties(children: list[Any]) -> Ties | None:
    """Find the children that hold the same array; return None if all arrays are different."""
    leaves, whole = tree.flatten(children)
    seen: dict[int, int] = {}
    index, repeated = [], []
    for leaf in leaves:
        # Equal small numbers may be one Python object; only the identity of arrays means a tie.
        key = id(leaf) if isinstance(leaf, (Array, np.ndarray)) else -1 - len(index)
        repeated.append(key in seen)
        index.append(seen.setdefault(key, len(seen)))
    if not any(repeated):
        return None
    hidden = whole.unflatten(
        [Tied() if again else leaf for leaf, again in zip(leaves, repeated, strict=True)]
    )
    return Ties(whole, tree.structure(hidden), tuple(index))
