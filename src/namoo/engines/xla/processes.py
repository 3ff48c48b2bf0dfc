"""CPU devices of several processes: jaxlib's clients find one another through a service."""

from __future__ import annotations

import socket
from typing import Any

from namoo._base.caches import cached
from namoo.engines import registry
from namoo.engines.base import Device
from namoo.engines.cpus import cpu_count
from namoo.engines.xla import clients, pjrt

_joined: list[Any] = []


def serve(host: str, listen: str, count: int, heartbeat: int, timeout: int) -> tuple[str, Any]:
    """Start the service by which clients find one another.

    Args:
        host: the name by which others reach this machine.
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
    """Make the CPU client one of several processes'."""
    found = pjrt.distributed_client(address, number, heartbeat, timeout)
    _joined.append(found)
    clients.share(pjrt.distributed_options(found, number, count))
    registry.providers.append(everyone)


def leave() -> None:
    """Disconnect from the service."""
    registry.providers.remove(everyone)
    clients.share({})
    _joined.pop().shutdown()


def everyone() -> list[Device]:
    """Return the CPU devices of all processes."""
    return _known(clients.client("cpu", cpu_count()))


@cached("xla processes: devices", bound="clients of the process", keyed_by="client", kept=True)
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
