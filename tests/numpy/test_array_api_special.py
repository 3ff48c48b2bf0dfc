"""The special cases of the array API standard's elementwise functions: infinity, NaN, zeros.

The table has the standard's rules (2024.12) for real numbers.  A word for a set of numbers stands
for each of them, so a rule is many cases.  Where JAX itself departs from the standard, namoo has to
depart in the same way.
"""

from __future__ import annotations

import itertools
import math

import jax.numpy
import numpy as np
import pytest

import namoo.numpy as jnp

INF, NAN = math.inf, math.nan

POSITIVE = (0.5, 1.0, 2.0, 3.0, 2.5)
NEGATIVE = tuple(-v for v in POSITIVE)
ZEROS = (0.0, -0.0)
INFINITE = (INF, -INF)
FINITE = POSITIVE + NEGATIVE + ZEROS
SETS: dict[str, tuple[float, ...]] = {
    "any": (*FINITE, *INFINITE, NAN),
    "number": FINITE + INFINITE,
    "finite": FINITE,
    "nonzero": POSITIVE + NEGATIVE,
    "zero": ZEROS,
    "infinite": INFINITE,
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "above0": (*POSITIVE, INF),
    "below0": (*NEGATIVE, -INF),
    "above1": (2.0, 2.5, INF),
    "below1": (0.5, *ZEROS, *NEGATIVE, -INF),
    "below-1": (-2.0, -2.5, -INF),
    "beyond1": (2.0, -2.0, 2.5, -2.5, *INFINITE),
    "within1": (0.5, -0.5, *ZEROS),
    "one": (1.0, -1.0),
    "not1": tuple(v for v in (*FINITE, *INFINITE, NAN) if v != 1),
    "odd": (1.0, 3.0),
    "-odd": (-1.0, -3.0),
    "notodd": (0.5, 2.0, 2.5, INF),
    "-notodd": (-0.5, -2.0, -2.5, -INF),
    "fraction": (0.5, 2.5, -0.5, -2.5),
    "integer": (1.0, 2.0, 3.0, -1.0, -2.0, -3.0, *ZEROS),
    "plus": (0.0, *POSITIVE, INF),
    "minus": (-0.0, *NEGATIVE, -INF),
}

