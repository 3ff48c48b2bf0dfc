"""Spectra of signals that are cut into segments: STFT and back, and averages over segments."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy import fft
from namoo.numpy.creation import concrete
from namoo.numpy.promote import array_of, promote_types
from namoo.primitives.shape import canonical_axis
from namoo.scipy.signal.trends import detrend as remove_trend


def _integer(name: str, value: Any) -> int:
    return int(concrete(value, f"{name} of a transform of segments"))


def _named_window(window: Any, length: int) -> np.ndarray:
    """The values of one of SciPy's named windows."""
    if isinstance(window, str) and window == "hann":
        place = np.arange(length) / max(length, 1)
        return np.ones(1) if length == 1 else np.sin(np.pi * place) ** 2
    from scipy.signal import get_window

    return np.asarray(get_window(window, length))


def _window(window: Any, nperseg: int | None, length: int, dtype: Any) -> tuple[Array, int]:
    """The window, and the length of the segments."""
    if isinstance(window, (str, tuple)):
        size = length if nperseg is None else nperseg
        if size > length:
            warnings.warn(
                f"nperseg={size} is greater than the length {length} of the signal; "
                f"nperseg={length} is used.",
                stacklevel=4,
            )
            size = length
        return jnp.asarray(_named_window(window, size), dtype), size
    values = jnp.asarray(window, dtype)
    if values.ndim != 1:
        raise ValueError(f"window must be a vector, got shape {values.shape}.")
    if length < values.size:
        raise ValueError(f"window of {values.size} is longer than the signal of {length}.")
    if nperseg not in (None, values.size):
        raise ValueError(f"nperseg={nperseg} differs from the length {values.size} of the window.")
    return values, values.size


def _odd(x: Array, n: int) -> Array:
    """Extend at both ends by the signal rotated by 180 degrees about its end points."""
    first, last = x[..., :1], x[..., -1:]
    left = 2 * first - jnp.flip(x[..., 1 : n + 1], -1)
    right = 2 * last - jnp.flip(x[..., -n - 1 : -1], -1)
    return jnp.concatenate([left, x, right], axis=-1)


_PADS = {"even": "reflect", "constant": "edge", "zeros": "constant"}


def _extend(x: Array, n: int, boundary: str | None) -> Array:
    """Extend a signal by n elements at both ends."""
    if boundary is None or n < 1:
        return x
    if boundary == "odd":
        return _odd(x, n)
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=_PADS[boundary])


