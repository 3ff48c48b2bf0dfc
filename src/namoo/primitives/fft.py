"""Discrete Fourier transforms over the last axes of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo.analysis import sharding_rules as rules
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive
from namoo.primitives.elementwise import conj, div, mul
from namoo.primitives.shape import broadcast_to, convert_element_type, moveaxis

__all__ = ["fft", "fft_p", "FftType"]


@cached("primitives.fft module", bound=1, keyed_by="nothing", kept=True)
def _transforms() -> Any:
    """SciPy's transforms, or NumPy's, which take longer, where SciPy is not installed."""
    try:
        import scipy.fft
    except ModuleNotFoundError:
        return np.fft
    return scipy.fft


class FftType(IntEnum):
    """Which transform: of complex numbers or of real ones, forward or inverse."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class Fft(Primitive):
    """A discrete Fourier transform over the last `len(fft_lengths)` axes."""

    name, linear = "fft", True

    def evaluate(self, x, *, fft_type, fft_lengths):
        if 0 in x.shape or 0 in fft_lengths:  # SciPy rejects empty arrays
            out = self.abstract(aval_of(x), fft_type=fft_type, fft_lengths=fft_lengths)
            return np.zeros(out.shape, out.dtype)
        axes = range(-len(fft_lengths), 0)
        if fft_type == FftType.FFT:
            return _transforms().fftn(x, axes=axes)
        if fft_type == FftType.IFFT:
            return _transforms().ifftn(x, axes=axes)
        if fft_type == FftType.RFFT:
            return _transforms().rfftn(x, axes=axes)
        return _transforms().irfftn(x, s=fft_lengths, axes=axes)

    def abstract(self, x, *, fft_type, fft_lengths):
        n = len(fft_lengths)
        if len(x.shape) < n:
            raise ValueError(
                f"FFT input shape {x.shape} must have at least as many input dimensions as "
                f"fft_lengths {fft_lengths}."
            )
        batch, last = x.shape[: len(x.shape) - n], x.shape[len(x.shape) - n :]
        half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        expected = half if fft_type == FftType.IRFFT else fft_lengths
        if last != expected:
            text = (
                f"all except the last fft_length, got fft_lengths={fft_lengths}, and the last one "
                f"to fft_lengths[-1] // 2 + 1 = {half[-1]}"
                if fft_type == FftType.IRFFT
                else f"fft_lengths {fft_lengths}"
            )
            raise ValueError(
                f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to {text}."
            )
        if fft_type == FftType.RFFT:
            return ShapedArray((*batch, *half), dtypes.to_complex_dtype(x.dtype), x.weak_type)
        if fft_type == FftType.IRFFT:
            real = np.dtype(np.float32 if x.dtype == np.complex64 else np.float64)
            return ShapedArray((*batch, *fft_lengths), real, x.weak_type)
        return x

    def sharded(self, x, *, fft_type, fft_lengths):
        last = list(fft_lengths)
        if fft_type == FftType.RFFT:
            last[-1] = last[-1] // 2 + 1
        return rules.resized("fft", x, [*x.shape[: len(x.shape) - len(last)], *last])

    def transpose(self, ct, x, *, fft_type, fft_lengths):
        if fft_type == FftType.RFFT:
            # conj(ct) turns the sum over frequencies into an inverse transform, in which each
            # frequency that also represents its mirror image counts twice.
            weights = _multiplicity(fft_lengths[-1], aval_of(ct))
            out = fft(div(conj(ct), weights), FftType.IRFFT, fft_lengths)
            return [mul(out, np.asarray(math.prod(fft_lengths), aval_of(out).dtype))]
        if fft_type == FftType.IRFFT:
            out = fft(ct, FftType.RFFT, fft_lengths)
            scale = np.asarray(1 / math.prod(fft_lengths), aval_of(out).dtype)
            return [conj(mul(out, mul(scale, _multiplicity(fft_lengths[-1], aval_of(out)))))]
        return [fft(ct, fft_type, fft_lengths)]

    def batch(self, xs, dims, **params):
        return self.bind(moveaxis(xs[0], dims[0], 0), **params), 0

    def native(self, emit, x, *, fft_type, fft_lengths):
        return emit.fft(x, fft_type.name, fft_lengths)

    def stablehlo(self, hlo, x, *, fft_type, fft_lengths):
        out = hlo.avals[0]
        if 0 in x.shape or 0 in out.shape:
            return hlo.constant(0, out.dtype, out.shape)
        if len(fft_lengths) > 3:  # more axes than XLA transforms at once
            return hlo.apply(lambda x: _by_axes(x, fft_type, fft_lengths), x)
        return hlo.op(
            "fft", x, fft_type=f"#stablehlo<fft_type {fft_type.name}>", fft_length=fft_lengths
        )


