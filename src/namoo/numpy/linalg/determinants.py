"""Determinants, with derivatives that hold for singular matrices too.

The derivative of a determinant is tr(adj(A) dA).  The adjugate adj(A) is a polynomial in the
elements, so it exists where the inverse does not: from A = U S Vᴴ it is det(U Vᴴ) V adj(S) Uᴴ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import absolute, sign
from namoo.numpy.elementary import log
from namoo.numpy.linalg.systems import solve_matrices
from namoo.numpy.promote import as_type, promote_inexact
from namoo.numpy.reductions import any, prod, sum
from namoo.numpy.same_type import choose, const
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    as_type_of,
    diagonal,
    identity,
    is_complex,
    matmul,
    real_part,
    scale_columns,
)
from namoo.primitives.linalg.qr import geqrf
from namoo.primitives.linalg.systems import lu
from namoo.primitives.shape import expand_dims, iota, ones
from namoo.transforms.custom import custom_jvp


class SlogdetResult(NamedTuple):
    """What `slogdet` returns: the determinant is sign · exp(logabsdet)."""

    sign: Array
    logabsdet: Array


def _square_matrices(name: str, a: Any) -> Array:
    (a,) = promote_inexact(f"jnp.linalg.{name}", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name}() must have shape [..., n, n], got {a.shape}.")
    return a


def _lu_diagonal(a: Array) -> tuple[Array, Array]:
    """The diagonal of U, and the sign of the row exchanges."""
    factors, pivots, _ = lu(a)
    exchanges = sum(pivots != iota(np.int32, pivots.shape[-1]), axis=-1)
    return diagonal(factors), _power_of_minus_one(exchanges, factors)


def _power_of_minus_one(count: Array, like: Array) -> Array:
    return as_type(1 - 2 * (count % 2), like.dtype, like.weak_type)


def det(a: Any) -> Array:
    """The determinant of square matrices.

    Args:
        a: matrices of shape [..., n, n].

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    a = _square_matrices("det", a)
    a = a.astype(a.dtype)
    n = a.shape[-1]
    if n == 0:
        return ones(a.aval.update(shape=a.shape[:-2]))
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return _det_of_three(a)
    return _det(a)


def _det_of_three(a: Array) -> Array:
    x, y, z = ([a[..., row, i] for i in range(3)] for row in range(3))
    return (
        x[0] * (y[1] * z[2] - y[2] * z[1])
        + x[1] * (y[2] * z[0] - y[0] * z[2])
        + x[2] * (y[0] * z[1] - y[1] * z[0])
    )


@custom_jvp
def _det(a: Any) -> Any:
    pivots, parity = _lu_diagonal(a)
    return parity * prod(pivots, axis=-1)


@_det.defjvp
def _det_jvp(primals, tangents):
    (a,), (da,) = primals, tangents
    return _det(a), sum(diagonal(matmul(_adjugate(a), da)), axis=-1)


@custom_jvp
def _adjugate(a: Any) -> Any:
    """adj(A) = det(U Vᴴ) V diag(Π_{k≠i} sₖ) Uᴴ"""
    u, s, vh, turn = _turned_svd(a)
    product, zeros = _nonzero_product(s)
    left = product[..., None] / _ones_for_zeros(s)
    # Leaving out one factor leaves no zero among the others, or the product is zero.
    left = choose(zeros[..., None] == _is_zero(s), left, const(s, 0))
    return matmul(scale_columns(adjoint(vh), turn * as_type_of(left, a)), adjoint(u))


