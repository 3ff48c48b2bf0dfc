"""`namoo.scipy.stats` against real JAX and SciPy: all methods, derivatives, types, errors."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.scipy.stats
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes

import namoo
from namoo.core.array import to_numpy
from namoo.scipy import stats

INF, NAN = np.inf, np.nan
NAMES = json.loads((Path(__file__).parents[1] / "data" / "jax_names.json").read_text())
COUNTS = np.array([-2.0, -1, 0, 1, 2, 3, 5, 8, 20, INF, NAN])
REALS = np.array([-INF, -30, -2.5, -1, -0.0, 0.3, 1, 1.7, 3, 4.5, 30, INF, NAN])
QUANTILES = np.array([-0.5, 0.0, 0.01, 0.3, 0.5, 0.77, 0.99, 1.0, 1.5, NAN])


class Row(NamedTuple):
    x: np.ndarray
    """Arguments of densities and distribution functions: inside, at the ends, outside."""
    params: tuple[np.ndarray, ...]
    """Columns of parameters, broadcast against `x`; the last two are `loc` and `scale`."""
    inside: np.ndarray
    """Where derivatives are taken, for every column of parameters."""
    diff: tuple[int, ...] | None = None
    """Arguments to differentiate by, if not all."""
    without_loc: tuple[str, ...] = ()
    """Methods that have no `loc`."""
    invalid: tuple[np.ndarray, ...] | None = None
    """More columns of parameters, at the ends of what is allowed and beyond."""


def at(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


LOC, SCALE = at(0, 0.5, -1), at(1, 2, 0.7)
WHOLE = at(0, 1, -1)

ROWS = {
    "bernoulli": Row(
        COUNTS,
        (at(0.3, 0.9, 0.5), WHOLE),
        at(0, 1),
        diff=(1,),
        without_loc=("cdf", "ppf"),
        invalid=(at(0, 1, -0.5, 1.5, NAN), at(0, 0, 0, 0, 0)),
    ),
    "beta": Row(
        REALS,
        (at(0.7, 2, 3), at(1.5, 1, 4), LOC, SCALE),
        at(0.2, 0.55, 0.8),
        invalid=(at(-1, 1, 0, 1, 1), at(1, 0, 1, 1, 1), at(0, 0, 0, 0, 0), at(1, 1, 1, -1, 0)),
    ),
    "betabinom": Row(
        COUNTS,
        (at(4, 7, 1), at(0.7, 2, 3), at(1.5, 1, 4), at(0, 1, 0)),
        at(1),
        diff=(2, 3),
        invalid=(at(-1, 2, 2, 0), at(1, 0, 1, 2), at(1, 1, -1, 3), at(0, 0, 0, 0)),
    ),
    "binom": Row(
        COUNTS,
        (at(4, 7, 1), at(0.3, 0.9, 0.5), WHOLE),
        at(0, 1, 3),
        diff=(2,),
        invalid=(at(2, 2, 0, -2), at(0, 1, 0.5, 0.5), at(0, 0, 0, 0)),
    ),
    "cauchy": Row(REALS, (LOC, SCALE), at(-3, 0.3, 2)),
    "chi2": Row(REALS, (at(1.5, 3, 7), LOC, SCALE), at(1.2, 2.5, 6)),
    "expon": Row(REALS, (LOC, SCALE), at(0.7, 1.5, 4)),
    "gamma": Row(REALS, (at(0.6, 2, 5), LOC, SCALE), at(0.7, 1.5, 4)),
    "gennorm": Row(REALS, (at(0.7, 1.3, 2.5),), at(-2, 0.3, 1)),
    "geom": Row(COUNTS, (at(0.3, 0.9, 0.5), WHOLE), at(2, 3), diff=(1,)),
    "gumbel_l": Row(REALS, (LOC, SCALE), at(-3, 0.3, 2), invalid=(at(0, 0, 0), at(-1, 0, NAN))),
    "gumbel_r": Row(REALS, (LOC, SCALE), at(-1, 0.3, 2), invalid=(at(0, 0, 0), at(-1, 0, NAN))),
    "laplace": Row(REALS, (LOC, SCALE), at(-3, 0.3, 2)),
    "logistic": Row(REALS, (LOC, SCALE), at(-3, 0.3, 2)),
    "nbinom": Row(COUNTS, (at(4, 7, 1.5), at(0.3, 0.9, 0.5), WHOLE), at(1, 2, 3), diff=(1, 2)),
    "norm": Row(REALS, (LOC, SCALE), at(-3, 0.3, 2), invalid=(at(0, NAN), at(0, 1))),
    "pareto": Row(REALS, (at(0.6, 2, 5), LOC, SCALE), at(2.7, 4.5, 6)),
    "poisson": Row(COUNTS, (at(0.3, 4, 9), WHOLE), at(1, 2, 5), diff=(1,)),
    "t": Row(REALS, (at(1, 3.5, 20), LOC, SCALE), at(-3, 0.3, 2)),
    "truncnorm": Row(
        np.append(REALS, [5.5, 7]),
        (at(-1, 0.5, -9), at(2, 3, -7), at(0, 0.5, 7), SCALE),
        at(1.6, 1.9),
        invalid=(at(1, 2, NAN, -INF, 1), at(1, 0, 3, 1, INF), at(0, 0, 0, 0, 0), at(1, 1, 1, 1, 1)),
    ),
    "uniform": Row(REALS, (LOC, SCALE), at(0.55, 0.8, -0.4)),
    "vonmises": Row(REALS, (at(0.4, 1, 30),), at(-2, 0.3, 1), invalid=(at(0, -1, NAN),)),
    "wrapcauchy": Row(
        REALS, (at(0.1, 0.5, 0.9),), at(0.3, 1, 5), invalid=(at(0, 1, -0.5, 2, NAN),)
    ),
}
every_row = pytest.mark.parametrize("name", ROWS)


def methods(name: str) -> list[str]:
    return [m for m in NAMES[f"scipy.stats.{name}"] if m != "entropy"]


def arguments(name: str, method: str, x: np.ndarray, invalid: bool = False) -> list[np.ndarray]:
    """What a method takes: x in a column, and parameters along a row."""
    params = ROWS[name].params
    if invalid and (others := ROWS[name].invalid) is not None:
        params = tuple(np.append(p, o) for p, o in zip(params, others, strict=True))
    if method in ROWS[name].without_loc:
        params = params[:-1]
    return [x[:, None], *params]


def points(name: str, method: str) -> np.ndarray:
    return QUANTILES if method in ("ppf", "isf") else ROWS[name].x


def in_x64(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with namoo.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def oracle(name: str, method: str, args: list[np.ndarray]) -> np.ndarray:
    """SciPy's values in double precision."""
    wide = [x.astype(np.float64) for x in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(getattr(scipy.stats, name), method)(*wide))


