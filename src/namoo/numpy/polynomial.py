"""Polynomials, as vectors of coefficients with the highest power first.

Polynomials of different length are aligned at their ends, the constants.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.control.loops import scan
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.calculus import convolve
from namoo.numpy.creation import concrete
from namoo.numpy.elementary import sqrt
from namoo.numpy.grids import vander
from namoo.numpy.linalg import eigvals, inv, lstsq
from namoo.numpy.promote import (
    array_of,
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    check_ranks,
    promote_types,
)
from namoo.numpy.same_type import const
from namoo.numpy.selection import where
from namoo.numpy.sorting import argsort
from namoo.primitives import elementwise as lax
from namoo.primitives.reduction import argmax
from namoo.primitives.shape import iota, zeros
from namoo.primitives.slicing import concatenate


def _inexact(name: str, *args: Any) -> list[Array]:
    """Arguments in their common inexact type."""
    return promote_types(name, *args, to=dtypes.to_inexact_dtype)


def _check_vectors(name: str, *polynomials: Array, error: type[Exception] = TypeError) -> None:
    for p in polynomials:
        if p.ndim != 1:
            raise (ValueError if p.ndim else error)(
                f"jnp.{name}: a polynomial is a vector of coefficients, got shape {p.shape}."
            )


def _leading_zeros(p: Array) -> Array:
    """How many coefficients before the first one that is not zero; all of them if all are zero."""
    nonzero = lax.ne(p, lax.full_like(p, 0))
    first = argmax(nonzero.astype(np.int32), 0, np.int32)
    return where(reductions.any(nonzero), first, p.size)


def _without_leading_zeros(p: Array, name: str) -> Array:
    count = concrete(_leading_zeros(p), f"the leading zeros of a polynomial in jnp.{name}")
    return p[int(count) :]


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial p[0]·xⁿ + … + p[n].

    Args:
        p: the coefficients.
        strip_zeros: drop leading zeros first, which needs concrete values. Otherwise there is a
            NaN at the end of the result for each of them, and `jit` is possible.

    Returns:
        A complex vector.

    Raises:
        ValueError: `p` is not a vector.
        ConcretizationTypeError: under `jit` with `strip_zeros`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.roots(jnp.array([1.0, -3.0, 2.0]))
        Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    (p,) = _inexact("roots", p)
    p = p if p.ndim else p[None]
    _check_vectors("roots", p)
    if strip_zeros:
        return _companion_roots(_without_leading_zeros(p, "roots") if p.size else p)
    if p.size < 2:
        return _companion_roots(p)
    lead = _leading_zeros(p)
    # Leading zeros move to the end, where each is a root at 0 that is removed again.
    turned = p[(iota(np.int32, p.size) + lead) % p.size]
    turned = where(lead == p.size, const(p, 1), turned)
    found = _companion_roots(turned)
    found = found[argsort(lax.eq(found, lax.full_like(found, 0)))]
    there = iota(np.int32, found.size) < found.size - lead
    return where(there, found, const(found, complex(np.nan, np.nan)))


def _companion_roots(p: Array) -> Array:
    """The eigenvalues of the matrix whose characteristic polynomial is p / p[0]."""
    n = p.size - 1
    if n < 1:
        return EagerArray(np.empty(0, dtypes.to_complex_dtype(p.dtype)))
    below = EagerArray(np.eye(n, k=-1, dtype=p.dtype))
    return eigvals(below.at[0].set(-p[1:] / p[0]))


def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of a degree that fits points best, by least squares.

    Args:
        x: the coordinates of the points, a vector.
        y: their values, a vector, or a matrix with one column for each of several fits.
        deg: the degree.
        rcond: as for `linalg.lstsq`; the number of points times the precision by default.
        full: also return the residuals, the rank, the singular values and `rcond`.
        w: how much the distance of each point counts.
        cov: also return the covariances of the coefficients; 'unscaled' for weights that are the
            inverse deviations of the points.

    Returns:
        The coefficients; with `full` or `cov` a tuple.

    Raises:
        ValueError: a negative degree.
        TypeError: shapes that do not fit, or no points.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.array([0.0, 1.0, 2.0, 3.0])
        >>> jnp.polyfit(x, 2 * x + 1, 1).round(3)
        Array([2., 1.], dtype=float32)
    """
    x, y = _inexact("polyfit", x, y)
    order = int(deg) + 1
    if order < 1:
        raise ValueError(f"polyfit: the degree must not be negative, got deg={deg}.")
    if x.ndim != 1:
        raise TypeError(f"polyfit: x must be a vector, got shape {x.shape}.")
    if not x.size:
        raise TypeError("polyfit: x must not be empty.")
    if y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise TypeError(
            f"polyfit: y must be a vector of {x.size} elements, as x, or a matrix of as many rows; "
            f"got shape {y.shape}."
        )
    if rcond is None:
        rcond = x.size * float(dtypes.finfo(x.dtype).eps)
    left, right = vander(x, order), y
    if w is not None:
        (w,) = _inexact("polyfit", w)
        if w.shape != (x.size,):
            raise TypeError(f"polyfit: w must be a vector of {x.size} elements, got {w.shape}.")
        left = left * w[:, None]
        right = right * (w if y.ndim == 1 else w[:, None])
    # Columns of equal norm make the system better conditioned.
    scale = sqrt(reductions.sum(left * left, axis=0))
    left = left / scale
    c, residuals, rank, s = lstsq(left, right, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, s, array_of("polyfit", rcond)
    if not cov:
        return c
    base = inv(left.T @ left) / (scale[:, None] * scale[None, :])
    if isinstance(cov, str) and cov == "unscaled":
        factor: Any = array_of("polyfit", 1).astype(base.dtype)
    else:
        if x.size <= order:
            raise ValueError(
                f"polyfit: {x.size} points are too few for the covariances of a fit of degree "
                f"{deg}; there must be more than {order}."
            )
        factor = residuals / const(residuals, x.size - order)
        factor = factor[0] if y.ndim == 1 else factor
    return c, base * factor if y.ndim == 1 else base[:, :, None] * factor


def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with given zeros, and leading coefficient 1.

    Args:
        seq_of_zeros: a vector of zeros, or a square matrix, whose eigenvalues they are.

    Raises:
        ValueError: other shapes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.poly(jnp.array([1.0, 2.0]))
        Array([ 1., -3.,  2.], dtype=float32)
    """
    (z,) = _inexact("poly", seq_of_zeros)
    z = z if z.ndim else z[None]
    if z.ndim == 2 and z.shape[0] == z.shape[1] and z.size:
        z = eigvals(z)
    if z.ndim != 1:
        raise ValueError(
            f"poly takes a vector of zeros or a square matrix that is not empty, got {z.shape}."
        )
    if not z.size:
        return EagerArray(np.ones((), z.dtype))
    out: Any = EagerArray(np.ones(1, z.dtype))
    nothing = EagerArray(np.zeros(1, z.dtype))
    for i in range(z.size):
        out = concatenate([out, nothing], 0) - z[i] * concatenate([nothing, out], 0)
    return out


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's scheme.

    Args:
        p: the coefficients, along the first axis; further axes broadcast with `x`.
        x: where.
        unroll: how many steps of a compiled loop are taken at once.

    Raises:
        IndexError: `p` is a number.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polyval(jnp.array([1, 0, -1]), jnp.array([2, 3]))
        Array([3, 8], dtype=int32)
    """
    p, x = promote_types("polyval", p, x)
    if not p.ndim:
        raise IndexError("polyval: p must have an axis of coefficients, got a number.")
    check_ranks("polyval", [p.shape[1:], x.shape])
    shape = broadcast_shapes(p.shape[1:], x.shape)
    start = zeros(x.aval.update(shape=shape, weak_type=False))
    # Each step has the type of the one before.
    p, x = p.astype(start.dtype), x.astype(start.dtype)
    return scan(lambda y, c: (y * x + c, None), start, p, unroll=unroll)[0]


def _aligned(name: str, a1: Any, a2: Any) -> tuple[Array, Array]:
    """Two polynomials of one length."""
    x, y = promote_types(name, a1, a2)
    _check_vectors(name, x, y, error=IndexError)
    n = max(x.size, y.size)
    return _lengthened(x, n), _lengthened(y, n)


def _lengthened(p: Array, n: int) -> Array:
    """Zeros in front, up to a length."""
    if p.size == n:
        return p
    return concatenate([zeros(p.aval.update(shape=(n - p.size,))), p], 0)


def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials.

    Raises:
        IndexError, ValueError: anything that is not a vector.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20]))
        Array([ 1, 12, 23], dtype=int32)
    """
    x, y = _aligned("polyadd", a1, a2)
    return lax.add(x, y)


def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials.

    Raises:
        IndexError, ValueError: anything that is not a vector.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10, 20]))
        Array([  1,  -8, -17], dtype=int32)
    """
    x, y = _aligned("polysub", a1, a2)
    return lax.sub(x, y)


