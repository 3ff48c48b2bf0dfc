"""Window functions, which fade a signal in and out."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.numpy.creation import concrete
from namoo.numpy.elementary import i0
from namoo.numpy.promote import array_of
from namoo.primitives.shape import check_lengths


def _points(M: Any, name: str) -> np.ndarray:
    """The numbers 0, 1, …, M - 1 as floats."""
    count = int(concrete(M, f"the length of the window jnp.{name}"))
    check_lengths(name, (count,))
    return np.arange(count, dtype=dtypes.default_float_dtype())


def _cosines(M: Any, name: str, *weights: float) -> Array:
    """Σ wₖ cos(2πk·n / (M - 1))"""
    n = _points(M, name)
    if n.size == 1:
        return EagerArray(np.ones_like(n))
    angle = 2 * np.pi * n.astype(np.float64) / (n.size - 1)
    window = sum(w * np.cos(k * angle) for k, w in enumerate(weights))
    return EagerArray(np.asarray(window).astype(n.dtype))


def bartlett(M: int) -> Array:
    """The triangular window of M points, which is 0 at both ends.

    Raises:
        TypeError: `M` is negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bartlett(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    n = _points(M, "bartlett")
    if n.size == 1:
        return EagerArray(np.ones_like(n))
    return EagerArray((1 - np.abs(2 * n - (n.size - 1)) / (n.size - 1)).astype(n.dtype))


def blackman(M: int) -> Array:
    """The window 0.42 - 0.5 cos(2πn/(M-1)) + 0.08 cos(4πn/(M-1)) of M points.

    Raises:
        TypeError: `M` is negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.blackman(5).round(3)
        Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _cosines(M, "blackman", 0.42, -0.5, 0.08)


def hamming(M: int) -> Array:
    """The window 0.54 - 0.46 cos(2πn/(M-1)) of M points.

    Raises:
        TypeError: `M` is negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.hamming(5)
        Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _cosines(M, "hamming", 0.54, -0.46)


def hanning(M: int) -> Array:
    """The window 0.5 - 0.5 cos(2πn/(M-1)) of M points.

    Raises:
        TypeError: `M` is negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.hanning(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(M, "hanning", 0.5, -0.5)


def kaiser(M: int, beta: Any) -> Array:
    """The window I₀(β √(1 - (2n/(M-1) - 1)²)) / I₀(β) of M points.

    Args:
        M: how many points.
        beta: how narrow the window is; 0 is a rectangle.

    Raises:
        TypeError: `M` is negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.kaiser(5, 8.0).round(4)
        Array([0.0023, 0.369 , 1.    , 0.369 , 0.0023], dtype=float32)
    """
    n = _points(M, "kaiser")
    if n.size == 1:
        return EagerArray(np.ones_like(n))
    place = 2 * n / max(n.size - 1, 1) - 1
    height = EagerArray(np.sqrt(np.maximum(1 - place * place, 0)).astype(n.dtype))
    scale = array_of("kaiser", beta).astype(n.dtype)
    return i0(scale * height) / i0(scale)
