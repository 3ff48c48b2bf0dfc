"""Functions of matrices: the exponential, the square root, and any other of the eigenvalues."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.caches import cached
from namoo.api.grad import jvp
from namoo.api.jit import jit
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.numpy.promote import promote_inexact
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg.matrices import adjoint, matmul
from namoo.primitives.linalg.systems import triangular_solve
from namoo.primitives.shape import stop_gradient_p
from namoo.scipy.linalg.arguments import on_stacks
from namoo.scipy.linalg.factors import rsf2csf, schur
from namoo.scipy.linalg.systems import solve_sylvester, solve_triangular
from namoo.transforms.custom import custom_jvp

# Padé approximants of the exponential, by precision: their orders, and the norm up to which each
# of them is exact.  Higham (2005), "The scaling and squaring method for the matrix exponential
# revisited".
_PADE: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "float32": ((3, 5, 7), (4.258730016922831e-1, 1.880152677804762, 3.925724783138660)),
    "float64": (
        (3, 5, 7, 9, 13),
        (
            1.495585217958292e-2,
            2.539398330063230e-1,
            9.504178996162932e-1,
            2.097847961257068,
            5.371920351148152,
        ),
    ),
}


@cached(
    "scipy.linalg Padé coefficients",
    bound="dtypes with a table of orders",
    keyed_by="orders",
    kept=True,
)
def _pade_coefficients(orders: tuple[int, ...]) -> np.ndarray:
    """A row for each order m: (2m - j)! / (j! (m - j)!) for j = 0, …, m, then zeros."""
    table = np.zeros((len(orders), 14))
    for row, m in zip(table, orders, strict=True):
        for j in range(m + 1):
            row[j] = math.factorial(2 * m - j) // (math.factorial(j) * math.factorial(m - j))
    return table


def _pade(a: Array, norm: Array) -> tuple[Array, Array, Array]:
    """P and Q with exp(A / 2^s) ≈ Q⁻¹ P, and the number s of squarings."""
    orders, limits = _PADE[str(norm.dtype)]
    squarings = jnp.maximum(0, jnp.ceil(jnp.log2(norm / limits[-1])))
    a = a / (2**squarings).astype(a.dtype)
    # All orders are one polynomial, whose highest coefficients may be zero.
    table = jnp.asarray(_pade_coefficients(orders), norm.dtype)
    b = table[jnp.digitize(norm, np.array(limits[:-1], norm.dtype))].astype(a.dtype)
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)

    def polynomial(first):
        low = b[first] * eye + b[first + 2] * a2 + b[first + 4] * a4 + b[first + 6] * a6
        if orders[-1] < 9:
            return low
        return low + matmul(a6, b[first + 8] * a2 + b[first + 10] * a4 + b[first + 12] * a6)

    odd, even = matmul(a, polynomial(1)), polynomial(0)
    return even + odd, even - odd, squarings


def _expm(a: Array, upper_triangular: bool, max_squarings: int) -> Array:
    """The exponential of one matrix."""
    if a.size == 0:
        return a
    p, q, squarings = _pade(a, stop_gradient_p.bind(linalg.norm(a, 1)))
    out = solve_triangular(q, p) if upper_triangular else linalg.solve(q, p)

    def maybe_square(i, x):
        return lax.cond(i < squarings, lambda x: matmul(x, x), lambda x: x, x)

    out = lax.fori_loop(0, max_squarings, maybe_square, out)
    return jnp.where(squarings > max_squarings, jnp.nan, out)


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices, Σ Aᵏ / k!.

    Args:
        A: matrices of shape [..., n, n].
        upper_triangular: the matrices are upper triangular, which is faster.
        max_squarings: the result is NaN where the norm of a matrix would need more squarings.

    Raises:
        ValueError: the matrices are not square.
        TypeError: a type narrower than single precision.

    Example:
        >>> import namoo.numpy as jnp
        >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
        Array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    (a,) = promote_inexact("expm", A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"expm takes square matrices of shape [..., n, n], got shape {a.shape}.")
    if str(jnp.finfo(a.dtype).dtype) not in _PADE:
        raise TypeError(f"expm takes matrices of single or double precision, got {a.dtype}.")
    a = a.astype(a.dtype)

    def one(a):
        return _expm(a, upper_triangular, max_squarings)

    return on_stacks(one, "(n,n)->(n,n)")(a)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The Fréchet derivative of the matrix exponential at A, in the direction E.

    Args:
        A: matrices of shape [..., n, n].
        E: directions, of the same shape.
        method: not used.
        compute_expm: return the exponential of A too.

    Returns:
        (exp(A), derivative), or the derivative alone.

    Raises:
        ValueError: matrices that are not square, or of different shapes.

    Example:
        >>> import namoo.numpy as jnp
        >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
        Array([[1.]], dtype=float32)
    """
    a, e = jnp.asarray(A), jnp.asarray(E)
    for name, x in (("A", a), ("E", e)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"expm_frechet: {name} must be square matrices, got shape {x.shape}.")
    if a.shape != e.shape:
        raise ValueError(
            f"expm_frechet: A and E must have the same shape, got {a.shape} and {e.shape}."
        )
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


