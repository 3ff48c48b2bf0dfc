"""Replay a program under a trace.

The rules of a program's operations depend on types alone, so each transformation derives another
program from it once, and replays that on its parent.  At the bottom, the program runs as one Python
function over NumPy arrays, or its equations are appended to the program that is being staged: the
same equations, in the same order, as the rules would write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base.caches import program_key
from namoo._base.floating_errors import floating_errors_ignored
from namoo._base.lazy import later
from namoo._base.runtime import native
from namoo._base.source_context import Source, user_source
from namoo.core.array import EagerArray, PlacedArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    literal_value,
)
from namoo.core.primitive import is_zero
from namoo.core.trace import Trace, Tracer, eval_trace, set_trace, unaliased
from namoo.memo import trace_cache
from namoo.memo.trace_cache import SEEN, mark_seen, programs
from namoo.transforms.batch import Axis, BatchTrace, BatchTracer, batch
from namoo.transforms.jvp import JVPTrace, JVPTracer, jvp_jaxpr
from namoo.transforms.linear import TangentTrace
from namoo.transforms.stage import StageTrace, StageTracer, bind_each, stage_closed

numpy_program = later("namoo.memo.numpy_program")
_NUMPY = program_key("NumPy function")
_FORM = program_key("numbered form")


def replay(trace: Trace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Return the results of a program whose operations `trace` interprets.

    The trace need not be the current one.
    """
    if trace is not eval_trace:
        if trace.replays and (rule := rules.get(type(trace))) is not None:
            return rule(trace, closed, args)
        with set_trace(trace):
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    jaxpr = closed.jaxpr
    run = jaxpr.cache.get(_NUMPY)
    if run is None:
        weak = [a.weak_type for a in closed.out_avals]
        run = jaxpr.cache[_NUMPY] = numpy_program.compile_to_numpy(closed), weak
    compute, weak = run
    values, others = [], ()
    for x in args:
        if type(x) is EagerArray:
            values.append(x._value)
        elif isinstance(x, Tracer) or (isinstance(x, PlacedArray) and x._follows):
            # The value is on a device, and so is the work.
            with set_trace(eval_trace):
                return eval_jaxpr(jaxpr, closed.consts, *args)
        else:
            values.append(to_numpy(x))
            if isinstance(x, np.ndarray):
                others = (*others, x)
    with floating_errors_ignored():
        outs = compute(*values)
    if others:
        outs = [unaliased(o, others) for o in outs]
    return list(map(EagerArray, outs, weak))


def _under_jvp(trace: JVPTrace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    primals, tangents = zip(*map(trace.pair, args), strict=True) if args else ((), ())
    nonzeros = [not is_zero(t) for t in tangents]
    if True not in nonzeros:
        return replay(trace.parent, closed, primals)
    if not trace.eager and any(
        nz and aval_of(t).weak_type is not a.weak_type
        for t, a, nz in zip(tangents, closed.in_avals, nonzeros, strict=True)
    ):
        return bind_each(trace, closed, args)
    program, nonzero_out = jvp_jaxpr(closed, nonzeros)
    outs = replay(trace.parent, program, [*primals, *(t for t in tangents if not is_zero(t))])
    rest = iter(outs[len(nonzero_out) :])
    return [
        JVPTracer(trace, x, next(rest)) if nz else x
        for x, nz in zip(outs, nonzero_out, strict=False)
    ]


def _under_batch(trace: BatchTrace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    values, dims, tag = [], [], trace.tag
    for x in args:
        own = type(x) is BatchTracer and x._trace.tag is tag
        values.append(x.value if own else x)
        dims.append(x.dim if own else None)
    if dims.count(None) == len(dims):
        return replay(trace.parent, closed, values)
    # There are many batch sizes: the first call with one makes no program, and not all are kept.
    key = (closed.jaxpr, trace.axis.size, *dims)
    entry = programs.get(key)
    if entry is None:
        mark_seen(key)
        if trace_cache.trace_on_second_call and not trace.eager:
            return bind_each(trace, closed, args)
    if entry is None or entry is SEEN:
        entry = programs[key] = _batched(closed, Axis(trace.axis.size), dims)
    program, out_types = entry
    outs = replay(trace.parent, program, values)
    return [
        x if dim is None else BatchTracer(trace, x, dim, aval)
        for x, (dim, aval) in zip(outs, out_types, strict=True)
    ]


def _batched(
    closed: ClosedJaxpr, axis: Axis, dims: Sequence[int | None]
) -> tuple[ClosedJaxpr, list[tuple[int | None, ShapedArray]]]:
    """Map a program over axis `dims[i]` of each input.

    Returns:
        The program; and for each result where its mapped axis is, and its type in one example.
    """
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


def _under_tangents(trace: TangentTrace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    if not any(map(trace.owns, args)):
        return replay(trace.parent, closed, args)
    return bind_each(trace, closed, args)


def _under_stage(trace: StageTrace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    form = jaxpr.cache.get(_FORM)
    if form is None:
        form = jaxpr.cache[_FORM] = numbered_form(jaxpr)
    values = [*closed.consts, *args] if closed.consts else args
    return append_equations(trace, form, values, user_source())


rules: dict[type, Callable[..., list[Any]]] = {
    JVPTrace: _under_jvp,
    BatchTrace: _under_batch,
    TangentTrace: _under_tangents,
    StageTrace: _under_stage,
}
"""How a program is replayed, by the class of the trace; `linear_steps` adds `LinearizeTrace`."""

Form = tuple[tuple[int, ...], tuple[Atom, ...], tuple[tuple, ...], tuple[int, ...]]


def numbered_form(jaxpr: Jaxpr) -> Form:
    """Number the atoms of a program: inputs, then literals, then results of equations.

    Returns:
        For each used input its index among all inputs, in the order of first use (constants are
        listed in this order); the literals; for each equation the numbers of its operands, the
        types of its results, the primitive and the parameters; the numbers of the results.
    """
    numbers = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    used = dict.fromkeys([*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars])
    inputs = [a for a in used if a in numbers]
    literals = [a for a in used if type(a) is Literal]
    number: dict[Atom, int] = {a: i for i, a in enumerate([*inputs, *literals])}
    steps = []
    for eqn in jaxpr.eqns:
        operands = tuple([number[a] for a in eqn.invars])
        types = tuple([v.aval for v in eqn.outvars])
        steps.append((operands, types, eqn.primitive, eqn.params))
        for v in eqn.outvars:
            number[v] = len(number)
    return (
        tuple([numbers[v] for v in inputs]),
        tuple(literals),
        tuple(steps),
        tuple([number[a] for a in jaxpr.outvars]),
    )


def _append_equations(
    trace: StageTrace, form: Form, values: Sequence[Any], source: Source | None
) -> list[Any]:
    """Append the equations of a program, on other operands, to a trace; return the results."""
    inputs, literals, steps, results = form
    atoms: list[Atom] = []
    for i in inputs:
        x = values[i]
        own = type(x) is StageTracer and x._trace is trace
        atoms.append(x._var if own else trace.atom(x))
    atoms += literals
    for operands, types, primitive, params in steps:
        outvars = [Var(aval) for aval in types]
        invars = [atoms[i] for i in operands]
        trace.eqns.append(JaxprEqn(invars, outvars, primitive, params, source))
        atoms += outvars
    outs = [atoms[i] for i in results]
    return [literal_value(a) if isinstance(a, Literal) else StageTracer(trace, a) for a in outs]


append_equations: Callable[..., list[Any]] = _append_equations
if native is not None:
    native.bind_writing(StageTracer, literal_value)
    append_equations = native.written
