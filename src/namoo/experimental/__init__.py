"""What still grows in JAX, and is used all the same: checks, sparse arrays, equations of motion.

Its modules are loaded when they are first used.
"""

import importlib
from typing import Any

from namoo._config import enable_x64 as enable_x64
from namoo.control.callback import io_callback as io_callback

_LAZY = ("checkify", "jet", "mesh_utils", "multihost_utils", "ode", "pjit", "shard_map", "sparse")


def disable_x64() -> Any:
    """Make 64-bit types 32-bit ones within a `with` block, whatever the setting is outside.

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
