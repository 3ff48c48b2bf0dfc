"""Concatenations that elementwise operations read: computed there, on both sides of each cut."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.engines.native.ir import target


def numbers(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


def stencil(np, u):
    """A periodic stencil along every axis."""
    out = 4 * u
    for axis in range(u.ndim):
        out = out + np.roll(u, 1, axis) - 2 * np.roll(u, -3, axis)
    return out


def kernels(f, *args):
    return namoo.jit(f).lower(*args).compile().as_text("fused").splitlines()


# (function of the module and the arrays, how many kernels and steps it takes)
CASES = {
    "stencil": (stencil, 1),
    "of what is computed": (lambda np, u: u + np.roll(2 * u + 1, 5, 0), 1),
    "of two arrays": (lambda np, u: u + np.concatenate([u[:1] * 2, u[1:] * 3], 0), 1),
    "of three arrays": (lambda np, u: u + np.concatenate([u[-1:], u[2:], u[:1]], 0), 1),
    "of a transposed array": (lambda np, u: u + np.roll(u.T, 1, 0).T + np.roll(u.T, 1, 0).T, 1),
    "summed": (lambda np, u: (u * np.roll(u, 1, -1)).sum(-1), 1),
    "flattened": (lambda np, u: u + np.roll(u, 2), 1),
    "along two axes": (lambda np, u: u + np.roll(np.roll(u, 1, 0), 2, -1), 1),
    "of what costs more to compute again": (
        lambda np, u: u + np.roll(np.arctan(np.sin(u)) // 1, 1, 0), 2,
    ),
}  # fmt: skip
SHAPES = [(67,), (129,), (1000,), (13, 17), (5, 64), (33, 65), (3, 5, 37), (9, 35, 3), (65, 2)]


@pytest.mark.parametrize("name", CASES)
def test_what_reads_a_concatenation_computes_it(name):
    f, wanted = CASES[name]
    for shape in SHAPES:
        u = numbers(*shape)
        found = namoo.jit(lambda u: f(jnp, u))(u)
        np.testing.assert_array_equal(np.asarray(found), f(np, u), err_msg=f"{shape}")
    if target.has("avx2"):
        lines = kernels(lambda u: f(jnp, u), numbers(33, 65))
        assert sum(line[0].isdigit() for line in lines) == wanted, lines


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "u2", "i4", "i8", "?", "c8"])
def test_the_two_sides_of_a_cut_have_any_type(dtype):
    with namoo.enable_x64():
        for shape in SHAPES:
            u, v = numbers(*shape, dtype=dtype), numbers(*shape, seed=1, dtype=dtype)
            for axis in range(u.ndim):
                found = namoo.jit(lambda u, v, a=axis: u * jnp.roll(v, 1, a))(u, v)
                wanted = u * np.roll(v, 1, axis)
                assert found.dtype == wanted.dtype
                np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=f"{shape} {axis}")


def test_a_product_and_a_loop_read_what_is_computed():
    """The value is added to a product where that is stored, and a loop updates its carry."""
    a, b, c = numbers(33, 20), numbers(20, 65), numbers(33, 65)
    for axis in (0, 1):
        found = namoo.jit(lambda a, b, c, i=axis: a @ b + jnp.roll(c, 1, i))(a, b, c)
        np.testing.assert_array_equal(np.asarray(found), a @ b + np.roll(c, 1, axis))
        found = namoo.jit(lambda a, b, c, i=axis: jnp.roll(a @ b, 1, i) + c)(a, b, c)
        np.testing.assert_array_equal(np.asarray(found), np.roll(a @ b, 1, axis) + c)

    def step(np, u):
        return (stencil(np, u) + 7) % 11

    @namoo.jit
    def loop(u):
        return namoo.lax.fori_loop(0, 5, lambda i, u: step(jnp, u), u)

    for shape in SHAPES:
        u = expected = numbers(*shape, dtype="i4")
        for _ in range(5):
            expected = step(np, expected)
        np.testing.assert_array_equal(np.asarray(loop(u)), expected, err_msg=f"{shape}")


def test_results_and_many_pieces_are_copied():
    u = numbers(33, 65)
    for f in (
        lambda u: jnp.roll(u, 1, 1),
        lambda u: u[:30] + jnp.concatenate([u[k::5][:6] for k in range(5)]),
    ):
        assert any("join over" in line for line in kernels(f, u))
