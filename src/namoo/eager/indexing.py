"""Shortcuts of indexing, of changed copies, and of slices at computed positions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import wraps
from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo._base.source_context import hide_internal_frames
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace
from namoo.eager.shortcuts import Entries, Function, Shortcut, quiet, remembered

ENTRIES = Entries()

_BASIC = frozenset([int, slice, type(None), type(Ellipsis)])
"""Index types that NumPy answers with a view."""


def _is_basic(index: Any) -> bool:
    kind = type(index)
    return kind in _BASIC or kind is tuple and _BASIC.issuperset(map(type, index))


# Types that NumPy indexes by without loss. It reads uint64 as signed: large values turn negative.
_INTEGERS = frozenset("bhilqBHI")
_INDEX_TYPES = _INTEGERS | {"?"}


def _numpy_index(index: Any) -> Any:
    """The index as NumPy takes it; None where it is traced, or neither integer nor boolean."""
    if type(index) is not tuple:
        return _numpy_item(index)
    items = [item if type(item) in _BASIC else _numpy_item(item) for item in index]
    for item, given in zip(items, index, strict=True):
        if item is None and given is not None:
            return None
    return tuple(items)


def _numpy_item(item: Any) -> Any:
    kind = type(item)
    if kind is bool:
        return item
    if kind is EagerArray:
        item = item._value
    elif kind is not np.ndarray and not isinstance(item, (np.integer, np.bool_)):
        return None
    return item if item.dtype.char in _INDEX_TYPES else None


def _install_getitem(fun: Function) -> Function:
    """Written out, because indexing is too short an operation for one more call."""
    general = remembered(fun)

    @wraps(fun)
    def quick(x: Any, index: Any, /) -> Any:
        try:
            if type(x) is EagerArray and context.trace is eval_trace:
                kind = type(index)
                try:
                    if kind in _BASIC or kind is tuple and _BASIC.issuperset(map(type, index)):
                        out = x._value[index]
                        if type(out) is np.void:
                            # One random key: a view, so that reuse of a key can be detected.
                            out = x._value[(*index, ...) if kind is tuple else (index, ...)]
                        return EagerArray(
                            out if type(out) is np.ndarray else np.asarray(out), x._weak
                        )
                    plain = _numpy_index(index)
                    if plain is not None:
                        out = _numpy_take(x._value, plain)
                        return EagerArray(
                            out if type(out) is np.ndarray else np.asarray(out), x._weak
                        )
                except IndexError:
                    # The general path clamps arrays out of bounds, and raises better errors.
                    pass
            return general(x, index)
        except Exception as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick


def _numpy_take(value: np.ndarray, index: Any) -> Any:
    if type(index) is np.ndarray and index.ndim and index.dtype.char != "?" and value.ndim:
        return value.take(index, 0)
    return value[index]


ENTRIES.append(
    Shortcut(
        "numpy.indexing",
        "getitem",
        _numpy_take,
        "integers, slices, None, Ellipsis, concrete integer arrays and masks, all in bounds",
        _install_getitem,
    )
)


# The Python numbers that NumPy writes into an array without loss, by kind of its dtype.
_SCALARS = {"f": (int, float), "c": (int, float, complex), "i": (int,), "u": (int,), "b": (bool,)}

_UFUNCS: dict[str, np.ufunc | None] = {
    "scatter": None,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}

# Up to so many elements `ufunc.at` is faster than setting up a scatter.
_FEW = 256


def _changed(kind: str, x: EagerArray, index: Any, values: Any, in_place: bool) -> Array | None:
    value = x._value
    if type(values) is EagerArray and values._value.dtype is value.dtype:
        y: Any = values._value
    elif type(values) in _SCALARS.get(value.dtype.kind, ()):
        try:
            y = np.asarray(values, value.dtype)
        except OverflowError:  # Numbers that do not fit wrap around.
            return None
    else:
        return None
    ufunc = _UFUNCS[kind]
    if ufunc is not None and value.dtype == np.bool_:
        return None
    basic = _is_basic(index)
    if not basic:
        is_tuple = type(index) is tuple
        index = _numpy_index(index)
        # The last of two values for one element wins: NumPy keeps the order along one axis.
        if index is None or any(np.ndim(i) > 1 for i in (index if is_tuple else (index,))):
            return None
    try:
        old = value[index]
        if np.ndim(y) > np.ndim(old):
            return None
        if ufunc is not None and not basic and np.size(old) > _FEW:
            return None
        # The memory may belong to another library, or be a view.
        in_place = in_place and value.flags.owndata and value.flags.writeable
        out = value if in_place else value.copy()
        if ufunc is None:
            out[index] = y
        elif basic:
            out[index] = quiet(ufunc, old, y)
        else:
            quiet(ufunc.at, out, index, y)
    except (IndexError, ValueError):
        # The general path drops elements out of bounds, and raises better errors.
        return None
    return EagerArray(out, x._weak)


@ENTRIES.shortcut("numpy.at.update")
def update(
    kind: str,
    x: Any,
    index: Any,
    values: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    wrap: bool = True,
) -> Array | None:
    """Indices as for `getitem` (arrays of one axis at most); values of the array's own dtype."""
    if type(x) is not EagerArray or not wrap or mode is not None:
        return None
    return _changed(kind, x, index, values, False)


