"""`namoo.extend.backend`: the platforms that programs run on.

Example:
    >>> get_backend().platform
    'cpu'
"""

from __future__ import annotations

from typing import Any

from namoo.devices import available, device_put
from namoo.memo.caches import clear_caches as clear_in_memory_compilation_cache

__all__ = [
    "Backend",
    "backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_default_device",
]
__dir__ = __all__.copy


class Backend:
    """The devices of one platform.

    Attributes:
        platform: `cpu`, `gpu` or `tpu`.
    """

    def __init__(self, platform: str) -> None:
        self.platform = platform

    @property
    def platform_version(self) -> str:
        """The name and version of the engine."""
        from namoo.version import __version__

        return f"namoo {__version__}"

    @property
    def runtime_type(self) -> str:
        """The name of the runtime."""
        return "namoo"

    def devices(self) -> list[Any]:
        """All devices of the platform."""
        return available.devices(self.platform)

    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return available.local_devices(backend=self.platform)

    def device_count(self) -> int:
        """How many devices the platform has."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """How many devices this process has."""
        return len(self.local_devices())

    def process_index(self) -> int:
        """The number of this process."""
        return available.process_index()

    def live_buffers(self) -> list[Any]:
        """The arrays that exist."""
        return device_put.live_arrays(self.platform)

    live_arrays = live_buffers

    def __repr__(self) -> str:
        return f"<Backend {self.platform}: {self.device_count()} devices>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self.platform == other.platform

    def __hash__(self) -> int:
        return hash(self.platform)


def get_backend(platform: str | Backend | None = None) -> Backend:
    """The backend of a platform; the default one if none is named.

    Raises:
        RuntimeError: the platform is not available.
    """
    if isinstance(platform, Backend):
        return platform
    if platform is not None:
        available.devices(platform)
    return Backend(platform or available.default_backend())


def backends() -> dict[str, Backend]:
    """All backends by platform."""
    return {name: Backend(name) for name in {"cpu", available.default_backend()}}


def get_default_device() -> Any:
    """The device that new arrays are put on."""
    from namoo._base.config import config

    return config.default_device or available.local_devices()[0]