def all_methods(lib: Any, name: str, dtype: Any) -> dict[str, Any]:
    """Every method of a distribution at all of its points."""
    module = getattr(lib.scipy.stats, name)
    return {
        m: getattr(module, m)(*(x.astype(dtype) for x in arguments(name, m, points(name, m), True)))
        for m in methods(name)
    }


def close(found, wanted):
    return np.isclose(found, wanted, rtol=1e-4, atol=2e-6, equal_nan=True)


# Near 0 one form of a logarithm loses its digits, near 1 another one.
LOGARITHMS = {
    "beta": (1.5, 2.5),
    "cauchy": (),
    "chi2": (3.0,),
    "expon": (),
    "gamma": (1.7,),
    "gumbel_l": (),
    "gumbel_r": (),
    "norm": (),
    "pareto": (2.5,),
}


@pytest.mark.parametrize("method", ["logcdf", "logsf"])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_of_probabilities_have_all_digits(name, method):
    size = np.logspace(-5, 5, 60)  # Cauchy's tails are long
    x = np.concatenate([-size, size, 1 + size]).astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = getattr(getattr(scipy.stats, name), method)(x.astype(float), *LOGARITHMS[name])
    found = getattr(getattr(namoo.scipy.stats, name), method)(x, *LOGARITHMS[name])
    # A logarithm below all that the type can have is no matter of digits.
    kept = np.isfinite(wanted) & (abs(wanted) > 1e-30) & (abs(wanted) < 80)
    np.testing.assert_allclose(np.asarray(found)[kept], wanted[kept], rtol=3e-6)


