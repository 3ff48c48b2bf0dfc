"""Linear systems: triangular and tridiagonal solves, and the Cholesky and LU factorisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Zero, is_linear, is_zero
from namoo.primitives.elementwise import add, div, eq, full_like, mul, neg, select, sub
from namoo.primitives.families import add_any
from namoo.primitives.linalg import blocked
from namoo.primitives.linalg.matrices import (
    MatrixPrimitive,
    along_columns,
    blas,
    canonical,
    check_square,
    conjugate,
    has_scipy,
    identity,
    in_single,
    is_complex,
    lapack,
    matmul,
    mT,
    nan_where_failed,
    symmetrize,
    take_rows,
    tril,
    triu,
)
from namoo.primitives.shape import (
    broadcast_in_dim,
    expand_dims,
    moveaxis,
    reduce_sum,
    reshape,
    shape_of,
    squeeze,
    zeros,
)
from namoo.primitives.slicing import pad, slice_in_dim

LARGE = 768
"""A single matrix of at least this size is factorised in blocks."""

__all__ = [
    "cholesky", "cholesky_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]  # fmt: skip


SMALL = 32
"""Up to this size, compiled programs compute the matrices of a stack as eager mode does."""


def _is_small(batch: Sequence[int], *matrices: np.ndarray) -> bool:
    """Whether these are stacks of small matrices, which are computed all at once."""
    return math.prod(batch) > 1 and max(max(x.shape[-2:]) for x in matrices) <= SMALL


class TriangularSolve(MatrixPrimitive):
    """The X with op(A) X = B, or X op(A) = B, for a triangular matrix A."""

    name = "triangular_solve"
    ranks = (2, 2)
    stacks = True

    def results(self, a, b, *, left_side, **params):
        n = check_square(f"the first argument of {self.name}", a.shape)
        if b.shape[0 if left_side else 1] != n:
            raise ValueError(
                f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}. "
                f"With left_side={left_side}, b must have {n} {'rows' if left_side else 'columns'}."
            )
        return [b]

    def compute(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if conjugate_a and not transpose_a:
            a, conjugate_a = np.conj(a), False
        batch = a.shape[:-2]
        flags = (left_side, lower, transpose_a, conjugate_a, unit_diagonal)
        if _is_small(batch, a, b) or not has_scipy():
            return [_substitute(a, b, *flags)]
        if not batch:
            return [one_triangular_solve(a, b, *flags)]
        out = np.empty(b.shape, b.dtype)
        for index in np.ndindex(batch):
            out[index] = one_triangular_solve(a[index], b[index], *flags)
        return [out]

    def by_lapack(self, emit, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        # BLAS reads row-major matrices as their transposes, so X is on the other side.
        if conjugate_a and not transpose_a:
            (a,) = emit.apply(lambda a: [conjugate(a)], a)
        letters = [
            "R" if left_side else "L",
            "U" if lower else "L",
            "N" if not transpose_a else "C" if conjugate_a else "T",
            "U" if unit_diagonal else "N",
        ]
        n, many = a.shape[-1], b.shape[-1 if left_side else -2]
        parts = math.gcd(many, 16) if len(a.shape) == 2 and many * n >= LARGE**2 // 4 else 1
        if parts > 1:  # threads share the right-hand sides
            (b,) = emit.apply(lambda b: [blocked.in_parts(b, left_side, parts)], b)
        m, k = b.shape[-2:]
        x, _ = emit.lapack(
            "trsm",
            a,
            b,
            result=[((m, k), b.dtype)],
            arguments=[*letters, k, m, 1.0, ("in", 0), n, ("out", 0), k],
            copies={1: 0},
            cost=n * m * k,
            fixed=[0] if parts > 1 else [],
        )
        return emit.apply(lambda x: [blocked.joined(x, left_side)], x) if parts > 1 else [x]

    @in_single
    def stablehlo(self, hlo, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if conjugate_a and not transpose_a:
            a = hlo.apply(conjugate, a)
        word = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
        if hlo.platform == "cpu":
            return hlo.lapack(
                "trsm",
                a,
                b,
                result=[b],
                ok=None,
                side="L" if left_side else "R",
                uplo="L" if lower else "U",
                trans_x={"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}[word],
                diag="U" if unit_diagonal else "N",
            )
        out = hlo.op(
            "triangular_solve",
            a,
            b,
            result=b,
            left_side=left_side,
            lower=lower,
            unit_diagonal=unit_diagonal,
            transpose_a=f"#stablehlo<transpose {word}>",
        )
        return [out]

    def jvp(self, primals, tangents, **params):
        (a, b), (da, db) = primals, tangents
        x = self.bind(a, b, **params)
        total = db
        if not is_zero(da):
            total = add_any(total, neg(self._multiply(da, x, **params)))
        return x, self.bind(a, total, **params)

    def _multiply(self, a, x, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        """op(A) X or X op(A), of the triangle of A that the solution depends on."""
        a = tril(a, -unit_diagonal) if lower else triu(a, unit_diagonal)
        a = mT(a) if transpose_a else a
        a = conjugate(a) if conjugate_a else a
        return matmul(a, x) if left_side else matmul(x, a)

    def transpose(self, ct, a, b, *, transpose_a, **params):
        assert not is_linear(a), "the solution is linear in b alone"
        return [None, self.bind(a, ct, transpose_a=not transpose_a, **params)]

    def batch(self, xs, dims, **params):
        (a, b), (da, db) = xs, dims
        if da is not None or db is None:
            return super().batch(xs, dims, **params)
        # One matrix for all examples: they become columns (or rows) of one right-hand side.
        place = len(shape_of(b)) - (2 if params["left_side"] else 3)
        joined = moveaxis(b, db, place)
        shape = shape_of(joined)
        merged = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
        return reshape(self.bind(a, reshape(joined, merged), **params), shape), place


def one_triangular_solve(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """One triangular solve with BLAS, which reads C-ordered matrices as their transposes."""
    trans = 0 if not transpose_a else 2 if conjugate_a else 1
    return blas("trsm", b.dtype)(
        1.0,
        a.T,
        b.T,
        side=int(left_side),
        lower=int(not lower),
        trans_a=trans,
        diag=int(unit_diagonal),
    ).T


def _substitute(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """Triangular solves of many small systems at once, row by row."""
    if transpose_a:
        a, lower = np.swapaxes(a, -1, -2), not lower
        a = np.conj(a) if conjugate_a else a
    if not left_side:
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    x, n = np.array(b), a.shape[-1]
    for i in range(n) if lower else reversed(range(n)):
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
        rest = slice(i + 1, None) if lower else slice(0, i)
        x[..., rest, :] -= a[..., rest, i, None] * x[..., i, None, :]
    return x if left_side else np.swapaxes(x, -1, -2)


triangular_solve_p = TriangularSolve()


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve op(A) X = B (`left_side`) or X op(A) = B for a triangular matrix A.

    Args:
        a: matrices of shape [..., n, n]; only the triangle selected by `lower` is read.
        b: matrices of shape [..., n, k] with `left_side`, else [..., k, n]; or vectors [..., n].
        left_side: whether op(A) is to the left of X.
        lower: whether A is lower triangular.
        transpose_a: whether op(A) transposes A.
        conjugate_a: whether op(A) conjugates A.
        unit_diagonal: whether the diagonal of A counts as ones and is not read.

    Returns:
        X, of the shape and type of `b`.

    Raises:
        TypeError: an operand has too few axes, an integer type, or the types differ.
        ValueError: A is not square, or the shapes do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
        >>> triangular_solve(a, jnp.array([2.0, 9.0]), left_side=True, lower=True)
        Array([1., 2.], dtype=float32)
    """
    params = {
        "left_side": bool(left_side),
        "lower": bool(lower),
        "transpose_a": bool(transpose_a),
        "conjugate_a": bool(conjugate_a) and is_complex(a),
        "unit_diagonal": bool(unit_diagonal),
    }
    ndim = len(shape_of(b))
    if ndim and ndim == len(shape_of(a)) - 1:
        axis = ndim if left_side else ndim - 1
        out = triangular_solve_p.bind(a, expand_dims(b, (axis,)), **params)
        return squeeze(out, (axis,))
    return triangular_solve_p.bind(a, b, **params)


