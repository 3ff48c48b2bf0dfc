"""Functions of sizes that may be symbolic, fast for plain integers.

The module of expressions is loaded only when one is used.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.errors import InconclusiveDimensionOperation

Shape = tuple[int, ...]


def dimension(size: Any) -> int:
    """A size as a Python integer; a symbolic dimension stays one."""
    try:
        return operator.index(size)
    except InconclusiveDimensionOperation:
        return size


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of integers and symbolic dimensions, or a TypeError that says what it is
    instead."""
    try:
        return tuple(map(operator.index, shape))
    except InconclusiveDimensionOperation:
        return tuple(map(dimension, shape))
    except TypeError as error:
        text = f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}."
        if type(error) is TypeError:
            text += f" ({error})"
        else:  # a traced length: its error says where it comes from
            text += (
                "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
                f"subfunctions.\n{error}"
            )
        kind = type(error)
    raise kind(text)


def is_symbolic(size: Any) -> bool:
    """Whether a size is a symbolic dimension."""
    return getattr(type(size), "is_dimension", False)


def as_value(size: Any) -> Any:
    """A size for a computation: a symbolic dimension as an array, other values unchanged."""
    return size.__jax_array__() if is_symbolic(size) else size


def larger(x: int, y: int) -> int:
    """The larger of two sizes."""
    try:
        return max(x, y)
    except InconclusiveDimensionOperation:
        from namoo.dimensions.expression import max_dim

        return max_dim(x, y)


def smaller(x: int, y: int) -> int:
    """The smaller of two sizes."""
    try:
        return min(x, y)
    except InconclusiveDimensionOperation:
        from namoo.dimensions.expression import min_dim

        return min_dim(x, y)


def exceeds(size: int, limit: int) -> bool:
    """Whether a size is larger than a limit of the machine; a symbolic one is assumed not to be."""
    try:
        return size > limit
    except InconclusiveDimensionOperation:
        return False


def maybe(compare: Any, x: int, y: int) -> bool:
    """A comparison of sizes that refuses what is wrong: True also where the answer is not known."""
    try:
        return compare(x, y)
    except InconclusiveDimensionOperation:
        return True


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all shapes broadcast to, by NumPy's rule.

    Raises:
        ValueError: they do not fit.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except InconclusiveDimensionOperation:
        return _broadcast(shapes)


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes))
    result = []
    for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes), strict=True):
        kinds = list(dict.fromkeys(n for n in sizes if n != 1)) or [1]
        if len(kinds) > 1:
            raise ValueError(
                f"Incompatible shapes for broadcasting: {shapes}, since the sizes {kinds} are not "
                "known to be equal"
            )
        result.append(kinds[0])
    return tuple(result)


def slice_of(entry: slice, n: int) -> tuple[int, int, int]:
    """Start, length and step of a slice on an axis of length n."""
    try:
        start, stop, step = entry.indices(n)
        return start, len(range(start, stop, step)), step
    except InconclusiveDimensionOperation:
        pass
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, n) if step > 0 else (-1, n - 1)
    start = _place(entry.start, n, low, high, low if step > 0 else high)
    stop = _place(entry.stop, n, low, high, high if step > 0 else low)
    gap = stop - start if step > 0 else start - stop
    return start, larger((gap + abs(step) - 1) // abs(step), 0), step


def _place(index: Any, n: int, low: int, high: int, default: int) -> int:
    """An end of a slice as a position between `low` and `high`."""
    if index is None:
        return default
    index = dimension(index)
    if index < 0:
        index = index + n
        return larger(index, low)
    return smaller(index, high)