def polyder(p: Any, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Args:
        p: the coefficients.
        m: the order of the derivative.

    Raises:
        ValueError: `m` is negative.
        TypeError: `p` is not a vector, or `m` is not an integer.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
        Array([2., 2.], dtype=float32)
    """
    (p,) = _inexact("polyder", p)
    _check_vectors("polyder", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"polyder: the order of a derivative must not be negative, got m={m}.")
    powers = np.arange(p.size - 1, m - 1, -1)
    factors = np.prod([powers - k for k in range(m)], axis=0, initial=1)
    return p[: powers.size] * EagerArray(np.broadcast_to(factors, powers.shape).astype(p.dtype))


def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The m-th integral of a polynomial.

    Args:
        p: the coefficients.
        m: how often to integrate.
        k: the constants of integration, first to last: one number, or a vector of `m`.

    Raises:
        ValueError: `m` is negative, or `k` has another length.
        TypeError: `p` is not a vector, or `m` is not an integer.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polyint(jnp.array([6.0, 2.0]), k=5)
        Array([3., 2., 5.], dtype=float32)
    """
    m = operator.index(m)
    p, k = _inexact("polyint", p, 0 if k is None else k)
    _check_vectors("polyint", p)
    if m < 0:
        raise ValueError(
            f"polyint: the order of an integral must not be negative, got m={m}; see polyder."
        )
    if k.size == 1:
        k = broadcast_to(k.reshape(1), (m,))
    if k.shape != (m,):
        raise ValueError(f"polyint: k must be a number or a vector of m={m}, got shape {k.shape}.")
    for i in range(m):
        powers = EagerArray(np.arange(p.size, 0, -1).astype(p.dtype))
        p = concatenate([p / powers, k[i : i + 1]], 0)
    return p


def _factors(name: str, a: Any, b: Any, trim: bool) -> list[Array]:
    """Two polynomials in their common inexact type; an empty one is 0."""
    x, y = _inexact(name, a, b)
    _check_vectors(name, x, y)
    if trim:
        x, y = (_without_leading_zeros(p, name) if p.size else p for p in (x, y))
    return [p if p.size else EagerArray(np.zeros(1, p.dtype)) for p in (x, y)]


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1, a2: the polynomials.
        trim_leading_zeros: drop leading zeros of both first, which needs concrete values.

    Raises:
        TypeError, ValueError: anything that is not a vector.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polymul(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0]))
        Array([ 1.,  0., -1.], dtype=float32)
    """
    check_arraylike("polymul", a1, a2)
    x, y = _factors("polymul", a1, a2, trim_leading_zeros)
    return convolve(x, y)


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials: u = quotient · v + remainder.

    Args:
        u, v: the polynomials.
        trim_leading_zeros: drop leading zeros of the remainder, which needs concrete values.

    Returns:
        The quotient, and the remainder with as many coefficients as `u`.

    Raises:
        TypeError, ValueError: anything that is not a vector.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.polydiv(jnp.array([1.0, 3.0, 5.0]), jnp.array([1.0, 1.0]))
        (Array([1., 2.], dtype=float32), Array([0., 0., 3.], dtype=float32))
    """
    check_arraylike("polydiv", u, v)
    rest, divisor = _factors("polydiv", u, v, False)
    steps = rest.size - divisor.size + 1
    if steps < 1:
        return EagerArray(np.zeros(1, rest.dtype)), rest
    quotient = []
    for i in range(steps):
        factor = rest[i] / divisor[0]
        quotient.append(factor[None])
        rest = rest.at[i : i + divisor.size].add(-factor * divisor)
    if trim_leading_zeros:
        rest = _without_leading_zeros(rest, "polydiv")
    return concatenate(quotient, 0), rest


attach_shortcuts(globals())
