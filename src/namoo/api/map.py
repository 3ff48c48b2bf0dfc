"""Mapping functions over axes: `vmap` on one device, `pmap` over several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import _dtypes, errors, tree_util
from namoo._config import config
from namoo.api.arguments import (
    Static,
    argnums_tuple,
    argument_paths,
    function_name,
    is_array,
    require_callable,
    to_array,
    wraps,
)
from namoo.core.array import PlacedArray
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, context
from namoo.primitives.shape import broadcast, moveaxis, shape_of, zeros
from namoo.transforms.batch import Axis, batch
from namoo.tree_util import keystr


def _is_none(x: Any) -> bool:
    return x is None


def _axes_for(axes: Any, tree: Any, what: str) -> list[int | None]:
    """An axis (or None) for every leaf of a tree, from a prefix of it."""
    title = f"vmap {what} specification must be a tree prefix of the corresponding value, with"
    return tree_util.broadcast_prefix(
        axes,
        tree,
        is_leaf=_is_none,
        title=f"{title} an int or None at its leaves",
        name=f"vmap {what}",
    )


def _check_axes(axes: Any, what: str) -> None:
    for path, leaf in tree_util.tree_leaves_with_path(axes, is_leaf=_is_none):
        if leaf is not None and (isinstance(leaf, bool) or not isinstance(leaf, int)):
            raise TypeError(
                f"vmap {what} must be an int, None, or (nested) container with those types as "
                f"leaves, but got {leaf!r} at {what}{keystr(path)}."
            )


_known_axes: dict[Any, list[int | None]] = {}


def _remembered_axes(axes: Any, structure: Any, tree: Callable[[], Any], what: str):
    """`_axes_for` a tree, which depends on its structure alone."""
    if what == "out_axes" and (axes is None or isinstance(axes, int)):
        return [axes] * structure.num_leaves  # whatever a node does with leaves that are no arrays
    key = axes, structure, what
    try:
        found = _known_axes.get(key)
    except TypeError:  # axes, or something in the structure, without a hash
        return _axes_for(axes, tree(), what)
    if found is None:
        if len(_known_axes) >= 1024:
            _known_axes.clear()
        found = _known_axes[key] = _axes_for(axes, tree(), what)
    return found


def _size(leaves: Sequence[Any], dims: Sequence[int | None], axis_size: int | None) -> int | None:
    """The length of the mapped axes, where all are in order: counted from the front, and equal."""
    size = axis_size
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            shape = shape_of(x)
            if not 0 <= d < len(shape) or size is not None and shape[d] != size:
                return None
            size = shape[d]
    return size


def _axis_size(
    leaves: Sequence[Any], dims: Sequence[int | None], paths: Sequence[str], axis_size: int | None
) -> int:
    """The length of the mapped axes, which must agree."""
    sizes: dict[int, list[str]] = {}
    for x, d, path in zip(leaves, dims, paths, strict=True):
        if d is not None:
            size = aval_of(x).shape[d]
            sizes.setdefault(size, []).append(f"{path} of shape {aval_of(x).shape}, axis {d}")
    if not sizes:
        if axis_size is None:
            raise ValueError(
                "vmap must have at least one non-None value in in_axes: nothing is mapped over. "
                "Give an argument an axis, or pass axis_size=n."
            )
        return axis_size
    if axis_size is not None:
        sizes.setdefault(axis_size, []).insert(0, "the argument axis_size")
    if len(sizes) > 1:
        lines = [f"  {size}: {', '.join(p[:3])}{', …' * (len(p) > 3)}" for size, p in sizes.items()]
        raise ValueError(
            "vmap got inconsistent sizes for array axes to be mapped:\n"
            + "\n".join(lines)
            + "\nArguments that are the same for all examples take None in in_axes."
            + errors.at_user_line()
        )
    return next(iter(sizes))


def _place(x: Any, dim: int | None, path: str) -> int | None:
    """The axis to map over, counted from the front."""
    if dim is None:
        return None
    aval = aval_of(x)
    if not -aval.ndim <= dim < aval.ndim:
        raise ValueError(
            f"vmap was requested to map its argument along axis {dim}, which implies that its rank "
            f"should be at least {dim + 1 if dim >= 0 else -dim}, but {path} has rank {aval.ndim} "
            f"(its shape is {aval.shape}). Pass None in in_axes for it, or give it that axis."
            + errors.at_user_line()
        )
    return dim % aval.ndim


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable:
    """Turn a function of one example into a function of a batch.

    Args:
      fun: a function of trees of arrays.
      in_axes: which axis of each argument to map over: an integer, None for arguments that are the
        same for all examples, or a tuple (one entry per argument) of trees of these.
      out_axes: where the mapped axis goes in each result, likewise.
      axis_name: a name for the mapped axis, for collectives such as `lax.psum`.
      axis_size: the length of the mapped axis, where no argument tells.
      spmd_axis_name: mesh axes that the mapped axis is divided over, wherever the function says
        how a value lies on devices.

    Returns:
      the function on batches. Keyword arguments are mapped over their leading axis.

    Raises:
      ValueError: the lengths of mapped axes differ, or an argument lacks its axis.

    >>> import namoo.numpy as jnp
    >>> vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.array([1.0, 2.0]))
    Array([3., 3., 3.], dtype=float32)
    """
    require_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or type(in_axes) is int or isinstance(in_axes, (tuple, dict))):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes!r}."
        )
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    @errors.boundary
    @wraps(fun)
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)},"
                f" len(args)={len(args)}."
            )
        leaves, in_tree = tree_util.tree_flatten((args, kwargs))
        dims = _remembered_axes(in_axes, in_tree, lambda: args, "in_axes")
        if kwargs:
            dims = [*dims, *[0] * (len(leaves) - len(dims))]
        static = Static(leaves)
        if static.places:
            # What is not mapped over is only passed on, and may be anything.
            mapped = Static(
                [x if d is not None else None for x, d in zip(leaves, dims, strict=True)]
            )
            mapped.check_arguments(fun, lambda: argument_paths(fun, args, kwargs))
            dims = static.dynamic(dims)
            leaves = static.dynamic(leaves)
        size = _size(leaves, dims, axis_size)
        if size is None:
            paths = static.dynamic(argument_paths(fun, args, kwargs))
            dims = [_place(x, d, p) for x, d, p in zip(leaves, dims, paths, strict=True)]
            size = _axis_size(leaves, dims, paths, axis_size)
        axis = Axis(size, axis_name, spmd_axis_name)
        out_tree: Any = None
        out_static: Any = None

        def flat(*values):
            nonlocal out_tree, out_static
            inner_args, inner_kwargs = in_tree.unflatten(static.join(values))
            result = fun(*inner_args, **inner_kwargs)
            outs, out_tree = tree_util.tree_flatten(result)
            out_static = Static(outs)
            out_static.check_results("vmap", fun, result)
            return out_static.dynamic(outs)

        outs, out_dims = batch(flat, axis, leaves, dims)
        structure = lambda: out_tree.unflatten(range(out_tree.num_leaves))  # noqa: E731
        wanted = out_static.dynamic(_remembered_axes(out_axes, out_tree, structure, "out_axes"))
        results = [_put(axis, x, d, w, fun) for x, d, w in zip(outs, out_dims, wanted, strict=True)]
        return out_tree.unflatten(out_static.join(results))

    return vmap_f


def _put(axis: Axis, x: Any, dim: int | None, wanted: int | None, fun: Callable) -> Any:
    """A result with the mapped axis where `out_axes` wants it."""
    if wanted is None:
        if dim is not None:
            raise ValueError(
                f"vmap has mapped output but out_axes is None: a result of {function_name(fun)} "
                "differs between examples, so it needs an axis in out_axes."
            )
        return to_array(x)
    if dim == wanted:
        return x
    ndim = aval_of(x).ndim + (dim is None)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"vmap out_axes has axis {wanted}, but the result of {function_name(fun)} has rank "
            f"{ndim - 1}, so the axis must be between {-ndim} and {ndim - 1}."
        )
    if dim is None:
        aval = aval_of(x)
        if aval.dtype == _dtypes.float0:
            place = wanted % ndim
            return zeros(aval.update(shape=(*aval.shape[:place], axis.size, *aval.shape[place:])))
        return moveaxis(broadcast(x, (axis.size,)), 0, wanted % ndim)
    return moveaxis(x, dim, wanted % ndim)


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
      out_axes: as for `vmap`; where it is None, the result is that of the first device.
      static_broadcasted_argnums: arguments that are Python values, the same on all devices.
      devices: the devices to use; all by default.
      backend: has no effect.
      axis_size: the length of the mapped axis, where no argument tells.
      donate_argnums: arguments whose memory may be reused.

    Returns:
      the function on stacked arguments; the mapped axis is at most as long as there are devices.
      With the native engine the cores of the CPU are the devices: the work is divided over them.

    >>> import namoo.numpy as jnp
    >>> pmap(lambda x: x**2)(jnp.array([3.0]))
    Array([9.], dtype=float32)
    """
    from namoo.api.device import device_count, process_count
    from namoo.api.device import devices as all_devices
    from namoo.api.device_map import across_processes, over_devices
    from namoo.api.jit import jit

    require_callable(fun, "pmap")
    fixed = argnums_tuple(static_broadcasted_argnums, "static_broadcasted_argnums")
    donated = argnums_tuple(donate_argnums, "donate_argnums")
    if both := set(fixed) & set(donated):
        raise ValueError(
            f"pmap: static_broadcasted_argnums and donate_argnums cannot intersect: {sorted(both)} "
            "are in both."
        )
    name = axis_name if axis_name is not None else _PmapAxis()
    compiled: dict[Any, Callable] = {}

    def program(args, kwargs):
        """The function compiled for these arguments, and those of them that are data."""
        nums = tuple(i % len(args) for i in fixed)
        statics = tuple(args[i] for i in nums)
        dynamic = [x for i, x in enumerate(args) if i not in nums]
        axes = in_axes
        if isinstance(axes, (tuple, list)):
            axes = tuple(a for i, a in enumerate(axes) if i not in nums)
        _check_devices(axes, dynamic, kwargs, fun, devices, device_count)
        placed = _on_devices(dynamic, devices)
        key = (len(args), statics, placed and tuple(devices or all_devices()))
        try:
            run = compiled.get(key)
        except TypeError:
            raise ValueError(
                "pmap: static_broadcasted_argnums must be hashable, got "
                f"{[type(s).__name__ for s in statics]}."
            ) from None
        if run is None:
            chosen = dict(zip(nums, statics, strict=True))
            # The arguments themselves must not be kept.
            count = len(args)

            def of_dynamic(*values, **kw):
                rest = iter(values)
                full = [chosen[i] if i in chosen else next(rest) for i in range(count)]
                return fun(*full, **kw)

            of_dynamic.__name__ = function_name(fun)
            mapped = _vmap_with_one_of_each(of_dynamic, axes, out_axes, name, axis_size)
            if placed:
                mapped = over_devices(of_dynamic, axes, out_axes, name, devices, mapped)
            given = [i for i in range(len(args)) if i not in nums]
            places = [j for j, i in enumerate(given) if i in donated or i - len(args) in donated]
            run = jit(mapped, donate_argnums=places)
            if placed and process_count() > 1:
                run = across_processes(run, axes, out_axes, name, devices, function_name(fun))
            compiled[key] = run
        return run, dynamic

    @errors.boundary
    @wraps(fun)
    def pmap_f(*args, **kwargs):
        run, dynamic = program(args, kwargs)
        return run(*dynamic, **kwargs)

    def lower(*args, **kwargs):
        """The program for arguments, ready to be compiled."""
        run, dynamic = program(args, kwargs)
        return run.lower(*dynamic, **kwargs)

    setattr(pmap_f, "lower", lower)  # noqa: B010
    return pmap_f


