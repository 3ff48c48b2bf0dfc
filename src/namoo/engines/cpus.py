"""The CPU devices of this process. One CPU can present itself as several devices."""

from __future__ import annotations

import os
import re

from namoo._base.caches import register
from namoo._base.config import config
from namoo.engines.base import Device

_devices: dict[int, Device] = register(
    "engines CPU devices", {}, bound="CPU devices", keyed_by="number", kept=True
)


def cpu_count() -> int:
    """Return the number of CPU devices: `config.num_cpu_devices`, else the one in XLA_FLAGS."""
    if config.num_cpu_devices is not None and config.num_cpu_devices > 0:
        return config.num_cpu_devices
    flag = re.search(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    return max(int(flag[1]), 1) if flag else 1


def cpus() -> list[Device]:
    """Return the CPU devices of this process."""
    return [_devices.setdefault(i, Device(i)) for i in range(cpu_count())]