@every_row
def test_values(name):
    """JAX's values; where it gives up with NaN, or is far from SciPy, SciPy's."""
    found = all_methods(namoo, name, np.float32)
    given = jax.jit(lambda: all_methods(jax, name, np.float32))()
    for method, f in found.items():
        args = [x.astype(np.float32) for x in arguments(name, method, points(name, method), True)]
        f, g, e = to_numpy(f), np.asarray(given[method]), oracle(name, method, args)
        assert f.dtype == g.dtype == np.float32 and f.shape == g.shape
        right = close(f, g) | close(f, e)
        for i, j in np.argwhere(~right):
            raise AssertionError(
                f"{name}.{method}{[float(np.broadcast_to(x, f.shape)[i, j]) for x in args]}: "
                f"{f[i, j]}, but JAX {g[i, j]}, SciPy {e[i, j]}"
            )


@every_row
@in_x64
def test_values_in_double_precision(name):
    for method in methods(name):
        x = np.array([0.01, 0.3, 0.77]) if method in ("ppf", "isf") else ROWS[name].inside
        args = arguments(name, method, x)
        found = to_numpy(getattr(getattr(stats, name), method)(*args))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, oracle(name, method, args), rtol=1e-10, atol=1e-13)


def differentiable(name: str, method: str, args: list[np.ndarray]) -> list[int]:
    diff = ROWS[name].diff or range(len(args))
    if name == "beta" and method in ("cdf", "logcdf", "sf", "logsf"):
        diff = (0, 3, 4)  # there is none by the shapes
    return [i for i in diff if i < len(args)]


def derivatives(lib: Any, name: str, method: str, x: np.ndarray) -> list[Any]:
    """The sums of derivatives of a method by x and its parameters."""
    args = arguments(name, method, x)
    diff = differentiable(name, method, args)
    fun = getattr(getattr(lib.scipy.stats, name), method)

    def chosen(*xs):
        full = dict(enumerate(args)) | dict(zip(diff, xs, strict=True))
        return fun(*full.values())

    # Each element has its own parameters, so that a NaN stays where it belongs.
    shape = np.broadcast_shapes(*(a.shape for a in args))
    args = [np.array(np.broadcast_to(a, shape)) for a in args]
    out, pullback = lib.vjp(chosen, *(args[i] for i in diff))
    return list(pullback(np.ones(out.shape, out.dtype)))


OUTSIDE = at(-40.25, -7.5, 50.25)


def slopes(lib: Any, name: str) -> dict[str, list[Any]]:
    inside = ROWS[name].inside
    return {
        m: derivatives(
            lib,
            name,
            m,
            QUANTILES[2:7]
            if m in ("ppf", "isf")
            else np.append(inside, OUTSIDE if inside.min() % 1 or inside.max() % 1 else []),
        )
        for m in methods(name)
    }


@every_row
@in_x64
def test_derivatives(name):
    found = slopes(namoo, name)
    # JAX cannot differentiate the logarithm of Gumbel's scale; the next test does without JAX.
    wanted = found if "gumbel" in name else jax.jit(lambda: slopes(jax, name))()
    for method, fs in found.items():
        for i, (f, w) in enumerate(zip(fs, wanted[method], strict=True)):
            f, w = to_numpy(f), np.asarray(w)
            right = np.isclose(f, w, rtol=1e-6, atol=1e-9) | np.isnan(w)
            assert right.all(), (method, i, f[~right], w[~right], np.argwhere(~right)[:3])
            inside = f[: len(ROWS[name].inside)]
            assert np.isfinite(inside).all(), (method, i, f)


