"""Elementwise functions against real JAX: values, dtypes, weak types, shapes, errors."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
import numpy_oracle as oracle
from shortcuts import assert_same, outcome, without_shortcuts

UNARY = """absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_count bitwise_not cbrt ceil
conjugate cos cosh deg2rad exp exp2 expm1 fabs floor frexp i0 imag iscomplex isfinite isinf isnan
isneginf isposinf isreal log log10 log1p log2 logical_not modf nan_to_num negative positive rad2deg
real reciprocal rint round sign signbit sin sinc sinh spacing sqrt square tan tanh trunc
angle""".split()

BINARY = """add arctan2 bitwise_and bitwise_or bitwise_xor copysign divmod equal float_power
floor_divide fmax fmin fmod greater greater_equal heaviside hypot isclose ldexp left_shift less
less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal power remainder right_shift subtract true_divide""".split()

ALIASES = """abs=absolute acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan
atan2=arctan2 atanh=arctanh bitwise_invert=bitwise_not bitwise_left_shift=left_shift conj=conjugate
divide=true_divide bitwise_right_shift=right_shift degrees=rad2deg invert=bitwise_not mod=remainder
pow=power radians=deg2rad""".split()

UNARY_ARGUMENTS = [
    "f",
    "q",
    "p",
    "h",
    "b",
    "i",
    "k",
    "u",
    "t",
    "c",
    "n",
    "s",
    "e",
    "s < 1",
    "1.5",
    "2",
    "True",
    "jnp.asarray(0.5)",
    "jnp.broadcast_to(0.5, (4,))",
]
BINARY_ARGUMENTS = [
    "f, p",
    "f, g",
    "f, 2.5",
    "0.5, p",
    "p, 2",
    "i, j",
    "i, 3",
    "2, j",
    "j, f",
    "f, j",
    "k, u",
    "u, 2",
    "v, j",
    "h, f",
    "h, 1.5",
    "b, b",
    "t, t",
    "t, 2",
    "i, True",
    "c, f",
    "c, c",
    "n, f",
    "s, s",
    "2, 3",
    "1.5, 2",
    "e, e",
    "f, f.T",
    "z, g",
    "f, [1.0]",
    "f, 'x'",
    "u, jnp.asarray(0.5)",
    "t, jnp.broadcast_to(2, (4,))",
    "jnp.broadcast_to(2, ()), t",
    "jnp.broadcast_to(0.5, (4,)), jnp.asarray(0.5)",
]


def calls(names, arguments):
    return [f"jnp.{name}({args})" for name in names for args in arguments]


TABLES = {
    **{f"unary {n}": calls(UNARY[n::3], UNARY_ARGUMENTS) for n in range(3)},
    **{f"binary {n}": calls(BINARY[n::6], BINARY_ARGUMENTS) for n in range(6)},
}
CASES = [(name, text) for name, table in TABLES.items() for text in table]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


@pytest.mark.parametrize("table", TABLES)
def test_the_same_without_eager_shortcuts(table):
    def value(expression):
        return eval(expression, {"jnp": jnp, "np": np, **arrays})

    arrays = {name: jnp.asarray(x) for name, x in oracle.ARRAYS.items()}
    for expression in TABLES[table]:
        found = outcome(value, expression)
        assert_same(found, without_shortcuts(value, expression), ulps=2)


@pytest.mark.parametrize("pair", ALIASES)
def test_two_names(pair):
    alias, name = pair.split("=")
    assert getattr(jnp, alias).__name__ == name


@pytest.mark.parametrize("name", ["bitwise_not", "logical_not", "absolute", "real", "sin"])
def test_weak_booleans_are_weak_in_compiled_programs_as_in_eager_mode(name):
    x = jnp.asarray(3) < 2
    fun = getattr(jnp, name)
    assert namoo.jit(fun)(x).weak_type == fun(x).weak_type
