"""Plug-ins: libraries by which makers of accelerators bring their devices to XLA.

A plug-in is found without loading it, or jaxlib: in `PJRT_NAMES_AND_LIBRARY_PATHS`, among the
packages `jax_plugins.*` that makers publish, and in the package `libtpu`.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from namoo._config import config
from namoo.engines.base import Device


class Plugin(NamedTuple):
    """A library of a maker, and the platform that it brings."""

    name: str
    library: str

    @property
    def platform(self) -> str:
        return _PLATFORMS.get(self.name, self.name)


_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}

# The names of platforms in the names of packages, and of their libraries.
_FAMILIES = ("cuda", "rocm")


def _from_environment() -> list[Plugin]:
    """Of `name:path` pairs, with commas between them."""
    found = []
    for pair in os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(","):
        if pair.strip():
            name, colon, path = pair.strip().partition(":")
            if not (name and colon and path):
                raise ValueError(
                    f"PJRT_NAMES_AND_LIBRARY_PATHS has {pair!r}; it is a list of name:path pairs "
                    "with commas between them."
                )
            found.append(Plugin(name, path))
    return found


def _from_packages() -> list[Plugin]:
    """Of the packages that are installed; they are found, not imported."""
    found = []
    spec = importlib.util.find_spec("jax_plugins")
    for module in pkgutil.iter_modules(spec.submodule_search_locations if spec else []):
        place = module.module_finder.find_spec(f"jax_plugins.{module.name}", None)  # type: ignore
        for folder in place.submodule_search_locations or [] if place else []:
            libraries = sorted(
                p for end in ("so", "dylib", "dll") for p in Path(folder).glob(f"*plugin*.{end}")
            )
            if libraries:
                family = next((f for f in _FAMILIES if f in module.name), module.name)
                found.append(Plugin(family, str(libraries[0])))
    spec = importlib.util.find_spec("libtpu")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = Path(folder) / "libtpu.so"
        if library.exists() and _has_tpu():
            found.append(Plugin("tpu", str(library)))
    return found


def _has_tpu() -> bool:
    """Whether the machine has a TPU: its library stops the process where there is none."""
    return any(Path("/dev").glob("accel*")) or any(Path("/dev/vfio").glob("[0-9]*"))


@cache
def plugins() -> tuple[Plugin, ...]:
    """The plug-ins there are, each platform once."""
    chosen: dict[str, Plugin] = {}
    for plugin in (*_from_environment(), *_from_packages()):
        chosen.setdefault(plugin.name, plugin)
    return tuple(chosen.values())


def wanted() -> list[Plugin]:
    """The plug-ins to use, by `config.platforms` (JAX_PLATFORMS)."""
    names = [n.strip() for n in (config.platforms or config.platform_name or "").split(",") if n]
    found = plugins()
    if not names:
        return list(found)
    return [p for n in names for p in found if n in (p.name, p.platform)]


class PluginDevice(Device):
    """A device that a plug-in brought."""

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


_found: dict[str, list[Device]] = {}


def all_devices() -> list[Device]:
    """The devices of all plug-ins that work; one that does not is told of once."""
    out: list[Device] = []
    for plugin in wanted():
        if plugin.name not in _found:
            _found[plugin.name] = _devices_of(plugin)
        out += _found[plugin.name]
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
