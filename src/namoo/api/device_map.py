"""`pmap` over devices of XLA: a `shard_map` along one axis of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo.api.device import devices as all_devices
from namoo.api.shard_map import shard_map
from namoo.api.sharded import make_array_from_process_local_data
from namoo.core.array import PlacedArray
from namoo.core.avals import aval_of
from namoo.primitives.shape import expand_dims, squeeze
from namoo.sharding import Mesh, NamedSharding, PartitionSpec


def _is_none(x: Any) -> bool:
    return x is None


def over_devices(
    fun: Callable,
    in_axes: Any,
    out_axes: Any,
    name: Any,
    devices: Sequence[Any] | None,
    checked: Callable,
) -> Callable:
    """A function of stacked arguments that gives each device its slice.

    Args:
      checked: the same function by `vmap`: its types are the result's, and its errors ours.
    """
    axis = str(name)

    def run(*args, **kwargs):
        from namoo.api.inspect import eval_shape

        shapes = eval_shape(checked, *args, **kwargs)
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        dims = tree_util.broadcast_prefix(in_axes, args, is_leaf=_is_none)
        dims += [0] * (len(leaves) - len(dims))
        places = [
            None if d is None else d % aval_of(x).ndim for x, d in zip(leaves, dims, strict=True)
        ]
        size = next(
            aval_of(x).shape[d] for x, d in zip(leaves, places, strict=True) if d is not None
        )
        mesh = Mesh(np.array([*(devices or all_devices())][:size], object), (axis,))
        outs = tree_util.broadcast_prefix(out_axes, shapes, is_leaf=_is_none)
        types, out_tree = tree_util.tree_flatten(shapes)
        out_places = [
            None if d is None else d % len(t.shape) for t, d in zip(types, outs, strict=True)
        ]

        def part(*values):
            own = [
                x if d is None else squeeze(x, (d,)) for x, d in zip(values, places, strict=True)
            ]
            a, kw = tree.unflatten(own)
            results = tree_util.tree_leaves(fun(*a, **kw))
            return [
                x if d is None else expand_dims(x, (d,))
                for x, d in zip(results, out_places, strict=True)
            ]

        part.__name__ = getattr(fun, "__name__", "pmap")
        mapped = shard_map(
            part,
            mesh=mesh,
            in_specs=tuple(_spec(d, axis) for d in places),
            out_specs=[_spec(d, axis) for d in out_places],
            check_vma=False,
        )
        return out_tree.unflatten(mapped(*leaves))

    return run


def across_processes(
    run: Callable,
    in_axes: Any,
    out_axes: Any,
    name: Any,
    devices: Sequence[Any] | None,
    what: str,
) -> Callable:
    """A function of the slices of this process' devices, from one of those of all devices.

    Args:
      run: takes arrays over the devices of all processes, and gives such arrays.
      what: the name of the function, for messages.
    """
    everywhere = Mesh(np.array([*(devices or all_devices())], object), (str(name),))
    here = everywhere.update(devices=np.array(everywhere.local_devices, object))

    def together(x: Any, dim: int | None) -> Any:
        if dim is None or (isinstance(x, PlacedArray) and not x._sharding.is_fully_addressable):
            return x
        aval = aval_of(x)
        dim %= aval.ndim
        if aval.shape[dim] != here.size:
            raise ValueError(
                f"pmap of {what}: the mapped axis has length {aval.shape[dim]}, but it must be "
                f"that of this process' devices, of which there are {here.size}."
            )
        spec = _spec(dim, str(name))
        if isinstance(x, PlacedArray) and x._sharding == NamedSharding(here, spec):
            return _over(x, NamedSharding(everywhere, spec), dim, everywhere.size)
        shape = [everywhere.size if d == dim else n for d, n in enumerate(aval.shape)]
        return make_array_from_process_local_data(NamedSharding(everywhere, spec), x, shape)

    def apart(x: Any, dim: int | None) -> Any:
        if dim is None:
            return x
        dim %= aval_of(x).ndim
        return _over(x, NamedSharding(here, _spec(dim, str(name))), dim, here.size)

    def mapped(*args, **kwargs):
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        dims = tree_util.broadcast_prefix(in_axes, args, is_leaf=_is_none)
        dims += [0] * (len(leaves) - len(dims))
        args, kwargs = tree.unflatten(map(together, leaves, dims))
        outs, out_tree = tree_util.tree_flatten(run(*args, **kwargs))
        places = tree_util.broadcast_prefix(out_axes, out_tree.unflatten(outs), is_leaf=_is_none)
        return out_tree.unflatten(map(apart, outs, places))

    return mapped


def _over(x: PlacedArray, sharding: NamedSharding, dim: int, size: int) -> PlacedArray:
    """The same parts of this process, of an array over more devices or fewer."""
    from namoo.engines.xla import placed

    shape = [size if d == dim else n for d, n in enumerate(x.shape)]
    aval = aval_of(x).update(shape=tuple(shape))
    parts = [buffer for _, buffer in placed.pieces(x._buffer, x._sharding)]
    return PlacedArray(aval, sharding, placed.join(parts, aval, sharding))


def _spec(dim: int | None, axis: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, axis)
