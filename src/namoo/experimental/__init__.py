"""JAX's experimental modules: checks, sparse arrays, differential equations and others.

The modules are loaded on first use.
"""

from typing import Any

from namoo._base.config import enable_x64
from namoo._base.lazy import lazy as _lazily
from namoo._base.source_context import make_entry_points as _guard
from namoo.control.callback import io_callback

__all__ = ["cur_qdd", "disable_x64", "enable_x64", "io_callback"]

_TABLE = {
    "experimental.array_serialization": ".",
    "experimental.checkify": ".",
    "experimental.colocated_python": ".",
    "experimental.hijax": ".",
    "experimental.jet": ".",
    "experimental.layout": ".",
    "experimental.mesh_utils": ".",
    "experimental.multihost_utils": ".",
    "experimental.ode": ".",
    "experimental.pallas": ".",
    "experimental.pjit": ".",
    "experimental.shard_map": ".",
    "experimental.sparse": ".",
}


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


__getattr__, __dir__ = _lazily(__name__, _TABLE)

_guard(globals())
