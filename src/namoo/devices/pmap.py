"""`pmap`: run a function on several devices, each on its own slice of the arguments.

On XLA it is a `shard_map` along one axis of devices. With the native engine it is a `vmap`, whose
work is divided over the cores of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.config import config
from namoo._base.source_context import entry_point
from namoo.api.inspect import eval_shape
from namoo.api.jit import jit
from namoo.api.map import batched
from namoo.core.array import PlacedArray
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, context
from namoo.devices.available import device_count, process_count
from namoo.devices.available import devices as all_devices
from namoo.devices.make_array import make_array_from_process_local_data
from namoo.devices.shard_map import shard_map
from namoo.devices.sharding.mesh import AbstractMesh, Mesh
from namoo.devices.sharding.partition_spec import PartitionSpec
from namoo.devices.sharding.shardings import NamedSharding
from namoo.primitives.shape import expand_dims, squeeze
from namoo.primitives.slicing import index_in_dim
from namoo.transforms.arguments import (
    argnums_tuple,
    function_name,
    is_array,
    require_callable,
    signature,
    wraps,
)


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_arg_shapes: Any = None,
) -> Callable:
    """Run a function on several devices at once, each on its own slice of the arguments.

    Args:
        fun: a function of trees of arrays.
        axis_name: a name for the mapped axis, for collectives such as `lax.psum`.
        in_axes: as for `vmap`.
        out_axes: as for `vmap`; None means the result of the first device.
        static_broadcasted_argnums: arguments that are Python values, the same on all devices.
        devices: the devices to use; all by default.
        backend: has no effect.
        axis_size: the length of the mapped axis, if no argument has it.
        donate_argnums: arguments whose memory may be reused.

    Returns:
        the function on stacked arguments; the mapped axis is at most as long as there are devices.
        With the native engine the cores of the CPU are the devices: the work is divided over them.

    Example:
        >>> import namoo.numpy as jnp
        >>> pmap(lambda x: x**2)(jnp.array([3.0]))
        Array([9.], dtype=float32)
    """
    require_callable(fun, "pmap")
    static = argnums_tuple(static_broadcasted_argnums, "static_broadcasted_argnums")
    donated = argnums_tuple(donate_argnums, "donate_argnums")
    if both := set(static) & set(donated):
        raise ValueError(
            f"pmap: static_broadcasted_argnums and donate_argnums cannot intersect: {sorted(both)} "
            "are in both."
        )
    name = axis_name if axis_name is not None else _UnnamedAxis()
    programs = _Programs(fun, name, in_axes, out_axes, axis_size, devices, static, donated)

    @entry_point
    @wraps(fun)
    def pmap_f(*args, **kwargs):
        run, data = programs.select(args, kwargs)
        return run(*data, **kwargs)

    def lower(*args, **kwargs):
        """Trace the function for arguments, and return the program ready to be compiled."""
        run, data = programs.select(args, kwargs)
        return run.lower(*data, **kwargs)

    setattr(pmap_f, "lower", lower)  # noqa: B010
    return pmap_f


class _UnnamedAxis:
    """The name of an axis that the user did not name."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