@ENTRIES.shortcut("numpy.at.update_at")
def update_at(
    ref: Any, kind: str, values: Any, sorted: bool, unique: bool, mode: Any, wrap: bool
) -> Any:
    """As for `update`; an array that nothing else refers to is changed in place.

    In `x.at[0].set(a).at[1].set(b)`, the second call may write to the result of the first.
    """
    x = ref.array
    if type(x) is not EagerArray or not wrap or mode is not None:
        return None
    counts = sys.getrefcount(ref), sys.getrefcount(x), sys.getrefcount(x._value)
    if ref.index is _PROBE:
        return counts
    return _changed(kind, x, ref.index, values, _COUNTED and counts == _counts_of_temporary())


# Other implementations of Python, and those without a global lock, count references differently;
# later versions of CPython may.  There the memory is never reused.
_COUNTED = (
    sys.implementation.name == "cpython"
    and sys.version_info < (3, 15)
    and getattr(sys, "_is_gil_enabled", lambda: True)()
)
_PROBE = object()


@cached("eager reference counts of a temporary array", bound=1, keyed_by="nothing", kept=True)
def _counts_of_temporary() -> tuple[int, ...]:
    """The reference counts in `update_at` where nothing else refers to the array.

    Versions of Python differ in how many references a call holds, so they are measured, once, when
    the first array is changed.  If binding the array, its memory or the reference to a name gives
    the same counts, they prove nothing, and nothing is changed in place.
    """
    from namoo.numpy.at import IndexUpdateRef

    memory = np.zeros(1, np.float32)
    array = EagerArray(np.zeros(1, np.float32))
    ref = IndexUpdateRef(EagerArray(np.zeros(1, np.float32)), _PROBE)
    named = [
        IndexUpdateRef(EagerArray(memory), _PROBE).set(0.0),
        IndexUpdateRef(array, _PROBE).set(0.0),
        ref.set(0.0),
    ]
    temporary = IndexUpdateRef(EagerArray(np.zeros(1, np.float32)), _PROBE).set(0.0)
    return () if temporary in named else temporary


_MODES = frozenset([type(None), str])
# NumPy's modes for those of `take`.
_TAKES: dict[Any, Any] = {None: "raise", "fill": "raise", "wrap": "wrap", "clip": "clip"}


@ENTRIES.shortcut("numpy.taking.take")
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Integer indices; axis=None or an int in range; in the default mode, indices in bounds."""
    if type(a) is not EagerArray or type(indices) is not EagerArray or out is not None:
        return None
    value, places = a._value, indices._value
    if places.dtype.char not in _INTEGERS or type(mode) not in _MODES:
        return None
    if mode not in _TAKES:
        return None
    if axis is not None and not (type(axis) is int and -value.ndim <= axis < value.ndim):
        return None
    try:
        return EagerArray(np.asarray(value.take(places, axis, mode=_TAKES[mode])), a._weak)
    except (IndexError, TypeError):
        # Out of bounds, or of a type that NumPy does not index by.
        return None


@ENTRIES.shortcut("numpy.taking._take_along")
def _take_along(x: Array, index: Array, axis: int, mode: Any, fill: Any, wrap: bool) -> Any:
    """Indices in bounds, and shapes that fit."""
    if type(x) is not EagerArray or type(index) is not EagerArray:
        return None
    places, n = index._value, x.shape[axis]
    if (
        places.dtype.char not in _INTEGERS
        or not places.size
        or places.min() < (-n if wrap else 0)
        or places.max() >= n
    ):
        return None
    try:
        return EagerArray(np.take_along_axis(x._value, places, axis), x._weak)
    except IndexError:
        return None


def _box(
    shape: tuple[int, ...], starts: Any, sizes: Any, negative: bool | Sequence[bool]
) -> tuple[slice, ...] | None:
    """The slices of a box at concrete starts, moved inside the array; None where it is unclear."""
    if negative is not True or type(starts) not in (tuple, list):
        return None
    if not len(shape) == len(starts) == len(sizes):
        return None
    dtype, index = None, []
    for start, size, n in zip(starts, sizes, shape, strict=True):
        if type(start) is EagerArray:
            value = start._value
            if value.ndim or value.dtype.kind not in "iu" or value.dtype != (dtype or value.dtype):
                return None
            dtype, start = value.dtype, value.item()
        elif type(start) is not int:
            return None
        if type(size) is not int or not 0 <= size <= n:
            return None
        if start < 0:
            start += n
        start = 0 if start < 0 else start if start <= n - size else n - size
        index.append(slice(start, start + size))
    return tuple(index)


@ENTRIES.shortcut("primitives.slicing.dynamic_slice")
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array | None:
    """Starts that are Python integers or concrete scalars of one integer type."""
    if type(operand) is not EagerArray:
        return None
    box = _box(operand._value.shape, start_indices, slice_sizes, allow_negative_indices)
    return None if box is None else EagerArray(operand._value[box], operand._weak)


@ENTRIES.shortcut("primitives.slicing._without_axis")
def _without_axis(x: Any, axis: int) -> Array | None:
    """A concrete array."""
    if type(x) is not EagerArray:
        return None
    return EagerArray(x._value[(*(slice(None),) * axis, 0, ...)], x._weak)


@ENTRIES.shortcut("primitives.slicing.dynamic_update_slice")
def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array | None:
    """Arrays of one dtype; starts as for `dynamic_slice`."""
    if not (type(operand) is type(update) is EagerArray):
        return None
    value, new = operand._value, update._value
    if value.dtype is not new.dtype:
        return None
    box = _box(value.shape, start_indices, new.shape, allow_negative_indices)
    if box is None:
        return None
    out = value.copy()
    out[box] = new
    return EagerArray(out, operand._weak and update._weak and not box)
