"""The platforms that programs run on."""

from namoo.extend.backend import Backend, backends, get_backend

__all__ = ["_backends", "backends", "backends_are_initialized", "get_backend"]

_backends: dict[str, Backend] = backends()


def backends_are_initialized() -> bool:
    """Whether the devices of this process are fixed: they are not until XLA is loaded."""
    import sys

    return "jaxlib" in sys.modules
