"""The devices there are: CPUs of this process, as many as asked for, and what plug-ins bring."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from namoo._config import config
from namoo.engines.base import Device

_made: dict[int, Device] = {}


def _of_plugins() -> Sequence[Device]:
    # Loaded late: most machines have none.
    from namoo.engines.plugins import all_devices

    return all_devices()


others: list[Callable[[], Sequence[Device]]] = [_of_plugins]
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


def of_platform(platform: str | None = None) -> list[Device]:
    """The devices of a platform, or of the best there is: an accelerator's before CPUs.

    Raises:
      RuntimeError: there are none.
    """
    found = [d for provider in others for d in provider()]
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
    """Where XLA runs programs that no argument tells a place for."""
    chosen = config.default_device
    if chosen is None:
        return next(d for d in of_platform() if d.is_addressable)
    return chosen if isinstance(chosen, Device) else of_platform(chosen)[0]


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
