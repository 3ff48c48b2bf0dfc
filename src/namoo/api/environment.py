"""A description of the environment, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from importlib.util import find_spec

from namoo import version
from namoo._base.config import OPTIONS, config
from namoo._base.runtime import native
from namoo.devices.available import devices, local_device_count, process_count
from namoo.engines import disk_cache


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of namoo and its dependencies, and the devices.

    Args:
        return_string: return the text instead of printing it.
    """
    lines = [f"jax:    {version.__version__} (namoo)"]
    for name in ("jaxlib", "numpy", "scipy", "llvmlite"):
        try:
            lines.append(f"{name + ':':7} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name + ':':7} not installed")
    lines += [
        f"python: {sys.version}",
        f"device info: {devices()[0].device_kind}, {local_device_count()} local devices",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def overview() -> str:
    """Return what `python -m namoo` prints: version, engines, devices, cache and settings."""
    # An engine is available if the package that it needs is installed.
    needs = {"native": "llvmlite", "xla": "jaxlib", "interpreter": "numpy"}
    engines = [
        f"{name} ({package} {metadata.version(package)})"
        if find_spec(package)
        else f"{name} (absent: pip install {package})"
        for name, package in needs.items()
    ]
    kinds = [f"{device} ({device.device_kind})" for device in devices()]
    cache = (
        "off" if disk_cache.off() else disk_cache.folder() or "off: others can write to its folder"
    )
    changed = [
        f"{option.name} = {getattr(config, option.name)!r}"
        for option in OPTIONS
        if getattr(config, option.name) != option.default
    ]
    rows = {
        "namoo": [version.__version__],
        "python": [f"{platform.python_version()}, {platform.system()} {platform.machine()}"],
        "C++ part": ["yes" if native else "no: trees and calls are slower"],
        "engines": engines,
        "devices": kinds,
        "cache": [cache],
        "settings": changed or ["all at their defaults"],
    }
    below = "\n" + " " * 10
    return "\n".join(f"{name:9} {below.join(values)}" for name, values in rows.items())
