"""Eigenvalues and singular values."""

from __future__ import annotations

import enum
import functools
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import ShapedArray, aval_of
from namoo.primitives.elementwise import (
    abs,
    add,
    complex,
    conj,
    div,
    eq,
    full_like,
    gt,
    imag,
    integer_pow,
    lt,
    mul,
    neg,
    select,
    square,
    sub,
)
from namoo.primitives.linalg.matrices import (
    MatrixPrimitive,
    adjoint,
    along_columns,
    along_rows,
    as_type_of,
    canonical,
    check_square,
    columns,
    diagonal,
    identity,
    in_single,
    is_complex,
    matmul,
    mT,
    nan_where_failed,
    numpy_lapack,
    real_dtype,
    real_part,
    rows,
    scale_columns,
    scipy_linalg,
    symmetrize,
    tril,
    triu,
)
from namoo.primitives.linalg.systems import solve
from namoo.primitives.reduction import argmax
from namoo.primitives.shape import broadcast_to, broadcasted_iota, reduce_sum, shape_of, zeros
from namoo.primitives.slicing import concatenate

__all__ = [
    "eig", "eig_p", "eigh", "eigh_p", "EighImplementation", "EigImplementation", "svd", "svd_p",
    "SvdAlgorithm",
]  # fmt: skip


class EighImplementation(enum.Enum):
    """The algorithm of `eigh`; on a CPU it is QR."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(MatrixPrimitive):
    """A = V diag(w) Vᴴ for Hermitian A, of which one triangle is read."""

    name = "eigh"
    multiple_results = True
    stacks = True

    def results(self, a, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        n = check_square(self.name, a.shape)
        start, stop = _subset(self.name, subset_by_index, n)
        vectors = a.update(shape=(n, stop - start))
        return [vectors, ShapedArray((stop - start,), real_dtype(a.dtype))]

    def compute(self, a, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        triangle = np.tril(a) if lower else np.triu(a)
        if np.isnan(triangle).any():  # LAPACK does not always notice
            raise np.linalg.LinAlgError("NaN")
        w, v = numpy_lapack(["eigh_lo" if lower else "eigh_up"], "rt", a)
        kept = slice(*_subset(self.name, subset_by_index, a.shape[-1]))
        return [v[..., kept], w[..., kept]]

    def by_lapack(self, emit, a, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        n, is_complex = a.shape[-1], a.dtype.kind == "c"
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        length, reals, integers = 1 + 6 * n + 2 * n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
        more = [("real", reals), reals] if is_complex else []
        v, w, info = emit.lapack(
            "heevd" if is_complex else "syevd",
            by_columns,
            result=[((n, n), a.dtype), ((n,), real_dtype(a.dtype))],
            arguments=[
                "V", "L" if lower else "U", n, ("out", 0), n, ("out", 1), ("work", length), length,
                *more, ("int", integers), integers, ("out", 2),
            ],
            copies={0: 0},
            cost=9 * n**3,
        )  # fmt: skip
        start, stop = _subset(self.name, subset_by_index, n)

        def finish(a, v, w, info):
            triangle = tril(a) if lower else triu(a)
            v, w = nan_where_failed(unless_finite(info, triangle), mT(v), w)
            return [columns(x, start, stop) for x in (v, w)]

        return emit.apply(finish, a, v, w, info)

    @in_single
    def stablehlo(self, hlo, a, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        name = "heevd" if a.dtype.kind == "c" else "syevd"
        values = (a.shape[:-1], real_dtype(a.dtype))
        v, w = hlo.lapack(name, a, result=[a, values], mode="V", uplo="L" if lower else "U")
        good = finite(hlo, hlo.apply(tril if lower else triu, a))
        kept = _subset(self.name, subset_by_index, a.shape[-1])
        return [hlo.part(hlo.only(good, x), x.ndim - 1, *kept) for x in (v, w)]

    def jvp(self, primals, tangents, *, subset_by_index, **params):
        # With M = Vᴴ dA V: dw is its diagonal, and dV = V·(F ∘ M), F_ij = 1 / (w_j - w_i).
        (a,), (da,) = primals, tangents
        v, w = self.bind(a, subset_by_index=None, **params)
        m = matmul(adjoint(v), da, v)
        dw = real_part(diagonal(m))
        dv = matmul(v, mul(as_type_of(_inverse_gaps(w, identity(m)), m), m))
        start, stop = _subset(self.name, subset_by_index, shape_of(w)[-1])
        outs = [columns(x, start, stop) for x in (v, w, dv, dw)]
        return outs[:2], outs[2:]


def unless_finite(info: Any, x: Any) -> Any:
    """LAPACK's info, but -1 for a matrix with infinities or NaN, which LAPACK may not notice."""
    axes = (len(shape_of(x)) - 2, len(shape_of(x)) - 1)
    size = abs(x)
    lost = reduce_sum(sub(size, size), axes)  # zero, or NaN
    return select(eq(lost, lost), info, broadcast_to(full_like(info, -1), shape_of(info)))


