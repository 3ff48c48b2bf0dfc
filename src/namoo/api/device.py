"""Devices, and moving arrays to and from them.  On a CPU arrays are where they are needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from namoo import _dtypes, tree_util
from namoo._config import config
from namoo.api.arguments import is_array, to_array
from namoo.control.constraint import device_put_p
from namoo.core.array import Array, EagerArray, PlacedArray, delete, to_numpy
from namoo.core.avals import aval_of
from namoo.core.trace import Tracer
from namoo.engines import devices as registry
from namoo.engines.base import Device, require_device
from namoo.primitives.shape import copy_p
from namoo.transforms.jvp import JVPTracer


def devices(backend: str | None = None) -> list[Device]:
    """All devices, those of other processes included.

    Args:
      backend: a platform, as "cpu" or "gpu"; by default the best there is.

    Raises:
      RuntimeError: there are no devices of that platform.

    >>> devices()
    [CpuDevice(id=0)]
    """
    return registry.of_platform(backend)


def cpu_devices(count: int) -> list[Device]:
    """Let the CPU show itself as several devices, to try what many of them would do.

    Args:
      count: how many; it may be changed at any time.

    Returns:
      the devices.

    >>> cpu_devices(4)
    [CpuDevice(id=0), CpuDevice(id=1), CpuDevice(id=2), CpuDevice(id=3)]
    >>> cpu_devices(1)
    [CpuDevice(id=0)]
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"cpu_devices: count must be a positive integer, got {count!r}.")
    config.update("num_cpu_devices", count)
    return registry.cpus()


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process."""
    own = _own_index() if process_index is None else process_index
    everyone = devices(backend)
    if process_index is not None and own not in {d.process_index for d in everyone}:
        raise ValueError(
            f"Unknown process_index {process_index}: there are "
            f"{sorted({d.process_index for d in everyone})}."
        )
    return [d for d in everyone if d.process_index == own]


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among all that work together."""
    return _own_index()


