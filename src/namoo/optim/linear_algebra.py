"""Large eigenvalues, roots of matrices, least squares without negative solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import lax, random
from namoo import numpy as jnp
from namoo.optim import tree_utils as otu

__all__ = ["matrix_inverse_pth_root", "nnls", "power_iteration"]

Array = Any


def _unit(x: Any) -> Any:
    return otu.tree_scale(1.0 / otu.tree_norm(x), x)


def power_iteration(
    matrix: Array | Callable[[Any], Any],
    *,
    v0: Any = None,
    num_iters: Any = 100,
    error_tolerance: Any = 1e-6,
    precision: Any = lax.Precision.HIGHEST,
    key: Any = None,
) -> tuple[Array, Any]:
    """The eigenvalue of largest size, and its eigenvector.

    Args:
        matrix: a symmetric matrix, or a function that multiplies a tree by one.
        v0: the first vector; random by default, required for a function.
        num_iters: the largest number of products.
        error_tolerance: the relative error at which the iteration stops.
        precision: of the products with a matrix.
        key: of the first vector.

    Example:
        >>> value, vector = power_iteration(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
        >>> value.round(3), jnp.abs(vector).round(3)
        (Array(2., dtype=float32), Array([1., 0.], dtype=float32))
    """
    if callable(matrix):
        if v0 is None:
            raise ValueError("power_iteration: with a function give the first vector, v0=...")
        multiply = matrix
    else:
        multiply = lambda v: jnp.matmul(matrix, v, precision=precision)  # noqa: E731
        if v0 is None:
            key = random.PRNGKey(0) if key is None else key
            v0 = random.uniform(key, matrix.shape[-1:], matrix.dtype, minval=-1.0, maxval=1.0)

    def going(carry):
        vector, product, value, i = carry
        residual = otu.tree_norm(otu.tree_sub(product, otu.tree_scale(value, vector)))
        return ~(jnp.abs(residual / value) < error_tolerance) & (i < num_iters)

    def step(carry):
        _, product, _, i = carry
        vector = _unit(product)
        product = multiply(vector)
        return vector, product, otu.tree_vdot(vector, product), i + 1

    v0 = _unit(v0)
    start = multiply(v0)
    zero = jnp.zeros_like(otu.tree_vdot(v0, start))
    _, product, value, _ = lax.while_loop(going, step, (v0, start, zero, jnp.asarray(0)))
    return value, _unit(product)


def matrix_inverse_pth_root(
    matrix: Array,
    p: int,
    num_iters: Any = 100,
    ridge_epsilon: Any = 1e-6,
    error_tolerance: Any = 1e-6,
    precision: Any = lax.Precision.HIGHEST,
) -> tuple[Array, Array]:
    """The matrix to the power -1/p, by coupled Newton iterations.

    Args:
        matrix: a symmetric matrix without negative eigenvalues.
        p: 1, 2, 4 or 8.
        num_iters: the largest number of iterations.
        ridge_epsilon: added to the diagonal, times the largest eigenvalue.
        error_tolerance: the error at which the iteration stops.
        precision: of the products.

    Returns:
        the root, and the error of the last iteration.

    Example:
        >>> root, error = matrix_inverse_pth_root(jnp.array([[4.0, 0.0], [0.0, 1.0]]), 2)
        >>> root.round(3)
        Array([[0.5, 0. ],
               [0. , 1. ]], dtype=float32)
    """
    if p not in (1, 2, 4, 8):
        raise ValueError(f"matrix_inverse_pth_root: p must be 1, 2, 4 or 8, got {p}.")
    alpha = jnp.asarray(-1.0 / p, jnp.float32)
    largest, _ = power_iteration(matrix, precision=precision)
    ridge = ridge_epsilon * jnp.maximum(largest, 1e-16)
    if matrix.shape[0] == 1:
        return (matrix + ridge) ** alpha, jnp.asarray(0)
    eye = jnp.eye(matrix.shape[0], dtype=jnp.float32)

    def times(a, b):
        return jnp.matmul(a, b, precision=precision)

    def power(m):
        for _ in range(p.bit_length() - 1):
            m = times(m, m)
        return m

    def going(carry):
        i, _, _, _, error, improves = carry
        return (i < num_iters) & (error > error_tolerance) & improves

    def step(carry):
        i, m, root, _, error, _ = carry
        factor = (1 - alpha) * eye + alpha * m
        new_m = times(power(factor), m)
        new_error = jnp.max(jnp.abs(new_m - eye))
        return i + 1, new_m, times(root, factor), root, new_error, new_error < error * 1.2

    damped = matrix + ridge * eye
    z = (1 + p) / (2 * jnp.linalg.norm(damped))
    m, root = damped * z, eye * jnp.power(z, 1.0 / p)
    error = jnp.max(jnp.abs(m - eye))
    _, m, root, before, _, improves = lax.while_loop(
        going, step, (jnp.asarray(0), m, root, root, error, jnp.asarray(True))
    )
    # The last iteration may have increased the error.
    root = jnp.where(improves, root, before).astype(matrix.dtype)
    return root, jnp.max(jnp.abs(m - eye))


def nnls(A: Array, b: Array, iters: int, unroll: int | bool = 1, L: Any = None) -> Array:
    """Least squares without negative solutions, by accelerated projected gradients.

        argmin ‖A x - b‖²  over  x ≥ 0

    Args:
        A: a matrix.
        b: a vector, or several as columns.
        iters: the number of iterations.
        unroll: of the loop.
        L: a bound of the largest eigenvalue of AᵀA; computed by default.

    Example:
        >>> nnls(jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([2.0, -1.0]), iters=50)
        Array([2., 0.], dtype=float32)
    """
    if A.ndim != 2 or b.ndim not in (1, 2) or A.shape[0] != b.shape[0]:
        raise ValueError(
            f"nnls: A must be a matrix and b have as many rows, got shapes {A.shape} and {b.shape}."
        )
    q_matrix, q = A.mT @ A, A.mT @ b
    if L is None:
        ones = jnp.linalg.matrix_norm(q_matrix, ord=1) if q_matrix.size else 0
        L = jnp.minimum(jnp.linalg.matrix_norm(q_matrix, ord="fro"), ones)
    L = jnp.where(L == 0, 1, L)

    def step(carry, _):
        x, ahead, c = carry
        next_c = (1 + jnp.sqrt(1 + 4 * c**2)) / 2
        new = jnp.clip(ahead - (q_matrix @ ahead - q) / L, 0)
        return (new, new + (c - 1) / next_c * (new - x), next_c), None

    x = jnp.zeros((A.shape[-1], *b.shape[1:]), b.dtype)
    start = (x, x, jnp.zeros([], jnp.result_type(A, b)))
    return lax.scan(step, start, length=iters, unroll=unroll)[0][0]
