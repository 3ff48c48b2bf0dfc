"""`shard_map`: every device of a mesh runs one function on its own parts of the arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from namoo import tree_util
from namoo._base.caches import cached
from namoo._base.source_context import at_user_line, entry_point
from namoo.analysis.mesh_types import MeshArray
from namoo.api.jit import jit
from namoo.core.avals import aval_of
from namoo.core.trace import EvalTrace, Tracer, context
from namoo.devices.shard_map_primitive import (
    Layout,
    axes_in_scope,
    part_shape,
    shard_map_p,
    used,
    varying,
)
from namoo.devices.sharding.current_mesh import concrete_mesh, mesh_here
from namoo.devices.sharding.mesh import AbstractMesh, Mesh
from namoo.devices.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from namoo.devices.sharding.shardings import NamedSharding
from namoo.transforms.arguments import (
    Static,
    argument_paths,
    function_name,
    require_callable,
    wraps,
)
from namoo.transforms.refs import refuse_refs
from namoo.transforms.stage import close, stage


class _Infer:
    """The default of specs that were not given: those of the arguments are used."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Any] = (),
    check_vma: bool = True,
) -> Callable:
    """Run a function on every device of a mesh, each on its own parts of the arguments.

    Inside of the function the mesh axes have names, for collectives such as `lax.psum`.

    Args:
        f: a function of trees of arrays, which are the parts.
        out_specs: how the parts of the results are joined: a `PartitionSpec`, or a tree of them
            that is a prefix of the result's structure. Along axes that a spec does not name, all
            devices must have the same result, and one of them is used.
        in_specs: how the arguments are split, likewise, with an entry for each argument.
        mesh: the devices; by default the mesh of `namoo.set_mesh`. An `AbstractMesh` refers to the
            devices of the arguments.
        axis_names: the mesh axes that the function is mapped over; the others are left to the
            compiler. All by default.
        check_vma: track which values vary between devices, refuse results that are declared equal
            but may vary, and sum the gradients of values that all devices share.

    Returns:
        a function of whole arrays.

    Raises:
        ValueError: the specs do not fit the arrays, or the mesh.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo.sharding import PartitionSpec as P
        >>> mesh = namoo.make_mesh((1,), ("data",))
        >>> total = shard_map(lambda x: namoo.lax.psum(x.sum(), "data"), mesh=mesh,
        ...                   in_specs=P("data"), out_specs=P())
        >>> total(jnp.arange(4.0))
        Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    require_callable(f, "shard_map")
    if mesh is not None and not hasattr(mesh, "axis_names"):
        raise TypeError(f"shard_map: mesh must be a namoo.sharding.Mesh, got {mesh!r}.")
    task = _Task(f, mesh, in_specs, out_specs, tuple(axis_names), bool(check_vma))

    @entry_point
    @wraps(f)
    def mapped(*args):
        own = task.inferred(args) if in_specs is Infer else task
        return (own.compiled if isinstance(context.trace, EvalTrace) else own)(*args)

    return mapped


def smap(
    f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any
) -> Callable:
    """`shard_map` over one axis of the current mesh, with axes of arrays as in `vmap`.

    Args:
        f: a function of trees of arrays, which are the parts.
        in_axes: the dimension of each argument that is split: an integer, None for an argument that
            all devices get whole, or a tuple with an entry for each argument. By default that of
            the arguments' shardings.
        out_axes: the dimension of the results along which the parts are joined, likewise.
        axis_name: the mesh axis that the function is mapped over.

    Returns:
        a function of whole arrays.

    Raises:
        TypeError: the axes are not integers, or there are several axis names.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> with namoo.set_mesh(namoo.make_mesh((1,), ("data",))):
        ...     smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="data")(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}.")
    if in_axes is not Infer and not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            "smap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )

    def specs(what: str, axes: Any) -> Any:
        def spec(axis: Any) -> PartitionSpec:
            if axis is not None and not isinstance(axis, int):
                raise TypeError(
                    f"smap {what} must be an int, None, or (nested) container with those types as "
                    f"leaves, but got {axes}."
                )
            return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

        return tree_util.tree_map(spec, axes, is_leaf=lambda axis: axis is None)

    return shard_map(
        f,
        in_specs=Infer if in_axes is Infer else specs("in_axes", in_axes),
        out_specs=specs("out_axes", out_axes),
        axis_names={axis_name},
    )


