"""Rows for `namoo.primitives.linalg.systems`, `qr` and `decompositions`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.linalg import qr, similar_forms, updates
from namoo.primitives.linalg import spectral as dec
from namoo.primitives.linalg import systems as la
from namoo.primitives.linalg.matrices import symmetrize

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


class Hermitian(Sample):
    """A row whose first operand is made Hermitian: only then is the derivative defined."""

    def run(self, *args):
        x, *rest = args
        return super().run(symmetrize(self.primitive.name, x), *rest)


def triangle(left_side=True, lower=True, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    return dict(
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


square, batch = normal(3, 3) + 3 * np.eye(3), normal(2, 3, 3) + 3 * np.eye(3)
positive = normal(2, 4, 4)
positive = positive @ np.swapaxes(positive, -1, -2) + np.eye(4)
csquare = complex_normal(3, 3) + 3 * np.eye(3)
chermitian = csquare @ csquare.conj().T
tall, wide = normal(4, 3), normal(3, 4)
ctall = complex_normal(4, 3) + 3 * np.eye(4, 3)
spread = np.diag([1.0, 2.5, 4.5]) + 0.3 * normal(3, 3)
empty = np.zeros((0, 0))
packed, taus = np.linalg.qr(tall, mode="raw")
packed = packed.T.copy()
single = ["float32", "bfloat16"]


def eigh(subset=None, lower=True):
    return dict(lower=lower, sort_eigenvalues=True, subset_by_index=subset, algorithm=None)


def eig(left, right):
    return dict(
        compute_left_eigenvectors=left,
        compute_right_eigenvectors=right,
        enable_eigvec_derivs=True,
        implementation=None,
    )


def svd(full=False, uv=True, subset=None, algorithm=None):
    return dict(full_matrices=full, compute_uv=uv, subset_by_index=subset, algorithm=algorithm)


def factors(full=False, pivoting=False):
    return dict(pivoting=pivoting, full_matrices=full, use_magma=None)


def schur(vectors=True, select=None):
    return dict(
        compute_schur_vectors=vectors,
        sort_eig_vals=select is not None,
        select_callable=select,
    )


solve = la.triangular_solve_p
tridiagonal = [normal(4), normal(4) + 4, normal(4), normal(4, 2)]

SAMPLES = [
    Sample(
        solve,
        [square, normal(3, 2)],
        triangle(),
        dtypes=single,
        oracle=lambda a, b: np.linalg.solve(np.tril(a), b),
    ),
    Sample(
        solve,
        [square, normal(2, 3)],
        triangle(left_side=False, lower=False),
        name="right upper",
        oracle=lambda a, b: np.linalg.solve(np.triu(a).T, b.T).T,
    ),
    Sample(
        solve,
        [square, normal(3, 2)],
        triangle(transpose_a=True),
        name="transposed",
        oracle=lambda a, b: np.linalg.solve(np.tril(a).T, b),
    ),
    Sample(
        solve,
        [square, normal(2, 3)],
        triangle(False, transpose_a=True, unit_diagonal=True),
        name="right transposed unit",
    ),
    Sample(
        solve,
        [csquare, complex_normal(3, 2)],
        triangle(conjugate_a=True),
        name="conjugated",
    ),
    Sample(
        solve,
        [csquare, complex_normal(3, 2)],
        triangle(transpose_a=True),
        name="complex transposed",
        oracle=lambda a, b: np.linalg.solve(np.tril(a).T, b),
    ),
    Sample(
        solve,
        [csquare, complex_normal(2, 3)],
        triangle(False, False, True, True),
        name="right adjoint",
        oracle=lambda a, b: np.linalg.solve(np.triu(a).conj(), b.T).T,
    ),
    Sample(solve, [batch, normal(2, 3, 2)], triangle(unit_diagonal=True), name="stack"),
    Sample(
        solve,
        [normal(5, 2, 2) + 3 * np.eye(2), normal(5, 2, 3)],
        triangle(lower=False),
        name="many small systems",
    ),
    Sample(
        solve,
        [normal(5, 2, 2) + 3 * np.eye(2), normal(5, 3, 2)],
        triangle(False, transpose_a=True),
        name="many small systems, right",
    ),
    Sample(solve, [empty, np.zeros((0, 2))], triangle(), name="empty"),
    Sample(
        solve,
        [np.zeros((2, 2)), np.ones((2, 1))],
        triangle(lower=False),
        name="singular",
        diff=(),
        expected=[[np.nan], [np.inf]],
        batchable=False,
    ),
    Hermitian(la.cholesky_p, [positive], dtypes=single, oracle=np.linalg.cholesky),
    Hermitian(la.cholesky_p, [chermitian], name="complex"),
    Sample(la.cholesky_p, [np.array([[4.0]])], name="one element"),
    Sample(
        la.cholesky_p,
        [np.array([[[1.0, 2.0], [2.0, 1.0]], [[4.0, 9.0], [0.0, 9.0]]])],
        name="not positive",
        diff=(),
        expected=[[[np.nan, 0], [np.nan, np.nan]], [[2, 0], [0, 3]]],
    ),
    Sample(la.cholesky_p, [empty], name="empty"),
    Sample(la.lu_p, [square], dtypes=single),
    Sample(la.lu_p, [tall], name="tall"),
    Sample(la.lu_p, [wide], name="wide"),
    Sample(la.lu_p, [batch], name="stack"),
    Sample(la.lu_p, [csquare], name="complex"),
    Sample(la.lu_p, [np.zeros((3, 0))], name="no columns"),
    Sample(
        la.lu_pivots_to_permutation_p,
        [np.array([[2, 2, 2], [1, 1, 3]], np.int32)],
        {"permutation_size": 4},
        expected=[[2, 0, 1, 3], [1, 0, 3, 2]],
    ),
    Sample(la.tridiagonal_solve_p, tridiagonal, {"perturb_singular": False}, dtypes=single),
    Sample(
        la.tridiagonal_solve_p,
        [x[:1] for x in tridiagonal],
        {"perturb_singular": False},
        name="one row",
        second_order=False,
        diff=(1, 3),
    ),
    Sample(
        la.tridiagonal_solve_p,
        [x[:2] for x in tridiagonal],
        {"perturb_singular": True},
        name="two rows",
    ),
    Sample(
        la.tridiagonal_solve_p,
        [np.stack([x, x]) for x in tridiagonal],
        {"perturb_singular": False},
        name="stack",
    ),
    Sample(
        la.tridiagonal_solve_p,
        [x + 1j * x[::-1] for x in tridiagonal],
        {"perturb_singular": False},
        name="complex",
    ),
    Sample(
        la.tridiagonal_solve_p,
        [np.zeros(3)] * 3 + [np.ones((3, 1))],
        {"perturb_singular": False},
        name="singular",
        diff=(),
        batchable=False,
        expected=[[np.nan]] * 3,
    ),
    Sample(
        updates.symmetric_product_p,
        [tall, normal(4, 4)],
        {"alpha": 2.0, "beta": 0.5},
        dtypes=single,
        oracle=lambda a, c: 2 * a @ a.T + 0.5 * c,
    ),
    Sample(
        updates.cholesky_update_p,
        [np.triu(square), normal(3)],
        diff=(),
        dtypes=single,
        oracle=lambda r, w: np.linalg.cholesky(r.T @ r + np.outer(w, w)).T,
    ),
    Sample(qr.qr_p, [tall], factors(), dtypes=single),
    Sample(qr.qr_p, [tall], factors(full=True), name="tall, full"),
    Sample(qr.qr_p, [normal(2, 5, 2)], factors(full=True), name="stack, full"),
    Sample(qr.qr_p, [square], factors(full=True), name="square"),
    Sample(qr.qr_p, [wide], factors(), name="wide"),
    Sample(qr.qr_p, [wide], factors(full=True), name="wide, full"),
    Sample(qr.qr_p, [ctall], factors(), name="complex"),
    Sample(qr.qr_p, [ctall], factors(full=True), name="complex, full"),
    Sample(qr.qr_p, [tall], factors(pivoting=True), name="pivoting"),
    Sample(qr.qr_p, [normal(2, 3, 3)], factors(full=True, pivoting=True), name="stack, pivoting"),
    Sample(
        qr.qr_p,
        [np.zeros((3, 0))],
        factors(full=True),
        name="no columns",
        diff=(),
        expected=[np.eye(3), np.zeros((3, 0))],
    ),
    Sample(qr.geqrf_p, [tall], diff=(), dtypes=single),
    Sample(qr.geqrf_p, [normal(2, 3, 4)], diff=(), name="stack"),
    Sample(
        qr.householder_product_p,
        [packed, taus],
        diff=(),
        dtypes=single,
        expected=np.linalg.qr(tall)[0],
    ),
    Sample(qr.householder_product_p, [packed, taus[:2]], diff=(), name="fewer reflectors"),
    Sample(
        qr.householder_product_p,
        [packed, taus[:0]],
        diff=(),
        name="no reflectors",
        expected=np.eye(4, 3),
    ),
    Sample(
        qr.ormqr_p,
        [packed, taus, np.eye(4)],
        {"left": True, "transpose": False},
        diff=(),
        dtypes=single,
        expected=np.linalg.qr(tall, mode="complete")[0],
    ),
    Sample(
        qr.ormqr_p,
        [packed, taus, normal(2, 4)],
        {"left": False, "transpose": True},
        diff=(),
        name="right adjoint",
    ),
    Hermitian(dec.eigh_p, [spread], eigh(), dtypes=["float32"]),
    Hermitian(dec.eigh_p, [positive], eigh(lower=False), name="stack, upper"),
    Hermitian(dec.eigh_p, [spread], eigh(subset=(1, 3)), name="subset"),
    Hermitian(dec.eigh_p, [chermitian], eigh(), name="complex", diff=()),
    Sample(dec.eigh_p, [np.array([[2.5]])], eigh(), name="one element"),
    Sample(dec.eigh_p, [empty], eigh(), name="empty"),
    Sample(
        dec.eigh_p,
        [np.full((2, 2), np.nan)],
        eigh(),
        name="NaN",
        diff=(),
        expected=[np.full((2, 2), np.nan), np.full(2, np.nan)],
    ),
    Sample(dec.eig_p, [spread], eig(False, False), dtypes=["float32"]),
    Sample(dec.eig_p, [spread], eig(False, True), name="right", dtypes=["float32"]),
    Sample(dec.eig_p, [spread], eig(True, True), name="both", dtypes=()),
    Sample(
        dec.eig_p, [np.stack([spread, spread.T])], eig(True, False), name="stack, left", dtypes=()
    ),
    Sample(dec.eig_p, [csquare], eig(True, True), name="complex"),
    Sample(dec.eig_p, [empty], eig(True, True), name="empty"),
    Sample(dec.svd_p, [tall], svd(), dtypes=["float32"]),
    Sample(dec.svd_p, [wide], svd(), name="wide"),
    Sample(dec.svd_p, [normal(2, 3, 3)], svd(full=True), name="stack, full"),
    Sample(dec.svd_p, [tall], svd(uv=False), name="values", dtypes=["float32"]),
    Sample(dec.svd_p, [tall], svd(subset=(1, 3)), name="subset"),
    Sample(dec.svd_p, [wide], svd(full=True), name="wide, full", diff=()),
    Sample(dec.svd_p, [ctall], svd(uv=False), name="complex values"),
    Sample(dec.svd_p, [ctall], svd(), name="complex", diff=()),
    Sample(dec.svd_p, [tall], svd(algorithm=dec.SvdAlgorithm.QR), name="QR algorithm"),
    Sample(
        dec.svd_p,
        [np.full((2, 2), np.nan)],
        svd(uv=False),
        name="NaN",
        diff=(),
        expected=[np.full(2, np.nan)],
    ),
    Sample(similar_forms.schur_p, [square], schur(), diff=(), dtypes=["float32"]),
    Sample(similar_forms.schur_p, [csquare], schur(vectors=False), diff=(), name="complex"),
    Sample(
        similar_forms.schur_p,
        [normal(2, 3, 3)],
        schur(select=np.isreal),
        diff=(),
        name="stack, sorted",
        dtypes=(),
    ),
    Sample(similar_forms.hessenberg_p, [square], diff=(), dtypes=single),
    Sample(similar_forms.hessenberg_p, [complex_normal(2, 4, 4)], diff=(), name="stack, complex"),
    Sample(similar_forms.hessenberg_p, [np.array([[3.0]])], diff=(), name="one element"),
    Sample(similar_forms.tridiagonal_p, [positive[0]], {"lower": True}, diff=(), dtypes=single),
    Sample(
        similar_forms.tridiagonal_p, [chermitian], {"lower": False}, diff=(), name="complex, upper"
    ),
    Sample(
        similar_forms.tridiagonal_p,
        [np.array([[3.0]])],
        {"lower": True},
        diff=(),
        name="one element",
    ),
]