def finite(hlo: Any, x: Any) -> Any:
    """Whether all elements of each matrix are finite: LAPACK does not always check."""
    parts = hlo.parts(x) if x.dtype.kind == "c" else [x]
    finite = [hlo.op("is_finite", part, result=(x.shape, np.bool_)) for part in parts]
    both = functools.reduce(lambda a, b: hlo.combine("and", a, b), finite)
    return hlo.reduce("and", both, True, (x.ndim - 2, x.ndim - 1))


def _inverse_gaps(w: Any, eye: Any) -> Any:
    """The matrix 1 / (w_j - w_i), with zeros on the diagonal."""
    n = shape_of(w)[-1]
    eye = real_part(eye) if not is_complex(w) else eye
    gaps = sub(along_rows(w, n), along_columns(w, n))
    return sub(integer_pow(add(gaps, eye), -1), eye)


def _subset(name: str, subset: tuple[int, int] | None, n: int) -> tuple[int, int]:
    if subset is None:
        return 0, n
    start, stop = subset
    if not 0 <= start <= stop <= n:
        raise ValueError(
            f"{name}: subset_by_index {tuple(subset)} must be a range within 0 and {n}."
        )
    return start, stop


eigh_p = Eigh()


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian matrices, x = V diag(w) Vᴴ.

    Args:
        x: matrices of shape [..., n, n].
        lower: which triangle is read where `symmetrize_input` is false.
        symmetrize_input: decompose (x + xᴴ)/2.
        sort_eigenvalues: whether the order matters; they are ascending in any case.
        subset_by_index: keep the eigenvalues from the first of these indices up to the second.
        implementation: None or `EighImplementation.QR`.

    Returns:
        `(v, w)`: eigenvectors in the columns, and eigenvalues in ascending order.

    Raises:
        TypeError: the matrices are not square, with `symmetrize_input`.
        ValueError: the matrices are not square, or the subset is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> v, w = eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> w.round(4)
        Array([1., 3.], dtype=float32)
    """
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(
            f"eigh: {implementation} is an algorithm for other devices; use None or "
            "EighImplementation.QR."
        )
    x = canonical(x)
    v, w = eigh_p.bind(
        symmetrize("eigh", x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=None if subset_by_index is None else tuple(subset_by_index),
        algorithm=implementation,
    )
    return v, w


class EigImplementation(enum.Enum):
    """The library of `eig`; on a CPU it is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(MatrixPrimitive):
    """Eigenvalues, and left (uᴴ A = w uᴴ) and right (A v = w v) eigenvectors."""

    name = "eig"
    multiple_results = True
    stacks = True

    def results(
        self,
        a,
        *,
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    ):
        n = check_square(self.name, a.shape)
        dtype = dtypes.to_complex_dtype(a.dtype)
        vectors = ShapedArray((n, n), dtype)
        count = compute_left_eigenvectors + compute_right_eigenvectors
        return [ShapedArray((n,), dtype)] + [vectors] * count

    def in_stacks(self, *, compute_left_eigenvectors, **params):
        return not compute_left_eigenvectors

    def compute(self, a, *, compute_left_eigenvectors, compute_right_eigenvectors, **params):
        if compute_left_eigenvectors:
            if not np.isfinite(a).all():
                raise np.linalg.LinAlgError("not finite")
            return scipy_linalg().eig(
                a, left=True, right=compute_right_eigenvectors, check_finite=False
            )
        return np.linalg.eig(a) if compute_right_eigenvectors else [np.linalg.eigvals(a)]

    def by_lapack(
        self, emit, a, *, compute_left_eigenvectors, compute_right_eigenvectors, **params
    ):
        n, is_real = a.shape[-1], a.dtype.kind != "c"
        wanted = compute_left_eigenvectors, compute_right_eigenvectors
        if not compute_left_eigenvectors:  # in double precision, as in NumPy
            a = emit.convert(a, np.float64 if is_real else np.complex128)
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        matrix, length, w = ((n, n), a.dtype), 40 * n, 1 + is_real
        _, *found, info = emit.lapack(
            "geev",
            by_columns,
            result=[matrix, *[((n,), a.dtype)] * w, matrix, matrix],
            arguments=[
                *("V" if yes else "N" for yes in wanted), n, ("out", 0), n,
                *(("out", 1 + i) for i in range(w)), ("out", 1 + w), n, ("out", 2 + w), n,
                ("work", length), length, *([] if is_real else [("real", 2 * n)]),
                ("out", 3 + w),
            ],
            copies={0: 0},
            cost=25 * n**3,
        )  # fmt: skip

        def finish(a, info, *found):
            w, (u, v) = found[:-2], map(mT, found[-2:])
            outs = [complex(*w) if is_real else w[0]]
            for vectors, yes in zip((u, v), wanted, strict=True):
                if yes:
                    outs.append(_paired(vectors, w[1]) if is_real else vectors)
            return nan_where_failed(unless_finite(info, a), *outs)

        return emit.apply(finish, a, info, *found)

    @in_single
    def stablehlo(self, hlo, a, *, compute_left_eigenvectors, compute_right_eigenvectors, **params):
        wanted = compute_left_eigenvectors, compute_right_eigenvectors
        if not compute_left_eigenvectors:  # in double precision, as in NumPy
            a = hlo.convert(a, np.complex128 if a.dtype.kind == "c" else np.float64)
        vectors = (a.shape, dtypes.to_complex_dtype(a.dtype))
        values = [(a.shape[:-1], a.dtype)] * (1 if a.dtype.kind == "c" else 2)
        left, right = ("V" if yes else "N" for yes in wanted)
        *w, u, v = hlo.lapack(
            "geev", a, result=[*values, vectors, vectors], compute_left=left, compute_right=right
        )
        w = w[0] if len(w) == 1 else hlo.op("complex", *w, result=(w[0].shape, vectors[1]))
        outs = [w, *(x for x, yes in zip((u, v), wanted, strict=True) if yes)]
        return [hlo.only(finite(hlo, a), x) for x in outs]

    def jvp(
        self,
        primals,
        tangents,
        *,
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    ):
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        if (left or right) and not enable_eigvec_derivs:
            raise NotImplementedError(
                "The derivative of eigenvectors of a general matrix is right only where all "
                "eigenvalues differ and no eigenvector has two largest components, which cannot "
                "be checked. If that holds, pass enable_eigvec_derivs=True to lax.linalg.eig; to "
                "differentiate eigenvalues alone, ask for no eigenvectors; for symmetric "
                "matrices, use eigh."
            )
        (a,), (da,) = primals, tangents
        w, *vectors = self.bind(
            a,
            compute_left_eigenvectors=left,
            compute_right_eigenvectors=True,
            # The derivatives of eigenvalues do not depend on how eigenvectors are normalised.
            enable_eigvec_derivs=True,
            implementation=implementation,
        )
        v = vectors[-1]
        da = as_type_of(da, v)
        m = solve(v, matmul(da, v))
        outs, out_tangents = [w], [diagonal(m)]
        if left:
            # Left eigenvectors are the right ones of Aᴴ, whose eigenvalues are conjugate.
            u = vectors[0]
            turned = solve(u, matmul(adjoint(da), u))
            outs.append(u)
            out_tangents.append(_eigenvector_tangents(conj(w), u, turned))
        if right:
            outs.append(v)
            out_tangents.append(_eigenvector_tangents(w, v, m))
        return outs, out_tangents


