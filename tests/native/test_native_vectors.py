"""Which axis becomes the vector: memory is read along it, or in patterns that repeat."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax


def normal(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


V, W = normal(96), normal(96, 80, seed=1)
IMAGES, MEAN, STD = normal(3, 10, 14, 3), normal(3, seed=1), abs(normal(3, seed=2)) + 1
POINTS = normal(101, 2)

# Programs that were gathers or scatters: (function, arguments).
CASES = {
    "sum of three vectors, times a matrix": (lambda a, b, c, w: (a + b + c) @ w, [V, V, V, W]),
    "a matrix, times a sum": (lambda a, b, c, w: w.T @ (a + b + c), [V, V, V, W]),
    "residual, norm, projection": (
        lambda x, r, s, w: rms_norm(x + r, s) @ w,
        [V, normal(96, seed=3), V, W],
    ),
    "the same for one row": (
        lambda x, r, s, w: rms_norm(x + r, s) @ w,
        [V[None], normal(1, 96, seed=3), V, W],
    ),
    "channels last, normalised": (lambda x, m, s: (x - m) / s, [IMAGES, MEAN, STD]),
    "bytes, normalised": (
        lambda x, m, s: (x.astype(jnp.float32) / 255 - m) / s,
        [np.arange(420 * 3, dtype="u1").reshape(3, 10, 14, 3), MEAN, STD],
    ),
    "flipped": (lambda x: x[:, :, ::-1], [IMAGES]),
    "flipped channels": (lambda x: x[..., ::-1] * 2, [IMAGES]),
    "flipped and normalised": (lambda x, m: x[:, :, ::-1] - m, [IMAGES, MEAN]),
    "cropped": (lambda x: x[:, 2:9, 1:12] * 2 + 1, [IMAGES]),
    "to grey": (lambda x, w: x @ w, [IMAGES, MEAN]),
    "channels first": (lambda x: x.transpose(0, 3, 1, 2), [IMAGES]),
    "channels last": (lambda x: x.transpose(0, 2, 3, 1), [IMAGES.transpose(0, 3, 1, 2).copy()]),
    "a mask for each token": (lambda x, m: x * m[..., None], [normal(5, 40, 4), normal(5, 40)]),
    "points": (lambda x, b: jnp.sin(x) * b + b, [POINTS, normal(2, seed=1)]),
    "lengths of points": (lambda x: jnp.sqrt((x * x).sum(-1)), [POINTS]),
    "five columns": (lambda x, b: x + b, [normal(67, 5), normal(5, seed=1)]),
    "six columns of float64": (lambda x, b: x * b, [normal(67, 6, dtype="f8"), np.ones(6)]),
    "sums of three": (lambda x: x.sum(1), [normal(101, 3)]),
    "sums of four": (lambda x: x.sum(1), [normal(101, 4)]),
    "sums of eight": (lambda x: x.sum(1), [normal(96, 8)]),
    "argmax of four": (lambda x: jnp.argmax(x, 1), [normal(101, 4)]),
    "every third element": (lambda x: x[::3] + 1, [normal(300)]),
    "booleans": (lambda x, b: (x > 0) & b, [normal(64, 3), np.array([True, False, True])]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_vectors_run_along_memory(name):
    fun, args = CASES[name]
    compiled = namoo.jit(fun).lower(*args).compile()
    text = compiled.as_text("llvm")
    assert "masked.gather" not in text and "masked.scatter" not in text
    with namoo.disable_jit():
        expected = fun(*map(jnp.asarray, args))
    np.testing.assert_allclose(compiled(*args), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [(1, 3), (2, 3), (5, 3), (16, 3), (17, 3), (33, 3), (16, 7)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "f2"])
def test_joined_axes_of_any_length(lengths, dtype):
    rows, columns = lengths
    x, b = ((10 * normal(*s)).astype(dtype) for s in ((4, rows, columns), (columns,)))
    c = (10 * normal(4, rows, seed=4)).astype(dtype)
    f = namoo.jit(lambda x, b, c: (x[:, ::-1] + b) * c[:, :, None])
    np.testing.assert_allclose(f(x, b, c), (x[:, ::-1] + b) * c[:, :, None], rtol=1e-2)


def test_a_sum_that_is_read_many_times_is_stored():
    """Each row of the matrix would read three vectors."""
    compiled = namoo.jit(lambda w, a, b, c: w @ (a + b + c)).lower(W.T, V, V, V).compile()
    text = compiled.as_text("fused")
    assert text.count("kernel over") == 2
    assert compiled.memory_analysis().temp_size_in_bytes == 96 * 4


# What follows the sums of rows, which is computed for many rows at once: (function, shapes).
SUMS = {
    "exp": (lambda x: jnp.exp(x.sum(1)), [(100, 20)]),
    "softplus of a product": (lambda x, q: namoo.nn.softplus(x @ q), [(67, 64), (64,)]),
    "logsumexp": (lambda x: namoo.nn.logsumexp(x, axis=1), [(40, 32)]),
    "gaussians": (lambda x, m: jnp.exp(-0.5 * ((x - m) ** 2).sum(1)), [(48, 32), (32,)]),
    "sums of three axes": (lambda x: jnp.tanh(x.sum((1, 2))), [(50, 4, 24)]),
    "with another array": (lambda x, y: jnp.exp(x.sum(1) * y) + y, [(50, 24), (50,)]),
    "the sum is a result, too": (lambda x: (x.sum(1), jnp.exp(x.sum(1))), [(50, 24)]),
    "two functions": (lambda x: (jnp.sin(x.sum(1)), jnp.cos(x.max(1))), [(50, 24)]),
    "argmax": (lambda x: jnp.exp(jnp.argmax(x, 1) / 7.0), [(50, 24)]),
    "complex": (lambda x: jnp.exp((x * 1j).sum(1)), [(50, 24)]),
    "two axes of rows": (lambda x: jnp.exp(x.sum(2)), [(5, 20, 24)]),
    "rows in another order": (lambda x: jnp.exp(x.transpose(1, 0, 2).sum(2)), [(20, 30, 24)]),
    "softmax and its sum": (
        lambda x: (namoo.nn.softmax(x), jnp.log(jnp.exp(x).sum(1))),
        [(50, 24)],
    ),
    "integers": (lambda x: 7 // (x > 0).sum(1), [(50, 24)]),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_follows_sums_of_rows(name):
    fun, shapes = SUMS[name]
    args = [normal(*shape, seed=seed) * 0.5 for seed, shape in enumerate(shapes)]
    compiled = namoo.jit(fun).lower(*args).compile()
    with namoo.disable_jit():
        expected = fun(*map(jnp.asarray, args))
    for found, value in zip(
        namoo.tree.leaves(compiled(*args)), namoo.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=1e-6)


def test_functions_of_sums_are_vectors():
    """The exponential of a row's sum has one instruction for many rows."""
    x = normal(64, 24)
    text = namoo.jit(lambda x: jnp.exp(x.sum(1))).lower(x).compile().as_text("llvm")
    calls = [line for line in text.splitlines() if "call" in line and "llvm.fma" in line]
    assert calls and all("call <" in line for line in calls)


