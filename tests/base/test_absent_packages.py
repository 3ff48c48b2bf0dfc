"""What works, and what it says, where an optional package is not installed."""

import subprocess
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


WITHOUT_ML_DTYPES = """
import subprocess
import sys
sys.modules["ml_dtypes"] = None
import namoo, namoo.numpy as jnp
print(jnp.zeros(2).dtype, jnp.finfo("float16").bits, jnp.promote_types("int8", "float16"))
for dtype in (jnp.bfloat16, "bfloat16", namoo.dtypes.bfloat16, jnp.float8_e5m2):
    try:
        print(jnp.ones(2).astype(dtype))
    except TypeError as error:
        print(str(error).split(",")[0])
"""


def test_without_ml_dtypes_its_types_say_what_to_install():
    out = subprocess.run(
        [sys.executable, "-c", WITHOUT_ML_DTYPES], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines() == [
        "float32 16 float16",
        *["dtype bfloat16 needs the package ml_dtypes"] * 3,
        "dtype float8_e5m2 needs the package ml_dtypes",
    ]