# Results: a number, an operand (x, y, -x, -y, |x|, |y|), a size with the sign of the operands'
# product (±0, ±inf), a zero of either sign (~0), or one of several (a|b).
ROUNDING = "infinite=x zero=x integer=x nan=nan"
LOGARITHM = "nan=nan below0=nan zero=-inf 1=0 inf=inf"
UNARY = {
    "abs": "nan=nan -0=0 -inf=inf",
    "acos": "nan=nan above1=nan below-1=nan 1=0",
    "acosh": "nan=nan below1=nan 1=0 inf=inf",
    "asin": "nan=nan above1=nan below-1=nan zero=x",
    "asinh": "nan=nan zero=x infinite=x",
    "atan": "nan=nan zero=x inf=pi/2 -inf=-pi/2",
    "atanh": "nan=nan above1=nan below-1=nan -1=-inf 1=inf zero=x",
    "ceil": f"{ROUNDING} 0.5=1 -0.5=-0",
    "cos": "nan=nan zero=1 infinite=nan",
    "cosh": "nan=nan zero=1 infinite=inf",
    "exp": "nan=nan zero=1 inf=inf -inf=0",
    "expm1": "nan=nan zero=x inf=inf -inf=-1",
    "floor": f"{ROUNDING} 0.5=0 -0.5=-1",
    "isfinite": "infinite=0 nan=0 finite=1",
    "isinf": "infinite=1 nan=0 finite=0",
    "isnan": "nan=1 number=0",
    "log": LOGARITHM,
    "log10": LOGARITHM,
    "log1p": "nan=nan below-1=nan -1=-inf zero=x inf=inf",
    "log2": LOGARITHM,
    "negative": "nan=nan number=-x",
    "positive": "nan=nan number=x",
    "reciprocal": "nan=nan 0=inf -0=-inf inf=0 -inf=-0",
    "round": f"{ROUNDING} 0.5=0 -0.5=-0 2.5=2 -2.5=-2 1.5=2",
    "sign": "below0=-1 zero=~0 above0=1 nan=nan",
    "signbit": "plus=0 minus=1",
    "sin": "nan=nan zero=x infinite=nan",
    "sinh": "nan=nan zero=x infinite=x",
    "sqrt": "nan=nan below0=nan zero=x inf=inf",
    "square": "nan=nan infinite=inf zero=0",
    "tan": "nan=nan zero=x infinite=nan",
    "tanh": "nan=nan zero=x inf=1 -inf=-1",
    "trunc": f"{ROUNDING} 0.5=0 -0.5=-0 2.5=2 -2.5=-2",
}
EITHER_NAN = "nan,any=nan any,nan=nan"
BINARY = {
    "add": f"{EITHER_NAN} inf,-inf=nan -inf,inf=nan inf,inf=inf -inf,-inf=-inf infinite,finite=x "
    "finite,infinite=y -0,-0=-0 -0,0=0 0,-0=0 0,0=0 zero,nonzero=y nonzero,zero=x 2,-2=0 -2,2=0",
    "atan2": f"{EITHER_NAN} above0,zero=pi/2 0,plus=0 0,-0=pi 0,below0=pi -0,plus=-0 -0,-0=-pi "
    "-0,below0=-pi below0,zero=-pi/2 positive,inf=0 positive,-inf=pi negative,inf=-0 "
    "negative,-inf=-pi inf,finite=pi/2 -inf,finite=-pi/2 inf,inf=pi/4 inf,-inf=3pi/4 "
    "-inf,inf=-pi/4 -inf,-inf=-3pi/4",
    "copysign": "number,plus=|x| number,minus=-|x| nan,any=nan",
    "divide": f"{EITHER_NAN} infinite,infinite=nan zero,zero=nan zero,nonzero=±0 zero,infinite=±0 "
    "nonzero,zero=±inf infinite,zero=±inf infinite,nonzero=±inf nonzero,infinite=±0",
    "equal": "nan,any=0 any,nan=0 zero,zero=1 inf,inf=1 -inf,-inf=1 inf,-inf=0 finite,infinite=0",
    "floor_divide": f"{EITHER_NAN} infinite,infinite=nan zero,zero=nan zero,above0=±0 "
    "zero,below0=±0 nonzero,zero=±inf infinite,zero=±inf infinite,nonzero=±inf|nan "
    "positive,inf=0 positive,-inf=-0|-1 negative,inf=-0|-1 negative,-inf=0 2.5,2=1 -2.5,2=-2",
    "greater": f"{EITHER_NAN.replace('=nan', '=0')} zero,zero=0 inf,finite=1 finite,-inf=1",
    "greater_equal": f"{EITHER_NAN.replace('=nan', '=0')} zero,zero=1 inf,number=1 number,-inf=1",
    "hypot": "infinite,any=inf any,infinite=inf zero,number=|y| number,zero=|x| nan,finite=nan "
    "finite,nan=nan nan,nan=nan",
    "less": f"{EITHER_NAN.replace('=nan', '=0')} zero,zero=0 finite,inf=1 -inf,finite=1",
    "less_equal": f"{EITHER_NAN.replace('=nan', '=0')} zero,zero=1 number,inf=1 -inf,number=1",
    "logaddexp": f"{EITHER_NAN} inf,number=inf number,inf=inf",
    "maximum": f"{EITHER_NAN} inf,number=inf number,inf=inf -inf,number=y number,-inf=x",
    "minimum": f"{EITHER_NAN} -inf,number=-inf number,-inf=-inf inf,number=y number,inf=x",
    "multiply": f"{EITHER_NAN} infinite,zero=nan zero,infinite=nan infinite,infinite=±inf "
    "infinite,nonzero=±inf nonzero,infinite=±inf zero,finite=±0 finite,zero=±0",
    "nextafter": f"{EITHER_NAN} zero,zero=y inf,inf=inf -inf,-inf=-inf 1,1=1 2.5,2.5=2.5",
    "not_equal": "nan,any=1 any,nan=1 zero,zero=0 inf,inf=0 inf,-inf=1 finite,infinite=1",
    "pow": "not1,nan=nan any,zero=1 nan,nonzero=nan nan,infinite=nan beyond1,inf=inf "
    "beyond1,-inf=0 one,infinite=1 1,any=1 within1,inf=0 within1,-inf=inf inf,positive=inf "
    "inf,negative=0 -inf,odd=-inf -inf,notodd=inf -inf,-odd=-0 -inf,-notodd=0 0,above0=0 "
    "0,below0=inf -0,odd=-0 -0,notodd=0 -0,-odd=-inf -0,-notodd=inf negative,fraction=nan",
    "remainder": f"{EITHER_NAN} infinite,number=nan zero,zero=nan zero,positive=0 "
    "zero,negative=-0 nonzero,zero=nan positive,inf=x positive,-inf=y negative,inf=y "
    "negative,-inf=x 2.5,2=0.5 -2.5,2=1.5 2.5,-2=-1.5",
    "subtract": f"{EITHER_NAN} inf,inf=nan -inf,-inf=nan inf,-inf=inf -inf,inf=-inf "
    "infinite,finite=x finite,infinite=-y -0,0=-0 -0,-0=0 0,-0=0 0,0=0 nonzero,zero=x "
    "zero,nonzero=-y 2,2=0",
}
# How many of a function's cases JAX decides otherwise: the signs of zeros beside negative operands.
DEPARTURES = {"floor_divide": 17, "remainder": 10}
NAMED = {"pi": math.pi, "pi/2": math.pi / 2, "pi/4": math.pi / 4, "3pi/4": 3 * math.pi / 4}


