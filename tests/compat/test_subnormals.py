"""With `flush_subnormals`, native programs take subnormal numbers for zero, as XLA on a CPU."""

import functools

import jax as real_jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo._base.config import Scope

native = functools.partial(namoo.jit, engine="native")

A = np.array([1.15e-36, 1e-40, 1.2e-38, -1e-40], np.float32)
B = np.array([0.01, 1.0, 0.5, 1.0], np.float32)

CASES = {
    "mul": lambda jax, x, y: x * y,
    "compare": lambda jax, x, y: (x > 0, x == 0),
    "sum": lambda jax, x, y: jax.numpy.sum(x),
    "cumsum": lambda jax, x, y: jax.numpy.cumsum(x),
    "dot": lambda jax, x, y: jax.numpy.dot(x, y),
    "sqrt": lambda jax, x, y: jax.numpy.sqrt(x),
    "exp": lambda jax, x, y: jax.numpy.exp(-88 - x),
    "neg": lambda jax, x, y: -x,
    "reshape": lambda jax, x, y: x.reshape(2, 2),
    "loop": lambda jax, x, y: jax.lax.fori_loop(0, 3, lambda _, z: z * y, x),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_flush_as_in_jax(name):
    theirs = real_jax.jit(lambda x, y: CASES[name](real_jax, x, y))(A, B)
    with Scope("flush_subnormals", True):
        ours = native(lambda x, y: CASES[name](namoo, x, y))(A, B)
    for a, b in zip(namoo.tree.leaves(ours), namoo.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=0)


def test_the_setting_is_part_of_the_program_and_off_by_default():
    f = native(lambda x: x * 0.5)
    kept = np.asarray(f(A))
    with Scope("flush_subnormals", True):
        flushed = np.asarray(f(A))
    np.testing.assert_array_equal(kept, A * np.float32(0.5))
    np.testing.assert_array_equal(flushed, [A[0] * np.float32(0.5), 0, 0, 0])
    np.testing.assert_array_equal(np.asarray(f(A)), kept)


def test_all_threads_of_a_program_flush():
    with Scope("flush_subnormals", True):
        out = native(lambda x: x * 0.5)(jnp.full(1 << 22, 1.2e-38, "float32"))
    assert np.count_nonzero(np.asarray(out)) == 0


def test_numpy_keeps_subnormals_during_and_after_a_call():
    def halve(x):
        return np.asarray(x) * np.float32(0.5)

    x = jnp.full(4, 1.2e-38, "float32")
    with Scope("flush_subnormals", True):
        inside = native(lambda x: namoo.pure_callback(halve, x, x))(x)
    assert np.count_nonzero(np.asarray(inside).view(np.int32)) == 4
    assert np.float32(1.2e-38) * np.float32(0.5) > 0
