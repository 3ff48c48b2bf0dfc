"""Signals: convolution, spectra, trends; JAX's `jax.scipy.signal`.

Example:
    >>> import namoo.numpy as jnp
    >>> import namoo.scipy.signal
    >>> namoo.scipy.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve
from namoo.scipy.signal.spectra import csd, istft, stft, welch
from namoo.scipy.signal.trends import detrend

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]
__dir__ = __all__.copy

_guard(globals())
