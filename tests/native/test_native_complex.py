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


EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 100.0, -100.0, 1e-30, 1e38, np.pi / 2]
OF_ONE = {
    **{name: getattr(jnp, name) for name in (
        "exp expm1 exp2 log log1p log2 sqrt sin cos tan sinh cosh tanh arcsin arctan arccosh "
        "square abs sign reciprocal"
    ).split()},
    "rsqrt": lax.rsqrt,
    "logistic": lax.logistic,
    "cube": lambda z: z**3,
    "inverse square": lambda z: z**-2,
    "root by power": lambda z: z**0.5,
    "product": lambda z: z * z,
}  # fmt: skip
OF_TWO = {
    "add": lambda z, w: z + w,
    "multiply": lambda z, w: z * w,
    "divide": lambda z, w: z / w,
    "power": lambda z, w: z ** exponents(w),
}


def exponents(w):
    """Exponents of which powers can be compared, and the special values among `w`.

    Of an angle of 1e38 the last bit is many turns.
    """
    odd = (jnp.abs(w) > 1e30) & jnp.isfinite(w)
    return jnp.where(odd, 2, w * 1e-3)


def grid(dtype):
    z = np.empty((len(EDGES), len(EDGES)), dtype)
    z.real, z.imag = np.array(EDGES)[:, None], np.array(EDGES)
    return z.ravel()


def alike(found, wanted, tolerance):
    """Equal up to rounding; zeros have the same sign."""
    for part in ("real", "imag"):
        x, y = getattr(to_numpy(found), part), getattr(to_numpy(wanted), part)
        tiny = np.finfo(x.dtype).tiny
        np.testing.assert_allclose(x, y, tolerance, tiny, err_msg=part)
        zero = (x == 0) & (y == 0)
        assert (np.signbit(x) == np.signbit(y))[zero].all(), part


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", OF_ONE)
def test_edges_are_those_of_eager_mode(name, dtype):
    with namoo.enable_x64(), np.errstate(all="ignore"):
        z = jnp.asarray(grid(dtype))
        if dtype == np.complex128:
            z = jnp.concatenate([z, jnp.asarray([800 + 1e-300j, -800 + 1.5j, 1e300 + 1e300j])])
        alike(namoo.jit(OF_ONE[name])(z), OF_ONE[name](z), 2e-6 if z.itemsize == 8 else 1e-13)


@pytest.mark.parametrize("name", OF_TWO)
def test_edges_of_two_operands_are_those_of_eager_mode(name):
    z, w = (jnp.asarray(v.ravel()) for v in np.meshgrid(grid(np.complex64), grid(np.complex64)))
    with np.errstate(all="ignore"):
        alike(namoo.jit(OF_TWO[name])(z, w), OF_TWO[name](z, w), 2e-6)


def test_values_of_jax_at_edges():
    """Those that NumPy, or formulas written down, get wrong."""
    cases = [
        (jnp.sqrt, complex(-1, -0.0), 1j),
        (lambda z: z * z, 1e38 + 1e38j, complex(-np.inf, np.inf)),
        (jnp.tanh, complex(np.nan, 0.0), complex(np.nan, 0.0)),
        (jnp.expm1, complex(np.inf, 0.0), complex(np.inf, 0.0)),
        (jnp.log1p, 1e-30 + 0j, 1e-30 + 0j),
    ]
    for fun, z, wanted in cases:
        z = jnp.asarray(z, np.complex64)
        for run in (fun, namoo.jit(fun)):
            np.testing.assert_array_equal(run(z), np.complex64(wanted))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["x ** 0.5", "power", "repeated", "sign"])
def test_edges_of_real_numbers_are_those_of_eager_mode(name, dtype):
    fun = {
        "x ** 0.5": lambda x: x**0.5,
        "power": lambda x: jnp.power(x, jnp.asarray(0.5, x.dtype)),
        "repeated": lambda x: x[:, None] ** jnp.full((1, 2), 0.5, x.dtype),
        "sign": jnp.sign,
    }[name]
    with namoo.enable_x64(), np.errstate(all="ignore"):
        x = jnp.asarray(EDGES, dtype)
        found, wanted = (np.asarray(v, np.float64) for v in (namoo.jit(fun)(x), fun(x)))
        alike(found, wanted, {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6))
        if name != "sign":
            assert (wanted.ravel()[jnp.isinf(x).repeat(wanted.size // x.size)] == np.inf).all()


def test_powers():
    z, w = points(np.complex64, 64), points(np.complex64, 64)[::-1].copy()
    z[:3], w[:3] = 0, [0, 2, 1 + 1j]
    program = native.compile(namoo.make_jaxpr(lambda z, w: lax.pow(z, w))(z, w))
    (found,) = program([z, w])
    with np.errstate(all="ignore"):
        wanted = z.astype(complex) ** w.astype(complex)
    small = np.abs(wanted) < 3e38
    np.testing.assert_allclose(found[small], wanted[small], 1e-6)
