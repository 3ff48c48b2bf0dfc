"""Linear algebra with operators that are known by what they do to vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import lax
from namoo import numpy as jnp
from namoo._base.source_context import at_user_line, entry_point
from namoo.core.array import Array

__all__ = ["lobpcg_standard"]
__dir__ = __all__.copy


def _action(A: Any, n: int, dtype: Any) -> Callable[[Any], Any]:
    if callable(A):
        return A
    if A.shape != (n, n):
        raise ValueError(
            f"lobpcg_standard: A of shape {A.shape} does not fit X, whose columns have {n} "
            f"elements: A must have shape {(n, n)}.{at_user_line()}"
        )
    if A.dtype != dtype:
        raise ValueError(
            f"lobpcg_standard: A has dtype {A.dtype} and X {dtype}; convert one of them."
            f"{at_user_line()}"
        )
    return lambda X: A @ X


def _best(apply: Callable[[Any], Any], basis: Any, k: int) -> tuple[Any, Any, Any]:
    """The best eigenpairs in the span of a basis, and the operator's results for the vectors."""
    Q = jnp.linalg.qr(basis)[0]
    AQ = apply(Q)
    projected = Q.T @ AQ
    values, vectors = jnp.linalg.eigh((projected + projected.T) / 2)
    vectors = vectors[:, ::-1][:, :k]
    return values[::-1][:k], Q @ vectors, AQ @ vectors


@entry_point
def lobpcg_standard(
    A: Any, X: Any, m: int = 100, tol: float | Array | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric operator, and their vectors, by LOBPCG.

    Each step takes the best vectors in the span of the present ones, their residuals and the last
    directions (Rayleigh and Ritz); QR makes the basis orthonormal.

    Args:
        A: a symmetric matrix of shape `(n, n)`, or a function that multiplies it by `(n, k)`.
        X: where to start: `(n, k)`, linearly independent columns, with `0 < 5 k < n`.
        m: how many steps at most.
        tol: a pair has converged when its residual is below `tol * 10 * n * (value + |A v|)`; the
            rounding of the type by default.

    Returns:
        the `k` largest eigenvalues, from the largest; their vectors, as columns; the steps taken.

    Raises:
        ValueError: shapes or dtypes do not fit, or `k` is too large.

    Example:
        >>> import namoo.numpy as jnp
        >>> values, vectors, _ = lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.eye(20, 2) + 0.1)
        >>> values.round(3)
        Array([19., 18.], dtype=float32)

    References:
        Knyazev, "Toward the optimal preconditioned eigensolver" (2001).
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must be a matrix, got shape {X.shape}.")
    n, k = X.shape
    if k == 0:
        raise ValueError(f"lobpcg_standard: X has no columns.{at_user_line()}")
    if k * 5 >= n:
        raise ValueError(
            f"lobpcg_standard: expected search dim * 5 < matrix dim (got {k * 5}, {n}); use "
            f"jnp.linalg.eigh.{at_user_line()}"
        )
    apply = _action(A, n, X.dtype)
    limit = jnp.finfo(X.dtype).eps if tol is None else tol
    values, X, AX = _best(apply, X, k)

    def residuals(state: Any) -> Any:
        _, values, X, AX, _ = state
        return AX - values * X

    def goes_on(state: Any) -> Any:
        step, values, _, AX, _ = state
        size = values + jnp.linalg.norm(AX, axis=0)
        converged = jnp.linalg.norm(residuals(state), axis=0) < limit * 10 * n * size
        return (step < m) & ~jnp.all(converged)

    def body(state: Any) -> Any:
        step, _, X, _, directions = state
        # Columns of similar length: a short one would be lost in the rounding of QR.
        parts = []
        for part in (residuals(state), directions):
            part = part - X @ (X.T @ part)
            norm = jnp.linalg.norm(part, axis=0)
            parts.append(part / jnp.where(norm > 0, norm, 1))
        values, new, AX = _best(apply, jnp.concatenate([X, *parts], axis=1), k)
        return step + 1, values, new, AX, new - X @ (X.T @ new)

    state = (jnp.zeros((), int), values, X, AX, jnp.zeros_like(X))
    steps, values, X, _, _ = lax.while_loop(goes_on, body, state)
    return values, X, steps
