"""Linear systems: solving them, inverses, and least squares.

A solution is differentiated implicitly, not through LU or SVD: the factors are constants of
the computation, and the rule gives the derivative of the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.control.solves import custom_linear_solve
from namoo.core.array import Array, EagerArray
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.numpy.linalg.decompositions import SVDResult, svd
from namoo.numpy.promote import array_of, check_arraylike, promote_inexact
from namoo.numpy.reductions import sum
from namoo.numpy.same_type import choose, const
from namoo.numpy.selection import where
from namoo.numpy.sorting import argsort
from namoo.primitives.linalg.matrices import (
    adjoint,
    identity,
    is_complex,
    matmul,
    real_part,
    scale_columns,
    symmetrize,
    take_rows,
)
from namoo.primitives.linalg.systems import lu, triangular_solve
from namoo.primitives.shape import (
    broadcast_to,
    canonical_axis,
    reshape,
    stop_gradient_p,
    transpose,
    zeros,
)
from namoo.transforms.custom import custom_jvp

Solver = Callable[[Array], Array]


def _solve_factored(factors: Any, permutation: Any, b: Any) -> Any:
    """The X with A X = B, given the LU factors of A."""
    x = triangular_solve(
        factors, take_rows(b, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    return triangular_solve(factors, x, left_side=True, lower=False)


def _solve_transposed(factors: Any, permutation: Any, b: Any) -> Any:
    """The X with Aᵀ X = B, given the LU factors of A."""
    x = triangular_solve(factors, b, left_side=True, lower=False, transpose_a=True)
    x = triangular_solve(
        factors, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    )
    return take_rows(x, argsort(permutation))


def linear_solution(matvec: Solver, b: Array, solve: Solver, transpose_solve: Solver) -> Array:
    """The x with matvec(x) = b, found by `solve`; `transpose_solve` is for the transpose.

    The two methods are not differentiated; what they close over needs no derivatives.
    """
    return custom_linear_solve(
        matvec, b, lambda _, right: solve(right), lambda _, right: transpose_solve(right)
    )


def solve_matrices(a: Array, b: Array) -> Array:
    """The X with A X = B for matrices [..., n, n] and [..., n, k] of one type, broadcast."""
    factors, _, permutation = lu(stop_gradient_p.bind(a))
    batch = a.shape[:-2]
    if batch != b.shape[:-2]:
        batch = sizes.broadcast_shapes(batch, b.shape[:-2])
        a, b, factors = (broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, factors))
        permutation = broadcast_to(permutation, (*batch, permutation.shape[-1]))
    if not b.size:
        return b
    return linear_solution(
        lambda x: matmul(a, x),
        b,
        lambda right: _solve_factored(factors, permutation, right),
        lambda right: _solve_transposed(factors, permutation, right),
    )


def solve(a: Any, b: Any) -> Array:
    """The x with a · x = b.

    Args:
        a: matrices of shape [..., n, n].
        b: one vector of shape [n], or matrices of shape [..., n, k]; batch axes broadcast.

    Returns:
        The solutions; infinite or NaN where a matrix is singular.

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    check_arraylike("jnp.linalg.solve", a, b)
    a, b = _same_type("solve", a, b)
    if a.ndim < 2:
        raise ValueError(f"jnp.linalg.solve: a must be matrices [..., n, n], got shape {a.shape}.")
    vector = b.ndim == 1
    n = a.shape[-1]
    if not b.ndim or a.shape[-2] != n or b.shape[0 if vector else -2] != n:
        advice = ""
        if b.ndim > 1 and b.shape[-1] == n:
            advice = " For a stack of vectors write solve(a, b[..., None])[..., 0]."
        raise ValueError(
            f"jnp.linalg.solve: shapes {a.shape} of a and {b.shape} of b do not fit: a is "
            f"[..., n, n], and b is [n] or [..., n, k].{advice}"
        )
    x = solve_matrices(a, b[:, None] if vector else b)
    return x[..., 0] if vector else x


def _same_type(name: str, *arrays: Any) -> list[Array]:
    """Arrays of their common inexact type, strongly typed, with their own shapes."""
    found = [array_of(f"jnp.linalg.{name}", x) for x in arrays]
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(*found))
    return [x.astype(dtype) for x in found]


