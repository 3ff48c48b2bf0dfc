"""Special functions against real JAX: values, types, derivatives, awkward points, errors."""

import functools
import subprocess
import sys

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.special

import namoo
from jax_oracle import AS_USERS_HAVE_IT
from namoo.core.array import to_numpy
from namoo.primitives.special import functions, incomplete

INF, NAN = np.inf, np.nan
REALS = np.array([-4.3, -2.5, -1.2, -0.4, 0.2, 0.7, 1.0, 2.0, 3.3, 8.5, 40.0])
INSIDE = np.array([-0.999, -0.9, -0.3, 0.05, 0.5, 0.95, 0.9999])
SHAPES = np.array([0.05, 0.4, 1.0, 1.7, 3.0, 9.5, 60.0, 300.0])
VALUES = np.array([0.01, 0.9, 0.3, 2.0, 5.0, 9.0, 70.0, 280.0])
UNIT = np.array([0.01, 0.2, 0.35, 0.5, 0.77, 0.9, 0.5, 0.45])
ORDERS = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 1.0, 2.0, 4.0])

CASES = {
    "erf": (REALS,),
    "erfc": (REALS,),
    "erf_inv": (INSIDE,),
    "lgamma": (REALS,),
    "digamma": (REALS,),
    "polygamma": (ORDERS, SHAPES),
    "zeta": (ORDERS + 1.5, SHAPES),
    "igamma": (SHAPES, VALUES),
    "igammac": (SHAPES, VALUES),
    "igamma_grad_a": (SHAPES, VALUES),
    "random_gamma_grad": (SHAPES, VALUES),
    "betainc": (SHAPES, VALUES, UNIT),
    "bessel_i0e": (REALS,),
    "bessel_i1e": (REALS,),
}
DERIVATIVES = [
    ("erf", 0),
    ("erfc", 0),
    ("erf_inv", 0),
    ("lgamma", 0),
    ("digamma", 0),
    ("polygamma", 1),
    ("igamma", 0),
    ("igamma", 1),
    ("igammac", 0),
    ("igammac", 1),
    ("betainc", 2),
    ("bessel_i0e", 0),
    ("bessel_i1e", 0),
]
every_function = pytest.mark.parametrize("name", CASES)


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with namoo.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def close(found, wanted, **tolerance):
    np.testing.assert_allclose(to_numpy(found), np.asarray(wanted), **tolerance)


def both(name):
    return getattr(namoo.lax, name), getattr(jax.lax, name)


@every_function
@in_x64
def test_values_in_double_precision(name):
    ours, theirs = both(name)
    close(ours(*CASES[name]), theirs(*CASES[name]), rtol=2e-10, atol=1e-14)


@every_function
def test_values_in_single_precision_are_rounded_once_or_twice(name):
    args = [x.astype(np.float32) for x in CASES[name]]
    found = getattr(namoo.lax, name)(*args)
    assert found.dtype == np.float32
    with namoo.enable_x64(True):
        exact = getattr(namoo.lax, name)(*(x.astype(np.float64) for x in args))
    # erf_inv has JAX's polynomial, whose error is larger.
    rtol = 1e-5 if name == "erf_inv" else 3e-7
    close(found, to_numpy(exact), rtol=rtol, atol=1e-30)


@every_function
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_types_round_the_single_precision_value(name, dtype):
    args = [x.astype(dtype) for x in CASES[name]]
    found = getattr(namoo.lax, name)(*args)
    single = getattr(namoo.lax, name)(*(x.astype(np.float32) for x in args))
    assert found.dtype == dtype
    np.testing.assert_array_equal(to_numpy(found), to_numpy(single).astype(dtype))


