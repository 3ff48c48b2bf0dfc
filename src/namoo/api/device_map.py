"""`pmap` over devices of XLA: a `shard_map` along one axis of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo.api.device import devices as all_devices
from namoo.api.shard_map import shard_map
from namoo.core.avals import aval_of
from namoo.primitives.shape import expand_dims, squeeze
from namoo.sharding import Mesh, PartitionSpec


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


def _place(dim: int | None, ndim: int) -> int | None:
    """An axis counted from the front."""
    return None if dim is None else dim % ndim


def _spec(dim: int | None, axis: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, axis)
