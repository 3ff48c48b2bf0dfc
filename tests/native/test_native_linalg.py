"""Linear algebra is native code: against NumPy's results, and without the host."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.core.array import to_numpy
from namoo.primitives.linalg.tridiagonal_eigen import eigh_tridiagonal

TOLERANCES = {np.float32: 1e-4, np.float64: 1e-12, np.complex64: 1e-4, np.complex128: 1e-12}
MANY = [(1, 1), (5, 3), (1, 5), (17, 7), (9, 16), (3, 33)]
SHAPES = {np.float32: MANY, np.float64: [(9, 6)], np.complex64: [(2, 4)], np.complex128: MANY[3:]}
"""How many matrices, and how large."""


def normal(seed, *shape, dtype: Any = np.float32):
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape)
    return (x + 1j * r.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def definite(x):
    return (x @ adjoint(x) + x.shape[-1] * np.eye(x.shape[-1])).astype(x.dtype)


def compiled(fun, *args):
    """The results of a compiled function, none of which the host computes."""
    program = namoo.jit(fun).lower(*args).compile()
    assert program.host_operations() == []
    return [to_numpy(x) for x in namoo.tree_util.tree_leaves(program(*args))]


def _diagonals(p):
    d = jnp.diagonal(p, axis1=-2, axis2=-1)
    return -jnp.roll(d, 1, -1) / 2, d, -d / 3


def _products(x, w, left, right):
    """What does not depend on how eigenvectors are scaled, or on the order of eigenvalues."""
    norms = jnp.sum(jnp.abs(right) ** 2, -2)
    rebuilt = (right * w[..., None, :]) @ jnp.linalg.inv(right)
    return (
        rebuilt - x,
        jnp.swapaxes(left.conj(), -1, -2) @ x - w[..., None] * jnp.swapaxes(left.conj(), -1, -2),
        norms,
    )


CASES = {
    "cholesky": lambda x, p, b: lax.linalg.cholesky(p),
    "lu": lambda x, p, b: lax.linalg.lu(x),
    "lu wide": lambda x, p, b: lax.linalg.lu(x[..., : x.shape[-1] // 2 + 1, :]),
    "lu tall": lambda x, p, b: lax.linalg.lu(x[..., : x.shape[-1] // 2 + 1]),
    "qr": lambda x, p, b: lax.linalg.qr(x),
    "qr tall": lambda x, p, b: lax.linalg.qr(x[..., : x.shape[-1] // 2 + 1]),
    "qr thin": lambda x, p, b: lax.linalg.qr(x[..., : x.shape[-1] // 2 + 1], full_matrices=False),
    "qr wide": lambda x, p, b: lax.linalg.qr(x[..., : x.shape[-1] // 2 + 1, :]),
    "solve": lambda x, p, b: jnp.linalg.solve(p, b),
    "inv": lambda x, p, b: jnp.linalg.inv(p),
    "det": lambda x, p, b: jnp.linalg.slogdet(p),
    "eigh": lambda x, p, b: lax.linalg.eigh(p)[1],
    "svd": lambda x, p, b: lax.linalg.svd(x, compute_uv=False),
    "pivoted qr": lambda x, p, b: lax.linalg.qr(x, pivoting=True)[1:],
    "hessenberg": lambda x, p, b: lax.linalg.hessenberg(x),
    "ormqr": lambda x, p, b: lax.linalg.ormqr(x, b[..., 0] / 9, b, transpose=True),
    "tridiagonal_solve": lambda x, p, b: lax.linalg.tridiagonal_solve(*_diagonals(p), b),
    "schur": lambda x, p, b: lax.linalg.schur(x),
    "eig": lambda x, p, b: _products(x, *lax.linalg.eig(x)),
    "symmetric_product": lambda x, p, b: lax.linalg.symmetric_product(b.real, p.real),
}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype):
    with namoo.enable_x64(True):
        for count, n in SHAPES[dtype]:
            x, b = normal(n, count, n, n, dtype=dtype), normal(count, count, n, 3, dtype=dtype)
            x = x + (0.5 * n * np.eye(n)).astype(dtype)
            args = x, definite(x), b
            found = compiled(CASES[name], *args)
            wanted = namoo.tree_util.tree_leaves(CASES[name](*map(jnp.asarray, args)))
            for y, z in zip(found, map(to_numpy, wanted), strict=True):
                atol = TOLERANCES[dtype] * np.abs(z).max(initial=1)
                np.testing.assert_allclose(y, z, rtol=0, atol=atol, err_msg=f"{count} of {n}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_a_matrix(dtype):
    """Operations on one matrix and vectors; their operands have fewer axes than a stack."""
    with namoo.enable_x64(True):
        for n in (1, 2, 3, 40):
            r = np.triu(normal(0, n, n, dtype=dtype) + 2 * n * np.eye(n, dtype=dtype))
            w = normal(1, n, dtype=dtype)
            cases = {
                "cholesky_update": (lax.linalg.cholesky_update, r, w),
                "two updates": (namoo.vmap(lax.linalg.cholesky_update), np.stack([r, r + r]),
                                np.stack([w, -w])),
                "eigh_tridiagonal": (
                    lambda d, e: eigh_tridiagonal(d, e, compute_vectors=False), w, w[1:]),
                "eigenvectors": (lambda d, e: jnp.abs(eigh_tridiagonal(d, e)[1]), w, w[1:]),
                "heat": (lambda d, x: lax.fori_loop(
                    0, 5, lambda i, x: lax.linalg.tridiagonal_solve(d, 4 + d * d, d, x), x),
                    w, r),
            }  # fmt: skip
            for name, (function, *args) in cases.items():
                wanted = namoo.tree_util.tree_leaves(function(*map(jnp.asarray, args)))
                for y, z in zip(compiled(function, *args), map(to_numpy, wanted), strict=True):
                    np.testing.assert_allclose(
                        y, z, atol=TOLERANCES[dtype] * n, err_msg=f"{name} of {n}"
                    )


def test_operations_that_fail_return_nan():
    zeros, nan = np.zeros(3, np.float32), np.full((3, 3), np.nan, np.float32)
    for function, *args in (
        (lax.linalg.tridiagonal_solve, zeros, zeros, zeros, nan),
        (lax.linalg.schur, nan),
        (lax.linalg.eig, nan),
    ):
        assert all(np.isnan(x).all() for x in compiled(function, *args))


FLAGS = [(left, lower, trans, conj, unit)
         for left in (False, True) for lower in (False, True)
         for trans, conj in ((False, False), (True, False), (True, True), (False, True))
         for unit in (False, True)]  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 4), (18, 7), (2, 40)], ids=str)
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_triangular_solves(flags, shape):
    left, lower, trans, conj, unit = flags
    count, n = shape
    a = normal(0, count, n, n, dtype=np.complex64) / n + np.eye(n, dtype=np.complex64)
    b = normal(1, count, *((n, 3) if left else (3, n)), dtype=np.complex64)
    (x,) = compiled(
        lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=trans, conjugate_a=conj,
            unit_diagonal=unit,
        ),
        a,
        b,
    )  # fmt: skip
    m = np.tril(a) if lower else np.triu(a)
    if unit:
        m = m - m * np.eye(n) + np.eye(n)
    m = np.swapaxes(m, -1, -2) if trans else m
    m = m.conj() if conj else m
    np.testing.assert_allclose(m @ x if left else x @ m, b, atol=2e-4)


@pytest.mark.parametrize("n", [3, 6, 40])
def test_matrices_without_factors(n):
    """What JAX gives: NaN without a Cholesky factor, factors with a zero for a singular matrix."""
    good = definite(normal(0, n, n))
    stack = np.stack([good, -good, good, np.full_like(good, np.nan)])
    (factors,) = compiled(lax.linalg.cholesky, stack)
    lower = np.tril(np.ones((n, n), bool))
    for i, fails in enumerate([False, True, False, True]):
        np.testing.assert_array_equal(np.isnan(factors[i]), lower & fails)
    singular = np.stack([np.zeros_like(good), np.ones_like(good), good])
    factors, pivots, order = compiled(lax.linalg.lu, singular)
    assert np.isfinite(factors).all()
    np.testing.assert_array_equal(factors[0], 0)
    np.testing.assert_array_equal(pivots[0], np.arange(n))
    np.testing.assert_array_equal(factors[1, 1:, 1:], 0)
    inverse = compiled(jnp.linalg.inv, singular)[0]
    np.testing.assert_array_equal(np.isfinite(inverse).all((1, 2)), [False, False, True])


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18, 1e30])
@pytest.mark.parametrize("n", [3, 8, 40])
def test_badly_scaled_matrices(n, scale):
    x = normal(0, 4, n, n) * np.float32(scale)
    q, r = compiled(lax.linalg.qr, x)
    np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(n), x.shape), atol=1e-4)
    np.testing.assert_allclose(q @ (r / scale), x / scale, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats(dtype):
    p = definite(normal(0, 5, 6, 6)).astype(dtype)
    (factor,) = compiled(lambda p: lax.linalg.cholesky(p, symmetrize_input=False), p)
    assert factor.dtype == dtype
    wanted = np.linalg.cholesky(p.astype(np.float32)).astype(dtype)
    np.testing.assert_allclose(factor.astype(np.float32), wanted.astype(np.float32), rtol=1e-2)


@pytest.mark.parametrize("fun", [lax.linalg.cholesky, lax.linalg.lu, lax.linalg.qr, lax.linalg.svd])
@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 3, 3), (1, 1)], ids=str)
def test_degenerate_shapes(fun, shape):
    x = np.ones(shape, np.float32)
    found = compiled(fun, x)
    for y, z in zip(found, namoo.tree_util.tree_leaves(fun(x)), strict=True):
        np.testing.assert_allclose(y, to_numpy(z), atol=1e-6)


def test_results_do_not_depend_on_threads_or_neighbours():
    x = definite(normal(0, 200, 12, 12))
    (together,) = compiled(jnp.linalg.inv, x)
    (few,) = compiled(jnp.linalg.inv, x[:37])
    np.testing.assert_array_equal(few, together[:37])


@pytest.mark.parametrize("dtype", [np.float32, np.complex64], ids=lambda d: d.__name__)
def test_large_matrices_in_blocks(dtype):
    n = 801
    x, b = normal(0, n, n, dtype=dtype), normal(1, n, 3, dtype=dtype)
    p = definite(x) / n
    (factor,) = compiled(lax.linalg.cholesky, p)
    np.testing.assert_allclose(factor @ adjoint(factor), p, atol=1e-4)
    factors, pivots, order = compiled(lax.linalg.lu, x)
    lower, upper = np.tril(factors, -1) + np.eye(n, dtype=dtype), np.triu(factors)
    np.testing.assert_allclose(lower @ upper, x[order], atol=2e-2)
    assert np.abs(np.tril(factors, -1)).max() <= np.sqrt(2) + 1e-5
    wanted = to_numpy(lax.linalg.lu_pivots_to_permutation(pivots, n))
    np.testing.assert_array_equal(order, wanted)
    (solution,) = compiled(jnp.linalg.solve, p, b)
    np.testing.assert_allclose(p @ solution, b, atol=1e-3)
    p[500, 500] = -5
    (factor,) = compiled(lax.linalg.cholesky, p)
    np.testing.assert_array_equal(np.isnan(factor), np.tril(np.ones((n, n), bool)))


def test_many_right_sides_of_one_system():
    a = np.tril(normal(0, 300, 300)) / 300 + np.eye(300, dtype=np.float32)
    for left, shape in ((True, (300, 640)), (False, (640, 300))):
        b = normal(1, *shape)
        solve = lambda a, b, left=left: lax.linalg.triangular_solve(  # noqa: E731
            a, b, left_side=left, lower=True
        )
        (x,) = compiled(solve, a, b)
        np.testing.assert_allclose(a @ x if left else x @ a, b, atol=1e-4)