def test_erf_inv_keeps_normal_samples_equal_to_jax():
    """Random normals are erf_inv of uniforms, and must agree to a rounding."""
    x = np.random.default_rng(0).uniform(-1, 1, 50_000).astype(np.float32)
    oracle = jax.jit(jax.lax.erf_inv, compiler_options=AS_USERS_HAVE_IT)
    ours, theirs = to_numpy(functions.erf_inv(x)), np.asarray(oracle(x))
    ulps = np.abs(ours - theirs) / np.spacing(np.abs(theirs))
    assert ulps.max() <= 2
    assert (ulps == 0).mean() > 0.95


@pytest.mark.parametrize(("name", "argnum"), DERIVATIVES)
@in_x64
def test_derivatives(name, argnum):
    ours, theirs = both(name)
    args = CASES[name]
    found = namoo.vmap(namoo.grad(ours, argnum))(*args)
    wanted = jax.vmap(jax.grad(theirs, argnum))(*args)
    close(found, wanted, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize(("name", "argnum"), [c for c in DERIVATIVES if c[1] == 0 or c[1] == 1])
@in_x64
def test_second_derivatives(name, argnum):
    ours, theirs = both(name)
    if name in ("igamma", "igammac") and argnum == 0:
        # JAX has no second derivative here; the mixed one is that of the density by a.
        found = namoo.vmap(namoo.grad(namoo.grad(ours, 0), 1))(*CASES[name])
        wanted = jax.vmap(jax.jacfwd(jax.grad(theirs, 1), 0))(*CASES[name])
    else:
        found = namoo.vmap(namoo.grad(namoo.grad(ours, argnum), argnum))(*CASES[name])
        wanted = jax.vmap(jax.grad(jax.grad(theirs, argnum), argnum))(*CASES[name])
    close(found, wanted, rtol=1e-7, atol=1e-12)


@in_x64
def test_derivative_of_random_gamma_grad_by_the_sample():
    found = namoo.vmap(namoo.grad(incomplete.random_gamma_grad, 1))(SHAPES, VALUES)
    ones, zero = np.ones_like(SHAPES), np.zeros_like(SHAPES)
    _, wanted = jax.jvp(jax.lax.random_gamma_grad, (SHAPES, VALUES), (zero, ones))
    close(found, wanted, rtol=1e-8)


@in_x64
def test_derivative_of_zeta_by_its_shift():
    found = namoo.vmap(namoo.grad(functions.zeta, 1))(ORDERS + 1.5, SHAPES)
    s = ORDERS + 1.5
    close(found, -s * scipy.special.zeta(s + 1, SHAPES), rtol=1e-12)


@in_x64
def test_random_gamma_grad_over_all_quantiles():
    rng = np.random.default_rng(1)
    a = 10 ** rng.uniform(-3, 4, 2000)
    x = np.maximum(scipy.special.gammaincinv(a, rng.uniform(1e-6, 1 - 1e-6, 2000)), 1e-30)
    for name, rtol in (("random_gamma_grad", 1e-10), ("igamma_grad_a", 1e-8)):
        ours, theirs = both(name)
        close(ours(a, x), theirs(a, x), rtol=rtol, atol=1e-200)


@in_x64
def test_random_gamma_grad_of_large_shapes():
    """Above 1e8 a limit is used: it must join the series below."""
    a = np.array([0.99e8, 1.01e8])
    for z in (-4.0, -0.5, 0.0, 2.0):
        below, above = to_numpy(incomplete.random_gamma_grad(a, a + z * np.sqrt(a)))
        assert abs(below - above) < 1e-5
    assert to_numpy(incomplete.random_gamma_grad(1e30, 1e30)) == 1.0


def test_one_element_does_not_depend_on_its_neighbours():
    a, x = SHAPES.astype(np.float32), VALUES.astype(np.float32)
    whole = to_numpy(incomplete.random_gamma_grad(a, x))
    single = [
        to_numpy(incomplete.random_gamma_grad(p, q)).item() for p, q in zip(a, x, strict=True)
    ]
    assert whole.tolist() == single


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e"]
)
def test_awkward_points(name):
    ours, theirs = both(name)
    x = np.array([-INF, -3, -1, -0.0, 0, 1, 1e10, INF, NAN], np.float32)
    close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)
    x = x[:-2]
    found, wanted = namoo.vmap(namoo.grad(ours))(x), jax.vmap(jax.grad(theirs))(x)
    close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["polygamma", "igamma_grad_a", "random_gamma_grad", "igammac"])