class Cholesky(MatrixPrimitive):
    """The lower triangular L with L Lᴴ = A; only the lower triangle of A is read."""

    name = "cholesky"
    stacks = True

    def results(self, a):
        check_square(self.name, a.shape)
        return [a]

    def compute(self, a):
        return [np.linalg.cholesky(a)]

    def failed(self, aval):
        return np.tril(super().failed(aval))

    def by_lapack(self, emit, a):
        n = a.shape[-1]
        if n >= LARGE and len(a.shape) == 2:
            return emit.apply(
                lambda a: [blocked.cholesky_by_columns(a, self.bind, triangular_solve)], a
            )
        # LAPACK reads the transpose, whose upper triangle is our lower one.
        factor, info = emit.lapack(
            "potrf",
            a,
            result=[((n, n), a.dtype)],
            arguments=["U", n, ("out", 0), n, ("out", 1)],
            copies={0: 0},
            cost=n**3 // 3,
        )
        return emit.apply(
            lambda factor, info: [tril(*nan_where_failed(info, factor))], factor, info
        )

    @in_single
    def stablehlo(self, hlo, a):
        if hlo.platform == "cpu":
            (factor,) = hlo.lapack("potrf", a, result=[a], uplo="L")
        else:
            factor = hlo.op("cholesky", a, result=a, lower=True)
        return [hlo.apply(tril, factor)]

    def jvp(self, primals, tangents):
        # L⁻¹ dA L⁻ᴴ is Hermitian; its lower half, with half of the diagonal, is L⁻¹ dL.
        (a,), (da,) = primals, tangents
        factor = self.bind(a)
        solved = triangular_solve(
            factor, da, left_side=False, lower=True, transpose_a=True, conjugate_a=True
        )
        solved = triangular_solve(factor, solved, left_side=True, lower=True)
        weights = add(identity(solved), full_like(solved, 1))
        return factor, matmul(factor, div(tril(solved), weights))


