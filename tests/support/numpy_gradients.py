"""Compare derivatives of namoo's functions with those of real JAX.

A function under test is `fun(jnp, *args)`, where `jnp` is `namoo.numpy` or `jax.numpy`. The
comparison covers its JVP and VJP with the same random directions, and a second derivative.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import namoo
import namoo.numpy


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Return random numbers, the same in every run."""
    rng = np.random.RandomState(seed + zlib.crc32(repr((shape, dtype)).encode()) % 1000)
    x = np.asarray(rng.randn(*shape))
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.randn(*shape)
    return x.astype(dtype)


def _inexact(package: Any, tree: Any) -> list[Any]:
    leaves = package.tree.leaves(tree)
    return [x for x in leaves if np.dtype(x.dtype).kind in "fc"]


def _derivatives(package: Any, fun: Callable, second: bool) -> Callable:
    """Return a function that computes values and derivatives as a dictionary."""
    jnp = package.numpy

    def outputs(*args):
        return _inexact(package, fun(jnp, *args))

    def pulled(*args):
        values, pull = package.vjp(outputs, *args)
        weights = [jnp.asarray(normal(*v.shape, dtype=v.dtype, seed=11)) for v in values]
        return pull(weights)

    def derivatives(*args):
        directions = tuple(jnp.asarray(normal(*x.shape, dtype=x.dtype, seed=7)) for x in args)
        value, tangents = package.jvp(outputs, args, directions)
        out = {"value": value, "jvp": tangents, "vjp": pulled(*args)}
        if second:
            out["second order"] = package.jvp(pulled, args, directions)[1]
        return out

    return derivatives


def check(fun: Callable, *args: np.ndarray, second: bool = True, rtol: float = 2e-4) -> None:
    """Check that values, both modes and second derivatives agree with JAX (NaN included)."""
    found = _derivatives(namoo, fun, second)(*map(namoo.numpy.asarray, args))
    wanted = jax.jit(_derivatives(jax, fun, second))(*args)
    for name, theirs in wanted.items():
        ours = found[name]
        assert len(ours) == len(theirs), name
        for a, b in zip(ours, theirs, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape, (name, a.dtype, b.dtype)
            scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
            np.testing.assert_allclose(a, b, rtol, rtol * float(scale), err_msg=name)