@every_row
@in_x64
def test_derivatives_are_slopes(name):
    """Along all differentiable arguments together, inside the support, to second order."""
    for method in methods(name):
        x = QUANTILES[2:7] if method in ("ppf", "isf") else ROWS[name].inside
        args = arguments(name, method, x)
        chosen = differentiable(name, method, args)
        fun = getattr(getattr(stats, name), method)
        if (name, method) == ("bernoulli", "ppf"):
            continue  # a step

        def along(step, fun=fun, args=args, chosen=chosen):
            return fun(*(a + step if i in chosen else a for i, a in enumerate(args)))

        h = 1e-4
        first = functools.partial(slope, along)
        second_order = "gamma" not in name and name not in ("chi2", "gennorm", "poisson")
        for f in (along, first) if second_order else (along,):
            v = np.stack([to_numpy(f(k * h)) for k in (-2, -1, 1, 2)])
            # Some columns of parameters have no density at some of the points.
            known = np.isfinite(v).all(0)
            v = np.where(known, v, 0)
            wanted = (8 * (v[2] - v[1]) - (v[3] - v[0])) / (12 * h)
            found = np.where(known, to_numpy(slope(f, 0.0)), 0)
            tolerance = 1e-6 * np.abs(wanted).max() + 1e-9
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=tolerance, err_msg=method)


def slope(fun: Any, x: Any) -> Any:
    return namoo.jvp(fun, (x,), (1.0,))[1]


@every_row
def test_compiled_and_mapped_values_are_the_eager_ones(name):
    for method in methods(name):
        fun = getattr(getattr(stats, name), method)
        args = arguments(name, method, points(name, method))
        args = [np.broadcast_to(a, (len(args[0]), 3)).astype(np.float32) for a in args]
        eager = to_numpy(fun(*args))
        for other in (namoo.jit(fun), namoo.vmap(fun), namoo.vmap(fun, 1, 1)):
            np.testing.assert_allclose(to_numpy(other(*args)), eager, rtol=1e-6, atol=1e-37)


@given(
    name=st.sampled_from(["norm", "cauchy", "laplace", "logistic", "gumbel_r", "uniform"]),
    shapes=mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0),
    data=st.data(),
)
@settings(max_examples=60)
def test_parameters_are_broadcast(name, shapes, data):
    numbers = st.floats(0.5, 4, width=32)
    args = [data.draw(arrays(np.float32, shape, elements=numbers)) for shape in shapes.input_shapes]
    for method in ("logpdf", "cdf"):
        found = to_numpy(getattr(getattr(stats, name), method)(*args))
        assert found.shape == shapes.result_shape
        assert close(found, oracle(name, method, args)).all()


