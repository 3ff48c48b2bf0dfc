"""Forms of a matrix with the same eigenvalues: Schur, Hessenberg and tridiagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.primitives.linalg.matrices import (
    MatrixPrimitive,
    check_square,
    in_single,
    lapack,
    mT,
    nan_where_failed,
    real_dtype,
    scipy_linalg,
)
from namoo.primitives.linalg.spectral import finite, unless_finite

__all__ = [
    "hessenberg",
    "hessenberg_p",
    "schur",
    "schur_p",
    "tridiagonal",
    "tridiagonal_p",
]


class Schur(MatrixPrimitive):
    """A = Q T Qᴴ with unitary Q and (almost) upper triangular T."""

    name = "schur"
    multiple_results = True

    def results(self, a, *, compute_schur_vectors, sort_eig_vals, select_callable):
        check_square(self.name, a.shape)
        return [a, a] if compute_schur_vectors else [a]

    def compute(self, a, *, compute_schur_vectors, sort_eig_vals, select_callable):
        if not np.isfinite(a).all():
            raise np.linalg.LinAlgError("not finite")
        is_real = a.dtype.kind != "c"
        sort = None
        if sort_eig_vals:
            # LAPACK returns the parts of an eigenvalue of a real matrix separately.
            both = lambda x, y: select_callable(x + 1j * y)  # noqa: E731
            sort = both if is_real else select_callable
        output = "real" if is_real else "complex"
        t, q = scipy_linalg().schur(a, output=output, sort=sort, check_finite=False)[:2]
        return [t, q] if compute_schur_vectors else [t]

    def by_lapack(self, emit, a, *, compute_schur_vectors, sort_eig_vals, select_callable):
        if sort_eig_vals:  # by a Python function
            raise emit.unsupported()
        n, is_real = a.shape[-1], a.dtype.kind != "c"
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        matrix, values = ((n, n), a.dtype), ((n,), a.dtype)
        length = 40 * n
        t, *_, q, info = emit.lapack(
            "gees",
            by_columns,
            result=[matrix, *[values] * (1 + is_real), matrix],
            arguments=[
                "V" if compute_schur_vectors else "N", "N", "N", n, ("out", 0), n, ("int", 1),
                *(("out", 1 + i) for i in range(1 + is_real)), ("out", 2 + is_real), n,
                ("work", length), length, *([] if is_real else [("real", n)]), ("int", n),
                ("out", 3 + is_real),
            ],
            copies={0: 0},
            cost=25 * n**3,
        )  # fmt: skip

        def finish(a, info, *outs):
            return nan_where_failed(unless_finite(info, a), *map(mT, outs))

        return emit.apply(finish, a, info, *([t, q] if compute_schur_vectors else [t]))

    @in_single
    def stablehlo(self, hlo, a, *, compute_schur_vectors, sort_eig_vals, select_callable):
        if sort_eig_vals:  # by a Python function
            raise hlo.on_the_host()
        values = [(a.shape[:-1], a.dtype)] * (1 if a.dtype.kind == "c" else 2)
        count = (a.shape[:-2], np.int32)
        mode = "V" if compute_schur_vectors else "N"
        t, q, *_ = hlo.lapack("gees", a, result=[a, a, *values, count], mode=mode, sort="N")
        good = finite(hlo, a)
        return [hlo.only(good, x) for x in ([t, q] if compute_schur_vectors else [t])]


schur_p = Schur()


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Any]:
    """Schur decomposition, x = Q T Qᴴ with unitary Q and upper triangular T.

    For real matrices T has a block of two rows for each pair of conjugate eigenvalues.

    Args:
        x: matrices of shape [..., n, n].
        compute_schur_vectors: return Q too.
        sort_eig_vals: put the eigenvalues that `select_callable` accepts first.
        select_callable: a function of a complex number that returns a boolean.

    Returns:
        `[t, q]`, or `[t]`.

    Raises:
        TypeError: `x` has fewer than two axes or an integer type.
        ValueError: the matrices are not square, or `select_callable` is missing.

    Example:
        >>> import namoo.numpy as jnp
        >>> t, q = schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
        >>> t
        Array([[1., 2.],
               [0., 3.]], dtype=float32)
    """
    if sort_eig_vals and select_callable is None:
        raise ValueError(
            "schur: sort_eig_vals needs select_callable, a function that selects the eigenvalues "
            "that come first: select_callable=lambda w: w.real < 0."
        )
    return schur_p.bind(
        x,
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )


class Hessenberg(MatrixPrimitive):
    """A = Q H Qᴴ with zeros below the first subdiagonal of H."""

    name = "hessenberg"
    multiple_results = True

    def results(self, a):
        n = check_square(self.name, a.shape)
        return [a, a.update(shape=(max(0, n - 1),))]

    def compute(self, a):
        if a.shape[0] < 2:
            return [a, np.empty(0, a.dtype)]
        packed, taus, _ = lapack("gehrd", a.dtype)(a, lwork=32 * a.shape[0])
        return [packed, taus]

    def by_lapack(self, emit, a):
        n = a.shape[-1]
        if n < 2:
            return [a, emit.filled(0, a.dtype, (*a.shape[:-2], 0))]
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        packed, taus, _ = emit.lapack(
            "gehrd",
            by_columns,
            result=[((n, n), a.dtype), ((n - 1,), a.dtype)],
            arguments=[
                n, 1, n, ("out", 0), n, ("out", 1), ("work", 32 * n), 32 * n, ("out", 2),
            ],
            copies={0: 0},
            cost=10 * n**3 // 3,
        )  # fmt: skip
        return [*emit.apply(lambda packed: [mT(packed)], packed), taus]

    @in_single
    def stablehlo(self, hlo, a):
        n, taus = a.shape[-1], ((*a.shape[:-2], max(0, a.shape[-1] - 1)), a.dtype)
        if n < 2:
            return [a, hlo.constant(0, *reversed(taus))]
        return hlo.lapack("gehrd", a, result=[a, taus], low=1, high=n)


hessenberg_p = Hessenberg()


def hessenberg(a: Any) -> list[Any]:
    """Reduction to Hessenberg form by Householder reflectors, a = Q H Qᴴ.

    Args:
        a: matrices of shape [..., n, n].

    Returns:
        `[a, taus]`: H in the upper triangle and the first subdiagonal, the reflectors below; and
        their factors, [..., n-1].

    Raises:
        TypeError: `a` has fewer than two axes or an integer type.
        ValueError: the matrices are not square.
    """
    return hessenberg_p.bind(a)


class Tridiagonal(MatrixPrimitive):
    """A = Q T Qᴴ with tridiagonal T, for Hermitian A."""

    name = "tridiagonal"
    multiple_results = True

    def results(self, a, *, lower):
        n = check_square(self.name, a.shape)
        if not n:
            raise ValueError("The input to tridiagonal must not be empty, got shape (0, 0).")
        real = real_dtype(a.dtype)
        return [
            a,
            ShapedArray((n,), real),
            ShapedArray((n - 1,), real),
            a.update(shape=(n - 1,)),
        ]

    def compute(self, a, *, lower):
        if a.shape[0] == 1:
            empty = np.empty(0, a.dtype)
            return [a.real, a[0].real, empty.real, empty]
        name = "hetrd" if a.dtype.kind == "c" else "sytrd"
        packed, d, e, taus, _ = lapack(name, a.dtype)(a, lower=lower, lwork=32 * a.shape[0])
        return [packed, d, e, taus]

    def by_lapack(self, emit, a, *, lower):
        n, real = a.shape[-1], real_dtype(a.dtype)
        if n == 1:
            raise emit.unsupported()
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        packed, d, e, taus, _ = emit.lapack(
            "hetrd" if a.dtype.kind == "c" else "sytrd",
            by_columns,
            result=[((n, n), a.dtype), ((n,), real), ((n - 1,), real), ((n - 1,), a.dtype)],
            arguments=[
                "L" if lower else "U", n, ("out", 0), n, ("out", 1), ("out", 2), ("out", 3),
                ("work", 32 * n), 32 * n, ("out", 4),
            ],
            copies={0: 0},
            cost=4 * n**3 // 3,
        )  # fmt: skip
        return [*emit.apply(lambda packed: [mT(packed)], packed), d, e, taus]

    @in_single
    def stablehlo(self, hlo, a, *, lower):
        *batch, n = a.shape[:-1]
        real = real_dtype(a.dtype)
        kinds = [((*batch, n), real), ((*batch, n - 1), real), ((*batch, n - 1), a.dtype)]
        name = "hetrd" if a.dtype.kind == "c" else "sytrd"
        return hlo.lapack(name, a, result=[a, *kinds], uplo="L" if lower else "U")


tridiagonal_p = Tridiagonal()


def tridiagonal(a: Any, *, lower: bool = True) -> list[Any]:
    """Reduction of Hermitian matrices to tridiagonal form, a = Q T Qᴴ.

    Args:
        a: matrices of shape [..., n, n].
        lower: which triangle of `a` is read.

    Returns:
        `[a, d, e, taus]`: T and the reflectors that make Q; the diagonal of T, [..., n], and its
        off-diagonal, [..., n-1], both real; the factors of the reflectors, [..., n-1].

    Raises:
        TypeError: `a` has fewer than two axes or an integer type.
        ValueError: the matrices are empty or not square.
    """
    return tridiagonal_p.bind(a, lower=bool(lower))
