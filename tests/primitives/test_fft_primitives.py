"""Fourier transforms against real JAX: values, types, derivatives, batches, errors."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
from namoo.core.array import to_numpy
from namoo.primitives.fft import FftType, fft

rng = np.random.default_rng(3)


def real(*shape):
    return rng.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


# operand, type, lengths
CASES = {
    "FFT": (complex_(2, 8), "FFT", (8,)),
    "FFT of reals": (real(2, 5), "FFT", (5,)),
    "FFT of a box": (complex_(2, 3, 4), "FFT", (2, 3, 4)),
    "IFFT": (complex_(2, 7), "IFFT", (7,)),
    "IFFT of planes": (complex_(2, 3, 4), "IFFT", (3, 4)),
    "RFFT": (real(2, 8), "RFFT", (8,)),
    "RFFT odd": (real(7), "RFFT", (7,)),
    "RFFT of planes": (real(2, 3, 4), "RFFT", (3, 4)),
    "IRFFT": (complex_(2, 5), "IRFFT", (8,)),
    "IRFFT odd": (complex_(4), "IRFFT", (7,)),
    "IRFFT of planes": (complex_(2, 3, 3), "IRFFT", (3, 4)),
    "IRFFT of one": (complex_(2, 1), "IRFFT", (1,)),
}
every_case = pytest.mark.parametrize("case", CASES)


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with namoo.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def close(found, wanted, rtol):
    found, wanted = to_numpy(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    scale = np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


@every_case
@in_x64
def test_values_in_double_precision(case):
    close(fft(*CASES[case]), jax.lax.fft(*CASES[case]), rtol=1e-12)


@every_case
def test_values_in_single_precision(case):
    x, *how = CASES[case]
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    close(fft(x, *how), jax.lax.fft(x, *how), rtol=1e-5)


@every_case
@in_x64
def test_derivatives(case):
    x, kind, lengths = CASES[case]
    mine = lambda x: fft(x, kind, lengths)  # noqa: E731
    jaxs = lambda x: jax.lax.fft(x, kind, lengths)  # noqa: E731
    out, tangent = namoo.jvp(mine, (x,), (x[::-1],))
    close(tangent, jax.jvp(jaxs, (x,), (x[::-1],))[1], rtol=1e-12)
    ct = to_numpy(out)[::-1]
    close(namoo.vjp(mine, x)[1](ct)[0], jax.vjp(jaxs, x)[1](ct)[0], rtol=1e-12)


@every_case
@pytest.mark.parametrize("place", [0, -1])
@in_x64
def test_vmap_is_a_loop(case, place):
    x, *how = CASES[case]
    many = np.stack([x, 2 * x, x[::-1]], axis=place)
    found = to_numpy(namoo.vmap(lambda x: fft(x, *how), in_axes=place)(many))
    for one, example in zip(found, np.moveaxis(many, place, 0), strict=True):
        close(one, to_numpy(fft(example, *how)), rtol=1e-12)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
@in_x64
def test_inverses_and_gradients_of_any_shape(shape, data):
    count = data.draw(st.integers(1, len(shape)))
    lengths = tuple(shape[len(shape) - count :])
    x = np.random.default_rng(len(shape)).standard_normal(shape)
    forward = fft(x, "RFFT", lengths)
    close(fft(forward, "IRFFT", lengths), x, rtol=1e-12)
    close(fft(fft(x, "FFT", lengths), "IFFT", lengths), x.astype(complex), rtol=1e-12)
    # Re⟨ct, F x⟩ = ⟨Fᵀ ct, x⟩
    ct = to_numpy(forward) * (1 + 2j)
    (pulled,) = namoo.vjp(lambda x: fft(x, "RFFT", lengths), x)[1](ct)
    left, right = (ct * to_numpy(forward)).sum().real, (to_numpy(pulled) * x).sum()
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("dtype", "kind", "wanted"),
    [
        (np.int32, "RFFT", np.complex64),
        (np.int32, "FFT", np.complex64),
        (np.bool_, "FFT", np.complex64),
        (ml_dtypes.bfloat16, "FFT", np.complex64),
        (np.float16, "IFFT", np.complex64),
        (np.complex64, "IRFFT", np.float32),
    ],
)
def test_types(dtype, kind, wanted):
    lengths = (4,) if kind == "IRFFT" else (3,)
    x = np.ones((2, 3), dtype)
    found = fft(x, kind, lengths)
    assert found.dtype == wanted == jax.lax.fft(x, kind, lengths).dtype


@pytest.mark.parametrize("kind", ["fft", "RFFT", "IFFT", "irfft"])
def test_a_type_may_be_named(kind):
    x = np.ones((2, 3), np.float32)
    lengths = (4,) if kind == "irfft" else (3,)
    close(fft(x, kind, lengths), to_numpy(fft(x, FftType[kind.upper()], lengths)), rtol=0)


def test_over_no_axes_it_is_the_identity():
    x = np.ones((2, 3), np.float32)
    for kind in ("FFT", "RFFT"):
        close(fft(x, kind, ()), jax.lax.fft(x, kind, ()), rtol=0)


@pytest.mark.parametrize(
    ("shape", "kind", "lengths", "wanted"),
    [
        ((2, 0), "FFT", (0,), (2, 0)),
        ((0, 3), "FFT", (3,), (0, 3)),
        ((0, 3), "RFFT", (3,), (0, 2)),
        ((2, 1), "IRFFT", (0,), (2, 0)),
        ((2, 0), "RFFT", (0,), (2, 1)),  # a sum of nothing; JAX fails in its compiler
    ],
)
def test_empty_arrays(shape, kind, lengths, wanted):
    out = fft(np.ones(shape, np.float32), kind, lengths)
    assert out.shape == wanted
    assert not to_numpy(out).any()


C64, F32 = np.ones((2, 3, 4), np.complex64), np.ones((2, 3, 4), np.float32)
WRONG = [
    (C64, "RFFT", (4,), "use FFT"),
    (C64, "FFT", (5,), r"FFT input shape \(2, 3, 4\) minor dimensions .* fft_lengths \(5,\)"),
    (F32, "RFFT", (5,), r"RFFT input shape \(2, 3, 4\) minor dimensions .* fft_lengths \(5,\)"),
    (C64, "FFT", (1, 2, 3, 4), "at least as many input dimensions"),
    (F32.astype(np.float16), "RFFT", (4,), "RFFT input must be float32 or float64, got float16"),
    (C64, "foo", (4,), "one of FFT, IFFT, RFFT, IRFFT"),
    (C64, 0, (4,), "FftType or its name"),
    (C64, "FFT", 4, "1D sequences"),
]


@pytest.mark.parametrize(("x", "kind", "lengths", "message"), WRONG)
def test_wrong_input_is_refused_as_jax_does(x, kind, lengths, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        jax.lax.fft(x, kind, lengths)
    with pytest.raises(caught.type, match=message):
        fft(x, kind, lengths)


def test_irfft_needs_the_half_spectrum():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\) .* fft_lengths=\(8,\), .* = 5"):
        fft(C64, "IRFFT", (8,))


def test_program_text():
    text = str(namoo.make_jaxpr(lambda x: fft(x, "RFFT", (4,)))(F32))
    assert "fft[fft_lengths=(4,) fft_type=2]" in text
