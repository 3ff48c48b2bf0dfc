"""What works, and what it says, where an optional package is not installed."""

import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.engines import select
from namoo.primitives import fft


@pytest.fixture
def absent(monkeypatch):
    """Make packages look as if they were not installed."""
    remembered = (select._has_llvm, fft._transforms)

    def forget():
        for function in remembered:
            function.cache_clear()

    def hide(name):
        monkeypatch.setitem(sys.modules, name, None)
        forget()

    yield hide
    forget()


def test_without_llvmlite_the_interpreter_runs_programs_and_says_so_once(absent):
    absent("llvmlite")
    x = jnp.arange(3.0)
    with pytest.warns(UserWarning, match="llvmlite is not installed") as warned:
        assert namoo.jit(lambda x: x * 2 + 1, engine="native")(x).tolist() == [1, 3, 5]
    assert [w.filename for w in warned] == [__file__]
    gradient = namoo.jit(namoo.grad(lambda x: jnp.sum(x**3)), engine="native")
    assert gradient.lower(x).compile()(x).tolist() == [0, 3, 12]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_without_scipy_transforms_are_numpys(absent, dtype, n):
    x = np.random.default_rng(0).normal(size=(3, n)).astype(dtype)
    kinds = ("FFT", "IFFT", "IRFFT") if dtype.startswith("complex") else ("RFFT",)
    lengths = {"IRFFT": (2 * n - 1,)}
    calls = [(kind, lengths.get(kind, (n,))) for kind in kinds]
    with_scipy = [fft.fft_p.evaluate(x, fft_type=fft.FftType[k], fft_lengths=s) for k, s in calls]
    absent("scipy.fft")
    assert fft._transforms() is np.fft
    for (kind, length), wanted in zip(calls, with_scipy, strict=True):
        found = fft.fft_p.evaluate(x, fft_type=fft.FftType[kind], fft_lengths=length)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
