"""Products of matrices, and the functions that the array standard repeats in `linalg`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy import contraction, grids
from namoo.numpy.linalg.systems import inv
from namoo.numpy.promote import array_of, arrays_of, check_arraylike
from namoo.primitives.linalg.matrices import identity


def matrix_power(a: Any, n: int) -> Array:
    """A square matrix multiplied with itself `n` times, by repeated squaring.

    Args:
        a: matrices of shape [..., m, m].
        n: the exponent; negative ones are powers of the inverse.

    Raises:
        TypeError: the matrices are not square, or `n` is not an integer.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [1, 0]]), 10)
        Array([[89, 55],
               [55, 34]], dtype=int32)
    """
    a = array_of("jnp.linalg.matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise TypeError(f"matrix_power takes square matrices [..., m, m], got shape {a.shape}.")
    try:
        n = operator.index(n)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        raise TypeError(f"matrix_power: the exponent must be an integer, got {n!r}.") from None
    if n == 0:
        return identity(a)
    if n < 0:
        a, n = inv(a), -n
    power, square = None, a
    while True:
        if n & 1:
            power = square if power is None else contraction.matmul(power, square)
        n >>= 1
        if not n:
            assert power is not None
            return power
        square = contraction.matmul(square, square)


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: two or more matrices; the first and the last may be vectors.
        precision: of the products, as for `dot`.

    Raises:
        ValueError: fewer than two arrays, or shapes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
        Array([12., 12.], dtype=float32)
    """
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    matrices = arrays_of("jnp.linalg.multi_dot", *arrays)
    if len(matrices) < 2:
        raise ValueError(f"multi_dot requires at least two arrays, got {len(matrices)}.")
    shapes = [x.shape for x in matrices]
    if any(x.ndim != 2 for x in matrices[1:-1]) or any(
        x.ndim not in (1, 2) for x in (matrices[0], matrices[-1])
    ):
        raise ValueError(
            "multi_dot takes matrices; only the first and the last array may be vectors. Got "
            f"shapes {shapes}."
        )
    if any(a[-1] != b[0] for a, b in zip(shapes, shapes[1:], strict=False)):
        raise ValueError(
            "multi_dot: the last length of each array must be the first of the next. Got shapes "
            f"{shapes}."
        )
    rows = matrices[0].shape[0] if matrices[0].ndim == 2 else 1
    columns = matrices[-1].shape[1] if matrices[-1].ndim == 2 else 1
    splits = _best_splits([rows, *(shape[0] for shape in shapes[1:]), columns])

    def product(first: int, last: int) -> Array:
        if first == last:
            return matrices[first]
        middle = splits[first, last]
        left, right = product(first, middle), product(middle + 1, last)
        return contraction.dot(left, right, precision=precision)

    return product(0, len(matrices) - 1)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each product of neighbours; matrix i has sizes[i] rows, sizes[i+1] columns."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            last = first + length - 1
            choices = (
                (
                    cost[first, k]
                    + cost[k + 1, last]
                    + sizes[first] * sizes[k + 1] * sizes[last + 1],
                    k,
                )
                for k in range(first, last)
            )
            cost[first, last], split[first, last] = min(choices)
    return split


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components.

    Args:
        x1, x2: arrays of vectors; their other axes broadcast.
        axis: the axis of the vectors.

    Raises:
        ValueError: vectors of another length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = arrays_of("jnp.linalg.cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "jnp.linalg.cross takes vectors of three components, got "
            f"{x1.shape[axis]} and {x2.shape[axis]}."
        )
    return contraction.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Array:
    """The products of every element of one vector with every element of another.

    Raises:
        ValueError: arrays that are not vectors.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    x1, x2 = arrays_of("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"jnp.linalg.outer takes vectors, got shapes {x1.shape} and {x2.shape}; jnp.outer "
            "takes any arrays."
        )
    return contraction.outer(x1, x2)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """A diagonal of each matrix.

    Args:
        x: matrices of shape [..., m, n].
        offset: the offset of the diagonal above the main one.

    Raises:
        ValueError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    return grids.diagonal(array_of("jnp.linalg.diagonal", x), offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal of each matrix.

    Args:
        x: matrices of shape [..., m, n].
        offset: the offset of the diagonal above the main one.
        dtype: type to sum in.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    x = array_of("jnp.linalg.trace", x)
    return contraction.trace(x, offset, -2, -1, dtype)


attach_shortcuts(globals())
