"""Sharding constraints: how the values of a program are to be distributed over devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from namoo import tree_util
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, context
from namoo.devices.device_put import device_put
from namoo.devices.primitives import sharding_constraint_p
from namoo.devices.sharding.current_mesh import concrete_mesh, get_abstract_mesh
from namoo.devices.sharding.mesh import AbstractMesh
from namoo.devices.sharding.partition_spec import PartitionSpec, axes_of
from namoo.devices.sharding.shardings import NamedSharding, Sharding, require_divisible
from namoo.transforms.arguments import to_array, wraps


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain how the arrays of a tree are distributed over devices, inside of a `jit` function.

    Args:
        x: a tree of arrays.
        shardings: a sharding, or a `PartitionSpec` for the mesh of `namoo.set_mesh`; or a tree of
            these that is a prefix of `x`; None for no constraint.

    Returns:
        `x` with the same values. Within `jit` a dimension need not divide evenly: the compiler pads
        the parts.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo.sharding import NamedSharding, PartitionSpec as P
        >>> sharding = NamedSharding(namoo.make_mesh((1,), ("data",)), P("data"))
        >>> namoo.jit(lambda x: with_sharding_constraint(x * 2, sharding))(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    places = tree_util.broadcast_prefix(shardings, x, is_leaf=is_placement)
    leaves, tree = tree_util.tree_flatten_with_path(x)
    out = []
    for (path, leaf), place in zip(leaves, places, strict=True):
        where = f"with_sharding_constraint{tree_util.keystr(path)}"
        sharding = resolve(where, place)
        if sharding is None:
            out.append(to_array(leaf))
            continue
        sharding.check_compatible_aval(aval_of(leaf).shape)
        _refuse_manual(where, sharding)
        if isinstance(context.trace, EvalTrace):
            require_divisible(where, sharding, aval_of(leaf).shape)
            out.append(device_put(leaf, sharding))
        else:
            out.append(sharding_constraint_p.bind(leaf, sharding=sharding))
    return tree.unflatten(out)


def _refuse_manual(where: str, sharding: Sharding) -> None:
    """Refuse to split a value of a `shard_map` over the axes that the `shard_map` is over."""
    if context.mesh is None or not isinstance(sharding, NamedSharding):
        return
    named = {name for entry in sharding.spec.partitions for name in axes_of(entry)}
    if manual := sorted(map(str, named.intersection(context.mesh.axis_names, context.axes))):
        raise ValueError(
            f"{where}: {sharding.spec} contains a manual axes {manual} of mesh "
            f"{sharding.mesh.axis_names}: the enclosing shard_map already divides its function "
            "over them. Name only axes that are not in its axis_names."
        )


def is_placement(x: Any) -> bool:
    return x is None or isinstance(x, (PartitionSpec, Sharding))


def resolve(where: str, place: Any) -> Sharding | None:
    """Return the sharding that the user asked for; a spec refers to the current mesh.

    A sharding over an abstract mesh is one over the current mesh, if that has the same axes.
    """
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        mesh = concrete_mesh()
        if not mesh.empty and mesh.abstract_mesh == place.mesh:
            return NamedSharding(mesh, place.spec)
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
    """Change the shardings of the arrays of a tree.

    Args:
        x: a tree of arrays.
        out_shardings: as for `with_sharding_constraint`.
    """
    return with_sharding_constraint(x, out_shardings)


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """Let the compiler choose all shardings inside of a function, except those of its results.

    The compiler decides over all axes of a mesh anyway, so only the results are constrained.

    Args:
        f: the function; without it, a decorator is returned.
        axes: the mesh axes concerned; all by default.
        out_sharding: as for `with_sharding_constraint`; it may be given to each call instead.

    Example:
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
    """Give the arguments of a function explicit shardings before it is called.

    Args:
        f: the function; without it, a decorator is returned.
        axes: the mesh axes concerned; all by default.
        in_sharding: as for `with_sharding_constraint`, for the tuple of arguments; it may be given
            to each call instead.

    Example:
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
    """Return a function that constrains a tree, by the option of the decorator or of the call."""
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
    if mesh.empty:  # there are no devices to distribute over
        return lambda tree: tree
    return lambda tree: with_sharding_constraint(tree, places)
