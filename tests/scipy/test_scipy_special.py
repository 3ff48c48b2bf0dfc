"""`namoo.scipy.special` against real JAX and SciPy: values, derivatives, types, errors."""

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from typing import Any, NamedTuple

import jax
import jax.scipy.special
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes

import namoo
from namoo.core.array import to_numpy
from namoo.scipy import special

INF, NAN = np.inf, np.nan
REALS = np.array([-4.3, -2.5, -1.2, -0.4, 0.2, 0.7, 1.3, 2.0, 3.3, 8.5, 25.0])
POSITIVE = np.array([0.05, 0.3, 0.8, 1.4, 2.0, 2.7, 4.5, 9.3, 20.0])
UNIT = np.array([0.02, 0.11, 0.13, 0.3, 0.5, 0.77, 0.88, 0.95, 0.99])
EDGES = np.array([-INF, -1e10, -30.5, -3, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 3, 1e5, INF, NAN])
TAME = np.array([-20.5, -3, -1, -0.5, 0.5, 1, 3, 20])
"""Where JAX's loops for exponential integrals end."""


class Row(NamedTuple):
    args: tuple[np.ndarray, ...]
    """Where derivatives are taken."""
    diff: tuple[int, ...] = (0,)
    edges: tuple[np.ndarray, ...] | None = (EDGES,)
    """Where only values are compared; all combinations are taken."""
    rtol: float = 3e-5
    """Of values in single precision, which JAX computes with more or less care."""
    grad_rtol: float = 1e-8
    exact: float = 1e-13
    """Relative distance to SciPy in double precision."""
    atol: float = 1e-6
    """Of values in single precision."""
    twice: tuple[int, ...] | None = None
    """What it has second derivatives by, if not by all of `diff`."""


GRID = np.array([-INF, -2.5, -2, -1, -0.0, 0, 0.3, 1, 2, 5.5, 100, INF, NAN])
UNSIGNED = np.array([0, 0.3, 1, 2, 5.5, 100, NAN])
SIGNED = np.array([-2.5, -1, 0.3, 1, 2, 5.5, 100, NAN])
PAIRS = (GRID, GRID)
A = np.array([0.3, 1.7, -0.6, 2.5, 4.0, -2.4, 0.5, 1.0, 6.5])
B = np.array([1.2, 0.4, 2.3, 3.5, 0.9, 1.5, 7.5, 2.2, 11.0])
LEFT_AND_RIGHT = np.array([-6.0, -2.5, -0.7, -0.2, 0.1, 0.4, 1.1, 3.2, 12.0])
INSIDE = np.array([-0.85, -0.6, -0.3, -0.1, 0.1, 0.2, 0.45, 0.6, 0.8])

