"""Every eager shortcut against the general path: values, dtypes, weak types, errors."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import random
from namoo._base.config import config, eager_shortcuts
from namoo.core.avals import ShapedArray
from namoo.core.trace import context, eval_trace
from namoo.eager import TABLES, all_shortcuts, composed, repeated, without_shortcut
from namoo.primitives.gather_dimensions import PROMISE_IN_BOUNDS
from shortcuts import Raised, assert_same, outcome, without_shortcuts

ENTRIES = {f"{entry.module}.{entry.name}": entry for entry in all_shortcuts()}

f = jnp.array([[1.5, -2.0, 0.25], [3.0, -0.5, 4.0]])
g = jnp.array([[0.5, 2.0, -1.0], [1.0, 3.0, 2.0]])
n = jnp.array([1.0, jnp.nan, -0.0, jnp.inf])
i = jnp.array([[1, -2, 3], [4, 0, -6]])
j = jnp.array([[2, 3, 1], [5, 7, 2]])
u = jnp.array([1, 200, 3], jnp.uint8)
h = jnp.array([1.5, 0.25], jnp.float16)
c = jnp.array([1 + 2j, -0.5j])
t = jnp.array([True, False, True])
s = jnp.asarray(0.75)  # weakly typed
weak = jnp.broadcast_to(0.5, (3,))
weak_bool = weak < weak
empty = jnp.zeros((0, 3))
v = jnp.array([3.0, 1.0, 2.0])
at = jnp.array([0, 2])
key = random.key(0)
m = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
rows = jnp.array([2, 0, 1], jnp.int32)
kernel = jnp.stack([m, m + 1.0])
f32, i32 = np.dtype(np.float32), np.dtype(np.int32)

custom = namoo.custom_jvp(lambda x: x + 1.0)
custom.defjvps(lambda t, y, x: 2.0 * t)
ruleless = namoo.custom_vjp(lambda x: x)

UNARY = [(x,) for x in (f, n, i, u, h, c, t, s, weak, empty, 2.0, np.ones(2, np.float32), "x")]
BINARY = [
    *[(f, g), (i, j), (u, u), (h, h), (c, c), (t, t), (weak, weak), (empty, empty), (v, f)],
    *[(f, 2.0), (f, 2), (i, 3), (u, 3), (h, 0.5), (c, 2j), (f, s), (i, 2.5), (t, True)],
    *[(i, f), (f, jnp.ones(2)), (f, "x"), (f, 1e50), (i, 2**40), (i, 0), (f, 0), (n, n)],
]
REDUCED = [
    *[((x,), {}) for x in (f, n, i, u, h, c, t, s, weak, empty, m)],
    *[((f, axis), {}) for axis in (0, 1, -1, 2, (0, 1))],
    *[((f,), {"keepdims": True}), ((f, 0), {"keepdims": True}), ((i,), {"axis": 1})],
]
LOCATED = [*REDUCED, ((empty, 1), {})]


def plain(*calls):
    """Calls without keywords."""
    return [(args, {}) for args in calls]


def spread(*args, **options):
    return args, options


INDICES = [0, -1, 5, slice(0, 1), None, ..., (0, 1), (slice(None), 1), at, np.array([1, 0]), True]
SOLVER = (lambda x: 2.0 * x, v, lambda b: b / 2.0, lambda b: b / 2.0)

_SYSTEM = np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32)
SYSTEMS = [jnp.asarray(_SYSTEM[0]), jnp.zeros((4, 4)), jnp.asarray(_SYSTEM)]
"""A matrix, a singular one, and a stack."""
MATRICES = [jnp.asarray(_SYSTEM[1]), m, jnp.kron(m, m), m[:2, :2] * (1 + 2j), m[:1, :1]]

SAMPLES = {
    "numpy._methods.__iter__": plain((f,), (i,), (s,)),
    "numpy.at.update": [
        *[spread("scatter", f, index, 7.0) for index in INDICES if index is not at],
        *[
            spread(kind, v, at, jnp.array([1.0, 2.0]))
            for kind in ("scatter", *(f"scatter_{x}" for x in "add sub mul min max".split()))
        ],
        *[spread("scatter_add", v, x, 1.0) for x in (0, jnp.array([1, 1]), jnp.array([7]))],
        *[spread("scatter", i, 0, x) for x in (1, 2**40, 2.5, f[0])],
        *[spread("scatter", t, 0, False), spread("scatter", v, 0, f)],
        *[spread("scatter", v, at, 1.0, mode="clip"), spread("scatter", v, -1, 1.0, wrap=False)],
    ],
    "numpy.contraction.dot": [*plain((m, m), (v, v), (m, f), (i, j)), spread(m, m, precision=None)],
    "numpy.contraction.matmul": plain((m, m), (m, v), (kernel, m), (m, f), (i, i.T), (s, m)),
    "numpy.creation._stack": plain(([v, weak],), ([f, g],)),
    "numpy.creation.arange": [*plain((5,), (0,), (2, 5), (2.5,)), spread(5, dtype=float)],
    "numpy.creation.constant": plain(
        ((2, 3), 0, f32), ((2,), 1.5, f32), ((), 7, i32, True), ((2,), 0, key.dtype)
    ),
    "transforms.custom.call_custom": plain(
        (custom, (v,), {}), (custom, (), {"x": v}), (custom, (v, v), {}), (ruleless, (v,), {})
    ),
    "numpy.selection.where": [
        *plain((t, v, v), (t, v, 0.0), (t, 0.0, v), (t, v, weak), (t, weak, weak), (t, t, t)),
        *plain((t,), (i, i, j), (t, v, f), (t, v, at), (t, f, 1), (t, v), (t, h, h)),
        spread(t, size=2),
    ],
    "numpy.creation.astype": plain(
        *[
            (x, y)
            for x in (f, n, i, u, h, c, t, s, weak)
            for y in (np.int32, "float32", bool, np.int8)
        ],
        (f, None),
        (f, "x"),
        (key, np.int32),
        (f, key.dtype),
        (1.5, int),
    ),
    "numpy.grids._band": plain(((2, 3), "eq", 1, f32), ((3, 3), "ge", -1, i32)),
    "numpy.grids._diagonal": plain((m, 0, 0, 1), (f, 1, 1, 0), (kernel, 0, 1, 2)),
    "numpy.indexing.getitem": plain(*[(f, index) for index in INDICES], (v, t), (i, 1.5), (f, "x")),
    "numpy.joining.concatenate": [
        *plain(
            ([f, g],), ((v, v),), ([f, g], 1), ([f, g], -1), ([f, i],), ([v, f],), ([s],), ([],)
        ),
        *plain((f,), ([weak, weak],), ([weak, v],), ([f, g], 2), ([f, g], None)),
        *plain(([weak_bool, weak_bool],), ([weak_bool, t],)),
        spread([f, g], dtype=int),
    ],
    "numpy.joining.stack": [
        *plain(([f, g],), ((v, v), 1), ([f, g], -1), ([f, i],), ([v, f],), ([],), ([f], 5), (f,)),
        *plain(([weak, weak],), ([weak_bool, weak_bool],)),
    ],
    "numpy.linalg.decompositions.cholesky": [
        *plain(*((x @ x.conj().T + 3 * jnp.eye(len(x), dtype=x.dtype),) for x in MATRICES)),
        *plain(*((x,) for x in SYSTEMS)),
    ],
    "numpy.linalg.determinants.det": plain(*((x,) for x in (*MATRICES, *SYSTEMS))),
    "numpy.linalg.determinants._slogdet_of": plain(*((x,) for x in (*MATRICES, *SYSTEMS))),
    "numpy.linalg.norms.norm": [*plain((f,), (v,), (m, 2), (i,), (empty,)), spread(f, axis=1)],
    "numpy.linalg.systems.linear_solution": plain(SOLVER),
    "numpy.linalg.systems.inv": plain(*((x,) for x in SYSTEMS), (SYSTEMS[0][:2],)),
    "numpy.linalg.systems.solve": plain(
        *((x, x[0]) for x in SYSTEMS[:2]),
        *((x, x[..., ::-1, :2] + 1) for x in SYSTEMS),
        (SYSTEMS[0], 1.0),
    ),
    "numpy.manipulation.expand_dims": plain((f, 0), (f, -1), (f, 3), (f, (0, 1)), (2.0, 0)),
    "numpy.manipulation.reshape": [
        *plain(
            (f, (3, 2)), (f, -1), (f, [2, -1]), (f, (4, -1)), (f, (-1, -1)), (f, 6), (weak, (3, 1))
        ),
        *plain((empty, (-1,)), (empty, (0, -1)), (f, (-2, 3)), (f, "x")),
        *[spread(f, (3, 2), order="F"), spread(f, (3, 2), order="A")],
    ],
    "numpy.manipulation.transpose": plain((f,), (kernel,), (f, (1, 0)), (f, (0, 5)), (s,)),
    "numpy.reductions.mean": [*REDUCED, spread(f, where=f > 0), spread(i, dtype=float)],
    "numpy.reductions.var": [*REDUCED, spread(f, ddof=1), spread(v, ddof=3), spread(v, ddof=0.5)],
    "numpy.searching._bisect": plain(
        (jnp.array([1.0, 2.0, jnp.nan]), n, "left", i32), (at, i, "right", i32)
    ),
    "numpy.searching.argmax": LOCATED,
    "numpy.searching.argmin": LOCATED,
    **{
        f"numpy.sets.{name}": [
            *plain((i[0], j[0]), (at, i[0]), (i, j), (v, f[0]), (u, u), (u, i[0]), (at[:0], at)),
            spread(i[0], j[0], size=2),
        ]
        for name in ("intersect1d", "union1d", "setdiff1d")
    },
    "numpy.sets._unique_slices": plain(
        (jnp.array([3, 1, 3]), True, None, None),
        (n, True, None, None),
        (n, False, None, None),
        (f, True, None, None),
        (at, True, 3, None),
    ),
    "numpy.taking._take_along": plain(
        *[(f, jnp.array([[0, x], [2, 1]]), 1, PROMISE_IN_BOUNDS, None, True) for x in (1, -1)]
    ),
    "numpy.taking.take": [
        *plain((v, at), (f, at, 1), (f, at), (v, jnp.array([5])), (v, jnp.array([-1])), (v, t)),
        *[spread(f, at, axis=1, mode="clip"), spread(f, at, mode="wrap"), spread(v, 1.5)],
        *[spread(v, jnp.array([-5, -1, 2, 7]), mode=x) for x in ("clip", "wrap", "fill", None)],
    ],
    "primitives.linalg.matrices.diagonal": plain((m,), (kernel,)),
    "primitives.linalg.matrices.take_rows": plain((m, rows), (kernel, jnp.stack([rows, rows]))),
    "primitives.shape.ones": plain((ShapedArray((2,), f32),), (ShapedArray((), i32, True),)),
    "primitives.shape.zeros": plain((ShapedArray((2, 0), f32),), (ShapedArray((2,), i32, True),)),
    "primitives.slicing._without_axis": plain((jnp.ones((1, 3)), 0), (jnp.ones((2, 1)), 1)),
    "primitives.slicing.dynamic_slice": plain(
        (f, (0, 1), (2, 2)),
        (f, (5, -1), (1, 2)),
        (v, (at[1],), (2,)),
        (f, (0,), (1, 1)),
        (f, (0, 0.5), (1, 1)),
        (v, (0,), (7,)),
    ),
    "primitives.slicing.dynamic_update_slice": plain(
        (f, g[:1], (1, 0)), (v, v[:2], (5,)), (weak, weak[:1], (1,)), (v, i[0], (0,))
    ),
    "random.continuous.normals": plain((key, (3,), f32), (key, (), f32), (key, (20000,), f32)),
    "random.counts._draw_categories": plain(
        (lambda n, pair: (n - 1.0, n * pair[0]), v, f, random.split(key, 2), 1)
    ),
    "random.counts._either": plain(
        *[(jnp.array(x), lambda: v[:2], lambda: n[:2]) for x in ([True] * 2, [False] * 2)],
    ),
    "random.counts._repeat": plain((lambda x: (x - 1.0,), lambda x: x > 0.0, 10, v)),
    "random.uniforms._integers": plain(
        (random.split(key), (4,), np.int32(3), np.uint32(7), np.uint32(4), i32, i32),
        (random.split(key), (4,), np.int32(0), np.uint32(0), np.uint32(0), i32, np.dtype(np.int8)),
    ),
    "random.uniforms.between": plain((key, (3,), f32, 0.5, 2.0), (key, (), f32, -1.0, 1.0)),
    "random.uniforms.unit": plain((key, (3,), f32), (key, (2,), np.dtype(np.float16))),
}
"""Calls of each function: positional and keyword arguments.  At least one takes the shortcut."""

# NumPy has a function of its own, adds in another order, or works in place.
ROUNDED = {
    "numpy.elementary.log10": 2,
    "numpy.elementary.logaddexp": 2,
    "numpy.linalg.systems.inv": 64,
    "numpy.linalg.systems.solve": 64,
    "numpy.reductions.var": 2,
    "random.continuous.normals": 2,
    "random.uniforms.between": 2,
}


def samples(name):
    if name in SAMPLES:
        return SAMPLES[name]
    entry = ENTRIES[name]
    if entry.module == "numpy.reductions":
        return REDUCED
    return plain(*(UNARY if entry.when.startswith("an array of kind") else BINARY))


def general_function(entry):
    """The function that a shortcut shortens, as its module defines it."""
    module = importlib.import_module(f"namoo.{entry.module}")
    if entry.module == "numpy._methods":
        return {**module._OPERATORS, **module._METHODS}[entry.name]
    return without_shortcut(getattr(module, entry.name))


IN_PLACE = "numpy.at.update_at"
SHORTENED = [name for name, entry in ENTRIES.items() if entry.compute and name != IN_PLACE]


@pytest.mark.parametrize("name", SHORTENED)
def test_a_shortcut_gives_what_the_general_path_gives(name):
    entry = ENTRIES[name]
    general = general_function(entry)
    used = 0

    @functools.wraps(general)
    def counted(*args, **options):
        nonlocal used
        used -= 1
        return general(*args, **options)

    quick = entry.install(counted)
    for args, options in samples(name):
        used += 1
        found = outcome(quick, *args, **options)
        wanted = without_shortcuts(general, *args, **options)
        if entry.name == "__iter__":
            found, wanted = (x if not hasattr(x, "__next__") else list(x) for x in (found, wanted))
        assert_same(found, wanted, ROUNDED.get(name, 0))
    assert used > 0, "no sample takes the shortcut"


def test_every_entry_says_what_it_does():
    for entry in ENTRIES.values():
        assert entry.module in {**TABLES, **composed.FUNCTIONS}
        assert entry.when and entry.when != "None"
    assert len(ENTRIES) > 120


def test_the_libraries_do_not_ask_which_trace_is_current():
    root = os.path.dirname(namoo.__file__)
    rooms = "numpy random primitives transforms control scipy nn lax optim".split()
    for room in rooms:
        for folder, _, files in os.walk(os.path.join(root, room)):
            for file in files:
                if file.endswith(".py"):
                    with open(os.path.join(folder, file), encoding="utf-8") as text:
                        source = text.read()
                    assert "context.trace is" not in source, file
                    assert "set_floating_errors" not in source, file


def test_the_setting_turns_them_off_for_a_thread_and_a_process():
    assert context.trace is eval_trace
    with eager_shortcuts(False):
        assert context.trace is not eval_trace
        assert float(jnp.sum(v + v)) == 12.0
        assert namoo.grad(lambda x: x**2)(3.0) == 6.0
        assert namoo.jit(lambda x: x + 1)(v).tolist() == [4.0, 2.0, 3.0]
        assert namoo.vmap(jnp.sin)(v).shape == (3,)
    assert context.trace is eval_trace
    config.update("eager_shortcuts", False)
    try:
        assert context.trace is not eval_trace
    finally:
        config.update("eager_shortcuts", True)
    assert context.trace is eval_trace


def test_the_environment_turns_them_off():
    code = "import namoo.numpy as jnp; from namoo.core.trace import context, plain_trace\n"
    code += "assert context.trace is plain_trace; print((jnp.arange(3) + 1).tolist())"
    env = {**os.environ, "NAMOO_EAGER_SHORTCUTS": "off"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "[1, 2, 3]", done.stderr


@pytest.mark.parametrize(("exponent", "weak"), [(2, True), (3, True), (-1, True), (0.5, False)])
@pytest.mark.parametrize("shortcuts", [True, False])
def test_integer_exponents_are_static_under_transformations(exponent, weak, shortcuts):
    """The derivative of x ** 2 is weakly typed where x is, as in JAX; that of x ** 0.5 is not."""
    with eager_shortcuts(shortcuts):
        assert namoo.grad(lambda x: x**exponent)(2.0).weak_type == weak
        assert not namoo.grad(lambda x: x**exponent)(jnp.float32(2.0)).weak_type


@pytest.mark.parametrize("shortcuts", [True, False])
def test_a_donated_argument_is_given_up_either_way(shortcuts):
    with eager_shortcuts(shortcuts):
        x = jnp.ones(4)
        namoo.jit(lambda x: x * 2.0, donate_argnums=0)(x)
        assert x.is_deleted()


def test_a_chain_of_changes_writes_to_temporaries_only():
    x = jnp.zeros(4)
    first = x.at[0].set(1.0)
    out = x.at[1].set(2.0).at[2].add(3.0).at[jnp.array([3, 3])].add(1.0)
    ref = first.at[1]
    assert ref.set(5.0).tolist() == [1.0, 5.0, 0.0, 0.0]
    assert ref.set(6.0).tolist() == [1.0, 6.0, 0.0, 0.0]
    assert x.tolist() == [0.0] * 4
    assert first.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert out.tolist() == [0.0, 2.0, 3.0, 2.0]


def test_loading_the_operators_changes_no_array():
    code = "import namoo.numpy._methods; from namoo.eager import indexing\n"
    code += "assert not indexing._counts_of_temporary.cache_info().currsize"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_reference_counts_nothing_is_changed_in_place(monkeypatch):
    from namoo.eager import indexing

    monkeypatch.setattr(indexing, "_COUNTED", False)
    test_a_chain_of_changes_writes_to_temporaries_only()


# What each function of several operations is called with; most take one vector, or two.

LONG = jnp.asarray(np.random.default_rng(0).uniform(0.1, 3.0, (40, 50)).astype(np.float32))

_COMPOSED = {
    "nn.normalize.one_hot": [(at, 3)],
    "numpy.calculus.trapezoid": [(v, f[0])],
    "numpy.creation.arange": [(0.0, 1.0, 0.25)],
    "numpy.creation.full": [((2, 3), 1.5)],
    "numpy.creation.full_like": [(f, 2.0)],
    "numpy.einstein.einsum": [("ij,kj->ik", f, g)],
    "numpy.editing.choose": [(at // 2, [v[:2], f[0, :2]])],
    "numpy.editing.delete": [(v, 1)],
    "numpy.editing.insert": [(v, 1, 5.0)],
    "numpy.editing.repeat": [(v, 2), (f, 2, 1)],
    "numpy.fft.frequencies.fftfreq": [(8,)],
    "numpy.fft.frequencies.rfftfreq": [(8,)],
    "numpy.grids.indices": [((2, 3),)],
    "numpy.histograms.bincount": [(at,)],
    "numpy.linalg.systems.lstsq": [(m, v)],
    "numpy.linalg.systems.solve": [(m, v)],
    "numpy.linalg.products.matrix_power": [(m, 3)],
    "numpy.linalg.products.multi_dot": [([m, m, m],)],
    "numpy.logic.left_shift": [(i, 2), (j, j)],
    "numpy.logic.right_shift": [(i, 2), (j, j)],
    "numpy.manipulation.array_split": [(v, 2)],
    "numpy.manipulation.hsplit": [(f, 3)],
    "numpy.manipulation.split": [(v, 3)],
    "numpy.manipulation.moveaxis": [(kernel, 0, -1)],
    "numpy.manipulation.resize": [(v, (2, 4))],
    "numpy.manipulation.roll": [(v, 1)],
    "numpy.manipulation.swapaxes": [(f, 0, 1)],
    "numpy.manipulation.tile": [(f, 2)],
    "numpy.padding.pad": [(f, 1), (v, (1, 2))],
    "numpy.selection.clip": [(f, 0.0, 1.0)],
    "numpy.selection.select": [([t, ~t], [v, f[0]], 0.0)],
    "numpy.selection.where": [(t, v, 1)],
    "numpy.sets.isin": [(i, at)],
    "numpy.sorting.lexsort": [((v, f[0]),)],
    "numpy.sorting.partition": [(v, 1)],
    "numpy.spaces.geomspace": [(1.0, 8.0, 4)],
    "numpy.spaces.linspace": [(0.0, 1.0, 5)],
    "numpy.spaces.logspace": [(0.0, 1.0, 5)],
    "numpy.taking.take": [(f, at, None, None, "fill")],
    "numpy.taking.take_along_axis": [(v, at, 0)],
    "numpy.reductions.average": [(v,), (f, 0)],
    "random.continuous.exponential": [(random.PRNGKey(0), (4,))],
    "random.discrete.choice": [(random.PRNGKey(0), v)],
    "random.discrete.permutation": [(random.PRNGKey(0), 5)],
    "random.keys.fold_in": [(random.PRNGKey(0), 3)],
    "random.keys.split": [(random.PRNGKey(0), 3)],
    "random.uniforms.bernoulli": [(random.PRNGKey(0), 0.3, (4,))],
    "random.uniforms.randint": [(random.PRNGKey(0), (4,), 0, 9)],
}
_COMPOSED |= {
    f"numpy.{name}": [(v, f[0])]
    for name in """arithmetic.divmod arithmetic.float_power arithmetic.floor_divide arithmetic.fmod
    arithmetic.remainder calculus.convolve calculus.correlate comparing.allclose
    comparing.array_equal contraction.cross contraction.inner contraction.kron contraction.outer
    contraction.vdot elementary.hypot float_parts.heaviside float_parts.nextafter joining.append
    number_parts.isclose polynomial.polyval""".split()
}
_COMPOSED |= {f"numpy.{name}": [(j, i)] for name in ("float_parts.gcd", "float_parts.lcm")}
_COMPOSED |= {"numpy.arithmetic.power": [(v, 3), (v, f[0])]}
_COMPOSED |= {
    f"numpy.joining.{name}": [([f, g],)] for name in "column_stack dstack hstack vstack".split()
}
_COMPOSED |= {
    f"numpy.quantiles.{name}": [(f, 0.3), (f[0], 0.5, 0)] for name in "quantile nanquantile".split()
}
_COMPOSED |= {f"numpy.quantiles.{name}": [(f, 30.0)] for name in "percentile nanpercentile".split()}
_BY_MATRIX = ("numpy.linalg.", "numpy.grids.t", "numpy.contraction.trace", "numpy.covariance")
# These read values, so nothing can be remembered.
_READS = {"numpy.editing.choose", "numpy.histograms.bincount"}


def composed_calls(name):
    if name in _COMPOSED:
        return _COMPOSED[name]
    if name.startswith(_BY_MATRIX):
        return [(m,)]
    if name.startswith("numpy.fft.") and name.endswith(("2", "n")):
        return [(f,), (c[:, None],)]
    if name.startswith("numpy.manipulation"):
        return [(f,)]
    if name.endswith(("meshgrid", "vander", "ediff1d")):
        return [(v,)]
    return [(f,), (v,), (n,), (LONG,)]


@pytest.mark.parametrize("in_cpp", [True, False])
def test_repeated_calls_give_what_the_first_one_gave(in_cpp, monkeypatch):
    if not in_cpp:
        monkeypatch.setattr(repeated, "run_repeated", repeated._run_repeated)
    for entry in composed.ENTRIES:
        name = f"{entry.module}.{entry.name}"
        general = general_function(entry)
        quick = entry.install(general)
        for args in composed_calls(name):
            # Functions that it calls may have shortcuts of their own, and are exact all the same.
            wanted = outcome(general, *args)
            remembered = len(repeated._programs)
            for _ in range(repeated.CALLS + 2):
                assert_same(outcome(quick, *args), wanted)
            if not isinstance(wanted, Raised) and name not in _READS:
                program = [*repeated._programs.values()][-1]
                assert len(repeated._programs) > remembered and program, (name, args)


@pytest.mark.parametrize("in_cpp", [True, False])
def test_a_repeated_call_is_told_from_its_like(in_cpp, monkeypatch):
    """Numbers that are equal in Python, types, shapes, keywords, nesting and settings."""
    if not in_cpp:
        monkeypatch.setattr(repeated, "run_repeated", repeated._run_repeated)
    calls = [
        *[((x, y), {}) for x in (f, v, i, t, s, weak, h) for y in (1, 1.0, True, 0.0, -0.0)],
        *[((f, None), {}), ((f, [1]), {}), ((f, (1,)), {}), ((f, [1, 1]), {}), ((f, "1"), {})],
        *[((f, "y", 1), {}), ((f, "y"), {"z": 1}), ((f,), {"y": "z"}), ((f, "y", "z"), {})],
        *[((f,), {"y": 1}), ((f,), {"z": 1}), (([f, g], 1), {}), (((f, g), 1), {})],
        *[
            ((f, 2**63), {}),
            ((f, object), {}),
            ((f, np.ones(2)), {}),
            ((key, 1), {}),
            ((f, ...), {}),
        ],
    ]
    seen = []

    def describe(x, y=None, z=None):
        seen.append((x, y, z))
        first = x[0] if type(x) in (list, tuple) else x
        return first + 0 if first.dtype != key.dtype else first

    quick = repeated.repeated(describe)
    for args, options in calls:
        for _ in range(repeated.CALLS - 1):
            quick(*args, **options)
    # Each call ran every time: none was taken for another one.
    assert len(seen) == len(calls) * (repeated.CALLS - 1)
    quick(*calls[0][0])
    count = len(seen)
    quick(*calls[0][0])
    assert len(seen) == count
    with namoo.numpy_rank_promotion("raise"):
        quick(*calls[0][0])
    assert len(seen) == count + 1


def test_errors_of_a_repeated_call_stay_those_of_the_function():
    for _ in range(repeated.CALLS + 2):
        with pytest.raises(ValueError, match="axis"):
            jnp.median(f, axis=5)


def test_memory_of_repeated_calls_is_bounded():
    quick = repeated.repeated(lambda x, y: x * y)
    for number in range(repeated._LIMIT + 10):
        quick(v, float(number))
    assert len(repeated._counts) <= repeated._LIMIT
    namoo.clear_caches()
    assert not repeated._counts and not repeated._programs
