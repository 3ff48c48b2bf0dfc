"""Discrete cosine transforms: JAX's `jax.scipy.fft`.

Each transform is the Fourier transform of a real signal that is extended to an even one.  For the
types 2 and 3 the signal's even elements, followed by its odd ones reversed, are enough.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy import fft
from namoo.numpy.promote import array_of
from namoo.primitives.elementwise import complex as complex_of
from namoo.primitives.shape import canonical_axis

__all__ = ["dct", "dctn", "idct", "idctn"]
__dir__ = __all__.copy

_NORMS = (None, "backward", "ortho", "forward")
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type whose transform inverts each type, up to a factor."""


def _rotated(x: Array, step: float, start: float = 0.0) -> Array:
    """x[k]·exp(-iπ·(k·step + start)/n) for k = 0, 1, …, n - 1 along the last axis"""
    n = x.shape[-1]
    angle = -np.pi * (step * np.arange(n) + start) / n
    turn = np.exp(1j * angle).reshape((1,) * (x.ndim - 1) + (n,))
    dtype = dtypes.to_complex_dtype(x.dtype)
    return x.astype(dtype) * jnp.asarray(turn, dtype)


def _first(x: Array) -> Array:
    """Type 1: x[0] + (-1)ᵏ x[n-1] + 2 Σ x[j] cos(πjk / (n - 1))"""
    n = x.shape[-1]
    if n < 2:
        raise ValueError(f"A cosine transform of type 1 needs 2 elements at least, got {n}.")
    even = jnp.concatenate([x, jnp.flip(x[..., 1:-1], -1)], axis=-1)
    return jnp.real(fft.rfft(even))


def _second(x: Array) -> Array:
    """Type 2: 2 Σ x[j] cos(πk (2j + 1) / 2n)"""
    folded = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], axis=-1)
    return 2 * jnp.real(_rotated(fft.fft(folded), 0.5))


def _third(x: Array) -> Array:
    """Type 3: x[0] + 2 Σ x[j] cos(πj (2k + 1) / 2n)"""
    n = x.shape[-1]
    halved = x.at[..., 1:].multiply(2)
    folded = jnp.real(fft.fft(_rotated(halved, 0.5)))
    half = -(-n // 2)
    place = np.empty(n, int)
    place[::2], place[1::2] = np.arange(half), np.arange(n - 1, half - 1, -1)
    return folded[..., place]


def _fourth(x: Array) -> Array:
    """Type 4: 2 Σ x[j] cos(π (2j + 1) (2k + 1) / 4n)"""
    n = x.shape[-1]
    wide = jnp.pad(_rotated(x, 0.5), [(0, 0)] * (x.ndim - 1) + [(0, n)])
    return 2 * jnp.real(_rotated(fft.fft(wide)[..., :n], 0.5, 0.25))


_TRANSFORMS: dict[int, Callable[[Array], Array]] = {1: _first, 2: _second, 3: _third, 4: _fourth}


def _ends(x: Array, factor: float, last: bool) -> Array:
    """Scale the first element, and the last, too."""
    x = x.at[..., 0].multiply(factor)
    return x.at[..., -1].multiply(factor) if last else x


def _along_last(x: Array, kind: int, norm: str | None, inverse: bool) -> Array:
    """The transform, or its inverse, along the last axis."""
    n = x.shape[-1]
    if inverse:
        # The inverse of a type is the opposite type, divided by the factor of both together.
        kind = _INVERSE[kind]
        norm = {None: "forward", "backward": "forward", "forward": None}.get(norm, norm)
    growth = 2 * (n - 1) if kind == 1 else 2 * n
    if norm != "ortho":
        out = _TRANSFORMS[kind](x)
        return out / growth if norm == "forward" else out
    # Orthogonal: unpaired elements are weighted by √2, before or after.
    if kind in (1, 3):
        x = _ends(x, math.sqrt(2), last=kind == 1)
    out = _TRANSFORMS[kind](x) / math.sqrt(growth)
    return _ends(out, math.sqrt(0.5), last=kind == 1) if kind in (1, 2) else out


def _transform(
    name: str,
    x: Any,
    kind: int,
    lengths: Sequence[int | None],
    axes: Sequence[int],
    norm: str | None,
    inverse: bool,
) -> Array:
    """Transforms along several axes."""
    if kind not in _TRANSFORMS:
        raise NotImplementedError(f"{name}: type must be 1, 2, 3 or 4, got {kind!r}.")
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be one of {_NORMS}, got {norm!r}.")
    if jnp.iscomplexobj(x):
        parts = (
            _transform(name, part, kind, lengths, axes, norm, inverse)
            for part in (jnp.real(x), jnp.imag(x))
        )
        return complex_of(*parts)
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    for axis, length in zip(axes, lengths, strict=True):
        moved = jnp.moveaxis(x, axis, -1)
        if length is not None:
            moved = _resized(moved, operator.index(length))
        x = jnp.moveaxis(_along_last(moved, kind, norm, inverse), -1, axis)
    return x


def _resized(x: Array, length: int) -> Array:
    """Cut the last axis, or add zeros at its end."""
    missing = length - x.shape[-1]
    if missing <= 0:
        return x[..., :length]
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])