def inv(a: Any) -> Array:
    """The inverse of square matrices.

    To multiply with an inverse use `solve`, which is quicker and more exact.

    Args:
        a: matrices of shape [..., n, n].

    Returns:
        The inverses; infinite or NaN where a matrix is singular.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    (a,) = _same_type("inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    return solve_matrices(a, identity(a))


@custom_jvp
def _pinv_factored(u: Any, inverse_s: Any, vh: Any, a: Any) -> Any:
    """The pseudo-inverse of A, given its singular vectors and the inverses of singular values."""
    return matmul(scale_columns(adjoint(vh), inverse_s), adjoint(u))


@_pinv_factored.defjvp
def _pinv_factored_jvp(primals, tangents):
    # Golub & Pereyra: dP = -P dA P + P Pᴴ dAᴴ (I - A P) + (I - P A) dAᴴ Pᴴ P
    u, inverse_s, vh, a = primals
    da = tangents[3]
    p = _pinv_factored(u, inverse_s, vh, a)
    ph, dah = adjoint(p), adjoint(da)
    # The order of the products avoids a square matrix of the longer side.
    if a.shape[-2] >= a.shape[-1]:
        s = matmul(matmul(p, ph), dah)
        t = matmul(matmul(dah, ph), p)
        s = s - matmul(matmul(s, a), p)
        t = t - matmul(matmul(p, a), t)
        return p, s + t - matmul(matmul(p, da), p)
    s = matmul(p, matmul(ph, dah))
    t = matmul(dah, matmul(ph, p))
    s = s - matmul(s, matmul(a, p))
    t = t - matmul(p, matmul(a, t))
    return p, s + t - matmul(p, matmul(da, p))


def _pseudo_inverse(a: Array, usv: SVDResult, kept: Array) -> Array:
    """The pseudo-inverse from the singular values that are kept."""
    u, s, vh = map(stop_gradient_p.bind, usv)
    kept = stop_gradient_p.bind(kept)
    one = const(s, 1)
    inverse = choose(kept, one / choose(kept, s, one), const(s, 0))
    return _pinv_factored(u, inverse.astype(u.dtype), vh, a)


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """The Moore–Penrose pseudo-inverse.

    Args:
        a: matrices of shape [..., m, n].
        rtol: singular values up to `rtol` times the largest count as zero; one number or one for
            each matrix, 10·max(m, n) times the precision of the type by default.
        hermitian: the matrices are Hermitian, which is quicker.
        rcond: an older name of `rtol`.

    Returns:
        Matrices of shape [..., n, m].

    Raises:
        ValueError: both `rtol` and `rcond`, or fewer than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
        Array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    (a,) = _same_type("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"jnp.linalg.pinv: a must be matrices [..., m, n], got shape {a.shape}.")
    if 0 in a.shape[-2:]:
        return zeros(a.aval.update(shape=(*a.shape[:-2], a.shape[-1], a.shape[-2])))
    if hermitian:
        # The part that is not Hermitian affects neither the value nor its derivative.
        a = symmetrize("jnp.linalg.pinv", a)
    usv = svd(a, full_matrices=False, hermitian=hermitian)
    assert isinstance(usv, SVDResult)
    s = usv.S
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(dtypes.finfo(s.dtype).eps)
    cutoff = array_of("jnp.linalg.pinv", rtol).astype(s.dtype)[..., None] * s[..., :1]
    return _pseudo_inverse(a, usv, s > cutoff)


def lstsq(
    a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x of least ‖x‖ among those with the least ‖b - a · x‖.

    Args:
        a: a matrix of shape [m, n].
        b: a vector [m], or a matrix [m, k] of several.
        rcond: singular values below `rcond` times the largest count as zero; max(m, n) times the
            precision of the type by default, that precision itself if negative.
        numpy_resid: return no residuals where the rank is below n or m ≤ n, as NumPy does; this
            does not work under `jit`.

    Returns:
        The solution; the squared residuals; the rank of `a`; its singular values.

    Raises:
        TypeError: `a` is not a matrix, or `b` has more than two axes.
        IndexError: `b` is a number.
        ValueError: `a` and `b` have different lengths.

    Example:
        >>> import namoo.numpy as jnp
        >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))[0].round(3)
        Array([1., 2.], dtype=float32)
    """
    check_arraylike("jnp.linalg.lstsq", a, b)
    a, b = _same_type("lstsq", a, b)
    if not b.ndim:
        raise IndexError("jnp.linalg.lstsq: b must be a vector or a matrix, got a number.")
    if b.shape[:1] != a.shape[:1]:
        raise ValueError(
            f"jnp.linalg.lstsq: a of shape {a.shape} and b of shape {b.shape} must have the same "
            "leading length."
        )
    if a.ndim != 2:
        raise TypeError(f"jnp.linalg.lstsq: a must be one matrix, got shape {a.shape}; use vmap.")
    if b.ndim > 2:
        raise TypeError(f"jnp.linalg.lstsq: b must be a vector or a matrix, got shape {b.shape}.")
    m, n = a.shape
    right = b[:, None] if b.ndim == 1 else b
    if a.size:
        usv = svd(a, full_matrices=False)
        assert isinstance(usv, SVDResult)
        s = usv.S
        precision = float(dtypes.finfo(s.dtype).eps)
        if rcond is None:
            rcond = precision * max(m, n)
        else:
            rcond = where(array_of("lstsq", rcond) < 0, precision, rcond)
        limit = array_of("lstsq", rcond).astype(s.dtype) * s[0]
        kept = (s > const(s, 0)) & (s >= limit)
        rank = sum(kept, dtype=dtypes.default_int_dtype())
        x = matmul(_pseudo_inverse(a, usv, kept), right)
    else:
        s = EagerArray(np.empty(0, dtypes.finfo(a.dtype).dtype))
        rank = EagerArray(np.zeros((), dtypes.default_int_dtype()))
        x = zeros(right.aval.update(shape=(n, right.shape[1])))
    if numpy_resid and (rank < n or m <= n):
        residuals = EagerArray(np.empty(0, s.dtype))
    else:
        miss = right - matmul(a, x)
        squares = miss * miss.conj() if is_complex(miss) else miss * miss
        residuals = sum(real_part(squares), axis=0)
    return (x[:, 0] if b.ndim == 1 else x), residuals, rank, s


def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse of an array that maps the axes after the first `ind` to these.

    Args:
        a: an array; the product of its first `ind` lengths is that of the others.
        ind: how many axes the mapped arrays have.

    Returns:
        The array for which `tensordot(tensorinv(a, ind), b, ind)` solves the system of `a`.

    Raises:
        ValueError: `ind` is not positive, or the products differ.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
        (6, 2, 3)
    """
    a = array_of("jnp.linalg.tensorinv", a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be a positive integer, got {ind=}.")
    result, domain = a.shape[:ind], a.shape[ind:]
    if math.prod(result) != math.prod(domain):
        raise ValueError(
            f"tensorinv: the product of the first ind={ind} lengths must be that of the others, "
            f"got shape {a.shape}."
        )
    inverse = inv(reshape(a, (math.prod(result), math.prod(domain))))
    return reshape(inverse, (*domain, *result))


def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b.

    Args:
        a: an array of shape b.shape + x.shape, after moving `axes` to the end.
        b: the right side.
        axes: axes of `a` to be moved to the end first.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.tensorsolve(jnp.eye(6).reshape(2, 3, 6), jnp.ones((2, 3)))
        Array([1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    check_arraylike("jnp.linalg.tensorsolve", a, b)
    a, b = promote_inexact("jnp.linalg.tensorsolve", a)[0], array_of("tensorsolve", b)
    if axes is not None:
        moved = [canonical_axis(axis, a.ndim) for axis in axes]
        a = transpose(a, [*(i for i in range(a.ndim) if i not in moved), *moved])
    if a.shape[: b.ndim] != b.shape:
        raise ValueError(
            f"tensorsolve: the leading shape of a must be that of b, got shapes {a.shape} (after "
            f"moving axes) and {b.shape}."
        )
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size:
        raise ValueError(
            f"tensorsolve: a must map arrays of {b.size} elements to as many, got shape {a.shape} "
            f"for b of shape {b.shape}."
        )
    x = solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,)))
    return reshape(x, shape)


attach_shortcuts(globals())