def _by_axes(x: Any, fft_type: FftType, lengths: tuple[int, ...]) -> Any:
    """A transform of many axes: over the last three, and before or after that over the others."""
    first, n = len(lengths) - 3, len(aval_of(x).shape)
    whole = FftType.IFFT if fft_type in (FftType.IFFT, FftType.IRFFT) else FftType.FFT
    steps: list = [lambda x: fft(x, fft_type, lengths[first:])]
    for i in range(first):
        axis = n - len(lengths) + i
        steps.append(
            lambda x, axis=axis, size=lengths[i]: moveaxis(
                fft(moveaxis(x, axis, n - 1), whole, (size,)), n - 1, axis
            )
        )
    # Only the spectrum of real numbers is halved: that axis comes first, or last in the inverse.
    for step in reversed(steps) if fft_type == FftType.IRFFT else steps:
        x = step(x)
    return x


def _multiplicity(length: int, aval: ShapedArray) -> Any:
    """How often each of the kept frequencies occurs in the whole spectrum: 2, and 1 at the ends."""
    weights = np.full(length // 2 + 1, 2, aval.dtype)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    return broadcast_to(EagerArray(weights), aval.shape)


fft_p = Fft()


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Discrete Fourier transform over the last axes: yₖ = Σₙ xₙ exp(-2πi k·n/N).

    Args:
        x: the operand; integers become floats, and reals become complex where needed.
        fft_type: an `FftType` or its name: FFT, IFFT, RFFT or IRFFT.
        fft_lengths: the lengths of the transformed axes; for IRFFT those of the result.

    Returns:
        The transformed array.  RFFT keeps the first n//2 + 1 frequencies of the last axis, and
        IRFFT takes them.

    Raises:
        ValueError: the operand's shape does not fit `fft_lengths`, or RFFT got complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> fft(jnp.array([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,))
        Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    fft_type, lengths = _fft_type(fft_type), canonical_shape(fft_lengths)
    dtype = aval_of(x).dtype
    if fft_type == FftType.RFFT:
        if dtype.kind == "c":
            raise ValueError(
                f"RFFT takes real numbers, got dtype {dtype}: use FFT for complex ones."
            )
        wanted = dtypes.to_inexact_dtype(dtype)
        if wanted not in (np.float32, np.float64):
            raise ValueError(
                f"RFFT input must be float32 or float64, got {dtype}: convert it first."
            )
    else:
        wanted = dtypes.to_complex_dtype(dtype)
    if not lengths:
        # A transform over no axes is the identity.
        return convert_element_type(x, wanted)
    x = convert_element_type(x, wanted)
    fft_p.abstract(aval_of(x), fft_type=fft_type, fft_lengths=lengths)
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=lengths)


def _fft_type(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"fft_type must be an FftType or its name, got {fft_type!r}.")
    try:
        return FftType[fft_type.upper()]
    except KeyError:
        names = ", ".join(FftType.__members__)
        raise ValueError(f"Unknown FFT type {fft_type!r}: write one of {names}.") from None