ROWS: dict[str, Row] = {
    "beta": Row((A, B), (0, 1), (SIGNED, SIGNED), grad_rtol=1e-3),
    "betainc": Row((POSITIVE, B, UNIT), (2,), (UNSIGNED[1:], UNSIGNED[1:], UNSIGNED[:3])),
    "betaln": Row((POSITIVE, B), (0, 1), (UNSIGNED[1:-2], UNSIGNED[1:-2]), 1e-4, 1e-3),
    "boxcox": Row((POSITIVE, A), (0, 1), PAIRS),
    "boxcox1p": Row((POSITIVE, A), (0, 1), PAIRS),
    "comb": Row((B + 2, POSITIVE[[0, 1, 2, 3, 2, 1, 4, 3, 6]]), (0, 1), PAIRS, 1e-3, exact=1e-12),
    "dawsn": Row((REALS,)),
    "digamma": Row((REALS,)),
    "entr": Row((POSITIVE,)),
    "erf": Row((REALS,)),
    "erfc": Row((REALS,)),
    "erfcx": Row((REALS,), grad_rtol=1e-6),
    "erfinv": Row((np.linspace(-0.99, 0.99, 9),), rtol=1e-4),
    "exp1": Row((POSITIVE,), edges=(TAME,)),
    "expi": Row((REALS,), edges=(TAME,)),
    "expit": Row((REALS,)),
    "expn": Row((np.round(B), POSITIVE), (1,), (np.array([0, 1, 2, 8]), TAME)),
    "factorial": Row((POSITIVE,), exact=1e-12),
    "fresnel": Row((REALS,)),
    "gamma": Row((REALS[:-1],), exact=1e-12),
    "gammainc": Row((POSITIVE, B), (0, 1), (UNSIGNED[1:], UNSIGNED), 1e-4, twice=(1,)),
    "gammaincc": Row((POSITIVE, B), (0, 1), (UNSIGNED[1:], UNSIGNED), 1e-4, twice=(1,)),
    "gammaln": Row((REALS,)),
    "gammasgn": Row((REALS,)),
    "hyp1f1": Row((A, B, LEFT_AND_RIGHT), (0, 1, 2), None, 1e-3, 1e-6, 1e-12),
    "hyp2f1": Row((A, B, B[::-1], INSIDE), (0, 1, 2, 3), None, 1e-3, 1e-6, 1e-12),
    "i0": Row((REALS,), edges=(EDGES[np.abs(EDGES) < 50],)),
    "i0e": Row((REALS,)),
    "i1": Row((REALS,), edges=(EDGES[np.abs(EDGES) < 50],)),
    "i1e": Row((REALS,)),
    "kl_div": Row((POSITIVE, B), (0, 1), PAIRS, exact=1e-12, atol=2e-5),
    "log_ndtr": Row((REALS,), rtol=2e-4, grad_rtol=1e-6),
    "loggamma": Row((POSITIVE,)),
    "logit": Row((UNIT,), exact=1e-12),
    "ndtr": Row((REALS,)),
    "ndtri": Row((UNIT,)),
    "owens_t": Row((REALS[:9], A), (0, 1), PAIRS),
    "poch": Row((POSITIVE, B), (0, 1), (UNSIGNED[1:5], UNSIGNED[:5]), exact=1e-12),
    "polygamma": Row((np.arange(9), POSITIVE), (1,), None, 1e-4),
    "rel_entr": Row((POSITIVE, B), (0, 1), PAIRS, exact=1e-12, atol=2e-5),
    "sici": Row((REALS,), grad_rtol=1e-9),
    "spence": Row((POSITIVE,), rtol=1e-4, grad_rtol=1e-8),
    "xlog1py": Row((A, POSITIVE), (0, 1), PAIRS),
    "xlogy": Row((A, POSITIVE), (0, 1), PAIRS),
    "zeta": Row((B + 1.1, POSITIVE), (0, 1), (UNSIGNED[2:-1], UNSIGNED[:-2]), 1e-4, 1e-9),
}
every_row = pytest.mark.parametrize("name", ROWS)


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with namoo.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def both(name):
    return getattr(special, name), getattr(jax.scipy.special, name)


def scipys(name: str, *args: Any) -> Any:
    return getattr(scipy.special, name)(*args)


def parts(out: Any) -> list[np.ndarray]:
    """The results of a function as NumPy arrays; most have one."""
    if isinstance(out, tuple):
        return [part for x in out for part in parts(x)]
    return [to_numpy(out) if isinstance(out, namoo.Array) else np.asarray(out)]


def exact(name: str, args: Any) -> list[np.ndarray]:
    """SciPy's values, in double precision."""
    wide = [x if x.dtype.kind == "i" else x.astype(np.float64) for x in args]
    with np.errstate(all="ignore"):
        return parts(scipys(name, *wide))


def all_points(name: str, dtype: Any) -> list[np.ndarray]:
    """The points of a row, and all combinations of its edges."""
    row = ROWS[name]
    columns = list(row.args)
    if row.edges is not None:
        grid = np.meshgrid(*row.edges)
        columns = [np.append(x, g) for x, g in zip(columns, grid, strict=True)]
    return [x if x.dtype.kind == "i" else x.astype(dtype) for x in columns]