def _chosen_axes(
    name: str, x: Array, s: Any, axes: Any
) -> tuple[Sequence[int | None], Sequence[int]]:
    """The lengths and axes of a transform over several axes."""
    lengths = None if s is None else list(np.atleast_1d(s))
    if lengths is not None and len(lengths) > x.ndim:
        raise ValueError(
            f"{name}: s must have at most x.ndim ({x.ndim}) elements, got {len(lengths)}"
        )
    if axes is not None:
        chosen = [canonical_axis(axis, x.ndim) for axis in np.atleast_1d(axes).tolist()]
    else:
        chosen = list(range(0 if lengths is None else x.ndim - len(lengths), x.ndim))
    if lengths is None:
        lengths = [None] * len(chosen)
    if len(lengths) != len(chosen):
        raise ValueError(f"{name}: s={s} and axes={axes} must have the same length.")
    return lengths, chosen


def dct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The discrete cosine transform along an axis.

        type 2:  y[k] = 2 Σ x[j] cos(πk (2j + 1) / 2n)

    Args:
        x: an array; real and imaginary parts of complex numbers are transformed separately.
        type: 1, 2, 3 or 4.
        n: the length of the transform: the axis is cut, or padded with zeros.
        axis: the axis.
        norm: None (or 'backward'), 'ortho' for an orthogonal transform, or 'forward'.

    Raises:
        ValueError: another norm, or an axis out of range.
        NotImplementedError: another type.

    Example:
        >>> import namoo.numpy as jnp
        >>> dct(jnp.array([1.0, 1.0]))
        Array([4., 0.], dtype=float32)
    """
    x = array_of("dct", x)
    return _transform("dct", x, type, [n], [canonical_axis(axis, x.ndim)], norm, False)


def idct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `dct` along an axis.

    Args:
        x, type, n, axis, norm: as for `dct`; the type is that of the transform to invert.

    Raises:
        ValueError, NotImplementedError: as for `dct`.

    Example:
        >>> import namoo.numpy as jnp
        >>> idct(jnp.array([4.0, 0.0]))
        Array([1., 1.], dtype=float32)
    """
    x = array_of("idct", x)
    return _transform("idct", x, type, [n], [canonical_axis(axis, x.ndim)], norm, True)


def dctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform over several axes.

    Args:
        x, type, norm: as for `dct`.
        s: the lengths of the transforms.
        axes: the axes; by default the last ones, as many as `s` has lengths, or all.

    Raises:
        ValueError, NotImplementedError: as for `dct`; or lengths and axes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> dctn(jnp.ones((2, 2)))
        Array([[16.,  0.],
               [ 0.,  0.]], dtype=float32)
    """
    x = array_of("dctn", x)
    lengths, chosen = _chosen_axes("dctn", x, s, axes)
    return _transform("dctn", x, type, lengths, chosen, norm, False)


def idctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` over several axes.

    Args:
        x, type, s, axes, norm: as for `dctn`.

    Raises:
        ValueError, NotImplementedError: as for `dctn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> idctn(jnp.array([[16.0, 0.0], [0.0, 0.0]]))
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    x = array_of("idctn", x)
    lengths, chosen = _chosen_axes("idctn", x, s, axes)
    return _transform("idctn", x, type, lengths, chosen, norm, True)


_guard(globals())
