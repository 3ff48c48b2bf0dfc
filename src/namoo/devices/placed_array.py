"""Members of arrays with an explicit placement: their values, shards and devices.

The core does not know devices: `api.wiring` makes these functions members of `PlacedArray`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.array import EagerArray, PlacedArray
from namoo.core.avals import aval_of
from namoo.devices.placement import put
from namoo.devices.sharding.shardings import Sharding, SingleDeviceSharding
from namoo.engines.base import Device


def fetch(x: PlacedArray) -> np.ndarray:
    """Copy the values of an array to the host."""
    from namoo.engines.xla import spmd

    aval, where = aval_of(x), x._sharding
    if not where.is_fully_addressable and not where.is_fully_replicated:
        raise RuntimeError(
            f"{aval.str_short()} is on devices of several processes, so this process cannot read "
            "all of it. Use x.addressable_shards for its part, or first gather it: "
            "namoo.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)."
        )
    pieces = spmd.pieces(x._buffer, where)
    if where.is_fully_replicated and aval.size:
        return spmd.to_numpy(pieces[0][1], aval.shape, aval)
    out = np.empty(aval.shape, getattr(aval.dtype, "numpy", aval.dtype))
    if not aval.size:
        return out
    indices = where.devices_indices_map(aval.shape)
    shape = where.shard_shape(aval.shape)
    done = set()
    for owner, buffer in pieces:
        key = tuple((s.start, s.stop) for s in indices[owner])
        if key not in done:
            done.add(key)
            out[indices[owner]] = spmd.to_numpy(buffer, shape, aval)
    return out


class Shard:
    """The part of an array on one device.

    Attributes:
        device: The device.
        replica_id: The index of this copy, where several devices have the same part.
    """

    def __init__(self, array: EagerArray, device: Device, number: int, replica_id: int):
        self._array = array
        self._number = number
        self.device = device
        self.replica_id = replica_id

    @property
    def index(self) -> tuple[slice, ...]:
        """The slices of the whole array that this part covers."""
        return self._array.sharding.devices_indices_map(self._array.shape)[self.device]

    @property
    def data(self) -> Any:
        """The part as an array on its device; None for a device of another process."""
        return None if self._number < 0 else self._array.addressable_data(self._number)

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def addressable_data(x: PlacedArray, number: int) -> Any:
    """Return the part of an array on one of this process' devices."""
    from namoo.engines.xla import spmd

    aval, where = aval_of(x), x._sharding
    owner, buffer = spmd.pieces(x._buffer, where)[number]
    own = aval.update(shape=where.shard_shape(aval.shape))
    part = PlacedArray(own, SingleDeviceSharding(owner), buffer)
    if owner.platform == "cpu":
        # It shares the memory of the whole array, which may be donated while the part is in use.
        part._host = part._value.copy()
    return part


def _shards(x: PlacedArray, local: bool) -> list[Shard]:
    """Return the parts of an array, on the devices of this process or on all."""
    where = x._sharding
    indices = where.devices_indices_map(x.shape)
    copies: dict[Any, int] = {}
    out, number = [], 0
    for owner in where._device_assignment:
        key = tuple((s.start, s.stop) for s in indices[owner])
        replica = copies.get(key, 0)
        copies[key] = replica + 1
        if owner.is_addressable or not local:
            out.append(Shard(x, owner, number if owner.is_addressable else -1, replica))
        number += owner.is_addressable
    return out


def addressable_shards(x: PlacedArray) -> list[Shard]:
    """The parts of the array on the devices of this process."""
    return _shards(x, True)


def global_shards(x: PlacedArray) -> list[Shard]:
    """The parts of the array on all devices."""
    return _shards(x, False)


def sharding(x: PlacedArray) -> Sharding:
    """How the array is distributed over devices."""
    return x._sharding


def device(x: PlacedArray) -> Device | Sharding:
    """The device of an array that is on one, else its sharding."""
    where = x._sharding
    return where._device_assignment[0] if where.num_devices == 1 else where


def devices(x: PlacedArray) -> set[Device]:
    """Return the devices of the array."""
    return x._sharding.device_set


def committed(x: PlacedArray) -> bool:
    """Whether the array was put on its devices explicitly."""
    return x._committed


def is_fully_addressable(x: PlacedArray) -> bool:
    """Whether all devices of the array belong to this process."""
    return x._sharding.is_fully_addressable


def is_fully_replicated(x: PlacedArray) -> bool:
    """Whether each device has the whole array."""
    return x._sharding.is_fully_replicated


def to_device(x: PlacedArray, device: Any, *, stream: Any = None) -> Any:
    """Put the array on a device."""
    return put(x, device)


def block_until_ready(x: PlacedArray) -> PlacedArray:
    """Wait until the array is computed, and return it."""
    if x._buffer is not None:
        x._buffer.block_until_ready()
    return x


def on_device_size_in_bytes(x: PlacedArray) -> int:
    """Return the bytes that the array takes on all devices."""
    part = aval_of(x).update(shape=x._sharding.shard_shape(x.shape))
    return part.size * part.dtype.itemsize * x._sharding.num_devices


def is_ready(x: PlacedArray) -> bool:
    """Whether the array is computed."""
    return x._buffer.is_ready()


def is_deleted(x: PlacedArray) -> bool:
    """Whether the array was donated or deleted."""
    return x._buffer is None
