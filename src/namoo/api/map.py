"""`vmap`: map a function over an axis of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.caches import register
from namoo._base.source_context import at_user_line, entry_point
from namoo.core.avals import aval_of
from namoo.core.trace import context, set_trace
from namoo.primitives.shape import broadcast, moveaxis, shape_of, zeros
from namoo.transforms.arguments import (
    Static,
    argument_paths,
    function_name,
    is_array,
    leaf_paths,
    require_callable,
    to_array,
    wraps,
)
from namoo.transforms.batch import Axis, batch, batch_to, spmd_axis
from namoo.transforms.discharge import put_back, strong_value, values_of
from namoo.transforms.refs import Cell, Ref, refuse_aliases, refuse_returned
from namoo.transforms.vmappable import is_spec, is_vmappable, vmappables
from namoo.tree_util import keystr

if TYPE_CHECKING:
    from namoo.api.signatures import P, R


def _is_none(x: Any) -> bool:
    return x is None


def _axes_for(axes: Any, tree: Any, what: str) -> list[int | None]:
    """Broadcast a prefix tree of axes: an axis, or None, for every leaf."""
    title = f"vmap {what} specification must be a tree prefix of the corresponding value; it has"
    return tree_util.broadcast_prefix(
        axes,
        tree,
        is_leaf=_is_none,
        title=f"{title} an int or None at its leaves",
        name=f"vmap {what}",
    )


def _check_axes(axes: Any, what: str) -> None:
    for path, leaf in tree_util.tree_leaves_with_path(axes, is_leaf=_is_none):
        if leaf is not None and type(leaf) is not int and not is_spec(leaf):
            raise TypeError(
                f"vmap {what} must be an int, None, or (nested) container with those types as "
                f"leaves, but got {leaf!r} at {what}{keystr(path)}."
            )


_known_axes: dict[Any, list[int | None]] = register(
    "api.map mapped axes", {}, bound=1024, keyed_by="axes, structure of the argument"
)


def _remembered_axes(axes: Any, structure: Any, tree: Callable[[], Any], what: str):
    """Call `_axes_for` with a tree of this structure; the result does not depend on the leaves."""
    if what == "out_axes" and (axes is None or isinstance(axes, int)):
        return [axes] * structure.num_leaves  # nodes may refuse leaves that are not arrays
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
    """Return the length of the mapped axes if all are valid and equal, else None."""
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
    """Return the length of the mapped axes; they must agree."""
    sizes: dict[int, list[str]] = {}
    for x, d, path in zip(leaves, dims, paths, strict=True):
        if d is not None:
            aval = aval_of(x)
            where = f"axis {d} of {path} of type {aval.str_short(short_dtypes=False)}"
            sizes.setdefault(aval.shape[d], []).append(where)
    if not sizes:
        if axis_size is None:
            raise ValueError(
                "vmap must have at least one non-None value in in_axes: nothing is mapped over. "
                "Give an argument an axis, or pass axis_size=n."
            )
        return axis_size
    lines = []
    if axis_size is not None and [*sizes] != [axis_size]:
        lines.append(f"the `axis_size` argument was {axis_size}")
    if lines or len(sizes) > 1:
        count = sum(map(len, sizes.values()))
        for size, places in sorted(sizes.items(), key=lambda item: -len(item[1])):
            if len(places) == 1:
                lines.append(f"one axis had size {size}: {places[0]}")
            else:
                part = "most" if 2 * len(places) > count else "some"
                lines.append(
                    f"{part} axes ({len(places)} of them) had size {size}, e.g. {places[0]}"
                )
        raise ValueError(
            "vmap got inconsistent sizes for array axes to be mapped:\n"
            + ";\n".join(f"  * {line}" for line in lines)
            + "\nArguments that are the same for all examples take None in in_axes."
            + at_user_line()
        )
    return next(iter(sizes))


def _place(x: Any, dim: int | None, path: str) -> int | None:
    """Return the axis to map over, counted from the front."""
    if dim is None:
        return None
    aval = aval_of(x)
    if not -aval.ndim <= dim < aval.ndim:
        raise ValueError(
            f"vmap was requested to map its argument along axis {dim}, which implies that its rank "
            f"should be at least {dim + 1 if dim >= 0 else -dim}, but is only {aval.ndim} "
            f"(its shape is {aval.shape}): {path}. Pass None in in_axes for it, or give it that "
            "axis." + at_user_line()
        )
    return dim % aval.ndim


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Turn a function of one example into a function of a batch.

    Args:
        fun: a function of trees of arrays.
        in_axes: which axis of each argument to map over: an integer, None for arguments that are
            the same for all examples, or a tuple (one entry per argument) of trees of these.
        out_axes: where the mapped axis goes in each result, likewise.
        axis_name: a name for the mapped axis, for collectives such as `lax.psum`.
        axis_size: the length of the mapped axis, if no argument has it.
        spmd_axis_name: mesh axes that the mapped axis is divided over, in the sharding constraints
            of the function.

    Returns:
        the function on batches. Keyword arguments are mapped over their leading axis.

    Raises:
        ValueError: the lengths of mapped axes differ, or an argument lacks its axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.array([1.0, 2.0]))
        Array([3., 3., 3.], dtype=float32)
    """
    return batched(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name)