cholesky_p = Cholesky()


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The Cholesky factor of positive definite matrices: the lower triangular L with x = L Lᴴ.

    Args:
        x: matrices of shape [..., n, n].
        symmetrize_input: factorise (x + xᴴ)/2; otherwise only the lower triangle is read.

    Returns:
        L; NaN in the lower triangle for matrices that are not positive definite.

    Raises:
        TypeError: the matrices are not square, with `symmetrize_input`.
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = canonical(x)
    return cholesky_p.bind(symmetrize("cholesky", x) if symmetrize_input else x)


class LU(MatrixPrimitive):
    """P A = L U: both factors in one matrix, the row exchanges as pivots and as a permutation."""

    name = "lu"
    multiple_results = True
    stacks = True

    def results(self, a):
        m, n = a.shape
        index = np.dtype(np.int32)
        return [a, ShapedArray((min(m, n),), index), ShapedArray((m,), index)]

    def compute(self, a):
        *batch, m, n = a.shape
        if _is_small(batch, a) or not has_scipy():
            return _factorise_together(a)
        factors = np.empty(a.shape, a.dtype)
        pivots = np.empty((*batch, min(m, n)), np.int32)
        if a.size:
            factorise = lapack("getrf", a.dtype)
            for index in np.ndindex(*batch):
                factors[index], pivots[index], _ = factorise(a[index])
        return [factors, pivots, _permutation(pivots, m)]

    def by_lapack(self, emit, a):
        m, n = a.shape[-2:]
        if m >= n >= LARGE and len(a.shape) == 2:
            return emit.apply(lambda a: blocked.lu_by_halves(a, self.bind, triangular_solve), a)
        (columns,) = emit.apply(lambda a: [mT(a)], a)
        factors, pivots, _ = emit.lapack(
            "getrf",
            columns,
            result=[((n, m), a.dtype), ((min(m, n),), np.int32)],
            arguments=[m, n, ("out", 0), m, ("out", 1), ("out", 2)],
            copies={0: 0},
            cost=m * n * min(m, n),
        )

        def finish(factors, pivots):
            pivots = sub(pivots, full_like(pivots, 1))  # LAPACK counts from 1
            return [mT(factors), pivots, lu_pivots_to_permutation(pivots, m)]

        return emit.apply(finish, factors, pivots)

    @in_single
    def stablehlo(self, hlo, a):
        factors, pivots = hlo.lapack("getrf", a, result=[a, hlo.avals[1]], ok="GE")
        # LAPACK counts from 1.
        pivots = hlo.combine("subtract", pivots, hlo.constant(1, np.int32, pivots.shape))
        rows = a.shape[-2]
        order = hlo.apply(lambda pivots: lu_pivots_to_permutation(pivots, rows), pivots)
        return [factors, pivots, order]

    def jvp(self, primals, tangents):
        # With X = L⁻¹ P dA U⁻¹: dL = L·tril(X, -1) and dU = triu(X)·U.  L and U are completed to
        # square matrices with ones, so that wide and tall matrices follow the same formula.
        (a,), (da,) = primals, tangents
        factors, pivots, permutation = self.bind(a)
        m, n = shape_of(a)[-2:]
        lower = tril(_resize(factors, m, m), -1)
        lower = add(lower, identity(lower))
        upper = triu(_resize(factors, n, n))
        if n > m:
            tail = _resize(identity(upper), n - m, n - m)
            upper = add(upper, _pad_matrix(tail, (m, 0), (m, 0)))
        x = triangular_solve(
            lower, take_rows(da, permutation), left_side=True, lower=True, unit_diagonal=True
        )
        x = triangular_solve(upper, x, left_side=False, lower=False)
        tangent = add(matmul(lower, tril(x, -1)), matmul(triu(x), upper))
        return [factors, pivots, permutation], [tangent, Zero.of(pivots), Zero.of(permutation)]


