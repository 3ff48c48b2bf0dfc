"""What works, and what it says, where an optional package is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import everywhere
import namoo
import namoo.numpy as jnp
from namoo.engines import select
from namoo.primitives import fft
from namoo.primitives.special import programs_on_host


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
import os
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


NUMPY_ALONE = """
import sys
hidden = "ml_dtypes scipy llvmlite opt_einsum _multiprocessing namoo._runtime".split()
sys.modules.update(dict.fromkeys(hidden))
import warnings
warnings.simplefilter("ignore")
import everywhere
sys.exit(everywhere.main(*sys.argv[1:]))
"""


def test_programs_give_the_same_values_with_numpy_alone(tmp_path):
    reference = tmp_path / "reference.npz"
    np.savez(reference, allow_pickle=False, **everywhere.values())
    run = subprocess.run(
        [sys.executable, "-c", NUMPY_ALONE, str(tmp_path / "found.npz"), str(reference)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(everywhere.__file__).parent)},
    )
    assert run.returncode == 0, run.stdout + run.stderr


_RNG = np.random.default_rng(0)
_REALS = np.concatenate([_RNG.normal(size=60) * 4, [0, 1, 30, 100, 1e5, np.inf, np.nan]])
_UNITS = np.concatenate([_RNG.uniform(size=60), [0, 1e-9, 1 - 1e-12, 1, 2]])
_LEFT, _RIGHT = (np.concatenate([_RNG.gamma(2, 3, 60), ends]) for ends in ([0.1, 90], [200, 0.5]))
SPECIAL = {
    **dict.fromkeys("erf erfc gammaln gamma psi erfcx log_ndtr i0e i1e".split(), (_REALS,)),
    **dict.fromkeys("erfinv ndtri".split(), (_UNITS,)),
    **dict.fromkeys("gammainc gammaincc betaln poch".split(), (_LEFT, _RIGHT)),
    "zeta": (_LEFT + 1, _RIGHT),
    "betainc": (_LEFT, _RIGHT, _UNITS[:62]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_without_scipy_are_scipys(name, dtype):
    operands = [x.astype(dtype) for x in SPECIAL[name]]
    wanted = getattr(scipy.special, name)(*operands)
    found = getattr(programs_on_host, name)(*operands)
    assert found.dtype == wanted.dtype
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=0)


def test_other_special_functions_say_that_they_need_scipy():
    with pytest.raises(ModuleNotFoundError, match="pip install scipy"):
        programs_on_host.fresnel(np.ones(2))


def test_without_the_global_lock(monkeypatch):
    from namoo._base import runtime

    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(ImportError, match="PYTHON_GIL=1"):
        runtime._require_lock()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    runtime._require_lock()
