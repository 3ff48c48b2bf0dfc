"""Sorting and searching against real JAX and NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_gradients as gradients
import numpy_oracle as oracle

ARRAYS = ["f", "g", "h", "b", "i", "k", "u", "t", "c", "n", "z", "e.T", "jnp.asarray(2.0)[None]"]
WRONG = ["s", "[2, 1]", "f, axis=2", "f, axis=-3", "f, axis='0'"]


def calls(names, arguments):
    return [f"jnp.{name}({args})" for name in names for args in arguments]


SORTING = [
    *calls(["sort", "argsort", "sort_complex"], [*ARRAYS, "s", "[2, 1]"]),
    *calls(
        ["sort", "argsort"], [f"{x}, axis=0, descending=True" for x in ("f", "i", "n", "t", "c")]
    ),
    *calls(
        ["sort", "argsort"], ["z, axis=1", "z, axis=None", "s, axis=None", "i, 0, stable=False"]
    ),
    *calls(["sort", "argsort"], [*WRONG, "f, kind='stable'", "f, order='x'", "f, kind=None"]),
    *calls(["argsort"], ["i, dtype='int8'", "i, dtype='float32'", "v, descending=True, axis=None"]),
    *calls(
        ["lexsort"],
        [
            "(f, i)",
            "(i, f)",
            "(t, k, n)",
            "i",
            "z",
            "(g,)",
            "(f, f), axis=0",
            "(i, t), -2",
            "g",
            "(1.0, 2.0)",
            "()",
            "(f, g)",
            "(f, f), axis=2",
            "([1], [2])",
        ],
    ),
    *(
        f"jnp.{name}({x}, {k}, axis={axis})"
        for name in ("partition", "argpartition")
        for x in ("f", "i", "u", "n", "h", "z")
        for k, axis in ((0, -1), (2, -1), (-1, -1), (1, 0), (3, 0), (1, 5))
    ),
    *calls(["partition", "argpartition"], ["c, 1", "s, 0", "f, (1, 2)", "f, 1.0", "[1], 0"]),
]
EDGES = "jnp.sort(g)"
SEARCHING = [
    *(
        f"jnp.searchsorted({a}, {v}, {side!r}, method={method!r})"
        for a, v in (
            (EDGES, "f"),
            ("jnp.array([1, 1, 2, 5])", "i"),
            ("jnp.array([1.0, 3.0, jnp.nan, jnp.nan])", "n"),
            ("jnp.array([-0.0, 0.0])", "jnp.array([0.0, -0.0])"),
            ("jnp.array([1, 2], dtype=jnp.int8)", "1.5"),
            ("jnp.array([False, True])", "t"),
            ("jnp.sort(u[0])", "k"),
            ("jnp.zeros(0)", "f"),
        )
        for side in ("left", "right")
        for method in ("scan", "scan_unrolled", "sort", "compare_all")
    ),
    "jnp.searchsorted(g, f, sorter=jnp.argsort(g))",
    "jnp.searchsorted(jnp.sort(c[0]), c)",
    "jnp.searchsorted(jnp.sort(h[0]), h)",
    *calls(["searchsorted"], ["f, g", "g, f, 'middle'", "g, f, method='other'", "[1], 1", "s, s"]),
    *(
        f"jnp.digitize({x}, {bins}, {right})"
        for x, bins in (
            ("f", "jnp.array([-1.0, 0.0, 1.0])"),
            ("f", "jnp.array([1.0, 0.0, -1.0])"),
            ("i", "jnp.array([0, 2, 2])"),
            ("i", "jnp.array([2, 0])"),
            ("n", "jnp.array([0.0, 1.0])"),
            ("i", "jnp.array([1, 1])"),
            ("s", "jnp.array([0.5])"),
        )
        for right in (False, True)
    ),
    *calls(["digitize"], ["f, jnp.zeros(0)", "f, f", "f, [0.0]", "f, jnp.sort(g), method='sort'"]),
]
TABLES = {"sorting": SORTING, "searching": SEARCHING}
CASES = [(name, text) for name, table in TABLES.items() for text in table]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


def arrays(data, dtype, low=-3, high=3):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    seed = data.draw(st.integers(0, 99))
    x = np.random.RandomState(seed).randint(low, high, shape).astype(dtype)
    if np.dtype(dtype).kind == "f" and data.draw(st.booleans()):
        x.flat[:: data.draw(st.integers(1, 4))] = np.nan
    return x


@settings(max_examples=60)
@given(st.data())
def test_any_shape_and_axis(data):
    """Arrays with many ties, and with NaN, along any axis, against NumPy's stable sort."""
    x = arrays(data, data.draw(st.sampled_from([np.float32, np.int32, np.int8, np.float16])))
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    a = jnp.asarray(x)
    order = np.argsort(x, axis, kind="stable")
    np.testing.assert_array_equal(jnp.argsort(a, axis), order)
    np.testing.assert_array_equal(jnp.sort(a, axis), np.sort(x, axis))
    falling = np.asarray(jnp.argsort(a, axis, descending=True))
    flat, axis = (x.ravel(), 0) if axis is None else (x, axis)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, falling, axis), np.flip(np.sort(flat, axis), axis)
    )
    steps = np.diff(falling, axis=axis)
    sorted_values = np.take_along_axis(flat, falling, axis)
    with np.errstate(invalid="ignore"):
        assert (steps[np.diff(sorted_values, axis=axis) == 0] > 0).all(), "ties keep their order"
    k = data.draw(st.integers(-flat.shape[axis], flat.shape[axis] - 1))
    parted = np.asarray(jnp.partition(jnp.asarray(flat), k, axis))
    places = np.asarray(jnp.argpartition(jnp.asarray(flat), k, axis))
    kth = np.take(np.sort(flat, axis), [k], axis)
    for found in (parted, np.take_along_axis(flat, places, axis)):
        np.testing.assert_array_equal(np.take(found, [k], axis), kth)
        np.testing.assert_array_equal(np.sort(found, axis), np.sort(flat, axis))
        head, tail = np.split(found, [k % flat.shape[axis]], axis)
        assert not (head > kth).any() and not (tail < kth).any()


