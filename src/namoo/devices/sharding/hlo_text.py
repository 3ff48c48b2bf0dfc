"""Shardings as text for the compiler: in the syntax of Shardy, and of HLO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.devices.sharding.mesh import AbstractMesh, Mesh
from namoo.devices.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from namoo.engines.base import Device


def _quoted(name: Any) -> str:
    text = str(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def sdy_mesh(mesh: Mesh | AbstractMesh, devices: Sequence[Device] | None = None) -> str:
    """Write a mesh in the syntax of Shardy.

    Args:
        mesh: The mesh.
        devices: The devices of the program in its order, whose positions the text contains; None
            for a program that numbers devices by their `id`.

    Example:
        >>> sdy_mesh(AbstractMesh((4, 2), ("x", "y")))
        '<["x"=4, "y"=2]>'
        >>> sdy_mesh(Mesh([Device(1), Device(0)], "x"))
        '<["x"=2], device_ids=[1, 0]>'
    """
    axes = ", ".join(f"{_quoted(name)}={size}" for name, size in mesh.shape_tuple)
    if isinstance(mesh, AbstractMesh) or mesh.empty:
        return f"<[{axes}]>"
    if devices is None:
        ids = [device.id for device in mesh.flat_devices]
    else:
        position = {device: i for i, device in enumerate(devices)}
        ids = [position[device] for device in mesh.flat_devices]
    if not mesh.axis_names:
        return f"<[], device_ids={ids}>"
    return f"<[{axes}]>" if ids == list(range(mesh.size)) else f"<[{axes}], device_ids={ids}>"


def sdy_dims(spec: PartitionSpec, axis_names: Sequence[Any], ndim: int) -> str:
    """Write how a spec splits an array with `ndim` dimensions, in the syntax of Shardy.

    Args:
        spec: The spec.
        axis_names: The axes of its mesh, in order.
        ndim: The number of dimensions.

    Example:
        >>> sdy_dims(PartitionSpec("x", PartitionSpec.UNCONSTRAINED), ("x", "y"), 3)
        '[{"x"}, {?}, {}]'
    """
    entries: list[Any] = [None] * ndim
    entries[: len(spec)] = spec.partitions
    # In the mesh's order, so that all processes write the same text.
    names = [name for name in axis_names if name in spec.unreduced]
    unreduced = f", unreduced={{{', '.join(map(_quoted, names))}}}" if names else ""
    dims = [
        "{?}" if entry is UNCONSTRAINED else f"{{{', '.join(map(_quoted, axes_of(entry)))}}}"
        for entry in entries
    ]
    return f"[{', '.join(dims)}]{unreduced}"


def hlo_tiles(mesh: Mesh | AbstractMesh, spec: PartitionSpec, parts: Sequence[int]) -> str:
    """Write a tiling over a mesh in the syntax of HLO; devices are numbered in the mesh's order.

    Args:
        mesh: The mesh.
        spec: The spec of the sharding.
        parts: The number of tiles along each dimension.

    Example:
        >>> mesh = AbstractMesh((4, 2), ("x", "y"))
        >>> hlo_tiles(mesh, PartitionSpec(None, "y"), (1, 2))
        '{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}'
    """
    split = [axis for axis in spec.axes()]
    rest = [axis for axis in mesh.axis_names if axis not in split]
    order = [mesh.axis_names.index(axis) for axis in (*split, *rest)]
    iota = f"<=[{mesh.size}]"
    if order != sorted(order):
        iota = f"<=[{','.join(map(str, mesh.axis_sizes))}]T({','.join(map(str, order))})"
    return _hlo_devices(parts, mesh.size, iota)


def hlo_tiles_on(
    parts: Sequence[int],
    places: np.ndarray,
    assignment: Sequence[Device],
    devices: Sequence[Device],
) -> str:
    """Write a tiling in the syntax of HLO, with devices numbered by their index in `devices`.

    Args:
        parts: The number of tiles along each dimension.
        places: The coordinates of the tile of each device.
        assignment: The devices, in the order of `places`.
        devices: The same devices, in the order of the program.

    Example:
        >>> hlo_tiles_on((2,), np.array([[0], [1]]), [Device(1), Device(0)], [Device(0), Device(1)])
        '{devices=[2]1,0}'
    """
    position = {device: i for i, device in enumerate(devices)}
    tiles: list[int] = np.ravel_multi_index(tuple(places.T), tuple(parts)).tolist()  # type: ignore
    order = sorted(range(len(tiles)), key=lambda i: tiles[i])
    return _hlo_devices(parts, len(tiles), ",".join(str(position[assignment[i]]) for i in order))


def _hlo_devices(parts: Sequence[int], count: int, listed: str) -> str:
    replicas = count // math.prod(parts)
    dims = ",".join(map(str, (*parts, replicas) if replicas > 1 else parts))
    last = " last_tile_dim_replicate" if replicas > 1 else ""
    return f"{{devices=[{dims}]{listed}{last}}}"
