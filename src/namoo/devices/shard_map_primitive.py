"""The primitive of `shard_map`: one program that every device of a mesh runs on its own parts.

A *layout* describes how an array is split: for each of its dimensions the mesh axes that it is
split over. Along other axes all devices have the same values. On one device the program is mapped
over the parts (`expand`), which defines its meaning; several devices run it unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import namoo.api.wiring  # noqa: F401  # fills in the late attachments
from namoo._base.caches import derived, program_key
from namoo.analysis.mesh_types import MeshArray
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.core.primitive import Zero, is_linear, is_zero
from namoo.core.trace import context
from namoo.primitives.shape import reshape, shape_of, transpose
from namoo.primitives.slicing import index_in_dim
from namoo.transforms.batch import Axis, batch, batch_jaxpr, batch_to, to_front
from namoo.transforms.jvp import jvp_jaxpr
from namoo.transforms.linear import linearize_jaxpr, tangents_out
from namoo.transforms.program import ProgramPrimitive, jaxpr_axes
from namoo.transforms.stage import stage_closed
from namoo.transforms.transpose import transpose_jaxpr

Layout = tuple[tuple[Any, ...], ...]


class axes_in_scope:
    """Bring the axes of a mesh into scope; if `checked`, variation along them is tracked."""

    __slots__ = ("axes", "checked", "mesh", "previous")

    def __init__(self, mesh: Any, axes: Sequence[Any], checked: bool):
        self.mesh = mesh
        self.axes = {name: size for name, size in mesh.shape.items() if name in axes}
        self.checked = frozenset(self.axes) if checked else frozenset()

    def __enter__(self):
        self.previous = context.axes, context.checked, context.mesh
        context.mesh = self.mesh
        context.axes = {**context.axes, **self.axes}
        context.checked = context.checked - frozenset(self.axes) | self.checked

    def __exit__(self, *exc):
        context.axes, context.checked, context.mesh = self.previous


def varying(aval: ShapedArray, layout: Layout, checked: bool) -> ShapedArray:
    """Return the type of a part, which varies along the axes that the array is split over."""
    return MeshArray(aval, aval.vma | used(layout)) if checked else aval


def used(layout: Layout) -> frozenset:
    """Return the mesh axes that an array is split over."""
    return frozenset(name for names in layout for name in names)


def part_shape(shape: Sequence[int], layout: Layout, mesh: Any) -> tuple[int, ...]:
    """Return the shape of one device's part of an array."""
    return tuple(n // _count(names, mesh) for n, names in zip(shape, layout, strict=True))


def whole_shape(shape: Sequence[int], layout: Layout, mesh: Any) -> tuple[int, ...]:
    """Return the shape of an array whose parts have this shape."""
    return tuple(n * _count(names, mesh) for n, names in zip(shape, layout, strict=True))


def _count(names: Sequence[Any], mesh: Any) -> int:
    return math.prod(mesh.shape[name] for name in names)


_EXPANDED = program_key("shard_map for one device", keyed_by="mesh, layouts")
_WITH_AXIS = program_key("shard_map with a leading axis", keyed_by="first result with the axis")
_WITHOUT_AXIS = program_key("shard_map without a leading axis", keyed_by="inputs with the axis")
_UNCHECKED = program_key("shard_map transposed", keyed_by="shares of cotangents, axes of sums")


class ShardMap(ProgramPrimitive):
    """Run the program `jaxpr` on every device of `mesh`, on parts split by `ins`, joined by `outs`.

    Other parameters: `axes`, the mesh axes that the program is mapped over; `checked`, whether
    variation along them is tracked; `name_sharding`, which makes a sharding from a layout.
    """

    name = "shard_map"

    def evaluate(self, *values, **params):
        if params["mesh"].size > 1 and params["mesh"].has_devices:
            return self.on_devices(self, values, params)
        return self.executable(self.expanded(**params))(values)

    def expanded(self, *, jaxpr, mesh, ins, outs, **params) -> ClosedJaxpr:
        """Return the operation in terms of others, for one device."""

        def make():
            avals = [
                a.strong().update(shape=whole_shape(a.shape, layout, mesh), vma=frozenset())
                for a, layout in zip(jaxpr.in_avals, ins, strict=True)
            ]
            run = lambda *xs: expand(jaxpr, mesh, ins, outs, params["axes"], xs)  # noqa: E731
            return stage_closed(run, avals, jaxpr.jaxpr.name)

        return derived(jaxpr.jaxpr, (_EXPANDED, mesh, ins, outs), make)

    def abstract(self, *avals, jaxpr, mesh, outs, **params):
        wholes = [
            ShapedArray(whole_shape(a.shape, layout, mesh), a.dtype, a.weak_type)
            for a, layout in zip(jaxpr.out_avals, outs, strict=True)
        ]
        if context.checked or not mesh.explicit_axes:
            return wholes
        name = params["name_sharding"]
        return [name(mesh, x).typed(a) for a, x in zip(wholes, outs, strict=True)]

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["jaxpr"].out_avals]

    def collective_axes(self, params):
        inner = jaxpr_axes(params["jaxpr"].jaxpr)
        return tuple(name for name in inner if name not in params["axes"])

    def native(self, emit, *operands, **params):
        return emit.inline(self.expanded(**params), operands)

    def stablehlo(self, hlo, *operands, jaxpr, mesh, ins, outs, axes, name_sharding, checked):
        if hlo.module.partitions == 1:
            closed = self.expanded(jaxpr=jaxpr, mesh=mesh, ins=ins, outs=outs, axes=axes)
            return hlo.inline(closed, operands)
        shardings = [[name_sharding(mesh, x) for x in layouts] for layouts in (ins, outs)]
        whole = name_sharding(mesh, ())
        return hlo.manual_computation(jaxpr, operands, mesh, axes, *shardings, whole)

    def jvp(self, primals, tangents, *, jaxpr, ins, outs, **params):
        nonzeros = [not is_zero(t) for t in tangents]
        with self.scope(params):
            program, nonzero_out = jvp_jaxpr(jaxpr, nonzeros)
        given = [t for t in tangents if not is_zero(t)]
        both = self.bind(
            *primals,
            *given,
            jaxpr=program,
            ins=(*ins, *_chosen(ins, nonzeros)),
            outs=(*outs, *_chosen(outs, nonzero_out)),
            **params,
        )
        n = len(outs)
        return both[:n], tangents_out(nonzero_out, both[:n], both[n:])

    def linearize(self, primals, tangents, *, jaxpr, ins, outs, **params):
        nonzeros = [not is_zero(t) for t in tangents]
        with self.scope(params):
            split = linearize_jaxpr(jaxpr, nonzeros)
            n = len(outs)
            forward, everywhere = _with_axis(split.primal, n, params)
        results = self.bind(
            *primals,
            jaxpr=forward,
            ins=ins,
            outs=(*outs, *everywhere),
            **params,
        )
        nonzero_out = split.nonzero_out
        out_tangents = []
        if any(nonzero_out):
            residuals = split.residuals(primals, results[n:])
            rest = iter(everywhere)
            layouts = [next(rest) if f is None else ins[f] for f in split.forwarded]
            computed = [f is None for f in split.forwarded]
            with self.scope(params):
                backward = _without_axis(split.tangent, computed)
            given = [t for t in tangents if not is_zero(t)]
            out_tangents = self.bind(
                *residuals,
                *given,
                jaxpr=backward,
                ins=(*layouts, *_chosen(ins, nonzeros)),
                outs=_chosen(outs, nonzero_out),
                **params,
            )
        return results[:n], tangents_out(nonzero_out, results[:n], out_tangents)

    def transpose(self, cts, *operands, jaxpr, mesh, ins, outs, axes, checked, **params):
        linear = [is_linear(x) for x in operands]
        nonzeros = [not is_zero(ct) for ct in cts]
        params = {"mesh": mesh, "axes": axes, "checked": checked, **params}
        with self.scope(params):
            if checked:
                program, nonzero_out = transpose_jaxpr(jaxpr, linear, nonzeros)
            else:
                program, nonzero_out = _transpose_unchecked(
                    jaxpr, linear, nonzeros, mesh, axes, ins, outs
                )
        known = [x for x in operands if not is_linear(x)]
        given = [ct for ct in cts if not is_zero(ct)]
        linear_ins = _chosen(ins, linear)
        results = iter(
            self.bind(
                *known,
                *given,
                jaxpr=program,
                ins=(*_chosen(ins, [not x for x in linear]), *_chosen(outs, nonzeros)),
                outs=_chosen(linear_ins, nonzero_out),
                **params,
            )
        )
        nonzero = iter(nonzero_out)
        return [
            (next(results) if next(nonzero) else Zero(x.aval.tangent())) if lin else None
            for x, lin in zip(operands, linear, strict=True)
        ]

    def batch(self, xs, dims, *, axis, jaxpr, ins, outs, **params):
        xs, batched = to_front(xs, dims)
        with self.scope(params):
            program, batched_out = batch_jaxpr(jaxpr, axis, batched)
        results = self.bind(
            *xs,
            jaxpr=program,
            ins=_in_front(ins, batched),
            outs=_in_front(outs, batched_out),
            **params,
        )
        return results, [0 if b else None for b in batched_out]

    def scope(self, params):
        return axes_in_scope(params["mesh"], params["axes"], params["checked"])


