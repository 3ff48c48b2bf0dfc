"""JAX's experimental modules: checks, sparse arrays, differential equations and others.

The modules are loaded on first use.
"""

import importlib
from typing import Any

from namoo._base.config import enable_x64 as enable_x64
from namoo.control.callback import io_callback as io_callback

_LAZY = (
    "array_serialization",
    "checkify",
    "colocated_python",
    "hijax",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "pallas",
    "pjit",
    "shard_map",
    "sparse",
)


def cur_qdd(x: Any) -> Any:
    """The arrays that a mutable value currently consists of; see `namoo.experimental.hijax`."""
    return x.cur_qdd()


def disable_x64() -> Any:
    """Context manager: use 32-bit types, whatever the outer setting is.

    Example:
        >>> import namoo.numpy as jnp
        >>> with enable_x64(True), disable_x64():
        ...     jnp.ones(1).dtype
        dtype('float32')
    """
    return enable_x64(False)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"namoo.experimental.{name}")
    raise AttributeError(f"module 'namoo.experimental' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