def both(fun, *args, rtol=1e-5, **kwargs):
    """A function `fun(stats, *args)` in both libraries: equal values, types and shapes."""
    found = fun(stats, *args, **kwargs)
    wanted = jax.jit(functools.partial(fun, jax.scipy.stats, **kwargs))(*args)
    for f, w in zip(namoo.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert f.dtype == w.dtype and f.shape == w.shape
        np.testing.assert_allclose(to_numpy(f), np.asarray(w), rtol=rtol, atol=rtol)
    return found


SIMPLEX = np.array([[0.2, 0.5, 0.1, 1.2], [0.3, 0.25, 0.1, -0.1], [0.5, 0.25, 0.1, -0.1]], "f")
ALPHA = np.array([0.7, 2.0, 3.5], np.float32)


@pytest.mark.parametrize(
    "x", [SIMPLEX, SIMPLEX[:, 0], SIMPLEX[:2], SIMPLEX[:2, 1], SIMPLEX[:, :, None]]
)
def test_dirichlet(x):
    both(lambda s, *a: [s.dirichlet.logpdf(*a), s.dirichlet.pdf(*a)], x, ALPHA)


def test_derivatives_of_the_dirichlet_distribution():
    def slopes(lib):
        fun = lib.scipy.stats.dirichlet.logpdf
        return lib.grad(lambda *a: fun(*a).sum(), (0, 1))(SIMPLEX[:, :2], ALPHA)

    for f, w in zip(slopes(namoo), jax.jit(lambda: slopes(jax))(), strict=True):
        np.testing.assert_allclose(to_numpy(f), w, rtol=1e-4)


@pytest.mark.parametrize("method", NAMES["scipy.stats.multinomial"])
def test_multinomial(method):
    p = np.array([0.2, 0.3, 0.5], np.float32)
    for x, n in ([1, 2, 3], 6), ([0, 0, 0], 0), ([1, 2, 3], 5):
        both(lambda s, *a: getattr(s.multinomial, method)(*a), np.array(x), np.array(n), p)
    # Of several vectors JAX counts the trials together.
    x, n = np.array([[1, 2, 3], [4, 0, 0], [1, 1, 1]]), np.array([6, 4, 4])
    found = to_numpy(getattr(stats.multinomial, method)(x, n, p))
    wanted = getattr(scipy.stats.multinomial, method)(x, n, p.astype(float) / p.sum(dtype=float))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


MEAN = np.array([0.5, -1.0], np.float32)
COV = np.array([[2.0, 0.6], [0.6, 1.0]], np.float32)
POINTS = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 0.5]], np.float32)


@pytest.mark.parametrize(
    "args",
    [
        (0.3, 0.5, 2.0),
        (POINTS, np.float32(0.5), np.float32(2)),
        (POINTS, MEAN, np.float32(2)),
        (POINTS[0], MEAN, COV),
        (POINTS, MEAN, COV),
        (POINTS, POINTS[::-1], COV),
        (POINTS, MEAN, np.stack([COV, COV * 2, np.eye(2, dtype=np.float32)])),
        (POINTS[:, None], MEAN, np.stack([COV, COV * 2])),
        (np.array([1, 2]), np.array([0, 1]), np.eye(2, dtype=np.int32)),
    ],
)
def test_multivariate_normal(args):
    both(lambda s, *a: [s.multivariate_normal.logpdf(*a), s.multivariate_normal.pdf(*a)], *args)


def test_derivatives_of_the_multivariate_normal():
    run = [
        lib.jit(lib.grad(lambda *a, s=lib.scipy.stats: s.multivariate_normal.logpdf(*a).sum(), i))
        for i in range(3)
        for lib in (namoo, jax)
    ]
    for ours, theirs in zip(run[::2], run[1::2], strict=True):
        args = (POINTS, MEAN, COV)
        np.testing.assert_allclose(to_numpy(ours(*args)), theirs(*args), rtol=1e-4, atol=1e-5)


def test_entropy_of_poisson_distributions():
    mu = np.array([0.0, 1e-3, 0.5, 3.0, 9.99, 10.0, 55.0, 99.9, 100.0, 1e4, NAN], np.float32)
    both(lambda s, mu: s.poisson.entropy(mu), mu, rtol=1e-4)
    both(lambda s, mu: s.poisson.entropy(mu, np.zeros((2, 1))), mu[:3], rtol=1e-4)
    both(lambda s: s.poisson.entropy(3), rtol=1e-4)
    with namoo.enable_x64(True):
        wide = mu[:-1].astype(np.float64)
        k = np.arange(12_000)[:, None]
        exact = scipy.special.entr(scipy.stats.poisson.pmf(k, wide)).sum(0)
        np.testing.assert_allclose(to_numpy(stats.poisson.entropy(wide)), exact, rtol=1e-8)
        slopes = to_numpy(namoo.vmap(namoo.grad(stats.poisson.entropy))(wide[1:]))
        steps = wide[1:] * 1e-5
        up, down = (to_numpy(stats.poisson.entropy(wide[1:] + d * steps)) for d in (1, -1))
        np.testing.assert_allclose(slopes, (up - down) / (2 * steps), rtol=1e-3)