@settings(max_examples=40)
@given(st.data())
def test_searching_anything(data):
    dtype = data.draw(st.sampled_from([np.float32, np.int32, np.uint8]))
    low = 0 if dtype == np.uint8 else -3
    a, v = np.sort(arrays(data, dtype, low).ravel()), arrays(data, dtype, low)
    side = data.draw(st.sampled_from(["left", "right"]))
    method = data.draw(st.sampled_from(["scan", "scan_unrolled", "sort", "compare_all"]))
    wanted = np.searchsorted(a, v, side)
    search = lambda a, v: jnp.searchsorted(a, v, side, method=method)  # noqa: E731
    np.testing.assert_array_equal(search(jnp.asarray(a), jnp.asarray(v)), wanted)
    np.testing.assert_array_equal(namoo.jit(search)(a, v), wanted)
    if not np.isnan(v).any():
        found = jnp.digitize(jnp.asarray(v), jnp.asarray(a), side == "left")
        np.testing.assert_array_equal(found, np.digitize(v, a, side == "left"))


@pytest.mark.parametrize(
    "fun",
    [
        jnp.sort,
        jnp.argsort,
        lambda x: jnp.lexsort((x, -x)),
        lambda x: jnp.partition(x, 1),
        lambda x: jnp.argpartition(x, 1),
        lambda x: jnp.searchsorted(jnp.sort(x), jnp.array([0.0, 1.0])),
        lambda x: jnp.digitize(x, jnp.array([0.0, 1.0])),
    ],
)
def test_mapped(fun):
    x = jnp.asarray(gradients.normal(3, 5))
    found = namoo.vmap(fun, in_axes=1)(x)
    np.testing.assert_array_equal(found, np.stack([fun(x[:, i]) for i in range(5)]))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.complex64])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_searching_arrays_of_any_length(dtype, side, n):
    a = np.sort(np.arange(n) // 2).astype(dtype)
    v = np.arange(-1 if dtype != np.uint8 else 0, n // 2 + 3).astype(dtype)
    if np.issubdtype(dtype, np.inexact):
        a[n - n // 3 :] = np.nan
        v = np.append(v, [np.nan, np.inf, -np.inf, -0.0]).astype(dtype)
    search = lambda a, v: jnp.searchsorted(a, v, side)  # noqa: E731
    for found in (search(jnp.asarray(a), jnp.asarray(v)), namoo.jit(search)(a, v)):
        np.testing.assert_array_equal(found, np.searchsorted(a, v, side))


@pytest.mark.parametrize(("n", "reads"), [(0, 0), (1, 1), (2, 2), (16, 5), (17, 6), (10_000, 15)])
def test_a_search_reads_one_element_for_each_halving(n, reads):
    a, v = np.zeros(n, np.float32), np.zeros(9, np.float32)

    def gathers(fun, *args):
        return str(namoo.make_jaxpr(fun)(*args)).count(" gather[")

    assert gathers(jnp.searchsorted, a, v) == reads
    if n > 1:  # two more for the ends; rising and falling edges share one search
        assert gathers(jnp.digitize, v, a) <= reads + 2
