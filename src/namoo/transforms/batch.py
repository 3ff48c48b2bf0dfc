"""Batching: values may have an additional, mapped axis, and each operation propagates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo._base.caches import per_program
from namoo._base.config import config
from namoo._base.lazy import later
from namoo.analysis.mesh_types import MeshArray
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from namoo.core.trace import Trace, Tracer, context, named_axis, rules_on, set_trace
from namoo.primitives.resharding import with_type
from namoo.primitives.shape import broadcast, moveaxis, shape_of
from namoo.transforms.stage import stage_closed

leaks = later("namoo.analysis.leaks")


class Axis(NamedTuple):
    """The axis that is mapped over; collectives find it by its name.

    `spmd` are the mesh axes that it is sharded over, if the values are on several devices.
    `devices` is set if each example represents a device, which has effects of its own.
    """

    size: int
    name: Any = None
    spmd: Any = None
    devices: bool = False


class BatchTracer(Tracer):
    """A value whose axis `dim` is the mapped one; its type is that of one example."""

    __slots__ = ("aval", "dim", "value")

    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Any, dim: int, aval: ShapedArray | None = None):
        self._trace = trace
        self.value = value
        self.dim = dim
        if aval is None:
            whole = value.aval if type(value) is EagerArray else aval_of(value)
            if type(whole) is MeshArray:
                aval = whole.without_axis(dim)
            else:
                shape = whole.shape[:dim] + whole.shape[dim + 1 :]
                aval = ShapedArray(shape, whole.dtype, whole.weak_type)
        self.aval = aval

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={aval_of(self.value)})"

    def origin(self) -> str:
        if isinstance(self.value, Tracer) and (outer := self.value.origin()):
            return outer
        return (
            "The function is traced by vmap: the value stands for all examples of the batch "
            "at once."
        )


class BatchTrace(Trace):
    """Applies the batch rule of each operation, on the parent trace."""

    kind = "batch"
    how = "vmap"

    def __init__(self, parent: Trace, axis: Axis, tag: object = None):
        self.stack_on(parent)
        self.asks_memory = self.eager and self.replays
        self.axis = axis
        self.tag = object() if tag is None else tag
        """Shared by all traces of one `vmap`, which treat each other's tracers as their own. There
        are several if it maps a function with custom rules, which run under other parents."""

    def owns(self, x: Any) -> bool:
        """Whether a value has the mapped axis."""
        return type(x) is BatchTracer and x._trace.tag is self.tag

    def pair(self, x: Any) -> tuple[Any, int | None]:
        """A value and the index of its mapped axis; None if it has none."""
        if isinstance(x, BatchTracer) and x._trace.tag is self.tag:
            return x.value, x.dim
        return x, None

    def join(self, value: Any, dim: int | None) -> Any:
        return value if dim is None else BatchTracer(self, value, dim)

    def process(self, prim, args, params):
        if prim.higher_order:
            return prim.dispatch_by_trace(self, args, params)
        values: list[Any] = []
        dims: list[int | None] = []
        tag = self.tag
        for x in args:
            own = type(x) is BatchTracer and x._trace.tag is tag
            values.append(x.value if own else x)
            dims.append(x.dim if own else None)
        collective = self.axis.name is not None and self.axis.name in prim.collective_axes(params)
        any_batched = dims.count(None) < len(dims)
        with rules_on(self.parent, prim) if prim.rules_are_pure else set_trace(self.parent):
            if not collective and not any_batched:
                return prim.bind(*values, **params)
            if collective and not prim.holds_program:
                out, dim = prim.batch_collective(self.axis, values, dims, **params)
            elif prim.takes_axis:
                out, dim = prim.batch(values, dims, axis=self.axis, **params)
            else:
                out, dim = prim.batch(values, dims, **params)
        if prim.multiple_results:
            return [
                x if d is None else BatchTracer(self, x, d) for x, d in zip(out, dim, strict=True)
            ]
        return out if dim is None else BatchTracer(self, out, dim)


def batch(
    fun: Callable[..., Sequence[Any]],
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    tag: object = None,
) -> tuple[list[Any], list[int | None]]:
    """Run a flat function on batched arguments; results, and where their mapped axis is.

    The function may close over values of other traces with this tag.
    """
    if axis.name is None:
        return _batch(fun, axis, args, dims, tag)
    with named_axis(axis.name, axis.size):
        return _batch(fun, axis, args, dims, tag)


def _batch(fun, axis, args, dims, tag):
    trace = BatchTrace(context.trace, axis, tag)
    tracers = [
        x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims, strict=True)
    ]
    values, out_dims = [], []
    try:
        with set_trace(trace):
            for x in fun(*tracers):
                own = type(x) is BatchTracer and x._trace.tag is trace.tag
                values.append(x.value if own else x)
                out_dims.append(x.dim if own else None)
    finally:
        trace.finish()
    if config.check_tracer_leaks:
        tracers = x = None  # local references are not leaks
        leaks.refuse_leaks(trace)
    return values, out_dims


def batch_to(axis: Axis, x: Any, dim: int | None, position: int = 0) -> Any:
    """`x` with the mapped axis at `position`, repeated along it where it has none."""
    if dim is None:
        wide = broadcast(x, (axis.size,))
        if axis.spmd is not None and type(aval_of(wide)) is MeshArray:
            wide = with_type(wide, with_axis(aval_of(x), axis))
        return moveaxis(wide, 0, position)
    return moveaxis(x, dim, position)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, batched: Sequence[bool], force: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Map a program over an axis.

    Args:
        closed: the program.
        axis: the mapped axis.
        batched: which inputs have the axis, as their first one.
        force: which results always get it.

    Returns:
        The program on batched inputs; and which results have the axis, as their first one.
    """
    if isinstance(force, bool):
        force = (force,) * len(closed.out_avals)
    # Programs with collectives read the sizes of other named axes while they are batched.
    axes = tuple(sorted(context.axes.items(), key=repr)) if context.axes else ()
    return _batch_jaxpr(closed, axis, tuple(batched), tuple(force), axes, context.checked)


