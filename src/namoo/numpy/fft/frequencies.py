"""The frequencies that belong to the elements of a transform, and another order of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.numpy.device_arguments import placed
from namoo.numpy.promote import array_of
from namoo.primitives.elementwise import div, mul
from namoo.primitives.shape import convert_element_type, reshape
from namoo.primitives.slicing import concatenate, slice_in_dim


def _frequencies(name: str, count: Any, steps: np.ndarray, d: Any, dtype: Any) -> Array:
    dtype = dtypes.check_user_dtype_supported(dtype or float, name)
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}."
        )
    work = dtypes.to_inexact_dtype(dtype)
    spacing = convert_element_type(array_of(name, d), work)
    line = EagerArray(steps.astype(work))
    return convert_element_type(div(line, mul(np.asarray(count, work), spacing)), dtype)


def _count(name: str, n: Any) -> Any:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n}.")
    return n


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies that the elements of `fft` belong to: [0, 1, …, -2, -1] / (n·d).

    Args:
        n: how many elements.
        d: distance between samples.
        dtype: type of the result.
        device: the device or the sharding of the array.

    Raises:
        ValueError: `n` or `d` is a sequence.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.fftfreq(4)
        Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    if device is not None:
        return placed("jax.numpy.fft.fftfreq", fftfreq(n, d, dtype=dtype), device)
    n = _count("fftfreq", n)
    half = (n - 1) // 2 + 1
    steps = np.concatenate([np.arange(half), np.arange(-(n // 2), 0)])
    return _frequencies("fftfreq", n, steps, d, dtype)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies that the elements of `rfft` belong to: [0, 1, …, n//2] / (n·d).

    Args:
        n, d, dtype, device: as for `fftfreq`.

    Raises:
        ValueError: `n` or `d` is a sequence.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.rfftfreq(4)
        Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    if device is not None:
        return placed("jax.numpy.fft.rfftfreq", rfftfreq(n, d, dtype=dtype), device)
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", n, np.arange(n // 2 + 1), d, dtype)


def _rotate(name: str, x: Any, axes: Any, forward: bool) -> Array:
    x = array_of(name, x)
    if axes is None:
        axes = range(x.ndim)
    elif not isinstance(axes, (tuple, list, range)):
        axes = (axes,)
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(
                f"jax.numpy.fft.{name}: axis {axis} is out of range for shape {x.shape}."
            )
        n = x.shape[axis]
        cut = n - n // 2 if forward else n // 2
        if 0 < cut < n:
            axis = axis % x.ndim
            parts = [slice_in_dim(x, cut, n, axis=axis), slice_in_dim(x, 0, cut, axis=axis)]
            x = concatenate(parts, axis)
    return reshape(x, x.shape)


def fftshift(x: Any, axes: Any = None) -> Array:
    """Rotate axes so that frequency 0, the first element, comes to the middle.

    Args:
        x: the array.
        axes: an axis, several, or None for all.

    Raises:
        IndexError: an axis is out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.fftshift(jnp.fft.fftfreq(5, 0.2))
        Array([-2., -1.,  0.,  1.,  2.], dtype=float32)
    """
    return _rotate("fftshift", x, axes, True)


def ifftshift(x: Any, axes: Any = None) -> Array:
    """The inverse of `fftshift`.

    Args:
        x, axes: as for `fftshift`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
        Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _rotate("ifftshift", x, axes, False)


attach_shortcuts(globals())