def _eigenvector_tangents(w, v, m):
    """The tangent of eigenvectors of length 1 whose largest components are real.

    `m` is V⁻¹ dA V. V·(F ∘ M) is the change of each vector up to a multiple of the vector itself;
    the multiple is chosen so that length and phase do not change.
    """
    n = shape_of(w)[-1]
    dv = matmul(v, mul(_inverse_gaps(w, identity(m)), m))
    if not n:
        return dv
    axis = len(shape_of(v)) - 2
    along = reduce_sum(mul(conj(v), dv), (axis,))
    dv = sub(dv, scale_columns(v, along))
    largest = argmax(square(abs(v)), axis, np.int32)
    places = broadcast_to(broadcasted_iota(np.int32, (n, n), 0), shape_of(v))
    mask = eq(places, along_rows(largest, n))
    size, turn = (
        reduce_sum(select(mask, x, zeros(aval_of(x))), (axis,)) for x in (real_part(v), imag(dv))
    )
    phase = div(turn, size)
    return sub(dv, scale_columns(v, complex(full_like(phase, 0), phase)))


def _paired(vectors: Any, imaginary: Any) -> Any:
    """Complex eigenvectors; LAPACK returns the parts of the first of two conjugates as columns."""
    n = shape_of(vectors)[-1]
    axis = len(shape_of(vectors)) - 1
    zero = zeros(aval_of(columns(vectors, 0, 1)))
    before = concatenate([zero, columns(vectors, 0, n - 1)], axis)
    after = concatenate([columns(vectors, 1, n), zero], axis)
    none = zeros(aval_of(vectors))
    imaginary = along_rows(imaginary, n)
    first, second = gt(imaginary, none), lt(imaginary, none)
    real = select(second, before, vectors)
    return complex(real, select(first, after, select(second, neg(vectors), none)))


