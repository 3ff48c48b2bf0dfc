"""Symbolic dimensions: arithmetic, comparisons, constraints and text."""

from __future__ import annotations

import itertools
import operator
import random

import jax.export
import pytest

from namoo.dimensions.expression import DimExpr, bounds, max_dim, min_dim
from namoo.errors import InconclusiveDimensionOperation
from namoo.export import SymbolicScope, is_symbolic_dim, symbolic_shape

INFINITY = float("inf")

TEXTS = [
    "2*b*a",
    "-2 * b * a^2 + b^2",
    "a - b",
    "b - a",
    "-1 * a",
    "a + -1",
    "+ 2",
    "3 * a * mod(a + 2, b + 2)",
    "3 * floordiv(a + 2, b + 2) * 2",
    "max(a, b)",
    "min(a, b)",
    "a*b + a^2 + b + a",
    "mod(a, 4) + floordiv(a, 4) + a",
    "a*floordiv(b, 8)*mod(b, 4)",
    "floordiv(2*a*b + b*b, a + b)",
    "floordiv(3, a)",
    "max(a, a + 2)",
    "min(a, a - 2)",
    "(a, 3, b)",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_shapes_are_read_and_printed_as_by_jax(text):
    found, wanted = symbolic_shape(text), jax.export.symbolic_shape(text)
    assert str(found) == str(wanted)
    scope = next((d.scope for d in found if is_symbolic_dim(d)), None)
    assert symbolic_shape(str(found), scope=scope) == found


@pytest.mark.parametrize(
    "text",
    ["2.5", "a + a a", "a ^ a", "a; a", "_", "...", ")(", "2a", "'a'", "mod(a)", "..., 3"]
    + ["floordiv(a, b, c)", "a +", "(" * 500 + "a", "a^1000", "9" * 40, "mod(3, 0)"],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="syntax error in symbolic shape"):
        symbolic_shape(text)


@pytest.mark.parametrize(
    ("text", "like", "why"),
    [
        ("3", (4,), "different size"),
        ("b, ...", None, "no 'like' shape was given"),
        ("b, 6, c, _", (4, 6, 7), "because we parsed 3 already and 'like' shape has only 3"),
        ("b, 7, c, ...", (4, 7), "because we parsed 3 already and 'like' shape has only 2"),
    ],
)
def test_text_that_does_not_fit_the_given_shape(text, like, why):
    with pytest.raises(ValueError, match=why):
        symbolic_shape(text, like=like)


def test_parts_of_a_shape_come_from_the_given_one():
    assert symbolic_shape("2, _", like=(2, 3)) == (2, 3)
    assert symbolic_shape("2, ...", like=(2, 3, 4)) == (2, 3, 4)
    assert symbolic_shape(None, like=(2, 3)) == (2, 3)


def test_results_without_variables_are_integers():
    (a,) = symbolic_shape("a")
    for value, wanted in [(a + 2 - a, 2), (a * 2 // a, 2), (0 * a, 0), (a // a, 1), (a % a, 0)]:
        assert type(value) is int and value == wanted
    assert {a, symbolic_shape("a", scope=a.scope)[0]} == {a}


def expressions(a, b, draw, depth=0):
    """A random expression of two variables."""
    kind = draw.randrange(9 if depth < 3 else 3)
    if kind < 3:
        return (a, b, draw.randrange(-6, 7))[kind]
    x, y = (expressions(a, b, draw, depth + 1) for _ in range(2))
    if kind < 6:
        return (operator.add, operator.sub, operator.mul)[kind - 3](x, y)
    if kind == 6:
        return x // draw.choice([2, 3, -2])
    if kind == 7:
        return x % draw.choice([2, 5, -3])
    return draw.choice([max_dim, min_dim])(x, y)


def evaluated(e, a, b):
    return e.evaluate({"a": a, "b": b}) if is_symbolic_dim(e) else e


@pytest.mark.parametrize("seed", range(12))
def test_values_lie_within_bounds(seed):
    draw = random.Random(seed)
    a, b = symbolic_shape("a, b", constraints=["a >= 2", "b <= 2*a"])
    for _ in range(12):
        same, e = draw.getstate(), expressions(a, b, draw)
        after = draw.getstate()
        low, high = bounds(e)
        for x, y in itertools.product((2, 3, 7), (1, 2, 4)):
            if y <= 2 * x:
                draw.setstate(same)
                wanted = expressions(x, y, draw)
                assert evaluated(e, x, y) == wanted
                assert low <= wanted <= high
        draw.setstate(after)


@pytest.mark.parametrize(
    ("text", "constraints", "wanted"),
    [
        ("a", (), (1, INFINITY)),
        ("5 - a", (), (-INFINITY, 4)),
        ("mod(a, 5)", (), (0, 4)),
        ("2*a + 3*b - 1", (), (4, INFINITY)),
        ("2*a - 3*b", (), (-INFINITY, INFINITY)),
        ("3*a*b^2 + 5*a - 7", (), (1, INFINITY)),
        ("a - mod(5, a)", (), (1, INFINITY)),
        ("floordiv(a + 4, 2)", (), (2, INFINITY)),
        ("floordiv(-11, a + 1)", (), (-6, -1)),
        ("a + 6 - 3*floordiv(a + 6, 4)", (), (2, INFINITY)),
        ("a - 2*floordiv(a, 2)", (), (0, 1)),
        ("max(15 - a, 0)", (), (0, 14)),
        ("b - max(b - a, 0)", (), (1, INFINITY)),
        ("a*b - a", (), (0, INFINITY)),
        ("a", ("a >= 5", "a <= 10"), (5, 10)),
        ("b - a", ("a + 2 <= b", "b <= a + 5"), (2, 5)),
        ("5*a - 2", ("2*a >= 5", "3*a <= 10"), (13, 13)),
        ("a", ("2*a >= 3", "-2*a >= -5"), (2, 2)),
        ("a - d", ("a >= b", "b >= c", "c >= d"), (0, INFINITY)),
        ("a", ("max(a, b) == 5", "min(a, b) == 3"), (3, 5)),
        ("b", ("b == 4*a", "a >= 2"), (8, INFINITY)),
    ],
)
def test_bounds(text, constraints, wanted):
    (e,) = symbolic_shape(text, constraints=constraints)
    assert bounds(e) == wanted


@pytest.mark.parametrize(
    ("dividend", "divisor", "wanted"),
    [
        ("3*a + 5", 3, "(a + 1, 2)"),
        ("3*a - 2", 3, "(a - 1, 1)"),
        ("a*a - b*b", "a + b", "(- b + a, 0)"),
        ("3*a*a*b + 2*b*b*a", "a*b", "(2*b + 3*a, 0)"),
        ("2*a*b + b*b", "a + b", "(floordiv(2*a*b + b^2, b + a), mod(2*a*b + b^2, b + a))"),
        ("3", "a", "(floordiv(3, a), mod(3, a))"),
    ],
)
def test_quotients_and_remainders(dividend, divisor, wanted):
    x, y = symbolic_shape(f"{dividend}, {divisor}")
    assert str(divmod(x, y)) == wanted


def test_equations_rewrite_dimensions():
    a, b, c, d = symbolic_shape("a, b, c, d", constraints=["b == a", "c == a + b", "d == 5"])
    assert (b, c, d) == (a, 2 * a, 5)
    e, f = symbolic_shape("e, f", constraints=["mod(e, 4) == 0"])
    assert e == 4 * (e // 4) and e * f == (e // 4) * f * 2 * 2 and e >= e // 4


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        ("a >= 1", "should be a sequence of strings"),
        (["a != 0"], "must contain one of '==' or '>=' or '<='"),
        (["a <= 0"], "Unsatisfiable explicit constraint: a <= 0"),
        (["a == a + 1"], "Unsatisfiable explicit constraint"),
        (["a >= b + 5", "a <= b + 4"], "Unsatisfiable"),
    ],
)
def test_constraints_that_make_no_sense(constraints, why):
    with pytest.raises(ValueError, match=why):
        a, b = symbolic_shape("a, b", constraints=constraints)
        _ = a >= b


def test_comparisons_without_an_answer_raise_and_name_the_constraints():
    (a,) = symbolic_shape("a", constraints=["a >= 5"])
    assert a >= 5 and 4 < a and not a < 3
    with pytest.raises(
        InconclusiveDimensionOperation, match=r"'a' >= '6' is inconclusive(.|\n)*a >= 5"
    ):
        _ = a >= 6
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        range(a)
    with pytest.raises(InconclusiveDimensionOperation, match="Possible division by 0"):
        _ = a // (a - 7) >= 0


def test_dimensions_of_two_scopes_do_not_mix():
    (a,), (b,) = symbolic_shape("a", constraints=["a >= 5"]), symbolic_shape("a")
    assert a != b and hash(a) != hash(b)
    for combine in (operator.add, operator.floordiv, operator.ge, max_dim):
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
            combine(a, b)
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        symbolic_shape("a", scope=SymbolicScope(), constraints=["a >= 2"])


def test_division_by_zero_is_an_error_and_numpy_scalars_are_integers():
    import numpy as np

    (a,) = symbolic_shape("a")
    with pytest.raises(ZeroDivisionError):
        _ = a % 0
    assert np.int64(2) * a == 2 * a and a + np.int32(1) == a + 1
    assert isinstance(np.int64(2) * a, DimExpr)
