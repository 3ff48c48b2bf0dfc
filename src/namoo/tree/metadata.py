"""Metadata (aux data) is part of a tree's structure: it is compared, and hashed by its content.

Lists, dicts and sets have no hash of their own; as metadata they are copied and hashed by what they
hold. Arrays are refused. The check costs nothing until it fails: hashing and comparing go through
C, and only when that raises is the metadata searched for the class and the field to blame.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from namoo.tree.keys import KeyPath, keystr
from namoo.tree.registry import NodeType


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
    """Return whether a value is immutable for a program: no change of it can go unnoticed.

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
        return is_hashable(value) and not is_array_like(value)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:  # with eq=False
        return all(is_immutable(getattr(value, f.name)) for f in dataclasses.fields(cls))
    # True for `object()` and for instances of classes with empty `__slots__`.
    return cls.__basicsize__ == object.__basicsize__ and not cls.__dictoffset__


def frozen(meta: Any) -> tuple[Any, int]:
    """Return a copy of the metadata that cannot change, and its hash.

    Unhashable values are copied: a structure that is the cache key of a compiled program must not
    change when the user modifies a list or dict in its metadata.

    Raises:
        TypeError: for an array, whose equality is not a single True or False.
    """
    if is_hashable(meta):
        return meta, hash(meta)
    cls = type(meta)
    if isinstance(meta, dict):
        items = {key: frozen(value) for key, value in meta.items()}
        result = copy.copy(meta)
        result.update({key: value for key, (value, _) in items.items()})
        return result, hash((cls, frozenset((key, code) for key, (_, code) in items.items())))
    if cls in (list, tuple):
        parts = [frozen(part) for part in meta]
        return cls(part for part, _ in parts), hash((cls, *(code for _, code in parts)))
    if isinstance(meta, set):
        return copy.copy(meta), hash((cls, frozenset(meta)))
    if is_array_like(meta):
        raise TypeError(f"an array of type {cls.__name__} cannot be hashed")
    return copy.copy(meta), hash(cls)


def is_array_like(value: Any) -> bool:
    return any(hasattr(type(value), name) for name in _OUTSIDE)


def is_comparable(a: Any, b: Any) -> bool:
    try:
        bool(a is b or a == b)
    except Exception:
        return False
    return True


def can_be_frozen(meta: Any) -> bool:
    try:
        frozen(meta)
    except Exception:
        return False
    return True


def unhashable_error(path: KeyPath, entry: NodeType, meta: Any) -> TypeError:
    """Return the error that says which part of a node's metadata cannot be hashed."""
    label, [value] = _culprit(entry, can_be_frozen, meta)
    return TypeError(_refusal(path, label, value, "is not hashable"))


def incomparable_error(path: KeyPath, entry: NodeType, meta: Any, other: Any) -> ValueError:
    """Return the error that says which part of two nodes' metadata `==` cannot decide."""
    label, values = _culprit(entry, is_comparable, meta, other)
    value = next((value for value in values if not is_hashable(value)), values[0])
    fault = "does not compare to a plain True or False"
    return ValueError(
        "Exception raised while checking equality of metadata fields of pytree.\n"
        + _refusal(path, label, value, fault)
    )


def _refusal(path: KeyPath, label: str, value: Any, fault: str) -> str:
    cls = type(value)
    name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    place = f" (at {keystr(path)})" if path else ""
    if hasattr(cls, "shape"):
        advice = "An array belongs among the children (the data fields), not in static data."
    else:
        advice = f"Give {cls.__name__} an __eq__ and a __hash__, as a frozen dataclass has them."
    return (
        f"{label}{place} is static, but holds a {name}, which {fault}. Static data is part of the "
        f"structure of a tree, and of the key under which a compiled function is found again: it "
        f"must be hashable and comparable by ==. {advice}"
    )


def _culprit(
    entry: NodeType, is_good: Callable[..., bool], *metas: Any
) -> tuple[str, tuple[Any, ...]]:
    """Descend into equal containers to the innermost bad part; return its label and values."""
    label, names = f"the aux_data of {entry.cls.__name__}", entry.meta_names or ()
    while True:
        if all(isinstance(meta, (tuple, list)) for meta in metas):
            keys: Any = range(len(metas[0]))
        elif all(isinstance(meta, dict) for meta in metas):
            keys = list(metas[0])
        else:
            break
        if any(len(meta) != len(keys) or keys != _keys(meta) for meta in metas):
            break
        parts = [tuple(meta[key] for meta in metas) for key in keys]
        index = next((i for i, part in enumerate(parts) if not is_good(*part)), None)
        if index is None:
            break
        if index < len(names):
            label = f"the field {entry.cls.__name__}.{names[index]}"
        else:
            label = f"{label}[{keys[index]!r}]"
        metas, names = parts[index], ()
    return label, metas


def _keys(meta: Any) -> Any:
    return list(meta) if isinstance(meta, dict) else range(len(meta))