def _by_columns(t: Array, diagonal: Array, system: Callable[..., Any]) -> Array:
    """An upper triangular function of one upper triangular matrix T, column after column.

    Args:
        t: the matrix.
        diagonal: the diagonal of the result.
        system: for the result so far, the number j of a column and the column of T above the
            diagonal: the matrix and the right side that column j of the result solves.
    """
    n = t.shape[0]
    places = np.arange(n)
    on_diagonal = np.eye(n, dtype=bool)

    def column(j, out):
        # Rows from j on do not belong to the system: there x = 0.  A row whose own factor is
        # zero has a solution only if its right side is zero, too; then x = 0 is a solution.
        inside = places < j
        above = jnp.where(inside, jnp.take(t, j, axis=1), 0)
        matrix, right = system(out, j, above)
        factors = jnp.diagonal(matrix)
        factors = jnp.where(inside & (factors != 0), factors, 1)
        matrix = jnp.where(on_diagonal, factors, jnp.where(inside[:, None], matrix, 0))
        right = jnp.where(inside, right, 0)[:, None]
        solved = triangular_solve(matrix, right, left_side=True, lower=False)
        return lax.dynamic_update_slice_in_dim(out, out[:, j][:, None] + solved, j, axis=1)

    return lax.fori_loop(1, n, column, jnp.diag(diagonal))


def _sqrtm_triangular(t: Array) -> Array:
    """Björck and Hammarling: (U' + u_jj) u = t for the columns above the diagonal."""
    roots = jnp.sqrt(jnp.diagonal(t))
    eye = jnp.eye(t.shape[0], dtype=t.dtype)

    def system(u, j, above):
        return u + roots[j] * eye, above

    u = _by_columns(t, roots, system)
    # Where a sum of two roots is zero there is a square root only if nothing had to be divided.
    sums = roots[:, None] + roots
    return jnp.where((sums == 0) & (u != 0), jnp.nan, u)


@custom_jvp
def _sqrtm(a: Any) -> Any:
    return _sqrtm_by_schur(a)


# Compiled, because it amplifies rounding differences: eager and compiled results are then equal.
@functools.partial(jit, inline=True)
def _sqrtm_by_schur(a: Array) -> Array:
    t, z = schur(a, "complex")
    return matmul(z, on_stacks(_sqrtm_triangular, "(n,n)->(n,n)")(t), adjoint(z))


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    # X dX + dX X = dA
    root = _sqrtm(*primals)
    return root, solve_sylvester(root, root, tangents[0], tol=0.0)


def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """The principal square root of matrices: the X with X X = A.

    Args:
        A: matrices of shape [..., n, n].
        blocksize: not used.

    Returns:
        Complex matrices of the same shape; NaN where there is no square root.

    Raises:
        ValueError: the matrices are not square.
        TypeError: fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> sqrtm(jnp.array([[4.0, 5.0], [0.0, 9.0]])).real
        Array([[2., 1.],
               [0., 3.]], dtype=float32)
    """
    a = jnp.asarray(A)
    return _sqrtm(a.astype(dtypes.to_complex_dtype(a.dtype)))


