"""Shardings in the compiler's words: Shardy's texts, and the texts of HLO shardings both ways."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.engines.base import Device
from namoo.sharding.mesh import AbstractMesh, Mesh
from namoo.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding, Tiling
from namoo.sharding.specs import UNCONSTRAINED, PartitionSpec, axes_of


def _quoted(name: Any) -> str:
    text = str(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def sdy_mesh(mesh: Mesh | AbstractMesh, devices: Sequence[Device] | None = None) -> str:
    """A mesh in Shardy's words.

    Args:
      mesh: the mesh.
      devices: the devices of the program in its order, of which the text tells the positions;
        None where the program numbers devices by their `id`.

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


def sdy_sharding(sharding: Sharding, ndim: int, mesh_name: str = "mesh") -> str:
    """How an array is split, in Shardy's words.

    >>> mesh = AbstractMesh((4, 2), ("x", "y"))
    >>> sdy_sharding(NamedSharding(mesh, PartitionSpec("x", PartitionSpec.UNCONSTRAINED)), 3)
    '<@mesh, [{"x"}, {?}, {}]>'
    """
    return f"<@{mesh_name}, {sdy_dims(sharding, ndim)}>"


def sdy_dims(sharding: Sharding, ndim: int) -> str:
    """What a sharding says of the dimensions of an array, in Shardy's words."""
    sharding.check_compatible_aval((1,) * ndim)
    entries: list[Any] = [None] * ndim
    unreduced = ""
    if isinstance(sharding, NamedSharding):
        entries[: len(sharding.spec)] = sharding.spec.partitions
        # In the mesh's order, so that all processes write the same.
        names = [name for name in sharding.mesh.axis_names if name in sharding.spec.unreduced]
        unreduced = f", unreduced={{{', '.join(map(_quoted, names))}}}" if names else ""
    dims = [
        "{?}" if entry is UNCONSTRAINED else f"{{{', '.join(map(_quoted, axes_of(entry)))}}}"
        for entry in entries
    ]
    return f"[{', '.join(dims)}]{unreduced}"


def hlo_text(sharding: Sharding, ndim: int) -> str:
    """A sharding of arrays with `ndim` dimensions as the text of an HLO sharding.

    >>> mesh = AbstractMesh((4, 2), ("x", "y"))
    >>> hlo_text(NamedSharding(mesh, PartitionSpec(None, "y")), 2)
    '{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}'
    >>> hlo_text(NamedSharding(mesh, PartitionSpec()), 2)
    '{replicated}'
    """
    parts = sharding._tiling(ndim).parts
    if math.prod(parts) == 1 or not isinstance(sharding, NamedSharding):
        return "{replicated}"
    mesh = sharding.mesh
    split = [axis for axis in sharding.spec.axes()]
    rest = [axis for axis in mesh.axis_names if axis not in split]
    replicas = mesh.size // math.prod(parts)
    order = [mesh.axis_names.index(axis) for axis in (*split, *rest)]
    dims = ",".join(map(str, (*parts, replicas) if replicas > 1 else parts))
    iota = f"[{mesh.size}]"
    if order != sorted(order):
        iota = f"[{','.join(map(str, mesh.axis_sizes))}]T({','.join(map(str, order))})"
    last = " last_tile_dim_replicate" if replicas > 1 else ""
    return f"{{devices=[{dims}]<={iota}{last}}}"


def hlo_text_for(sharding: Sharding, ndim: int, devices: Sequence[Device]) -> str:
    """The same, where the devices are numbered by their places in `devices`.

    >>> sharding = NamedSharding(Mesh([Device(1), Device(0)], "x"), PartitionSpec("x"))
    >>> hlo_text_for(sharding, 1, [Device(0), Device(1)])
    '{devices=[2]1,0}'
    """
    parts, places = sharding._tiling(ndim)
    count = math.prod(parts)
    if count == 1:
        return "{replicated}"
    position = {device: i for i, device in enumerate(devices)}
    tiles: list[int] = np.ravel_multi_index(tuple(places.T), parts).tolist()  # type: ignore
    order = sorted(range(len(tiles)), key=lambda i: tiles[i])
    listed = ",".join(str(position[sharding._device_assignment[i]]) for i in order)
    replicas = len(tiles) // count
    dims = ",".join(map(str, (*parts, replicas) if replicas > 1 else parts))
    last = " last_tile_dim_replicate" if replicas > 1 else ""
    return f"{{devices=[{dims}]{listed}{last}}}"


_TILED = re.compile(
    r"""\{devices=\[(?P<dims>[\d,]*)\]
        (?:<=\[(?P<source>[\d,]*)\](?:T\((?P<order>[\d,]*)\))?|(?P<listed>[\d,]+))
        \s*(?P<last>last_tile_dim_replicate|last_tile_dims=\{[^}]*\})?""",
    re.VERBOSE,
)


def _numbers(text: str | None) -> list[int]:
    return [int(word) for word in (text or "").split(",") if word]


def from_hlo_text(text: str, mesh: Mesh, ndim: int) -> Sharding:
    """The sharding that the text of an HLO sharding tells, for the devices of a mesh.

    It is on the mesh's own axes where they can say it; else on a mesh made for it.

    Args:
      text: as a compiled program gives it; devices are numbered by their order in the mesh.
      mesh: the mesh of the program.
      ndim: how many dimensions the array has.

    Raises:
      ValueError: the text tells of something else than where an array's parts lie.

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
        raise ValueError(f"{text} does not tell which part of an array lies on which device.")
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
        raise ValueError(f"{text} is of a value inside a shard_map, which is no whole array.")
    parts, order = tuple(dims[:ndim]), order.ravel()
    if len(dims) != ndim + len(kinds):
        raise ValueError(f"{text} is not of an array with {ndim} dimensions.")
    spec = _named_spec(mesh, _inverted(parts, order))
    if spec is not None:
        return NamedSharding(mesh, spec)
    own = tuple(f"_{i}" for i in range(ndim + 1))
    devices = np.array(mesh.flat_devices, object)[order].reshape(*parts, -1)
    return NamedSharding(Mesh(devices, own), PartitionSpec(*own[:ndim]))


def _inverted(parts: tuple[int, ...], order: np.ndarray) -> Tiling:
    """The coordinates of each device's tile, from the devices of each tile."""
    tiles = np.empty_like(order)
    tiles[order] = np.arange(order.size) // (order.size // math.prod(parts))
    return Tiling(parts, np.stack(np.unravel_index(tiles, parts), axis=-1))


def _named_spec(mesh: Mesh, tiling: Tiling) -> PartitionSpec | None:
    """The spec on the mesh's axes that cuts arrays in this way, if there is one.

    A coordinate that is split over axes is a number whose digits are theirs: one step along an
    axis adds the weight of its digit, so the weights tell the axes and their order.
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
