"""Indices of references: what `ref[i, 1:3]` selects, and how a value is read and changed there.

An index is a tuple with one entry for each axis: an integer, a `Span`, or None for the next
operand, which is an array of integers. An empty tuple selects everything.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import errors
from namoo._base.lazy import later
from namoo._base.source_context import at_user_line
from namoo.core.array import Array, EagerArray
from namoo.core.avals import aval_of
from namoo.primitives.shape import expand_dims, reshape, shape_of

slicing = later("namoo.primitives.slicing")


class Span(NamedTuple):
    """A slice with all of its numbers."""

    start: int
    stop: int
    step: int

    @property
    def size(self) -> int:
        return len(range(*self))


Entry = int | Span | None
Index = tuple[Entry, ...]


def read_index(shape: tuple[int, ...], index: Any) -> tuple[Index, list[Any]]:
    """The entries of what a user wrote in brackets, and the operands among them.

    Raises:
        ValueError: it has too many entries, or one that is out of bounds.
    """
    if index is None or index is Ellipsis:
        return (), []
    given = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [x for x in given if x is Ellipsis]:
        place = next(i for i, x in enumerate(given) if x is Ellipsis)
        given[place : place + 1] = [slice(None)] * (len(shape) - len(given) + 1)
    if len(given) > len(shape):
        raise ValueError(
            f"`indices` must not be longer than `shape`: indices={tuple(given)}, shape={shape}"
            + at_user_line()
        )
    given += [slice(None)] * (len(shape) - len(given))
    operands: list[Any] = []
    entries = tuple([_entry(x, size, operands) for x, size in zip(given, shape, strict=True)])
    whole = all(e == Span(0, size, 1) for e, size in zip(entries, shape, strict=True))
    return ((), []) if whole else (entries, operands)


def _entry(x: Any, size: int, operands: list[Any]) -> Entry:
    if isinstance(x, slice):
        span = Span(*x.indices(size))
        if span.step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {span.step})" + at_user_line())
        return span
    aval = aval_of(np.asarray(x) if isinstance(x, (list, tuple)) else x)
    if aval.dtype == np.bool_:
        raise errors.NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {aval.str_short(short_dtypes=False)}. A "
            "reference takes integers: write ref[jnp.nonzero(mask)[0]]." + at_user_line()
        )
    if aval.dtype.kind not in "iu":
        raise TypeError(
            f"A reference is indexed by integers, slices and arrays of integers, got "
            f"{aval.str_short(short_dtypes=False)}." + at_user_line()
        )
    known = not isinstance(x, Array) or type(x) is EagerArray
    if known and not aval.shape:
        place = operator.index(x.item() if isinstance(x, Array) else x)  # type: ignore[arg-type]
        if not -size <= place < size:
            raise ValueError(f"Out of bound indexer: idx={place}, dim={size}." + at_user_line())
        return place % size
    operands.append(np.asarray(x) if isinstance(x, list) else x)
    return None


def selected_shape(
    shape: tuple[int, ...], index: Index, shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The shape of what an index selects; `shapes` are those of its operands."""
    if not index:
        return shape
    if any(shapes):
        rest = iter(shapes)
        example = tuple(
            slice(*e) if type(e) is Span else 0 if type(e) is int else np.zeros(next(rest), int)
            for e in index
        )
        return np.broadcast_to(np.zeros((), bool), shape)[example].shape
    return tuple(e.size for e in index if type(e) is Span)


def python_index(index: Index, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The index as Python writes it."""
    rest = iter(operands)
    return tuple(slice(*e) if type(e) is Span else next(rest) if e is None else e for e in index)


def _box(index: Index, operands: Sequence[Any]) -> tuple[list[Any], list[int]] | None:
    """Starts and sizes, if the index selects neighbouring elements."""
    if any(map(shape_of, operands)) or any(type(e) is Span and e.step > 1 for e in index):
        return None
    rest = iter(operands)
    starts = [e.start if type(e) is Span else next(rest) if e is None else e for e in index]
    return starts, [e.size if type(e) is Span else 1 for e in index]


def select(value: Any, index: Index, operands: Sequence[Any]) -> Any:
    """The part of a value that an index selects."""
    if not index:
        return value
    box = _box(index, operands) if operands else None
    if box is None:
        return value[python_index(index, operands)]
    return reshape(slicing.dynamic_slice(value, *box), selected_shape(shape_of(value), index, ()))


def replace(value: Any, index: Index, operands: Sequence[Any], part: Any) -> Any:
    """A value with the part that an index selects replaced."""
    if not index:
        return part
    box = _box(index, operands)
    if box is None:
        return value.at[python_index(index, operands)].set(part)
    single = [i for i, e in enumerate(index) if type(e) is not Span]
    return slicing.dynamic_update_slice(
        value, expand_dims(part, single) if single else part, box[0]
    )


def shown(index: Index, shape: tuple[int, ...], operands: Sequence[str]) -> str:
    """An index as text: `0,1:,i`."""
    if not index:
        return "..."
    rest = iter(operands)
    return ",".join(
        _span(e, size) if type(e) is Span else next(rest) if e is None else str(e)
        for e, size in zip(index, shape, strict=True)
    )


def _span(span: Span, size: int) -> str:
    start, stop = (
        (str(span.start) if span.start else ""),
        (str(span.stop) if span.stop < size else ""),
    )
    return f"{start}:{stop}" + (f":{span.step}" if span.step > 1 else "")