class _Programs:
    """A function under `pmap`, with its options and compiled versions."""

    def __init__(self, fun, name, in_axes, out_axes, axis_size, devices, static, donated):
        self.fun = fun
        self.name = name
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_size: int | None = axis_size
        self.devices: Sequence[Any] | None = devices
        self.static: tuple[int, ...] = static
        self.donated: tuple[int, ...] = donated
        self.compiled: dict[Any, Any] = {}

    def select(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Return the function compiled for these arguments, and the arguments that are data."""
        self._check_count(args, kwargs)
        static = {i % len(args): args[i] for i in self.static}
        data = [x for i, x in enumerate(args) if i not in static]
        axes = self.in_axes
        if isinstance(axes, (tuple, list)):
            axes = tuple(a for i, a in enumerate(axes) if i not in static)
        _check_devices(axes, data, self.fun, self.devices)
        placed = self._runs_on_devices(data)
        # Each device has its own errors; an equation distinguishes them from those of a batch.
        apart = placed or getattr(context.trace, "how", None) == "checkify"
        where = placed and tuple(self.devices or all_devices())
        key = (len(args), tuple(static.values()), apart, where)
        try:
            run = self.compiled.get(key)
        except TypeError:
            raise ValueError(
                "pmap: static_broadcasted_argnums must be hashable, got "
                f"{[type(s).__name__ for s in static.values()]}."
            ) from None
        if run is None:
            run = self.compiled[key] = self._compile(axes, static, len(args), apart, placed)
        return run, data

    def _check_count(self, args: tuple, kwargs: dict[str, Any]) -> None:
        if self.static and max(self.static) >= len(args):
            count = f"{len(args)} positional argument{'s' * (len(args) != 1)}"
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={self.static} but was called "
                f"with only {count}. All static broadcasted arguments must be passed positionally."
            )
        if self.axis_size is None and not tree_util.tree_leaves((args, kwargs)):
            raise ValueError("pmap requires at least one argument with a mapped axis.")

    def _runs_on_devices(self, args: Sequence[Any]) -> bool:
        """Whether the work is divided over XLA's devices rather than the cores of the CPU."""
        if not isinstance(context.trace, EvalTrace):
            return False
        if config.engine == "xla" or (self.devices is not None and any(d.id for d in self.devices)):
            return True
        return any(type(x) is PlacedArray for x in tree_util.tree_leaves(args))

    def _compile(
        self, axes: Any, static: dict[int, Any], count: int, apart: bool, placed: bool
    ) -> Any:
        """Compile the function for some static arguments out of `count`.

        Args:
            axes: the mapped axes of the other arguments.
            static: the static arguments, by position.
            count: the number of all positional arguments.
            apart: whether devices are a `shard_map` and not a batch.
            placed: whether they are devices of XLA.
        """

        def of_data(*values, **kwargs):
            rest = iter(values)
            full = [static[i] if i in static else next(rest) for i in range(count)]
            return self.fun(*full, **kwargs)

        of_data.__name__ = what = function_name(self.fun)
        if (own := signature(self.fun)) is not None:  # messages name its arguments
            kept = [p for i, p in enumerate(own.parameters.values()) if i not in static]
            of_data.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
        mapped = _vmap_of_devices(of_data, axes, self.out_axes, self.name, self.axis_size)
        if apart:
            mapped = _over_devices(
                of_data, axes, self.out_axes, self.name, self.devices, mapped, placed
            )
        given = [i for i in range(count) if i not in static]
        donated = [j for j, i in enumerate(given) if {i, i - count} & {*self.donated}]
        run = jit(mapped, donate_argnums=donated)
        if placed and process_count() > 1:
            run = _across_processes(run, axes, self.out_axes, self.name, self.devices, what)
        return run


def _check_devices(
    axes: Any, args: Sequence[Any], fun: Callable, devices: Sequence[Any] | None
) -> None:
    """Refuse a mapped axis that is longer than the number of devices."""
    try:
        dims = tree_util.broadcast_prefix(axes, tuple(args), is_leaf=_is_none)
    except ValueError:
        return  # vmap raises the error
    available = len(devices) if devices is not None else device_count()
    for x, d in zip(tree_util.tree_leaves(tuple(args)), dims, strict=False):
        if d is not None and is_array(x) and aval_of(x).ndim and aval_of(x).shape[d] > available:
            raise ValueError(
                f"pmap of {function_name(fun)}: the mapped axis has length {aval_of(x).shape[d]}, "
                f"but there {'is' if available == 1 else 'are'} only {available} device"
                f"{'s' * (available != 1)}. Use vmap to map over more examples than devices."
            )


def _vmap_of_devices(fun, in_axes, out_axes, name, axis_size) -> Callable:
    """`vmap`, except that None in `out_axes` means the result of the first device."""
    places = tree_util.tree_map(lambda a: 0 if a is None else a, out_axes, is_leaf=_is_none)
    mapped = batched(fun, in_axes, places, name, axis_size, devices=True)
    if tree_util.tree_structure(places) == tree_util.tree_structure(out_axes):
        return mapped

    def run(*args, **kwargs):
        outs, tree = tree_util.tree_flatten(mapped(*args, **kwargs))
        dims = tree_util.broadcast_prefix(out_axes, tree.unflatten(outs), is_leaf=_is_none)
        return tree.unflatten(
            index_in_dim(x, 0, 0, keepdims=False) if d is None and is_array(x) else x
            for x, d in zip(outs, dims, strict=True)
        )

    return run


def _is_none(x: Any) -> bool:
    return x is None


def _over_devices(
    fun: Callable,
    in_axes: Any,
    out_axes: Any,
    name: Any,
    devices: Sequence[Any] | None,
    checked: Callable,
    placed: bool = True,
) -> Callable:
    """Make a function of stacked arguments that gives each device its slice.

    Args:
        placed: whether the slices run on the devices rather than as a batch on this one.
        checked: the same function by `vmap`; it gives the types of the result, and the errors.
    """
    axis = str(name)

    def run(*args, **kwargs):
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
        if placed:
            mesh = Mesh(np.array([*(devices or all_devices())][:size], object), (axis,))
        else:
            mesh = AbstractMesh((size,), (axis,))
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


def _across_processes(
    run: Callable,
    in_axes: Any,
    out_axes: Any,
    name: Any,
    devices: Sequence[Any] | None,
    what: str,
) -> Callable:
    """Make a function of the slices of this process from a function of all slices.

    Args:
        run: takes and returns arrays over the devices of all processes.
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
    """Return an array over more devices or fewer that has the same parts in this process."""
    from namoo.engines.xla import spmd

    shape = [size if d == dim else n for d, n in enumerate(x.shape)]
    aval = aval_of(x).update(shape=tuple(shape))
    parts = [buffer for _, buffer in spmd.pieces(x._buffer, x._sharding)]
    return PlacedArray(aval, sharding, spmd.join(parts, aval, sharding))


def _spec(dim: int | None, axis: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, axis)