def assert_close(found, wanted, other, rtol, atol=0.0):
    """Close to what is wanted; where that is NaN, the other value will do."""
    with np.errstate(all="ignore"):
        right = np.isclose(found, wanted, rtol, atol, equal_nan=True)
        right |= np.isnan(wanted) & np.isclose(found, other, rtol, atol)
    wrong = np.flatnonzero(~right)[:9]
    assert right.all(), [f"{i}: {found[i]} but {wanted[i]}, {other[i]}" for i in wrong]


@every_row
def test_values_in_single_precision(name):
    ours, theirs = both(name)
    args = all_points(name, np.float32)
    oracle = exact(name, args)
    # Without edges there is nothing to learn from JAX that double precision does not show.
    given = oracle if ROWS[name].edges is None else parts(jax.jit(theirs)(*args))
    for f, g, e in zip(parts(ours(*args)), given, oracle, strict=True):
        assert f.dtype == np.float32
        g = np.where(np.abs(g) < 1e-36, 0, g)  # JAX flushes what is subnormal
        assert_close(f, g, e, ROWS[name].rtol, ROWS[name].atol)


@every_row
@in_x64
def test_values_in_double_precision(name):
    found = parts(getattr(special, name)(*ROWS[name].args))
    for f, e in zip(found, exact(name, ROWS[name].args), strict=True):
        assert f.dtype == np.float64
        np.testing.assert_allclose(f, e, rtol=ROWS[name].exact, atol=1e-15)


def pullback_of_ones(lib, fun, diff, args):
    """Results, and the sum of their derivatives by each argument of `diff`."""

    def chosen(*xs):
        full = list(args)
        for i, x in zip(diff, xs, strict=True):
            full[i] = x
        return fun(*full)

    out, pullback = lib.vjp(chosen, *(args[i] for i in diff))
    return out, pullback(lib.tree_util.tree_map(lambda x: np.ones(x.shape, x.dtype), out))


@every_row
@in_x64
def test_derivatives(name):
    row, (ours, theirs) = ROWS[name], both(name)
    found = parts(pullback_of_ones(namoo, ours, row.diff, row.args))
    run = jax.jit(functools.partial(pullback_of_ones, jax, theirs, row.diff))
    for f, w in zip(found, parts(run(row.args)), strict=True):
        scale = np.abs(w[np.isfinite(w)]).max()
        # Where JAX has none, the next test must do.
        assert_close(f, w, f, row.grad_rtol, row.grad_rtol * scale)


def slope(fun):
    """The derivative of all results together along the sum of the arguments."""

    def derivative(*args):
        return namoo.jvp(fun, args, tuple(np.ones(np.shape(x)) for x in args))[1]

    return derivative


@every_row
@in_x64
def test_first_and_second_derivatives_are_slopes(name):
    row, fun = ROWS[name], getattr(special, name)

    def differentiated(diff):
        def chosen(*xs):
            full = dict(enumerate(row.args)) | dict(zip(diff, xs, strict=True))
            return fun(*full.values())

        return chosen, [row.args[i] for i in diff]

    first, args = differentiated(row.diff)
    second, others = differentiated(row.twice or row.diff)
    step = 1e-4
    for f, xs in ((first, args), (slope(second), others)):

        def at(k, f=f, xs=xs):
            return np.concatenate(parts(f(*(x + k * step for x in xs))))

        wanted = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
        found = np.concatenate(parts(slope(f)(*xs)))
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8 * scale + 1e-9)


@every_row
def test_compiled_and_mapped_values_are_the_eager_ones(name):
    row, fun = ROWS[name], getattr(special, name)
    args = [x if x.dtype.kind == "i" else x.astype(np.float32) for x in row.args]
    eager = parts(fun(*args))
    for other in (namoo.jit(fun)(*args), namoo.vmap(fun)(*args)):
        for e, o in zip(eager, parts(other), strict=True):
            np.testing.assert_allclose(o, e, rtol=1e-6)