def batched(
    fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name=None, devices=False
) -> Callable[..., Any]:
    """`vmap`, whose examples may represent devices."""
    require_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    is_one = in_axes is None or type(in_axes) is int or is_spec(in_axes)
    if not (is_one or isinstance(in_axes, tuple)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes!r}."
        )
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    @entry_point
    @wraps(fun)
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)},"
                f" len(args)={len(args)}."
            )
        if vmappables:
            return _over_registered(
                fun,
                (in_axes, out_axes),
                (axis_size, axis_name, spmd_axis_name, devices),
                args,
                kwargs,
            )
        leaves, in_tree = tree_util.tree_flatten((args, kwargs))
        dims = _remembered_axes(in_axes, in_tree, lambda: args, "in_axes")
        if kwargs:
            dims = [*dims, *[0] * (len(leaves) - len(dims))]
        static = Static(leaves)
        if static.by_position:
            # An argument that is not mapped over is only passed on, and may be anything.
            mapped = Static(
                [x if d is not None else None for x, d in zip(leaves, dims, strict=True)]
            )
            mapped.check_arguments(fun, lambda: argument_paths(fun, args, kwargs))
            dims = static.dynamic(dims)
            leaves = static.dynamic(leaves)
        size = _size(leaves, dims, axis_size)
        if size is None:
            if not leaves and axis_size is None:
                raise ValueError(
                    "vmap wrapped function must be passed at least one argument containing an "
                    f"array or axis_size must be specified, got empty *args={args} and "
                    f"**kwargs={kwargs}"
                )
            paths = [f"argument {path}" for path in argument_paths(fun, args, {})]
            paths = static.dynamic([*paths, *leaf_paths("kwargs", kwargs)])
            dims = [_place(x, d, p) for x, d, p in zip(leaves, dims, paths, strict=True)]
            size = _axis_size(leaves, dims, paths, axis_size)
        axis = Axis(size, axis_name, spmd_axis(leaves, dims, spmd_axis_name), devices)
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

        if any(isinstance(x, Ref) for x in leaves):
            paths = static.dynamic(argument_paths(fun, args, kwargs))
            refuse_aliases(function_name(fun), "vmap", leaves, lambda: paths)
            outs, out_dims = _batch_with_refs(flat, axis, leaves, dims)
        else:
            outs, out_dims = batch(flat, axis, leaves, dims)
        structure = lambda: out_tree.unflatten(range(out_tree.num_leaves))  # noqa: E731
        wanted = out_static.dynamic(_remembered_axes(out_axes, out_tree, structure, "out_axes"))
        if any(w is None is not d for d, w in zip(out_dims, wanted, strict=True)):
            paths = [keystr(path) for path, _ in tree_util.tree_leaves_with_path(structure())]
            _refuse_unmapped(axis, out_dims, wanted, out_static.dynamic(paths), fun)
        results = [_put(axis, x, d, w, fun) for x, d, w in zip(outs, out_dims, wanted, strict=True)]
        return out_tree.unflatten(out_static.join(results))

    name = function_name(fun)
    vmap_f.__doc__ = (
        f"Vectorized version of {name}. Takes similar arguments as {name} but with additional "
        f"array axes over which {name} is mapped."
    )
    if fun.__doc__:
        vmap_f.__doc__ += f"\n\nOriginal documentation:\n\n{fun.__doc__}"
    return vmap_f


