"""Arrays over several devices: constraints on how they lie, and arrays made from their parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import _dtypes, errors, tree_util
from namoo.api.arguments import to_array, wraps
from namoo.api.placement import as_sharding, needs_placing
from namoo.control.constraint import sharding_constraint_p
from namoo.core.array import EagerArray, PlacedArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import EvalTrace, Tracer, context
from namoo.sharding import NamedSharding, PartitionSpec, Sharding
from namoo.sharding.context import concrete_mesh, get_abstract_mesh
from namoo.sharding.shardings import require_divisible
from namoo.sharding.specs import axes_of


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Say how the arrays of a tree shall lie on devices, in the midst of a function under `jit`.

    Args:
      x: a tree of arrays.
      shardings: a sharding, or a `PartitionSpec` for the mesh of `namoo.set_mesh`; or a tree of
        these that is a prefix of `x`; None where nothing is said.

    Returns:
      `x` with the same values. Within `jit` a dimension need not divide evenly: the compiler pads
      the parts.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> from namoo.sharding import NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(namoo.make_mesh((1,), ("data",)), P("data"))
    >>> namoo.jit(lambda x: with_sharding_constraint(x * 2, sharding))(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    places = tree_util.broadcast_prefix(shardings, x, is_leaf=_is_place)
    leaves, tree = tree_util.tree_flatten_with_path(x)
    out = []
    for (path, leaf), place in zip(leaves, places, strict=True):
        where = f"with_sharding_constraint{tree_util.keystr(path)}"
        sharding = _resolve(where, place)
        if sharding is None:
            out.append(to_array(leaf))
            continue
        sharding.check_compatible_aval(aval_of(leaf).shape)
        _refuse_manual(where, sharding)
        if isinstance(context.trace, EvalTrace):
            from namoo.api.device import device_put

            require_divisible(where, sharding, aval_of(leaf).shape)
            out.append(device_put(leaf, sharding))
        else:
            out.append(sharding_constraint_p.bind(leaf, sharding=sharding))
    return tree.unflatten(out)


def _refuse_manual(where: str, sharding: Sharding) -> None:
    """Refuse to divide a part of a `shard_map` over the axes that it is a part along."""
    if context.mesh is None or not isinstance(sharding, NamedSharding):
        return
    named = {name for entry in sharding.spec.partitions for name in axes_of(entry)}
    if manual := sorted(map(str, named.intersection(context.mesh.axis_names, context.axes))):
        raise ValueError(
            f"{where}: {sharding.spec} contains a manual axes {manual} of mesh "
            f"{sharding.mesh.axis_names}: the shard_map around it divides its function over them "
            "already. Name only axes that are not in its axis_names."
        )


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, (PartitionSpec, Sharding))


def _resolve(where: str, place: Any) -> Sharding | None:
    """A sharding from what the user gave."""
    if place is None or isinstance(place, Sharding):
        return place
    if isinstance(place, PartitionSpec):
        mesh = concrete_mesh()
        mesh = get_abstract_mesh() if mesh.empty else mesh
        if mesh.empty:
            raise RuntimeError(
                f"{where} requires a non-empty mesh in context if you pass a PartitionSpec, here "
                f"{place}: set one with namoo.set_mesh(mesh), or pass NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, place)
    raise ValueError(
        f"{where}: expected a sharding or a PartitionSpec, got {place!r} of type "
        f"{type(place).__name__}."
    )


def reshard(x: Any, out_shardings: Any) -> Any:
    """The arrays of a tree laid out over devices in another way.

    Args:
      x: a tree of arrays.
      out_shardings: as for `with_sharding_constraint`.
    """
    return with_sharding_constraint(x, out_shardings)


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """A function in which the compiler decides how arrays lie on devices; its results lie as told.

    All axes of a mesh are such that the compiler decides, so only the results are left to tell of.

    Args:
      f: the function; without it, a decorator.
      axes: the axes of the mesh that this is about; all by default.
      out_sharding: as for `with_sharding_constraint`; it may be given to each call instead.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> from namoo.sharding import PartitionSpec as P, auto_axes
    >>> with namoo.set_mesh(namoo.make_mesh((1,), ("data",))):
    ...     auto_axes(lambda x: x * 2, out_sharding=P("data"))(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        lay_out = _layout("auto_axes", axes, "out_sharding", out_sharding, options)
        return lay_out(f(*args, **options))

    return call


def explicit_axes(
    f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Any:
    """A function whose arguments are laid out over devices as told before it is called.

    Args:
      f: the function; without it, a decorator.
      axes: the axes of the mesh that this is about; all by default.
      in_sharding: as for `with_sharding_constraint`, of the tuple of arguments; it may be given to
        each call instead.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> from namoo.sharding import PartitionSpec as P, explicit_axes
    >>> with namoo.set_mesh(namoo.make_mesh((1,), ("data",))):
    ...     explicit_axes(lambda x: x + 1, in_sharding=P("data"))(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        lay_out = _layout("explicit_axes", axes, "in_sharding", in_sharding, options)
        return f(*lay_out(args), **options)

    return call


def _layout(maker: str, axes: Any, name: str, given: Any, options: dict) -> Callable[[Any], Any]:
    """What lays a tree out over the devices of the mesh, as was told before or is in a call."""
    places = options.pop(name, None) if given is None else given
    if places is None:
        raise TypeError(
            f"Missing required keyword argument: {name!r}. Give it to {maker}, or to each call."
        )
    mesh = get_abstract_mesh()
    if unknown := ({axes} if isinstance(axes, str) else set(axes or ())) - set(mesh.axis_names):
        raise ValueError(
            f"{maker}: the mesh has the axes {mesh.axis_names}, and not "
            f"{', '.join(sorted(map(repr, unknown)))}."
        )
    if mesh.empty:  # there is nothing to lie on
        return lambda tree: tree
    return lambda tree: with_sharding_constraint(tree, places)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Any], Any],
    dtype: Any = None,
) -> Any:
    """An array over several devices, of which a function gives each part.

    Args:
      shape: the shape of the whole array.
      sharding: how it lies on devices.
      data_callback: gets the slices of a part, and returns the part; it is called for the parts of
        this process' devices, once for each.
      dtype: the type of the elements; by default that of the parts.

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
            "the array." + errors.at_user_line()
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
    """An array over several devices from its parts, one for each device of this process.

    Args:
      shape: the shape of the whole array.
      sharding: how it lies on devices.
      arrays: the parts, on their devices.
      dtype: the type of the elements, where there are no parts to tell.

    Raises:
      TypeError: the parts are not a list or a tuple.
      ValueError: the parts do not fit the shape, the sharding, the type or one another.
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
            from namoo.engines.xla import placed as xla

            buffer = xla.join([by_device[d]._buffer for d in devices], aval, sharding)
            return PlacedArray(aval, sharding, buffer)
    parts = [to_numpy(to_array(x)) for x in arrays]
    return _from_parts(name, shape, sharding, devices, parts, dtype)


def _check_parts(
    name: str, arrays: Any, devices: Sequence[Any], shape: tuple[int, ...], dtype: Any
) -> None:
    """Refuse parts of an array that are not one for each device, alike, and of the right shape."""
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            f"jax.{name} `arrays` argument must be a list or a tuple of arrays, got "
            f"{type(arrays).__name__}."
        )
    if any(isinstance(x, Tracer) for x in arrays):
        raise ValueError(
            f"jax.{name} requires a list of concrete arrays as input, got traced values. Call it "
            "outside of jit and other transformations." + errors.at_user_line()
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
    """Arrays over the devices of all processes, from the parts that each process has.

    Args:
      sharding: how the arrays lie on devices: a sharding, a device, or a `PartitionSpec` for the
        mesh of `namoo.set_mesh`; or a tree of these that is a prefix of `local_data`.
      local_data: a tree of the parts of this process, or of whole arrays.
      global_shape: the shape of the whole array, None for dimensions to be found; or a tree of
        shapes that is a prefix of `local_data`. By default a dimension that is divided among
        processes is as many times larger.

    Raises:
      ValueError: shapes, shardings and data do not fit one another.
    """
    name = "make_array_from_process_local_data"
    leaves, tree = tree_util.tree_flatten(local_data)
    places = tree_util.broadcast_prefix(sharding, local_data, is_leaf=_is_place)
    shapes = tree_util.broadcast_prefix(global_shape, local_data, is_leaf=_is_shape)
    return tree.unflatten(
        _from_local(_resolve(name, place) if _is_place(place) else as_sharding(place), x, shape)
        for x, place, shape in zip(leaves, places, shapes, strict=True)
    )


def _is_shape(x: Any) -> bool:
    return x is None or (
        isinstance(x, (tuple, list)) and all(n is None or isinstance(n, int) for n in x)
    )


def _from_local(sharding: Any, local_data: Any, global_shape: Sequence[int | None] | None) -> Any:
    """One array from the part of this process."""
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
    # Where local_data is the whole along a dimension, its parts are cut from it as they are.
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
    aval = ShapedArray(shape, _dtypes.of_numpy(found) if found.names else found)
    if not needs_placing(sharding):
        return EagerArray(parts[0])
    from namoo.engines.xla import placed as xla

    return PlacedArray(aval, sharding, xla.put_pieces(parts, aval, sharding, devices))
