"""Shortcuts of reductions and of searches along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.floating_errors import (
    floating_errors_off,
    reset_floating_errors,
    set_floating_errors,
)
from namoo._base.runtime import native
from namoo._base.source_context import hide_internal_frames
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace
from namoo.eager.shortcuts import Entries, Function, Shortcut, quiet, remembered

ENTRIES = Entries()

# By NumPy's type characters: floats and complex numbers of 32 bits or more, and wide integers.
_SUMS = frozenset("fdFDilIL")
_NARROW = frozenset("iI")  # summed in 64 bits where those are enabled
_ORDERS = frozenset("fdbhilBHIL?")
_FLOATS = frozenset("fdFD")
_REALS = frozenset("fd")
_BOOLEANS = frozenset("?")


def _reduced(
    ufunc: np.ufunc, chars: frozenset[str], a: Any, axis: Any, keepdims: bool
) -> np.ndarray | None:
    """The reduction by a NumPy ufunc of a concrete array over all axes or one; else None."""
    if type(a) is not EagerArray:
        return None
    value = a._value
    char = value.dtype.char
    if char not in chars or not (axis is None or type(axis) is int):
        return None
    if char in _NARROW and ufunc is np.add and config.enable_x64:
        return None
    token = set_floating_errors(floating_errors_off)
    try:
        out = ufunc.reduce(value, axis, value.dtype, None, keepdims)  # type: ignore[call-arg]
    except ValueError:
        # A bad axis, or nothing to reduce: the general path says which.
        return None
    finally:
        reset_floating_errors(token)
    return out if type(out) is np.ndarray else np.asarray(out)


_KEEPDIMS = {"keepdims"}


def _reduction(
    name: str,
    ufunc: np.ufunc,
    chars: frozenset[str],
    total: Callable[[np.ndarray], Any] | None = None,
) -> None:
    """Add a reduction, for calls without options other than `axis` and `keepdims`.

    Args:
        name: the function in `numpy.reductions`.
        ufunc: the NumPy function that is reduced with.
        chars: the type characters for which both agree.
        total: reduces all of an array faster than NumPy, and returns None where it does not.
    """

    def install(fun: Function) -> Function:
        general = remembered(fun)

        @wraps(fun)
        def quick(a: Any, axis: Any = None, *args: Any, **options: Any) -> Array:
            try:
                if (
                    context.trace is eval_trace
                    and not args
                    and (not options or options.keys() == _KEEPDIMS)
                ):
                    if axis is None and total is not None and not options:
                        if type(a) is EagerArray:
                            out = total(a._value)
                            if out is not None:
                                return EagerArray(out)
                    out = _reduced(ufunc, chars, a, axis, options.get("keepdims", False))
                    if out is not None:
                        return EagerArray(out)
                return general(a, axis, *args, **options)
            except Exception as error:
                hide_internal_frames(error)
                raise

        quick.is_entry_point = True  # type: ignore[attr-defined]
        return quick

    condition = f"an array of type {''.join(sorted(chars))}; axis=None or an int; keepdims"
    if total is not None:
        condition += "; small arrays without options in C++"
    ENTRIES.append(Shortcut("numpy.reductions", name, ufunc.reduce, condition, install))


_reduction("sum", np.add, _SUMS, getattr(native, "total", None))
_reduction("max", np.maximum, _ORDERS)
_reduction("min", np.minimum, _ORDERS)
_reduction("all", np.logical_and, _BOOLEANS)
_reduction("any", np.logical_or, _BOOLEANS)


@ENTRIES.shortcut("numpy.reductions.mean", remembers=True)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array | None:
    """Floats of 32 bits or more; axis=None or an int; keepdims."""
    if dtype is not None or where is not None or out is not None:
        return None
    total = _reduced(np.add, _FLOATS, a, axis, keepdims)
    if total is None or not total.size:
        return None
    return EagerArray(quiet(np.divide, total, total.dtype.type(a.size // total.size)))


@ENTRIES.shortcut("numpy.reductions.var", remembers=True)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array | None:
    """Real floats of 32 bits or more; axis=None or an int; an integer ddof; keepdims."""
    if not (dtype is where is mean is correction is out is None and type(ddof) is int):
        return None
    total = _reduced(np.add, _REALS, a, axis, True)
    if total is None or not total.size:
        return None
    value, kind = a._value, total.dtype.type
    n = value.size // total.size
    if n <= ddof:
        return None
    offset = quiet(np.subtract, value, quiet(np.divide, total, kind(n)))
    squares = EagerArray(quiet(np.multiply, offset, offset))
    total = _reduced(np.add, _REALS, squares, axis, keepdims)
    return None if total is None else EagerArray(quiet(np.divide, total, kind(n - ddof)))


@ENTRIES.shortcut("numpy.reductions.std", remembers=True)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array | None:
    """Real floats of 32 bits or more; axis=None or an int; an integer ddof; keepdims."""
    square = var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return None if square is None else EagerArray(quiet(np.sqrt, square._value))


def _located(locate: Function, a: Any, axis: Any, out: None, keepdims: Any) -> Array | None:
    if type(a) is not EagerArray or out is not None or not (axis is None or type(axis) is int):
        return None
    value = a._value
    # The general path raises the errors: for an empty axis, a bad one, a place that does not fit.
    if value.dtype.kind not in "fiub" or not 0 < value.size < 2**31:
        return None
    if axis is not None and not -value.ndim <= axis < value.ndim:
        return None
    places = locate(value, axis, keepdims=bool(keepdims))
    return EagerArray(np.asarray(places, dtypes.default_int_dtype()))


@ENTRIES.shortcut("numpy.searching.argmax")
def argmax(a: Any, axis: Any = None, out: None = None, keepdims: Any = None) -> Array | None:
    """Real numbers; axis=None or an int."""
    return _located(np.argmax, a, axis, out, keepdims)


@ENTRIES.shortcut("numpy.searching.argmin")
def argmin(a: Any, axis: Any = None, out: None = None, keepdims: Any = None) -> Array | None:
    """Real numbers; axis=None or an int."""
    return _located(np.argmin, a, axis, out, keepdims)


@ENTRIES.shortcut("numpy.searching._bisect")
def _bisect(x: Array, values: Array, side: Any, dtype: Any) -> Array | None:
    """Real numbers."""
    if type(x) is not EagerArray or type(values) is not EagerArray:
        return None
    if x._value.dtype.kind not in "fiu":
        return None
    return EagerArray(np.asarray(np.searchsorted(x._value, values._value, side), dtype))


@ENTRIES.shortcut("numpy.sets._unique_slices")
def _unique_slices(
    slices: Array, equal_nan: bool, size: int | None, fill_value: Any
) -> tuple[Array, ...] | None:
    """A vector of real numbers that is not empty, without `size`."""
    if type(slices) is not EagerArray or size is not None:
        return None
    value = slices._value
    if value.ndim != 1 or not value.size or value.dtype.kind not in "biuf":
        return None
    values, *places = np.unique(value, True, True, True, equal_nan=equal_nan)
    indices = (EagerArray(x.astype(dtypes.default_int_dtype())) for x in places)
    return EagerArray(values, slices._weak), *indices


def _two_sets(a: Any, b: Any) -> bool:
    """Whether these are concrete vectors of integers of one type that have elements."""
    if not type(a) is type(b) is EagerArray:
        return False
    x, y = a._value, b._value
    same = x.dtype is y.dtype and x.dtype.kind in "iu"
    return same and x.ndim == y.ndim == 1 and x.size > 0 < y.size and not (a._weak or b._weak)


@ENTRIES.shortcut("numpy.sets.intersect1d")
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | None:
    """Vectors of integers, without options."""
    if assume_unique or return_indices or size is not None or not _two_sets(ar1, ar2):
        return None
    return EagerArray(np.intersect1d(ar1._value, ar2._value))


@ENTRIES.shortcut("numpy.sets.union1d")
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array | None:
    """Vectors of integers, without options."""
    if size is not None or not _two_sets(ar1, ar2):
        return None
    return EagerArray(np.union1d(ar1._value, ar2._value))


@ENTRIES.shortcut("numpy.sets.setdiff1d")
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | None:
    """Vectors of integers, without options."""
    if assume_unique or size is not None or not _two_sets(ar1, ar2):
        return None
    return EagerArray(np.setdiff1d(ar1._value, ar2._value))