def _longer(x: Array, length: int) -> Array:
    """A signal with zeros at its end."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _trend_remover(detrend: Any, axis: int) -> Callable[[Array], Array]:
    """The function that removes the trend of segments, whose last axis is time."""
    if isinstance(detrend, str):
        return lambda segments: remove_trend(segments, type=detrend)
    if callable(detrend):
        # The user's function expects time at the signal's axis.
        return lambda segments: jnp.moveaxis(detrend(jnp.moveaxis(segments, -1, axis)), axis, -1)
    if detrend:
        raise ValueError(
            f"detrend must be 'linear', 'constant', a function or False, got {detrend!r}."
        )
    return lambda segments: segments


def _segment_indices(length: int, size: int, step: int) -> np.ndarray:
    """The indices of the elements of each segment, [segments, size]."""
    starts = np.arange(0, max(length - size + 1, 0), step)
    return starts[:, None] + np.arange(size)


class _Segments(NamedTuple):
    """How a signal is cut into segments."""

    window: Array
    size: int
    """The length of a segment."""
    overlap: int
    """How many elements a segment shares with the next."""
    count: int
    """The length of the transform."""


def _segments(x: Array, axis: int, window: Any, nperseg: Any, noverlap: Any, nfft: Any):
    """The segments of signals along an axis; the arguments are not compared yet."""
    if nperseg is not None:
        nperseg = _integer("nperseg", nperseg)
        if nperseg < 1:
            raise ValueError(f"nperseg must be a positive integer, got {nperseg}.")
    values, size = _window(window, nperseg, x.shape[axis], x.dtype)
    overlap = size // 2 if noverlap is None else _integer("noverlap", noverlap)
    return _Segments(values, size, overlap, size if nfft is None else _integer("nfft", nfft))


def _outer_shape(shapes: list[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """The common shape of all axes but that of time."""
    others = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    try:
        return jnp.broadcast_shapes(*others)
    except ValueError:
        raise ValueError(f"x and y cannot be broadcast together, got shapes {shapes}.") from None


def _signals(axis: Any, *signals: Any) -> tuple[list[Array], int]:
    """Signals of one inexact type that broadcast together, and their axis of time."""
    arrays = [array_of("signal", x) for x in signals]
    arrays = promote_types("signal", *arrays, to=dtypes.to_inexact_dtype)
    axis = canonical_axis(operator.index(axis), arrays[0].ndim)
    shapes = [x.shape for x in arrays]
    if len(set(map(len, shapes))) > 1:
        raise ValueError(f"x and y must have the same rank, got shapes {shapes}.")
    _outer_shape(shapes, axis)
    return arrays, axis


def _no_spectra(signals: list[Array], axis: int) -> tuple[Array, Array, Array]:
    """The results for signals without elements."""
    shapes = [x.shape for x in signals]
    outer, least = _outer_shape(shapes, axis), min(shape[axis] for shape in shapes)
    shape = (*outer[:axis], least, *outer[axis:])
    dtype = dtypes.to_complex_dtype(signals[0].dtype)
    real = dtypes.finfo(dtype).dtype
    return jnp.zeros(shape, real), jnp.zeros(shape, real), jnp.zeros(shape, dtype)


def _transforms(
    signals: list[Array],
    axis: int,
    segments: _Segments,
    detrend: Any,
    onesided: bool,
    boundary: str | None = None,
    padded: bool = False,
) -> tuple[list[Array], int]:
    """The transforms of all segments of each signal, [..., segment, frequency].

    Returns:
        The transforms, and the length of the extended signals.
    """
    window, size, overlap, count = segments
    if count < size:
        raise ValueError(f"nfft={count} must not be less than nperseg={size}.")
    if overlap >= size:
        raise ValueError(f"noverlap={overlap} must be less than nperseg={size}.")
    step, remove = size - overlap, _trend_remover(detrend, axis)
    signals = [jnp.moveaxis(x, axis, -1) for x in signals]
    longest = max(x.shape[-1] for x in signals)
    signals = [_extend(_longer(x, longest), size // 2, boundary) for x in signals]
    length = signals[0].shape[-1]
    if padded:
        length += -(length - size) % step % size
        signals = [_longer(x, length) for x in signals]
    indices = _segment_indices(length, size, step)
    transform = fft.rfft if onesided else fft.fft
    return [transform(window * remove(x[..., indices]), n=count) for x in signals], length


def _is_onesided(x: Array, return_onesided: bool) -> bool:
    if return_onesided and jnp.iscomplexobj(x):
        warnings.warn(
            "A spectrum of complex numbers has two sides: return_onesided=False is used.",
            stacklevel=3,
        )
        return False
    return return_onesided


def _frequencies(count: int, fs: Any, onesided: bool, dtype: Any) -> Array:
    return (fft.rfftfreq if onesided else fft.fftfreq)(count, 1 / fs, dtype=dtype)


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: spectra of overlapping segments of a signal.

    Args:
        x: signals.
        fs: the sampling frequency.
        window: the name of a window (with parameters, a tuple), or its values.
        nperseg: the length of a segment.
        noverlap: how many elements a segment shares with the next; half of it by default.
        nfft: the length of the transform, `nperseg` by default; segments are padded with zeros.
        detrend: 'linear', 'constant', a function of segments, or False.
        return_onesided: frequencies from zero up, for real signals; otherwise all.
        boundary: how the ends are extended by half a segment: 'even', 'odd', 'constant', 'zeros',
            or None for not at all.
        padded: add zeros, so that whole segments cover the signal.
        axis: the axis of time.

    Returns:
        Frequencies, times, and the transforms: frequencies at `axis`, segments last.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> frequencies, times, z = stft(jnp.arange(8.0), nperseg=4)
        >>> z.shape
        (3, 5)
    """
    if boundary is not None and boundary != "odd" and boundary not in _PADS:
        raise ValueError(
            f"boundary must be 'even', 'odd', 'constant', 'zeros' or None, got {boundary!r}."
        )
    signals, axis = _signals(axis, x)
    segments = _segments(signals[0], axis, window, nperseg, noverlap, nfft)
    if signals[0].size == 0:
        return _no_spectra(signals, axis)
    onesided = _is_onesided(signals[0], return_onesided)
    [out], length = _transforms(signals, axis, segments, detrend, onesided, boundary, padded)
    dtype = dtypes.to_complex_dtype(signals[0].dtype)
    real = dtypes.finfo(dtype).dtype
    out = (out * jnp.sqrt(1.0 / segments.window.sum() ** 2)).astype(dtype)
    size, step = segments.size, segments.size - segments.overlap
    times = jnp.arange(size / 2, length - size / 2 + 1, step, dtype=real) / fs
    if boundary is not None:
        times = times - size / 2 / fs
    return _frequencies(segments.count, fs, onesided, real), times, jnp.moveaxis(out, -1, axis)


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density of two signals by Welch's method.

    Args:
        x: signals.
        y: other signals, or None for `x` itself.
        fs, window, noverlap, nfft, detrend, return_onesided, axis: as for `stft`.
        nperseg: the length of a segment; that of the signal, or of the window, by default.
        scaling: 'density', or 'spectrum' for the power itself.
        average: how segments are averaged, 'mean' or 'median'.

    Returns:
        Frequencies, and the density, complex where `y` is given.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
        >>> csd(x, 2 * x, nperseg=2, detrend=False)[1].real
        Array([2., 2.], dtype=float32)
    """
    signals, axis = _signals(axis, x, *([] if y is None else [y]))
    segments = _segments(signals[0], axis, window, nperseg, noverlap, nfft)
    if any(signal.size == 0 for signal in signals):
        frequencies, _, power = _no_spectra(signals, axis)
        return frequencies, power
    window = segments.window
    if scaling == "density":
        scale = 1.0 / (fs * (window * window).sum())
    elif scaling == "spectrum":
        scale = 1.0 / window.sum() ** 2
    else:
        raise ValueError(f"scaling must be 'density' or 'spectrum', got {scaling!r}.")
    onesided = _is_onesided(signals[0], return_onesided)
    transforms, _ = _transforms(signals, axis, segments, detrend, onesided)
    power = jnp.conj(transforms[0]) * transforms[-1] * jnp.asarray(scale)
    if onesided:
        # Each frequency but zero, and the highest of an even number, counts twice.
        power = power.at[..., 1 : None if segments.count % 2 else -1].multiply(2)
    dtype = dtypes.to_complex_dtype(signals[0].dtype)
    power = jnp.moveaxis(power.astype(dtype), -1, axis)
    if y is None:
        power = jnp.real(power)
    frequencies = _frequencies(segments.count, fs, onesided, dtypes.finfo(dtype).dtype)
    if power.ndim < 2 or power.size == 0:
        return frequencies, power
    if power.shape[-1] == 1:
        return frequencies, power[..., 0]
    if average == "mean":
        return frequencies, power.mean(axis=-1)
    if average != "median":
        raise ValueError(f"average must be 'mean' or 'median', got {average!r}.")
    if jnp.iscomplexobj(power):
        parts = jnp.median(jnp.real(power), axis=-1), jnp.median(jnp.imag(power), axis=-1)
        middle = parts[0] + 1j * parts[1]
    else:
        middle = jnp.median(power, axis=-1)
    return frequencies, middle / _median_bias(power.shape[-1])


def _median_bias(count: int) -> float:
    """How much less than its mean the median of `count` exponential variables is."""
    even = np.arange(2.0, count, 2)
    return float(1 + np.sum(1 / (even + 1) - 1 / even))


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal: the average over overlapping segments.

    Args:
        x: signals.
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as
            for `csd`.

    Returns:
        Frequencies, and the density.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> welch(jnp.array([1.0, -1.0, 1.0, -1.0]), nperseg=2, detrend=False)[1]
        Array([1., 1.], dtype=float32)
    """
    frequencies, power = csd(
        x,
        None,
        fs=fs,
        window=window,
        nperseg=nperseg,
        noverlap=noverlap,
        nfft=nfft,
        detrend=detrend,
        return_onesided=return_onesided,
        scaling=scaling,
        axis=axis,
        average=average,
    )
    return frequencies, jnp.real(power)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of a short-time Fourier transform: the inverse of `stft`.

    Args:
        Zxx: the transforms of segments.
        fs, window, noverlap: as for `stft`.
        nperseg: the length of a segment; by default the even length that fits `Zxx`.
        nfft: the length of the transform.
        input_onesided: the frequencies are those from zero up.
        boundary: the ends were extended by half a segment, which is removed.
        time_axis: the axis of segments.
        freq_axis: the axis of frequencies.

    Returns:
        Times, and the signals, with the time at `time_axis` of the remaining axes.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> times, x = istft(stft(jnp.arange(8.0), nperseg=4)[2])
        >>> x.round(3)
        Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    z = array_of("istft", Zxx)
    if z.ndim < 2:
        raise ValueError(f"istft: Zxx must have two axes at least, got shape {z.shape}.")
    freq_axis, time_axis = (canonical_axis(axis, z.ndim) for axis in (freq_axis, time_axis))
    if freq_axis == time_axis:
        raise ValueError("istft: time_axis and freq_axis must be different axes.")
    z = z.astype(dtypes.to_complex_dtype(z.dtype))
    default = 2 * (z.shape[freq_axis] - 1) if input_onesided else z.shape[freq_axis]
    size = _integer("nperseg", nperseg or default)
    if size < 1:
        raise ValueError(f"nperseg must be a positive integer, got {size}.")
    if nfft is None:
        # A transform of one more element has as many frequencies.
        count = default + (input_onesided and size == default + 1)
    else:
        count = _integer("nfft", nfft)
    if count < size:
        raise ValueError(f"nfft={count} must not be less than nperseg={size}.")
    overlap = _integer("noverlap", noverlap or size // 2)
    if overlap >= size:
        raise ValueError(f"noverlap={overlap} must be less than nperseg={size}.")

    z = jnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    segments = (fft.irfft if input_onesided else fft.ifft)(z, n=count)[..., :size]
    if isinstance(window, (str, tuple)):
        win = jnp.asarray(_named_window(window, size), segments.dtype)
    else:
        win = jnp.asarray(window)
        if win.ndim != 1 or win.shape[0] != size:
            raise ValueError(f"window must be a vector of {size} elements, got shape {win.shape}.")
    step = size - overlap
    length = step * (segments.shape[-2] - 1) + size
    indices = _segment_indices(length, size, step)
    # Overlapping segments add up, and so do the squares of the window.
    total = segments * (win * win.sum())
    x = jnp.zeros((*total.shape[:-2], length), total.dtype).at[..., indices].add(total)
    squares = jnp.broadcast_to(win * win, indices.shape)
    norm = jnp.zeros(length, squares.dtype).at[indices].add(squares)
    if boundary:
        kept = slice(size // 2, length - size // 2)
        x, norm = x[..., kept], norm[kept]
    x = x / jnp.where(jnp.abs(norm) > 1e-10, norm, 1.0)
    times = jnp.arange(x.shape[-1], dtype=dtypes.finfo(x.dtype).dtype) / fs
    return times, jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
