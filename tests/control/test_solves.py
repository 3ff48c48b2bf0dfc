"""`custom_linear_solve` and `custom_root`: against JAX, and against explicit formulas."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, assert_same
from namoo.control.solves import custom_linear_solve, custom_root

A = np.array([[4.0, 1.5], [0.5, 3.0]], np.float32)
B = np.array([1.0, -2.0], np.float32)


def cramer(lib, matvec, b):
    """The solution of a 2×2 equation, from columns that the product gives."""
    p, q = matvec(lib.jnp.array([1.0, 0.0])), matvec(lib.jnp.array([0.0, 1.0]))
    det = p[0] * q[1] - p[1] * q[0]
    return lib.jnp.stack([(b[0] * q[1] - b[1] * q[0]) / det, (p[0] * b[1] - p[1] * b[0]) / det])


# Functions of a matrix and a vector.


def general(lib, a, b):
    solve = functools.partial(cramer, lib)
    return lib.lax.custom_linear_solve(lambda x: a @ x, b, solve, solve)


def symmetric(lib, a, b):
    s = a @ a.T
    return lib.lax.custom_linear_solve(
        lambda x: s @ x, b, functools.partial(cramer, lib), symmetric=True
    )


def nonlinear_in_everything(lib, a, b):
    solve = functools.partial(cramer, lib)
    m = lib.jnp.sin(a) * b[0]
    return lib.lax.custom_linear_solve(lambda x: m @ x + x * b, lib.jnp.cos(b), solve, solve)


def of_trees(lib, a, b):
    def matvec(x):
        return {"u": a[0, 0] * x["u"] + a[0, 1] * x["v"], "v": a[1, 0] * x["u"] + a[1, 1] * x["v"]}

    def solve(matvec, b):
        flat = lambda x: [matvec({"u": x[0], "v": x[1]})[k] for k in "uv"]  # noqa: E731
        x = cramer(lib, flat, [b["u"], b["v"]])
        return {"u": x[0], "v": x[1]}

    return lib.lax.custom_linear_solve(matvec, {"u": b[0], "v": b[1] * b[0]}, solve, solve)


def with_aux(lib, a, b):
    def solve(matvec, b):
        return cramer(lib, matvec, b), {"steps": lib.jnp.int32(3), "size": (b * b).sum()}

    return lib.lax.custom_linear_solve(lambda x: a @ x, b * b, solve, solve, has_aux=True)


def in_a_loop(lib, a, b):
    solve = functools.partial(cramer, lib)

    def body(x, scale):
        x = lib.lax.custom_linear_solve(lambda v: scale * (a @ v), x + b, solve, solve)
        return x, x.sum()

    return lib.lax.scan(body, b, lib.jnp.arange(1.0, 4.0))


def root_of_a_cubic(lib, a, b):
    def f(x):
        return x**3 + x - b * b

    def newton(f, x):
        def step(s):
            value, slope = lib.jvp(f, (s[0],), (lib.jnp.ones(2),))
            return s[0] - value / slope, s[1] + 1

        return lib.lax.while_loop(lambda s: s[1] < 20, step, (x, 0))[0]

    return lib.lax.custom_root(f, b, newton, lambda g, y: y / g(lib.jnp.ones(2)))


def root_of_a_system(lib, a, b):
    def f(x):
        return a @ x + 0.1 * lib.jnp.sin(x) - b

    def newton(f, x):
        for _ in range(3):
            value, product = f(x), functools.partial(lambda x, v: lib.jvp(f, (x,), (v,))[1], x)
            x = x - cramer(lib, product, value)
        return x

    def tangent_solve(g, y):
        solve = functools.partial(cramer, lib)
        return lib.lax.custom_linear_solve(g, y, solve, solve)

    return lib.lax.custom_root(f, lib.jnp.zeros(2), newton, tangent_solve)


def root_whose_tangent_solve_closes_over_factors(lib, a, b):
    inverse = lib.jnp.linalg.inv(a)

    def tangent_solve(g, y):
        return lib.lax.custom_linear_solve(g, y, lambda _, y: inverse @ y, lambda _, y: y @ inverse)

    return lib.lax.custom_root(lambda x: a @ x - b, b, lambda f, x: inverse @ b, tangent_solve)


PROGRAMS = [
    general,
    symmetric,
    nonlinear_in_everything,
    of_trees,
    with_aux,
    in_a_loop,
    root_of_a_cubic,
    root_of_a_system,
    root_whose_tangent_solve_closes_over_factors,
]


def everything(lib, program):
    def fun(a, b):
        return program(lib, a, b)

    def loss(a, b):
        out = fun(a, b)
        if program is with_aux:
            out = out[0]
        return sum((lib.jnp.cos(y) * y).sum() for y in lib.tree_util.tree_leaves(out))

    def run(a, b):
        rows, stack = lib.jnp.stack([b, b * 2, -b]), lib.jnp.stack([a, a + 0.5, a.T])
        gradient = lib.grad(loss, argnums=(0, 1))
        out = {
            "value": fun(a, b),
            "grad": gradient(a, b),
            "vmap of grad": lib.vmap(gradient)(stack, rows),
            "vmap, one matrix": lib.vmap(gradient, in_axes=(None, 0))(a, rows),
            "vmap, one right side": lib.vmap(fun, in_axes=(0, None))(stack, b),
            "forward over reverse": lib.jacfwd(lib.grad(loss, argnums=1), argnums=1)(a, b),
            "reverse over reverse": lib.jacrev(lib.grad(loss, argnums=1), argnums=1)(a, b),
        }
        if program is not with_aux:  # JAX's tangents of integers are awkward there
            out["jvp"] = lib.jvp(fun, (a, b), (a * 2 + 1, b + 1))
        return out

    return run


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_transformation_agrees_with_jax(program):
    wanted = jax.jit(everything(THEIRS, program))(A, B)
    run = everything(OURS, program)
    assert_same(run(jnp.asarray(A), jnp.asarray(B)), wanted, rtol=5e-4, weak=False)
    assert_same(namoo.jit(run)(A, B), wanted, rtol=5e-4, weak=False)


def test_the_method_is_not_differentiated():
    """A solver that has no derivative of its own, and would give a wrong one."""

    def solve(matvec, b):
        out = namoo.ShapeDtypeStruct(b.shape, b.dtype)
        return OURS.pure_callback(lambda b: np.linalg.solve(A, np.asarray(b)), out, b)

    def transpose_solve(vecmat, b):
        out = namoo.ShapeDtypeStruct(b.shape, b.dtype)
        return OURS.pure_callback(lambda b: np.linalg.solve(A.T, np.asarray(b)), out, b)

    def f(b):
        return custom_linear_solve(lambda x: jnp.asarray(A) @ x, b, solve, transpose_solve)

    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(np.asarray(f(B)), inverse @ B, rtol=1e-5)
    for jacobian in (namoo.jacfwd, namoo.jacrev):
        with pytest.raises(NotImplementedError, match="vmap_method"):
            jacobian(f)(B)
    _, tangent = namoo.jvp(f, (B,), (B,))
    np.testing.assert_allclose(np.asarray(tangent), inverse @ B, rtol=1e-5)
    (ct,) = namoo.vjp(f, B)[1](jnp.asarray(B))
    np.testing.assert_allclose(np.asarray(ct), inverse.T @ B, rtol=1e-5)


def test_a_root_with_auxiliary_data_has_derivatives():
    def root(a):
        def solve(f, x):
            return jnp.cbrt(a), {"steps": jnp.int32(7), "guess": x}

        return custom_root(lambda x: x**3 - a, a, solve, lambda g, y: y / g(1.0), has_aux=True)

    (x, aux), (t, aux_tangent) = namoo.jvp(root, (8.0,), (1.0,))
    assert float(x) == 2.0 and int(aux["steps"]) == 7
    np.testing.assert_allclose(float(t), 1 / 12, rtol=1e-6)
    assert float(aux_tangent["guess"]) == 0.0
    assert aux_tangent["steps"].dtype == namoo.float0
    gradient, aux = namoo.grad(root, has_aux=True)(8.0)
    np.testing.assert_allclose(float(gradient), 1 / 12, rtol=1e-6)
    assert int(aux["steps"]) == 7


def test_a_root_does_not_depend_on_the_guess():
    def root(guess):
        solve = lambda f, x: jnp.float32(3.0)  # noqa: E731
        return custom_root(lambda x: x - 3.0, guess, solve, lambda g, y: y / g(1.0))

    assert float(namoo.grad(root)(1.0)) == 0.0


REFUSED = [
    (
        lambda lib: lib.lax.custom_linear_solve(lambda x: x[:1], B, lambda f, b: b),
        r"matvec.*match b, got \[\(1,\)\] and \[\(2,\)\]",
    ),
    (
        lambda lib: lib.lax.custom_linear_solve(lambda x: x, B, lambda f, b: b[:1]),
        r"solve.*match b, got \[\(1,\)\] and \[\(2,\)\]",
    ),
    (
        lambda lib: lib.lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True),
        "must return a pair",
    ),
    (
        lambda lib: lib.lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, lambda f, b: b[:1]),
        "transpose_solve",
    ),
    (
        lambda lib: lib.grad(
            lambda b: lib.lax.custom_linear_solve(lambda x: x, b, lambda f, b: b).sum()
        )(B),
        "symmetric=True",
    ),
    (
        lambda lib: lib.lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y),
        r"f\(\).*initial_guess",
    ),
    (
        lambda lib: lib.lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y),
        r"solve\(\).*initial_guess",
    ),
    (
        lambda lib: lib.grad(
            lambda a: lib.lax.custom_root(lambda x: x - a, 1.0, lambda f, x: x, lambda g, y: (y, y))
        )(1.0),
        r"tangent_solve\(\).*match x",
    ),
]


@pytest.mark.parametrize(("program", "message"), REFUSED)
def test_what_is_refused(program, message):
    with pytest.raises(Exception) as theirs:
        program(THEIRS)
    with pytest.raises(type(theirs.value), match=message):
        program(OURS)


def test_other_trees_than_the_right_side_are_refused():
    same, listed = (lambda f, x: x), (lambda f, x: [x])
    for what, functions in {
        "matvec": (lambda x: [x], same, same),
        "solve": (lambda x: x, listed, same),
        "transpose_solve": (lambda x: x, same, listed),
    }.items():
        matvec, solve, transposed = functions
        with pytest.raises(TypeError, match=rf"{what}\(\) output pytree"):
            namoo.lax.custom_linear_solve(matvec, 1.0, solve, transposed)
