"""The polar decomposition by the dynamically weighted Halley iteration.

Nakatsukasa, Bai and Gygi (2010), "Optimizing Halley's iteration for computing the matrix polar
decomposition".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from namoo.control.loops import while_loop
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.primitives.bits import bitwise_and, bitwise_not
from namoo.primitives.elementwise import (
    abs,
    add,
    div,
    full_like,
    le,
    lt,
    mul,
    select,
    sqrt,
    square,
    sub,
)
from namoo.primitives.linalg.matrices import (
    adjoint,
    as_type_of,
    identity,
    matmul,
    real_dtype,
    rows,
    symmetrize,
)
from namoo.primitives.linalg.qr import qr
from namoo.primitives.linalg.systems import cholesky, triangular_solve
from namoo.primitives.reduction import reduce_max
from namoo.primitives.shape import (
    broadcast_to,
    broadcasted_iota,
    convert_element_type,
    reduce_sum,
    shape_of,
    zeros,
)
from namoo.primitives.slicing import concatenate

_LIMIT = 10
_LAST = (3.0, 1.0, 3.0)
"""The weights of Halley's own iteration, which the others tend to."""


def _weights(eps: float) -> Iterator[tuple[float, float, float]]:
    """The best weights for singular values in [ℓ, 1], ℓ = eps at first, until ℓ is 1."""
    low = eps
    while 1 - low > 5 * eps:
        squared = low * low
        d = (4 * (1 - squared) / squared**2) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + 0.5 * (8 - 4 * d + 8 * (2 - squared) / (squared * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        low = low * (a + b * squared) / (1 + c * squared)


def _step(u: Any, a: float, b: float, c: float) -> Any:
    """u (a + b uᴴu) (1 + c uᴴu)⁻¹"""
    n = shape_of(u)[1]
    eye = identity(zeros(aval_of(u).update(shape=(n, n))))
    rest, share = full_like(u, b / c), a - b / c
    if c > 100:
        # By QR where 1 + c uᴴu would lose digits.
        stacked = concatenate([mul(u, full_like(u, c**0.5)), eye], 0)
        q, _ = qr(stacked, full_matrices=False)
        m = shape_of(u)[0]
        product = matmul(rows(q, 0, m), adjoint(rows(q, m, m + n)))
        return add(mul(rest, u), mul(full_like(u, share / c**0.5), product))
    gram = add(eye, mul(full_like(u, c), matmul(adjoint(u), u)))
    factor = cholesky(gram)
    solved = triangular_solve(
        factor, u, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )
    solved = triangular_solve(factor, solved, left_side=False, lower=True)
    return add(mul(rest, u), mul(full_like(u, share), solved))


def _norm(x: Any) -> Any:
    return sqrt(reduce_sum(square(abs(x)), (0, 1)))


def _largest_sum(x: Any, axis: int) -> Any:
    return reduce_max(reduce_sum(abs(x), (axis,)), (0,))


def _inside(x: Any, shape: tuple[Any, Any]) -> Any:
    """The matrix with zeros outside its upper left part of the given shape."""
    for axis, size in enumerate(shape):
        index = broadcasted_iota(np.int32, shape_of(x), axis)
        mask = lt(index, convert_element_type(size, np.int32))
        x = select(mask, x, zeros(aval_of(x)))
    return x


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Polar decomposition, x = U H with orthonormal columns of U and positive semidefinite H.

    Args:
        x: a matrix of full rank and shape [m, n], m ≥ n.
        is_hermitian: whether `x` is Hermitian; it makes no difference.
        max_iterations: how many iterations are allowed; 10 by default.
        eps: stop where an iteration changes U by less than (4·eps)^(1/3) of itself; by default the
          precision of the type of `x`.
        dynamic_shape: the shape of the part of `x` that counts; zeros are put around it.

    Returns:
        `(u, h, num_iters, is_converged)`.

    Raises:
        ValueError: `x` is not a matrix of floats with at least as many rows as columns.

    Example:
        >>> import namoo.numpy as jnp
        >>> u, h, num_iters, is_converged = qdwh(jnp.array([[0.0, 2.0], [-3.0, 0.0]]))
        >>> jnp.abs(h).round(4)
        Array([[3., 0.],
               [0., 2.]], dtype=float32)
    """
    aval = aval_of(x)
    if aval.dtype.kind not in "fc" or aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(
            f"qdwh takes a matrix of floats with at least as many rows as columns, got "
            f"{aval.str_short()}."
        )
    limit = _LIMIT if max_iterations is None else max_iterations
    eps = float(np.finfo(real_dtype(aval.dtype)).eps) if eps is None else eps
    if dynamic_shape is not None:
        x = _inside(x, dynamic_shape)
    bound = sqrt(mul(_largest_sum(x, 0), _largest_sum(x, 1)))
    bound = select(le(bound, full_like(bound, 0)), full_like(bound, 1), bound)
    u = div(x, broadcast_to(as_type_of(bound, x), aval.shape))

    def is_converged(u, previous):
        change = _norm(sub(u, previous))
        return le(change, mul(_norm(u), full_like(change, (4 * eps) ** (1 / 3))))

    def is_going_on(state):
        _, count, done = state
        return bitwise_and(bitwise_not(done), lt(count, np.int32(limit)))

    def one_more(state):
        u, count, _ = state
        new = _step(u, *_LAST)
        return new, add(count, np.int32(1)), is_converged(new, u)

    count, done = 0, EagerArray(np.asarray(False))
    for weights in _weights(eps):
        if count == limit:
            break
        previous, u, count = u, _step(u, *weights), count + 1
        done = is_converged(u, previous)
    u, count, done = while_loop(is_going_on, one_more, (u, np.int32(count), done))
    return u, symmetrize("qdwh", matmul(adjoint(u), x)), count, done
