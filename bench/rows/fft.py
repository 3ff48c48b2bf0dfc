"""Fourier transforms: one line, many lines, images, volumes, and convolutions by them."""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal


def numbers(tiny, shape, real=False):
    """Return random complex, or real, numbers."""
    shape = tuple(min(n, 6) for n in shape) if tiny else shape
    parts = normal(0, *shape), normal(1, *shape)
    return (parts[0] if real else parts[0] + np.complex64(1j) * parts[1],)


def _parts(out):
    """Return the real and the imaginary parts, which differences are measured in."""
    out = np.asarray(out)
    return np.stack([np.real(out), np.imag(out)])


def row(label: str, name: str, *shape: int, real: bool = False) -> Row:
    """Return a row for a function of `fft`, which all four libraries have."""
    return Row(
        f"{label} {shape if len(shape) > 1 else shape[0]}",
        lambda tiny: numbers(tiny, shape, real),
        lambda jax, jnp: jax.jit(getattr(jnp.fft, name)),
        lambda torch, compile, x: partial(getattr(torch.fft, name), x),
        getattr(np.fft, name),
        Goal(jax=1.0, torch=1.0),
        torch_compiles=False,
        seen=_parts,
    )


def convolve(fft, x, y):
    """Return the sums of products of two signals at all shifts, by their spectra."""
    n = 2 * x.shape[0]
    return fft.irfft(fft.rfft(x, n) * fft.rfft(y, n), n)


ROWS = [
    row("fft", "fft", 1024),
    row("fft", "fft", 1 << 20),
    row("fft", "fft", 1000, 1024),
    row("fft", "fft", 4096, 100),
    row("fft of a prime length", "fft", 64, 1009),
    row("fft2", "fft2", 1024, 1024),
    row("fftn", "fftn", 128, 128, 128),
    row("rfft", "rfft", 1000, 1024, real=True),
    row("rfft2", "rfft2", 16, 256, 256, real=True),
    Row(
        "convolution of 2^18 samples",
        lambda tiny: numbers(tiny, (1 << 18,), True) * 2,
        lambda jax, jnp: jax.jit(partial(convolve, jnp.fft)),
        lambda torch, compile, x, y: partial(convolve, torch.fft, x, y),
        partial(convolve, np.fft),
        Goal(jax=1.0, torch=1.0),
        torch_compiles=False,
    ),
]
