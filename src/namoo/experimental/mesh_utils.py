"""Arrangements of devices for a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.source_context import make_entry_points as _guard
from namoo.devices.available import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
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


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return devices of several groups in an array: a fast network inside a group, a slow between.

    Args:
        mesh_shape: how the devices of a group are arranged.
        dcn_mesh_shape: how the groups are arranged, along the same axes.
        devices: the devices; all by default.
        process_is_granule: whether a group is what one process has. Else it is a slice of an
            accelerator; a CPU has none.
        should_sort_granules_by_key: whether groups are in the order of their numbers, or in that
            of their first devices.
        allow_split_physical_axes: a hint about accelerators; it has no effect.

    Returns:
        an array whose shape is the product of the two shapes, axis by axis.

    Raises:
        ValueError: the shapes do not fit the devices, or a device belongs to no slice.

    Example:
        >>> create_hybrid_device_mesh((1, 1), (1, 1), process_is_granule=True).shape
        (1, 1)
    """
    found = list(all_devices() if devices is None else devices)
    groups: dict[int, list[Any]] = {}
    for device in found:
        number = device.process_index if process_is_granule else getattr(device, "slice_index", -1)
        if number < 0:
            raise ValueError(
                f"create_hybrid_device_mesh: {device} does not have attribute slice_index. Pass "
                "process_is_granule=True."
            )
        groups.setdefault(number, []).append(device)
    order = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(mesh_shape) != len(dcn_mesh_shape) or math.prod(dcn_mesh_shape) != len(groups):
        raise ValueError(
            f"create_hybrid_device_mesh: the {len(groups)} groups of devices do not fit "
            f"dcn_mesh_shape={tuple(dcn_mesh_shape)}, which must have one length for each of the "
            f"{len(mesh_shape)} axes of mesh_shape, and the number of groups as its product."
        )
    inner = [create_device_mesh(mesh_shape, groups[number]) for number in order]
    out = np.empty((*dcn_mesh_shape, *mesh_shape), object)
    for place, mesh in zip(np.ndindex(*dcn_mesh_shape), inner, strict=True):
        out[place] = mesh
    axes = len(mesh_shape)
    pairs = [axis for i in range(axes) for axis in (i, axes + i)]
    shape = [a * b for a, b in zip(dcn_mesh_shape, mesh_shape, strict=True)]
    return out.transpose(pairs).reshape(shape)


_guard(globals())