numbers = st.floats(0.125, 20, width=32)


@given(
    name=st.sampled_from(["betaln", "gammainc", "kl_div", "owens_t", "poch", "xlog1py", "xlogy"]),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0),
    data=st.data(),
)
@settings(max_examples=60)
def test_operands_are_broadcast(name, shapes, data):
    args = [data.draw(arrays(np.float32, shape, elements=numbers)) for shape in shapes.input_shapes]
    found = to_numpy(getattr(special, name)(*args))
    assert found.shape == shapes.result_shape
    np.testing.assert_allclose(found, exact(name, args)[0], rtol=1e-4, atol=1e-5)


AWKWARD = {
    "entr": ([0, -1, 1, 0.5],),
    "gamma": ([-0.5, 1, 3],),
    "gammaln": ([0, 1, 3],),
    "i0": ([0, 1],),
    "i1": ([0, 1],),
    "i1e": ([0, 1],),
    "kl_div": ([0, 0, 1, -1, 1], [0, 1, 0, 1, -1]),
    "logit": ([0, 1, 0.5],),
    "rel_entr": ([0, 0, 1, -1, 1], [0, 1, 0, 1, -1]),
    "boxcox": ([0, 1, 1, 2], [0, 0, 1, 0]),
    "comb": ([3, 3, -1, 0], [5, -1, 2, 0]),
    "owens_t": ([0, 0, 1, -1, 30], [0, 1, 1, -1, 2]),
    "factorial": ([-1, 0, 1],),
    "xlog1py": ([0, 0, 0, 1, 2], [-1, 2, INF, -1, -2]),
    "xlogy": ([0, 0, 0, 1, 2, 0], [0, 2, INF, 0, -1, -1]),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_derivatives_at_awkward_points(name):
    args = [np.array(x, np.float32) for x in AWKWARD[name]]
    ours, theirs = both(name)
    found = parts(pullback_of_ones(namoo, ours, range(len(args)), args)[1])
    run = jax.jit(functools.partial(pullback_of_ones, jax, theirs, range(len(args))))
    wanted = parts(run(args)[1])
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "x", "slopes"),
    [
        ("spence", 1.0, [-1, 0.5, -2 / 3]),
        ("spence", 2.0, [-np.log(2), np.log(2) - 0.5]),
        ("ndtri", 1.0, [INF]),
        ("dawsn", 0.0, [1, 0, -4]),
        ("expi", 0.0, [INF]),
        ("exp1", 2.0, [-np.exp(-2) / 2, np.exp(-2) * 0.75, -np.exp(-2) * 1.25]),
        ("erfcx", 0.0, [-2 / np.sqrt(np.pi), 2]),
    ],
)
@in_x64
def test_derivatives_that_jax_does_not_have(name, x, slopes):
    fun = getattr(special, name)
    for wanted in slopes:
        fun = namoo.grad(fun)
        np.testing.assert_allclose(to_numpy(fun(x)), wanted, rtol=1e-12)


@in_x64
def test_sine_integral_at_zero():
    fun = lambda x: special.sici(x)[0]  # noqa: E731
    for wanted in (1, 0, -1 / 3, 0, 1 / 5):
        fun = namoo.grad(fun)
        np.testing.assert_allclose(to_numpy(fun(0.0)), wanted, atol=1e-14)


def test_fresnel_slopes_keep_their_digits_far_out():
    x = np.array([1000.25, 4321.5, -777.75], np.float32)
    for part in (0, 1):
        _, found = namoo.jvp(lambda x, i=part: special.fresnel(x)[i], (x,), (np.ones_like(x),))
        turns = (x.astype(np.float64) ** 2 / 2) % 2
        wanted = (np.sin, np.cos)[part](np.pi * turns)
        np.testing.assert_allclose(to_numpy(found), wanted, atol=1e-6)


