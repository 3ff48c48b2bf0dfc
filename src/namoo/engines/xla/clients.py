"""Clients: one for each platform, made when it is first used."""

from __future__ import annotations

import threading
from typing import Any

from namoo.engines.base import Device
from namoo.engines.xla import pjrt

_lock = threading.Lock()
_clients: dict[Any, Any] = {}


def client(platform: str = "cpu", count: int = 1) -> Any:
    """The client of a platform; of CPUs, one that has at least `count` devices."""
    with _lock:
        found = _clients.get(platform)
        if found is None or (platform == "cpu" and found.local_device_count() < count):
            # Buffers of a smaller client live on: each keeps the client that made it.
            found = _clients[platform] = pjrt.cpu_client(count)
        return found


def raw(device: Device) -> Any:
    """jaxlib's device of one of ours."""
    return {d.id: d for d in client(device.platform, device.id + 1).devices()}[device.id]
