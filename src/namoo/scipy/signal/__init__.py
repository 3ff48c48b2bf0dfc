"""Signals: convolution, spectra, trends; JAX's `jax.scipy.signal`.

Example:
    >>> import namoo.numpy as jnp
    >>> import namoo.scipy.signal
    >>> namoo.scipy.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
"""

from namoo.scipy.signal.convolution import convolve as convolve
from namoo.scipy.signal.convolution import convolve2d as convolve2d
from namoo.scipy.signal.convolution import correlate as correlate
from namoo.scipy.signal.convolution import correlate2d as correlate2d
from namoo.scipy.signal.convolution import fftconvolve as fftconvolve
from namoo.scipy.signal.spectra import csd as csd
from namoo.scipy.signal.spectra import istft as istft
from namoo.scipy.signal.spectra import stft as stft
from namoo.scipy.signal.spectra import welch as welch
from namoo.scipy.signal.trends import detrend as detrend