shard_map_p = ShardMap()


def _chosen(items: Sequence[Any], chosen: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(x for x, c in zip(items, chosen, strict=True) if c)


def _in_front(layouts: Sequence[Layout], batched: Sequence[bool]) -> tuple[Layout, ...]:
    """Return the layouts of arrays with one more leading dimension, which is not split."""
    return tuple(((), *layout) if b else layout for layout, b in zip(layouts, batched, strict=True))


def _with_axis(closed: ClosedJaxpr, start: int, params: dict) -> tuple[ClosedJaxpr, list[Layout]]:
    """Give the results from `start` on a leading axis of length 1, so that devices keep their own.

    Returns:
        the program, and the layouts of these results.
    """

    def make():
        def run(*xs):
            results = eval_jaxpr(closed.jaxpr, closed.consts, *xs)
            own = [reshape(x, (1, *shape_of(x))) for x in results[start:]]
            return [*results[:start], *own]

        return stage_closed(run, closed.in_avals, closed.jaxpr.name)

    program = derived(closed.jaxpr, (_WITH_AXIS, start), make)
    layouts: list[Layout] = []
    for a in closed.out_avals[start:]:
        own = tuple(n for n in params["axes"] if not params["checked"] or n in a.vma)
        layouts.append((own, *[()] * a.ndim))
    return program, layouts


def _without_axis(closed: ClosedJaxpr, chosen: Sequence[bool]) -> ClosedJaxpr:
    """Return a program whose chosen inputs have a leading axis of length 1, which it removes."""
    count = len(chosen)

    def make():
        avals = list(closed.in_avals)
        for i, c in enumerate(chosen):
            if c:
                avals[i] = avals[i].update(shape=(1, *avals[i].shape))

        def run(*xs):
            xs = [
                reshape(x, shape_of(x)[1:]) if i < count and chosen[i] else x
                for i, x in enumerate(xs)
            ]
            return eval_jaxpr(closed.jaxpr, closed.consts, *xs)

        return stage_closed(run, avals, closed.jaxpr.name)

    return derived(closed.jaxpr, (_WITHOUT_AXIS, tuple(chosen)), make)


def _transpose_unchecked(jaxpr, linear, nonzeros, mesh, axes, ins, outs):
    """Transpose a program whose variation between devices is not tracked.

    A result that is declared equal on several devices is one value: each device takes its share of
    the cotangent. The cotangent of an input that all devices share is the sum over them.
    """
    program, nonzero_out = transpose_jaxpr(jaxpr, linear, nonzeros)
    known = len(linear) - sum(linear)
    shares = [
        math.prod(mesh.shape[name] for name in axes if name not in used(layout))
        for layout in _chosen(outs, nonzeros)
    ]
    sums = [
        tuple(name for name in axes if name not in used(layout))
        for layout in _chosen(_chosen(ins, linear), nonzero_out)
    ]

    def make():
        from namoo.control.collective_primitives import psum_p
        from namoo.primitives.elementwise import div, full_like

        def run(*xs):
            cts = [
                div(ct, full_like(ct, share)) if share > 1 else ct
                for ct, share in zip(xs[known:], shares, strict=True)
            ]
            results = eval_jaxpr(program.jaxpr, program.consts, *xs[:known], *cts)
            return [
                psum_p.bind(x, axes=names, axis_index_groups=None) if names else x
                for x, names in zip(results, sums, strict=True)
            ]

        return stage_closed(run, program.in_avals, program.jaxpr.name)

    key = (_UNCHECKED, tuple(shares), tuple(sums))
    return derived(program.jaxpr, key, make), nonzero_out


def expand(
    jaxpr: ClosedJaxpr,
    mesh: Any,
    ins: Sequence[Layout],
    outs: Sequence[Layout],
    axes: Sequence[Any],
    xs: Sequence[Any],
) -> list[Any]:
    """Split the arrays, map the program over the parts along every mesh axis, join the results."""
    names = [name for name in mesh.axis_names if name in axes]
    uses = [used(layout) for layout in ins]
    result_uses = [used(layout) for layout in outs]

    def along(level: int, *parts: Any) -> list[Any]:
        if level == len(names):
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *parts)
        axis = Axis(mesh.shape[names[level]], names[level], devices=True)
        dims = [0 if axis.name in use else None for use in uses]
        results, result_dims = batch(lambda *x: along(level + 1, *x), axis, parts, dims)
        return [
            _along(axis, x, d, axis.name in use)
            for x, d, use in zip(results, result_dims, result_uses, strict=True)
        ]

    parts = [_cut(x, layout, mesh, names) for x, layout in zip(xs, ins, strict=True)]
    return [
        _joined(x, layout, mesh, names) for x, layout in zip(along(0, *parts), outs, strict=True)
    ]


