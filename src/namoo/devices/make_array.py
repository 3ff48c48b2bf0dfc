"""Arrays over several devices that are made from their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import errors, tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line
from namoo.core.array import EagerArray, PlacedArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import EvalTrace, Tracer, context
from namoo.devices.constraints import is_placement, resolve
from namoo.devices.placement import as_sharding, needs_placing
from namoo.devices.sharding.shardings import Sharding, require_divisible
from namoo.transforms.arguments import to_array


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Any], Any],
    dtype: Any = None,
) -> Any:
    """Make an array over several devices from a function that returns each part.

    Args:
        shape: the shape of the whole array.
        sharding: how it is distributed over devices.
        data_callback: takes the slices of a part, and returns the part; it is called once for each
            distinct part on the devices of this process.
        dtype: the type of the elements; by default that of the parts.

    Example:
        >>> import numpy as np
        >>> import namoo
        >>> from namoo.sharding import NamedSharding, PartitionSpec as P
        >>> whole = np.arange(4)
        >>> sharding = NamedSharding(namoo.make_mesh((1,), ("data",)), P("data"))
        >>> make_array_from_callback((4,), sharding, lambda index: whole[index])
        Array([0, 1, 2, 3], dtype=int32)
    """
    if not isinstance(context.trace, EvalTrace):
        raise errors.UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context: its parts are "
            "made when it is called. Call it outside of jit and other transformations, and pass "
            "the array." + at_user_line()
        )
    shape = tuple(shape)
    require_divisible("make_array_from_callback", sharding, shape)
    cuts = sharding.addressable_devices_indices_map(shape)
    made: dict[Any, np.ndarray] = {}
    parts = []
    for index in cuts.values():
        key = tuple((s.start, s.stop) for s in index)
        if key not in made:
            part = data_callback(index)
            made[key] = to_numpy(to_array(part if dtype is None else np.asarray(part, dtype)))
        parts.append(made[key])
    return _from_parts("make_array_from_callback", shape, sharding, list(cuts), parts, dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """Make an array over several devices from its parts, one for each device of this process.

    Args:
        shape: the shape of the whole array.
        sharding: how it is distributed over devices.
        arrays: the parts, on their devices.
        dtype: the type of the elements; needed if this process has no parts.

    Raises:
        TypeError: the parts are not a list or a tuple.
        ValueError: the parts do not match the shape, the sharding, the type or one another.
    """
    name = "make_array_from_single_device_arrays"
    shape = tuple(shape)
    require_divisible(name, sharding, shape)
    devices = list(sharding._addressable_device_assignment)
    _check_parts(name, arrays, devices, sharding.shard_shape(shape), dtype)
    placed = [x for x in arrays if isinstance(x, PlacedArray)]
    if len(placed) == len(arrays) and len(devices) == sharding.num_devices:
        by_device = {next(iter(x._sharding.device_set)): x for x in placed}
        if set(by_device) == set(devices):
            aval = aval_of(arrays[0]).update(shape=shape)
            from namoo.engines.xla import spmd as xla

            buffer = xla.join([by_device[d]._buffer for d in devices], aval, sharding)
            return PlacedArray(aval, sharding, buffer)
    parts = [to_numpy(to_array(x)) for x in arrays]
    return _from_parts(name, shape, sharding, devices, parts, dtype)


def _check_parts(
    name: str, arrays: Any, devices: Sequence[Any], shape: tuple[int, ...], dtype: Any
) -> None:
    """Refuse parts that are not one for each device, of one type, and of the right shape."""
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            f"jax.{name} `arrays` argument must be a list or a tuple of arrays, got "
            f"{type(arrays).__name__}."
        )
    if any(isinstance(x, Tracer) for x in arrays):
        raise ValueError(
            f"jax.{name} requires a list of concrete arrays as input, got traced values. Call it "
            "outside of jit and other transformations." + at_user_line()
        )
    if devices and not arrays and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype` "
            f"argument to `jax.{name}`; and there must be an array for each of the devices of "
            f"this process, {devices}."
        )
    if len(arrays) != len(devices):
        raise ValueError(
            f"{name}: the sharding has {len(devices)} devices of this process, but {len(arrays)} "
            "arrays were given."
        )
    types = {str(aval_of(x).dtype): aval_of(x).dtype for x in arrays}
    if len(types) > 1:
        raise ValueError(f"{name}: the arrays have different types: {', '.join(types)}.")
    if dtype is not None and types and np.dtype(dtype) not in types.values():
        raise ValueError(
            f"If `dtype` is provided to `jax.{name}`, it must match the dtype of the addressable "
            f"shards. Got dtype={np.dtype(dtype)}, but the arrays have {', '.join(types)}."
        )
    for x, device in zip(arrays, devices, strict=True):
        if isinstance(x, PlacedArray) and x._sharding.num_devices > 1:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one "
                f"shard each. An argument array had {x._sharding.num_devices} shard(s)."
            )
        _check_part(name, device, aval_of(x).shape, shape)


def _check_part(name: str, device: Any, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise ValueError(
            f"{name}: Expected shard shape {wanted} doesn't match the single device array shape "
            f"{found} of the part for {device}."
        )


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Make arrays over the devices of all processes from the part that each process has.

    Args:
        sharding: how the arrays are distributed: a sharding, a device, or a `PartitionSpec` for the
            mesh of `namoo.set_mesh`; or a tree of these that is a prefix of `local_data`.
        local_data: a tree of the parts of this process, or of whole arrays.
        global_shape: the shape of the whole array, with None for dimensions to be inferred; or a
            tree of shapes that is a prefix of `local_data`. By default a dimension that is split
            over n processes is n times larger.

    Raises:
        ValueError: shapes, shardings and data do not fit one another.
    """
    name = "make_array_from_process_local_data"
    leaves, tree = tree_util.tree_flatten(local_data)
    places = tree_util.broadcast_prefix(sharding, local_data, is_leaf=is_placement)
    shapes = tree_util.broadcast_prefix(global_shape, local_data, is_leaf=_is_shape)
    return tree.unflatten(
        _from_local(resolve(name, place) if is_placement(place) else as_sharding(place), x, shape)
        for x, place, shape in zip(leaves, places, shapes, strict=True)
    )


