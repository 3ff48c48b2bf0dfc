"""Operators of concrete arrays in C++: they do what the general way in Python does."""

import gc
import operator
import sys
from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import Array
from namoo._base.runtime import native

pytestmark = pytest.mark.skipif(native is None, reason="the C++ part was not built")

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("k", [0, 1, 7, 16])
@pytest.mark.parametrize("n", [0, 1, 8, 16, 17, 33])
def test_products_are_those_of_numpy(dtype, m, k, n):
    lefts = [RNG.standard_normal((m, k)), RNG.standard_normal((2 * m, 3 * k))[::2, ::-3]]
    rights = [RNG.standard_normal((k, n)), RNG.standard_normal((2 * k, 3 * n))[::-2, ::3]]
    for x in [*lefts, np.asfortranarray(lefts[0])]:
        for y in [*rights, np.asfortranarray(rights[0])]:
            x, y = x.astype(dtype, order="K"), y.astype(dtype, order="K")
            out = native.product(x, y)
            assert out.dtype == dtype and out.flags.c_contiguous
            tolerance = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(out, x @ y, tolerance, tolerance)


def test_products_of_odd_numbers():
    x = np.full((4, 3), 1e38, np.float32)
    y = np.zeros((3, 5), np.float32)
    x[1, 2], x[2, 0], y[0, 1], y[2, 4] = np.nan, np.inf, -np.inf, 1e38
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native.product(x, y), x @ y)


A = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (A[0], A),
        (A, A[0]),
        (A[None], A),
        (A, np.ones((4, 4))),
        (A.astype(">f4"), A.astype(">f4")),
        (A.astype("f2"), A.astype("f2")),
        (A.astype(int), A.astype(int)),
        (A, np.ones((3, 4), np.float32)),
        (np.ones((32, 32), np.float32), np.ones((32, 32), np.float32)),
        (np.empty((0, 1 << 40), np.float32), np.empty((1 << 40, 0), np.float32)),
        (np.frombuffer(b"\0" * 65, np.uint8)[1:].view(np.float32).reshape(4, 4), A),
        (A.tolist(), A),
    ],
)
def test_other_products_are_left_to_numpy(x, y):
    assert native.product(x, y) is None


def test_a_product_takes_two_arrays():
    with pytest.raises(TypeError, match="two arrays"):
        native.product(A)


NAMES = ["add", "sub", "mul", "truediv", "matmul", "pow", "and", "or", "xor"]
METHODS = [
    *(f"__{name}__" for name in [*NAMES, "eq", "ne", "lt", "le", "gt", "ge"]),
    *(f"__r{name}__" for name in NAMES),
]
ARRAYS = [
    jnp.asarray(value)
    for value in (
        RNG.standard_normal((3, 4)).astype("f4"),
        RNG.standard_normal((4, 3)).astype("f4"),
        RNG.standard_normal((2, 3, 4)).astype("f4"),
        RNG.standard_normal(4).astype("f4"),
        np.float32(2),
        RNG.integers(0, 9, (3, 4)).astype("i4"),
        np.array([True, False, True, True]),
        np.zeros((4, 0), "f4"),
        np.ones(4, "c8"),
    )
]
ARRAYS.append(jnp.asarray(2.0, dtype=None))
OTHERS = [1.0, 3, True, 2**31, -(2**31), 1j, float("nan"), np.float32(3), np.arange(4.0), "x", None]


def outcome(fun: Any, *args: Any) -> tuple[Any, ...]:
    try:
        out = fun(*args)
    except Exception as error:
        return type(error), str(error)
    if out is NotImplemented:
        return (out,)
    return out.dtype, out.weak_type, out.shape, np.asarray(out)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_operators_agree_with_the_general_way(name):
    method = getattr(Array, name)
    assert type(method) is native.Operator
    for x in ARRAYS:
        for y in [*ARRAYS, *OTHERS]:
            quick, general = outcome(method, x, y), outcome(method.__wrapped__, x, y)
            np.testing.assert_equal(quick[:3], general[:3])
            if len(quick) == 4:
                np.testing.assert_allclose(quick[3], general[3], 1e-5, 1e-6)


def test_an_operator_is_a_method():
    x: Any = jnp.ones(3)
    assert x.__add__(1.0).tolist() == [2, 2, 2]
    method: Any = Array.__add__
    assert method(x, 1.0).tolist() == [2, 2, 2]
    assert method.__name__ == method.__wrapped__.__name__
    with pytest.raises(TypeError):
        x.__add__()
    with pytest.raises(TypeError):
        x.__add__(1.0, 2.0)


def test_settings_and_transformations_are_seen():
    x = jnp.ones((3, 3))
    with namoo.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x + jnp.ones(3)
    jaxpr = namoo.make_jaxpr(lambda y: x @ y)(x)
    assert "dot_general" in str(jaxpr)
    with namoo.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.zeros(2) / jnp.zeros(2)


def test_a_setting_that_is_not_none_goes_the_general_way():
    method = native.Operator(np.add, "default_matmul_precision", lambda x, y: "general", "f", {})
    x = jnp.ones(3)
    assert method(x, x).tolist() == [2, 2, 2]
    with namoo.default_matmul_precision("highest"):
        assert method(x, x) == "general"
    assert method(x, 1.0) == method(x.astype(int), x.astype(int)) == "general"


def test_floating_point_errors_are_silent_and_the_setting_is_set_back():
    with np.errstate(all="raise"):
        x = jnp.zeros(2) / jnp.zeros(2)
        assert np.isnan(x).all()
        with pytest.raises(FloatingPointError):
            np.float32(1) / np.float32(0)


def test_deleted_arrays_are_refused():
    x = jnp.ones(3)
    x.delete()
    for operation in (operator.add, operator.mul):
        with pytest.raises(RuntimeError, match="deleted"):
            operation(x, 1.0)


def test_operators_keep_nothing():
    x, narrow = jnp.ones((4, 4)), jnp.ones((3, 3))

    def work():
        for _ in range(300):
            x @ x, x + x, x + 1.0, 1.0 - x, x == x, x < 3
            with pytest.raises(TypeError):
                x @ narrow

    def counts():
        gc.collect()
        held = (x, x._value, x._value.dtype, Array.__add__, native.product)
        return [sys.getrefcount(thing) for thing in held], len(gc.get_objects())

    work()
    before, objects = counts()
    work()
    after, more = counts()
    assert after == before and more - objects < 50
