"""QR decomposition, and the Householder reflectors it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Zero
from namoo.primitives.elementwise import (
    add,
    complex,
    full_like,
    imag,
    mul,
    sub,
)
from namoo.primitives.linalg.matrices import (
    MatrixPrimitive,
    adjoint,
    columns,
    has_scipy,
    identity,
    in_single,
    is_complex,
    lapack,
    matmul,
    mT,
    rows,
    scipy_linalg,
    take_rows,
    tril,
    triu,
)
from namoo.primitives.linalg.systems import is_small_stack, solve, triangular_solve
from namoo.primitives.shape import shape_of, zeros
from namoo.primitives.slicing import concatenate

__all__ = ["householder_product", "householder_product_p", "ormqr", "ormqr_p", "qr", "qr_p"]


class QR(MatrixPrimitive):
    """A = Q R with unitary Q and upper triangular R; with pivoting, A's columns are sorted."""

    name = "qr"
    multiple_results = True
    stacks = True

    def results(self, a, *, pivoting, full_matrices, use_magma):
        m, n = a.shape
        k = m if full_matrices else min(m, n)
        outs = [a.update(shape=(m, k)), a.update(shape=(k, n))]
        return [*outs, ShapedArray((n,), np.dtype(np.int32))] if pivoting else outs

    def in_stacks(self, *, pivoting, **params):
        return not pivoting

    def compute(self, a, *, pivoting, full_matrices, use_magma):
        if pivoting:
            mode = "full" if full_matrices else "economic"
            return scipy_linalg().qr(a, mode=mode, pivoting=True, check_finite=False)
        batch = a.shape[:-2]
        if not a.size or is_small_stack(batch, a) or not has_scipy():
            return np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        outs = [np.empty((*batch, *shape), a.dtype) for shape in _shapes(a, full_matrices)]
        for index in np.ndindex(batch):
            for out, one in zip(outs, _one_qr(a[index], full_matrices), strict=True):
                out[index] = one
        return outs

    def by_lapack(self, emit, a, *, pivoting, full_matrices, use_magma):
        m, n = a.shape[-2:]
        if not pivoting:
            packed, taus = _reflectors(emit, a)
            return emit.apply(lambda p, t: _unpacked(p, t, full_matrices), packed, taus)
        by_columns, free = emit.apply(
            lambda a: [mT(a), zeros(ShapedArray((*shape_of(a)[:-2], n), np.dtype(np.int32)))], a
        )
        more = [("real", 2 * n)] if a.dtype.kind == "c" else []
        length = 64 * (n + 1) + 2 * n
        packed, order, taus, _ = emit.lapack(
            "geqp3",
            by_columns,
            free,
            result=[((n, m), a.dtype), ((n,), np.int32), ((min(m, n),), a.dtype)],
            arguments=[
                m, n, ("out", 0), m, ("out", 1), ("out", 2), ("work", length), length, *more,
                ("out", 3),
            ],
            copies={0: 0, 1: 1},
            cost=2 * m * n * min(m, n),
        )  # fmt: skip

        def finish(packed, order, taus):
            q, r = _unpacked(mT(packed), taus, full_matrices)
            return [q, r, sub(order, full_like(order, 1))]

        return emit.apply(finish, packed, order, taus)

    @in_single
    def stablehlo(self, hlo, a, *, pivoting, full_matrices, use_magma):
        taus = ((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
        if not pivoting:
            packed, taus = hlo.lapack("geqrf", a, result=[a, taus], ok=None)
            return hlo.apply(lambda p, t: _unpacked(p, t, full_matrices), packed, taus)
        free = hlo.constant(0, np.int32, hlo.avals[2].shape)
        packed, order, taus = hlo.lapack("geqp3", a, free, result=[a, free, taus], ok=None)
        order = hlo.combine("subtract", order, hlo.constant(1, np.int32, order.shape))
        q, r = hlo.apply(lambda p, t: _unpacked(p, t, full_matrices), packed, taus)
        return [q, r, order]

    def jvp(self, primals, tangents, *, pivoting, full_matrices, use_magma):
        (a,), (da,) = primals, tangents
        outs = self.bind(a, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
        q, r = outs[:2]
        if pivoting:
            da = mT(take_rows(mT(da), outs[2]))
        dq, dr = _qr_tangents(q, r, da)
        return outs, [dq, dr, *(Zero.of(p) for p in outs[2:])]


def _shapes(a: Any, full_matrices: bool) -> list[tuple[int, int]]:
    m, n = a.shape[-2:]
    k = m if full_matrices else min(m, n)
    return [(m, k), (k, n)]


def _one_qr(a: np.ndarray, full_matrices: bool) -> list[np.ndarray]:
    """Q and R of one matrix, with the calls of LAPACK that compiled programs make."""
    packed, taus = _one_geqrf(a)
    (m, k), _ = _shapes(a, full_matrices)
    reflectors = np.zeros((m, k), a.dtype, order="F")
    reflectors[:, : packed.shape[1]] = packed[:, :k]
    return [_one_product(reflectors, taus), np.triu(packed[:k])]


def _one_geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with the reflectors below it, and their factors τ, in the precision of the matrix.

    NumPy's function is always in double precision.
    """
    packed, taus, _, _ = lapack("geqrf", a.dtype)(a, lwork=64 * a.shape[1])
    return packed, taus


def _one_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    return lapack(name, a.dtype)(a, taus, lwork=64 * a.shape[1])[0]


def _reflectors(emit: Any, a: Any) -> list[Any]:
    """R with the reflectors below it, and their factors τ, by LAPACK."""
    m, n = a.shape[-2:]
    (by_columns,) = emit.apply(lambda a: [mT(a)], a)
    packed, taus, _ = emit.lapack(
        "geqrf",
        by_columns,
        result=[((n, m), a.dtype), ((min(m, n),), a.dtype)],
        arguments=[m, n, ("out", 0), m, ("out", 1), ("work", 64 * n), 64 * n, ("out", 2)],
        copies={0: 0},
        cost=2 * m * n * min(m, n),
    )
    return [*emit.apply(lambda packed: [mT(packed)], packed), taus]


def _unpacked(packed: Any, taus: Any, full_matrices: bool) -> list[Any]:
    """Compute Q and R from reflectors in LAPACK's packed form."""
    m, n = shape_of(packed)[-2:]
    k = m if full_matrices else min(m, n)
    reflectors = columns(packed, 0, min(k, n))
    if k > n:
        more = aval_of(packed).update(shape=(*shape_of(packed)[:-1], k - n))
        reflectors = concatenate([reflectors, zeros(more)], len(shape_of(packed)) - 1)
    return [householder_product(reflectors, taus), triu(rows(packed, 0, k))]


qr_p = QR()


def _qr_tangents(q: Any, r: Any, da: Any) -> tuple[Any, Any]:
    """The tangents of Q (m × m or m × min(m, n)) and R (as many rows) for the tangent of A."""
    m, n = shape_of(da)[-2:]
    axis = len(shape_of(da)) - 1
    if m < n:
        # The first m columns determine Q; the others are Q times the rest of R.
        dq, first = _thin_qr_tangents(q, columns(r, 0, m), columns(da, 0, m))
        rest = matmul(adjoint(q), sub(columns(da, m, n), matmul(dq, columns(r, m, n))))
        return dq, concatenate([first, rest], axis)
    if shape_of(q)[-1] == n:
        return _thin_qr_tangents(q, r, da)
    thin, rest = columns(q, 0, n), columns(q, n, m)
    dthin, dr = _thin_qr_tangents(thin, rows(r, 0, n), da)
    dq = concatenate([dthin, _complement_tangent(thin, rest, dthin)], axis)
    return dq, concatenate([dr, zeros(aval_of(rows(r, n, m)))], axis - 1)


def _thin_qr_tangents(q, r, da):
    # Qᴴ dA R⁻¹ = Qᴴ dQ + dR R⁻¹: an anti-Hermitian matrix plus an upper triangular one whose
    # diagonal is real, since R's stays real.
    scaled = triangular_solve(r, da, left_side=False, lower=False)
    c = matmul(adjoint(q), scaled)
    below = tril(c, -1)
    turn = sub(below, adjoint(below))
    if is_complex(c):
        phase = imag(c)
        turn = add(turn, mul(identity(c), complex(full_like(phase, 0), phase)))
    rest = sub(c, turn)
    return sub(scaled, matmul(q, rest)), matmul(rest, r)


def _complement_tangent(q1, q2, dq1):
    """The tangent of the columns that complete Q₁ to a square matrix.

    Householder's Q is I + V U V₁⁻ᴴ Vᴴ with V = [V₁; V₂] lower triangular.  With E₁ = [I; 0], its
    first columns are Q₁ = E₁ + V U, and the others Q₂ = E₂ + (Q₁ - E₁) Pᴴ, P = V₂ V₁⁻¹.  From
    the upper and lower parts of Q₁, A and B: P = B (A - I)⁻¹ and dP (A - I) = dB - P dA.  And
    (Q₁ - E₁) (A - I)⁻ᴴ = -(Q₁ + Q₂ P), because Q is unitary.
    """
    m, n = shape_of(q1)[-2:]
    top, bottom = rows(q1, 0, n), rows(q1, n, m)
    p = mT(solve(mT(sub(top, identity(top))), mT(bottom)))
    change = sub(rows(dq1, n, m), matmul(p, rows(dq1, 0, n)))
    return sub(matmul(dq1, adjoint(p)), matmul(add(q1, matmul(q2, p)), adjoint(change)))


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> Any:
    """QR decomposition, x = Q R with unitary Q and upper triangular R.

    Args:
        x: matrices of shape [..., m, n].
        pivoting: sort the columns so that the diagonal of R does not increase: x[:, p] = Q R.
        full_matrices: Q of shape [..., m, m] and R [..., m, n]; otherwise [..., m, min(m, n)] and
          [..., min(m, n), n].
        use_magma: which library computes it on a GPU; it has no effect here.

    Returns:
        `(q, r)`, or `(q, r, p)` with pivoting.

    Raises:
        TypeError: `x` has fewer than two axes or an integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> q, r = qr(jnp.array([[3.0, 1.0], [4.0, 3.0]]))
        >>> (q @ r).round(4)
        Array([[3., 1.],
               [4., 3.]], dtype=float32)
    """
    params = {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices)}
    return tuple(qr_p.bind(x, **params, use_magma=use_magma))


class Geqrf(MatrixPrimitive):
    """QR in LAPACK's packed form: Householder reflectors below R, and their factors τ."""

    name = "geqrf"
    multiple_results = True
    stacks = True

    def results(self, a):
        return [a, a.update(shape=(min(a.shape),))]

    def compute(self, a):
        batch = a.shape[:-2]
        if not a.size or is_small_stack(batch, a) or not has_scipy():
            packed, taus = np.linalg.qr(a, mode="raw")
            return [np.swapaxes(packed, -1, -2), taus]
        packed = np.empty(a.shape, a.dtype)
        taus = np.empty((*batch, min(a.shape[-2:])), a.dtype)
        for index in np.ndindex(batch):
            packed[index], taus[index] = _one_geqrf(a[index])
        return [packed, taus]

    def by_lapack(self, emit, a):
        return _reflectors(emit, a)

    @in_single
    def stablehlo(self, hlo, a):
        taus = ((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
        return hlo.lapack("geqrf", a, result=[a, taus], ok=None)


geqrf_p = Geqrf()


def geqrf(a: Any) -> tuple[Any, Any]:
    """QR decomposition in factored form, for `householder_product` and `ormqr`.

    Args:
        a: matrices of shape [..., m, n].

    Returns:
        `(a, taus)`: R in the upper triangle and the reflectors below it; and their factors, of
        shape [..., min(m, n)].
    """
    packed, taus = geqrf_p.bind(a)
    return packed, taus


class HouseholderProduct(MatrixPrimitive):
    """The first columns of the product of Householder reflectors."""

    name = "householder_product"
    ranks = (2, 1)

    def results(self, a, taus):
        m, n = a.shape
        if m < n:
            raise ValueError(
                "The first argument to householder_product must have at least as many rows as "
                f"columns, got shape {a.shape}."
            )
        if taus.shape[0] > n:
            raise ValueError(
                f"The second argument to householder_product must not have more than {n} elements, "
                f"the number of columns of the first, got shape {taus.shape}."
            )
        return [a]

    def compute(self, a, taus):
        return [_one_product(a, taus)]

    def by_lapack(self, emit, a, taus):
        (m, n), k = a.shape[-2:], taus.shape[-1]
        (by_columns,) = emit.apply(lambda a: [mT(a)], a)
        q, _ = emit.lapack(
            "ungqr" if a.dtype.kind == "c" else "orgqr",
            by_columns,
            taus,
            result=[((n, m), a.dtype)],
            arguments=[
                m, n, k, ("out", 0), m, ("in", 1), ("work", 64 * n), 64 * n, ("out", 1),
            ],
            copies={0: 0},
            cost=2 * m * n * n,
        )  # fmt: skip
        return emit.apply(lambda q: [mT(q)], q)

    @in_single
    def stablehlo(self, hlo, a, taus):
        name = "ungqr" if a.dtype.kind == "c" else "orgqr"
        return hlo.lapack(name, a, taus, result=[a], ok=None)


householder_product_p = HouseholderProduct()


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of Q = H₁ H₂ … Hₖ, with Hᵢ = I - τᵢ vᵢ vᵢᴴ.

    Args:
        a: matrices of shape [..., m, n], m ≥ n, with vᵢ below the diagonal of column i.
        taus: the factors τ, of shape [..., k], k ≤ n.

    Returns:
        Matrices of the shape of `a` with orthonormal columns.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> import namoo.numpy as jnp
        >>> householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0]))
        Array([[ 0.],
               [-1.]], dtype=float32)
    """
    return householder_product_p.bind(a, taus)


class Ormqr(MatrixPrimitive):
    """The product of a matrix with the Q of Householder reflectors, without forming Q."""

    name = "ormqr"
    ranks = (2, 1, 2)

    def results(self, a, taus, c, *, left, transpose):
        if taus.shape[0] > min(a.shape):
            raise ValueError(
                f"ormqr: taus must not have more than {min(a.shape)} elements for a matrix of "
                f"shape {a.shape}, got shape {taus.shape}."
            )
        if c.shape[0 if left else 1] != a.shape[0]:
            raise ValueError(
                f"ormqr with left={left} expects c to have {a.shape[0]} "
                f"{'rows' if left else 'columns'}, the number of rows of a. Got a of shape "
                f"{a.shape} and c of shape {c.shape}."
            )
        return [c]

    def compute(self, a, taus, c, *, left, transpose):
        k = taus.shape[0]
        if not k:
            return [c]
        name, trans = ("unmqr", "C") if a.dtype.kind == "c" else ("ormqr", "T")
        side, trans = "L" if left else "R", trans if transpose else "N"
        lwork = 64 * (c.shape[1] if left else c.shape[0])
        return [lapack(name, a.dtype)(side, trans, a[:, :k], taus, c, lwork)[0]]

    def by_lapack(self, emit, a, taus, c, *, left, transpose):
        (m, n), k = c.shape[-2:], taus.shape[-1]
        if not k:
            return [c]
        name, letter = ("unmqr", "C") if a.dtype.kind == "c" else ("ormqr", "T")
        reflectors, by_columns = emit.apply(lambda a, c: [mT(columns(a, 0, k)), mT(c)], a, c)
        length = 64 * (n if left else m) + 65 * 64
        out, _ = emit.lapack(
            name,
            reflectors,
            taus,
            by_columns,
            result=[((n, m), c.dtype)],
            arguments=[
                "L" if left else "R", letter if transpose else "N", m, n, k, ("in", 0),
                a.shape[-2], ("in", 1), ("out", 0), m, ("work", length), length, ("out", 1),
            ],
            copies={2: 0},
            cost=2 * m * n * k,
        )  # fmt: skip
        return emit.apply(lambda out: [mT(out)], out)

    @in_single
    def stablehlo(self, hlo, a, taus, c, *, left, transpose):
        if not taus.shape[-1]:
            return [c]
        name = "unmqr" if a.dtype.kind == "c" else "ormqr"
        reflectors = hlo.part(a, a.ndim - 1, 0, taus.shape[-1])
        options = {"left": left, "transpose": transpose}
        return hlo.lapack(name, reflectors, taus, c, result=[c], ok=None, **options)


ormqr_p = Ormqr()


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """Q C, or C Q, for the Q of a QR decomposition in factored form.

    Args:
        a: matrices [..., m, n] with the reflectors below the diagonal, as `geqrf` returns them.
        taus: the factors of the reflectors, [..., k].
        c: the matrix to multiply with Q.
        left: Q C; otherwise C Q.
        transpose: use Qᴴ instead of Q.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> import namoo.numpy as jnp
        >>> ormqr(jnp.zeros((2, 2)), jnp.zeros(2), jnp.ones((2, 1))).shape
        (2, 1)
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))
