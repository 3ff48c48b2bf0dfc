"""Operations on bits against JAX."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.random
from jax_oracle import OURS, THEIRS, agree, fail_alike
from namoo.primitives.bits import mulhi

rng = np.random.default_rng(0)
TYPES = "int2 uint2 int4 uint4 int8 uint8 int16 uint16 int32 uint32".split()
WIDTHS = {t: int("".join(c for c in t if c.isdigit())) for t in TYPES}


def integers(dtype, count=200):
    """All kinds of bit patterns."""
    width = WIDTHS[dtype]
    low = 0 if dtype[0] == "u" else -(2 ** (width - 1))
    x = rng.integers(low, low + 2**width, count)
    return x.astype(np.int8 if width < 8 else dtype).astype(np.dtype(dtype))


def shifts(dtype, count=200):
    """Amounts inside and outside the width of the type, and negative ones."""
    x = rng.integers(-3, WIDTHS[dtype] + 4, count)
    return x.astype(np.int8).astype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_bitwise(dtype):
    x, y = integers(dtype), integers(dtype)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        agree(lambda lib, name=name: getattr(lib.lax, name)(x, y), rtol=0)
    for name in ("bitwise_not", "clz", "population_count"):
        if (name, dtype) not in {("population_count", "int2"), ("population_count", "int4")}:
            agree(lambda lib, name=name: getattr(lib.lax, name)(x), rtol=0)


def test_narrow_integers_have_as_many_bits_as_their_name_says():
    """JAX counts the bits of their sign extension."""
    x = np.array([-1, -3, 0, 5], np.int8).astype(np.dtype("int4"))
    np.testing.assert_array_equal(namoo.lax.population_count(x).astype(np.int8), [4, 3, 0, 2])


@pytest.mark.parametrize("dtype", TYPES)
def test_shifts(dtype):
    x, y = integers(dtype), shifts(dtype)
    scalars = [np.asarray(k).astype(np.int8).astype(y.dtype) for k in (1, WIDTHS[dtype], -1)]
    for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
        for amount in (y, *scalars):
            agree(lambda lib, n=name, k=amount: getattr(lib.lax, n)(x, k), rtol=0)


@pytest.mark.parametrize("dtype", [t for t in TYPES if WIDTHS[t] >= 8])
def test_high_half_of_products(dtype):
    x, y = integers(dtype), integers(dtype)
    np.testing.assert_array_equal(mulhi(x, y), THEIRS.lax.mulhi(x, y))


EXTREMES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), -1, 0, 1, 2**32, 2**63 - 1])
)


@given(EXTREMES, EXTREMES)
def test_high_half_of_64_bits(x, y):
    with namoo.enable_x64(True):
        assert int(mulhi(np.array(x), np.array(y))) == (x * y) >> 64
        x, y = x % 2**64, y % 2**64
        assert int(mulhi(np.array(x, np.uint64), np.array(y, np.uint64))) == (x * y) >> 64


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=50)
def test_shifts_of_64_bits(x, y):
    with namoo.enable_x64(True):
        x64, y64 = np.array(x), np.array(y)
        inside = 0 <= y < 64
        left = (x << y) % 2**64 if inside else 0
        logical = (x % 2**64) >> y if inside else 0
        arithmetic = x >> (y if inside else 63)
        assert int(namoo.lax.shift_left(x64, y64)) % 2**64 == left
        assert int(namoo.lax.shift_right_logical(x64, y64)) % 2**64 == logical
        assert int(namoo.lax.shift_right_arithmetic(x64, y64)) == arithmetic
        assert int(namoo.lax.clz(x64)) == 64 - (x % 2**64).bit_length()
        assert int(namoo.lax.population_count(x64)) == (x % 2**64).bit_count()


def test_booleans_and_scalars():
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        agree(lambda lib, name=name: getattr(lib.lax, name)(p, q))
        agree(lambda lib, name=name: getattr(lib.lax, name)(6, 3))
        agree(lambda lib, name=name: getattr(lib.lax, name)(p, True))
    agree(lambda lib: lib.lax.bitwise_not(p))
    agree(lambda lib: (lib.lax.clz(5), lib.lax.population_count(5), lib.lax.bitwise_not(5)))


def random(lib):
    return namoo.random if lib is OURS else lib.random


ONES = np.ones(3, np.float32)
ERRORS = {
    "and of floats": lambda lib: lib.lax.bitwise_and(ONES, ONES),
    "not of floats": lambda lib: lib.lax.bitwise_not(ONES),
    "two types": lambda lib: lib.lax.bitwise_or(ONES.astype("int8"), ONES.astype("int16")),
    "booleans and integers": lambda lib: lib.lax.bitwise_and(ONES > 0, 1),
    "shift of booleans": lambda lib: lib.lax.shift_left(ONES > 0, ONES > 0),
    "bits of floats": lambda lib: lib.lax.population_count(ONES),
    "bits of booleans": lambda lib: lib.lax.clz(True),
    "shapes": lambda lib: lib.lax.bitwise_xor(ONES.astype("int32"), np.ones(2, np.int32)),
    "complex from floats": lambda lib: lib.lax.bitcast_convert_type(np.ones((2, 2)), "complex64"),
    "floats from complex": lambda lib: lib.lax.bitcast_convert_type(ONES + 1j, "float32"),
    "booleans": lambda lib: lib.lax.bitcast_convert_type(ONES, bool),
    "from booleans": lambda lib: lib.lax.bitcast_convert_type(ONES > 0, "int8"),
    "last axis": lambda lib: lib.lax.bitcast_convert_type(ONES.astype("int16"), "int32"),
    "no last axis": lambda lib: lib.lax.bitcast_convert_type(np.int16(1), "int32"),
    "random keys": lambda lib: lib.lax.bitcast_convert_type(random(lib).key(0), "uint32"),
    "no type": lambda lib: lib.lax.bitcast_convert_type(ONES, "number"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])


WIDE = "int8 uint8 int16 int32 uint32 float32 float16 bfloat16 float8_e4m3fn int4 uint4".split()


@pytest.mark.parametrize("dtype", WIDE)
def test_bitcast(dtype):
    width = WIDTHS.get(dtype) or np.dtype(dtype).itemsize * 8
    if width < 8:
        x = integers(dtype, 32)
    else:
        x = rng.integers(0, 255, 64, dtype=np.uint8).view(dtype)
    for other in WIDE:
        new = WIDTHS.get(other) or np.dtype(other).itemsize * 8
        y = x.reshape(-1, new // width) if new > width else x
        ours, theirs = (
            np.asarray(lib.lax.bitcast_convert_type(y, other)) for lib in (OURS, THEIRS)
        )
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        # By their bytes: NaN have many bit patterns.
        np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


def test_bitcast_of_scalars_and_batches():
    agree(lambda lib: lib.lax.bitcast_convert_type(1.5, "int32"))
    agree(lambda lib: lib.lax.bitcast_convert_type(np.float32(1.5), "uint8"))
    x = rng.integers(0, 100, (2, 3, 2)).astype(np.int16)
    for axis in (0, 1):
        fun = lambda lib: lambda x: lib.lax.bitcast_convert_type(x, "int32")  # noqa: E731
        agree(lambda lib, a=axis, f=fun: lib.vmap(f(lib), a)(x))
    agree(
        lambda lib: lib.grad(
            lambda x: lib.lax.bitcast_convert_type(
                lib.lax.bitcast_convert_type(x, "int32"), "float32"
            )
        )(1.0)
    )