def process_count(backend: str | None = None) -> int:
    """How many processes work together."""
    return registry.processes()[1]


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes."""
    return list(range(process_count()))


def default_backend() -> str:
    """The platform that programs run on."""
    return devices()[0].platform


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
):
    """A tree of arrays on a device.

    Args:
      x: a tree of arrays and numbers.
      device: a device or a sharding, or a `PartitionSpec` for the mesh that is set; or a tree of
        them, for parts of `x`.
      src: the sharding, or a tree of them, that a cotangent goes back to; by default that of `x`.
      donate: the array may be given up: it is deleted where it moves to other devices, and a NumPy
        array must not be written to any more. May be a tree, for parts of `x`.
      may_alias: True lets the result share the memory of a NumPy array, which must not be written
        to any more; otherwise its numbers are copied. False for a copy also where an array is on
        that device already. May be a tree.

    Raises:
      ValueError: something else than devices, or a tree of them that does not fit `x`.

    >>> import numpy as np
    >>> device_put(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """

    def resolve(path, place):
        if hasattr(place, "partitions"):
            return _in_the_mesh(place)
        require_device(f"device_put, device{tree_util.keystr(path)}", place)
        return place

    device = tree_util.tree_map_with_path(resolve, device)
    options = zip(
        _for_each(x, "device", device, "a device, a sharding"),
        _for_each(x, "src", src, "a device, a sharding"),
        _for_each(x, "donate", donate, "True, False"),
        _for_each(x, "may_alias", may_alias, "True, False, None"),
        strict=False,
    )

    def put(path, leaf):
        place, origin, given_up, alias = next(options)
        if not is_array(leaf):
            raise TypeError(
                f"device_put: {tree_util.keystr(path) or 'the argument'} is {leaf!r} of type "
                f"{type(leaf).__name__}, which is not an array."
            )
        if hasattr(place, "device_set"):
            from namoo.sharding.shardings import require_fitting

            require_fitting("device_put args", place, aval_of(leaf))
        if isinstance(leaf, Tracer):
            if place is None:
                return leaf
            return _put_traced(leaf, place, origin)
        if isinstance(leaf, np.ndarray):
            leaf = EagerArray(to_numpy(leaf)) if given_up or alias else to_array(leaf)
        if place is None or (type(leaf) is not PlacedArray and _is_here(place)):
            return to_array(leaf)
        from namoo.api import placement

        moved = placement.put(leaf, place)
        if moved is leaf:
            return copy_p.bind(leaf) if alias is False and not given_up else leaf
        if given_up and isinstance(leaf, EagerArray):
            delete(leaf)
        return moved

    return tree_util.tree_map_with_path(put, x)


def _for_each(x: Any, name: str, given: Any, what: str) -> Iterable[Any]:
    """An option of `device_put` for each leaf of a tree."""
    if given is None or isinstance(given, bool):
        return itertools.repeat(given)
    try:
        return tree_util.broadcast_prefix(given, x, is_leaf=lambda entry: entry is None)
    except ValueError as error:
        raise ValueError(
            f"device_put: {name} must be {what}, or a tree of them that is a prefix of the "
            f"structure of the first argument.\n{error}"
        ) from None


def _put_traced(x: Tracer, place: Any, src: Any) -> Any:
    """A traced value on a device; its cotangent goes back where the value was."""
    from namoo.api.placement import as_sharding

    inner: Any = x
    while isinstance(inner, JVPTracer):
        inner = inner.primal
    if src is None and type(inner) is PlacedArray:
        src = inner._sharding
    return device_put_p.bind(
        x, sharding=as_sharding(place), src=None if src is None else as_sharding(src)
    )


def _in_the_mesh(spec: Any) -> Any:
    """A sharding from a spec, for the mesh that is set."""
    from namoo.sharding import NamedSharding
    from namoo.sharding.context import concrete_mesh

    mesh = concrete_mesh()
    if mesh.empty:
        raise ValueError(
            f"device_put: the PartitionSpec {spec} needs a mesh: set one with "
            "namoo.set_mesh(mesh), or pass NamedSharding(mesh, spec)."
        )
    return NamedSharding(mesh, spec)


def _is_here(place: Any) -> bool:
    """Whether a place is where all arrays are anyway: there is but one device."""
    places = {place} if isinstance(place, Device) else place.device_set
    return len(places) == len(devices()) == 1 and all(d.platform == "cpu" for d in places)


def _own_index() -> int:
    """The number of this process."""
    return registry.processes()[0]


def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """A tree of arrays copied to several devices, stacked along a new leading axis."""
    return device_put_sharded([x] * len(devices), devices)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """One of several equal trees of arrays on each device, stacked along a new leading axis.

    >>> device_put_sharded([np.arange(2)], devices())
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
        from namoo.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(np.array(devices, object), ("devices",))
        return device_put(whole, NamedSharding(mesh, PartitionSpec("devices")))

    return tree_util.tree_map(put, *shards)


def device_get(x: Any) -> Any:
    """A tree of NumPy arrays; random keys, which have no NumPy form, stay as they are.

    >>> import namoo.numpy as jnp
    >>> device_get(jnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """

    def get(leaf):
        is_numbers = isinstance(leaf, Array) and not _dtypes.is_extended(leaf.dtype)
        return np.asarray(leaf) if is_numbers else leaf

    return tree_util.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until the arrays of a tree are computed; those of the host always are."""
    for leaf in tree_util.tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a tree to the host: on a CPU they are there."""
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that are in memory now."""
    import gc

    wanted = devices(platform)[0].platform if platform else None
    # By the type itself: `isinstance` asks objects for their class, which strangers answer oddly.
    arrays = [x for x in gc.get_objects() if issubclass(type(x), EagerArray)]
    every = [x for x in arrays if not x.is_deleted()]
    return [x for x in every if wanted in (None, next(iter(x.devices())).platform)]


def effects_barrier() -> None:
    """Wait for side effects: on a CPU they have happened."""
