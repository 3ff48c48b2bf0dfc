"""Rows for `namoo.primitives.fft`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.fft import FftType, fft_p

rng = np.random.default_rng(0)
FFT, IFFT, RFFT, IRFFT = FftType


def real(*shape):
    return rng.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def over(fft_type, *lengths):
    return {"fft_type": fft_type, "fft_lengths": lengths}


SAMPLES = [
    Sample(fft_p, [complex_(2, 4)], over(FFT, 4), name="FFT", oracle=np.fft.fft),
    Sample(fft_p, [complex_(2, 5)], over(IFFT, 5), name="IFFT, odd", oracle=np.fft.ifft),
    Sample(fft_p, [real(3, 6)], over(RFFT, 6), name="RFFT", oracle=np.fft.rfft),
    Sample(fft_p, [real(5)], over(RFFT, 5), name="RFFT, odd", oracle=np.fft.rfft),
    Sample(fft_p, [complex_(3, 4)], over(IRFFT, 6), name="IRFFT", oracle=np.fft.irfft),
    Sample(
        fft_p,
        [complex_(4)],
        over(IRFFT, 7),
        name="IRFFT, odd",
        oracle=lambda x: np.fft.irfft(x, 7),
    ),
    Sample(fft_p, [complex_(2, 3, 4)], over(FFT, 3, 4), name="FFT of planes", oracle=np.fft.fft2),
    Sample(
        fft_p, [complex_(2, 3, 4)], over(IFFT, 2, 3, 4), name="IFFT of boxes", oracle=np.fft.ifftn
    ),
    Sample(fft_p, [real(2, 3, 4)], over(RFFT, 3, 4), name="RFFT of planes", oracle=np.fft.rfft2),
    Sample(
        fft_p,
        [complex_(2, 3, 3)],
        over(IRFFT, 3, 4),
        name="IRFFT of planes",
        oracle=np.fft.irfft2,
    ),
    Sample(fft_p, [complex_(1)], over(FFT, 1), name="FFT of one"),
    Sample(fft_p, [real(2, 1)], over(RFFT, 1), name="RFFT of one"),
    Sample(fft_p, [complex_(2, 1)], over(IRFFT, 1), name="IRFFT of one"),
    Sample(fft_p, [np.zeros((0, 3))], over(RFFT, 3), name="RFFT of no rows"),
    Sample(fft_p, [np.zeros((2, 0), complex)], over(FFT, 0), name="FFT of nothing"),
]