class _Task:
    """A function, the mesh it is mapped over, and how arrays are split and joined."""

    def __init__(self, f, mesh, in_specs, out_specs, axis_names, checked):
        self.f = f
        self.name = function_name(f)
        self.given_mesh = mesh
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.axis_names = axis_names
        self.checked = checked
        self.compiled = jit(wraps(f)(lambda *args: self(*args)))
        self._inferred: dict[Any, _Task] = {}

    def __call__(self, *args: Any) -> Any:
        mesh = self._mesh()
        axes = self._axes(mesh)
        leaves, tree = tree_util.tree_flatten(args)
        refuse_refs("shard_map", leaves)
        fixed = Static(leaves)
        paths = argument_paths(self.f, args, {})
        fixed.check_arguments(self.f, lambda: paths)
        names = fixed.dynamic(paths)
        specs = self._prefix("in_specs", self._in_specs(args), args)
        specs = [s for i, s in enumerate(specs) if i not in fixed.by_position]
        operands = fixed.dynamic(leaves)
        whole = [aval_of(x) for x in operands]
        ins = [
            self._layout("in_specs", spec, aval.shape, mesh, axes, path)
            for spec, aval, path in zip(specs, whole, names, strict=True)
        ]
        avals = [
            varying(a.update(shape=part_shape(a.shape, layout, mesh)), layout, self.checked)
            for a, layout in zip(whole, ins, strict=True)
        ]
        out_tree: Any = None
        fixed_out: Any = None

        def flat(*parts):
            nonlocal out_tree, fixed_out
            result = self.f(*tree.unflatten(fixed.join(parts)))
            outs, out_tree = tree_util.tree_flatten(result)
            fixed_out = Static(outs)
            fixed_out.check_results("shard_map", self.f, result)
            return fixed_out.dynamic(outs)

        with axes_in_scope(mesh, axes, self.checked):
            jaxpr, consts = stage(flat, avals, self.name, names, "shard_map")
        closed, consts = close(jaxpr, consts)
        outs = self._out_layouts(closed, out_tree, fixed_out, mesh, axes)
        results = shard_map_p.bind(
            *consts,
            *operands,
            jaxpr=closed,
            mesh=mesh,
            axes=axes,
            ins=(*(((),) * aval_of(c).ndim for c in consts), *ins),
            outs=tuple(outs),
            checked=self.checked,
            name_sharding=name_sharding,
        )
        return out_tree.unflatten(fixed_out.join(results))

    def _mesh(self) -> Mesh:
        around = context.mesh
        mesh = self.given_mesh or around or concrete_mesh()
        if around is not None and mesh != around:
            raise ValueError(
                f"shard_map of {self.name}: it is nested in a shard_map over {around}, and must "
                f"have the same mesh; got {mesh}. Leave mesh= out."
            )
        if mesh.empty:
            raise ValueError(
                f"shard_map of {self.name}: The context mesh cannot be empty. Pass "
                "mesh=namoo.make_mesh(...), or set one with namoo.set_mesh(mesh)."
            )
        return mesh

    def _axes(self, mesh: Mesh) -> tuple[Any, ...]:
        if strange := [a for a in self.axis_names if a not in mesh.axis_names]:
            raise ValueError(
                f"shard_map of {self.name}: axis_names has {strange}, but the mesh has the axes "
                f"{mesh.axis_names}."
            )
        taken = context.axes if context.mesh is not None else ()
        if twice := [a for a in self.axis_names if a in taken]:
            raise ValueError(
                f"shard_map of {self.name}: axis_names has {twice}, which the enclosing "
                "shard_map already divides its function over."
            )
        chosen = self.axis_names or mesh.axis_names
        return tuple(a for a in mesh.axis_names if a in chosen and a not in taken)

    def inferred(self, args: tuple) -> _Task:
        """Return the same task with the in_specs of the arguments' shardings."""
        axes = self._axes(self._mesh())

        def own(x):
            aval = aval_of(x)
            if isinstance(x, Tracer) and (type(aval) is not MeshArray or aval.split is None):
                if mesh_here().explicit_axes:
                    return PartitionSpec()
                raise TypeError(
                    f"shard_map of {self.name}: in_specs was not specified, and inside of jit and "
                    "other transformations the division of an argument is not known, unless the "
                    "mesh has axes of type Explicit. Give in_specs, as in in_specs=P('x')."
                    + at_user_line()
                )
            sharding = aval.sharding if isinstance(x, Tracer) else getattr(x, "sharding", None)
            if not isinstance(sharding, NamedSharding):
                return PartitionSpec()
            entries = (tuple(a for a in axes_of(e) if a in axes) for e in sharding.spec.partitions)
            return PartitionSpec(*(names or None for names in entries))

        leaves, tree = tree_util.tree_flatten(args)
        specs = tuple(map(own, leaves))
        if (specs, tree) not in self._inferred:
            given = (self.given_mesh, tree.unflatten(specs), self.out_specs, self.axis_names)
            self._inferred[specs, tree] = _Task(self.f, *given, self.checked)
        return self._inferred[specs, tree]

    def _in_specs(self, args: tuple) -> Any:
        specs = tuple(self.in_specs) if isinstance(self.in_specs, list) else self.in_specs
        if isinstance(specs, tuple) and not isinstance(specs, PartitionSpec):
            if len(specs) != len(args):
                raise ValueError(
                    f"shard_map of {self.name}: in_specs has {len(specs)} entries, but the "
                    f"function was called with {len(args)} arguments."
                )
        return specs

    def _prefix(self, what: str, specs: Any, tree: Any) -> list[Any]:
        try:
            found = tree_util.broadcast_prefix(specs, tree, is_leaf=_is_spec)
        except ValueError as error:
            raise ValueError(
                f"shard_map of {self.name}: {what} must be a PartitionSpec, or a tree of them that "
                f"is a prefix of the structure of the "
                f"{'arguments' if what == 'in_specs' else 'result'}.\n{error}"
            ) from None
        for spec in found:
            if spec is not None and not isinstance(spec, PartitionSpec):
                raise TypeError(
                    f"shard_map of {self.name}: {what} must be PartitionSpecs, such as P('data'); "
                    f"got {spec!r} of type {type(spec).__name__}."
                )
        return found

    def _layout(self, what, spec, shape, mesh, axes, path) -> Layout:
        """Return the mesh axes of each dimension of an array, from its spec."""
        where = f"shard_map of {self.name}: {what} {spec} for {path}"
        entries = () if spec is None else spec.partitions
        if len(entries) > len(shape):
            raise ValueError(
                f"{where} is for arrays of at least {len(entries)} dimensions, which has length "
                f"{len(entries)}, but the array has the shape {tuple(shape)}, of rank {len(shape)}."
            )
        if any(entry is UNCONSTRAINED for entry in entries):
            raise ValueError(f"{where}: P.UNCONSTRAINED has no meaning for a shard_map.")
        layout = [tuple(axes_of(entry)) for entry in entries]
        layout += [()] * (len(shape) - len(layout))
        names = [name for entry in layout for name in entry]
        if strange := [n for n in names if n not in axes]:
            raise ValueError(
                f"{where} names the mesh axes {strange}: {what} refers to {strange[0]!r}, but "
                f"those of this shard_map are {axes}."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"{where} names a mesh axis twice: it can divide one dimension only.")
        if what == "in_specs":
            for dim, (n, own) in enumerate(zip(shape, layout, strict=True)):
                count = 1
                for name in own:
                    count *= mesh.shape[name]
                if n % count:
                    raise ValueError(
                        f"{where}: dimension {dim} of the shape {tuple(shape)} has size {n}, which "
                        f"cannot be divided evenly over the {count} devices along {list(own)}: it "
                        f"is not evenly divisible. Pad it to {-(-n // count) * count}, or do not "
                        "divide it."
                    )
        return tuple(layout)

    def _out_layouts(self, closed, out_tree, fixed_out, mesh, axes) -> list[Layout]:
        structure = out_tree.unflatten(range(out_tree.num_leaves))
        specs = self._prefix("out_specs", self.out_specs, structure)
        paths = [tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(structure)]
        chosen = [i for i in range(out_tree.num_leaves) if i not in fixed_out.by_position]
        layouts = []
        for i, aval in zip(chosen, closed.out_avals, strict=True):
            path = f"the result{paths[i]}"
            layout = self._layout("out_specs", specs[i], aval.shape, mesh, axes, path)
            if extra := aval.vma.intersection(axes) - used(layout):
                raise ValueError(
                    f"shard_map of {self.name}: out_specs {specs[i]} says that {path} is the same "
                    f"along the mesh axes {sorted(map(str, extra))}, but it may differ there: it "
                    "was computed from arguments that are divided over them, or from "
                    "lax.axis_index. (These out_specs require replication which can't be "
                    "statically inferred.) Combine the parts, with lax.psum or lax.pmean for "
                    "example; name the axes in out_specs; or pass check_vma=False if you know that "
                    "they are the same."
                )
            layouts.append(layout)
        return layouts


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


@cached("api.shard_map shardings", bound=4096, keyed_by="mesh, layout")
def name_sharding(mesh: Mesh, layout: Layout) -> NamedSharding:
    """Return the sharding of an array with a layout."""
    return NamedSharding(mesh, PartitionSpec(*(names or None for names in layout)))
