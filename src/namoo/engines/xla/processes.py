"""CPU devices of several processes: jaxlib's clients find one another through a service."""

from __future__ import annotations

import socket
from functools import cache
from typing import Any

from namoo.engines import devices
from namoo.engines.base import Device
from namoo.engines.xla import clients, pjrt

_joined: list[Any] = []


def serve(host: str, listen: str, count: int, heartbeat: int, timeout: int) -> tuple[str, Any]:
    """Start the service that clients find one another through.

    Args:
      host: the name of this machine for the others.
      listen: the address that the service listens at.

    Returns:
      its address, and the service.
    """
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    service = pjrt.distributed_service(_joined_up(listen, port), count, heartbeat, timeout)
    return _joined_up(host, port), service


def _joined_up(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def join(address: str, number: int, count: int, heartbeat: int, timeout: int) -> None:
    """Make the CPU client one of several."""
    found = pjrt.distributed_client(address, number, heartbeat, timeout)
    _joined.append(found)
    clients.share(pjrt.distributed_options(found, number, count))
    devices.others.append(everyone)


def leave() -> None:
    """Part from the service."""
    devices.others.remove(everyone)
    clients.share({})
    _joined.pop().shutdown()


def everyone() -> list[Device]:
    """The CPU devices of all processes."""
    return _known(clients.client("cpu", devices.cpu_count()))


@cache
def _known(client: Any) -> list[Device]:
    own = client.process_index()
    made = []
    for raw in sorted(client.devices(), key=lambda d: (d.process_index, d.id)):
        device = Device(raw.id)
        device.process_index = device.host_id = device.task_id = raw.process_index
        device.is_addressable = raw.process_index == own
        device.local_hardware_id = raw.local_hardware_id
        made.append(device)
    return made