def standardised(x):
    d = x - x.mean(-1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + 1e-3)


# Functions of whole short rows: (function, types).
SHORT_ROWS = {
    "softmax": (namoo.nn.softmax, "f4 f8 bfloat16"),
    "log_softmax": (namoo.nn.log_softmax, "f4"),
    "gradient of softmax": (namoo.grad(lambda x: (namoo.nn.softmax(x) ** 2).sum()), "f4"),
    "standardised, gradient": (namoo.grad(lambda x: (standardised(x) ** 3).sum()), "f4"),
    "standardised, and its exponentials": (
        lambda x: (standardised(x), jnp.exp(standardised(x))),
        "f4",
    ),
    "greatest element": (lambda x: (x == x.max(-1, keepdims=True), x - x.max(-1)[:, None]), "f4"),
    "counts": (lambda x: jnp.cumsum(x, 1) * (x > x.min(1, keepdims=True)), "i4 u1"),
    "complex": (lambda x: x * 1j / (x.sum(1, keepdims=True) ** 2 + 1), "f4"),
}


@pytest.mark.parametrize("name", SHORT_ROWS)
def test_short_rows(name):
    """Rows of all lengths up to that of a vector, as many as fill no vector or some."""
    fun, types = SHORT_ROWS[name]
    for dtype in map(jnp.dtype, types.split()):
        with namoo.enable_x64(dtype.itemsize == 8):
            for rows, length in [(35, 2), (32, 3), (67, 5), (50, 10), (33, 16)]:
                x = normal(rows, length, seed=length) * (50 if dtype.kind in "iu" else 1)
                x = x.astype(dtype)
                with namoo.disable_jit():
                    expected = fun(jnp.asarray(x))
                found = namoo.jit(fun)(x)
                rough = 2e-2 if dtype.itemsize == 2 else 1e-4
                for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(expected), strict=True):
                    assert a.dtype == b.dtype
                    wide = np.complex128 if name == "complex" else np.float64
                    a, b = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
                    np.testing.assert_allclose(a, b, rtol=rough, atol=rough, err_msg=f"{x.shape}")


@pytest.mark.parametrize("length", [2, 3, 4, 7, 10])
def test_short_rows_are_vectors_of_rows(length):
    """Rows are lanes: there is one exponential for each column, and no scattered store."""
    x = normal(64, length)
    compiled = namoo.jit(namoo.nn.softmax).lower(x).compile()
    text = compiled.as_text("llvm")
    assert "masked.scatter" not in text
    assert compiled.as_text("fused").count("kernel over") == 1
    assert "@llvm.maximum.f32" not in text  # the last step of a maximum across lanes