@_adjugate.defjvp
def _adjugate_jvp(primals, tangents):
    # For a diagonal matrix with Pᵢⱼ = Π_{k≠i,j} sₖ, the derivative of the adjugate is -Pᵢⱼ Mᵢⱼ off
    # the diagonal, and Σ_{j≠i} Pᵢⱼ Mⱼⱼ on it.
    (a,), (da,) = primals, tangents
    u, s, vh, turn = _turned_svd(a)
    n = s.shape[-1]
    m = matmul(adjoint(u), da, adjoint(vh))
    product, zeros = _nonzero_product(s)
    values, absent = _ones_for_zeros(s), _is_zero(s)
    pairs = along_rows(values, n) * along_columns(values, n)
    absent = along_rows(absent, n) + along_columns(absent, n)
    pairs = choose(zeros[..., None, None] == absent, product[..., None, None] / pairs, const(s, 0))
    pairs = as_type_of(pairs, m)
    eye = identity(m)
    pairs = pairs - pairs * eye
    on_diagonal = matmul(pairs, expand_dims(diagonal(m), (m.ndim - 1,)))
    inner = eye * on_diagonal - pairs * m
    return _adjugate(a), turn[..., None] * matmul(adjoint(vh), inner, adjoint(u))


def _turned_svd(a):
    """U, S, Vᴴ and det(U Vᴴ), with an axis to scale columns by."""
    u, s, vh = spectral.svd(a, full_matrices=False)
    pivots, parity = _lu_diagonal(matmul(u, vh))
    return u, s, vh, (parity * prod(pivots, axis=-1))[..., None]


def _is_zero(s):
    return (s == const(s, 0)).astype(np.int32)


def _ones_for_zeros(s):
    return choose(s == const(s, 0), const(s, 1), s)


def _nonzero_product(s):
    """The product of the nonzero elements, and the number of zeros."""
    return prod(_ones_for_zeros(s), axis=-1), sum(_is_zero(s), axis=-1)


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the size of determinants, without overflow.

    Args:
        a: matrices of shape [..., n, n].
        method: 'lu' (or None), or 'qr', for real matrices.

    Returns:
        The named tuple (sign, logabsdet): the determinant is sign · exp(logabsdet). Sign is a
        complex number of size 1 for complex matrices. For singular ones it is 0, and the
        logarithm -inf.

    Raises:
        ValueError: the matrices are not square, or another method.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method in (None, "lu"):
        return SlogdetResult(*_slogdet_of(a))
    a = _square_matrices("slogdet", a)
    if method != "qr":
        raise ValueError(f"slogdet: unknown method {method!r}; write 'lu' (or None) or 'qr'.")
    if is_complex(a):
        raise NotImplementedError("slogdet with method='qr' takes real matrices; use method='lu'.")
    return SlogdetResult(*_slogdet_qr(a))


def _slogdet_of(a: Any) -> tuple[Array, Array]:
    return _slogdet_lu(_square_matrices("slogdet", a))


@custom_jvp
def _slogdet_lu(a: Any) -> Any:
    pivots, parity = _lu_diagonal(a)
    return _sign_and_log(pivots, parity)


@custom_jvp
def _slogdet_qr(a: Any) -> Any:
    packed, taus = geqrf(a)
    # Each reflector that is not the identity changes the sign.
    reflections = sum(taus != const(taus, 0), axis=-1)
    return _sign_and_log(diagonal(packed), _power_of_minus_one(reflections, packed))


def _sign_and_log(factors, parity):
    size = absolute(factors)
    singular = any(size == const(size, 0), axis=-1)
    signs = parity * prod(sign(factors), axis=-1)
    signs = choose(singular, const(signs, 0), signs)
    total = sum(log(size), axis=-1)
    return signs, choose(singular, const(total, -np.inf), total)


def _slogdet_rule(fun):
    def jvp(primals, tangents):
        # d log det A = tr(A⁻¹ dA): its real part belongs to the size, the imaginary to the phase.
        (a,), (da,) = primals, tangents
        signs, total = fun(a)
        change = sum(diagonal(solve_matrices(a, da)), axis=-1)
        if is_complex(change):
            turn = signs * (change - as_type_of(change.real, change))
        else:
            turn = signs * const(signs, 0)
        return (signs, total), (turn, real_part(change))

    return jvp


_slogdet_lu.defjvp(_slogdet_rule(_slogdet_lu))
_slogdet_qr.defjvp(_slogdet_rule(_slogdet_qr))


attach_shortcuts(globals())
