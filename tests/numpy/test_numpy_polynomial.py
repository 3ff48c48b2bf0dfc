"""Polynomials, windows, and functions known at points, against real JAX."""

import jax
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


PAIRS = ["g, j", "j, g", "g, f[0, :3]", "j, j[:2]", "g, c[0]", "h[0], g"]
WRONG = ["g, 2.0", "2.0, g", "f, g", "[1.0], [2.0]"]
X, Y = "jnp.arange(4.0)", "g"
POLYNOMIALS = [
    *calls(["polyadd", "polysub"], [*PAIRS, *WRONG, "1.0, 2.0", "t[0], t[1]"]),
    *calls(["polymul"], [*PAIRS, *WRONG, "jnp.zeros(0), g", "t[0], j"]),
    *calls(["polydiv"], [*PAIRS, "g[:2], g", "g, jnp.array([0.0, 1.0])", "g, 2.0"]),
    *(f"jnp.polyder({p}, {m})" for p in ("g", "j", "c[0]", "h[0]") for m in (0, 1, 2, 4, 7, -1)),
    *calls(["polyder"], ["f", "2.0", "g, 1.0", "[1.0, 2.0]", "jnp.zeros(0)"]),
    *(f"jnp.polyint({p}, {m})" for p in ("g", "j", "c[0]", "h[0]") for m in (0, 1, 2, 3, -1)),
    *calls(["polyint"], ["g, 2, k=3", "g, 2, jnp.array([3, 4])", "g, 2, jnp.ones(3)", "g, 1, [1]"]),
    *calls(
        ["polyval"],
        ["g, f", "j, i", "j, 2.0", "f, g", "g, c", "g, 2", "t[0], 3", "t[0], t", "z, m[:3]"],
    ),
    *calls(["polyval"], ["jnp.zeros(0), f", "g, f, unroll=1", "2.0, 2.0", "[1], 2", "h[0], h"]),
    *calls(["poly"], ["g", "j", "c[0]", "2.0", "jnp.zeros(0)", "z", "f", "[1.0]", "m + m.T"]),
    *calls(
        ["polyfit"],
        [
            f"{X}, {Y}, 2",
            f"{X}, {Y}, 0",
            f"{X}, m, 1",
            f"{X}, {Y}, 2, full=True",
            f"{X}, {Y}, 2, 0.3",
            f"{X}, {Y}, 1, w=p[0]",
            f"{X}, {Y}, 1, w=p[0], full=True",
            f"{X}, {Y}, 1, cov=True",
            f"{X}, m, 1, cov=True",
            f"{X}, {Y}, 1, cov='unscaled'",
            f"{X}, {Y}, -1",
            f"f, {Y}, 1",
            f"{X}, z, 1",
            f"{X}, g[:2], 1",
            "jnp.zeros(0), jnp.zeros(0), 1",
            f"{X}, {Y}, 1, w=f",
            f"{X}, {Y}, 1, w=g[:2]",
        ],
    ),
    *calls(["roots"], [f"{p}, strip_zeros=False" for p in ("g", "j", "c[0]", "jnp.ones(1)", "f")]),
    *calls(["roots"], ["[1.0, 2.0]", "g"]),
    "jnp.roots(jnp.array([0.0, 0.0, 1.0, -1.0]), strip_zeros=False)",
]
# What needs concrete values.
EAGER = [
    *calls(
        ["roots"], ["g", "j", "c[0]", "jnp.ones(1)", "2.0", "jnp.zeros(3)", "jnp.zeros(0)", "f"]
    ),
    "jnp.roots(jnp.array([0.0, 0.0, 2.0, 4.0]))",
    "jnp.polymul(jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 3.0]), trim_leading_zeros=True)",
    "jnp.polymul(jnp.zeros(2), g, trim_leading_zeros=True)",
    "jnp.polydiv(jnp.array([1.0, 3.0, 2.0]), jnp.array([1.0, 2.0]), trim_leading_zeros=True)",
    "jnp.polydiv(g[:2], g, trim_leading_zeros=True)",
]
WINDOWS = [
    *calls(["bartlett", "blackman", "hamming", "hanning"], ["0", "1", "2", "5", "8", "-2", "4.0"]),
    *calls(["kaiser"], ["0, 2.0", "1, 2", "5, 8.6", "6, s", "5, g", "4, g", "4, 0", "-2, 1.0"]),
]
POINTS = [
    *(
        f"jnp.{name}({args}{mode})"
        for name in ("convolve", "correlate")
        for args in (
            "g, j",
            "g, g[:2]",
            "g[:2], g",
            "g[:3], f[0]",
            "c[0], c[1, :2]",
            "c[0, :2], c[1]",
        )
        for mode in ("", ", 'full'", ", 'same'", ", 'valid'", ", mode='other'")
    ),
    *calls(
        ["convolve", "correlate"],
        [
            "h[0], h[1]",
            "k[0], k[1]",
            "t[0], t[1]",
            "j, j, preferred_element_type='float32'",
            "f, g",
            "jnp.zeros(0), g",
            "[1.0], [2.0]",
        ],
    ),
    *calls(
        ["trapezoid"],
        [
            "f",
            "i",
            "c, axis=0",
            "z, axis=1",
            "f, g",
            "f, f",
            "i, j",
            "z, dx=0.5",
            "z, dx=g, axis=0",
            "z, dx=f, axis=0",
            "z, dx=f[:2], axis=1",
            "z, dx=z[:1], axis=0",
            "f, dx=jnp.ones(3)",
            "f, jnp.ones(3), axis=0",
            "g[:1]",
            "h",
            "f, axis=2",
            "f, jnp.ones(3)",
            "jnp.asarray(2.0)[None]",
            "[1.0]",
        ],
    ),
    *calls(
        ["gradient"],
        [
            "g",
            "f",
            "z, axis=1",
            "z, axis=(0, 2)",
            "f, axis=(0,)",
            "f, 2.0",
            "f, 2.0, 0.5",
            "g, jnp.array([0.0, 1.0, 3.0, 4.0])",
            "f, 2.0, jnp.array([0.0, 1.0, 3.0, 4.0])",
            "i",
            "c",
            "h, 0.5",
            "g[:2]",
            "g[:1]",
            "f, 1.0, 2.0, 3.0",
            "g, f",
            "g, jnp.ones(3)",
            "g, axis=1",
            "2.0",
        ],
    ),
    *calls(
        ["unwrap"],
        [
            "9 * f",
            "9 * f, axis=0",
            "9 * f, discont=4",
            "i, period=4",
            "i, period=5",
            "i",
            "9 * h",
            "u",
            "t",
            "c",
            "e",
            "jnp.array([0, np.pi, 0, -np.pi])",
            "3 * f, period=1.5",
        ],
    ),
    *calls(
        ["interp"],
        [
            "f, jnp.sort(g), j",
            "i, jnp.arange(4), j",
            "f, jnp.sort(g), c[0]",
            "f, jnp.sort(g), g, left=-1, right=7",
            "f, jnp.sort(g), g, left='extrapolate'",
            "f, jnp.sort(g), g, right='extrapolate'",
            "f, g, j, period=1.5",
            "f, g, j, period=-1.5",
            "n, jnp.sort(g), g",
            "f, jnp.array([0.0, 1.0, 1.0, 2.0]), g",
            "2.0, jnp.sort(g), g",
            "2.0, jnp.arange(4), j",
            "f, jnp.ones(1), jnp.ones(1)",
            "h, jnp.sort(g), g",
            "f, g, j, period=0",
            "f, g, g, left='other'",
            "c, g, g",
            "f, f, f",
            "f, g, g[:2]",
            "f, jnp.zeros(0), jnp.zeros(0)",
            "f, g, g, period=g",
            "f, 1.0, 1.0",
            "[1.0], g, g",
        ],
    ),
]
TABLES = {"polynomials": POLYNOMIALS, "windows": WINDOWS, "points": POINTS}
CASES = [(name, text) for name, table in TABLES.items() for text in table]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


