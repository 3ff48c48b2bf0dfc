"""Eigenvalues of symmetric tridiagonal matrices, given by their two diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.primitive import is_zero
from namoo.primitives.elementwise import add, full_like, integer_pow, mul, sub
from namoo.primitives.families import add_any, floating
from namoo.primitives.linalg.matrices import (
    MatrixPrimitive,
    along_columns,
    along_rows,
    columns,
    identity,
    matmul,
    mT,
    nan_where_failed,
    rows,
    scipy_linalg,
)
from namoo.primitives.linalg.spectral import unless_finite
from namoo.primitives.shape import expand_dims, reduce_sum, shape_of
from namoo.primitives.slicing import concatenate, pad


class EighTridiagonal(MatrixPrimitive):
    """T = V diag(w) Vᵀ for a real symmetric tridiagonal T, as w and V."""

    name = "eigh_tridiagonal"
    multiple_results = True
    ranks = (1, 1)
    dtypes = floating

    def results(self, d, e, *, compute_vectors, subset_by_index):
        n = d.shape[0]
        if e.shape != (max(n - 1, 0),):
            raise TypeError(
                f"{self.name} takes n diagonal and n - 1 off-diagonal elements, got shapes "
                f"{d.shape} and {e.shape}."
            )
        start, stop = self._range(n, subset_by_index)
        w = d.update(shape=(stop - start,))
        return [w, d.update(shape=(n, stop - start))] if compute_vectors else [w]

    def _range(self, n, subset):
        if subset is None:
            return 0, n
        start, stop = subset
        if not 0 <= start <= stop <= n:
            raise ValueError(f"{self.name}: {tuple(subset)} must be a range within 0 and {n}.")
        return start, stop

    def compute(self, d, e, *, compute_vectors, subset_by_index):
        if not np.isfinite(d).all() or not np.isfinite(e).all():
            raise np.linalg.LinAlgError("not finite")
        n = d.shape[0]
        if n == 1:
            return [d, np.ones((1, 1), d.dtype)][: 1 + compute_vectors]
        start, stop = self._range(n, subset_by_index)
        select = {"select": "i", "select_range": (start, stop - 1)} if stop - start < n else {}
        found = scipy_linalg().eigh_tridiagonal(
            d, e, eigvals_only=not compute_vectors, check_finite=False, **select
        )
        return list(found) if compute_vectors else [found]

    def by_lapack(self, emit, d, e, *, compute_vectors, subset_by_index):
        n = d.shape[-1]
        if n == 1:
            ones = emit.filled(1, d.dtype, (*d.shape, 1))
            return [d, ones][: 1 + compute_vectors]
        start, stop = self._range(n, subset_by_index)
        (row,) = emit.apply(lambda d: [expand_dims(d, (-2,))], d)
        results = [((n,), d.dtype), ((n - 1,), d.dtype)]
        arguments, vectors = [n, ("out", 0), ("out", 1)], []
        if compute_vectors:
            length, integers = 1 + 4 * n + n * n, 3 + 5 * n
            vectors = [((n, n), d.dtype)]
            work = [("work", length), length, ("int", integers), integers]
            arguments += [("out", 2), n, *work]
        w, _, *v, info = emit.lapack(
            "stevd" if compute_vectors else "sterf",
            row,
            e,
            result=[*results, *vectors],
            arguments=[*("V" * compute_vectors), *arguments, ("out", 2 + compute_vectors)],
            copies={0: 0, 1: 1},
            cost=4 * n**3 if compute_vectors else 10 * n**2,
        )

        def finish(d, e, info, w, *v):
            ends = concatenate([d, e], len(shape_of(d)) - 1)
            info = unless_finite(info, expand_dims(ends, (-2,)))
            outs = nan_where_failed(info, w, *map(mT, v))
            return [columns(x, start, stop) for x in outs]

        return emit.apply(finish, d, e, info, w, *v)

    def jvp(self, primals, tangents, *, compute_vectors, subset_by_index):
        # With M = Vᵀ dT V: dw is its diagonal, and dV = V·(F ∘ M), F_ij = 1 / (w_j - w_i).
        d, e = primals
        if not compute_vectors:
            w, v = self.bind(d, e, compute_vectors=True, subset_by_index=subset_by_index)
            ndim = len(shape_of(v))
            return [w], [reduce_sum(mul(v, _product(v, *tangents)), (ndim - 2,))]
        w, v = self.bind(d, e, compute_vectors=True, subset_by_index=None)
        n = shape_of(w)[-1]
        changed = _product(v, *tangents)
        dw = reduce_sum(mul(v, changed), (len(shape_of(v)) - 2,))
        m = matmul(mT(v), changed)
        eye = identity(m)
        gaps = sub(along_rows(w, n), along_columns(w, n))
        dv = matmul(v, mul(sub(integer_pow(add(gaps, eye), -1), eye), m))
        start, stop = self._range(n, subset_by_index)
        w, v, dw, dv = (columns(x, start, stop) for x in (w, v, dw, dv))
        return [w, v], [dw, dv]


def _product(v: Any, d: Any, e: Any) -> Any:
    """T V, where T has the diagonal d and the off-diagonals e."""
    *_, n, k = shape_of(v)
    out = None if is_zero(d) else mul(along_columns(d, k), v)
    if is_zero(e) or n < 2:
        return mul(v, full_like(v, 0)) if out is None else out
    beside = along_columns(e, k)
    above, below = mul(beside, rows(v, 1, n)), mul(beside, rows(v, 0, n - 1))
    moved = add(_pad_rows(above, 0, 1), _pad_rows(below, 1, 0))
    return moved if out is None else add_any(out, moved)


def _pad_rows(x: Any, before: int, after: int) -> Any:
    config = [(0, 0, 0)] * (len(shape_of(x)) - 2) + [(before, after, 0), (0, 0, 0)]
    return pad(x, full_like(x, 0), config)


eigh_tridiagonal_p = EighTridiagonal()


def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    compute_vectors: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> list[Any]:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric tridiagonal matrices.

    Args:
        d: the diagonals, of shape [..., n].
        e: the off-diagonals, of shape [..., n-1].
        compute_vectors: return eigenvectors too, in columns.
        subset_by_index: keep the eigenvalues from the first of these indices up to the second.

    Returns:
        `[w, v]`, or `[w]`; NaN where a matrix is not finite.

    Raises:
        TypeError: the lengths do not match, or the dtypes are not floating.
        ValueError: the subset is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> d, e = jnp.array([2.0, 2.0]), jnp.array([1.0])
        >>> eigh_tridiagonal(d, e, compute_vectors=False)[0].round(3)
        Array([1., 3.], dtype=float32)
    """
    return eigh_tridiagonal_p.bind(
        d,
        e,
        compute_vectors=bool(compute_vectors),
        subset_by_index=None if subset_by_index is None else tuple(subset_by_index),
    )
