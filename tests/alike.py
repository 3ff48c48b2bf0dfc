"""Comparisons on top of `both`: derivatives of a program, and the types of its errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from both import OURS, THEIRS, agree


def agree_with_vjp(program: Any, *args: Any, rtol: float = 1e-4) -> None:
    """The results of a program of arrays, and their pullback of a random cotangent."""
    rng = np.random.default_rng(0)
    value = program(OURS, *args)
    cts = OURS.tree_util.tree_map(lambda x: _random(rng, x), value)

    def with_pullback(lib, *args):
        def run(*args):
            out, pullback = lib.vjp(lambda *args: program(lib, *args), *args)
            return out, pullback(cts)

        # The oracle compiles one program faster than many operations.
        return (lib.jit(run) if lib is THEIRS else run)(*args)

    agree(with_pullback, *args, rtol=rtol)


def _random(rng: np.random.Generator, x: Any) -> np.ndarray:
    out = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        out = out + 1j * rng.normal(size=x.shape)
    return np.asarray(out).astype(x.dtype)


def outcome(program: Any, lib: Any) -> Any:
    """The result of a program, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(lib)
        except Exception as error:  # noqa: BLE001 - its type is what is compared
            return error


def fail_alike(program: Any, error: type[Exception] | None = None) -> str:
    """Both libraries raise the same type of error (or ours the given one); returns the message."""
    found, wanted = outcome(program, OURS), outcome(program, THEIRS)
    assert isinstance(wanted, Exception), f"JAX does not fail: {wanted!r}"
    expected = error or type(wanted)
    assert type(found) is expected, f"{found!r}, but JAX: {wanted!r}"
    return str(found)