def _factorise_together(a: np.ndarray) -> list[np.ndarray]:
    """The LU factors of many small matrices at once, column by column."""
    *batch, m, n = a.shape
    x: Any = np.array(a).reshape(math.prod(batch), m, n)
    every = np.arange(len(x))
    pivots = np.empty((len(x), min(m, n)), np.int32)
    order = np.tile(np.arange(m, dtype=np.int32), (len(x), 1))
    for i in range(min(m, n)):
        column = x[:, i:, i]
        # LAPACK compares complex numbers by |Re| + |Im|.
        size = abs(column.real) + abs(column.imag) if x.dtype.kind == "c" else abs(column)
        chosen = i + size.argmax(1)
        for rows in (x, order):
            top = rows[:, i].copy()
            rows[:, i] = rows[every, chosen]
            rows[every, chosen] = top
        pivots[:, i] = chosen
        pivot = x[:, i, i]
        x[:, i + 1 :, i] /= np.where(pivot == 0, 1, pivot)[:, None]
        x[:, i + 1 :, i + 1 :] -= x[:, i + 1 :, i, None] * x[:, i, None, i + 1 :]
    return [x.reshape(a.shape), pivots.reshape(*batch, min(m, n)), order.reshape(*batch, m)]


def _pad_matrix(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Add zeros around each matrix; negative numbers crop."""
    config = [(0, 0, 0)] * (len(shape_of(x)) - 2) + [(*rows, 0), (*columns, 0)]
    return pad(x, full_like(x, 0), config)


def _resize(x: Any, rows: int, columns: int) -> Any:
    """The upper left part of each matrix, or the matrix with zeros to the right and below."""
    m, n = shape_of(x)[-2:]
    return _pad_matrix(x, (0, rows - m), (0, columns - n))


def _permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """The order of rows after exchanging row i with row pivots[i], for i = 0, 1, …"""
    *batch, count = pivots.shape
    orders = []
    for exchanges in pivots.reshape(math.prod(batch), count).clip(0, size - 1).tolist():
        order = list(range(size))
        for i, other in enumerate(exchanges):
            order[i], order[other] = order[other], order[i]
        orders.append(order)
    return np.array(orders, np.int32).reshape(*batch, size)


lu_p = LU()


def lu(x: Any) -> list[Any]:
    """LU factorisation with partial pivoting, P x = L U.

    Args:
        x: matrices of shape [..., m, n].

    Returns:
        `[lu, pivots, permutation]`: U in the upper triangle and L, without its diagonal of ones, in
        the lower; int32 row exchanges [..., min(m, n)]; and the rows in their new order [..., m].

    Raises:
        TypeError: `x` has fewer than two axes or an integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[0]
        Array([[2. , 2. ],
               [0.5, 1. ]], dtype=float32)
    """
    return lu_p.bind(x)


class PivotsToPermutation(MatrixPrimitive):
    """The permutation of a sequence of row exchanges."""

    name = "lu_pivots_to_permutation"
    ranks = (1,)
    dtypes = (np.int32,)
    stacks = True

    def results(self, pivots, *, permutation_size):
        if permutation_size < pivots.shape[0]:
            raise ValueError(
                f"lu_pivots_to_permutation: permutation_size {permutation_size} must not be less "
                f"than the number of pivots, {pivots.shape[0]}."
            )
        return [pivots.update(shape=(permutation_size,))]

    def compute(self, pivots, *, permutation_size):
        return [_permutation(pivots, permutation_size)]

    def stablehlo(self, hlo, pivots, *, permutation_size):
        shape = hlo.avals[0].shape
        places = hlo.iota(shape, np.int32, len(shape) - 1)
        if not pivots.shape[-1]:
            return places
        count = hlo.constant(pivots.shape[-1], np.int32)

        def swapped(i, order):
            own = hlo.broadcast(i, shape)
            column = [*[hlo.constant(0, np.int32)] * (pivots.ndim - 1), i]
            other = hlo.dynamic_slice(pivots, column, (*pivots.shape[:-1], 1))
            other = hlo.broadcast(other, shape, range(pivots.ndim))
            order = hlo.apply(_exchange, order, places, own, other)
            return hlo.combine("add", i, hlo.constant(1, np.int32)), order

        start = hlo.constant(0, np.int32)
        loop = hlo.while_loop(
            [start, places], lambda i, order: hlo.compare(i, count, "LT"), swapped
        )
        return loop[1]


def _exchange(order: Any, places: Any, i: Any, j: Any) -> Any:
    """`order` with the elements i and j along the last axis exchanged."""
    axis, zero = len(shape_of(order)) - 1, zeros(aval_of(order))

    def at(place):
        found = reduce_sum(select(eq(places, place), order, zero), (axis,))
        return broadcast_in_dim(found, shape_of(order), range(axis))

    return select(eq(places, i), at(j), select(eq(places, j), at(i), order))


lu_pivots_to_permutation_p = PivotsToPermutation()


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The order of rows after the exchanges of `lu`: row i with row pivots[i], for i = 0, 1, …

    Example:
        >>> import namoo.numpy as jnp
        >>> lu_pivots_to_permutation(jnp.array([2, 2], dtype=jnp.int32), 3)
        Array([2, 0, 1], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=permutation_size)


def solve(a: Any, b: Any) -> Any:
    """The X with A X = B, of stacks of square matrices A and of matrices B."""
    factors, _, permutation = lu(a)
    x = triangular_solve(
        factors, take_rows(b, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    return triangular_solve(factors, x, left_side=True, lower=False)


class TridiagonalSolve(MatrixPrimitive):
    """The X with A X = B for a tridiagonal matrix A, given by its diagonals."""

    name = "tridiagonal_solve"
    ranks = (1, 1, 1, 2)

    def results(self, dl, d, du, b, *, perturb_singular):
        if not dl.shape == d.shape == du.shape:
            raise TypeError(
                "tridiagonal_solve requires that all diagonal arguments have the same shape, got "
                f"{dl.shape}, {d.shape} and {du.shape}: dl[0] and du[-1] are not read."
            )
        if b.shape[:1] != d.shape:
            raise TypeError(
                f"tridiagonal_solve requires that b has as many rows as d has elements, got shapes "
                f"{b.shape} and {d.shape}."
            )
        return [b]

    def compute(self, dl, d, du, b, *, perturb_singular):
        # LAPACK's wrapper requires at least three rows; rows of the identity change nothing.
        n, extra = d.shape[0], max(0, 3 - d.shape[0])
        coupling = np.zeros(extra, d.dtype)
        factors = lapack("gttrf", d.dtype)(
            np.concatenate([dl[1:], coupling]),
            np.concatenate([d, np.ones(extra, d.dtype)]),
            np.concatenate([du[: n - 1], coupling]),
        )
        lower, pivots, upper, upper2, exchanges, singular = factors
        if singular and not perturb_singular:
            raise np.linalg.LinAlgError("singular matrix")
        if singular or perturb_singular:
            limits = np.finfo(d.dtype)
            parts = (pivots[:n], upper[: n - 1], upper2[: max(0, n - 2)])
            largest = max(np.abs(part).max(initial=0) for part in parts)
            tiny = np.abs(pivots) < limits.tiny
            pivots = np.where(tiny, max(limits.eps * largest, limits.tiny), pivots)
        right = np.concatenate([b, np.zeros((extra, b.shape[1]), b.dtype)])
        x, _ = lapack("gttrs", d.dtype)(
            lower, pivots.astype(d.dtype), upper, upper2, exchanges, right
        )
        return [x[:n]]

    def by_lapack(self, emit, dl, d, du, b, *, perturb_singular):
        if perturb_singular:
            raise emit.unsupported()
        n, k = b.shape[-2:]

        def by_columns(dl, d, du, b):
            # LAPACK has no elements for the free ends of the diagonals beside the main one.
            return [expand_dims(d, (-2,)), _ends(dl, 1, n), _ends(du, 0, n - 1), mT(b)]

        *_, x, info = emit.lapack(
            "gtsv",
            *emit.apply(by_columns, dl, d, du, b),
            result=[((1, n), d.dtype), *[((max(n - 1, 1),), d.dtype)] * 2, ((k, n), d.dtype)],
            arguments=[
                n, k, ("out", 1), ("out", 0), ("out", 2), ("out", 3), max(n, 1), ("out", 4)
            ],
            copies={0: 0, 1: 1, 2: 2, 3: 3},
            cost=8 * n * (k + 1),
        )  # fmt: skip
        return emit.apply(lambda x, info: nan_where_failed(info, mT(x)), x, info)

    @in_single
    def stablehlo(self, hlo, dl, d, du, b, *, perturb_singular):
        if perturb_singular:
            raise hlo.on_the_host()
        return hlo.lapack("gtsv", dl, d, du, b, result=[dl, d, du, b])[3:]

    def jvp(self, primals, tangents, **params):
        *diagonals, b = primals
        x = self.bind(*primals, **params)
        columns = shape_of(x)[-1]
        neighbours = (_shift_rows(x, 1), x, _shift_rows(x, -1))
        total = tangents[3]
        for t, neighbour in zip(tangents[:3], neighbours, strict=True):
            if not is_zero(t):
                total = add_any(total, neg(mul(along_columns(t, columns), neighbour)))
        return x, self.bind(*diagonals, total, **params)

    def transpose(self, ct, dl, d, du, b, **params):
        assert is_linear(b) and not any(map(is_linear, (dl, d, du))), "linear in b alone"
        return [None, None, None, self.bind(_shift(du, 1), d, _shift(dl, -1), ct, **params)]


def _ends(x: Any, start: int, stop: int) -> Any:
    """Some elements of the last axis; of a single one, itself."""
    return x if shape_of(x)[-1] == 1 else slice_in_dim(x, start, stop, axis=-1)


def _shift(x: Any, by: int) -> Any:
    """The last axis shifted by one, with a zero at the free end."""
    config = [(0, 0, 0)] * (len(shape_of(x)) - 1) + [(by, -by, 0)]
    return pad(x, full_like(x, 0), config)


def _shift_rows(x: Any, by: int) -> Any:
    return _pad_matrix(x, (by, -by), (0, 0)) if shape_of(x)[-2] else x


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """Solve A X = B for a tridiagonal matrix A.

    Args:
        dl: the diagonal below the main one, [..., n]: `dl[i]` is A[i, i-1]; `dl[0]` is not read.
        d: the main diagonal, [..., n].
        du: the diagonal above, [..., n]: `du[i]` is A[i, i+1]; `du[n-1]` is not read.
        b: the right-hand side, [..., n, k].
        perturb_singular: replace zero pivots by small numbers, for a finite result; otherwise the
          result of a singular system is NaN.

    Returns:
        X, of the shape and type of `b`.

    Raises:
        TypeError: the shapes or types do not fit together.

    Example:
        >>> import namoo.numpy as jnp
        >>> ones = jnp.ones(3)
        >>> x = tridiagonal_solve(ones, 2 * ones, ones, jnp.array([[4.0], [8.0], [8.0]]))
        >>> x.ravel().round(4)
        Array([1., 2., 3.], dtype=float32)
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))
