"""Factorisations of large matrices in blocks: most of the work is matrix products.

The threads of a compiled program share the products and solves; the results do not depend on the
number of threads. The functions that factorise and solve a block are arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.core.avals import aval_of
from namoo.primitives.elementwise import add, eq, full_like, select, sub
from namoo.primitives.linalg.matrices import (
    adjoint,
    columns,
    is_complex,
    matmul,
    real_part,
    rows,
    take_rows,
    tril,
)
from namoo.primitives.shape import (
    broadcast_to,
    expand_dims,
    moveaxis,
    reshape,
    shape_of,
    squeeze,
    zeros,
)
from namoo.primitives.slicing import concatenate

Function = Callable[..., Any]


def cholesky_by_columns(a: Any, cholesky: Function, triangular_solve: Function) -> Any:
    """The Cholesky factor, one block of columns after another."""
    n, ndim = shape_of(a)[-1], len(shape_of(a))
    width = -(-n // 128) * 32
    blocks = [(start, min(start + width, n)) for start in range(0, n, width)]
    # Blocks of columns, from the diagonal down. Each updates those that follow it.
    lower = [rows(columns(a, start, stop), start, n) for start, stop in blocks]
    found = []
    for j, (start, stop) in enumerate(blocks):
        factor = cholesky(rows(lower[j], 0, stop - start))
        pieces = [zeros(aval_of(rows(columns(a, start, stop), 0, start))), factor]
        if stop < n:
            below = triangular_solve(
                factor,
                rows(lower[j], stop - start, n - start),
                left_side=False,
                lower=True,
                transpose_a=True,
                conjugate_a=True,
            )
            pieces.append(below)
            for k, (first, last) in enumerate(blocks[j + 1 :], j + 1):
                part = rows(below, first - stop, n - stop)
                change = matmul(part, adjoint(rows(part, 0, last - first)))
                lower[k] = sub(lower[k], change)
        found.append(concatenate(pieces, ndim - 2))
    whole = concatenate(found, ndim - 1)
    # A block that is not positive definite makes all later blocks NaN, and so the last element.
    last = real_part(rows(columns(whole, n - 1, n), n - 1, n))
    good = broadcast_to(eq(last, last), shape_of(whole))
    nan = np.nan + 1j * np.nan if is_complex(a) else np.nan
    return tril(select(good, whole, broadcast_to(full_like(whole, nan), shape_of(whole))))


def in_parts(b: Any, left_side: bool, parts: int) -> Any:
    """Split the right-hand sides of one triangular system into a stack."""
    height, width = shape_of(b)
    if left_side:
        return moveaxis(reshape(b, (height, parts, width // parts)), 1, 0)
    return reshape(b, (parts, height // parts, width))


def joined(x: Any, left_side: bool) -> Any:
    """Join the solutions of a stack of right-hand sides: the inverse of `in_parts`."""
    parts, height, width = shape_of(x)
    if left_side:
        return reshape(moveaxis(x, 0, 1), (height, parts * width))
    return reshape(x, (parts * height, width))


def lu_by_halves(a: Any, lu: Function, triangular_solve: Function) -> list[Any]:
    """LU by recursion: factorise the left half of the columns, update and factorise the right."""
    m, n = shape_of(a)[-2:]
    axis, h = len(shape_of(a)) - 1, -(-n // 64) * 32
    left, pivots, order = lu(columns(a, 0, h))
    right = take_rows(columns(a, h, n), order)
    upper = triangular_solve(
        rows(left, 0, h), rows(right, 0, h), left_side=True, lower=True, unit_diagonal=True
    )
    below = rows(left, h, m)
    rest, more, turned = lu(sub(rows(right, h, m), matmul(below, upper)))
    lower = concatenate([take_rows(below, turned), rest], axis)
    factors = concatenate([concatenate([rows(left, 0, h), upper], axis), lower], axis - 1)
    shift = full_like(more, np.int32(h))
    rest = squeeze(take_rows(expand_dims(columns(order, h, m), (axis,)), turned), (axis,))
    return [
        factors,
        concatenate([pivots, add(more, shift)], axis - 1),
        concatenate([columns(order, 0, h), rest], axis - 1),
    ]
