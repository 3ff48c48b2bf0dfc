"""The entries of a key path: each names one step from a node to its child."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath = tuple[KeyEntry, ...]


class _Key:
    """An immutable, hashable holder of one value; it equals only keys of its own class."""

    __slots__ = ("_value",)
    __match_args__ = ("_value",)

    def __repr__(self):
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __eq__(self, other):
        return self._value == other._value if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash((type(self), self._value))


class SequenceKey(_Key):
    """A child of a list or tuple, by position.

    Example:
        >>> print(SequenceKey(2))
        [2]
    """

    __slots__ = ()
    __match_args__ = ("idx",)

    def __init__(self, idx: int):
        self._value = operator.index(idx)

    @property
    def idx(self) -> int:
        return self._value

    def __str__(self):
        return f"[{self._value}]"


class DictKey(_Key):
    """A child of a mapping, by its key.

    Example:
        >>> print(DictKey("w"))
        ['w']
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: Any):
        self._value = key

    @property
    def key(self) -> Any:
        return self._value

    def __str__(self):
        return f"[{self._value!r}]"


class GetAttrKey(_Key):
    """A child of an object, by attribute name.

    Example:
        >>> print(GetAttrKey("bias"))
        .bias
    """

    __slots__ = ()
    __match_args__ = ("name",)

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"GetAttrKey takes the attribute's name, a str, not {name!r}")
        self._value = name

    @property
    def name(self) -> str:
        return self._value

    def __str__(self):
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """A child of a registered class that does not name its children, by position.

    Example:
        >>> print(FlattenedIndexKey(0))
        [<flat index 0>]
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: int):
        self._value = operator.index(key)

    @property
    def key(self) -> int:
        return self._value

    def __str__(self):
        return f"[<flat index {self._value}>]"


def key_value(key: Any) -> Any:
    """Return the index, dictionary key or name of a key entry; return other objects as is."""
    return key._value if isinstance(key, _Key) else key


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Write a key path as the expression that reaches the leaf.

    Args:
        keys: the entries of a key path, as `flatten_with_path` returns them; other objects are
            written with `str`.
        simple: write only what each key holds. Shorter, but `'0'` may then be an index, an integer
            key or a string key.
        separator: the text between two keys.

    Returns:
        The joined string; empty for the path of the root.

    Example:
        >>> from namoo import tree
        >>> [(path, leaf)] = tree.leaves_with_path({"layers": [{"w": 1.0}]})
        >>> keystr(path)
        "['layers'][0]['w']"
        >>> keystr(path, simple=True, separator="/")
        'layers/0/w'
    """
    return separator.join([str(key_value(key)) if simple else str(key) for key in keys])
