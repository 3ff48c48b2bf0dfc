"""One program, two libraries: what namoo computes against what JAX does.

A program under test is a function `program(lib, *args)`, where `lib` has the names of `jax` itself,
`lib.jnp` and `lib.lax`.  `agree(program, *args)` runs it in both and compares the results.
"""

from __future__ import annotations

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
    # Names may be loaded when they are first used, so that `vars` would not know them.
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


# Options for the few operations that XLA computes otherwise where `conftest` has it compile soon.
AS_USERS_HAVE_IT = {
    "xla_cpu_use_fusion_emitters": True,
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
}


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-5, weak: bool = True) -> None:
    """Trees of one structure, with arrays of equal types and close values."""
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
    """Run a program in both libraries and compare; returns namoo's result."""
    ours, theirs = program(OURS, *args), program(THEIRS, *args)
    assert_same(ours, theirs, rtol, weak)
    return ours