rng = np.random.default_rng(0)
SAMPLES = {
    "vector": rng.integers(0, 5, 11),
    "floats": rng.integers(0, 4, (5, 6)).astype(np.float32) / 4,
    "cube": rng.integers(-3, 3, (3, 4, 5)),
    "nan": np.array([[1, NAN, 2], [NAN, NAN, 2], [1, 3, 3]], np.float32),
    "bool": np.array([True, False, True]),
    "scalar": np.float32(3),
    "one": np.array([7]),
}


def same_type(fun, *args):
    """JAX's result without its values, for which there are cheaper oracles."""
    found = namoo.eval_shape(lambda *a: fun(stats, *a), *args)
    wanted = jax.eval_shape(lambda *a: fun(jax.scipy.stats, *a), *args)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize(
    ("sample", "axis"),
    [(name, 0) for name in SAMPLES] + [("cube", -2), ("cube", None), ("nan", -1), ("nan", None)],
)
def test_mode(sample, axis):
    both(lambda s, x: s.mode(x, axis), SAMPLES[sample])


@pytest.mark.parametrize("axis", [1, None])
def test_mode_keeps_axes(axis):
    both(lambda s, x: s.mode(x, axis, keepdims=True), SAMPLES["cube"])


def test_mode_of_nothing():
    both(lambda s, x: s.mode(x), np.zeros((0, 3), np.float32))


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method):
    for name, x in SAMPLES.items():
        for axis in (None, *range(x.ndim), *range(-x.ndim, 0)):
            found = to_numpy(stats.rankdata(x, method, axis=axis))
            wanted = scipy.stats.rankdata(x, method, axis=axis).astype(np.float32)
            np.testing.assert_array_equal(found, wanted.reshape(found.shape), err_msg=name)
            same_type(lambda s, x, a=axis: s.rankdata(x, method, axis=a), x)
    both(lambda s, x: s.rankdata(x, method), SAMPLES["vector"])
    both(lambda s, x: s.rankdata(x, method, axis=0), SAMPLES["nan"])


oracle_sem: Any = scipy.stats.sem


@pytest.mark.parametrize("policy", ["propagate", "omit"])
@pytest.mark.parametrize("options", [{}, {"ddof": 0}, {"keepdims": True}])
def test_sem(policy, options):
    for name in ("vector", "floats", "cube", "nan"):
        x = SAMPLES[name]
        for axis in (0, -1, None):
            found = to_numpy(stats.sem(x, axis, nan_policy=policy, **options))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = oracle_sem(x, axis, nan_policy=policy, **options)
            if (name, policy) != ("nan", "omit"):  # SciPy wants two numbers; JAX, below, does not
                np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5, err_msg=name)
            same_type(lambda s, x, a=axis: s.sem(x, a, nan_policy=policy, **options), x)
    both(lambda s, x: s.sem(x, nan_policy=policy, **options), SAMPLES["nan"], rtol=1e-4)


@pytest.mark.parametrize("name", ["mode", "rankdata", "sem"])
def test_summaries_compile_and_map(name):
    fun, x = getattr(stats, name), SAMPLES["cube"].astype(np.float32)
    eager = namoo.tree.leaves(fun(x))
    for e, c in zip(eager, namoo.tree.leaves(namoo.jit(fun)(x)), strict=True):
        np.testing.assert_allclose(to_numpy(c), to_numpy(e))
    mapped = namoo.tree.leaves(namoo.vmap(fun)(x))
    single = [namoo.tree.leaves(fun(y)) for y in x]
    for i, m in enumerate(mapped):
        np.testing.assert_allclose(to_numpy(m), np.stack([to_numpy(s[i]) for s in single]))


