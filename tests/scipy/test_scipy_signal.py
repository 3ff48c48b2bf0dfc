"""`scipy.signal` and `scipy.fft` against real JAX and SciPy."""

import warnings

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import namoo
import namoo.numpy as jnp
from namoo.scipy import fft, signal
from scipy_oracle import Case, Table, fail_alike, normal

ONE, TWO = normal(7), normal(4)
COMPLEX = normal(4, dtype=np.complex64)
PLANE, KERNEL = normal(4, 5), normal(2, 3)
CPLANE = normal(3, 4, dtype=np.complex64)
SIGNAL = normal(2, 30)
INTEGERS = np.arange(-3, 5, dtype=np.int32)


def call(name, *static, **options):
    return lambda lib, *args: getattr(lib.scipy.signal, name)(*args, *static, **options)


def transform(name, *static, **options):
    return lambda lib, *args: getattr(lib.scipy.fft, name)(*args, *static, **options)


MODES = ("full", "same", "valid")
CONVOLUTION = {
    **{
        f"{name} {mode} {kind}": Case(call(name, mode), a, b, diff=(0, 1) if kind == "long" else ())
        for name in ("convolve", "correlate", "fftconvolve")
        for mode in MODES
        for kind, a, b in (
            ("long", ONE, TWO),
            ("short", TWO, ONE),
            ("plane", PLANE, KERNEL),
            ("complex", ONE, COMPLEX),
            ("int", INTEGERS, INTEGERS[:3]),
        )
    },
    **{
        f"{name} {mode} {kind}": Case(call(name, mode), a, b, diff=(0,) if kind == "large" else ())
        for name in ("convolve2d", "correlate2d")
        for mode in MODES
        for kind, a, b in (
            ("large", PLANE, KERNEL),
            ("small", KERNEL, PLANE),
            ("complex", CPLANE, KERNEL),
            ("small complex", KERNEL, CPLANE),
            ("equal", CPLANE, CPLANE),
        )
    },
    "convolve fft": Case(call("convolve", method="fft"), ONE, TWO),
    "convolve direct": Case(call("convolve", "same", "direct", precision="highest"), ONE, TWO),
    "convolve numbers": Case(call("convolve"), np.float32(2), np.float32(3)),
    "convolve half": Case(call("convolve"), *np.array([TWO, TWO], np.float16), rtol=2e-3),
    "fftconvolve axes": Case(call("fftconvolve", axes=1), PLANE, PLANE[:, :2], diff=True),
    "fftconvolve axes same": Case(
        call("fftconvolve", "same", [0, -1]), normal(3, 2, 4), normal(2, 2, 3)
    ),
    "fftconvolve of one": Case(call("fftconvolve"), ONE, TWO[:1]),
    "fftconvolve empty": Case(call("fftconvolve"), ONE[:0], TWO),
    "vmap convolve": Case(
        lambda lib, x, k: lib.jax.vmap(lib.scipy.signal.convolve, (0, None))(x, k), PLANE, TWO
    ),
}  # fmt: skip

