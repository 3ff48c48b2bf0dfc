"""Shortcuts of functions that change shapes or join arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.array import Array, EagerArray
from namoo.eager.shortcuts import Entries

ENTRIES = Entries()


@ENTRIES.shortcut("numpy.manipulation.reshape")
def reshape(
    a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array | None:
    """A shape of Python integers that fits, in C order."""
    if type(a) is not EagerArray or order != "C":
        return None
    kind = type(shape)
    if kind is tuple or kind is list:
        for n in shape:
            if type(n) is not int or n < -1:
                return None
    elif kind is not int or shape < -1:
        return None
    try:
        return EagerArray(a._value.reshape(shape), a._weak)
    except ValueError:
        return None


@ENTRIES.shortcut("numpy.manipulation.transpose")
def transpose(a: Any, axes: Any = None) -> Array | None:
    """All axes reversed."""
    return EagerArray(a._value.T, a._weak) if type(a) is EagerArray and axes is None else None


@ENTRIES.shortcut("numpy.manipulation.expand_dims")
def expand_dims(a: Any, axis: Any) -> Array | None:
    """One new axis at a Python integer in range."""
    if type(a) is not EagerArray or type(axis) is not int:
        return None
    shape = a._value.shape
    n = len(shape)
    if not -n - 1 <= axis <= n:
        return None
    place = axis + n + 1 if axis < 0 else axis
    return EagerArray(a._value.reshape(*shape[:place], 1, *shape[place:]), a._weak)


def _values_of_one_type(arrays: Any) -> list[np.ndarray] | None:
    """The values of a list or tuple of concrete arrays of one type, weak or strong; else None."""
    if type(arrays) not in (list, tuple) or not arrays:
        return None
    first = arrays[0]
    if type(first) is not EagerArray:
        return None
    dtype, weak, values = first._value.dtype, first._weak, []
    for x in arrays:
        if type(x) is not EagerArray or x._value.dtype is not dtype or x._weak is not weak:
            return None
        values.append(x._value)
    return values


@ENTRIES.shortcut("numpy.joining.concatenate")
def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Array | None:
    """A list or tuple of arrays of one type that fit; a Python integer as axis."""
    values = _values_of_one_type(arrays) if type(axis) is int and dtype is None else None
    if values is None:
        return None
    try:
        return EagerArray(
            np.concatenate(values, axis), arrays[0]._weak and values[0].dtype != np.bool_
        )
    except ValueError:
        # A bad axis, or shapes that do not fit: the general path says which.
        return None


@ENTRIES.shortcut("numpy.joining.stack")
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array | None:
    """A list or tuple of arrays of one type and shape; a Python integer as axis."""
    values = _values_of_one_type(arrays) if type(axis) is int and dtype is None else None
    if values is None or out is not None:
        return None
    try:
        return EagerArray(np.stack(values, axis), arrays[0]._weak and values[0].dtype != np.bool_)
    except ValueError:
        return None
