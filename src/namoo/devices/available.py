"""The devices and processes that a program can use."""

from __future__ import annotations

from namoo._base.config import config
from namoo.engines import registry
from namoo.engines.base import Device
from namoo.engines.cpus import cpus


def devices(backend: str | None = None) -> list[Device]:
    """Return all devices, including those of other processes.

    Args:
        backend: A platform such as "cpu" or "gpu"; by default the best one available.

    Raises:
        RuntimeError: There are no devices of that platform.

    Example:
        >>> devices()
        [CpuDevice(id=0)]
    """
    return registry.of_platform(backend)


def cpu_devices(count: int) -> list[Device]:
    """Make the CPU present itself as several devices, to try out programs for many devices.

    Args:
        count: The number of devices; it may be changed at any time.

    Returns:
        The devices.

    Example:
        >>> cpu_devices(4)
        [CpuDevice(id=0), CpuDevice(id=1), CpuDevice(id=2), CpuDevice(id=3)]
        >>> cpu_devices(1)
        [CpuDevice(id=0)]
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"cpu_devices: count must be a positive integer, got {count!r}.")
    config.update("num_cpu_devices", count)
    return cpus()


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Return the devices of this process, or of the process `process_index`."""
    own = registry.processes()[0] if process_index is None else process_index
    everyone = devices(backend)
    if process_index is not None and own not in {d.process_index for d in everyone}:
        raise ValueError(
            f"Unknown process_index {process_index}: there are "
            f"{sorted({d.process_index for d in everyone})}."
        )
    return [d for d in everyone if d.process_index == own]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices of all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Return the index of this process among all processes."""
    return registry.processes()[0]


def process_count(backend: str | None = None) -> int:
    """Return the number of processes that work together."""
    return registry.processes()[1]


def process_indices(backend: str | None = None) -> list[int]:
    """Return the indices of all processes."""
    return list(range(process_count()))


def default_backend() -> str:
    """Return the platform that programs run on."""
    return devices()[0].platform
