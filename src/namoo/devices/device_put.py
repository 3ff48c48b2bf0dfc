"""Moving arrays to devices and back to the host."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.deleted import Deleted
from namoo._base.lazy import later
from namoo.core.array import Array, EagerArray, PlacedArray, delete, to_numpy
from namoo.core.avals import aval_of
from namoo.core.trace import Tracer
from namoo.devices.primitives import device_put_p
from namoo.engines import registry
from namoo.engines.base import Device, require_device
from namoo.primitives.shape import copy_p
from namoo.transforms.arguments import is_array, to_array
from namoo.transforms.jvp import JVPTracer

# Loaded late: on a single CPU nothing is moved.
placement = later("namoo.devices.placement")
shardings = later("namoo.devices.sharding.shardings")


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
):
    """Put a tree of arrays on a device, or distribute it over several.

    Args:
        x: A tree of arrays and numbers.
        device: A device, a sharding or a `Format`, or a `PartitionSpec` for the current mesh; or a
            tree of them that is a prefix of `x`.
        src: The sharding, or a tree of shardings, that cotangents are moved back to; by default
            that of `x`.
        donate: Whether the input may be reused: an array that moves to other devices is deleted,
            and a NumPy array must not be written to any more. May be a tree.
        may_alias: True lets the result share the memory of a NumPy array, which must not be
            written to any more; otherwise the values are copied. False also copies an array that
            is on the device already. May be a tree.

    Raises:
        ValueError: `device` has leaves that are not devices, or is not a prefix of `x`.

    Example:
        >>> import numpy as np
        >>> device_put(np.arange(3))
        Array([0, 1, 2], dtype=int32)
    """
    device = tree_util.tree_map_with_path(_resolve, device)
    options = zip(
        _for_each(x, "device", device, "a device, a sharding"),
        _for_each(x, "src", src, "a device, a sharding"),
        _for_each(x, "donate", donate, "True, False"),
        _for_each(x, "may_alias", may_alias, "True, False, None"),
        strict=False,
    )
    return tree_util.tree_map_with_path(lambda path, leaf: _put(path, leaf, *next(options)), x)


def _resolve(path: Any, place: Any) -> Any:
    """Return a device or a sharding; a `PartitionSpec` refers to the current mesh.

    All arrays are in row-major order, so that only the sharding of a `Format` matters.
    """
    if hasattr(place, "layout"):
        place = place.sharding
    if not hasattr(place, "partitions"):
        require_device(f"device_put, device{tree_util.keystr(path)}", place)
        return place
    from namoo.devices.sharding.current_mesh import concrete_mesh

    mesh = concrete_mesh()
    if mesh.empty:
        raise ValueError(
            "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put "
            f"(namoo.set_mesh), or pass NamedSharding(mesh, spec); got {place}."
        )
    return shardings.NamedSharding(mesh, place)


def _for_each(x: Any, name: str, given: Any, what: str) -> Iterable[Any]:
    """Broadcast an option of `device_put` to the leaves of `x`."""
    if given is None or isinstance(given, bool):
        return itertools.repeat(given)
    return tree_util.broadcast_prefix(
        given,
        x,
        is_leaf=lambda entry: entry is None,
        title=f"device_put {name} specification must be a tree prefix of the corresponding "
        f"value; it is {what}, or a tree of them",
        name=f"device_put {name}",
    )


def _put(path: Any, leaf: Any, place: Any, src: Any, donate: bool, may_alias: bool | None) -> Any:
    """Put one leaf on a device."""
    if donate and may_alias:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    if not is_array(leaf):
        raise TypeError(
            f"device_put: {tree_util.keystr(path) or 'the argument'} is {leaf!r} of type "
            f"{type(leaf).__name__}, which is not an array."
        )
    if hasattr(place, "device_set"):
        shardings.require_fitting("device_put args", place, aval_of(leaf))
    if isinstance(leaf, Tracer):
        return leaf if place is None else _put_traced(leaf, place, src)
    if isinstance(leaf, np.ndarray):
        leaf = EagerArray(to_numpy(leaf)) if donate or may_alias else to_array(leaf)
    if type(leaf) is EagerArray and type(leaf._value) is Deleted:
        leaf._value._refuse()
    if place is None or (type(leaf) is not PlacedArray and _is_only_device(place)):
        moved = to_array(leaf)
    else:
        moved = placement.put(leaf, place)
    if moved is leaf:
        return copy_p.bind(leaf) if may_alias is False and not donate else leaf
    if donate and isinstance(leaf, EagerArray):
        delete(leaf)
    return moved


def _put_traced(x: Tracer, place: Any, src: Any) -> Any:
    """Put a traced value on a device; its cotangent is moved back to where the value was."""
    inner: Any = x
    while isinstance(inner, JVPTracer):
        inner = inner.primal
    if src is None and type(inner) is PlacedArray:
        src = inner._sharding
    return device_put_p.bind(
        x,
        sharding=placement.as_sharding(place),
        src=None if src is None else placement.as_sharding(src),
    )


def _is_only_device(place: Any) -> bool:
    """Whether the target is the host's CPU, and there is no other device."""
    places = {place} if isinstance(place, Device) else place.device_set
    every = registry.of_platform()
    return len(places) == len(every) == 1 and all(d.platform == "cpu" for d in places)


def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Copy a tree of arrays to several devices, stacked along a new leading axis."""
    return device_put_sharded([x] * len(devices), devices)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """Put one of several equal trees of arrays on each device, stacked along a new leading axis.

    Example:
        >>> import namoo
        >>> device_put_sharded([np.arange(2)], namoo.devices())
        Array([[0, 1]], dtype=int32)
    """
    if len(shards) != len(devices) or not devices:
        raise ValueError(
            f"device_put_sharded: {len(shards)} shards for {len(devices)} devices; give one each."
        )

    def put(*leaves: Any) -> Any:
        whole = EagerArray(np.stack([to_numpy(to_array(x)) for x in leaves]))
        if len(devices) == 1:
            return device_put(whole, devices[0])
        from namoo.devices.sharding.mesh import Mesh
        from namoo.devices.sharding.partition_spec import PartitionSpec

        mesh = Mesh(np.array(devices, object), ("devices",))
        return device_put(whole, shardings.NamedSharding(mesh, PartitionSpec("devices")))

    return tree_util.tree_map(put, *shards)


def device_get(x: Any) -> Any:
    """Copy a tree of arrays to the host, as NumPy arrays.

    Random keys, which have no NumPy form, stay unchanged, and so do traced values.

    Example:
        >>> import namoo.numpy as jnp
        >>> device_get(jnp.arange(3))
        array([0, 1, 2], dtype=int32)
    """

    def get(leaf):
        if not isinstance(leaf, Array) or isinstance(leaf, Tracer):
            return leaf
        return leaf if dtypes.is_extended(leaf.dtype) else np.asarray(leaf)

    return tree_util.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until the arrays of a tree are computed; host arrays always are."""
    for leaf in tree_util.tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a tree to the host; on a CPU there is nothing to copy."""
    for leaf in tree_util.tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays that are in memory now."""
    wanted = registry.of_platform(platform)[0].platform if platform else None
    # By the type itself: `isinstance` asks objects for their class, and foreign ones may misbehave.
    arrays = [x for x in gc.get_objects() if issubclass(type(x), EagerArray)]
    every = [x for x in arrays if not x.is_deleted()]
    return [x for x in every if wanted in (None, next(iter(x.devices())).platform)]


def effects_barrier() -> None:
    """Wait for side effects; on a CPU they have already happened."""
