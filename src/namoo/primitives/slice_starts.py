"""Starts of dynamic slices: checks, clamping and a normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes as _dtypes
from namoo._base.config import config
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.primitives.dimensions import size_array
from namoo.primitives.elementwise import add, lt, select
from namoo.primitives.shape import shape_of


def box(shape: tuple[int, ...], starts: Sequence[np.ndarray], sizes: tuple[int, ...]) -> tuple:
    """The slices of a box that is moved inside the array."""
    index = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        begin = int(start)
        begin = 0 if begin < 0 else begin if begin <= n - size else n - size
        index.append(slice(begin, begin + size))
    return tuple(index)


def check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    found = ", ".join(s.str_short() for s in starts)
    if len(starts) != x.ndim:
        raise TypeError(
            f"{name}: there must be one start for each axis, got {len(starts)} for an operand of "
            f"shape {x.shape}."
        )
    if any(s.shape for s in starts):
        raise TypeError(f"{name}: start_indices must be scalars, got {found}.")
    dtypes = {s.dtype for s in starts}
    if len(dtypes) > 1 or not all(_dtypes.issubdtype(dtype, np.integer) for dtype in dtypes):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: {found}."
        )


def normal_starts(
    name: str, shape: tuple[int, ...], starts: Sequence[Any], negative: bool | Sequence[bool]
) -> list[Any]:
    """Scalar starts of one integer type; negative ones count from the end, where allowed."""
    if len(starts) != len(shape):
        raise ValueError(
            f"{name}: the number of start_indices must be the number of axes, got {len(starts)} "
            f"for an operand of shape {shape}."
        )
    allowed = [negative] * len(shape) if isinstance(negative, bool) else list(negative)
    if len(allowed) != len(shape):
        raise ValueError(
            f"{name}: allow_negative_indices must be one boolean or one for each axis, got "
            f"{negative} for an operand of shape {shape}."
        )
    # Python integers take the type of the other starts.
    dtype = next((aval_of(s).dtype for s in starts if not isinstance(s, int)), None)
    out = []
    for start, n, from_end in zip(starts, shape, allowed, strict=True):
        if isinstance(start, (int, np.integer, np.ndarray, EagerArray)) and not shape_of(start):
            out.append(_concrete_start(name, start, n, from_end, dtype))
        elif from_end and _dtypes.issubdtype(aval_of(start).dtype, np.signedinteger):
            kind = aval_of(start).dtype
            is_negative = lt(start, np.zeros((), kind))
            out.append(select(is_negative, add(start, size_array(n, kind)), start))
        else:
            out.append(start)
    return out


def _concrete_start(name: str, start: Any, n: int, from_end: bool, dtype: Any) -> Any:
    own = aval_of(start)
    if not _dtypes.issubdtype(own.dtype, np.integer):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: {own.str_short()}."
        )
    python = isinstance(start, int)
    place = start if python else int(getattr(start, "_value", start))
    if place < 0:
        if from_end:
            place = place + n
        elif python:
            raise ValueError(
                f"{name}: index {place} is out of bounds for an axis of length {n} with "
                "allow_negative_indices=False."
            )
    kind = dtype if python and dtype is not None else own.dtype
    # A start far outside is clamped anyway: no need to fit it into the type.
    least, most = -1, n
    if config.strict and _dtypes.issubdtype(kind, np.integer):  # an error names the start itself
        least, most = _dtypes.iinfo(kind).min, _dtypes.iinfo(kind).max
    return EagerArray(np.asarray(min(max(place, least), most)).astype(kind))
