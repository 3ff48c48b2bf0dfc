"""Discrete Fourier transforms.

Example:
    >>> import namoo.numpy as jnp
    >>> jnp.fft.ifft(jnp.fft.fft(jnp.array([1.0, 2.0, 3.0]))).real
    Array([1., 2., 3.], dtype=float32)
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "numpy.fft.frequencies": "fftfreq fftshift ifftshift rfftfreq",
    "numpy.fft.transforms": (
        "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn"
    ),
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
