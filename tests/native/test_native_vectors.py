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
