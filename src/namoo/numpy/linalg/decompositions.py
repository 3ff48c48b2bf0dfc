"""A matrix as a product of simpler ones: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.promote import array_of, promote_inexact
from namoo.numpy.same_type import choose, const
from namoo.numpy.sorting import argsort
from namoo.numpy.taking import take_along_axis
from namoo.primitives import elementwise as lax
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg import systems as primitive
from namoo.primitives.linalg.matrices import adjoint, mT, scale_columns
from namoo.primitives.linalg.qr import geqrf
from namoo.primitives.linalg.qr import qr as _qr
from namoo.primitives.linalg.spectral import eig as _eig
from namoo.primitives.shape import expand_dims


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What `svd` returns: a = U · diag(S) · Vh."""

    U: Array
    S: Array
    Vh: Array


def _matrices(name: str, a: Any) -> Array:
    """The array argument in an inexact type."""
    return promote_inexact(f"jnp.linalg.{name}", a)[0]


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor of positive definite matrices: a = L Lᴴ, or a = Uᴴ U.

    Args:
        a: matrices of shape [..., n, n].
        upper: return the upper triangular factor U = Lᴴ.
        symmetrize_input: factorise (a + aᴴ)/2; otherwise only the lower triangle is read.

    Returns:
        The factor; NaN where a matrix is not positive definite.

    Raises:
        TypeError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    factor = primitive.cholesky(_matrices("cholesky", a), symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """The singular value decomposition a = U · diag(S) · Vᴴ.

    Args:
        a: matrices of shape [..., m, n].
        full_matrices: square U and V; otherwise their first min(m, n) columns.
        compute_uv: return U and Vᴴ too; otherwise S alone.
        hermitian: the matrices are Hermitian, which is quicker.
        subset_by_index: keep the singular values from the first of these indices up to the second.

    Returns:
        The named tuple (U, S, Vh) with S in descending order, or S.

    Raises:
        TypeError: fewer than two axes.
        ValueError: a subset together with `full_matrices`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]])).S
        Array([4., 3.], dtype=float32)
    """
    x = _matrices("svd", a)
    if hermitian:
        return _hermitian_svd(x, compute_uv, subset_by_index)
    out = spectral.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
    )
    return SVDResult(*out) if compute_uv else out


def _hermitian_svd(x: Array, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    """Singular values are the sizes of the eigenvalues; their signs go into V."""
    v, w = spectral.eigh(x)
    order = argsort(lax.abs(w), descending=True)
    order = order if subset is None else order[..., slice(*subset)]
    w = take_along_axis(w, order, -1)
    if not compute_uv:
        return lax.abs(w)
    u = take_along_axis(v, expand_dims(order, (order.ndim - 1,)), -1)
    sign = choose(lax.lt(w, const(w, 0)), const(w, -1), const(w, 1))
    return SVDResult(u, lax.abs(w), adjoint(scale_columns(u, sign.astype(u.dtype))))


def svdvals(x: Any, /) -> Array:
    """The singular values of matrices, in descending order.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -4.0]]))
        Array([4., 3.], dtype=float32)
    """
    return spectral.svd(_matrices("svdvals", x), compute_uv=False)


def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors: a · v = w · v.

    Args:
        a: matrices of shape [..., n, n].

    Returns:
        The named tuple (eigenvalues, eigenvectors), both complex; eigenvectors are the columns.

    Raises:
        ValueError: the matrices are not square.
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
        Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    w, v = _eig(_matrices("eig", a), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Array:
    """The eigenvalues of square matrices, complex and in no particular order.

    Args:
        a: matrices of shape [..., n, n].

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (w,) = _eig(
        _matrices("eigvals", a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )
    return w


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices: a = V · diag(w) · Vᴴ.

    Args:
        a: matrices of shape [..., n, n].
        UPLO: which triangle is read, 'L' (or None) or 'U', where `symmetrize_input` is false.
        symmetrize_input: decompose (a + aᴴ)/2.

    Returns:
        The named tuple (eigenvalues, eigenvectors); eigenvalues are real and ascending.

    Raises:
        ValueError: another `UPLO`.
        TypeError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(3)
        Array([1., 3.], dtype=float32)
    """
    x = _matrices("eigh", a)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"jnp.linalg.eigh: UPLO must be None, 'L' or 'U', got {UPLO!r}.")
    v, w = spectral.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, real and ascending.

    Args:
        a, UPLO, symmetrize_input: as for `eigh`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
        Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def qr(a: Any, mode: str = "reduced") -> Array | QRResult:
    """The decomposition a = Q R, with orthonormal columns of Q and upper triangular R.

    Args:
        a: matrices of shape [..., m, n].
        mode: 'reduced' (or 'full'): Q of shape [..., m, k] and R [..., k, n], k = min(m, n);
            'complete': Q [..., m, m] and R [..., m, n]; 'r': R alone; 'raw': LAPACK's reflectors,
            transposed, and their factors.

    Raises:
        ValueError: another mode.
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
        >>> (q @ r).round(3)
        Array([[3., 1.],
               [4., 2.]], dtype=float32)
    """
    x = _matrices("qr", a)
    if mode == "raw":
        reflectors, taus = geqrf(x)
        return QRResult(mT(reflectors), taus)
    if mode not in ("reduced", "full", "complete", "r"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: write 'reduced', 'complete', 'r' or "
            "'raw'."
        )
    q, r = _qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Array:
    """How many singular values are not zero, but for rounding.

    Args:
        M: matrices of shape [..., m, n]; of a vector or number, whether it is not all zeros.
        rtol: singular values up to this count as zero, one number or one for each matrix; the
            largest one times max(m, n) times the precision of the type by default.
        hermitian: the matrices are Hermitian, which is quicker.
        tol: an older name of `rtol`.

    Raises:
        ValueError: both `rtol` and `tol`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
        Array(1, dtype=int32)
    """
    x = _matrices("matrix_rank", M)
    if tol is not None:
        if rtol is not None:
            raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
        rtol = tol
    if x.ndim < 2:
        return reductions.any(lax.ne(x, lax.full_like(x, 0))).astype(np.int32)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    assert isinstance(s, Array)
    if rtol is None:
        rounding = max(x.shape[-2:]) * float(dtypes.finfo(s.dtype).eps)
        limit = reductions.max(s, axis=-1, initial=0) * rounding
    else:
        limit = array_of("matrix_rank", rtol).astype(s.dtype)
    return reductions.sum(s > expand_dims(limit, (limit.ndim,)), axis=-1)


attach_shortcuts(globals())