@pytest.mark.parametrize("expression", EAGER)
def test_concrete_values(expression):
    oracle.check_eager(expression)


coefficients = st.lists(st.integers(-4, 4), min_size=1, max_size=6).map(
    lambda x: np.array(x, np.float32)
)


@settings(max_examples=60)
@given(coefficients, coefficients, st.sampled_from(["full", "same", "valid"]))
def test_against_numpy(x, y, mode):
    """Vectors of any two lengths: NumPy has the same results, up to leading zeros."""
    a, b = jnp.asarray(x), jnp.asarray(y)
    same = lambda p, q: np.testing.assert_allclose(p, q, 1e-4, 1e-4)  # noqa: E731
    same(jnp.convolve(a, b, mode), np.convolve(x, y, mode))
    same(jnp.correlate(a, b, mode), np.correlate(x, y, mode))
    same(jnp.polyadd(a, b), np.polyadd(x, y))
    same(jnp.polysub(a, b), np.polysub(x, y))
    same(jnp.polymul(a, b), np.convolve(x, y))
    same(jnp.polyval(a, b), np.polyval(x, y))
    same(jnp.polyint(a, 2, 3), np.polyint(x, 2, 3))
    if y[0]:
        quotient, rest = jnp.polydiv(a, b)
        same(jnp.polyadd(jnp.polymul(quotient, b), rest)[-a.size :], x)
    distinct = np.arange(x.size)
    if x.size > 1:
        same(jnp.gradient(a), np.gradient(x))
        places = np.cumsum(1 + np.abs(x))
        same(jnp.gradient(a, jnp.asarray(places)), np.gradient(x, places))
        same(jnp.trapezoid(a, jnp.asarray(places)), np.trapezoid(x, places))
    if x.size > 2:
        same(jnp.gradient(a, edge_order=2), np.gradient(x, edge_order=2))
        found = jnp.gradient(a, jnp.asarray(places), edge_order=2)
        same(found, np.gradient(x, places, edge_order=2))
    same(jnp.interp(b, jnp.asarray(distinct), a), np.interp(y, distinct, x))
    same(jnp.unwrap(a, period=3.0), np.unwrap(x, period=3.0))


@settings(max_examples=25)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=4, unique=True))
def test_roots_of_poly(zeros):
    found = jnp.roots(jnp.poly(jnp.array(zeros, jnp.float32)))
    np.testing.assert_allclose(jnp.sort(found.real), sorted(zeros), atol=2e-2)


@pytest.mark.parametrize(
    "fun",
    [
        lambda m, x: m.polyval(x, 2.0),
        lambda m, x: m.convolve(x, m.ones(2)),
        lambda m, x: m.interp(m.array([0.1, 0.2]), m.arange(3.0), x),
        lambda m, x: m.gradient(x),
        lambda m, x: m.unwrap(9 * x),
    ],
)
def test_mapped(fun):
    x = gradients.normal(3, 5)
    found = namoo.vmap(lambda x: fun(jnp, x), in_axes=1)(x)
    wanted = jax.vmap(lambda x: fun(jax.numpy, x), in_axes=1)(x)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