ONE_D = rng.normal(size=12).astype(np.float32)
TWO_D = rng.normal(size=(2, 15)).astype(np.float32)
WEIGHTS = rng.uniform(0.1, 1, 15).astype(np.float32)


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (ONE_D, {}),
        (ONE_D, {"bw_method": "silverman"}),
        (ONE_D, {"bw_method": 0.7}),
        (ONE_D.astype(np.int32) * 2, {"bw_method": lambda kde: kde.neff**-0.3}),
        (TWO_D, {}),
        (TWO_D, {"weights": WEIGHTS}),
        (TWO_D, {"weights": WEIGHTS, "bw_method": "silverman"}),
    ],
)
def test_gaussian_kde(dataset, options):
    d = np.atleast_2d(dataset).shape[0]
    points = rng.normal(size=(d, 6)).astype(np.float32)

    def everything(s):
        kde = s.gaussian_kde(dataset, **options)
        other = s.gaussian_kde(points)
        cov = np.eye(d, dtype=np.float32)
        parts = [
            kde.neff,
            kde.dataset,
            kde.weights,
            kde.covariance,
            kde.inv_cov,
            kde(points),
            kde.pdf(points),
            kde.logpdf(points),
            kde.evaluate(points[:, 0]),
            kde.integrate_gaussian(points[:, 0], cov),
            kde.integrate_kde(other),
        ]
        if d == 1:
            parts.append(kde.integrate_box_1d(-0.5, 1.0))
        return parts

    both(everything, rtol=1e-4)


def test_gaussian_kde_resamples_as_jax_does():
    assert stats.gaussian_kde(TWO_D).resample(namoo.random.key(3), (4, 3)).shape == (2, 4, 3)
    for shape in ((), (5,)):
        ours = stats.gaussian_kde(TWO_D, weights=WEIGHTS).resample(namoo.random.key(3), shape)
        theirs = jax.scipy.stats.gaussian_kde(TWO_D, weights=WEIGHTS)
        wanted = theirs.resample(jax.random.key(3), shape)
        np.testing.assert_allclose(to_numpy(ours), wanted, rtol=1e-4, atol=1e-5)


def test_gaussian_kde_is_a_tree():
    kde = stats.gaussian_kde(TWO_D)
    assert len(namoo.tree.leaves(kde)) == 5
    double = namoo.tree.map(lambda x: x * 2, kde)
    np.testing.assert_allclose(to_numpy(double.dataset), TWO_D * 2)
    made = namoo.jit(stats.gaussian_kde)(TWO_D)
    density = namoo.jit(lambda kde, x: kde(x))(made, TWO_D[:, :3])
    np.testing.assert_allclose(to_numpy(density), to_numpy(kde(TWO_D[:, :3])), rtol=1e-5)
    slope = namoo.grad(lambda x: stats.gaussian_kde(x).logpdf(TWO_D[:, 0]).sum())(TWO_D)
    wanted = jax.grad(lambda x: jax.scipy.stats.gaussian_kde(x).logpdf(TWO_D[:, 0]).sum())(TWO_D)
    np.testing.assert_allclose(to_numpy(slope), wanted, rtol=1e-3, atol=1e-5)
    with pytest.raises(AttributeError, match="is immutable"):
        kde.neff = 3


KINDS = {
    "float": 0.5,
    "int": 1,
    "f32[2]": np.array([0.5, 0.25], np.float32),
    "i32[2]": np.array([1, 2], np.int32),
    "f16[2]": np.array([0.5, 0.25], np.float16),
}


