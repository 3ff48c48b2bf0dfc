"""PJRT clients: one for each platform, created when it is first used."""

from __future__ import annotations

import threading
from typing import Any

from namoo._base.caches import register
from namoo._base.config import config
from namoo._base.runtime import native
from namoo.engines.base import Device
from namoo.engines.cpus import cpu_count
from namoo.engines.xla import pjrt

_lock = threading.Lock()
_clients: dict[Any, Any] = register(
    "xla clients", {}, bound="platforms", keyed_by="platform", kept=True
)
_devices: dict[Any, dict[int, Any]] = register(
    "xla clients: devices", {}, bound="clients", keyed_by="client", kept=True
)


_shared: dict[str, Any] = {}


def share(options: dict[str, Any]) -> None:
    """Create clients as one of several processes from now on."""
    with _lock:
        _shared.clear()
        _shared.update(options)
        _clients.pop("cpu", None)


def in_use() -> bool:
    """Whether there is a client already."""
    return bool(_clients)


def client(platform: str = "cpu", count: int = 1) -> Any:
    """Return the client of a platform; that of CPUs has at least `count` devices."""
    global _were_others
    with _lock:
        found = _clients.get(platform)
        if found is None or (platform == "cpu" and found.local_device_count() < count):
            if found is not None:
                # Buffers of the smaller client stay valid: each keeps its client alive.
                _were_others = True
                if native is not None:
                    native.forget_calls()  # they do not check the client of their buffers
            found = _clients[platform] = pjrt.cpu_client(count, **_shared)
        return found


_were_others = False


def were_others() -> bool:
    """Whether buffers may belong to a client that was replaced by a larger one."""
    return _were_others


def at_home(buffers: list[Any], owner: Any) -> list[Any]:
    """Return buffers of a client; those of an earlier client with fewer devices are copied."""
    if not _were_others:
        return buffers
    return [b if pjrt.client_of(b) is owner else _copied(b, owner) for b in buffers]


def _copied(buffer: Any, owner: Any) -> Any:
    devices = {d.id: d for d in owner.devices()}
    return pjrt.copied(buffer, devices)


def plugin_client(plugin: Any) -> Any:
    """Return the client of a plug-in, which serves its platform from now on."""
    with _lock:
        found = _clients.get(plugin.platform)
        if found is None:
            options, connection = _options(plugin), _shared.get("distributed_client")
            found = pjrt.load_plugin(plugin.name, plugin.library, options, connection)
            _clients[plugin.platform] = found
        return found


def _options(plugin: Any) -> dict[str, Any]:
    """Return the options of a plug-in: the visible GPUs, and the number of this process."""
    options: dict[str, Any] = {}
    if plugin.platform == "gpu":
        options = pjrt.gpu_options(plugin.name)
        chosen = getattr(config, f"jax_{plugin.name}_visible_devices")
        if chosen != "all":
            options["visible_devices"] = [int(n) for n in chosen.split(",")]
    # TPUs find the other processes by themselves.
    if _shared and plugin.platform != "tpu":
        options |= {"node_id": _shared["node_id"], "num_nodes": _shared["num_nodes"]}
    return options


def raw(device: Device) -> Any:
    """Return jaxlib's device for one of ours."""
    # With several processes the device ids do not say how many devices this process has.
    count = cpu_count() if _shared else max(cpu_count(), device.id + 1)
    owner = client(device.platform, count)
    found = _devices.get(owner)
    if found is None:
        found = _devices[owner] = {d.id: d for d in owner.devices()}
    return found[device.id]
