"""Calls with derivatives of their own, and solutions of linear equations, are native code."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.custom_derivatives import linear_call

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


def iterate(matvec, b):
    return lax.fori_loop(0, 60, lambda _, x: x + 0.2 * (b - matvec(x)), jnp.zeros_like(b))


CASES = {
    "linear_call": lambda a, b: linear_call(lambda a, x: a @ x, lambda a, t: t @ a, a, b),
    "symmetric": lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, iterate, symmetric=True),
    "general": lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, iterate, iterate),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_nothing_runs_on_the_host(name, gradient, mapped):
    f, args = CASES[name], (A, B)
    if gradient:
        f = namoo.grad(lambda a, b: (CASES[name](a, b) ** 2).sum(), argnums=1)
    if mapped:
        f, args = namoo.vmap(f, (None, 0)), (A, np.stack([B, 2 * B]))
    compiled = namoo.jit(f).lower(*args).compile()
    assert not compiled.host_operations()
    with namoo.disable_jit():
        expected = f(*map(jnp.asarray, args))
    np.testing.assert_allclose(compiled(*args), expected, rtol=1e-4, atol=1e-5)
