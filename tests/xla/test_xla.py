"""The XLA engine against eager evaluation: every primitive, every type, and what the host does."""

import numpy as np
import pytest

import engine_oracle
import namoo
from conformance.harness import all_primitives
from namoo import lax
from namoo._base import dtypes
from namoo.core.array import EagerArray, to_numpy
from namoo.primitives import cumulative, reduction, shape, sorting
from namoo.primitives.families import Elementwise
from namoo.primitives.random import prng
from namoo.primitives.special import functions, incomplete, more_functions

pytest.importorskip("jaxlib")

from namoo.engines.xla import pjrt  # noqa: E402
from namoo.engines.xla.engine import xla  # noqa: E402


@pytest.fixture
def quickly_compiled(monkeypatch):
    """What is tested are the rules, not LLVM: it need not optimise, and nothing need be kept.

    How XLA writes programs is as its users have it, and not as `conftest` asks for.
    """
    made = pjrt.compile_options

    def options(*args):
        out = made(*args)
        out.env_option_overrides = [
            ("xla_backend_optimization_level", 0),
            ("xla_cpu_use_fusion_emitters", True),
        ]
        return out

    monkeypatch.setattr(pjrt, "compile_options", options)
    monkeypatch.setenv("NAMOO_CACHE", "0")


@pytest.fixture(autouse=True)
def wide_types():
    with namoo.enable_x64(True):
        yield


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("jobs", engine_oracle.groups(40), ids=lambda jobs: str(jobs[0][0]))
def test_every_primitive_has_the_value_of_eager_mode(jobs):
    engine_oracle.check(xla, jobs)


PARAMS = {
    "integer_pow": [{"y": 3}, {"y": 2}],
    "round": [{"rounding_method": method} for method in lax.RoundingMethod],
    "reduce_precision": [{"exponent_bits": 5, "mantissa_bits": 2}],
    "bessel_jn": [{"v": 2}],
}
# Functions of several numbers, with rows of their own below.
OWN_ROWS = {
    "igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta",
    "polygamma", "zeta", "betaln",
}  # fmt: skip


def numbers(rng, dtype, n=64):
    """Numbers of a type, and those that are special in it."""
    if dtype == np.bool_:
        return rng.random(n) > 0.5
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        wide = np.dtype(np.int64 if low < 0 else np.uint64)
        small = np.clip(rng.integers(-10, 70, n), low, min(high, 1 << 62)).astype(wide)
        out = np.where(rng.random(n) < 0.5, rng.integers(low, high, n, wide, True), small)
        out[:3] = [low, high, 0]
        return out.astype(np.int8).astype(dtype) if dtype.kind == "V" else out.astype(dtype)
    x = rng.normal(size=n) * np.exp(rng.normal(size=n))
    if dtype.kind == "c":
        return (x + 1j * rng.normal(size=n)).astype(dtype)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5]
    return x.astype(np.float32).astype(dtype)


def elementwise(dtype):
    for primitive in all_primitives().values():
        if not isinstance(primitive, Elementwise) or primitive.stablehlo is None:
            continue
        if dtype in primitive.accepted and primitive.name not in OWN_ROWS:
            for params in PARAMS.get(primitive.name, [{}]):
                yield primitive, params


TYPES = [
    "bool", "int2", "int4", "uint8", "int16", "uint32", "int64", "uint64", "float8_e5m2",
    "float8_e4m3fn", "bfloat16", "float32", "complex64",
]  # fmt: skip


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_the_values_of_eager_mode(name):
    dtype = np.dtype(getattr(namoo.numpy, name, name))
    rng = np.random.default_rng(0)
    jobs = [
        (p, params, [EagerArray(numbers(rng, dtype)) for _ in range(p.arity or 2)])
        for p, params in elementwise(dtype)
    ]

    def program(*flat):
        values = iter(flat)
        return [p.bind(*(next(values) for _ in xs), **params) for p, params, xs in jobs]

    run, inputs = engine_oracle.compiled(xla, program, *(x for _, _, xs in jobs for x in xs))
    tolerance = engine_oracle.TOLERANCE.get(name, 0.3)
    for found, (p, params, xs) in zip(run(inputs), jobs, strict=True):
        wanted = to_numpy(p.bind(*xs, **params))
        if not dtypes.issubdtype(wanted.dtype, np.inexact):
            np.testing.assert_array_equal(found, wanted, p.name)
            continue
        found, wanted = found.astype(np.complex128), wanted.astype(np.complex128)
        if dtype.kind == "c":  # which of its parts is infinite is not the same everywhere
            found, wanted = (np.where(np.isfinite(wanted), v, 0) for v in (found, wanted))
        np.testing.assert_allclose(found, wanted, 10 * tolerance, tolerance, err_msg=p.name)