def _over_registered(
    fun: Callable[..., Any],
    axes: tuple[Any, Any],
    axis_options: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`vmap` where some arguments or results may be objects of registered classes."""
    (in_axes, out_axes), (size, *names) = axes, axis_options
    leaves, in_tree = tree_util.tree_flatten((args, kwargs), is_leaf=is_vmappable)
    inner_args, inner_kwargs = in_tree.unflatten(range(len(leaves)))
    dims = _axes_for(in_axes, inner_args, "in_axes")
    dims = [*dims, *[0] * (len(leaves) - len(dims))]
    paths = [f"argument {path}" for path in argument_paths(fun, inner_args, {})]
    paths += leaf_paths("kwargs", inner_kwargs)
    arrays = [(x, d, p) for x, d, p in zip(leaves, dims, paths, strict=True) if is_array(x)]
    size = _axis_size(
        [x for x, _, _ in arrays],
        [_place(*each) for each in arrays],
        [path for _, _, path in arrays],
        size,
    )
    axis = Axis(size, *names)
    result: Any = None

    def mapped() -> list[Any]:
        nonlocal result
        trace: Any = context.trace

        def example(x: Any, spec: Any) -> Any:
            if is_vmappable(x):
                return vmappables[type(x)].to_elt(example, lambda: example(iota, 0), x, spec)
            return trace.join(x, _place(x, spec, "an argument")) if is_array(x) else x

        def whole(_: int, x: Any, spec: Any) -> Any:
            if is_vmappable(x):
                return vmappables[type(x)].from_elt(whole, size, x, spec)
            value, dim = trace.pair(x)
            with set_trace(trace.parent):
                return _put(axis, value, dim, spec, fun) if is_array(x) else x

        iota = np.arange(size, dtype=np.int32)
        inner_args, inner_kwargs = in_tree.unflatten(map(example, leaves, dims))
        outs, out_tree = tree_util.tree_flatten(
            fun(*inner_args, **inner_kwargs), is_leaf=is_vmappable
        )
        wanted = _axes_for(out_axes, out_tree.unflatten(range(len(outs))), "out_axes")
        result = out_tree.unflatten(map(partial(whole, size), outs, wanted))
        return []

    batch(mapped, axis, [], [])
    return result


def _batch_with_refs(
    flat: Callable[..., Any], axis: Axis, leaves: Sequence[Any], dims: Sequence[int | None]
):
    """`batch`, where references with the mapped axis are read before and written to after it."""
    places = [i for i, x in enumerate(leaves) if isinstance(x, Ref) and dims[i] is not None]
    cells: list[Cell] = []

    def on_values(*values):
        inputs = list(values)
        for i in places:
            whole, dim = leaves[i].aval, dims[i] % leaves[i].ndim  # type: ignore[operator]
            aval = whole.update(shape=(*whole.shape[:dim], *whole.shape[dim + 1 :]))
            inputs[i] = Cell.of(context.trace, values[i], aval)
        cells[:] = [inputs[i] for i in places]
        return [*flat(*inputs), *map(strong_value, cells)]

    which = [i in places for i in range(len(leaves))]
    outs, out_dims = batch(on_values, axis, values_of(leaves, which), dims)
    n = len(outs) - len(places)
    for i, cell, x, d in zip(places, cells, outs[n:], out_dims[n:], strict=True):
        if cell.changed:
            put_back([leaves[i]], [batch_to(axis, x, d, dims[i] % leaves[i].ndim)])
    return outs[:n], out_dims[:n]


def _refuse_unmapped(
    axis: Axis,
    dims: Sequence[int | None],
    wanted: Sequence[int | None],
    paths: Sequence[str],
    fun: Callable[..., Any],
) -> None:
    """Raise if a result has a mapped axis, and `out_axes` says that it has none."""
    for dim, spec, path in zip(dims, wanted, paths, strict=True):
        if spec is None is not dim:
            named = f"vmap has mapped output (axis_name={axis.name}) but out_axes is None: "
            raise ValueError(
                f"{'' if axis.name is None else named}at vmap out_axes{path}, got axis spec None "
                f"but output was batched on axis {dim}: this result of {function_name(fun)} "
                "differs between examples, so it needs an axis."
            )


def _put(axis: Axis, x: Any, dim: int | None, wanted: int | None, fun: Callable[..., Any]) -> Any:
    """Move the mapped axis of a result to its position in `out_axes`."""
    if isinstance(x, Ref):
        refuse_returned(function_name(fun), "vmap", (x,))
    if wanted is None:
        _refuse_unmapped(axis, [dim], [wanted], [""], fun)
        return to_array(x)
    if dim == wanted:
        return x
    ndim = aval_of(x).ndim + (dim is None)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"vmap out_axes: axis {wanted} is out of bounds: the result of {function_name(fun)} "
            f"has rank {ndim - 1}, so the axis must be between {-ndim} and {ndim - 1}."
        )
    if dim is None:
        aval = aval_of(x)
        if aval.dtype == dtypes.float0:
            place = wanted % ndim
            return zeros(aval.update(shape=(*aval.shape[:place], axis.size, *aval.shape[place:])))
        return moveaxis(broadcast(x, (axis.size,)), 0, wanted % ndim)
    return moveaxis(x, dim, wanted % ndim)
