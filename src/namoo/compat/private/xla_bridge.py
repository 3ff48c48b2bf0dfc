"""Platforms."""

from namoo.extend.backend import Backend, backends, get_backend

__all__ = ["_backends", "backends", "backends_are_initialized", "get_backend"]

_backends: dict[str, Backend] = backends()


def backends_are_initialized() -> bool:
    """Return whether the devices of this process are fixed, which loading XLA does."""
    import sys

    return "jaxlib" in sys.modules