def along_axes(x):
    """Operations of many elements, for numbers in a matrix."""
    places = EagerArray(np.arange(x.size, dtype=np.int32).reshape(x.shape))
    names = ("max", "min", "prod", "and", "or", "xor")
    for p in (shape.reduce_sum_p, *(getattr(reduction, f"reduce_{n}_p") for n in names)):
        yield from ((p, [x], {"axes": axes}) for axes in ((0,), (0, 1)))
    for p in (reduction.argmax_p, reduction.argmin_p):
        yield p, [x], {"axes": (1,), "index_dtype": np.dtype(np.int32)}
    for name in ("sum", "prod", "max", "min", "logsumexp"):
        yield getattr(cumulative, f"cum{name}_p"), [x], {"axis": 1, "reverse": True}
    for keys in ([x], [x, places], [places, x]):
        yield sorting.sort_p, keys, {"dimension": 0, "is_stable": True, "num_keys": len(keys)}
    yield sorting.top_k_p, [x], {"k": 5, "axis": 1}


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("name", ["bool", "int4", "uint8", "float8_e5m2", "bfloat16", "float32"])
def test_every_type_along_axes(name):
    dtype = np.dtype(getattr(namoo.numpy, name, name))
    x = EagerArray(numbers(np.random.default_rng(0), dtype, 60).reshape(4, 15))
    jobs = []
    for p, args, params in along_axes(x):
        try:
            jobs.append((p, args, params, p.bind(*args, **params)))
        except TypeError:  # an operation that does not take the type
            continue
    assert len(jobs) > 10

    def program(*flat):
        values = iter(flat)
        return namoo.tree.leaves([p.bind(*(next(values) for _ in a), **k) for p, a, k, _ in jobs])

    run, inputs = engine_oracle.compiled(xla, program, *(v for _, a, _, _ in jobs for v in a))
    found = iter(run(inputs))
    for p, _, params, wanted in jobs:
        for value in map(to_numpy, namoo.tree.leaves(wanted)):
            engine_oracle.close_to(next(found), value, f"{p} {params}")


def test_a_type_that_xla_has_not_is_named():
    x = EagerArray(np.ones(3, dtypes.float6_e2m3fn))
    with pytest.raises(TypeError, match="XLA has no elements of type float6_e2m3fn"):
        engine_oracle.compiled(xla, lambda x: [lax.neg(x)], x)


def positive(rng, n):
    return np.exp(4 * rng.normal(size=n))


def near(rng, n):
    a = positive(rng, n)
    return a, a * np.exp(rng.normal(size=n) * np.where(rng.random(n) < 0.5, 0.02, 1.5))


def line(rng, n):
    return (rng.normal(size=n) * np.exp(2 * rng.normal(size=n)),)


def unit(rng, n):
    return (rng.random(n) ** 8,)


SPECIAL = {
    incomplete.igamma_p: near,
    incomplete.igammac_p: near,
    incomplete.igamma_grad_a_p: near,
    incomplete.random_gamma_grad_p: near,
    incomplete.regularized_incomplete_beta_p: lambda rng, n: (
        positive(rng, n), positive(rng, n), rng.random(n)
    ),
    more_functions.betaln_p: near,
    functions.zeta_p: lambda rng, n: (1 + positive(rng, n), line(rng, n)[0]),
    functions.polygamma_p: lambda rng, n: (np.floor(6 * rng.random(n)), positive(rng, n)),
    incomplete.bessel_i0e_p: line,
    incomplete.bessel_i1e_p: line,
    functions.lgamma_p: line,
    functions.digamma_p: line,
    functions.erf_p: line,
    functions.erfc_p: line,
    functions.erf_inv_p: lambda rng, n: (2 * rng.random(n) - 1,),
    more_functions.erfcx_p: line,
    more_functions.log_ndtr_p: line,
    more_functions.ndtri_p: unit,
}  # fmt: skip
ENDS = np.array([0.0, -1.0, np.inf, -np.inf, np.nan, 1.0, 1e9])
FIRST_ENDS = {
    functions.zeta_p: np.array([0.0, 1.0]),
    functions.polygamma_p: np.array([0.0, 1.0]),
    more_functions.betaln_p: np.array([]),
}