eig_p = Eig()


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues and eigenvectors of square matrices.

    Args:
        x: matrices of shape [..., n, n].
        compute_left_eigenvectors: also return U with uᴴ x = w uᴴ for its columns u.
        compute_right_eigenvectors: also return V with x v = w v for its columns v.
        enable_eigvec_derivs: allow derivatives of eigenvectors.  They are right only where all
          eigenvalues differ and no eigenvector has two components of largest magnitude.
        implementation: None or `EigImplementation.LAPACK`.
        use_magma: the older form of `implementation`.

    Returns:
        `[w, u, v]`, complex, without the eigenvectors that were not requested. Eigenvectors have
        length 1, and their largest component is real. NaN where the iteration fails.

    Raises:
        TypeError: `x` has fewer than two axes or an integer type.
        ValueError: the matrices are not square, or the implementation is for other devices.

    Example:
        >>> import namoo.numpy as jnp
        >>> w, v = eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
        >>> w
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma or implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(
            "eig: only EigImplementation.LAPACK works on a CPU; leave implementation and "
            "use_magma out."
        )
    return eig_p.bind(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


class SvdAlgorithm(enum.Enum):
    """The algorithm of `svd`; on a CPU DEFAULT is DIVIDE_AND_CONQUER."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class SVD(MatrixPrimitive):
    """A = U diag(s) Vᴴ, as s, U, Vᴴ."""

    name = "svd"
    multiple_results = True
    stacks = True

    def results(self, a, *, full_matrices, compute_uv, subset_by_index, algorithm):
        m, n = a.shape
        start, stop = _subset(self.name, subset_by_index, min(m, n))
        k = stop - start
        s = ShapedArray((k,), real_dtype(a.dtype))
        if not compute_uv:
            return [s]
        if full_matrices:
            return [s, a.update(shape=(m, m)), a.update(shape=(n, n))]
        return [s, a.update(shape=(m, k)), a.update(shape=(k, n))]

    def in_stacks(self, *, algorithm, **params):
        return algorithm is not SvdAlgorithm.QR

    def compute(self, a, *, full_matrices, compute_uv, subset_by_index, algorithm):
        if algorithm is SvdAlgorithm.QR:
            found = scipy_linalg().svd(
                a, full_matrices, compute_uv, check_finite=False, lapack_driver="gesvd"
            )
        else:
            side = "m" if a.shape[-2] < a.shape[-1] else "n"  # in older versions
            kind = ("_f" if full_matrices else "_s") if compute_uv else ""
            names = [f"svd{kind}", f"svd_{side}{kind}"]
            found = numpy_lapack(names, "trt" if compute_uv else "r", a)
        start, stop = _subset(self.name, subset_by_index, min(a.shape[-2:]))
        if not compute_uv:
            return [found[..., start:stop]]
        u, s, vh = found
        if subset_by_index is None:
            return [s, u, vh]
        return [s[..., start:stop], u[..., start:stop], vh[..., start:stop, :]]

    def by_lapack(self, emit, a, *, full_matrices, compute_uv, subset_by_index, algorithm):
        m, n = a.shape[-2:]
        k, most = min(m, n), max(m, n)
        if not k:
            raise emit.unsupported()
        is_complex, by_qr = a.dtype.kind == "c", algorithm is SvdAlgorithm.QR
        mode = "N" if not compute_uv else "A" if full_matrices else "S"
        sides = (
            [(m, m), (n, n)] if mode == "A" else [(m, k), (k, n)] if compute_uv else [(1, 1)] * 2
        )
        length = 4 * k * k + 80 * k + 64 * most
        reals = [("real", max(5 * k * k + 7 * k, 2 * k * (most + k) + k))]
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        (rows_u, columns_u), (rows_v, columns_v) = sides
        _, s, u, vh, info = emit.lapack(
            "gesvd" if by_qr else "gesdd",
            by_columns,
            result=[
                ((n, m), a.dtype), ((k,), real_dtype(a.dtype)),
                ((columns_u, rows_u), a.dtype), ((columns_v, rows_v), a.dtype),
            ],
            arguments=[
                *([mode] * (1 + by_qr)), m, n, ("out", 0), m, ("out", 1), ("out", 2), rows_u,
                ("out", 3), rows_v, ("work", length), length, *(reals if is_complex else []),
                *([] if by_qr else [("int", 8 * k)]), ("out", 4),
            ],
            copies={0: 0},
            cost=20 * most * k * k,
        )  # fmt: skip
        start, stop = _subset(self.name, subset_by_index, k)

        def finish(a, s, u, vh, info):
            s, u, vh = nan_where_failed(unless_finite(info, a), s, mT(u), mT(vh))
            if subset_by_index is not None:
                s = columns(s, start, stop)
                u, vh = (columns(u, start, stop), rows(vh, start, stop)) if compute_uv else (u, vh)
            return [s, u, vh] if compute_uv else [s]

        return emit.apply(finish, a, s, u, vh, info)

    @in_single
    def stablehlo(self, hlo, a, *, full_matrices, compute_uv, subset_by_index, algorithm):
        *batch, m, n = a.shape
        k = min(m, n)
        if not k:
            raise hlo.on_the_host()
        whole = full_matrices and compute_uv
        shapes = [(*batch, m, m if whole else k), (*batch, n if whole else k, n)]
        _, s, u, vh = hlo.lapack(
            "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd",
            a,
            result=[
                a,
                ((*batch, k), real_dtype(a.dtype)),
                *((shape, a.dtype) for shape in shapes),
            ],
            mode="N" if not compute_uv else "A" if full_matrices else "S",
        )
        kept = _subset(self.name, subset_by_index, k)
        if subset_by_index is not None:
            axis = len(batch)
            s, vh = (hlo.part(x, axis, *kept) for x in (s, vh))
            u = hlo.part(u, axis + 1, *kept)
        good = finite(hlo, a)
        return [hlo.only(good, x) for x in ([s, u, vh] if compute_uv else [s])]

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
        (a,), (da,) = primals, tangents
        m, n = shape_of(a)[-2:]
        if compute_uv and full_matrices and m != n:
            raise NotImplementedError(
                f"svd has no derivative with full_matrices=True for matrices that are not square, "
                f"such as {m}×{n}: the additional vectors are not unique. Pass "
                "full_matrices=False."
            )
        s, u, vh = self.bind(
            a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=algorithm
        )
        start, stop = _subset(self.name, subset_by_index, min(m, n))
        ds, du, dvh = _svd_tangents(s, u, vh, da)
        s, ds, u, du = (columns(x, start, stop) for x in (s, ds, u, du))
        if not compute_uv:
            return [s], [ds]
        vh, dvh = (rows(x, start, stop) for x in (vh, dvh))
        return [s, u, vh], [ds, du, dvh]


def _svd_tangents(s, u, vh, da):
    """The tangents of s, U and Vᴴ with orthonormal columns of U and V.

    With M = Uᴴ dA V: ds is the real part of its diagonal.  UᴴdU and VᴴdV are anti-Hermitian, and
    M + Mᴴ determines them off the diagonal. On the diagonal only their difference is determined;
    all of it is assigned to U.
    """
    m, n, k = shape_of(u)[-2], shape_of(vh)[-1], shape_of(s)[-1]
    v, uh = adjoint(vh), adjoint(u)
    inner = matmul(uh, da, v)
    ds = real_part(diagonal(inner))
    eye = real_part(identity(inner))
    row, column = along_rows(s, k), along_columns(s, k)
    gaps = mul(add(row, column), sub(row, column))
    weights = as_type_of(sub(integer_pow(add(gaps, eye), -1), eye), inner)
    right, left = mul(as_type_of(row, inner), inner), mul(as_type_of(column, inner), inner)
    phase = mul(full_like(inner, 0.5), sub(inner, adjoint(inner)))
    inverse = _inverse_or_zero(s)
    phase = mul(phase, as_type_of(mul(along_rows(inverse, k), eye), inner))
    du = matmul(u, add(mul(weights, add(right, adjoint(right))), phase))
    dv = matmul(v, mul(weights, add(left, adjoint(left))))
    inverse = as_type_of(inverse, inner)
    if m > k:  # the part outside of the column space of U
        image = matmul(da, v)
        du = add(du, scale_columns(sub(image, matmul(u, matmul(uh, image))), inverse))
    if n > k:
        image = matmul(adjoint(da), u)
        dv = add(dv, scale_columns(sub(image, matmul(v, matmul(vh, image))), inverse))
    return ds, du, adjoint(dv)


def _inverse_or_zero(s):
    """1/s, and 0 where s is 0."""
    zero = eq(s, full_like(s, 0))
    one = broadcast_to(full_like(s, 1), shape_of(s))
    return select(zero, zeros(aval_of(s)), integer_pow(select(zero, one, s), -1))


svd_p = SVD()


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Singular value decomposition, x = U diag(s) Vᴴ.

    Args:
        x: matrices of shape [..., m, n].
        full_matrices: square U and V; otherwise their first min(m, n) columns.
        compute_uv: return U and Vᴴ too.
        subset_by_index: keep the singular values from the first of these indices up to the second.
        algorithm: None, or `SvdAlgorithm.DEFAULT`, `QR` or `DIVIDE_AND_CONQUER`.

    Returns:
        `(u, s, vh)` with s in descending order, or s alone.

    Raises:
        TypeError: `x` has fewer than two axes or an integer type.
        ValueError: `subset_by_index` is combined with `full_matrices`.

    Example:
        >>> import namoo.numpy as jnp
        >>> svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError(
            f"svd: {algorithm} is an algorithm for other devices; use None, DEFAULT, QR or "
            "DIVIDE_AND_CONQUER of SvdAlgorithm."
        )
    subset = None if subset_by_index is None else tuple(subset_by_index)
    if subset == (0, min(shape_of(x)[-2:], default=0)):
        subset = None
    if subset is not None and full_matrices:
        raise ValueError(
            "svd: subset_by_index keeps some of the singular vectors, full_matrices asks for all; "
            "pass full_matrices=False."
        )
    out = svd_p.bind(
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=subset,
        algorithm=algorithm,
    )
    if not compute_uv:
        return out[0]
    s, u, vh = out
    return u, s, vh
