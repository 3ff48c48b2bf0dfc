"""Metadata (aux data) is part of a tree's structure: it must be hashable and comparable.

The check costs nothing until it fails: hashing and comparing go through C, and only when that
raises is the metadata searched for the class and the field to blame.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from namoo._tree.keys import KeyPath, keystr
from namoo._tree.registry import NodeType


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True


_OUTSIDE = ("__array__", "__jax_array__", "__dlpack__")
_CONSTANT = (
    type,
    types.ModuleType,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
)


def is_immutable(value: Any) -> bool:
    """Whether nothing that a program may read of a value can change without being noticed.

    True of functions and classes, of values whose class defines its own `__hash__` (strings, enums,
    dtypes, frozen dataclasses, a user's class with `__hash__` and `__eq__`), and of objects without
    any state. A bound method or a `functools.partial` is as immutable as the values it holds. False
    of instances of other classes, which are equal only to themselves and can be changed, of values
    without a hash, and of arrays.
    """
    cls = type(value)
    if isinstance(value, _CONSTANT) or getattr(cls, "_is_immutable", False):
        return True
    if cls is slice:  # has no hash before Python 3.12
        return all(map(is_immutable, (value.start, value.stop, value.step)))
    if isinstance(value, functools.partial):
        return all(map(is_immutable, (value.func, *value.args, *value.keywords.values())))
    if callable(value) and hasattr(value, "__name__"):  # a function, or a wrapper of one
        owner = getattr(value, "__self__", None)
        return owner is None or is_immutable(owner)
    if cls.__hash__ is not object.__hash__:
        return is_hashable(value) and not any(hasattr(cls, name) for name in _OUTSIDE)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:  # with eq=False
        return all(is_immutable(getattr(value, f.name)) for f in dataclasses.fields(cls))
    # As `object()` is, and instances of classes with empty `__slots__`.
    return cls.__basicsize__ == object.__basicsize__ and not cls.__dictoffset__


def is_comparable(a: Any, b: Any) -> bool:
    try:
        bool(a is b or a == b)
    except Exception:
        return False
    return True


def unhashable_error(path: KeyPath, entry: NodeType, meta: Any) -> TypeError:
    """The error that says which part of a node's metadata cannot be hashed."""
    label, [value] = _culprit(entry, is_hashable, meta)
    return TypeError(_refusal(path, label, value, "is not hashable"))


def incomparable_error(path: KeyPath, entry: NodeType, meta: Any, other: Any) -> ValueError:
    """The error that says which part of two nodes' metadata `==` cannot decide."""
    label, values = _culprit(entry, is_comparable, meta, other)
    value = next((value for value in values if not is_hashable(value)), values[0])
    return ValueError(_refusal(path, label, value, "does not compare to a plain True or False"))


def _refusal(path: KeyPath, label: str, value: Any, fault: str) -> str:
    cls = type(value)
    name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    place = f" (at {keystr(path)})" if path else ""
    if cls in _INSTEAD:
        advice = f"Use a {_INSTEAD[cls]}, or make it a child (a data field)."
    elif hasattr(cls, "shape"):
        advice = "An array belongs among the children (the data fields), not in static data."
    else:
        advice = f"Give {cls.__name__} an __eq__ and a __hash__, as a frozen dataclass has them."
    return (
        f"{label}{place} is static, but holds a {name}, which {fault}. Static data is part of the "
        f"structure of a tree, and of the key under which a compiled function is found again: it "
        f"must be hashable and comparable by ==. {advice}"
    )


_INSTEAD = {list: "tuple", set: "frozenset", dict: "tuple of (key, value) pairs"}


def _culprit(
    entry: NodeType, is_good: Callable[..., bool], *metas: Any
) -> tuple[str, tuple[Any, ...]]:
    """Goes down equal tuples to the innermost part that is not good; its label and values."""
    label, names = f"the aux_data of {entry.cls.__name__}", entry.meta_names or ()
    while all(isinstance(meta, tuple) for meta in metas) and len(set(map(len, metas))) == 1:
        parts = list(zip(*metas, strict=True))
        index = next((i for i, part in enumerate(parts) if not is_good(*part)), None)
        if index is None:
            break
        if index < len(names):
            label = f"the field {entry.cls.__name__}.{names[index]}"
        else:
            label = f"{label}[{index}]"
        metas, names = parts[index], ()
    return label, metas
