"""Reads the shardings that XLA chose from the text of a compiled program."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from namoo.devices.sharding.mesh import Mesh
from namoo.devices.sharding.partition_spec import PartitionSpec
from namoo.devices.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding, Tiling

_TILED = re.compile(
    r"""\{devices=\[(?P<dims>[\d,]*)\]
        (?:<=\[(?P<source>[\d,]*)\](?:T\((?P<order>[\d,]*)\))?|(?P<listed>[\d,]+))
        \s*(?P<last>last_tile_dim_replicate|last_tile_dims=\{[^}]*\})?""",
    re.VERBOSE,
)


def _numbers(text: str | None) -> list[int]:
    return [int(word) for word in (text or "").split(",") if word]


def from_hlo_text(text: str, mesh: Mesh, ndim: int) -> Sharding:
    """Parse the text of an HLO sharding, for the devices of a mesh.

    The result uses the mesh's own axes where they can express it, else a mesh made for it.

    Args:
        text: The text, from a compiled program; it numbers devices by their order in the mesh.
        mesh: The mesh of the program.
        ndim: The number of dimensions of the array.

    Raises:
        ValueError: The text does not describe the parts of a whole array.

    Example:
        >>> from namoo.engines.base import Device
        >>> mesh = Mesh(np.array([Device(i) for i in range(8)]).reshape(4, 2), ("x", "y"))
        >>> from_hlo_text("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", mesh, 2).spec
        P(None, 'y')
    """
    text = text.strip()
    if text.startswith("{replicated"):
        return NamedSharding(mesh, PartitionSpec())
    if found := re.match(r"\{maximal device=(\d+)", text):
        return SingleDeviceSharding(mesh.flat_devices[int(found[1])])
    tiled = _TILED.match(text)
    if tiled is None:
        raise ValueError(f"{text} does not say which part of an array is on which device.")
    dims = _numbers(tiled["dims"])
    if tiled["listed"]:
        order = np.array(_numbers(tiled["listed"]))
    else:
        source = _numbers(tiled["source"])
        order = np.arange(math.prod(source)).reshape(source)
        order = order.transpose(_numbers(tiled["order"])) if tiled["order"] else order
    last = tiled["last"] or ""
    kinds = re.findall(r"\w+", last.partition("=")[2]) if "=" in last else [last] if last else []
    if any(kind not in ("replicated", "last_tile_dim_replicate") for kind in kinds):
        raise ValueError(f"{text} describes a value inside a shard_map, not a whole array.")
    parts, order = tuple(dims[:ndim]), order.ravel()
    if len(dims) != ndim + len(kinds):
        raise ValueError(f"{text} does not describe an array with {ndim} dimensions.")
    spec = _named_spec(mesh, _inverted(parts, order))
    if spec is not None:
        return NamedSharding(mesh, spec)
    own = tuple(f"_{i}" for i in range(ndim + 1))
    devices = np.array(mesh.flat_devices, object)[order].reshape(*parts, -1)
    return NamedSharding(Mesh(devices, own), PartitionSpec(*own[:ndim]))


def _inverted(parts: tuple[int, ...], order: np.ndarray) -> Tiling:
    """Return the coordinates of each device's tile, from the devices of each tile."""
    tiles = np.empty_like(order)
    tiles[order] = np.arange(order.size) // (order.size // math.prod(parts))
    return Tiling(parts, np.stack(np.unravel_index(tiles, parts), axis=-1))


def _named_spec(mesh: Mesh, tiling: Tiling) -> PartitionSpec | None:
    """Return the spec on the mesh's axes that gives a tiling, or None.

    A tile coordinate that is split over several axes is a number with one digit per axis. One step
    along an axis adds the weight of its digit, so the weights reveal the axes and their order.
    """
    entries: list[Any] = []
    origin = (0,) * len(mesh.axis_names)
    for dim in range(len(tiling.parts)):
        box = tiling.places[:, dim].reshape(mesh.axis_sizes)
        weights = {}
        for at, (axis, size) in enumerate(mesh.shape_tuple):
            step = (*origin[:at], 1, *origin[at + 1 :])
            if size > 1 and (weight := box[step] - box[origin]):
                weights[axis] = weight
        entries.append(tuple(sorted(weights, key=weights.__getitem__, reverse=True)))
    axes = [axis for entry in entries for axis in entry]
    if len(set(axes)) < len(axes):
        return None
    while entries and not entries[-1]:
        entries.pop()
    spec = PartitionSpec(*entries)
    same = NamedSharding(mesh, spec)._tiling(len(tiling.parts))
    agrees = same.parts == tiling.parts and np.array_equal(same.places, tiling.places)
    return spec if agrees else None
