"""Functions of arrays as sets against real JAX and NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_oracle as oracle

# Vectors with equal elements, with NaN, of other types, empty; and tables with equal rows.
VECTORS = ["i[0]", "jnp.array([3, 1, 2, 1, 3, 3])", "n[0]", "jnp.array([jnp.nan, 1.0, jnp.nan])"]
OTHERS = [
    "f",
    "u",
    "t",
    "c",
    "h",
    "s",
    "1.5",
    "jnp.zeros(0)",
    "jnp.array([[1, 2], [1, 2], [0, 5]])",
]
ROWS = "jnp.array([[1, 2], [0, 5], [1, 2], [0, 5], [0, 4]])"
ALL = "return_index=True, return_inverse=True, return_counts=True"


def calls(names, arguments):
    return [f"jnp.{name}({args})" for name in names for args in arguments]


# What needs concrete values.
EAGER = [
    *calls(["unique"], [*VECTORS, *OTHERS, "[1, 2]"]),
    *calls(["unique"], [f"{x}, {ALL}" for x in (*VECTORS, *OTHERS)]),
    *calls(["unique"], [f"{x}, True" for x in VECTORS]),
    *calls(["unique"], [f"{x}, {ALL}, equal_nan=False" for x in VECTORS]),
    *calls(["unique"], [f"{ROWS}, {ALL}, axis={axis}" for axis in (0, 1, -1, 2)]),
    *calls(
        ["unique"], ["n, axis=0", "jnp.zeros((0, 2)), axis=0", f"jnp.zeros((3, 0)), {ALL}, axis=0"]
    ),
    *calls(["unique"], ["z, axis=1, return_inverse=True", "i[0], sorted=False"]),
    *calls(
        ["unique_all", "unique_counts", "unique_inverse", "unique_values"],
        [*VECTORS, ROWS, "i", "[1]"],
    ),
    *calls(
        ["intersect1d", "union1d", "setdiff1d", "setxor1d"],
        [
            "i, j",
            "i[0], i[1]",
            "j, f",
            "u, k",
            "n, n",
            "j, jnp.zeros(0, int)",
            "jnp.zeros(0), jnp.zeros(0)",
            "i, 3",
            "[1], [2]",
        ],
    ),
    *calls(["intersect1d"], ["i[0], i[1], return_indices=True", "j, i, return_indices=True"]),
    *calls(
        ["intersect1d", "setxor1d"],
        ["jnp.array([3, 1, 7]), jnp.array([1, 9, 3]), assume_unique=True"],
    ),
    *calls(
        ["setxor1d"],
        [
            "jnp.array([3, 1, 1, 7]), jnp.array([9, 3, 3]), assume_unique=True",
            "jnp.array([3, 1, 1, 7]), jnp.array([9, 3, 3]), assume_unique=True, size=4",
        ],
    ),
    *calls(
        ["unique"],
        [
            f"jnp.array([1 + 1j, complex(1, np.nan), 0j, complex(np.nan, 1), 2]), {ALL}{nan}"
            for nan in ("", ", equal_nan=False")
        ],
    ),
    "jnp.setdiff1d(i, j, assume_unique=True)",
    "jnp.setdiff1d(n, jnp.array([1.0]))",
]
# What can be traced.
SIZES = ["size=2", "size=5", "size=9, fill_value=-7", "size=4, fill_value=2.5"]
TRACED = [
    *calls(["unique"], [f"{x}, {ALL}, {size}" for x in VECTORS[1:] for size in SIZES]),
    *calls(["unique"], [f"{x}, size=14" for x in ("f", "t", "c", "h")]),
    *calls(["unique"], [f"i, {ALL}, size=0"]),
    *calls(["unique"], [f"{ROWS}, {ALL}, axis=0, {size}" for size in SIZES]),
    f"jnp.unique({ROWS}, axis=0, size=5, fill_value=jnp.array([8, 9]))",
    f"jnp.unique({ROWS}, axis=1, size=3, fill_value=0)",
    "jnp.unique(jnp.zeros(0), size=2)",
    "jnp.unique(jnp.zeros(0), size=2, fill_value=1)",
    "jnp.unique(i, size=2.5)",
    "jnp.unique(i)",
    *calls(["unique_all", "unique_counts", "unique_inverse", "unique_values"], ["i, size=6"]),
    *calls(
        ["intersect1d", "union1d", "setdiff1d", "setxor1d"],
        [f"{x}, {size}" for x in ("i[0], i[1]", "n[0], n[1]") for size in SIZES],
    ),
    *calls(["intersect1d"], [f"i[0], i[1], return_indices=True, {size}" for size in SIZES]),
    *calls(["setdiff1d"], [f"i, j, assume_unique=True, {size}" for size in SIZES]),
    *(
        f"jnp.isin({x}, invert={invert})"
        for x in ("i, j", "f, f[0]", "n, n", "i, z", "3, j", "k, u", "e, g", "g, e", "c, c[0]")
        for invert in (False, True)
    ),
    *(
        f"jnp.isin({x}, method={method!r})"
        for x in ("i, j", "n, n")
        for method in ("compare_all", "binary_search", "sort")
    ),
    *calls(["isin"], ["i, j, True", "i, [1]", "i, j, method='other'"]),
]


@pytest.mark.parametrize("expression", EAGER)
def test_concrete_values(expression):
    oracle.check_eager(expression)


@pytest.mark.parametrize("expression", TRACED)
def test_given_sizes(expression):
    oracle.check_traced(tuple(TRACED), expression)


numbers = st.lists(st.integers(-3, 3), max_size=12).map(lambda x: np.array(x, np.int32))


@settings(max_examples=60)
@given(numbers, numbers, st.integers(0, 8))
def test_against_numpy(x, y, size):
    """Any two vectors, eagerly and compiled with room for any number of elements."""
    a, b = jnp.asarray(x), jnp.asarray(y)
    pairs = {
        "intersect1d": np.intersect1d(x, y),
        "union1d": np.union1d(x, y),
        "setdiff1d": np.setdiff1d(x, y),
        "setxor1d": np.setxor1d(x, y),
    }
    for name, wanted in pairs.items():
        fun = getattr(jnp, name)
        np.testing.assert_array_equal(fun(a, b), wanted, err_msg=name)
        padded = namoo.jit(lambda a, b, f=fun: f(a, b, size=size, fill_value=99))(a, b)
        full = np.append(wanted, [99] * size)[:size]
        np.testing.assert_array_equal(padded, full, err_msg=f"jit {name}")
    found = jnp.unique(a, True, True, True)
    for ours, theirs in zip(found, np.unique(x, True, True, True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(jnp.isin(a, b), np.isin(x, y))
    common, in_a, in_b = jnp.intersect1d(a, b, return_indices=True)
    _, wanted_a, wanted_b = np.intersect1d(x, y, return_indices=True)
    np.testing.assert_array_equal(in_a, wanted_a)
    np.testing.assert_array_equal(in_b, wanted_b)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=2), min_size=1, max_size=8))
def test_unique_rows(rows):
    x = np.array(rows, np.int32)
    for axis in (0, 1):
        found = jnp.unique(jnp.asarray(x), True, True, True, axis=axis)
        wanted = np.unique(x, True, True, True, axis=axis)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_mapped():
    x = jnp.array([[1, 1, 2], [3, 2, 3]])
    found = namoo.vmap(lambda x: jnp.unique(x, size=3, fill_value=0))(x)
    np.testing.assert_array_equal(found, [[1, 2, 0], [2, 3, 0]])


def test_message_under_jit():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="size"):
        namoo.jit(jnp.unique)(jnp.arange(3))