@pytest.mark.parametrize("primitive", SPECIAL, ids=str)
def test_special_functions_in_their_whole_range(primitive):
    args = SPECIAL[primitive](np.random.default_rng(0), 1000)
    first = FIRST_ENDS.get(primitive, ENDS)
    ends = [v.ravel() for v in np.meshgrid(first, *[ENDS] * (len(args) - 1))]
    args = [EagerArray(np.concatenate(pair)) for pair in zip(args, ends, strict=True)]
    wanted = to_numpy(primitive.bind(*args))
    run, inputs = engine_oracle.compiled(xla, lambda *xs: [primitive.bind(*xs)], *args)
    np.testing.assert_allclose(run(inputs)[0], wanted, rtol=1e-8, atol=1e-200)


@pytest.mark.parametrize(
    ("impl", "partitionable"),
    [
        ("threefry2x32", True),
        ("threefry2x32", False),
        ("threefry4x32", True),
        ("philox2x32", True),
        ("philox4x32", True),
        ("rbg", True),
        ("unsafe_rbg", True),
    ],
)
def test_random_words_are_those_of_eager_mode(impl, partitionable):
    def draws(seeds, data):
        keys = prng.random_seed_p.bind(seeds, impl=impl)
        key = lax.index_in_dim(keys, 1, keepdims=False)
        new = [prng.random_split_p.bind(k, shape=(3, 2)) for k in (key, keys)]
        new += [prng.random_fold_in_p.bind(k, data) for k in (key, keys)]
        drawn = [
            prng.random_bits_p.bind(k, bit_width=width, shape=(7,))
            for k, width in ((key, 8), (keys, 32), (key, 64))
        ]
        return [*map(prng.random_unwrap_p.bind, new), *drawn, lax.eq(keys, keys)]

    args = [EagerArray(np.array([0, 7, -1, 2**40])), EagerArray(np.arange(4, dtype=np.uint32))]
    with namoo.threefry_partitionable(partitionable):
        run, inputs = engine_oracle.compiled(xla, draws, *args)
        for i, (found, wanted) in enumerate(zip(run(inputs), draws(*args), strict=True)):
            np.testing.assert_array_equal(found, to_numpy(wanted), str(i))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_indices_of_every_type(dtype, mode):
    info = np.iinfo(dtype)
    places = np.array([0, 3, 120, info.max, info.min, 5], dtype)
    x = EagerArray(np.arange(600.0).reshape(300, 2))
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    into = lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def f(x, i):
        taken = lax.gather(x, i[:, None], rows, (1, 2), mode=mode)
        put = lax.scatter_add(x, i[:, None], taken, into, mode=mode)
        return [taken, put, lax.dynamic_slice(x, (i[3], i[0]), (2, 1))]

    run, inputs = engine_oracle.compiled(xla, f, x, EagerArray(places))
    for found, wanted in zip(run(inputs), f(x, EagerArray(places)), strict=True):
        np.testing.assert_array_equal(found, to_numpy(wanted))


ON_THE_HOST = {
    name: "a special function that only SciPy has"
    for name in (
        "bessel_jn", "ci", "dawsn", "expi", "expn", "fresnel_c", "fresnel_s", "hyp1f1",
        "hyp2f1", "loggamma", "owens_t", "poch", "si", "spence", "sph_harm_y", "wofz",
    )
} | {
    "eigh_tridiagonal": "LAPACK's routine is not among those that XLA can call",
}  # fmt: skip


def test_the_host_computes_only_what_xla_cannot():
    without = {
        path.rsplit(".", 1)[1]: p.name
        for path, p in all_primitives().items()
        if p.stablehlo is None and path.startswith("namoo.primitives")
    }
    assert set(without.values()) == set(ON_THE_HOST)


BY_ZERO = {
    "zero by zero": lambda x: lax.div(x - x, x - x),
    "remainder": lambda x: lax.rem(x - x, x - x),
    "unsigned": lambda x: lax.div((x - x).astype("uint8"), (x - x).astype("uint8")),
    "constants": lambda x: lax.div(lax.full_like(x, 5), lax.full_like(x, 0)) + x,
    "least by minus one": lambda x: lax.div(x - x + np.int32(-(2**31)), x - x - 1),
}


@pytest.mark.parametrize("name", BY_ZERO)
def test_constants_that_are_divided_by_zero_do_not_end_the_process(name):
    """XLA's compiler dies when it folds such a quotient."""
    x = namoo.numpy.int32(9)
    assert namoo.jit(BY_ZERO[name], engine="xla")(x) == BY_ZERO[name](x)
