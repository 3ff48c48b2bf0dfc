"""The devices of plug-ins; `namoo._base.plugins` finds the plug-ins."""

from __future__ import annotations

import warnings
from typing import Any

from namoo._base.caches import register
from namoo._base.plugins import Plugin, plugins, requested_platforms, selected_plugins
from namoo.engines.base import Device

__all__ = ["Plugin", "PluginDevice", "all_devices", "plugins"]


class PluginDevice(Device):
    """A device of a PJRT plug-in."""

    def __init__(self, platform: str, raw: Any, own: int):
        super().__init__(raw.id)
        self.platform = platform
        self.device_kind = raw.device_kind
        self.process_index = self.host_id = self.task_id = raw.process_index
        self.is_addressable = raw.process_index == own
        self.local_hardware_id = raw.local_hardware_id

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


_found: dict[str, list[Device]] = register(
    "engines.plugins devices", {}, bound="installed plug-ins", keyed_by="plug-in", kept=True
)


def all_devices() -> list[Device]:
    """Return the devices of all plug-ins; warn once about a plug-in that does not work."""
    out: list[Device] = []
    for plugin in selected_plugins():
        if plugin.name not in _found:
            _found[plugin.name] = _devices_of(plugin)
        out += _found[plugin.name]
    if not out and requested_platforms() and "cpu" not in requested_platforms():
        raise RuntimeError(
            f"Unable to initialize backend {requested_platforms()[0]!r}: its plug-in "
            "finds no device. Set JAX_PLATFORMS='' to choose among the available devices."
        )
    return out


def _devices_of(plugin: Plugin) -> list[Device]:
    from namoo.engines.xla import clients

    try:
        client = clients.plugin_client(plugin)
    except Exception as error:
        warnings.warn(
            f"The PJRT plug-in {plugin.name!r} ({plugin.library}) could not be used: {error} "
            "To do without it, set JAX_PLATFORMS=cpu.",
            stacklevel=4,
        )
        return []
    own = client.process_index()
    return [PluginDevice(plugin.platform, d, own) for d in client.devices()]