COMPLEX = np.array(
    [-3.5 + 0.5j, -1.2 - 2j, -0.5 + 0j, 0.3 + 0.1j, 0.5 - 7j, 1 + 0j, 2.5 + 1j, 6 - 3j, 1j]
)


@pytest.mark.parametrize("name", ["erfcx", "gamma", "loggamma", "wofz"])
@in_x64
def test_complex_functions(name):
    ours, theirs = both(name)

    def derivative(fun):
        return namoo.vmap(namoo.grad(fun, holomorphic=True))

    exact = scipy.special.wofz(1j * COMPLEX) if name == "erfcx" else None
    exact = scipys(name, COMPLEX) if exact is None else exact
    np.testing.assert_allclose(to_numpy(ours(COMPLEX)), exact, rtol=1e-12)
    np.testing.assert_allclose(exact, np.asarray(jax.jit(theirs)(COMPLEX)), rtol=1e-7)
    # Steps along the real axis stay on one side of the cut of loggamma.
    for fun in (ours, derivative(ours)):
        up, down = (to_numpy(fun(COMPLEX + step)) for step in (1e-5, -1e-5))
        found = to_numpy(derivative(lambda z, f=fun: f(z[None])[0])(COMPLEX))
        np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=1e-7, atol=1e-8)


def test_poles_of_the_complex_gamma_function():
    z = np.array([0, -1, -5, complex(NAN, 1)], np.complex64)
    for name in ("gamma", "loggamma"):
        assert np.isnan(scipys(name, z)).all()
        assert np.isnan(to_numpy(getattr(special, name)(z))).all()


@in_x64
def test_bessel_functions():
    z = np.array([[-3.3, -0.5, 0.3], [1.0, 7.7, 20.0]])
    found = special.bessel_jn(z, v=4)
    assert found.shape == (5, 2, 3)
    np.testing.assert_allclose(to_numpy(found), jax.scipy.special.bessel_jn(z, v=4), rtol=1e-9)
    exact_values = scipy.special.jv(np.arange(5)[:, None, None], z)
    np.testing.assert_allclose(to_numpy(found), exact_values, rtol=1e-13)
    found = pullback_of_ones(namoo, functools.partial(special.bessel_jn, v=4), (0,), [z])[1]
    theirs = functools.partial(jax.scipy.special.bessel_jn, v=4)
    wanted = pullback_of_ones(jax, theirs, (0,), [z])[1]
    np.testing.assert_allclose(parts(found)[0], parts(wanted)[0], rtol=1e-8)
    assert to_numpy(special.bessel_jn(0.0, v=2)).tolist() == [1, 0, 0]
    assert special.bessel_jn([1, 2], v=0).dtype == np.float64


DEGREES = np.array([0, 1, 2, 3, 3, 4, 7, 1])
ORDERS = np.array([0, -1, 2, 0, -3, 1, -5, 1])
THETA = np.array([0.1, 1.2, 3.0, 2.1, 0.7, 1.5, 2.5, 4.0])
PHI = np.array([0.0, -1.0, 2.0, 7.0, 0.3, 1.1, -4.0, 0.4])


@in_x64
def test_spherical_harmonics():
    args = (DEGREES, ORDERS, THETA, PHI)
    exact = scipy.special.sph_harm_y(*args)
    np.testing.assert_allclose(to_numpy(special.sph_harm_y(*args)), exact, rtol=1e-13)

    def slopes(lib):
        fun = functools.partial(lib.scipy.special.sph_harm_y, DEGREES, ORDERS, n_max=7)
        ones, zeros = np.ones(8), np.zeros(8)
        return [lib.jvp(fun, (THETA, PHI), t) for t in ((ones, zeros), (zeros, ones))]

    for ours, theirs in zip(slopes(namoo), jax.jit(lambda: slopes(jax))(), strict=True):
        for f, w in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(to_numpy(f), np.asarray(w), rtol=1e-8, atol=1e-10)


