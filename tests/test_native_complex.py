"""Functions of complex numbers in native code: their errors, and what they do at the borders."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.core.array import to_numpy
from namoo.engines.native.engine import native

# The greatest error in units in the last place of the size, where both results are finite.
ULPS = {
    "cos": 4,
    "cosh": 4,
    "exp": 4,
    "exp2": 2,
    "expm1": 5,
    "log": 2,
    "log1p": 2,
    "logistic": 2,
    "rsqrt": 3,
    "sign": 2,
    "sin": 4,
    "sinh": 4,
    "sqrt": 2,
    "tan": 2,
    "tanh": 2,
}


def points(dtype, n=2000):
    rng = np.random.default_rng(0)
    size = 10 ** rng.uniform(-5, 1.2, (2, n))
    re, im = rng.standard_normal((2, n)) * size
    return (re + 1j * im).astype(dtype)


def compiled(z):
    program = native.compile(namoo.make_jaxpr(lambda z: [getattr(lax, n)(z) for n in ULPS])(z))
    assert not program.host.equations
    return dict(zip(ULPS, program([z]), strict=True))


@pytest.fixture(scope="module")
def single():
    z = points(np.complex64)
    found = compiled(z)
    with namoo.enable_x64():
        exact = {n: to_numpy(getattr(lax, n)(jnp.asarray(z.astype(complex)))) for n in ULPS}
    return found, exact


@pytest.mark.parametrize("name", ULPS)
def test_errors_of_complex64(single, name):
    found, exact = single[0][name], single[1][name]
    assert found.dtype == np.complex64
    finite = np.isfinite(exact) & (np.abs(exact) < 3e38)
    assert (np.isnan(found) == np.isnan(exact)).all()
    error = np.abs(found - exact)[finite] / np.maximum(np.abs(exact[finite]), 1e-37)
    assert error.max() <= ULPS[name] * 2.0**-24


def test_complex128_agrees_with_numpy():
    with namoo.enable_x64():
        z = points(np.complex128, 300)
        z[:4] = [1e300 + 1e300j, 1e-300 - 1e-300j, 1 + 1e-9j, -1e200 + 3j]
        found = compiled(z)
        with np.errstate(all="ignore"):
            for name, y in found.items():
                wanted = to_numpy(getattr(lax, name)(jnp.asarray(z)))
                finite = np.isfinite(wanted)
                assert (np.isfinite(y) == finite).all(), name
                scale = np.maximum(np.abs(wanted[finite]), 1e-300)
                assert (np.abs(y - wanted)[finite] / scale).max() < 2e-14, name


EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 100.0, -100.0, 1e-30]


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sqrt", "sign"])
def test_edges_are_those_of_numpy(name):
    z = np.empty((len(EDGES), len(EDGES)), np.complex64)
    z.real, z.imag = np.array(EDGES)[:, None], np.array(EDGES)
    program = native.compile(namoo.make_jaxpr(getattr(lax, name))(z))
    (found,) = program([z])
    with np.errstate(all="ignore"):
        wanted = to_numpy(getattr(lax, name)(jnp.asarray(z)))
    for part in ("real", "imag"):
        x, y = getattr(found, part), getattr(wanted, part)
        np.testing.assert_allclose(x, y, 1e-5, err_msg=part)


def test_powers():
    z, w = points(np.complex64, 64), points(np.complex64, 64)[::-1].copy()
    z[:3], w[:3] = 0, [0, 2, 1 + 1j]
    program = native.compile(namoo.make_jaxpr(lambda z, w: lax.pow(z, w))(z, w))
    (found,) = program([z, w])
    with np.errstate(all="ignore"):
        wanted = z.astype(complex) ** w.astype(complex)
    small = np.abs(wanted) < 3e38
    np.testing.assert_allclose(found[small], wanted[small], 1e-6)