SPECTRA = {
    **{
        f"detrend {name}": Case(call("detrend", **options), x, rtol=1e-4)
        for name, x, options in [
            ("linear", SIGNAL, {}),
            ("constant", SIGNAL, {"type": "constant"}),
            ("axis", SIGNAL.T, {"axis": 0}),
            ("constant axis", SIGNAL, {"axis": 0, "type": "constant"}),
            ("break", SIGNAL, {"bp": 10}),
            ("breaks", SIGNAL, {"bp": np.array([20, 3])}),
            ("int", INTEGERS**2, {}),
        ]
    },
    "detrend derivative": Case(call("detrend", bp=[10]), SIGNAL, diff=True, rtol=1e-4),
    **{
        f"stft {name}": Case(call("stft", **{"nperseg": 8, **options}), x, rtol=1e-4)
        for name, x, options in [
            ("plain", SIGNAL, {}),
            ("odd length", SIGNAL, {"nperseg": 7}),
            ("of one", SIGNAL, {"nperseg": 1}),
            ("rate", SIGNAL, {"fs": 10.0}),
            ("overlap", SIGNAL, {"noverlap": 6}),
            ("no overlap", SIGNAL, {"noverlap": 0}),
            ("nfft", SIGNAL, {"nfft": 11}),
            ("hamming", SIGNAL, {"window": "hamming"}),
            ("tukey", SIGNAL, {"window": ("tukey", 0.3)}),
            ("own window", SIGNAL, {"window": normal(8)}),
            ("detrended", SIGNAL, {"detrend": "linear"}),
            ("two sides", SIGNAL, {"return_onesided": False}),
            ("complex", normal(30, dtype=np.complex64), {"return_onesided": False}),
            ("even", SIGNAL, {"boundary": "even"}),
            ("odd", SIGNAL, {"boundary": "odd"}),
            ("constant", SIGNAL, {"boundary": "constant"}),
            ("no boundary", SIGNAL, {"boundary": None}),
            ("not padded", SIGNAL, {"padded": False}),
            ("axis", SIGNAL.T, {"axis": 0}),
            ("int", INTEGERS, {}),
            ("empty", SIGNAL[:, :0], {}),
        ]
    },
    "stft derivative": Case(
        lambda lib, x: lib.scipy.signal.stft(x, nperseg=8)[2], SIGNAL, diff=True, rtol=1e-4
    ),
    "stft function": Case(
        lambda lib, x: lib.scipy.signal.stft(x, nperseg=8, detrend=lambda s: s - s[..., :1]), SIGNAL
    ),
    **{
        f"csd {name}": Case(call("csd", **{"nperseg": 8, **options}), x, y, rtol=1e-4)
        for name, x, y, options in [
            ("plain", SIGNAL[:1], SIGNAL[1:], {}),
            ("lengths", SIGNAL, SIGNAL[:1, :20], {}),
            ("longer", SIGNAL[:, :20], SIGNAL, {}),
            ("median", SIGNAL[0], SIGNAL[1], {"average": "median"}),
            ("spectrum", SIGNAL[0], SIGNAL[1], {"scaling": "spectrum"}),
            ("axis", SIGNAL.T, SIGNAL.T[::-1], {"axis": 0}),
            ("one segment", SIGNAL, SIGNAL[::-1], {"nperseg": 30}),
        ]
    },
    **{
        f"welch {name}": Case(call("welch", **{"nperseg": 8, **options}), x, rtol=1e-4)
        for name, x, options in [
            ("plain", SIGNAL, {}),
            ("whole", SIGNAL, {"nperseg": None}),
            ("window", SIGNAL, {"nperseg": None, "window": normal(6)}),
            ("median", SIGNAL, {"average": "median"}),
            ("median even", SIGNAL, {"average": "median", "noverlap": 1}),
            ("spectrum", SIGNAL, {"scaling": "spectrum", "fs": 3.0}),
            ("odd length", SIGNAL, {"nperseg": 9}),
            ("complex", normal(30, dtype=np.complex64), {"return_onesided": False}),
            ("int", INTEGERS, {"nperseg": 4}),
        ]
    },
    "welch derivative": Case(
        lambda lib, x: lib.scipy.signal.welch(x, nperseg=8)[1], SIGNAL[0], diff=True, rtol=1e-3
    ),
    "welch of a rate": Case(
        lambda lib, fs, x: lib.scipy.signal.welch(x, fs, nperseg=8), np.float32(5), SIGNAL
    ),
    **{
        f"istft {name}": Case(call("istft", **options), z, rtol=1e-4)
        for name, z, options in [
            ("plain", normal(5, 7, dtype=np.complex64), {}),
            ("rate", normal(5, 7, dtype=np.complex64), {"fs": 10.0}),
            ("overlap", normal(5, 7, dtype=np.complex64), {"noverlap": 6}),
            ("no boundary", normal(5, 7, dtype=np.complex64), {"boundary": False}),
            ("two sides", normal(8, 7, dtype=np.complex64), {"input_onesided": False}),
            ("hamming", normal(5, 7, dtype=np.complex64), {"window": "hamming"}),
            ("own window", normal(5, 7, dtype=np.complex64), {"window": 1 + normal(8) ** 2}),
            ("nfft", normal(6, 7, dtype=np.complex64), {"nperseg": 8, "nfft": 10}),
            ("axes", normal(7, 5, dtype=np.complex64), {"time_axis": 0, "freq_axis": 1}),
            ("real", normal(5, 7), {}),
        ]
    },
    "istft stack": Case(
        lambda lib, z: lib.scipy.signal.istft(z)[1], normal(2, 5, 7, dtype=np.complex64), diff=True
    ),
    "istft axes of a stack": Case(
        lambda lib, z: lib.scipy.signal.istft(z, time_axis=0, freq_axis=1)[1],
        normal(7, 5, 2, dtype=np.complex64),
    ),
}