def test_spherical_harmonics_take_scalars_and_compile():
    found = special.sph_harm_y(2, 1, 0.5, 0.25)
    assert found.shape == (1,) and found.dtype == np.complex64
    np.testing.assert_allclose(to_numpy(found), scipy.special.sph_harm_y(2, 1, [0.5], 0.25), 1e-5)
    f32 = [x.astype(np.float32) for x in (THETA, PHI)]
    compiled = namoo.jit(special.sph_harm_y)(DEGREES, ORDERS, *f32)
    np.testing.assert_allclose(
        to_numpy(compiled), to_numpy(special.sph_harm_y(DEGREES, ORDERS, *f32)), rtol=1e-6
    )
    assert to_numpy(special.sph_harm_y(1, 2, 0.5, 0.25))[0] == 0


def test_bernoulli_numbers():
    for n in (0, 1, 2, 20):
        found = special.bernoulli(n)
        assert found.dtype == np.float32 and found.shape == (n + 1,)
        np.testing.assert_allclose(to_numpy(found), scipy.special.bernoulli(n)[: n + 1], 1e-6)
    wanted = jax.jit(jax.scipy.special.bernoulli, static_argnums=0)(20)
    np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-4, atol=1e-7)
    assert np.isinf(to_numpy(special.bernoulli(100))[-1])


def test_multivariate_gamma_function():
    a = np.array([[2.5, 3.0], [4.5, 11.0]], np.float32)
    theirs = jax.jit(jax.scipy.special.multigammaln, static_argnums=1)
    np.testing.assert_allclose(to_numpy(special.multigammaln(a, 4)), theirs(a, 4), rtol=1e-5)
    for d in (1, 2, 3):
        wanted = scipys("multigammaln", a, d)
        np.testing.assert_allclose(to_numpy(special.multigammaln(a, d)), wanted, 1e-5, 1e-6)
    found = to_numpy(namoo.grad(special.multigammaln)(3.0, 2))
    np.testing.assert_allclose(found, scipy.special.psi(3) + scipy.special.psi(2.5), rtol=1e-6)


def test_combinations_with_repetition():
    N, k = np.array([0, 3, 4, -1, 2.5], np.float32), np.array([0, 2, 5, 0, 1.5], np.float32)
    found = special.comb(N, k, repetition=True)
    wanted = jax.jit(jax.scipy.special.comb, static_argnames="repetition")(N, k, repetition=True)
    np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-5)


def test_expn_of_broken_and_negative_orders():
    n, x = (v.ravel() for v in np.meshgrid([-2.5, -1.0, 0.5, 1.5, 4.2], [0.3, 1.0, 2.0, 20.0]))
    quad = np.polynomial.legendre.leggauss(200)
    # ∫ e⁻ˣᵗ t⁻ⁿ dt over t from 1 to ∞, with t = 1 + s/(1-s).
    s = (quad[0] + 1) / 2
    t = 1 + s / (1 - s)
    terms = np.exp(-x[:, None] * t) * t ** -n[:, None] / (1 - s) ** 2
    with namoo.enable_x64(True):
        found = to_numpy(special.expn(n, x))
    np.testing.assert_allclose(found, terms @ quad[1] / 2, rtol=1e-9)


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_softmax_sums_over_all_axes_unless_told(axis):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("softmax", "log_softmax", "logsumexp"):
        ours, theirs = both(name)
        wanted = jax.jit(theirs, static_argnames="axis")(x, axis=axis)
        np.testing.assert_allclose(to_numpy(ours(x, axis=axis)), wanted, rtol=1e-6)


KINDS = {
    "float": 0.5,
    "int": 1,
    "bool": True,
    "f32": np.float32(0.5),
    "f32[2]": np.array([0.5, 0.25], np.float32),
    "i32[2]": np.array([1, 2], np.int32),
    "f16[2]": np.array([0.5, 0.25], np.float16),
    "bf16[2]": np.array([0.5, 0.25], ml_dtypes.bfloat16),
    "c64[2]": np.array([0.5, 0.25j], np.complex64),
}
WIDE = ("float", "int", "f32", "f16[2]")
KNOWN = {
    ("owens_t", "c64[2]"): "JAX computes numbers that mean nothing",
}


