"""Products of bfloat16 and of bytes: values, and the instructions where the processor has them."""

import math
import string

import ml_dtypes
import numpy as np
import pytest

import namoo
from namoo import lax
from namoo.engines.native.ir.words import WORD_PRODUCTS, word_product

BF16 = np.dtype(ml_dtypes.bfloat16)
BYTES = np.dtype(np.int8), np.dtype(np.uint8)
# Shapes and dimension numbers: each order of the axes, sizes that fill no word and no vector,
# several contracted axes, batches, long sums, empty results and empty sums.
PRODUCTS = [
    *(
        (((m, k), (k, m))[left], ((k, n), (n, k))[right], (((1 - left,), (right,)), ((), ())))
        for m, k, n in [(33, 37, 29), (5, 132, 77), (7, 40000, 3)]
        for left in (0, 1)
        for right in (0, 1)
    ),
    ((3, 20, 5, 8), (3, 8, 5, 20), (((1, 2), (3, 2)), ((0,), (0,)))),
    ((2, 40, 3, 30), (2, 50, 3, 30), (((3,), (3,)), ((0, 2), (0, 2)))),
    ((2, 3, 40, 32), (2, 3, 50, 32), (((3,), (3,)), ((0, 1), (0, 1)))),
    ((0, 5), (5, 7), (((1,), (0,)), ((), ()))),
    ((4, 0), (0, 7), (((1,), (0,)), ((), ()))),
]


def random(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype == BF16:
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def exact(x, y, dims):
    """The product in float64 or, without overflow, in int64."""
    (cx, cy), (bx, by) = dims
    left, right = [*string.ascii_lowercase[: x.ndim]], [*string.ascii_uppercase[: y.ndim]]
    for i, j in zip((*cx, *bx), (*cy, *by), strict=True):
        right[j] = left[i]
    out = [left[i] for i in bx]
    out += [c for i, c in enumerate(left) if i not in (*cx, *bx)]
    out += [c for j, c in enumerate(right) if j not in (*cy, *by)]
    wide = np.float64 if x.dtype == BF16 else np.int64
    names = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return np.einsum(names, x.astype(wide), y.astype(wide))


def product(dims, dtype):
    return namoo.jit(lambda x, y: lax.dot_general(x, y, dims, preferred_element_type=dtype))


@pytest.mark.parametrize("right", BYTES, ids=str)
@pytest.mark.parametrize("left", BYTES, ids=str)
def test_products_of_bytes_are_exact(left, right):
    for xs, ys, dims in PRODUCTS:
        x, y = random(xs, left, 1), random(ys, right, 2)
        expected = exact(x, y, dims)
        others = [np.uint32, np.int16, *[left] * (left == right)] if xs == (33, 37) else []
        for dtype in (np.int32, *others):
            got = np.asarray(product(dims, dtype)(x, y))
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, expected.astype(dtype), f"{xs} {ys} {dims}")


def test_converted_bytes_are_multiplied_as_bytes():
    x, y = random((40, 60), BYTES[0], 1), random((60, 50), BYTES[1], 2)
    f = namoo.jit(lambda x, y: x.astype(np.int32) @ y.astype(np.int32))
    np.testing.assert_array_equal(f(x, y), x.astype(np.int32) @ y.astype(np.int32))
    assert word_product("i8") is None or "vpdpbusd" in f.lower(x, y).compile().as_text("assembly")


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF16], ids=str)
def test_products_of_bfloat16(dtype):
    for xs, ys, dims in PRODUCTS:
        x, y = random(xs, BF16, 1), random(ys, BF16, 2)
        expected = exact(x, y, dims)
        got = np.asarray(product(dims, dtype)(x, y)).astype(np.float64)
        terms = math.prod(xs[i] for i in dims[0][0])
        unit = 2.0**-8 if dtype == BF16 else 0
        error = unit * np.abs(expected) + 1e-6 * terms**0.5 * 4
        assert got.shape == expected.shape
        assert (np.abs(got - expected) <= error).all(), (xs, ys, dims)


def test_gradients_and_fused_functions_of_bfloat16_products():
    x, w = random((24, 40), np.dtype(BF16), 1), random((40, 36), BF16, 2).astype(np.float32)

    def loss(w, x):
        return (namoo.nn.relu(x @ w.astype(BF16)).astype(np.float32) ** 2).mean()

    value, gradient = namoo.jit(namoo.value_and_grad(loss))(w, x)
    wide = x.astype(np.float32) @ w
    positive = np.maximum(wide, 0)
    np.testing.assert_allclose(value, (positive**2).mean(), rtol=2e-2)
    expected = x.astype(np.float32).T @ (2 * positive / positive.size)
    error = np.linalg.norm(np.asarray(gradient) - expected) / np.linalg.norm(expected)
    assert error < 2e-2


@pytest.mark.parametrize("kind", WORD_PRODUCTS)
def test_instructions(kind):
    """One kernel multiplies; it reads the operands' own memory where terms are contiguous."""
    if word_product(kind) is None:
        pytest.skip("the processor has no such instruction")
    dtype = BF16 if kind == "bf16" else BYTES[0]
    name = WORD_PRODUCTS[kind].intrinsic.rsplit(".", 1)[1].replace("dpbf16ps", "vdpbf16ps")
    x, y = random((64, 64), dtype, 1), random((64, 64), dtype, 2)
    wide = np.float32 if kind == "bf16" else np.int32
    compiled = product((((1,), (1,)), ((), ())), wide).lower(x, y).compile()
    assert name in compiled.as_text("assembly")
    assert "words" not in compiled.as_text("fused")
    assert kind != "bf16" or compiled.as_text("fused").count("kernel over") == 1


def test_narrow_floats_are_rounded_once():
    """What an operation has rounded is stored as it is."""
    x = random((1000,), BF16, 1)
    text = namoo.jit(lambda x: x + x).lower(x).compile().as_text("llvm")
    assert text.count("fcmp uno") <= 2, text  # in the loop, and for the elements after it