COSINE = {
    **{
        f"{name} {kind}": Case(transform(name, **options), x, diff=True if kind == "plain" else ())
        for name in ("dct", "idct")
        for kind, x, options in [
            ("plain", normal(5), {}),
            ("even", normal(2, 6), {}),
            ("ortho", normal(5), {"norm": "ortho"}),
            ("backward", normal(5), {"norm": "backward"}),
            ("axis", normal(4, 2), {"axis": 0}),
            ("longer", normal(2, 4), {"n": 7}),
            ("shorter", normal(2, 4), {"n": 3, "norm": "ortho"}),
            ("complex", normal(4, dtype=np.complex64), {}),
            ("int", INTEGERS, {}),
            ("one", normal(1), {"norm": "ortho"}),
        ]
    },
    **{
        f"{name} {kind}": Case(transform(name, **options), x, rtol=5e-5)
        for name in ("dctn", "idctn")
        for kind, x, options in [
            ("plain", normal(3, 4), {}),
            ("ortho", normal(3, 4), {"norm": "ortho"}),
            ("three", normal(3, 4, 2), {}),
            ("axes", normal(3, 4, 2), {"axes": (0, -1)}),
            ("axis", normal(3, 4), {"axes": (0,)}),
            ("s", normal(3, 4), {"s": (5, 2)}),
            ("last s", normal(3, 4), {"s": (5,)}),
            ("s axes", normal(3, 4, 2), {"s": (2, 3), "axes": (0, 2)}),
            ("complex", normal(3, 4, dtype=np.complex64), {}),
        ]
    },
}
TABLES = {
    "convolution": Table(CONVOLUTION), "spectra": Table(SPECTRA), "cosine": Table(COSINE)
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, rows in TABLES.items() for name in rows]
)
@pytest.mark.filterwarnings("ignore:nperseg")
def test_as_jax(table, name):
    TABLES[table].check(name)


