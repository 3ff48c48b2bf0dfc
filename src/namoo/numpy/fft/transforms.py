"""Discrete Fourier transforms over chosen axes.

All transforms are one function, `_transform`: cut or pad the axes, move them to the end, transform,
scale, and move them back.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import array_of
from namoo.numpy.same_type import const
from namoo.primitives import fft as primitive
from namoo.primitives.elementwise import mul
from namoo.primitives.fft import FftType
from namoo.primitives.linalg.matrices import conjugate
from namoo.primitives.shape import canonical_axis, transpose
from namoo.primitives.slicing import pad

_INVERSE = (FftType.IFFT, FftType.IRFFT)


def _scale(norm: str | None, inverse: bool, count: int) -> float:
    """The factor by which a transform of `count` elements with 1/n on the way back is scaled."""
    if norm in (None, "backward"):
        return 1.0
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return count if inverse else 1 / count
    raise ValueError(
        f"Invalid norm value {norm!r}; write norm='backward', norm='ortho' or norm='forward'."
    )


def _axes(name: str, ndim: int, s: Sequence[int] | None, axes: Any) -> tuple[int, ...]:
    """The axes of a transform, counted from the front."""
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    if s is not None and len(s) != len(axes):
        raise ValueError(
            f"jax.numpy.fft.{name}: s has {len(s)} lengths for {len(axes)} axes; give one for each "
            "axis."
        )
    found = tuple(canonical_axis(axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}.")
    return found


def _resize(x: Array, sizes: Sequence[int]) -> Array:
    """Cut each axis at its end, or fill it up with zeros there."""
    if tuple(sizes) == x.shape:
        return x
    config = [(0, new - old, 0) for old, new in zip(x.shape, sizes, strict=True)]
    return pad(x, const(x, 0), config)


def _transform(
    name: str,
    kind: FftType,
    a: Any,
    s: Sequence[int] | None,
    axes: Any,
    norm: str | None,
) -> Array:
    x = array_of(f"jax.numpy.fft.{name}", a)
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(n <= 0 for n in s):
            raise ValueError(
                f"jax.numpy.fft.{name}: the lengths of the transformed axes must be positive, got "
                f"{s}."
            )
    axes = _axes(name, x.ndim, s, axes)
    if kind == FftType.RFFT and np.dtype(x.dtype).kind == "c":
        raise ValueError(
            f"jax.numpy.fft.{name} takes real numbers, got dtype {x.dtype}: use fft, fft2 or fftn."
        )
    others = tuple(i for i in range(x.ndim) if i not in axes)
    order = (*others, *axes)
    x = transpose(x, order)
    lengths = list(s if s is not None else x.shape[len(others) :])
    taken = list(lengths)
    if kind == FftType.IRFFT and axes:
        if s is None:
            lengths[-1] = max(0, 2 * (taken[-1] - 1))
        taken[-1] = lengths[-1] // 2 + 1
    x = _resize(x, (*x.shape[: len(others)], *taken))
    x = primitive.fft(x, kind, lengths)
    factor = _scale(norm, kind in _INVERSE, math.prod(lengths))
    if factor != 1.0:
        x = mul(x, const(x, factor))
    return transpose(x, np.argsort(order))


def _one_axis(
    name: str, kind: FftType, a: Any, n: int | None, axis: Any, norm: str | None
) -> Array:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft."
            f"{'rfftn' if name == 'ihfft' else 'irfftn' if name == 'hfft' else name + 'n'}. "
            f"Got axis = {axis}."
        )
    axes = (-1,) if axis is None else (axis,)
    return _transform(name, kind, a, None if n is None else (n,), axes, norm)


def _two_axes(
    name: str, kind: FftType, a: Any, s: Sequence[int] | None, axes: Any, norm: str | None
) -> Array:
    if len(axes) != 2:
        raise ValueError(
            f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}. Use jax.numpy.fft."
            f"{name[:-1]}n for any number."
        )
    return _transform(name, kind, a, s, axes, norm)


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform over one axis: yₖ = Σₘ aₘ exp(-2πi k m / n).

    Args:
        a: the array.
        n: length of the axis: the array is cut or filled with zeros to it.
        axis: the axis.
        norm: which direction is divided by n: 'backward' (the inverse one), 'forward' (this one),
            or 'ortho' (both, by √n).

    Returns:
        A complex array of the same shape, apart from `n`.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, or `norm` is unknown.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _one_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`: aₘ = 1/n Σₖ yₖ exp(2πi k m / n).

    Args:
        a, n, axis, norm: as for `fft`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.ifft(jnp.ones(4)).real
        Array([1., 0., 0., 0.], dtype=float32)
    """
    return _one_axis("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n//2 + 1 frequencies of the transform of real numbers; the rest is their mirror.

    Args:
        a: a real array.
        n, axis, norm: as for `fft`.

    Raises:
        ValueError: the array is complex, or as for `fft`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
        Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _one_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`, a real array.

    Args:
        a: the first frequencies.
        n: length of the result's axis; 2·(frequencies - 1) by default.
        axis, norm: as for `fft`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.irfft(jnp.array([10.0, -2 + 2j, -2.0]))
        Array([1., 2., 3., 4.], dtype=float32)
    """
    return _one_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def _turned(norm: str | None) -> str | None:
    """The scaling of the other direction."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of numbers that are symmetric: a₋ₘ is the conjugate of aₘ.

    Args:
        a: the first half of the symmetric array.
        n: length of the result's axis; 2·(length - 1) by default.
        axis, norm: as for `fft`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
        Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    x = conjugate(array_of("jax.numpy.fft.hfft", a))
    return _one_axis("hfft", FftType.IRFFT, x, n, axis, _turned(norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first half of a symmetric array.

    Args:
        a: a real array.
        n, axis, norm: as for `fft`.

    Raises:
        ValueError: the array is complex, or as for `fft`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.ihfft(jnp.array([8.0, -2.0, 0.0, -2.0])).real
        Array([1., 2., 3.], dtype=float32)
    """
    return conjugate(_one_axis("ihfft", FftType.RFFT, a, n, axis, _turned(norm)))


def fftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm=None
) -> Array:
    """The discrete Fourier transform over several axes.

    Args:
        a: the array.
        s: the length of each axis: the array is cut or filled with zeros to them.
        axes: the axes; the last `len(s)` by default, or all.
        norm: as for `fft`.

    Raises:
        ValueError: axes that are out of range or repeated, lengths that are not positive or not
            as many as the axes, or an unknown `norm`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.fftn(jnp.ones((2, 2))).real
        Array([[4., 0.],
               [0., 0.]], dtype=float32)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm=None
) -> Array:
    """The inverse of `fftn`.

    Args:
        a, s, axes, norm: as for `fftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.ifftn(jnp.ones((2, 2))).real
        Array([[1., 0.],
               [0., 0.]], dtype=float32)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm=None
) -> Array:
    """`fftn` of real numbers: `rfft` over the last of the axes, `fft` over the others.

    Args:
        a: a real array.
        s, axes, norm: as for `fftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
        (2, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm=None
) -> Array:
    """The inverse of `rfftn`, a real array.

    Args:
        a: the frequencies.
        s: the lengths of the result's axes.
        axes, norm: as for `fftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
        (2, 4)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """`fftn` over two axes, the last ones by default.

    Args:
        a, s, axes, norm: as for `fftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.fft2(jnp.ones((3, 2, 2))).shape
        (3, 2, 2)
    """
    return _two_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `fft2`.

    Args:
        a, s, axes, norm: as for `fftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.ifft2(jnp.ones((3, 2, 2))).shape
        (3, 2, 2)
    """
    return _two_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """`rfftn` over two axes, the last ones by default.

    Args:
        a, s, axes, norm: as for `rfftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.rfft2(jnp.ones((3, 2, 4))).shape
        (3, 2, 3)
    """
    return _two_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `rfft2`, a real array.

    Args:
        a, s, axes, norm: as for `irfftn`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.irfft2(jnp.ones((3, 2, 3))).shape
        (3, 2, 4)
    """
    return _two_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


attach_shortcuts(globals())
