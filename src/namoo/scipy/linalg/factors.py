"""A matrix as a product of simpler ones."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.lax.linalg import qdwh
from namoo.numpy import linalg
from namoo.primitives.linalg import qr as householder
from namoo.primitives.linalg import similar_forms, spectral
from namoo.primitives.linalg import systems as primitive
from namoo.primitives.linalg.matrices import adjoint, check_square, matmul, mT, symmetrize
from namoo.scipy.linalg.arguments import inexact, on_stacks
from namoo.scipy.linalg.solving import solve_anticommutator
from namoo.transforms.custom import custom_jvp


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factor of positive definite matrices: a = Uᴴ U, or a = L Lᴴ.

    Args:
        a: matrices of shape [..., n, n], of which one triangle is read.
        lower: read the lower triangle and return L; otherwise the upper, and U.
        overwrite_a, check_finite: not used.

    Returns:
        The factor; NaN where a matrix is not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)
    """
    (x,) = inexact("cholesky", a)
    if x.ndim < 2:
        raise ValueError(f"cholesky takes matrices of shape [..., n, n], got shape {x.shape}.")
    factor = primitive.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor in the form that `cho_solve` takes.

    Args:
        a, lower, overwrite_a, check_finite: as for `cholesky`.

    Returns:
        The factor, and `lower`.

    Example:
        >>> import namoo.numpy as jnp
        >>> cho_factor(jnp.array([[4.0]]))
        (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """LU decomposition, a = P L U with a permutation P and triangular L and U.

    Args:
        a: matrices of shape [..., m, n].
        permute_l: return P L and U.
        overwrite_a, check_finite: not used.

    Returns:
        (P, L, U) of shapes [..., m, m], [..., m, k] and [..., k, n], k = min(m, n); or (P L, U).

    Raises:
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> p, l, u = lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> p @ l @ u
        Array([[1., 2.],
               [2., 2.]], dtype=float32)
    """
    (x,) = inexact("lu", a)
    factors, _, permutation = primitive.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    places = np.arange(m, dtype=permutation.dtype)
    p = (permutation[..., None, :] == places[:, None]).astype(jnp.finfo(x.dtype).dtype)
    lower = jnp.tril(factors, -1)[..., :k] + jnp.eye(m, k, dtype=x.dtype)
    upper = jnp.triu(factors)[..., :k, :]
    return (p.astype(x.dtype) @ lower, upper) if permute_l else (p, lower, upper)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """LU decomposition in the form that `lu_solve` takes.

    Args:
        a: matrices of shape [..., m, n].
        overwrite_a, check_finite: not used.

    Returns:
        U in the upper triangle with L, without its diagonal of ones, below; and int32 row
        exchanges: row i with row pivots[i], for i = 0, 1, …

    Raises:
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> lu_factor(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[1]
        Array([1, 1], dtype=int32)
    """
    (x,) = inexact("lu_factor", a)
    factors, pivots, _ = primitive.lu(x)
    return factors, pivots


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """QR decomposition, a = Q R with orthonormal columns of Q and upper triangular R.

    Args:
        a: matrices of shape [..., m, n].
        mode: 'full' for Q of shape [..., m, m]; 'economic' for [..., m, min(m, n)]; 'r' for R
            alone, with m rows.
        pivoting: sort the columns so that the diagonal of R does not increase: a[:, p] = Q R.
        overwrite_a, lwork, check_finite: not used.

    Returns:
        (Q, R), or (R,); followed by the int32 order of the columns, with `pivoting`.

    Raises:
        ValueError: another mode.
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> q, r = qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
        >>> (q @ r).round(3)
        Array([[3., 1.],
               [4., 2.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: write 'full', 'economic' or 'r'."
        )
    (x,) = inexact("qr", a)
    q, *rest = householder.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of a matrix with the Q of a QR decomposition, and R.

    Args:
        a: matrices of shape [..., m, n]; Q has shape [..., m, k], k = min(m, n).
        c: for 'left' matrices [..., k, p], or one vector [k]; for 'right' [..., p, m], or [m].
        mode: 'left' for Q c, 'right' for c Q.
        pivoting: sort the columns of `a`, as for `qr`.
        conjugate: use the complex conjugate of Q.
        overwrite_a, overwrite_c: not used.

    Returns:
        The product, and R; with `pivoting` also the order of the columns.

    Raises:
        ValueError: another mode, or shapes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> a = jnp.array([[3.0, 1.0], [4.0, 2.0]])
        >>> product, r = qr_multiply(a, a.T)
        >>> jnp.allclose(product, r.T, atol=1e-5)
        Array(True, dtype=bool)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}.")
    a, c = inexact("qr_multiply", a, c)
    is_vector, left = c.ndim == 1, mode == "left"
    if is_vector:
        c = c[:, None] if left else c[None, :]
    m, n = a.shape[-2:]
    length, wanted = (c.shape[-2], min(m, n)) if left else (c.shape[-1], m)
    if length != wanted:
        raise ValueError(
            f"qr_multiply: for a of shape {a.shape} and mode={mode!r}, c must have {wanted} "
            f"{'rows' if left else 'columns'}, got shape {c.shape}."
        )
    q, r, *order = householder.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    product = jnp.matmul(q, c) if left else jnp.matmul(c, q)
    if is_vector:
        product = jnp.ravel(product)
    batch = product.shape[:-2]
    if not is_vector and batch != r.shape[:-2]:
        r, order = (
            jnp.broadcast_to(r, (*batch, *r.shape[-2:])),
            [jnp.broadcast_to(p, (*batch, n)) for p in order],
        )
    return (product, r, *order)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition a = U · diag(s) · Vᴴ.

    Args:
        a: matrices of shape [..., m, n].
        full_matrices: square U and V; otherwise their first min(m, n) columns.
        compute_uv: return U and Vᴴ too; otherwise s alone.
        overwrite_a, check_finite, lapack_driver: not used.

    Returns:
        (U, s, Vᴴ) with s in descending order, or s.

    Raises:
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    (x,) = inexact("svd", a)
    return spectral.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)


def schur(a: Any, output: str = "real") -> list[Array]:
    """Schur decomposition, a = Z T Zᴴ with unitary Z and upper triangular T.

    Args:
        a: matrices of shape [..., n, n].
        output: 'real' keeps real matrices real: T has a block of two rows for each pair of
            conjugate eigenvalues.  'complex' makes T triangular in any case.

    Returns:
        [T, Z].

    Raises:
        ValueError: another output, or matrices that are not square.
        TypeError: integers, or fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> t, z = schur(jnp.array([[0.0, 2.0], [-2.0, 0.0]]), output="complex")
        >>> jnp.diag(t).round(3)
        Array([0.+2.j, 0.-2.j], dtype=complex64)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}.")
    if output == "complex":
        a = jnp.asarray(a)
        a = a.astype(dtypes.to_complex_dtype(a.dtype))
    return similar_forms.schur(a)


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """A real Schur decomposition made complex: T becomes triangular, and Z T Zᴴ stays the same.

    Args:
        T: matrices of shape [..., n, n] with blocks of one or two rows on the diagonal.
        Z: unitary matrices of the same size.
        check_finite: not used.

    Returns:
        The complex T and Z.

    Raises:
        ValueError: matrices that are not square, or of different sizes.

    Example:
        >>> import namoo.numpy as jnp
        >>> t, z = rsf2csf(*schur(jnp.array([[0.0, 2.0], [-2.0, 0.0]])))
        >>> jnp.abs(t[1, 0])
        Array(0., dtype=float32)
    """
    t, z = jnp.asarray(T), jnp.asarray(Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"rsf2csf: {name} must be square matrices, got shape {x.shape}.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(
            f"rsf2csf: T and Z must be of one size, got shapes {t.shape} and {z.shape}."
        )
    dtype = dtypes.to_complex_dtype(dtypes.result_type(t, z))
    t, z = t.astype(dtype), z.astype(dtype)
    if t.shape[-1] < 2:
        return t, z
    return on_stacks(_triangularise, "(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _triangularise(t: Array, z: Array) -> tuple[Array, Array]:
    """Rotate each block of two rows, from the last to the first, until T is triangular."""
    n = t.shape[0]
    eps = float(jnp.finfo(t.dtype).eps)

    def rotate(m, t, z):
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        below = block[1, 0]
        shift = linalg.eigvals(block)[0] - block[1, 1]
        length = jnp.sqrt(jnp.abs(shift) ** 2 + jnp.abs(below) ** 2).astype(t.dtype)
        c, s = shift / length, below / length
        turn = jnp.stack([jnp.stack([jnp.conj(c), s]), jnp.stack([-s, c])])
        rows = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=0)
        rows = jnp.where(np.arange(n) >= m - 1, turn @ rows, rows)
        t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, axis=0)
        columns = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=1)
        columns = jnp.where(np.arange(n)[:, None] <= m, columns @ adjoint(turn), columns)
        t = lax.dynamic_update_slice_in_dim(t, columns, m - 1, axis=1)
        columns = lax.dynamic_slice_in_dim(z, m - 1, 2, axis=1) @ adjoint(turn)
        return t, lax.dynamic_update_slice_in_dim(z, columns, m - 1, axis=1)

    def step(i, both):
        t, z = both
        m = n - i
        size = jnp.abs(t[m - 1, m - 1]) + jnp.abs(t[m, m])
        is_block = jnp.abs(t[m, m - 1]) > eps * size
        t, z = lax.cond(is_block, rotate, lambda m, t, z: (t, z), m, t, z)
        return t.at[m, m - 1].set(0), z

    return lax.fori_loop(1, n, step, (t, z))