ERRORS = {
    "convolve mode": call("convolve", ONE, TWO, "other"),
    "convolve method": call("convolve", ONE, TWO, method="other"),
    "convolve ranks": call("convolve", ONE, PLANE),
    "convolve empty": call("convolve", ONE, TWO[:0]),
    "convolve valid": call("convolve", PLANE, PLANE[:3].T, "valid"),
    "fftconvolve mode": call("fftconvolve", ONE, TWO, "other"),
    "fftconvolve ranks": call("fftconvolve", ONE, PLANE),
    "fftconvolve valid": call("fftconvolve", PLANE, PLANE[:3].T, "valid"),
    "fftconvolve axes": call("fftconvolve", PLANE, KERNEL, axes=0),
    "fftconvolve list": call("fftconvolve", [1.0], [1.0]),
    "convolve2d ranks": call("convolve2d", ONE, TWO),
    "correlate2d ranks": call("correlate2d", ONE, TWO),
    "detrend type": call("detrend", SIGNAL, type="other"),
    "detrend break": call("detrend", SIGNAL, bp=40),
    "detrend break below": call("detrend", SIGNAL, bp=-1),
    "detrend axis": call("detrend", SIGNAL, axis=2),
    **{
        f"stft {options}": call("stft", SIGNAL, **{"nperseg": 8, **options})
        for options in [
            {"boundary": "other"},
            {"nperseg": 0},
            {"noverlap": 8},
            {"nfft": 7},
            {"window": "other"},
            {"window": np.ones((2, 4))},
            {"window": np.ones(40)},
            {"window": np.ones(7)},
            {"detrend": True},
            {"axis": 2},
        ]
    },
    "csd ranks": call("csd", SIGNAL, SIGNAL[0]),
    "csd shapes": call("csd", SIGNAL, normal(3, 30)),
    "csd scaling": call("csd", SIGNAL, SIGNAL, scaling="other"),
    "welch average": call("welch", SIGNAL, nperseg=8, average="other"),
    "istft rank": call("istft", ONE),
    "istft axes": call("istft", PLANE, time_axis=0, freq_axis=0),
    "istft nperseg": call("istft", PLANE, nperseg=-1),
    "istft nfft": call("istft", PLANE, nperseg=9),
    "istft noverlap": call("istft", PLANE, noverlap=6),
    "istft window": call("istft", PLANE, window=np.ones(3)),
    "istft list": call("istft", [[1.0]]),
    "dct norm": transform("dct", ONE, norm="other"),
    "dct axis": transform("dct", ONE, axis=1),
    "dct list": transform("dct", [1.0]),
    "idctn s": transform("idctn", ONE, s=(2, 3)),
    "idctn norm": transform("idctn", PLANE, norm="other"),
    "dctn axes": transform("dctn", PLANE, axes=(0, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore:nperseg")
def test_errors(name):
    fail_alike(ERRORS[name])


# What JAX leaves out, against SciPy.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("boundary", "fill"), [("wrap", 0), ("symm", 0), ("fill", 1.5)])
def test_boundaries(mode, boundary, fill):
    for name in ("convolve2d", "correlate2d"):
        found = getattr(signal, name)(jnp.asarray(PLANE), jnp.asarray(KERNEL), mode, boundary, fill)
        wanted = getattr(scipy.signal, name)(PLANE, KERNEL, mode, boundary, fill)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_shapes_that_do_not_contain_one_another():
    a, b = normal(2, 5), normal(4, 3)
    for mode in ("full", "same"):
        found = signal.convolve(jnp.asarray(a), jnp.asarray(b), mode)
        np.testing.assert_allclose(found, scipy.signal.convolve(a, b, mode), 1e-4, 1e-5)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(2, 5), (2, 6), (3, 2), (2, 2)])
def test_every_type_of_cosine_transform(kind, norm, shape):
    x = normal(*shape)
    for name in ("dct", "idct", "dctn", "idctn"):
        with namoo.numpy_rank_promotion("raise"), namoo.numpy_dtype_promotion("strict"):
            found = getattr(fft, name)(jnp.asarray(x), type=kind, norm=norm)
        wanted = getattr(scipy.fft, name)(x, type=kind, norm=norm)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5 * np.abs(wanted).max(), err_msg=name)


@pytest.mark.parametrize("size", [6, 7, 8])
def test_istft_undoes_stft(size):
    found = signal.istft(signal.stft(jnp.asarray(SIGNAL), nperseg=size)[2], nperseg=size)
    np.testing.assert_allclose(found[1][:, :30], SIGNAL, 1e-4, 1e-5)
    assert found[0].shape == found[1].shape[1:]


def test_warnings():
    with pytest.warns(UserWarning, match="nperseg"):
        signal.stft(jnp.asarray(ONE))
    with pytest.warns(UserWarning, match="complex"):
        signal.welch(jnp.asarray(COMPLEX), nperseg=2)


def test_mapped_and_differentiated():
    """Under vmap, grad and jit at once, against a loop."""

    def power(x):
        return jnp.sum(signal.welch(x, nperseg=8)[1] ** 2)

    found = namoo.jit(namoo.vmap(namoo.grad(power)))(jnp.asarray(SIGNAL))
    wanted = [namoo.grad(power)(jnp.asarray(x)) for x in SIGNAL]
    np.testing.assert_allclose(found, np.stack(wanted), 1e-4, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        namoo.jit(lambda x: signal.istft(signal.stft(x, nperseg=8)[2]))(jnp.asarray(SIGNAL))