def number(text: str) -> float:
    sign, size = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    return sign * NAMED[size] if size in NAMED else sign * float(size)


def results(text: str, x: float, y: float) -> list[float]:
    """The numbers a rule allows for a pair of operands."""
    operands = {"x": x, "y": y, "-x": -x, "-y": -y, "|x|": abs(x), "|y|": abs(y), "-|x|": -abs(x)}
    out = []
    for choice in text.split("|") if text not in operands else [text]:
        if choice in operands:
            out.append(operands[choice])
        elif choice.startswith("±"):
            out.append(number(choice[1:]) * math.copysign(1, x) * math.copysign(1, y))
        elif choice == "~0":
            out += ZEROS
        else:
            out.append(number(choice))
    return out


def cases(rules: str) -> list[tuple[tuple[float, ...], list[float]]]:
    """Every pair of operands that a rule speaks of, with the results it allows."""
    out = []
    for rule in rules.split():
        left, _, right = rule.partition("=")
        for values in itertools.product(*(SETS.get(w) or (number(w),) for w in left.split(","))):
            out.append((values, results(right, values[0], values[-1])))
    return out


def allows(allowed: list[float], found: float) -> bool:
    """Whether a result is one of those allowed: zeros by their sign, the rest to six digits."""
    return any(
        (math.isnan(found) and math.isnan(v))
        or (math.isclose(found, v, rel_tol=1e-6) and math.copysign(1, found) == math.copysign(1, v))
        for v in allowed
    )


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_the_special_cases(name):
    table = cases({**UNARY, **BINARY}[name])
    columns = zip(*(values for values, _ in table), strict=True)
    operands = [np.array(column, np.float32) for column in columns]
    ours = np.asarray(getattr(jnp, name)(*operands), np.float64).tolist()
    theirs = np.asarray(getattr(jax.numpy, name)(*operands), np.float64).tolist()
    departures = 0
    for (values, allowed), found, oracle in zip(table, ours, theirs, strict=True):
        if not allows(allowed, oracle):
            departures += 1
            allowed = [oracle]
        assert allows(allowed, found), f"{name}{values} is {found}, should be one of {allowed}"
    assert departures == DEPARTURES.get(name, 0), "JAX's own departures from the standard"


# Complex numbers: C99's Annex G, whose rules the standard has, and which NumPy keeps.
PARTS = (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)
PLANE = np.array([complex(a, b) for a in PARTS for b in PARTS], np.complex64)
RULES = {
    "abs": lambda a, b: INF if math.isinf(a) or math.isinf(b) else math.hypot(a, b),
    "isfinite": lambda a, b: math.isfinite(a) and math.isfinite(b),
    "isinf": lambda a, b: math.isinf(a) or math.isinf(b),
    "isnan": lambda a, b: math.isnan(a) or math.isnan(b),
    "real": lambda a, b: a,
    "imag": lambda a, b: b,
}


@pytest.mark.parametrize("name", RULES)
def test_the_special_cases_of_complex_numbers(name):
    found = np.asarray(getattr(jnp, name)(PLANE), np.float64).tolist()
    for z, value in zip(PLANE.tolist(), found, strict=True):
        assert allows([float(RULES[name](z.real, z.imag))], value), (name, z, value)


# JAX takes the real axis for its upper side there, whatever the sign of the zero beside it.
CUT_ABOVE = ("acos", "acosh", "asin", "sqrt")


@pytest.mark.parametrize(
    "name",
    "acos acosh asin asinh atan atanh conj cos cosh exp expm1 log log10 log1p log2 negative "
    "sin sinh sqrt tan tanh".split(),
)
def test_complex_functions_keep_the_upper_and_lower_half_planes_alike(name):
    """f(conj(z)) is conj(f(z)), which the standard asks also at infinities and NaN."""
    fun = getattr(jnp, name)
    z = PLANE[PLANE.imag != 0] if name in CUT_ABOVE else PLANE
    np.testing.assert_array_equal(np.asarray(fun(np.conj(z))), np.conj(np.asarray(fun(z))))


@pytest.mark.parametrize("name", CUT_ABOVE)
def test_branch_cuts_are_taken_on_the_side_of_jax(name):
    z = np.array([complex(a, b) for a in (-INF, -4, 4, INF) for b in ZEROS], np.complex64)
    ours, theirs = getattr(jnp, name)(z), getattr(jax.numpy, name)(z)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(np.asarray(ours)), part(np.asarray(theirs)), rtol=1e-6)