def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Hessenberg form, a = Q H Qᴴ with zeros below the first subdiagonal of H.

    Args:
        a: matrices of shape [..., n, n].
        calc_q: return Q too.
        overwrite_a, check_finite: not used.

    Returns:
        H, or (H, Q).

    Raises:
        ValueError: the matrices are not square.
        TypeError: integers, or fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> h, q = hessenberg(jnp.arange(9.0).reshape(3, 3), calc_q=True)
        >>> (q @ h @ q.T).round(3)
        Array([[0., 1., 2.],
               [3., 4., 5.],
               [6., 7., 8.]], dtype=float32)
    """
    a = jnp.asarray(a)
    n = a.shape[-1] if a.ndim else 0
    if a.ndim > 1 and n == 0:
        return (jnp.zeros_like(a), jnp.zeros_like(a)) if calc_q else jnp.zeros_like(a)
    packed, taus = similar_forms.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    q = householder.householder_product(packed[..., 1:, :-1], taus)
    # The first row and column are those of the identity.
    q = jnp.pad(q, [(0, 0)] * (a.ndim - 2) + [(1, 0), (1, 0)])
    return h, q.at[..., 0, 0].set(1)


@functools.partial(custom_jvp, nondiff_argnums=(1, 2, 3))
def _unitary_factor(a: Any, method: str, eps: float | None, max_iterations: int | None) -> Any:
    """The U of a = U P, for one matrix with at least as many rows as columns."""
    if method == "svd":
        u, _, vh = spectral.svd(a, full_matrices=False)
        return matmul(u, vh)
    return qdwh(a, eps=eps, max_iterations=max_iterations)[0]


@_unitary_factor.defjvp
def _unitary_factor_jvp(method, eps, max_iterations, primals, tangents):
    # Uᴴ dU is anti-Hermitian, and dP Hermitian: Uᴴ dA - dAᴴ U = (Uᴴ dU) P + P (Uᴴ dU).  The rest
    # of dU is outside the column space of U, (I - U Uᴴ) dA P⁻¹.
    (a,), (da,) = primals, tangents
    u = _unitary_factor(a, method, eps, max_iterations)
    uh = adjoint(u)
    p = symmetrize("polar", matmul(uh, a))
    inner = matmul(uh, da)
    du = matmul(u, solve_anticommutator(p, inner - adjoint(inner)))
    if a.shape[-2] > a.shape[-1]:
        rest = da - matmul(u, inner)
        du = du + mT(linalg.solve(mT(p), mT(rest)))
    return u, du


def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Polar decomposition, a = U P with unitary U and positive semidefinite P, or a = P U.

    Args:
        a: matrices of shape [..., m, n].
        side: 'right' for a = U P with P of shape [..., n, n]; 'left' for a = P U, [..., m, m].
        method: 'qdwh', by an iteration, or 'svd'.
        eps, max_iterations: when the iteration stops; see `lax.linalg.qdwh`.

    Returns:
        (U, P); U has the shape of `a`, with orthonormal columns if m ≥ n, else rows.

    Raises:
        ValueError: another side or method, integers, or fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> u, p = polar(jnp.array([[0.0, 2.0], [-3.0, 0.0]]))
        >>> jnp.abs(p).round(3)
        Array([[3., 0.],
               [0., 2.]], dtype=float32)
    """
    x = jnp.asarray(a)
    if x.ndim < 2:
        raise ValueError(f"polar takes matrices of shape [..., m, n], got shape {x.shape}.")
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}.")
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise ValueError(f"polar takes floating or complex matrices, got {x.dtype}.")
    # The unitary factor is the same on both sides, and that of aᴴ is its adjoint.
    is_wide = x.shape[-2] < x.shape[-1]

    def factor(x):
        return _unitary_factor(x, method, eps, max_iterations)

    u = on_stacks(factor, "(m,n)->(m,n)")(adjoint(x) if is_wide else x)
    u = adjoint(u) if is_wide else u
    p = matmul(adjoint(u), x) if side == "right" else matmul(x, adjoint(u))
    return u, symmetrize("polar", p)


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: tuple[int, int] | None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices, alone or relative to others.

        type 1: a v = w b v    type 2: a b v = w v    type 3: b a v = w v

    Args:
        a: Hermitian matrices of shape [..., n, n]; (a + aᴴ)/2 is decomposed.
        b: positive definite matrices; the identity by default.
        lower: which triangle of `b` is read.
        eigvals_only: return the eigenvalues alone.
        eigvals: keep the eigenvalues from the first of these indices to the second, inclusive.
        type: which of the problems above; they differ only if `b` is given.
        overwrite_a, overwrite_b, turbo, check_finite: not used.

    Returns:
        Eigenvalues in ascending order, and eigenvectors in the columns: orthonormal, or
        vᴴ b v = 1 for types 1 and 2, vᴴ b⁻¹ v = 1 for type 3.

    Raises:
        ValueError: another type, or indices out of range.
        TypeError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> w, v = eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> w.round(3)
        Array([1., 3.], dtype=float32)
    """
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type!r}.")
    subset = None if eigvals is None else (eigvals[0], eigvals[1] + 1)
    if b is None:
        (x,) = inexact("eigh", a)
        v, w = spectral.eigh(x, lower=lower, subset_by_index=subset)
        return w if eigvals_only else (w, v)
    x, other = inexact("eigh", a, b)
    check_square("eigh", x.shape[-2:])
    factor = cholesky(other, lower=lower)
    factor = factor if lower else adjoint(factor)
    solve = functools.partial(primitive.triangular_solve, factor, lower=True, left_side=True)
    back = functools.partial(solve, transpose_a=True, conjugate_a=True)
    x = symmetrize("eigh", x)
    if type == 1:
        x = solve(adjoint(solve(x)))
    else:
        x = matmul(adjoint(factor), x, factor)
    v, w = spectral.eigh(x, subset_by_index=subset)
    if eigvals_only:
        return w
    return w, (matmul(factor, v) if type == 3 else back(v))
