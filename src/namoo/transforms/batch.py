"""Batching: each value may carry one more axis, and each operation takes it along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo._config import config
from namoo._lazy import later
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr, jaxpr_as_fun
from namoo.core.trace import Trace, Tracer, context, named_axis, rules_on, set_trace
from namoo.primitives.shape import broadcast, moveaxis, shape_of
from namoo.transforms import recall
from namoo.transforms.replay import bind_each, is_eager, replay
from namoo.transforms.stage import derived, stage_closed

leaks = later("namoo.core.leaks")


class Axis(NamedTuple):
    """The axis that is mapped over; collectives find it by its name.

    `spmd` are the mesh axes that it is divided over, where values within are laid out on devices.
    """

    size: int
    name: Any = None
    spmd: Any = None


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
            shape = whole.shape[:dim] + whole.shape[dim + 1 :]
            aval = ShapedArray(shape, whole.dtype, whole.weak_type)
        self.aval = aval

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

    def __init__(self, parent: Trace, axis: Axis, tag: object = None):
        self.parent = parent
        self.axis = axis
        self.tag = object() if tag is None else tag
        """Shared by the traces of one `vmap`: each knows the values of the others. There are
        several where it maps a function with custom rules, which run under other parents."""
        self.eager = is_eager(parent)
        self.recalls = self.eager or parent.recalls

    def pair(self, x: Any) -> tuple[Any, int | None]:
        """A value and the place of the mapped axis in it, None where it has none."""
        if isinstance(x, BatchTracer) and x._trace.tag is self.tag:
            return x.value, x.dim
        return x, None

    def join(self, value: Any, dim: int | None) -> Any:
        return value if dim is None else BatchTracer(self, value, dim)

    def replay(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program without collectives, under this trace."""
        values, dims, tag = [], [], self.tag
        for x in args:
            own = type(x) is BatchTracer and x._trace.tag is tag
            values.append(x.value if own else x)
            dims.append(x.dim if own else None)
        if dims.count(None) == len(dims):
            return replay(self.parent, closed, values)
        # Sizes of batches are many: programs are not made of the first, nor kept for all.
        key = (closed.jaxpr, self.axis.size, *dims)
        entry = recall.known.get(key)
        if entry is None:
            recall.note(key)
            if recall.patient and not self.eager:
                return bind_each(self, closed, args)
        if entry is None or entry is recall.SEEN:
            entry = recall.known[key] = _batched(closed, Axis(self.axis.size), dims)
        program, places = entry
        outs = replay(self.parent, program, values)
        return [
            x if dim is None else BatchTracer(self, x, dim, aval)
            for x, (dim, aval) in zip(outs, places, strict=True)
        ]

    def process(self, prim, args, params):
        if prim.takes_functions:
            return prim.under(self, args, params)
        values: list[Any] = []
        dims: list[int | None] = []
        tag = self.tag
        for x in args:
            own = type(x) is BatchTracer and x._trace.tag is tag
            values.append(x.value if own else x)
            dims.append(x.dim if own else None)
        collective = self.axis.name is not None and self.axis.name in prim.collective_axes(params)
        moves = dims.count(None) < len(dims)
        if moves and self.eager:
            out = recall.operation(self, prim, args, params)
            if out is not None:
                return out
        with rules_on(self.parent, prim) if prim.only_binds else set_trace(self.parent):
            if not collective and not moves:
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
    given = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims, strict=True)]
    values, out_dims = [], []
    try:
        with set_trace(trace):
            for x in fun(*given):
                own = type(x) is BatchTracer and x._trace.tag is trace.tag
                values.append(x.value if own else x)
                out_dims.append(x.dim if own else None)
    finally:
        trace.finish()
    if config.check_tracer_leaks:
        given = x = None  # what is kept here is no leak
        leaks.refuse_leaks(trace)
    return values, out_dims


def _batched(
    closed: ClosedJaxpr, axis: Axis, dims: Sequence[int | None]
) -> tuple[ClosedJaxpr, list[tuple[int | None, ShapedArray]]]:
    """The program on inputs that are mapped along `dims`; where its results are, and their types
    in one example."""
    out_dims: list[int | None] = []

    def fun(*args):
        outs, out_dims[:] = batch(jaxpr_as_fun(closed), axis, args, dims)
        return outs

    avals = [
        a if d is None else a.update(shape=(*a.shape[:d], axis.size, *a.shape[d:]))
        for a, d in zip(closed.in_avals, dims, strict=True)
    ]
    program = stage_closed(fun, avals, closed.jaxpr.name)
    return program, list(zip(out_dims, closed.out_avals, strict=True))


def batch_to(axis: Axis, x: Any, dim: int | None, place: int = 0) -> Any:
    """`x` with the mapped axis at `place`, repeated along it where it has none."""
    if dim is None:
        return moveaxis(broadcast(x, (axis.size,)), 0, place)
    return moveaxis(x, dim, place)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, batched: Sequence[bool], force: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program on batched inputs, with the mapped axis first; also which results have it.

    Results in `force` have it in any case.
    """
    batched = tuple(batched)
    force = force if isinstance(force, bool) else tuple(force)
    # Programs with collectives read the sizes of other named axes while they are batched.
    axes = tuple(sorted(context.axes.items(), key=repr)) if context.axes else ()
    key = ("batch", axis, batched, force, axes, context.checked)
    known = closed.jaxpr.cache.get(key)
    if known is not None:
        return known

    def make():
        batched_out: list[bool] = []
        forced = (force,) * len(closed.out_avals) if isinstance(force, bool) else force

        def fun(*args):
            run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
            outs, dims = batch(run, axis, args, [0 if b else None for b in batched])
            batched_out[:] = [d is not None or f for d, f in zip(dims, forced, strict=True)]
            return [
                batch_to(axis, x, d) if b else x
                for x, d, b in zip(outs, dims, batched_out, strict=True)
            ]

        avals = [
            a.update(shape=(axis.size, *a.shape)) if b else a
            for a, b in zip(closed.in_avals, batched, strict=True)
        ]
        return stage_closed(fun, avals, closed.jaxpr.name), batched_out

    return derived(closed.jaxpr, key, make)


def to_front(xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[bool]]:
    """Operands with the mapped axis first, and which of them have it."""
    moved = [moveaxis(x, d, 0) if d else x for x, d in zip(xs, dims, strict=True)]
    return moved, [d is not None for d in dims]


def batch_size(xs: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The length of the mapped axis."""
    return next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