def _is_shape(x: Any) -> bool:
    return x is None or (
        isinstance(x, (tuple, list)) and all(n is None or isinstance(n, int) for n in x)
    )


def _from_local(sharding: Any, local_data: Any, global_shape: Sequence[int | None] | None) -> Any:
    """Make one array from the part of this process."""
    local = to_numpy(to_array(local_data))
    whole = tuple(global_shape) if global_shape is not None else (None,) * local.ndim
    if len(whole) != local.ndim:
        raise ValueError(
            f"make_array_from_process_local_data: global_shape {whole} has {len(whole)} "
            f"dimensions, local_data {local.ndim}."
        )
    parts, places = sharding._tiling(local.ndim)
    own = [i for i, d in enumerate(sharding._device_assignment) if d.is_addressable]
    first, last = places[own].min(0), places[own].max(0) + 1
    shape = []
    for dim, (n, count) in enumerate(zip(local.shape, parts, strict=True)):
        share = int(last[dim] - first[dim])
        given = whole[dim]
        found = n * count // share if given is None else given
        if found != n and found * share != n * count:
            raise ValueError(
                f"make_array_from_process_local_data: dimension {dim} of local_data has size {n}, "
                f"but this process has {share} of {count} parts of a dimension of size {found}."
            )
        shape.append(found)
    # Along a dimension where local_data is the whole array, indices need no offset.
    origin = [
        0 if local.shape[d] == n else int(first[d]) * (n // parts[d]) for d, n in enumerate(shape)
    ]

    def part(index: Any) -> np.ndarray:
        cut = (s.indices(n) for s, n in zip(index, shape, strict=True))
        return local[tuple(slice(a - o, b - o) for (a, b, _), o in zip(cut, origin, strict=True))]

    return make_array_from_callback(tuple(shape), sharding, part, local.dtype)


def _from_parts(
    what: str,
    shape: tuple[int, ...],
    sharding: Sharding,
    devices: Sequence[Any],
    parts: Sequence[np.ndarray],
    dtype: Any,
) -> Any:
    wanted = sharding.shard_shape(shape)
    for part, device in zip(parts, devices, strict=True):
        _check_part(what, device, part.shape, wanted)
    found = parts[0].dtype if parts else np.dtype(dtype if dtype is not None else np.float32)
    aval = ShapedArray(shape, dtypes.of_numpy(found) if found.names else found)
    if not needs_placing(sharding):
        return EagerArray(parts[0])
    from namoo.engines.xla import spmd as xla

    return PlacedArray(aval, sharding, xla.put_pieces(parts, aval, sharding, devices))
