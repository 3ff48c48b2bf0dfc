"""Samplers in two libraries: the same call with the same key, in namoo and in JAX."""

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
    """Set options of both libraries, by their names without the prefix `jax_`."""
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
    """The values of a result; of keys, their words."""
    if not isinstance(x.dtype, np.dtype):
        x = namoo.random.key_data(x) if isinstance(x, namoo.Array) else jax.random.key_data(x)
    return np.asarray(x)


def assert_equal(found: Any, wanted: Any) -> None:
    """The same shape, type and bits."""
    assert str(found.dtype) == str(wanted.dtype)
    assert found.shape == wanted.shape
    found, wanted = numbers(found), numbers(wanted)
    assert found.tobytes() == wanted.tobytes(), f"{found!r}\n{wanted!r}"


# Of float16 and bfloat16, XLA keeps results between operations in float32.
TOLERANCE = {"float64": 1e-12, "complex128": 1e-12, "float16": 4e-3, "bfloat16": 4e-2}


def assert_close(found: Any, wanted: Any, rtol: float | None = None, where: str = "") -> None:
    """The same shape and type; floats within a few roundings, and everything else equal.

    Where results are differences (of logarithms, say), what counts is a rounding of the size 1.
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
    # XLA rounds numbers below the least normal one to zero.
    found, wanted = found.astype(kind), wanted.astype(kind)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol / 4, err_msg=where)


def oracle(calls: dict[str, Call], seed: int) -> dict[str, Any]:
    """What JAX gives for several calls with one key: it compiles one program faster than many."""

    def program(key):
        return [call(jax.random, jax.numpy, key) for call in calls.values()]

    return dict(zip(calls, jax.jit(program)(jax.random.key(seed)), strict=True))


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns or raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - its type is what is compared
            return error
