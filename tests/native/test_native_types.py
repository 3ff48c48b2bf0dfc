"""Numbers in compiled code: constants, narrow floats, and processors that lack instructions."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.engines.native.ir import target
from namoo.engines.native.ir.function import Function, constant
from namoo.engines.native.link import code, llvm

NARROW = ["bfloat16", "float16"]
EVERY = np.arange(1 << 16, dtype=np.uint16)


def same_bits(x, y):
    """Whether two arrays are equal to the last bit; one NaN is like another."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    if x.dtype.kind in "biu":
        return np.array_equal(x, y)
    with np.errstate(all="ignore"):
        nan = np.isnan(x.astype(np.float64)) & np.isnan(y.astype(np.float64))
    bits = f"u{x.itemsize}"
    return bool(np.all((x.view(bits) == y.view(bits)) | nan))


def bits_as(dtype):
    """Numbers whose bits are those of others: -1 of 32 bits, and the like."""
    return lambda x: lax.bitcast_convert_type(x, dtype)


A = np.arange(-2, 5, dtype=np.int32)
CONSTANTS = {
    "shift left": (lambda a: a << -1, A),
    "shift right": (lambda a: a >> -1, A),
    "shift right, logical": (lambda a: lax.shift_right_logical(a, jnp.full_like(a, -1)), A),
    "shift of a scalar": (lambda a: a << -1, np.int32(3)),
    "shift of bytes": (lambda a: a << -3, A.astype(np.int8)),
    "shift of unsigned": (lambda a: a << 31, A.astype(np.uint32)),
    "unsigned compare": (lambda: bits_as("uint32")(jnp.full(5, -1, "int32")) > 5,),
    "unsigned maximum": (
        lambda a: jnp.maximum(bits_as("uint32")(jnp.int32(-1)), a.view("uint32")),
        A,
    ),
    "unsigned to float": (lambda: bits_as("uint32")(jnp.full(5, -1, "int32")).astype("float32"),),
    "unsigned quotient": (lambda: bits_as("uint32")(jnp.full(5, -6, "int32")) // 3,),
    "signed quotient": (lambda: bits_as("int32")(jnp.full(5, 2**32 - 6, "uint32")) // 4,),
    "signed compare": (lambda: bits_as("int32")(jnp.full(5, 2**32 - 6, "uint32")) < 0,),
    "widened": (lambda: bits_as("uint8")(jnp.full(5, -6, "int8")).astype("int32"),),
    "sign extended": (lambda: bits_as("int8")(jnp.full(5, 250, "uint8")).astype("int32"),),
    "cut": (lambda a: jnp.full(7, -6, "int32").astype("uint8") > a.astype("uint8"), A),
    "inverted": (lambda a: ~jnp.uint8(0) > a.astype("uint8"), A),
    "bits of a scalar": (lambda a: bits_as("int16")(a) < 0, jnp.bfloat16(-3)),
    "sign of a scalar": (jnp.signbit, jnp.bfloat16(3)),
    "sign of a half": (jnp.signbit, jnp.float16(-3)),
    "narrow constant": (lambda a: a + jnp.asarray(1.0039, "bfloat16"), jnp.zeros(3, "bfloat16")),
    "half beyond its range": (lambda a: (a + 1e6).astype("float16"), np.zeros(3, np.float32)),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants_have_the_value_that_their_type_reads(case):
    fun, *args = CONSTANTS[case]
    args = [jnp.asarray(a) for a in args]
    assert same_bits(namoo.jit(fun)(*args), fun(*args))


@pytest.mark.parametrize(
    "elem, number, other, read",
    [("i32", -1, "u32", 2**32 - 1), ("u8", 250, "i8", -6), ("u16", -1, "i16", -1)],
)
@pytest.mark.parametrize("lanes", [0, 4])
def test_a_bitcast_reads_a_constant_anew(elem, number, other, read, lanes):
    f = Function("f", [])
    value = f.bitcast(f.splat(constant(elem, number), lanes), other)
    assert (value.constant, value.lanes) == (read, lanes)
    assert f.convert(constant("i64", 2**53 + 1), "f32").constant is None  # LLVM rounds it once


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_are_converted_as_eagerly(dtype):
    narrow = jnp.dtype(dtype)
    every = EVERY.view(narrow)
    with np.errstate(all="ignore"):
        widened = every.astype(np.float32)
    assert same_bits(namoo.jit(lambda x: x.astype("float32"))(every), widened)
    # Of each number: itself, its neighbours, halfway to the next one, and the neighbours of that.
    near = np.array([0, 1, -1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0x18000])
    codes = widened.view(np.uint32).astype(np.int64)[:, None] + near
    wide = codes.astype(np.uint32).view(np.float32).ravel()
    with np.errstate(all="ignore"), namoo.enable_x64(True):
        for x in (wide, np.concatenate([wide, wide * (1 + 2.0**-40)], dtype=np.float64)):
            assert same_bits(namoo.jit(lambda x: x.astype(dtype))(x), x.astype(narrow))
        for x in (np.float32(1e-40), np.float32(2.0**-25), np.float32(np.nan), np.float64(1 / 3)):
            assert same_bits(namoo.jit(lambda x: x.astype(dtype))(x), x.astype(narrow))


# Of these eager and compiled code round the same numbers: exact operations, and formulas of them.
ROUNDED = {
    "add": lambda x, y: x + y,
    "two additions": lambda x, y: (x + y) - x,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**3 + y**-2,
    "remainder": lambda x, y: lax.rem(x, y),
    "square root": lambda x, y: jnp.sqrt(abs(x)) * y,
    "next": lambda x, y: jnp.nextafter(x, y),
    "spacing": lambda x, y: jnp.spacing(x),
    "polynomial": lambda x, y: ((x * y + 1) * x - y) * y,
    "sum": lambda x, y: (x * y)[:1000].clip(-9, 9).sum() * y,
    "product": lambda x, y: y[:6].clip(-2, 2).prod() * x,
    "running sum": lambda x, y: jnp.cumsum(x[:50].clip(-2, 2)),
    "matrix product": lambda x, y: (x[:6].clip(-2, 2)[:, None] @ y[None, :9].clip(-2, 2)) * x[:9],
    "update of elements": lambda x, y: (
        x[4000:6000].at[100:1900].multiply(y[2100:3900]).astype("float32")
    ),
    "windows": lambda x, y: lax.reduce_window(
        (x * y)[:1000].clip(-9, 9), np.zeros((), x.dtype), lax.add, (2,), (1,), "SAME"
    ).astype("float32"),
}


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_round_where_they_do_eagerly(dtype, name):
    every = jnp.asarray(EVERY).view(dtype)
    x, y = (jnp.where(jnp.isnan(v), 1, v).astype(dtype) for v in (every, every[::-3]))
    x = x[:: len(x) // len(y)][: len(y)]
    with np.errstate(all="ignore"):
        assert same_bits(namoo.jit(ROUNDED[name])(x, y), ROUNDED[name](x, y))


def test_the_sum_of_many_narrow_floats_is_rounded_once():
    x = jnp.ones(1 << 18, "bfloat16") * 1.01
    assert namoo.jit(jnp.sum)(x) == jnp.sum(x) == jnp.asarray(x, "float32").sum().astype(x.dtype)


FUNCTIONS = {
    "half": lambda x: (x.astype("float16") * 2).astype("float32"),
    "bfloat": lambda x: (x.astype("bfloat16") * 2).astype("float32"),
    "elementary": lambda x: jnp.tanh(x) + jnp.exp(x) * jnp.sin(x) - jnp.log1p(x * x),
    "product": lambda x: x.reshape(8, -1) @ x.reshape(8, -1).T,
    "norm": lambda x: x / jnp.linalg.norm(x),
}


def _calls(fun, *args):
    """The functions of others that the code of a program calls."""
    text = namoo.jit(fun).lower(*args).compile().as_text("assembly")
    return set(re.findall(r"\bcallq?\s+\*?([\w.]+)", text))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_their_values_on_this_processor(name, dtype):
    with namoo.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=200) * 9, dtype)
        out, expected = namoo.jit(FUNCTIONS[name])(x), FUNCTIONS[name](x)
        limit = 2e-5 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(out, expected, rtol=limit, atol=limit)
        outside = {c for c in _calls(FUNCTIONS[name], x) if "fma" in c or c.startswith("__")}
        assert not outside


@pytest.mark.skipif("NAMOO_TARGET_CPU" in os.environ, reason="inside that test itself")
@pytest.mark.parametrize("name", ["nehalem", "haswell"])
def test_older_processors_compute_the_same(name):
    if not target.has("sse2") or name == "haswell" and not target.has("avx2"):
        pytest.skip("not a processor of that kind")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "NAMOO_TARGET_CPU": name},
        capture_output=True,
        text=True,
    )
    assert tests.returncode == 0, tests.stdout[-3000:]


def test_the_processor_is_part_of_the_name_of_code(monkeypatch):
    names = set()
    for name in ("", "nehalem", "haswell"):
        monkeypatch.setenv("NAMOO_TARGET_CPU", name)
        names.add((code.surroundings.__wrapped__(), llvm.processor()))
    assert len(names) == 3


def test_a_processor_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setenv("NAMOO_TARGET_CPU", "pentium-12")
    with pytest.raises(ValueError, match="'pentium-12' is not a known processor: use one of x86"):
        target.for_llvm()
