"""Linear systems: general, triangular, factorised, positive definite, and Sylvester's."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo.api.jit import jit
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.numpy.sorting import argsort
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg.matrices import adjoint, matmul, mT, take_rows
from namoo.primitives.linalg.systems import lu_pivots_to_permutation, triangular_solve
from namoo.primitives.shape import stop_gradient_p
from namoo.scipy.linalg.arguments import fitting, inexact, on_stacks
from namoo.scipy.linalg.factors import cholesky, schur
from namoo.scipy.linalg.solving import linear_solution


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of square matrices.

    Args:
        a: matrices of shape [..., n, n].
        overwrite_a, check_finite: not used.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of square matrices.

    Args:
        a: matrices of shape [..., n, n].
        overwrite_a, check_finite: not used.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    return linalg.det(a)


_TRANSPOSES: dict[int | str, tuple[bool, bool]] = {
    **dict.fromkeys((0, "N"), (False, False)),
    **dict.fromkeys((1, "T"), (True, False)),
    **dict.fromkeys((2, "C"), (True, True)),
}
"""Whether to transpose, and whether to conjugate, for each value of `trans`."""


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The x with op(a) · x = b, for triangular matrices a.

    Args:
        a: matrices of shape [..., n, n], of which one triangle is read.
        b: one vector of shape [n], or matrices of shape [..., n, k]; batch axes broadcast.
        trans: what op is: 0 or 'N' for a itself, 1 or 'T' for aᵀ, 2 or 'C' for aᴴ.
        lower: which triangle is read.
        unit_diagonal: the diagonal counts as ones, and is not read.
        overwrite_b, debug, check_finite: not used.

    Raises:
        ValueError: another `trans`, or shapes that do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]), lower=True)
        Array([1., 2.], dtype=float32)
    """
    if trans not in _TRANSPOSES:
        raise ValueError(
            f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}."
        )
    transpose_a, conjugate_a = _TRANSPOSES[trans]
    a, b, is_vector = fitting("solve_triangular", *inexact("solve_triangular", a, b))
    x = triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if is_vector else x


def _solve_cholesky(c: Array, b: Array, lower: bool) -> Array:
    """The X with A X = B, given the Cholesky factor of A."""
    flags = {"left_side": True, "lower": lower}
    x = triangular_solve(c, b, transpose_a=not lower, conjugate_a=not lower, **flags)
    return triangular_solve(c, x, transpose_a=lower, conjugate_a=lower, **flags)


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x with a · x = b, given the Cholesky factor of a.

    Args:
        c_and_lower: what `cho_factor` returns: the factor, and whether it is the lower one.
        b: one vector of shape [n], or matrices of shape [..., n, k]; batch axes broadcast.
        overwrite_b, check_finite: not used.

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> cho_solve((jnp.array([[2.0, 0.0], [1.0, 2.0]]), True), jnp.array([8.0, 12.0]))
        Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b, is_vector = fitting("cho_solve", *inexact("cho_solve", c, b))
    x = _solve_cholesky(c, b, bool(lower))
    return x[..., 0] if is_vector else x


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x with op(a) · x = b, given the LU decomposition of a.

    Args:
        lu_and_piv: what `lu_factor` returns.
        b: one vector of shape [n], or matrices of shape [..., n, k]; batch axes broadcast.
        trans: what op is: 0 for a itself, 1 for aᵀ, 2 for aᴴ.
        overwrite_b, check_finite: not used.

    Raises:
        ValueError: another `trans`, or shapes that do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo.scipy.linalg import lu_factor
        >>> lu_solve(lu_factor(jnp.array([[2.0, 0.0], [0.0, 4.0]])), jnp.array([2.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    factors, pivots = lu_and_piv
    factors, b, is_vector = fitting("lu_solve", *inexact("lu_solve", factors, b))
    permutation = lu_pivots_to_permutation(jnp.asarray(pivots), factors.shape[-1])
    permutation = jnp.broadcast_to(permutation, factors.shape[:-1])
    if trans == 0:
        x = take_rows(b, permutation)
        x = triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)
        x = triangular_solve(factors, x, left_side=True, lower=False)
    else:
        flags = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
        x = triangular_solve(factors, b, lower=False, **flags)
        x = triangular_solve(factors, x, lower=True, unit_diagonal=True, **flags)
        x = take_rows(x, argsort(permutation, axis=-1))
    return x[..., 0] if is_vector else x


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x with a · x = b.

    Args:
        a: matrices of shape [..., n, n].
        b: one vector of shape [n], or matrices of shape [..., n, k].
        lower: which triangle of positive definite matrices is read.
        assume_a: what is known about the matrices: 'gen' nothing, 'sym' symmetric, 'her' Hermitian,
            'pos' positive definite, which is faster.
        overwrite_a, overwrite_b, debug, check_finite: not used.

    Returns:
        The solutions; infinite or NaN where a matrix is singular (or not positive definite).

    Raises:
        ValueError: another assumption, or shapes that do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
        >>> solve(a, jnp.array([8.0, 12.0]), assume_a="pos")
        Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"solve: assume_a must be one of 'gen', 'sym', 'her' and 'pos', got {assume_a!r}."
        )
    if assume_a != "pos":
        return linalg.solve(a, b)
    a, b = inexact("solve", a, b)
    is_vector = a.ndim == b.ndim + 1
    if (
        not is_vector
        and a.ndim != b.ndim
        or not a.shape[-1] == a.shape[-2] == b.shape[-1 if is_vector else -2]
    ):
        raise ValueError(
            f"solve: shapes {a.shape} and {b.shape} do not fit: a is [..., n, n], and b is "
            "[..., n] or [..., n, k]."
        )
    factor = cholesky(stop_gradient_p.bind(a), lower=lower)
    if is_vector:
        b = b[..., None]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b, factor = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, factor))
    x = linear_solution(
        lambda x: matmul(a, x),
        b,
        lambda right: _solve_cholesky(factor, right, bool(lower)),
        # The transpose is the conjugate.
        lambda right: jnp.conj(_solve_cholesky(factor, jnp.conj(right), bool(lower))),
    )
    return x[..., 0] if is_vector else x


