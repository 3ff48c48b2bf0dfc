"""Convolution and correlation, directly or by Fourier transforms.

The full convolution of axes of m and n elements has m + n - 1.  Every mode is a part of it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy import fft
from namoo.numpy.promote import promote_types
from namoo.primitives.conv import conv_general_dilated
from namoo.primitives.shape import canonical_axis

Shape = tuple[int, ...]

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    """Two arrays of one floating or complex type and the same rank."""
    in1, in2 = promote_types(name, in1, in2, to=dtypes.to_inexact_dtype)
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of axes, got shapes {in1.shape} and "
            f"{in2.shape}."
        )
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {_MODES}, got {mode!r}.")
    return in1, in2


def _lengths(name: str, m: Shape, n: Shape, mode: str) -> Shape:
    """The shape of the result."""
    if mode == "full":
        return tuple(a + b - 1 for a, b in zip(m, n, strict=True))
    if mode == "same":
        return m
    gaps = [a - b for a, b in zip(m, n, strict=True)]
    if any(g > 0 for g in gaps) and any(g < 0 for g in gaps):
        raise ValueError(
            f"{name}: with mode='valid' one array must be at least as large as the other along "
            f"every axis, got shapes {m} and {n}."
        )
    return tuple(abs(g) + 1 for g in gaps)


def _starts(m: Shape, n: Shape, lengths: Shape) -> Shape:
    """The start of the centred part of the full convolution."""
    return tuple((a + b - 1 - out) // 2 for a, b, out in zip(m, n, lengths, strict=True))


def _direct(in1: Array, in2: Array, starts: Shape, lengths: Shape, precision: Any) -> Array:
    """A part of the full convolution, with zeros outside of the arrays."""
    padding = [
        (b - 1 - start, start + out - a)
        for a, b, start, out in zip(in1.shape, in2.shape, starts, lengths, strict=True)
    ]
    kernel = jnp.flip(in2)[None, None]
    out = conv_general_dilated(
        in1[None, None], kernel, (1,) * in1.ndim, padding, precision=precision
    )
    return out[0, 0]


def _check_not_empty(name: str, in1: Array, in2: Array) -> None:
    if not in1.size or not in2.size:
        raise ValueError(f"{name}: an array is empty, got shapes {in1.shape} and {in2.shape}.")


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays over all axes, y[i] = Σ in1[k] · in2[i - k].

    Args:
        in1: the first array.
        in2: the second array, of the same rank.
        mode: 'full' for the whole; 'same' for the middle part of the shape of `in1`; 'valid' for
            the part where one array is inside the other.
        method: 'direct' (or 'auto'), or 'fft', which is faster for large arrays.
        precision: the precision of products, as for `lax.conv_general_dilated`.

    Raises:
        ValueError: another mode or method, different ranks, or empty arrays.

    Example:
        >>> import namoo.numpy as jnp
        >>> convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]), mode="valid")
        Array([3., 5.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode=mode)
    if method not in ("direct", "auto"):
        raise ValueError(f"convolve: method must be 'auto', 'fft' or 'direct', got {method!r}.")
    in1, in2 = _operands("convolve", in1, in2, mode)
    _check_not_empty("convolve", in1, in2)
    lengths = _lengths("convolve", in1.shape, in2.shape, mode)
    return _direct(in1, in2, _starts(in1.shape, in2.shape, lengths), lengths, precision)


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The cross-correlation of two arrays over all axes, y[i] = Σ in1[k] · conj(in2[k - i]).

    Args:
        in1, in2, mode, method, precision: as for `convolve`.

    Raises:
        ValueError: as for `convolve`.

    Example:
        >>> import namoo.numpy as jnp
        >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="same")
        Array([1., 2., 3.], dtype=float32)
    """
    other = jnp.flip(jnp.conj(in2))
    return convolve(in1, other, mode, precision=precision, method=method)


_PADS = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
"""The name that `jnp.pad` has for each boundary."""


def _planes(
    name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any
) -> tuple[Array, Array, bool]:
    """Two matrices, and whether the first is surrounded by zeros."""
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(
            f"{name} takes two matrices, got shapes {np.shape(in1)} and {np.shape(in2)}."
        )
    in1, in2 = _operands(name, in1, in2, mode)
    _check_not_empty(name, in1, in2)
    if boundary not in _PADS:
        raise ValueError(f"{name}: boundary must be one of {tuple(_PADS)}, got {boundary!r}.")
    has_zeros = boundary == "fill" and not isinstance(fillvalue, Array) and fillvalue == 0
    return in1, in2, has_zeros or mode == "valid"


