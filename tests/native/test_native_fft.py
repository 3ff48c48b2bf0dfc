"""Fourier transforms of the native engine against NumPy's in double precision."""

import subprocess
import sys

import numpy as np
import pytest

import guard_pages
import namoo
from engine_oracle import require_same_bits
from namoo.engines.native import tuning
from namoo.engines.native.engine import native
from namoo.engines.native.kernels.fft import factors
from namoo.primitives.fft import FftType, fft

# Powers of two, small primes, products of them, and primes that need a convolution.
LENGTHS = [1, 2, 3, 5, 7, 8, 9, 12, 16, 31, 37, 45, 64, 100, 128, 243, 512, 1000, 1024]
ORACLES = {
    "FFT": lambda x, lengths, axes: np.fft.fftn(x, axes=axes),
    "IFFT": lambda x, lengths, axes: np.fft.ifftn(x, axes=axes),
    "RFFT": lambda x, lengths, axes: np.fft.rfftn(x, axes=axes),
    "IRFFT": lambda x, lengths, axes: np.fft.irfftn(x, lengths, axes),
}


def operand(kind: str, lengths: tuple[int, ...], batch: tuple[int, ...], double: bool):
    """Random numbers of the shape and the type that a transform takes."""
    last = lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1]
    rng = np.random.default_rng(len(batch))
    x = rng.standard_normal((*batch, *lengths[:-1], last, 2))
    if kind == "RFFT":
        return x[..., 0].astype(np.float64 if double else np.float32)
    return (x[..., 0] + 1j * x[..., 1]).astype(np.complex128 if double else np.complex64)


def program_of(kind: str, lengths: tuple[int, ...], x: np.ndarray):
    """The compiled transform, which must not ask the host for anything."""
    with namoo.enable_x64(True):
        program = native.compile(namoo.make_jaxpr(lambda x: fft(x, FftType[kind], lengths))(x))
    assert not program.host.equations
    return program


def check(kind: str, lengths: tuple[int, ...], batch: tuple[int, ...] = (), double: bool = False):
    x = operand(kind, lengths, batch, double)
    (out,) = program_of(kind, lengths, x)([x])
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected = ORACLES[kind](wide, lengths, range(len(batch), len(batch) + len(lengths)))
    assert out.shape == expected.shape
    assert out.dtype.itemsize == expected.dtype.itemsize // (1 if double else 2)
    error = np.linalg.norm(out - expected) / np.linalg.norm(expected)
    assert error < (4e-15 if double else 2e-6)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n):
    for i, kind in enumerate(ORACLES):
        for batch in [(), (3,) if i % 2 else (20,)]:
            check(kind, (n,), batch, double=(i < 2) == bool(batch))


@pytest.mark.parametrize("shape", [(16, 24), (5, 64), (37, 3), (3, 4, 5), (2, 3, 4, 6), (6, 1, 8)])
@pytest.mark.parametrize("kind", ORACLES)
def test_several_axes(kind, shape):
    for batch in [(), (2,)]:
        check(kind, shape, batch, double=not batch)


@pytest.mark.parametrize("constant", ["FFT_LONG_LINE", "FFT_STACK"])
@pytest.mark.parametrize("n", [36, 64, 100, 1024])
def test_long_lines_as_matrices_and_buffers_in_memory(monkeypatch, n, constant):
    monkeypatch.setattr(tuning, constant, 16)
    monkeypatch.setenv("NAMOO_CACHE", "off")
    for i, kind in enumerate(ORACLES):
        check(kind, (n,), (37,) if i % 2 else (), double=i < 2)
    check("FFT", (n, 5))


def test_results_do_not_depend_on_the_number_of_threads():
    cases = [("FFT", (64, 48), (9,)), ("RFFT", (1 << 16,), ()), ("IFFT", (100,), (999,))]
    for kind, lengths, batch in cases:
        x = operand(kind, lengths, batch, False)
        require_same_bits(program_of(kind, lengths, x), [x])


def test_first_and_last_frequency_of_reals_are_real():
    for n in (8, 9):
        x = np.full(n // 2 + 1, 1 + 1j, np.complex64)
        (out,) = program_of("IRFFT", (n,), x)([x])
        np.testing.assert_allclose(out, np.fft.irfft(x, n), atol=1e-6)


def test_values_that_are_not_finite_stay_in_their_line():
    x = np.ones((20, 16), np.complex64)
    x[3, 5] = np.nan
    (out,) = program_of("FFT", (16,), x)([x])
    assert np.isnan(out[3]).all()
    assert np.isfinite(np.delete(out, 3, axis=0)).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
def test_transforms_stay_within_arrays():
    code = f"import sys; sys.path[:0] = {sys.path!r}; import test_native_fft as t; t.run_guarded()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def run_guarded():
    cases = [
        ((7,), (3,)),
        ((16,), (17,)),
        ((30,), ()),
        ((100,), (3,)),
        ((512,), ()),
        ((6, 10), (3,)),
    ]
    for long_line, stack in [(tuning.FFT_LONG_LINE, tuning.FFT_STACK), (16, 16)]:
        tuning.FFT_LONG_LINE, tuning.FFT_STACK = long_line, stack
        for lengths, batch in cases:
            for kind in ORACLES:
                x = operand(kind, lengths, batch, False)
                program = program_of(kind, lengths, x)
                for at_end in (False, True):
                    (out,) = guard_pages.run(program, [x], at_end)
                    np.testing.assert_array_equal(out, program([x])[0])


@pytest.mark.parametrize("n", [2, 16, 37, 96, 360, 1024, 46189, 1 << 20])
def test_factors(n):
    assert np.prod(factors.primes(n)) == n
    for lanes in (1, 8, 16):
        found = factors.radices(n, lanes)
        assert np.prod(found) == n
        assert all(r <= max(factors.primes(n)[-1], 16) for r in found)
    rows, columns = factors.balanced(n)
    assert rows * columns == n and rows >= columns
    assert n <= factors.smooth_length(n) < 2 * n


@pytest.mark.parametrize(("n", "expected"), [(2**31 - 1, 2**31), (17, 20), (21, 24), (3, 3)])
def test_smooth_lengths(n, expected):
    assert factors.smooth_length(n) == expected
