"""Arrangements of devices for a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.source_context import make_entry_points as _guard
from namoo.devices.available import devices as all_devices

__all__ = ["create_device_mesh"]
__dir__ = __all__.copy


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **options: Any
) -> np.ndarray:
    """Return devices in an array of a given shape, for `namoo.sharding.Mesh`.

    Args:
        mesh_shape: the shape; its product is the number of devices.
        devices: the devices; all by default.
        options: hints about the networks of certain accelerators; they have no effect.

    Raises:
        ValueError: the shape does not fit the number of devices.

    Example:
        >>> create_device_mesh((1, 1)).shape
        (1, 1)
    """
    found = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(
            f"create_device_mesh: a mesh of shape {tuple(mesh_shape)} has "
            f"{math.prod(mesh_shape)} devices, but there are {len(found)}. Pass devices= with as "
            "many as it needs."
        )
    out = np.empty(len(found), object)
    out[:] = found
    return out.reshape(tuple(mesh_shape))


_guard(globals())
