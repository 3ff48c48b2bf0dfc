"""`auto_axes` and `explicit_axes`: functions whose mesh axes have another type inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from namoo import tree_util
from namoo.analysis.mesh_types import MeshArray
from namoo.api.jit import jit
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, context
from namoo.devices.constraints import reshard
from namoo.devices.sharding.current_mesh import get_abstract_mesh, use_abstract_mesh
from namoo.devices.sharding.mesh import AbstractMesh, AxisType
from namoo.devices.sharding.partition_spec import axes_of
from namoo.devices.sharding.shardings import NamedSharding
from namoo.primitives.resharding import reshard_p
from namoo.transforms.arguments import wraps


def _retyped(x: Any, mesh: AbstractMesh) -> Any:
    """Return a value with the axes of its type that are of type Explicit on another mesh."""
    aval = aval_of(x)
    split = aval.split if type(aval) is MeshArray else None
    if split is None:
        return x
    kept = set(mesh.explicit_axes)
    entries = [tuple(a for a in axes_of(e) if a in kept) for e in split.spec.partitions]
    spec = split.spec.update(
        entries, unreduced=split.spec.unreduced & kept, reduced=split.spec.reduced & kept
    )
    return reshard_p.bind(x, sharding=NamedSharding(mesh, spec) if kept else None)


def _with_types(name: str, f: Callable, axes: Any, kind: AxisType) -> tuple[AbstractMesh, Callable]:
    """Return the mesh with axes of another type, and a function that calls `f` on it."""
    mesh = get_abstract_mesh()
    chosen = ({axes} if isinstance(axes, str) else set(axes or ())) or set(mesh.axis_names)
    if unknown := chosen - set(mesh.axis_names):
        raise ValueError(
            f"{name}: the mesh has the axes {mesh.axis_names}, and not "
            f"{', '.join(sorted(map(repr, unknown)))}."
        )
    types = {a: kind for a in chosen if a not in mesh.manual_axes}
    other = mesh.update_axis_types(types)

    def call(args: tuple, options: dict) -> Any:
        with use_abstract_mesh(other):
            return f(*args, **options)

    return other, call


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """Let the compiler choose all shardings inside of a function, except those of its results.

    Inside of the function the mesh axes have the type Auto.

    Args:
        f: the function; without it, a decorator is returned.
        axes: the mesh axes concerned; all by default.
        out_sharding: as for `reshard`; it may be given to each call instead.

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

    def traced(args: tuple, options: dict, places: Any) -> Any:
        mesh, call = _with_types("auto_axes", f, axes, AxisType.Auto)
        if mesh.empty:  # there are no devices to distribute over
            return f(*args, **options)
        args, options = tree_util.tree_map(lambda x: _retyped(x, mesh), (args, options))
        return reshard(call(args, options), places)

    @wraps(f)
    def run(*args: Any, **options: Any) -> Any:
        places = _places("auto_axes", "out_sharding", out_sharding, options)
        if isinstance(context.trace, EvalTrace) and not get_abstract_mesh().empty:
            whole = wraps(f)(lambda args, options: traced(args, options, places))
            return jit(whole)(args, options)
        return traced(args, options, places)

    return run


def explicit_axes(
    f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Any:
    """Give the arguments of a function explicit shardings before it is called.

    Inside of the function the mesh axes have the type Explicit.

    Args:
        f: the function; without it, a decorator is returned.
        axes: the mesh axes concerned; all by default.
        in_sharding: as for `reshard`, for the tuple of arguments; it may be given to each call
            instead.

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

    def traced(args: tuple, options: dict, places: Any) -> Any:
        around = get_abstract_mesh()
        mesh, call = _with_types("explicit_axes", f, axes, AxisType.Explicit)
        if mesh.empty:
            return f(*args, **options)
        with use_abstract_mesh(mesh):
            args = reshard(args, places)
        return tree_util.tree_map(lambda x: _retyped(x, around), call(args, options))

    @wraps(f)
    def run(*args: Any, **options: Any) -> Any:
        places = _places("explicit_axes", "in_sharding", in_sharding, options)
        if isinstance(context.trace, EvalTrace) and not get_abstract_mesh().empty:
            whole = wraps(f)(lambda args, options: traced(args, options, places))
            return jit(whole)(args, options)
        return traced(args, options, places)

    return run


def _places(maker: str, name: str, given: Any, options: dict) -> Any:
    """Return the option of a decorator, or of the call."""
    places = options.pop(name, None) if given is None else given
    if places is None:
        raise TypeError(
            f"Missing required keyword argument: {name!r}. Give it to {maker}, or to each call."
        )
    return places
