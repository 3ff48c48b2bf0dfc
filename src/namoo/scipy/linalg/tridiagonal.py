"""The eigenvalue problem of tridiagonal matrices."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.primitives.linalg import tridiagonal_eigen as primitive


def _indices(select: str, select_range: Any, n: int) -> tuple[int, int] | None:
    """The eigenvalues that are selected by index, as a range; None for all."""
    if select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: select must be 'a', 'i' or 'v', got {select!r}.")
    if select == "a":
        return None
    if select_range is None:
        raise ValueError(
            f"eigh_tridiagonal: select={select!r} needs select_range, a pair of "
            f"{'indices' if select == 'i' else 'values'}."
        )
    first, last = select_range
    if first > last:
        raise ValueError(f"eigh_tridiagonal: select_range {tuple(select_range)} is empty.")
    return (int(first), int(last) + 1) if select == "i" else None


def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: the diagonal, [n]; of complex numbers the real part is read.
        e: the elements above the diagonal, [n-1]; below it are their conjugates.
        eigvals_only: return the eigenvalues alone.
        select: 'a' for all eigenvalues; 'i' for those with indices in `select_range`, both ends
            included; 'v' for those with values in the half-open interval (low, high], which does
            not work under `jit`.
        select_range: a pair of indices or values.
        tol: not used: results are as exact as their type allows.
        key: not used: nothing here is random.

    Returns:
        Eigenvalues in ascending order, and eigenvectors in the columns of a matrix.

    Raises:
        TypeError: types that differ, are not of single or double precision, or lengths that do not
            fit.
        ValueError: another `select`, or an empty range.

    Example:
        >>> import namoo.numpy as jnp
        >>> w, v = eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]))
        >>> w.round(3)
        Array([1., 3.], dtype=float32)
    """
    diagonal, beside = jnp.asarray(d), jnp.asarray(e)
    if diagonal.dtype != beside.dtype:
        raise TypeError(
            f"eigh_tridiagonal: d and e must have the same type, got {diagonal.dtype} and "
            f"{beside.dtype}."
        )
    if diagonal.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            f"eigh_tridiagonal takes numbers of single or double precision, got {diagonal.dtype}."
        )
    n = diagonal.shape[0]
    if n <= 1:
        w = jnp.real(diagonal)
        return w if eigvals_only else (w, jnp.eye(n, dtype=diagonal.dtype))
    subset = _indices(select, select_range, n)
    # T = D |T| Dᴴ with a diagonal D of phases, and a real |T|.
    is_complex = jnp.iscomplexobj(beside)
    size = jnp.abs(beside) if is_complex else beside
    w, *vectors = primitive.eigh_tridiagonal(
        jnp.real(diagonal), size, compute_vectors=not eigvals_only, subset_by_index=subset
    )
    if vectors and is_complex:
        turns = jnp.where(size == 0, 1, jnp.conj(beside) / jnp.where(size == 0, 1, size))
        phases = jnp.cumprod(jnp.concatenate([jnp.ones_like(turns, shape=(1,)), turns]))
        vectors = [phases[:, None] * vectors[0]]
    if select == "v" and select_range is not None:
        low, high = select_range
        inside = (w > low) & (w <= high)
        w, vectors = w[inside], [v[:, inside] for v in vectors]
    return w if eigvals_only else (w, *vectors)
