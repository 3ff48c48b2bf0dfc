"""The arguments `device` and `out_sharding` of functions that make arrays."""

from __future__ import annotations

from typing import Any

from namoo.core.array import Array, PlacedArray
from namoo.engines.base import asks_for_nothing, require_device
from namoo.primitives.resharding import resharded


def placed(
    what: str, x: Array, device: Any = None, out_sharding: Any = None, like: Any = None
) -> Array:
    """Place a new array as requested; otherwise where the array `like` is.

    Args:
        what: the name of the function that makes it.
        out_sharding: may be a `PartitionSpec` for the mesh that is set.
    """
    place = device if out_sharding is None else out_sharding
    if asks_for_nothing(place):
        return x
    if out_sharding is None:
        require_device(what, device)
    if place is None and type(like) is PlacedArray and like._committed and like.shape == x.shape:
        place = like._sharding
    if place is None:
        return x
    # Imported here because most arrays are made on the host.
    from namoo.devices.device_put import device_put
    from namoo.devices.sharding.current_mesh import mesh_here

    if out_sharding is not None and getattr(out_sharding, "mesh", mesh_here()).explicit_axes:
        return resharded(what, x, out_sharding)
    return device_put(x, place)
