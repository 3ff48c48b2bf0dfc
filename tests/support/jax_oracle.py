"""Run one program in namoo and in JAX, and compare results, derivatives and errors.

A program under test is a function `program(lib, *args)`, where `lib` has the names of `jax` itself,
`lib.jnp` and `lib.lax`. `agree(program, *args)` runs it in both and compares the results.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import jax
import jax.custom_batching
import jax.experimental
import jax.numpy
import numpy as np

import namoo
import namoo.custom_batching
import namoo.debug
import namoo.numpy
from namoo.control.callback import io_callback


def _public(module: Any) -> dict[str, Any]:
    # Names may be loaded lazily, so `vars` would miss them.
    names = [name for name in dir(module) if not name.startswith("_")]
    return {name: getattr(module, name) for name in names if hasattr(module, name)}


OURS = SimpleNamespace(
    **{
        **_public(namoo),
        "jnp": namoo.numpy,
        "lax": namoo.lax,
        "io_callback": io_callback,
        "debug": namoo.debug,
        "custom_batching": namoo.custom_batching,
    }
)
THEIRS = SimpleNamespace(
    **{
        **_public(jax),
        "jnp": jax.numpy,
        "lax": jax.lax,
        "io_callback": jax.experimental.io_callback,
        "debug": jax.debug,
        "custom_batching": jax.custom_batching,
    }
)


# XLA's defaults, for the few operations that the fast compilation set in `conftest` changes.
AS_USERS_HAVE_IT = {
    "xla_cpu_use_fusion_emitters": True,
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
}


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-5, weak: bool = True) -> None:
    """Check that two trees have the same structure, types and close values."""
    found, found_tree = namoo.tree_util.tree_flatten(ours)
    wanted, wanted_tree = jax.tree_util.tree_flatten(theirs)
    assert str(found_tree) == str(wanted_tree)
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        assert namoo.dtypes.result_type(a) == jax.dtypes.result_type(b)
        if weak:
            assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False), (a, b)
        a, b = np.asarray(a), np.asarray(b)
        if b.dtype == jax.float0:
            continue
        scale = np.abs(b[np.isfinite(b)].astype(np.complex128)).max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(scale))


def agree(program: Any, *args: Any, rtol: float = 1e-5, weak: bool = True) -> Any:
    """Run a program in both libraries and compare; return namoo's result."""
    ours, theirs = program(OURS, *args), program(THEIRS, *args)
    assert_same(ours, theirs, rtol, weak)
    return ours


def agree_with_vjp(program: Any, *args: Any, rtol: float = 1e-4) -> None:
    """Compare the results of a program, and their pullback of a random cotangent."""
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
    """Return the result of a program, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(lib)
        except Exception as error:  # noqa: BLE001 - its type is what is compared
            return error


def fail_alike(program: Any, error: type[Exception] | None = None) -> str:
    """Check that both libraries raise the same type of error; return namoo's message."""
    found, wanted = outcome(program, OURS), outcome(program, THEIRS)
    assert isinstance(wanted, Exception), f"JAX does not fail: {wanted!r}"
    expected = error or type(wanted)
    assert type(found) is expected, f"{found!r}, but JAX: {wanted!r}"
    return str(found)