@per_program("batch", keyed_by="mapped axis, inputs and results that have it, axes in scope")
def _batch_jaxpr(closed, axis, batched, force, *scope):
    batched_out: list[bool] = []

    def fun(*args):
        outs, dims = batch(jaxpr_as_fun(closed), axis, args, [0 if b else None for b in batched])
        batched_out[:] = [d is not None or f for d, f in zip(dims, force, strict=True)]
        return [
            batch_to(axis, x, d) if b else x
            for x, d, b in zip(outs, dims, batched_out, strict=True)
        ]

    avals = [with_axis(a, axis) if b else a for a, b in zip(closed.in_avals, batched, strict=True)]
    return stage_closed(fun, avals, closed.jaxpr.name), batched_out


def with_axis(aval: Any, axis: Axis) -> Any:
    """The type with the mapped axis in front, split as that is."""
    wide = aval.update(shape=(axis.size, *aval.shape))
    if axis.spmd is None or type(wide) is not MeshArray or wide.split is None:
        return wide
    spec = wide.split.spec
    entries = (axis.spmd, *spec.partitions[1:])
    return MeshArray(wide, wide.vma, wide.split.with_spec(spec.update(entries)))


def spmd_axis(xs: Sequence[Any], dims: Sequence[int | None], given: Any) -> Any:
    """The mesh axes that split the mapped axes of arguments; `given` where types do not say."""
    found = []
    for x, d in zip(xs, dims, strict=True):
        if d is not None and type(x) is not EagerArray:
            aval = aval_of(x)
            if type(aval) is MeshArray and aval.split is not None:
                found.append(aval.split.spec.partitions[d])
    if len(set(found)) > 1:
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
            f"inconsistent axis specs: {', '.join(map(repr, found))}. Change one of them with "
            "namoo.sharding.reshard."
        )
    if not found:
        return given
    if given is not None and given != found[0]:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on the mapped axis may be given to vmap. "
            f"Got spmd_axis_name {given!r}, and arguments whose mapped axes are sharded over "
            f"{found[0]!r}; leave spmd_axis_name out."
        )
    return found[0]


def to_front(xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[bool]]:
    """Operands with the mapped axis first, and which of them have it."""
    moved = [moveaxis(x, d, 0) if d else x for x, d in zip(xs, dims, strict=True)]
    return moved, [d is not None for d in dims]


def batch_size(xs: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The length of the mapped axis."""
    return next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