def _along(axis: Axis, x: Any, dim: int | None, wanted: bool) -> Any:
    """Move the mesh axis of a result to the front, or drop it where all devices are equal."""
    if wanted:
        return batch_to(axis, x, dim)
    return x if dim is None else index_in_dim(x, 0, dim, keepdims=False)


def _cut(x: Any, layout: Layout, mesh: Any, names: Sequence[Any]) -> Any:
    """Split an array: the mesh axes come to the front, in the mesh's order."""
    shape: list[int] = []
    found: dict[Any, int] = {}
    rest = []
    for n, own in zip(shape_of(x), layout, strict=True):
        for name in own:
            found[name] = len(shape)
            shape.append(mesh.shape[name])
        rest.append(len(shape))
        shape.append(n // _count(own, mesh))
    front = [found[name] for name in names if name in found]
    return transpose(reshape(x, shape), [*front, *rest])


def _joined(x: Any, layout: Layout, mesh: Any, names: Sequence[Any]) -> Any:
    """The inverse of `_cut`."""
    front = [name for name in names if name in used(layout)]
    place = {name: i for i, name in enumerate(front)}
    order: list[int] = []
    for i, own in enumerate(layout):
        order += [place[name] for name in own]
        order.append(len(front) + i)
    shape = shape_of(x)[len(front) :]
    return reshape(transpose(x, order), whole_shape(shape, layout, mesh))
