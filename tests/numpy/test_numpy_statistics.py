"""Counting, histograms and covariances against real JAX and NumPy; derivatives of quantiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_gradients as gradients
import numpy_oracle as oracle


def calls(names, arguments):
    return [f"jnp.{name}({args})" for name in names for args in arguments]


COUNTS = [
    *calls(
        ["bincount"],
        [
            "j, length=4",
            "j, length=9",
            "j, length=0",
            "j, g, length=6",
            "j, j, length=6",
            "j, c[0], length=6",
            "j, h[0], length=6",
            "i[0], length=6",
            "u[0], length=200",
            "t[0], length=2",
            "j, length=4, minlength=8",
            "jnp.zeros(0, int), length=3",
            "j, t[0], length=6",
            "f, length=3",
            "i, length=3",
            "3, length=3",
            "j, g[:2], length=3",
            "j, length=-2",
            "[1, 2], length=3",
            "j",
        ],
    ),
]
EAGER = [
    *calls(["bincount"], ["j", "j, g", "j, minlength=9", "i[0]", "jnp.zeros(0, int)", "t[0]"]),
    *calls(["bincount"], ["j, minlength=-3", "jnp.zeros(0, int), minlength=3", "v[0], weights=j"]),
]
EDGES = "jnp.array([-1.0, 0.0, 0.5, 2.0])"
HISTOGRAMS = [
    *calls(
        ["histogram", "histogram_bin_edges"],
        [
            "f",
            "g, 3",
            "g, 4, (0, 2)",
            f"f, {EDGES}",
            "f, np.array([-1, 0, 2])",
            "i, 3",
            "i, jnp.array([0, 2, 4])",
            "h, 3",
            "t, 2",
            "s, 2",
            "jnp.ones(3), 2",
            "f, 3, (1, 1)",
            "f, 1",
            "f, jnp.array([1.0])",
            "e, 3",
            "e, 3, (0, 1)",
            "f, 3, (0, 1, 2)",
            "f, 'auto'",
            "f, [0.0, 1.0]",
            "[1.0], 3",
            "f, f",
        ],
    ),
    *calls(
        ["histogram"],
        [
            "f, 3, weights=f",
            "f, 3, weights=i",
            "i, 3, weights=c",
            "f, 3, density=True",
            "f, 3, density=True, weights=p",
            f"f, {EDGES}, density=True",
            "f, 3, weights=g",
        ],
    ),
    *calls(
        ["histogram2d"],
        [
            "g, j",
            "g, j, 3",
            "g, j, [2, 3]",
            "g, j, jnp.array([2, 3])",
            f"g, j, {EDGES}",
            f"g, j, [{EDGES}, 2]",
            f"g, g, ({EDGES}, {EDGES})",
            "g, j, 3, [(0, 1), (1, 4)]",
            "g, j, 3, [None, (1, 4)]",
            "g, j, 3, weights=g",
            "g, j, 3, density=True",
            "g, j, 3, density=True, weights=j",
            "j, j, 3",
            "g, g[:2]",
            "f, f",
            "[1.0], [2.0]",
        ],
    ),
    *calls(
        ["histogramdd"],
        [
            "f[:, :2], 3",
            "f, 2",
            "i[:, :2], 3",
            f"f[:, :2], [{EDGES}, 3]",
            "f[:, :2], jnp.array([2, 3])",
            "f[:, :2], 2, [(0, 1), None]",
            "f[:, :2], 3, weights=jnp.arange(3)",
            "i[:, :2], 3, weights=jnp.arange(3, dtype='float16')",
            "k[:, :2], 3, weights=jnp.arange(3, dtype='bfloat16')",
            "f[:, :2], 3, density=True",
            "f[:, :1], 3, density=True, weights=jnp.arange(3.0)",
            "f[:, :2], [2]",
            "f, 2, [(0, 1)]",
            "f, 2, weights=g",
            "g, 2",
            "[[1.0]], 2",
        ],
    ),
]
COVARIANCES = [
    *calls(
        ["cov", "corrcoef"],
        [
            "f",
            "g",
            "i",
            "c",
            "h",
            "s",
            "2.0",
            "f, rowvar=False",
            "g, j",
            "f, m",
            "f, g",
            "c, f",
            "f, dtype='float16'",
            "jnp.zeros((0, 3))",
            "jnp.zeros((3, 0))",
            "jnp.zeros(0)",
            "f, dtype='int32'",
            "jnp.ones((2, 3))",
            "g[:1]",
            "z",
            "[1.0]",
        ],
    ),
    *calls(
        ["cov"],
        [
            "f, bias=True",
            "f, ddof=0",
            "f, ddof=2",
            "f, ddof=0.5",
            "f, fweights=j",
            "f, fweights=j.astype('uint8')",
            "f, aweights=j > 0",
            "f, aweights=p[0]",
            "f, fweights=j, aweights=p[0]",
            "f, fweights=j, bias=True",
            "f, aweights=p[0], ddof=0",
            "c, aweights=p[0]",
            "i, fweights=j",
            "f, fweights=g",
            "f, fweights=i",
            "f, fweights=j[:2]",
            "f, aweights=f",
            "f, aweights=g[:2]",
        ],
    ),
]
TABLES = {"counts": COUNTS, "histograms": HISTOGRAMS, "covariances": COVARIANCES}
CASES = [(name, text) for name, table in TABLES.items() for text in table]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


@pytest.mark.parametrize("expression", EAGER)
def test_concrete_values(expression):
    oracle.check_eager(expression)


integers = st.lists(st.integers(0, 6), min_size=1, max_size=20).map(lambda x: np.array(x, np.int32))


@settings(max_examples=50)
@given(integers, st.integers(1, 6), st.booleans(), st.integers(0, 9))
def test_against_numpy(x, bins, density, length):
    a, weights = jnp.asarray(x), np.linspace(1, 2, x.size).astype(np.float32)
    np.testing.assert_array_equal(jnp.bincount(a), np.bincount(x))
    counted = namoo.jit(lambda a: jnp.bincount(a, length=length))(a)
    np.testing.assert_array_equal(counted, np.append(np.bincount(x), np.zeros(9, int))[:length])
    edges = np.arange(bins + 1, dtype=np.float32) + 1
    same = lambda p, q: np.testing.assert_allclose(p, q, 1e-5, 1e-6)  # noqa: E731
    inside = ((x >= 1) & (x <= bins + 1)).any()
    if inside or not density:
        found = jnp.histogram(a, jnp.asarray(edges), weights=weights, density=density)
        same(found[0], np.histogram(x, edges, weights=weights, density=density)[0])
    y = np.roll(x, 1)
    if bins > 2:  # two numbers are two counts of bins
        found = jnp.histogram2d(a, jnp.asarray(y), jnp.asarray(edges))[0]
        same(found, np.histogram2d(x, y, [edges, edges])[0])
    if x.size > 2:
        same(jnp.cov(a, jnp.asarray(y)), np.cov(x, y))


N = gradients.normal


def test_mapped():
    x = jnp.asarray(gradients.normal(3, 5))
    found, _ = namoo.vmap(lambda x: jnp.histogram(x, 4), in_axes=1)(x)
    wanted = np.stack([np.histogram(x[:, i], 4)[0] for i in range(5)])
    np.testing.assert_array_equal(found, wanted)


def test_message_under_jit():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="length|largest"):
        namoo.jit(jnp.bincount)(jnp.arange(3))
