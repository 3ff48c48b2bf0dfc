"""A description of the environment, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from namoo import version
from namoo.devices.available import devices, local_device_count, process_count


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