def _triangular_sylvester(r: Array, s: Array, f: Array) -> Array:
    """The Y with R Y + Y S = F for one triple, R and S upper triangular: column after column."""
    eye = jnp.eye(r.shape[0], dtype=r.dtype)

    def column(y, j):
        # Columns of Y from j on are still zero.
        right = jnp.take(f, j, axis=1) - y @ jnp.take(s, j, axis=1)
        solved = triangular_solve(r + s[j, j] * eye, right[:, None], left_side=True, lower=False)
        return lax.dynamic_update_slice_in_dim(y, solved, j, axis=1), None

    places = np.arange(s.shape[0], dtype=np.int32)
    return lax.scan(column, jnp.zeros_like(f), places)[0]


class _Schur:
    """How to solve Sylvester's equation by the forms A = U R Uᴴ and B = V S Vᴴ."""

    def __init__(self, a: Array, b: Array):
        self.a, self.b = schur(a, "complex"), schur(b, "complex")

    def eigenvalues(self) -> tuple[Array, Array]:
        return linalg.diagonal(self.a[0]), linalg.diagonal(self.b[0])

    @staticmethod
    def solve(a: Any, b: Any, c: Array) -> Array:
        (r, u), (s, v) = a, b
        f = matmul(adjoint(u), c.astype(r.dtype), v)
        y = on_stacks(_triangular_sylvester, "(m,m),(n,n),(m,n)->(m,n)")(r, s, f)
        return matmul(u, y, adjoint(v))


class _Eigen:
    """How to solve Sylvester's equation by the eigenvectors of A and B."""

    def __init__(self, a: Array, b: Array):
        self.a, self.b = map(self._with_inverse, (a, b))

    @staticmethod
    def _with_inverse(a: Array) -> tuple[Array, Array, Array]:
        w, v = spectral.eig(a, compute_left_eigenvectors=False)
        return w, v, linalg.inv(v)

    def eigenvalues(self) -> tuple[Array, Array]:
        return self.a[0], self.b[0]

    @staticmethod
    def solve(a: Any, b: Any, c: Array) -> Array:
        (wa, u, u_inverse), (wb, v, v_inverse) = a, b
        turned = matmul(u_inverse, c.astype(u.dtype), v)
        return matmul(u, turned / (wa[..., :, None] + wb[..., None, :]), v_inverse)


_METHODS = {"schur": _Schur, "eigen": _Eigen}


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The X with A X + X B = C.

    Args:
        A: matrices of shape [..., m, m].
        B: matrices of shape [..., n, n].
        C: matrices of shape [..., m, n]; batch axes broadcast.
        method: 'schur', for any matrices, or 'eigen', faster, for those with well conditioned
            eigenvectors.
        tol: the solution is NaN where the sum of an eigenvalue of A and one of B is below this:
            then it does not exist, or is not unique.

    Raises:
        ValueError: another method, or shapes that do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> a, b = jnp.array([[1.0, 2.0], [0.0, 3.0]]), jnp.array([[5.0]])
        >>> solve_sylvester(a, b, jnp.array([[10.0], [16.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    if method not in _METHODS:
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}.")
    a, b, c = inexact("solve_sylvester", A, B, C)
    if c.ndim < 2 or a.shape[-2:] != c.shape[-2:-1] * 2 or b.shape[-2:] != c.shape[-1:] * 2:
        raise ValueError(
            "solve_sylvester: A must be [..., m, m], B [..., n, n] and C [..., m, n], got shapes "
            f"{a.shape}, {b.shape} and {c.shape}."
        )
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c))
    return _sylvester(a, b, c, method=method, tol=tol)


# Compiled, because it amplifies rounding differences: eager and compiled results are then equal.
@functools.partial(jit, static_argnames=("method", "tol"), inline=True)
def _sylvester(a: Array, b: Array, c: Array, *, method: str, tol: float) -> Array:
    form = _METHODS[method](*map(stop_gradient_p.bind, (a, b)))

    def solution(a, b, c):
        x = form.solve(a, b, c)
        return x if jnp.iscomplexobj(c) else jnp.real(x)

    x = linear_solution(
        lambda x: matmul(a, x) + matmul(x, b),
        c,
        lambda c: solution(form.a, form.b, c),
        # Aᵀ Y + Y Bᵀ = C is equivalent to B Yᵀ + Yᵀ A = Cᵀ.
        lambda c: mT(solution(form.b, form.a, mT(c))),
    )
    wa, wb = form.eigenvalues()
    gaps = jnp.abs(wa[..., :, None] + wb[..., None, :])
    is_singular = jnp.any(gaps < tol, axis=(-1, -2), keepdims=True)
    return jnp.where(is_singular, jnp.nan, x)