def _funm_triangular(t: Array, values: Array) -> Array:
    """Parlett's recurrence: (t_jj - T') f = t f_jj - F' t for the columns above the diagonal."""
    eye = jnp.eye(t.shape[0], dtype=t.dtype)

    def system(f, j, above):
        return t[j, j] * eye - t, above * f[j, j] - f @ above

    return _by_columns(t, values, system)


def _divided_differences(func: Callable, w: Array) -> Array:
    """(f(wᵢ) - f(wⱼ)) / (wᵢ - wⱼ), and the derivative where that would lose all digits."""
    gaps = w[:, None] - w
    middle = (w[:, None] + w) / 2
    _, slope = jvp(func, (middle,), (jnp.ones_like(middle),))
    eps = float(jnp.finfo(w.dtype).eps)
    is_close = jnp.abs(gaps) <= eps ** (1 / 3) * (1 + jnp.abs(middle))
    values = func(w)
    quotient = (values[:, None] - values) / jnp.where(is_close, 1, gaps)
    return jnp.where(is_close, slope, quotient)


def funm(A: Any, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of a matrix: f(A) = V f(diag(w)) V⁻¹ for the eigenvalues w.

    Args:
        A: one matrix of shape [n, n].
        func: the function, of arrays of complex numbers, element by element.
        disp: return the result alone; otherwise also an estimate of its relative error.

    Returns:
        A complex matrix; with `disp=False` a pair.  The result is not exact where eigenvalues are
        equal or close.

    Raises:
        ValueError: `A` is not one square matrix.

    Example:
        >>> import namoo.numpy as jnp
        >>> funm(jnp.array([[1.0, 1.0], [0.0, 3.0]]), jnp.square).real
        Array([[1., 4.],
               [0., 9.]], dtype=float32)
    """
    a = jnp.asarray(A)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(
            f"funm takes one square matrix, got shape {a.shape}; use vmap for several."
        )

    @custom_jvp
    def value(a):
        t, z = schur(a)
        t, z = rsf2csf(t, z)
        values = jnp.asarray(func(jnp.diagonal(t))).astype(t.dtype)
        return matmul(z, _funm_triangular(t, values), adjoint(z)), t

    @value.defjvp
    def value_jvp(primals, tangents):
        # Daleckii and Krein: dF = V (D ∘ (V⁻¹ dA V)) V⁻¹ with D of divided differences.
        out, t = value(*primals)
        w, v = spectral.eig(primals[0], compute_left_eigenvectors=False, enable_eigvec_derivs=True)
        turned = linalg.solve(v, matmul(tangents[0].astype(v.dtype), v))
        change = matmul(v, _divided_differences(func, w) * turned)
        change = adjoint(linalg.solve(adjoint(v), adjoint(change)))
        return (out, t), (change.astype(out.dtype), jnp.zeros_like(t))

    out, t = value(a)
    return out if disp else (out, _funm_error(out, stop_gradient_p.bind(t)))


def _funm_error(out: Array, t: Array) -> Array:
    """How much the closest pair of eigenvalues magnifies rounding errors."""
    eps = jnp.finfo(out.dtype).eps
    w = jnp.diagonal(t)
    gaps = jnp.abs(w[:, None] - w) + jnp.where(np.eye(w.size, dtype=bool), jnp.inf, 0)
    closest = jnp.minimum(jnp.min(gaps, initial=jnp.inf), jnp.abs(w[0]))
    closest = jnp.where(closest == 0, eps, closest)
    growth = eps / closest * linalg.norm(jnp.triu(t, 1), 1)
    error = jnp.minimum(1, jnp.maximum(eps, growth))
    return jnp.where(jnp.any(jnp.isinf(out)), jnp.inf, error)