def _convolve_plane(
    in1: Array,
    in2: Array,
    starts: Shape,
    lengths: Shape,
    surrounding: tuple[str, Any] | None,
    precision: Any,
) -> Array:
    """A part of the full convolution, with boundary values other than zeros around `in1`."""
    if surrounding is None:
        return _direct(in1, in2, starts, lengths, precision)
    boundary, fillvalue = surrounding
    widths = [(n - 1, n - 1) for n in in2.shape]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    wide = jnp.pad(in1, widths, mode=_PADS[boundary], **options)
    starts = tuple(start + n - 1 for start, n in zip(starts, in2.shape, strict=True))
    return _direct(wide, in2, starts, lengths, precision)


def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices.

    Args:
        in1: the first matrix.
        in2: the second matrix.
        mode: as for `convolve`.
        boundary: the values around `in1`: 'fill' for one value, 'wrap' for copies of it, 'symm' for
            its mirror images.
        fillvalue: that value.
        precision: the precision of products.

    Raises:
        ValueError: another mode or boundary, arrays that are not matrices, or empty ones.

    Example:
        >>> import namoo.numpy as jnp
        >>> convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)))
        Array([[1., 2., 1.],
               [2., 4., 2.],
               [1., 2., 1.]], dtype=float32)
    """
    in1, in2, has_zeros = _planes("convolve2d", in1, in2, mode, boundary, fillvalue)
    lengths = _lengths("convolve2d", in1.shape, in2.shape, mode)
    starts = _starts(in1.shape, in2.shape, lengths)
    surrounding = None if has_zeros else (boundary, fillvalue)
    return _convolve_plane(in1, in2, starts, lengths, surrounding, precision)


def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array:
    """The cross-correlation of two matrices.

    Args:
        in1, in2, mode, boundary, fillvalue, precision: as for `convolve2d`.

    Raises:
        ValueError: as for `convolve2d`.

    Example:
        >>> import namoo.numpy as jnp
        >>> correlate2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 1.0]]), mode="valid")
        Array([[2.],
               [4.]], dtype=float32)
    """
    in1, in2, has_zeros = _planes("correlate2d", in1, in2, mode, boundary, fillvalue)
    m, n = in1.shape, in2.shape
    lengths = _lengths("correlate2d", m, n, mode)
    # Of two centres, the one of a convolution with the mirrored matrix.
    starts = tuple(-(-(a + b - 1 - out) // 2) for a, b, out in zip(m, n, lengths, strict=True))
    surrounding = None if has_zeros else (boundary, fillvalue)
    out = _convolve_plane(in1, jnp.flip(jnp.conj(in2)), starts, lengths, surrounding, precision)
    # Where the second matrix is the larger one, SciPy takes the conjugate of the first instead.
    is_swapped = mode == "valid" and m != n and all(a <= b for a, b in zip(m, n, strict=True))
    return jnp.conj(out) if is_swapped else out


def fftconvolve(
    in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
        in1: the first array.
        in2: the second array, of the same rank.
        mode: as for `convolve`.
        axes: the axes to convolve over; the lengths of others must be equal.  All by default.

    Raises:
        ValueError: another mode, different ranks, or lengths that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])).round(3)
        Array([1., 3., 5., 3.], dtype=float32)
    """
    in1, in2 = _operands("fftconvolve", in1, in2, mode)
    chosen = range(in1.ndim) if axes is None else np.atleast_1d(axes).tolist()
    chosen = [canonical_axis(operator.index(axis), in1.ndim) for axis in chosen]
    rest = [axis for axis in range(in1.ndim) if axis not in chosen]
    if any(in1.shape[axis] != in2.shape[axis] for axis in rest):
        raise ValueError(
            f"fftconvolve: axes that are not convolved must have equal lengths, got shapes "
            f"{in1.shape} and {in2.shape} with {axes=}."
        )
    m, n = ([x.shape[axis] for axis in chosen] for x in (in1, in2))
    full = tuple(a + b - 1 for a, b in zip(m, n, strict=True))
    lengths = _lengths("fftconvolve", tuple(m), tuple(n), mode)
    if all(a == 1 or b == 1 for a, b in zip(m, n, strict=True)):
        out = in1 * in2
    elif jnp.iscomplexobj(in1):
        out = fft.ifftn(fft.fftn(in1, full, chosen) * fft.fftn(in2, full, chosen), full, chosen)
    else:
        out = fft.irfftn(fft.rfftn(in1, full, chosen) * fft.rfftn(in2, full, chosen), full, chosen)
    window = [slice(None)] * out.ndim
    for axis, start, length in zip(
        chosen, _starts(tuple(m), tuple(n), lengths), lengths, strict=True
    ):
        window[axis] = slice(start, start + length)
    return out[tuple(window)]