def type_of(lib, fun, args):
    """dtype, weak type and shape of the result, or the type of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = lib.eval_shape(fun, *args)
    except Exception as error:  # noqa: BLE001 - its type is what is compared
        return type(error)
    return np.dtype(out.dtype), out.weak_type, out.shape


@every_row
@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
def test_types(name, x64):
    with namoo.enable_x64(x64), jax.enable_x64(x64):
        for method in methods(name):
            ours, theirs = (getattr(getattr(s, name), method) for s in (stats, jax.scipy.stats))
            count = len(ROWS[name].params) - (method in ROWS[name].without_loc)
            for kind, x in KINDS.items():
                if x64 and kind not in ("float", "f32[2]"):
                    continue
                for params in ([0.5] * count, [x] * count, [np.float32(0.5)] * count):
                    args = [x, *params]
                    found, wanted = type_of(namoo, ours, args), type_of(jax, theirs, args)
                    assert found == wanted, (method, kind, params)


def density(lib, **options):
    return lib.scipy.stats.gaussian_kde(TWO_D, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.scipy.stats.norm.logpdf([1.0]),
        lambda lib: lib.scipy.stats.norm.cdf(np.float16(1)),
        lambda lib: lib.scipy.stats.norm.ppf(1),
        lambda lib: lib.scipy.stats.norm.logpdf(np.ones(2), np.ones(3)),
        lambda lib: lib.scipy.stats.norm.logpdf(1.0, unknown=2),
        lambda lib: lib.scipy.stats.dirichlet.logpdf(np.ones(2), np.ones((2, 2))),
        lambda lib: lib.scipy.stats.dirichlet.logpdf(np.ones(2), np.ones(4)),
        lambda lib: lib.scipy.stats.multinomial.logpmf(np.ones(2), 2, np.ones(2)),
        lambda lib: lib.scipy.stats.multivariate_normal.logpdf(POINTS, MEAN, np.eye(3)),
        lambda lib: lib.scipy.stats.multivariate_normal.logpdf(POINTS, MEAN, MEAN),
        lambda lib: lib.scipy.stats.multivariate_normal.logpdf(POINTS, MEAN, COV, True),
        lambda lib: lib.scipy.stats.mode(np.ones(3), nan_policy="omit"),
        lambda lib: lib.scipy.stats.mode(np.ones(3), nan_policy="raise"),
        lambda lib: lib.scipy.stats.mode(np.ones(3), nan_policy="other"),
        lambda lib: lib.scipy.stats.mode(np.ones(3), axis=2),
        lambda lib: lib.scipy.stats.mode([1, 2]),
        lambda lib: lib.scipy.stats.rankdata(np.ones(3), "other"),
        lambda lib: lib.scipy.stats.rankdata(np.ones(3), nan_policy="omit"),
        lambda lib: lib.scipy.stats.rankdata(np.ones(3), nan_policy="other"),
        lambda lib: lib.scipy.stats.rankdata([1, 2]),
        lambda lib: lib.scipy.stats.sem(np.ones(3), nan_policy="raise"),
        lambda lib: lib.scipy.stats.gaussian_kde(np.ones(1)),
        lambda lib: lib.scipy.stats.gaussian_kde(np.ones(3) * 1j),
        lambda lib: lib.scipy.stats.gaussian_kde([1.0, 2.0]),
        lambda lib: density(lib, weights=np.ones(3)),
        lambda lib: density(lib, weights=np.ones((2, 3))),
        lambda lib: density(lib, bw_method="other"),
        lambda lib: density(lib, bw_method=np.ones(2)),
        lambda lib: density(lib)(np.ones((3, 2))),
        lambda lib: density(lib)(np.ones((2, 2)) * 1j),
        lambda lib: density(lib).integrate_gaussian(np.ones(3), COV),
        lambda lib: density(lib).integrate_gaussian(np.ones(2), np.eye(3)),
        lambda lib: density(lib).integrate_box_1d(0.0, 1.0),
        lambda lib: lib.scipy.stats.gaussian_kde(ONE_D).integrate_box_1d(np.ones(2), 1.0),
        lambda lib: density(lib).integrate_kde(lib.scipy.stats.gaussian_kde(ONE_D)),
        lambda lib: density(lib).integrate_box([0, 0], [1, 1]),
        lambda lib: density(lib).set_bandwidth("scott"),
    ],
)
def test_errors(call):
    with pytest.raises(Exception) as wanted:
        call(jax)
    with pytest.raises(Exception) as found:
        call(namoo)
    assert found.type.__name__ == wanted.type.__name__