def _vmap_with_one_of_each(fun, in_axes, out_axes, name, axis_size) -> Callable:
    """`vmap`, but a result whose axis in `out_axes` is None is that of the first device."""
    places = tree_util.tree_map(lambda a: 0 if a is None else a, out_axes, is_leaf=_is_none)
    mapped = vmap(fun, in_axes, places, name, axis_size)
    if tree_util.tree_structure(places) == tree_util.tree_structure(out_axes):
        return mapped

    def run(*args, **kwargs):
        from namoo.primitives.slicing import index_in_dim

        outs, tree = tree_util.tree_flatten(mapped(*args, **kwargs))
        dims = tree_util.broadcast_prefix(out_axes, tree.unflatten(outs), is_leaf=_is_none)
        return tree.unflatten(
            index_in_dim(x, 0, 0, keepdims=False) if d is None and is_array(x) else x
            for x, d in zip(outs, dims, strict=True)
        )

    return run


def _on_devices(args: Sequence[Any], devices: Sequence[Any] | None) -> bool:
    """Whether `pmap` divides its work over XLA's devices, and not over the cores of the CPU."""
    if not isinstance(context.trace, EvalTrace):
        return False
    if config.engine == "xla" or (devices is not None and any(d.id for d in devices)):
        return True
    return any(type(x) is PlacedArray for x in tree_util.tree_leaves(args))


class _PmapAxis:
    """The name of an axis that the user did not name."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


def _check_devices(axes, args, kwargs, fun, devices, device_count):
    """The mapped axis must fit the devices there are."""
    try:
        dims = tree_util.broadcast_prefix(axes, tuple(args), is_leaf=_is_none)
    except ValueError:
        return  # vmap tells what is wrong
    available = len(devices) if devices is not None else device_count()
    for x, d in zip(tree_util.tree_leaves(tuple(args)), dims, strict=False):
        if d is not None and is_array(x) and aval_of(x).ndim and aval_of(x).shape[d] > available:
            raise ValueError(
                f"pmap of {function_name(fun)}: the mapped axis has length {aval_of(x).shape[d]}, "
                f"but there {'is' if available == 1 else 'are'} only {available} device"
                f"{'s' * (available != 1)}. Use vmap to map over more examples than devices."
            )
