"""Sharding constraints: how the values of a program are to be distributed over devices."""

from __future__ import annotations

from typing import Any

from namoo import tree_util
from namoo.analysis.mesh_types import MeshArray
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, context
from namoo.devices.device_put import device_put
from namoo.devices.primitives import sharding_constraint_p
from namoo.devices.sharding.current_mesh import (
    concrete_mesh,
    mesh_here,
)
from namoo.devices.sharding.mesh import AbstractMesh, AxisType, Mesh
from namoo.devices.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from namoo.devices.sharding.shardings import NamedSharding, Sharding, require_divisible
from namoo.engines.base import asks_for_nothing
from namoo.primitives.resharding import reshard_p
from namoo.transforms.arguments import to_array


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain how the arrays of a tree are distributed over devices, inside of a `jit` function.

    Args:
        x: a tree of arrays.
        shardings: a sharding, or a `PartitionSpec` for the mesh of `namoo.set_mesh`; or a tree of
            these that is a prefix of `x`; None for no constraint.

    Returns:
        `x` with the same values. Within `jit` a dimension need not divide evenly: the compiler pads
        the parts. Where all axes of the mesh have the type Explicit, the types say the shardings,
        and a type that differs is an AssertionError: `reshard` changes it.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = namoo.make_mesh((1,), ("data",), (AxisType.Auto,))
        >>> sharding = NamedSharding(mesh, P("data"))
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
        if isinstance(sharding, NamedSharding) and sharding.mesh.are_all_axes_explicit:
            _require_type(leaf, sharding)
            out.append(to_array(leaf))
            continue
        if isinstance(context.trace, EvalTrace):
            require_divisible(where, sharding, aval_of(leaf).shape)
            out.append(device_put(leaf, sharding))
        else:
            out.append(sharding_constraint_p.bind(leaf, sharding=sharding))
    return tree.unflatten(out)


def _require_type(x: Any, sharding: NamedSharding) -> None:
    """Raise unless the type of a value has a sharding already."""
    aval = aval_of(x)
    wanted = MeshArray(aval, split=sharding.in_type(len(aval.shape)))
    if aval != wanted:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {aval.str_short()} did not match the sharding "
            f"provided: {sharding.spec}. Please use `namoo.sharding.reshard` to shard your input "
            "to the sharding you want."
        )


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
        mesh = mesh_here()
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
    """Change the shardings of the arrays of a tree, over mesh axes of type Explicit.

    Args:
        x: a tree of arrays.
        out_shardings: a sharding, or a `PartitionSpec` for the current mesh; or a tree of these
            that is a prefix of `x`.

    Returns:
        `x` with the same values, and the shardings in its types.

    Raises:
        ValueError: there is no mesh for a `PartitionSpec`, or it names axes of other types.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo.sharding import AbstractMesh, AxisType, PartitionSpec as P
        >>> mesh = AbstractMesh((2,), ("x",), AxisType.Explicit)
        >>> with namoo.sharding.use_abstract_mesh(mesh):
        ...     namoo.make_jaxpr(lambda x: reshard(x, P("x")))(jnp.zeros(4))
        { lambda ; a:f32[4]. let b:f32[4@x] = reshard a in (b,) }
    """
    places = tree_util.broadcast_prefix(out_shardings, x, is_leaf=is_placement)
    leaves, tree = tree_util.tree_flatten(x)
    return tree.unflatten(map(_reshard, leaves, places))


def _reshard(x: Any, place: Any) -> Any:
    if place is None:
        raise ValueError("reshard: None is not a sharding; write P() for an array that is whole.")
    sharding = output_sharding("reshard", place)
    if sharding is None:
        return to_array(x)
    aval = aval_of(x)
    sharding.check_compatible_aval(aval.shape)
    if not any(name is UNCONSTRAINED for name in sharding.spec.partitions):
        require_divisible("reshard", sharding, aval.shape)
    return reshard_p.bind(to_array(x), sharding=sharding)


def output_sharding(name: str, given: Any) -> NamedSharding | None:
    """Return the sharding that `out_sharding` of a function asks for; None for no request.

    Raises:
        TypeError: neither a `NamedSharding` nor a `PartitionSpec`.
        ValueError: it names mesh axes that are not of type Explicit, or there is no mesh.
    """
    if given is None or asks_for_nothing(given):
        return None
    here = mesh_here()
    if isinstance(given, PartitionSpec):
        if here.empty:
            raise ValueError(
                f"{name}: Using PartitionSpec when you are not under a mesh context is not "
                "allowed. Pass a NamedSharding, or set a mesh with namoo.set_mesh(mesh). Got "
                f"out_sharding={given}."
            )
        given = NamedSharding(here, given)
    if not isinstance(given, NamedSharding):
        raise TypeError(
            f"`out_sharding` argument of {name} only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {given} of type: {type(given)}"
        )
    if given.mesh.abstract_mesh == here.abstract_mesh and given.mesh != here:
        given = NamedSharding(here, given.spec)
    spec = given.spec
    for axis in (*spec.axes(), *spec.unreduced, *spec.reduced):
        if axis not in given.mesh.explicit_axes or axis in context.axes:
            kinds = dict(zip(given.mesh.axis_names, given.mesh.axis_types, strict=True))
            kind = AxisType.Manual if axis in context.axes else kinds[axis]
            raise ValueError(
                f"PartitionSpec passed to {name} cannot contain axis names that are of type Auto "
                f"or Manual. Got {spec} with axis name {axis!r} of type {kind}. Give the mesh axes "
                "of type Explicit, or write lax.with_sharding_constraint of the result where the "
                "type is Auto."
            )
    return given


def placed(x: Any, sharding: NamedSharding) -> Any:
    """Return a concrete array with a sharding; an abstract mesh means the current one."""
    if isinstance(sharding.mesh, AbstractMesh):
        mesh = concrete_mesh()
        own = getattr(x, "sharding", None)
        if mesh.empty and isinstance(own, NamedSharding) and isinstance(own.mesh, Mesh):
            mesh = own.mesh
        if mesh.empty:
            return to_array(x)
        sharding = NamedSharding(mesh, sharding.spec)
    elif not (mesh := concrete_mesh()).empty and mesh.axis_names == sharding.mesh.axis_names:
        sharding = NamedSharding(mesh, sharding.spec)
    entries = [*sharding.spec.partitions]
    entries += [None] * (aval_of(x).ndim - len(entries))
    return device_put(x, sharding.with_spec(sharding.spec.update(entries)))
