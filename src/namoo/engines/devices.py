"""The devices there are: CPUs of this process, as many as asked for, and what plug-ins bring."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from namoo._config import config
from namoo.engines.base import Device

_made: dict[int, Device] = {}

others: list[Callable[[], Sequence[Device]]] = []
"""Functions that tell of devices besides this process' CPUs: of plug-ins, of other processes."""


def cpu_count() -> int:
    """How many CPU devices this process has: `config.num_cpu_devices`, else as XLA_FLAGS tell."""
    if config.num_cpu_devices is not None and config.num_cpu_devices > 0:
        return config.num_cpu_devices
    flag = re.search(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    return max(int(flag[1]), 1) if flag else 1


def cpus() -> list[Device]:
    """The CPU devices of this process."""
    return [_made.setdefault(i, Device(i)) for i in range(cpu_count())]


def home() -> Device:
    """Where arrays lie that nobody put anywhere: the first CPU of this process."""
    for provider in others:
        for device in provider():
            if device.platform == "cpu" and device.is_addressable:
                return device
    return cpus()[0]


class _Together:
    """Programs of all processes."""

    started = 0
    """How many this process has started; equal in all processes that are getting on."""


together = _Together()
_processes = (0, 1)


def processes() -> tuple[int, int]:
    """The number of this process, and how many work together."""
    return _processes


def set_processes(index: int, count: int) -> None:
    """Tell that this process is one of several."""
    global _processes
    _processes = (index, count)
