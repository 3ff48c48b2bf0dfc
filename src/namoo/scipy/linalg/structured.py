"""Matrices of a known pattern: Toeplitz and its relatives, companions, and famous examples."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.numpy.promote import arrays_of, promote_inexact, promote_types


def _constant(values: np.ndarray, dtype: Any = None) -> Array:
    """An array of the default float type, or of another."""
    with np.errstate(over="ignore"):
        return EagerArray(values.astype(dtypes.default_float_dtype() if dtype is None else dtype))


def _size(n: Any) -> int:
    """The size of a matrix; negative numbers count as 0."""
    return max(operator.index(n), 0)


def _kind(name: str, kind: str | None) -> str:
    kinds = ("symmetric", "lower", "upper")
    if kind is not None and kind not in kinds:
        raise ValueError(f"{name}: Expected kind to be one of {kinds}, got {kind!r}.")
    return kind or "symmetric"


def block_diag(*arrs: Any) -> Array:
    """The matrix with the given blocks on its diagonal, and zeros elsewhere.

    Args:
        arrs: arrays of at most two axes; vectors are rows, numbers are matrices of one element.

    Raises:
        ValueError: an array of more than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> block_diag(jnp.ones((1, 1)), jnp.array([[2.0, 3.0]]))
        Array([[1., 0., 0.],
               [0., 2., 3.]], dtype=float32)
    """
    blocks = promote_types("block_diag", *(arrs or (jnp.zeros((1, 0)),)))
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise ValueError(
                f"block_diag takes arrays of at most two axes, got shape {block.shape} for "
                f"argument {i}."
            )
    blocks = [jnp.atleast_2d(block) for block in blocks]
    width = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(jnp.pad(block, ((0, 0), (left, right))))
        left += block.shape[1]
    return jnp.concatenate(rows, axis=0)


def _windows(values: Array, rows: int, columns: int, step: int) -> Array:
    """The matrices whose rows are windows of vectors; each begins `step` after the one above."""
    start = 0 if step > 0 else rows - 1
    index = start + step * np.arange(rows)[:, None] + np.arange(columns)
    return values[..., index]


def _joined(c: Array, r: Array) -> Array:
    """The elements of `c`, then those of `r` but its first, for each pair of vectors."""
    batch = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = (jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (c, r))
    return jnp.concatenate([c, r[..., 1:]], axis=-1)


def _empty(c: Array, r: Array) -> Array:
    batch = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    return jnp.empty((*batch, c.shape[-1], r.shape[-1]), jnp.promote_types(c.dtype, r.dtype))


def toeplitz(c: Any, r: Any = None) -> Array:
    """Matrices with equal elements along each diagonal.

        A[i, j] = c[i - j] where i ≥ j, else r[j - i]

    Args:
        c: the first column, of shape [..., m].
        r: the first row, of shape [..., n]; its first element is not read.  conj(c) by default.

    Returns:
        Matrices of shape [..., m, n].

    Raises:
        TypeError: anything that is not an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> toeplitz(jnp.array([1, 2, 3]), jnp.array([0, 5]))
        Array([[1, 5],
               [2, 1],
               [3, 2]], dtype=int32)
    """
    (column,) = arrays_of("toeplitz", c)
    row = jnp.conjugate(column) if r is None else arrays_of("toeplitz", c, r)[1]
    column, row = jnp.atleast_1d(column), jnp.atleast_1d(row)
    m, n = column.shape[-1], row.shape[-1]
    if not m or not n:
        return _empty(column, row)
    return _windows(_joined(jnp.flip(column, -1), row), m, n, -1)


def hankel(c: Any, r: Any = None) -> Array:
    """Matrices with equal elements along each antidiagonal.

        A[i, j] = c[i + j] where i + j < m, else r[i + j - m + 1]

    Args:
        c: the first column, of shape [..., m].
        r: the last row, of shape [..., n]; its first element is not read.  Zeros by default.

    Returns:
        Matrices of shape [..., m, n].

    Raises:
        ValueError: a scalar.

    Example:
        >>> import namoo.numpy as jnp
        >>> hankel(jnp.array([1, 2, 3]), jnp.array([0, 5]))
        Array([[1, 2],
               [2, 3],
               [3, 5]], dtype=int32)
    """
    (column,) = arrays_of("hankel", c)
    row = jnp.zeros_like(column) if r is None else arrays_of("hankel", c, r)[1]
    for name, x in (("c", column), ("r", row)):
        if x.ndim == 0:
            raise ValueError(f"hankel: {name} must be a vector, got a scalar.")
    m, n = column.shape[-1], row.shape[-1]
    if not m or not n:
        return _empty(column, row)
    return _windows(_joined(column, row), m, n, 1)


def circulant(c: Any) -> Array:
    """Square matrices each of whose columns is the one before it, shifted by one.

        A[i, j] = c[(i - j) mod n]

    Args:
        c: the first column, of shape [..., n].

    Example:
        >>> import namoo.numpy as jnp
        >>> circulant(jnp.array([1, 2, 3]))
        Array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]], dtype=int32)
    """
    (column,) = arrays_of("circulant", c)
    column = jnp.atleast_1d(column)
    n = column.shape[-1]
    place = np.arange(n)
    return column[..., (place[:, None] - place) % max(n, 1)]


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector v of n elements is the convolution of a and v.

    Args:
        a: vectors of shape [..., m], m ≥ 1.
        n: the length of v, positive.
        mode: 'full', 'same' or 'valid', as in `jnp.convolve`.

    Returns:
        Matrices of shape [..., k, n]; k is m + n - 1, max(m, n) or max(m, n) - min(m, n) + 1.

    Raises:
        ValueError: an empty or scalar `a`, another mode, or `n` not positive.

    Example:
        >>> import namoo.numpy as jnp
        >>> convolution_matrix(jnp.array([-1, 4, -2]), 3, mode="same")
        Array([[ 4, -1,  0],
               [-2,  4, -1],
               [ 0, -2,  4]], dtype=int32)
    """
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be a positive integer, got {n}.")
    (x,) = arrays_of("convolution_matrix", a)
    if x.ndim == 0 or x.shape[-1] == 0:
        what = "a must be at least 1-dimensional" if x.ndim == 0 else "len(a) must be at least 1"
        raise ValueError(f"convolution_matrix: {what} for a vector a, got shape {x.shape}.")
    m = x.shape[-1]
    short = min(m, n) - 1
    cuts = {"full": (0, 0), "same": (short // 2, short - short // 2), "valid": (short, short)}
    if mode not in cuts:
        raise ValueError(f"convolution_matrix: mode must be one of {tuple(cuts)}, got {mode!r}.")
    above, below = cuts[mode]
    # All rows are windows of the reversed vector, with n - 1 zeros on either side of it.
    padded = jnp.pad(jnp.flip(x, -1), [(0, 0)] * (x.ndim - 1) + [(n - 1, n - 1)])
    return _windows(padded, m + n - 1, n, -1)[..., above : m + n - 1 - below, :]


def leslie(f: Any, s: Any) -> Array:
    """The Leslie matrix of a population: fecundities in the first row, survival below.

    Args:
        f: fecundity of each age group, [..., n], n ≥ 2.
        s: the part of each group that survives, [..., n-1].

    Returns:
        Matrices of shape [..., n, n].

    Raises:
        ValueError: lengths that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> leslie(jnp.array([0.5, 2.0, 1.0]), jnp.array([0.25, 0.5]))
        Array([[0.5 , 2.  , 1.  ],
               [0.25, 0.  , 0.  ],
               [0.  , 0.5 , 0.  ]], dtype=float32)
    """
    first, below = (jnp.atleast_1d(x) for x in promote_types("leslie", f, s))
    n = first.shape[-1]
    if n < 2:
        raise ValueError(
            f"leslie: the length of f along the last axis must be at least 2, got {first.shape}."
        )
    if below.shape[-1] != n - 1:
        raise ValueError(
            "leslie: Incorrect lengths for f and s: s must have one element less than f, got "
            f"shapes {below.shape} and {first.shape}."
        )
    return _row_and_subdiagonal(first, below)


def _row_and_subdiagonal(first: Array, below: Array) -> Array:
    """The matrices with a first row [..., n] and a diagonal [..., n-1] below the main one."""
    n = first.shape[-1]
    batch = jnp.broadcast_shapes(first.shape[:-1], below.shape[:-1])
    first, below = (jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (first, below))
    place = np.arange(n - 1)
    out = jnp.zeros((*batch, n, n), first.dtype)
    return out.at[..., place + 1, place].set(below).at[..., 0, :].set(first)


def companion(a: Any) -> Array:
    """The companion matrix of a polynomial: its eigenvalues are the roots.

    Args:
        a: coefficients from the highest power down, [..., n], n ≥ 2.

    Returns:
        Matrices of shape [..., n-1, n-1]; infinite or NaN where a[0] is zero.

    Raises:
        ValueError: fewer than two coefficients.

    Example:
        >>> import namoo.numpy as jnp
        >>> companion(jnp.array([1.0, -10.0, 31.0, -30.0]))
        Array([[ 10., -31.,  30.],
               [  1.,   0.,   0.],
               [  0.,   1.,   0.]], dtype=float32)
    """
    x = jnp.atleast_1d(promote_inexact("companion", a)[0])
    if x.shape[-1] < 2:
        raise ValueError(
            f"companion: the length of `a` along the last axis must be at least 2, got {x.shape}."
        )
    first = -x[..., 1:] / x[..., :1]
    return _row_and_subdiagonal(first, jnp.ones(first.shape[-1] - 1, first.dtype))


def fiedler(a: Any) -> Array:
    """The symmetric matrix of distances, A[i, j] = |a[i] - a[j]|.

    Args:
        a: vectors of shape [..., n].

    Example:
        >>> import namoo.numpy as jnp
        >>> fiedler(jnp.array([1, 4, 2]))
        Array([[0, 3, 1],
               [3, 0, 2],
               [1, 2, 0]], dtype=int32)
    """
    x = jnp.atleast_1d(arrays_of("fiedler", a)[0])
    return jnp.abs(x[..., :, None] - x[..., None, :])


def fiedler_companion(a: Any) -> Array:
    """Fiedler's companion matrix of a polynomial, with five diagonals.

    Args:
        a: coefficients from the highest power down, [..., n], n ≥ 1.

    Returns:
        Matrices of shape [..., n-1, n-1] with the roots as eigenvalues.

    Raises:
        ValueError: no coefficients.

    Example:
        >>> import namoo.numpy as jnp
        >>> fiedler_companion(jnp.array([1.0, -10.0, 35.0, -50.0, 24.0]))
        Array([[ 10., -35.,   1.,   0.],
               [  1.,   0.,   0.,   0.],
               [  0.,  50.,   0., -24.],
               [  0.,   1.,   0.,   0.]], dtype=float32)
    """
    x = jnp.atleast_1d(promote_inexact("fiedler_companion", a)[0])
    if x.shape[-1] == 0:
        raise ValueError(
            f"fiedler_companion: the last axis of a must have nonzero length, got shape {x.shape}."
        )
    n = x.shape[-1] - 1
    out = jnp.zeros((*x.shape[:-1], n, n), x.dtype)
    if n == 0:
        return out
    coefficients = -x / x[..., :1]
    out = out.at[..., 0, 0].set(coefficients[..., 1])
    if n == 1:
        return out
    # Coefficients are right of the diagonal in even rows, and left of it in those but the first;
    # ones are two columns off it, where the row above or below has no coefficient.
    right, left = np.arange(0, n - 1, 2), np.arange(2, n, 2)
    out = out.at[..., right, right + 1].set(coefficients[..., right + 2])
    out = out.at[..., left, left - 1].set(coefficients[..., left + 1])
    upper, lower = np.arange(0, n - 2, 2), np.arange(3, n, 2)
    out = out.at[..., upper, upper + 2].set(1).at[..., lower, lower - 2].set(1)
    return out.at[..., 1, 0].set(1)


def hilbert(n: int) -> Array:
    """The Hilbert matrix, A[i, j] = 1 / (i + j + 1), which is hard to invert.

    Args:
        n: the size.

    Example:
        >>> hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)
    """
    place = np.arange(_size(n), dtype=np.float64)
    return _constant(1 / (place[:, None] + place + 1))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, whose elements are integers.

    Args:
        n: the size.

    Example:
        >>> invhilbert(2)
        Array([[ 4., -6.],
               [-6., 12.]], dtype=float32)
    """
    from scipy.special import comb

    n = _size(n)
    i, j = np.arange(n)[:, None], np.arange(n)
    chosen = comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
    return _constant((-1.0) ** (i + j) * (i + j + 1) * chosen)


def _pascal_triangle(n: int) -> np.ndarray:
    from scipy.special import comb

    return comb(np.arange(n)[:, None], np.arange(n))


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of binomial coefficients.

        lower: L[i, j] = (i choose j)    upper: Lᵀ    symmetric: L Lᵀ

    Args:
        n: the size.
        kind: 'symmetric' (or None), 'lower' or 'upper'.

    Raises:
        ValueError: another kind.

    Example:
        >>> pascal(3)
        Array([[1., 1., 1.],
               [1., 2., 3.],
               [1., 3., 6.]], dtype=float32)
    """
    kind = _kind("pascal", kind)
    lower = _pascal_triangle(_size(n))
    return _constant(_of_kind(lower, lower @ lower.T, kind), np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix of binomial coefficients.

    Args:
        n: the size.
        kind: 'symmetric' (or None), 'lower' or 'upper', as for `pascal`.

    Raises:
        ValueError: another kind.

    Example:
        >>> invpascal(3)
        Array([[ 3., -3.,  1.],
               [-3.,  5., -2.],
               [ 1., -2.,  1.]], dtype=float32)
    """
    kind = _kind("invpascal", kind)
    n = _size(n)
    sign = (-1.0) ** np.arange(n)
    lower = sign[:, None] * sign * _pascal_triangle(n)
    return _constant(_of_kind(lower, lower.T @ lower, kind))


def _of_kind(lower: np.ndarray, symmetric: np.ndarray, kind: str) -> np.ndarray:
    return {"lower": lower, "upper": lower.T, "symmetric": symmetric}[kind]


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix: each row compares one element with the mean of those before it.

    Args:
        n: the number of columns.
        full: include the constant first row, which makes the matrix square and orthogonal.

    Raises:
        ValueError: `n` is not positive.

    Example:
        >>> helmert(3).round(3)
        Array([[ 0.707, -0.707,  0.   ],
               [ 0.408,  0.408, -0.816]], dtype=float32)
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"helmert: n must be a positive integer, got {n}.")
    count = np.arange(1, n, dtype=np.float64)[:, None]
    rows = np.tri(n - 1, n) - count * np.eye(n - 1, n, 1)
    rows /= np.sqrt(count * (count + 1))
    return _constant(np.vstack([np.full((1, n), n**-0.5), rows]) if full else rows)


def hadamard(n: int, dtype: Any = int) -> Array:
    """The Hadamard matrix: entries 1 and -1, and rows at right angles to one another.

    Args:
        n: the size, a power of 2.
        dtype: the type of the elements.

    Raises:
        ValueError: `n` is not a power of 2.

    Example:
        >>> hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)
    """
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2, got {n}.")
    matrix = np.ones((1, 1))
    while matrix.shape[0] < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return _constant(matrix, dtypes.check_user_dtype_supported(dtype, "hadamard"))


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the discrete Fourier transform, W[j, k] = exp(-2πi·jk / n).

    Args:
        n: the size.
        scale: None, 'sqrtn' for W / √n, which is unitary, or 'n' for W / n.
        dtype: a complex type.

    Raises:
        ValueError: another scale, or a type that is not complex.

    Example:
        >>> dft(2).round()
        Array([[ 1.+0.j,  1.+0.j],
               [ 1.+0.j, -1.-0.j]], dtype=complex64)
    """
    n = _size(n)
    scales = {None: 1.0, "sqrtn": n**0.5, "n": float(n)}
    if scale not in scales:
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}.")
    if dtype is None:
        dtype = dtypes.default_complex_dtype()
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "dft")
        if dtype.kind != "c":
            raise ValueError(f"dft: dtype must be a complex type, got {dtype}.")
    place = np.arange(n)
    # Products modulo n keep the angle small, and so exact.
    angle = -2 * np.pi * (np.outer(place, place) % max(n, 1)) / max(n, 1)
    return _constant(np.exp(1j * angle) / scales[scale], dtype)
