"""Shortcuts of functions that make arrays from numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.lazy import later
from namoo.core.array import Array, EagerArray
from namoo.core.avals import ShapedArray
from namoo.eager.shortcuts import Entries, quiet

ENTRIES = Entries()

shapes = later("namoo.primitives.shape")


@ENTRIES.shortcut("primitives.shape.zeros")
def zeros(aval: ShapedArray) -> Any:
    """Numbers."""
    if aval.dtype == dtypes.float0 or isinstance(aval.dtype, dtypes.ExtendedDType):
        return None
    return EagerArray(np.zeros(aval.shape, aval.dtype), aval.weak_type)


@ENTRIES.shortcut("primitives.shape.ones")
def ones(aval: ShapedArray) -> Any:
    """Always."""
    return EagerArray(np.ones(aval.shape, aval.dtype), aval.weak_type)


@ENTRIES.shortcut("numpy.creation.constant")
def constant(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool = False) -> Array | None:
    """Numbers."""
    if not isinstance(dtype, np.dtype) or dtype.names is not None:
        return None
    out = np.zeros(shape, dtype) if not value else np.full(shape, value, dtype)
    return EagerArray(out, weak)


@ENTRIES.shortcut("numpy.creation._stack")
def _stack(rows: list[Array]) -> Array | None:
    """Rows that are concrete."""
    if not all(isinstance(row, EagerArray) for row in rows):
        return None
    return EagerArray(np.stack([row._value for row in rows]))  # type: ignore[attr-defined]


@ENTRIES.shortcut("numpy.creation.arange")
def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array | None:
    """One Python integer and nothing else."""
    if type(start) is int and stop is step is dtype is device is out_sharding is None:
        return EagerArray(np.arange(start, dtype=dtypes.default_int_dtype()))
    return None


@ENTRIES.shortcut("numpy.creation.astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array | None:
    """A concrete array of real numbers whose type changes."""
    if type(x) is not EagerArray or dtype is None or device is not None:
        return None
    value = x._value
    new = dtypes.check_user_dtype_supported(dtype, "astype")
    if value.dtype.kind not in "fiub" or not isinstance(new, np.dtype) or new == value.dtype:
        return None
    convert = shapes.convert_element_type_p.evaluate
    return EagerArray(quiet(partial(convert, new_dtype=new, weak_type=False), value))


@ENTRIES.shortcut("numpy.grids._band")
def _band(shape: tuple[int, int], relation: str, k: Any, dtype: Any) -> Array | None:
    """A Python integer of 32 bits as offset."""
    if type(k) is not int or not -0x80000000 <= k <= 0x7FFFFFFF:
        return None
    band = np.eye if relation == "eq" else np.tri
    return EagerArray(band(*shape, k, dtype))


@ENTRIES.shortcut("numpy.grids._diagonal")
def _diagonal(x: Array, offset: int, first: int, second: int) -> Array | None:
    """A concrete array."""
    if type(x) is not EagerArray:
        return None
    return EagerArray(np.diagonal(x._value, offset, first, second), x._weak)
