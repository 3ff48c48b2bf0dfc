"""All devices that programs can run on, and the number of processes that work together.

Devices are the CPUs of this process, those of other processes, and those of PJRT plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from namoo._base.config import config
from namoo.engines.base import Device
from namoo.engines.cpus import cpus


def _of_plugins() -> Sequence[Device]:
    # Loaded late: most machines have no plug-ins.
    from namoo.engines.plugins import all_devices

    return all_devices()


providers: list[Callable[[], Sequence[Device]]] = [_of_plugins]
"""Functions that return devices besides the CPUs of this process."""


def of_platform(platform: str | None = None) -> list[Device]:
    """Return the devices of a platform; by default of the best one, accelerators before CPUs.

    Raises:
        RuntimeError: There are none.
    """
    found = [d for provider in providers for d in provider()]
    cpu = [d for d in found if d.platform == "cpu"] or cpus()
    every = [*(d for d in found if d.platform != "cpu"), *cpu]
    wanted = {"cuda": "gpu", "rocm": "gpu"}.get(platform, platform) if platform else None
    chosen = [d for d in every if d.platform == (wanted or every[0].platform)]
    if not chosen:
        known = sorted({d.platform for d in every})
        raise RuntimeError(
            f"Unknown backend {platform!r}. Available backends are {known}; GPUs and TPUs come "
            "with the PJRT plug-in of their maker and the XLA engine."
        )
    return chosen


def default() -> Device:
    """Return the device on which XLA runs programs that are not committed to a device."""
    chosen = config.default_device
    if chosen is None:
        return next(d for d in of_platform() if d.is_addressable)
    return chosen if isinstance(chosen, Device) else of_platform(chosen)[0]


def home() -> Device:
    """Return the device of uncommitted host arrays: the first CPU of this process."""
    for provider in providers:
        for device in provider():
            if device.platform == "cpu" and device.is_addressable:
                return device
    return cpus()[0]


class _Progress:
    """Counts the programs that run on the devices of all processes."""

    started = 0
    """How many this process has started: equal on every process that is making progress."""


progress = _Progress()
_processes = (0, 1)


def processes() -> tuple[int, int]:
    """Return the index of this process, and the number of processes."""
    return _processes


def set_processes(index: int, count: int) -> None:
    """Record that this process is one of several."""
    global _processes
    _processes = (index, count)
