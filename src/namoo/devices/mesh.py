"""`make_mesh`: a mesh of the available devices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.devices.available import devices as all_devices
from namoo.devices.sharding.mesh import AxisType, Mesh
from namoo.engines.base import Device


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: str | Sequence[Any],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Make a mesh of as many devices as it needs, taken in order.

    Args:
        axis_shapes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: an `AxisType` for each axis; Explicit by default.
        devices: the devices to take from; all of them by default.

    Raises:
        ValueError: there are fewer devices than the mesh needs.
        TypeError: the sizes are not integers.

    Example:
        >>> make_mesh((1,), ("data",))
        Mesh(axis_sizes=(1,), axis_names=('data',), axis_types=(Explicit,))
    """
    try:
        sizes = tuple(map(operator.index, axis_shapes))
    except TypeError:
        raise TypeError(
            f"make_mesh: axis_shapes is a sequence of integers, as in make_mesh((4, 2), ('x', 'y'))"
            f"; got {axis_shapes!r}."
        ) from None
    if any(size < 1 for size in sizes):
        raise ValueError(f"make_mesh: the size of an axis is at least 1, got {sizes}.")
    found = list(all_devices() if devices is None else devices)
    count = math.prod(sizes)
    if count > len(found):
        more = ""
        if devices is None and found[0].platform == "cpu":
            more = f" For simulated ones write namoo.cpu_devices({count})."
        raise ValueError(
            f"make_mesh: a mesh of shape {sizes} needs {count} devices, and there are "
            f"{len(found)}.{more}"
        )
    box = np.array(found[:count], dtype=object).reshape(sizes)
    types = (AxisType.Explicit,) * len(sizes) if axis_types is None else axis_types
    return Mesh(box, axis_names, types)
