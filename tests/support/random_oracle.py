"""Run samplers with the same key in namoo and in JAX, and compare."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy
import numpy as np

import namoo
import namoo.numpy
import namoo.random

OURS = SimpleNamespace(lib=namoo, random=namoo.random, jnp=namoo.numpy, lax=namoo.lax)
THEIRS = SimpleNamespace(lib=jax, random=jax.random, jnp=jax.numpy, lax=jax.lax)

Call = Callable[[Any, Any, Any], Any]
"""A call to compare: a function of the module `random`, of `numpy`, and of a key."""


@contextlib.contextmanager
def both_set(**options: Any):
    """Context manager: set options of both libraries, by their names without `jax_`."""
    before = {name: getattr(jax.config, "jax_" + name) for name in options}
    for name, value in options.items():
        namoo.config.update("jax_" + name, value)
        jax.config.update("jax_" + name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            namoo.config.update("jax_" + name, value)
            jax.config.update("jax_" + name, value)


def numbers(x: Any) -> np.ndarray:
    """Return the values of a result; for keys, their bits."""
    if not isinstance(x.dtype, np.dtype):
        x = namoo.random.key_data(x) if isinstance(x, namoo.Array) else jax.random.key_data(x)
    return np.asarray(x)


def assert_equal(found: Any, wanted: Any) -> None:
    """Check for the same shape, dtype and bits."""
    assert str(found.dtype) == str(wanted.dtype)
    assert found.shape == wanted.shape
    found, wanted = numbers(found), numbers(wanted)
    assert found.tobytes() == wanted.tobytes(), f"{found!r}\n{wanted!r}"


# XLA keeps intermediate results of float16 and bfloat16 in float32.
TOLERANCE = {"float64": 1e-12, "complex128": 1e-12, "float16": 4e-3, "bfloat16": 4e-2}


def assert_close(found: Any, wanted: Any, rtol: float | None = None, where: str = "") -> None:
    """Check for the same shape and dtype, and equal values; floats may differ by rounding.

    Where results are differences, such as of logarithms, the rounding is that of numbers near 1.
    """
    assert found.dtype == wanted.dtype, where
    assert found.shape == wanted.shape, where
    assert not found.weak_type, where
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted, where)
        return
    rtol = rtol or TOLERANCE.get(str(found.dtype), 4e-6)
    kind = np.complex128 if found.dtype.kind == "c" else np.float64
    # XLA flushes subnormal numbers to zero.
    found, wanted = found.astype(kind), wanted.astype(kind)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol / 4, err_msg=where)


def oracle(calls: dict[str, Call], seed: int) -> dict[str, Any]:
    """Return what JAX computes for several calls with one key, in one compiled program."""

    def program(key):
        return [call(jax.random, jax.numpy, key) for call in calls.values()]

    return dict(zip(calls, jax.jit(program)(jax.random.key(seed)), strict=True))


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns or raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - its type is what is compared
            return error