def type_of(lib, fun, args):
    """dtype, weak type and shape of the result, or the type of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = lib.eval_shape(fun, *args)
    except Exception as error:  # noqa: BLE001 - its type is what is compared
        return type(error)
    out = out[0] if isinstance(out, tuple) else out
    return np.dtype(out.dtype), out.weak_type, out.shape


@pytest.mark.parametrize("name", sorted({*ROWS, "wofz"}))
@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
def test_types(name, x64):
    count = len(ROWS[name].args) if name in ROWS else 1
    ours, theirs = both(name)
    with namoo.enable_x64(x64), jax.enable_x64(x64):
        for kind, x in KINDS.items():
            if (name, kind) in KNOWN or x64 and kind not in WIDE:
                continue
            rows = [[x] * count]
            if count == 2:
                rows += [[x, np.float32(0.5)], [1, x]]
            for args in rows:
                found, wanted = type_of(namoo, ours, args), type_of(jax, theirs, args)
                assert found == wanted, (kind, args)


def test_which_functions_take_lists():
    for name, row in ROWS.items():
        args = [x[:2].tolist() for x in row.args]
        if name in ("ndtr", "log_ndtr", "spence", "expn", "hyp1f1", "hyp2f1"):
            assert getattr(special, name)(*args).shape == (2,)
        else:
            with pytest.raises((TypeError, ValueError), match="list|polygamma"):
                getattr(special, name)(*args)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, s: s.factorial(3, exact=True),
        lambda lib, s: s.zeta(2.0),
        lambda lib, s: s.polygamma(1.5, 2.0),
        lambda lib, s: s.log_ndtr(0.5, series_order=2.0),
        lambda lib, s: s.log_ndtr(0.5, series_order=31),
        lambda lib, s: s.log_ndtr(0.5, series_order=-1),
        lambda lib, s: s.bernoulli(-1),
        lambda lib, s: s.bernoulli(1.5),
        lambda lib, s: lib.jit(s.bernoulli)(3),
        lambda lib, s: lib.jit(s.multigammaln)(3.0, 2),
        lambda lib, s: s.bessel_jn(1.0, v=1.5),
        lambda lib, s: s.bessel_jn(1.0),
        lambda lib, s: s.sph_harm_y(DEGREES, ORDERS, THETA, PHI, 1),
        lambda lib, s: s.sph_harm_y(DEGREES, ORDERS, *np.ones((2, 8), np.float16)),
        lambda lib, s: s.sph_harm_y(DEGREES + 0.5, ORDERS, THETA, PHI),
        lambda lib, s: lib.grad(s.betainc)(1.0, 2.0, 0.5),
        lambda lib, s: s.xlogy(np.ones(2), np.ones(3)),
        lambda lib, s: s.xlogy(np.ones((2, 2)), np.ones(3)),
        lambda lib, s: s.softmax(np.ones(2), 0),
        lambda lib, s: s.gamma(None),
        lambda lib, s: s.erf(1.0, unknown=2),
    ],
)
def test_errors(call):
    for lib, s in ((jax, jax.scipy.special), (namoo, special)):
        with pytest.raises(Exception) as caught:
            call(lib, s)
        if lib is jax:
            wanted = caught.type
    assert caught.type.__name__ == wanted.__name__


def test_scipy_is_imported_at_the_first_value():
    code = (
        "import sys, namoo.scipy.special as s, namoo.scipy.stats\n"
        "assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)\n"
        "s.erfcx(0.5)\n"
        "assert 'scipy.special' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name, point", [("xlogy", (0.0, 3.0)), ("xlog1py", (0.0, 3.0))])
def test_second_derivatives_by_python_numbers(name, point):
    namoo.test_util.check_grads(getattr(special, name), point, order=2, rtol=1e-2, atol=1e-2)