def test_awkward_pairs(name):
    ours, theirs = both(name)
    values = [-2.5, -1.0, 0.5, 1.0, 2.0, 3.0, NAN]
    if name != "polygamma":
        values += [0.0]
    a, x = (v.ravel().astype(np.float32) for v in np.meshgrid(values, values))
    wanted = np.asarray(theirs(a, x))
    if name == "igammac":
        # JAX takes the limit at a = 0 for igammac but not for igamma.
        a, x, wanted = a[a != 0], x[a != 0], wanted[a != 0]
    close(ours(a, x), wanted, rtol=1e-4, atol=1e-6)


def test_betainc_at_the_edges():
    v = np.array([-1, 0, 0.5, 1, 3.3, 100, INF, NAN], np.float32)
    w = np.array([-1, 0, 0.3, 1, 2, NAN], np.float32)
    args = [m.ravel() for m in np.meshgrid(v, v, w)]
    found, wanted = incomplete.betainc(*args), jax.lax.betainc(*args)
    close(found, wanted, rtol=1e-4, atol=1e-6)


@every_function
@pytest.mark.parametrize("dtype", [np.int32, np.complex64, np.bool_])
def test_other_types_are_refused(name, dtype):
    ours, theirs = both(name)
    args = [np.ones(2, dtype) for _ in CASES[name]]
    with pytest.raises(TypeError, match="does not accept dtype"):
        ours(*args)
    with pytest.raises(TypeError):
        theirs(*args)


def test_axes_of_length_one_are_repeated():
    a, b, x = (np.full(shape, 0.5, np.float32) for shape in [(2, 1), (1, 3), (2, 3)])
    assert incomplete.betainc(a, b, x).shape == (2, 3)
    assert incomplete.igamma(a, b).shape == (2, 3)
    assert incomplete.betainc(np.float32(1), np.float32(2), x).shape == (2, 3)


def test_mixed_types_and_shapes_are_refused():
    f32 = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="same dtypes"):
        incomplete.igamma(f32, np.ones(3, np.float16))
    with pytest.raises(TypeError, match=r"\(3,\), \(2,\)"):
        incomplete.igamma(f32, np.ones(2, np.float32))
    with pytest.raises(TypeError, match="same number of dimensions"):
        functions.zeta(f32, np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    ("name", "argnum", "error"),
    [
        ("polygamma", 0, ValueError),
        ("betainc", 0, ValueError),
        ("betainc", 1, ValueError),
        ("zeta", 0, NotImplementedError),
        ("igamma_grad_a", 0, NotImplementedError),
    ],
)
def test_derivatives_that_do_not_exist(name, argnum, error):
    ours, theirs = both(name)
    args = [np.float32(x[2]) for x in CASES[name]]
    with pytest.raises(error, match="derivative"):
        namoo.grad(ours, argnum)(*args)
    with pytest.raises(error):
        jax.grad(theirs, argnum)(*args)


def test_weak_types():
    assert functions.erf(0.5).weak_type
    assert incomplete.igamma(1.0, 2.0).weak_type
    assert not functions.erf(np.float32(0.5)).weak_type


def test_scipy_is_imported_at_the_first_use():
    code = (
        "import sys, namoo.primitives.special.functions as s, namoo.primitives.fft as f\n"
        "import namoo.primitives.linalg.spectral, namoo.primitives.linalg.qr\n"
        "assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)\n"
        "s.erf(0.5)\n"
        "assert 'scipy.special' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
