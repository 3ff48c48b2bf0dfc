"""Symmetric products, and rank-one updates of Cholesky factors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from namoo.core.primitive import Zero, is_zero
from namoo.primitives.arithmetic import nonzero
from namoo.primitives.elementwise import add, div, full_like, mul, sqrt, sub
from namoo.primitives.families import add_any, floating
from namoo.primitives.linalg.matrices import MatrixPrimitive, in_single, matmul, mT, tril
from namoo.primitives.shape import shape_of

__all__ = ["cholesky_update", "cholesky_update_p", "symmetric_product", "symmetric_product_p"]


class SymmetricProduct(MatrixPrimitive):
    """α A Aᵀ + β C"""

    name = "symmetric_product"
    ranks = (2, 2)
    dtypes = floating
    stacks = True

    def results(self, a, c, *, alpha, beta):
        m = a.shape[0]
        if c.shape != (m, m):
            raise ValueError(
                "symmetric_product expects matrices of shapes (m, n) and (m, m), got "
                f"{a.shape} and {c.shape}."
            )
        return [c]

    def compute(self, a, c, *, alpha, beta):
        alpha, beta = a.dtype.type(alpha), a.dtype.type(beta)
        return [alpha * (a @ np.swapaxes(a, -1, -2)) + beta * c]

    def by_lapack(self, emit, a, c, *, alpha, beta):
        return emit.apply(functools.partial(_symmetric_product, alpha, beta), a, c)

    @in_single
    def stablehlo(self, hlo, a, c, *, alpha, beta):
        return hlo.apply(functools.partial(_symmetric_product, alpha, beta), a, c)

    def jvp(self, primals, tangents, *, alpha, beta):
        (a, c), (da, dc) = primals, tangents
        out = self.bind(a, c, alpha=alpha, beta=beta)
        total: Any = Zero.of(out)
        if not is_zero(da):
            half = matmul(da, mT(a))
            total = mul(full_like(half, alpha), add(half, mT(half)))
        if not is_zero(dc):
            total = add_any(total, mul(full_like(dc, beta), dc))
        return out, total


def _symmetric_product(alpha: float, beta: float, a: Any, c: Any) -> list[Any]:
    square = matmul(a, mT(a))
    return [add(mul(full_like(c, alpha), square), mul(full_like(c, beta), c))]


symmetric_product_p = SymmetricProduct()


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Any:
    """α A Aᵀ + β C, for a symmetric matrix C.

    Args:
        a_matrix: matrices of shape [..., m, n].
        c_matrix: matrices of shape [..., m, m].
        alpha: the factor α.
        beta: the factor β.
        symmetrize_output: copy the lower triangle of the result to the upper one.

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=1.0)
        Array([[2., 2.],
               [2., 5.]], dtype=float32)
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=float(alpha), beta=float(beta))
    return add(tril(out), mT(tril(out, -1))) if symmetrize_output else out


class CholeskyUpdate(MatrixPrimitive):
    """The upper triangular factor of RᵀR + w wᵀ."""

    name = "cholesky_update"
    ranks = (2, 1)
    dtypes = floating
    stacks = True

    def results(self, r, w):
        if r.shape != (*w.shape, *w.shape):
            raise ValueError(
                "cholesky_update takes a square matrix and a vector of the same size, got shapes "
                f"{r.shape} and {w.shape}."
            )
        return [r]

    def compute(self, r, w):
        # One rotation for each row eliminates an element of w.
        r, w = np.array(r), np.array(w)
        for k in range(w.shape[-1]):
            length = np.hypot(r[..., k, k], w[..., k])
            length = np.where(length == 0, 1, length).astype(r.dtype)
            c, s = (r[..., k, k] / length)[..., None], (w[..., k] / length)[..., None]
            row = r[..., k, :]
            r[..., k, :], w = c * row + s * w, c * w - s * row
        return [r]

    def by_lapack(self, emit, r, w):
        return emit.rotations(r, w)

    @in_single
    def stablehlo(self, hlo, r, w):
        *batch, n = w.shape
        zeros = [hlo.constant(0, np.int32)] * len(batch)
        zero, count = hlo.constant(0, np.int32), hlo.constant(n, np.int32)

        def rotate(k, r, w):
            row = hlo.reshape(hlo.dynamic_slice(r, [*zeros, k, zero], (*batch, 1, n)), w.shape)
            ends = [hlo.dynamic_slice(v, [*zeros, k], (*batch, 1)) for v in (row, w)]
            ends = [hlo.broadcast(v, w.shape, range(w.ndim)) for v in ends]
            row, w = hlo.apply(_rotated, row, w, *ends)
            r = hlo.dynamic_update_slice(r, hlo.reshape(row, (*batch, 1, n)), [*zeros, k, zero])
            return hlo.combine("add", k, hlo.constant(1, np.int32)), r, w

        loop = hlo.while_loop([zero, r, w], lambda k, *_: hlo.compare(k, count, "LT"), rotate)
        return [loop[1]]


def _rotated(row: Any, w: Any, x: Any, y: Any) -> list[Any]:
    """Apply the Givens rotation to a row and w that eliminates y, an element of w, against x."""
    length = nonzero(sqrt(add(mul(x, x), mul(y, y))))
    c, s = div(x, length), div(y, length)
    return [add(mul(c, row), mul(s, w)), sub(mul(c, w), mul(s, row))]


cholesky_update_p = CholeskyUpdate()


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The Cholesky factor R' of A + w wᵀ, given the upper triangular R with A = RᵀR.

    Raises:
        TypeError: `r_matrix` is not one matrix; use vmap for several.
        ValueError: the shapes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
        Array([[5.]], dtype=float32)
    """
    if len(shape_of(r_matrix)) != 2:
        raise TypeError(
            "Input 0 to cholesky_update must have a rank of exactly 2, but got "
            f"shape={shape_of(r_matrix)}: use vmap for several matrices."
        )
    return cholesky_update_p.bind(r_matrix, w_vector)
