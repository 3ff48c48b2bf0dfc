"""Reverse mode: forward mode whose tangents are staged, then transposed.

While a function is linearised its values are computed (or traced) as usual on the parent trace,
and the operations on tangents are written down.  The resulting program is linear; running it
forward gives directional derivatives, running it backward gives gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import errors
from namoo._config import config
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    dce,
    eval_jaxpr,
    jaxpr_as_fun,
    literal_value,
)
from namoo.core.primitive import Linear, Primitive, Zero, is_zero
from namoo.core.trace import Trace, Tracer, context, eval_trace, set_trace
from namoo.primitives.families import add_any
from namoo.primitives.shape import instantiate
from namoo.transforms import recall
from namoo.transforms.jvp import JVPTrace, JVPTracer
from namoo.transforms.replay import bind_each, is_eager, replay
from namoo.transforms.stage import StageTrace, StageTracer, close, derived, stage_closed


class TangentTrace(StageTrace):
    """Writes down operations on tangents, and leaves all others to its parent."""

    def __init__(self, parent: Trace):
        super().__init__(how="grad")
        self.parent = parent
        self.eager = is_eager(parent)
        self.recalls = self.eager or parent.recalls

    def owns(self, x: Any) -> bool:
        return isinstance(x, StageTracer) and x._trace is self

    def replay(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program, written down where it has to do with tangents."""
        if not any(map(self.owns, args)):
            return replay(self.parent, closed, args)
        return bind_each(self, closed, args)

    def process(self, prim, args, params):
        for x in args:
            if type(x) is StageTracer and x._trace is self:
                return super().process(prim, args, params)
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)


class LinearizeTrace(JVPTrace):
    """Forward mode on top of a `TangentTrace`; primitives that hold programs split themselves."""

    def __init__(self, parent: Trace):
        self.tangents = TangentTrace(parent)
        super().__init__(self.tangents)

    def rule(self, prim: Primitive):
        return prim.linearize or prim.jvp

    def replay(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program, whose derivative is written down as one step."""
        primals, tangents, nonzeros = [], [], []
        for x in args:
            own = type(x) is JVPTracer and x._trace is self
            nonzeros.append(own)
            primals.append(x.primal if own else x)
            if own:
                tangents.append(x.tangent)
        trace = self.tangents
        if not tangents:
            return replay(trace.parent, closed, primals)
        if not self.eager:
            return self.rewrite(closed, args, primals, tangents, nonzeros)
        key = ("split", *nonzeros)
        split = closed.jaxpr.cache.get(key)
        if split is None:
            split = closed.jaxpr.cache[key] = linearize_jaxpr(closed, nonzeros)
        outs = replay(trace.parent, split.primal, primals)
        out_tangents = split.out_tangents
        if not any(out_tangents):
            return outs[: len(out_tangents)]
        rest = iter(outs[len(out_tangents) :])
        operands, consts = [], trace.consts
        for f, aval in zip(split.forwarded, split.residual_avals, strict=True):
            x = next(rest) if f is None else primals[f]
            # As `trace.atom` has it; the type is known.
            entry = consts.get(id(x))
            if entry is None:
                entry = consts[id(x)] = (x, Var(aval))
            operands.append(entry[1])
        for t in tangents:
            own = type(t) is StageTracer and t._trace is trace
            operands.append(t._var if own else trace.atom(t))
        results, outvars = [], []
        for x, avals in zip(outs, out_tangents, strict=False):
            if avals is not None:
                outvars.append(var := Var(avals[1]))
                x = JVPTracer(self, x, StageTracer(trace, var), avals[0])
            results.append(x)
        trace.eqns.append(JaxprEqn(operands, outvars, linear_step_p, split.step))
        return results

    def rewrite(self, closed, args, primals, tangents, nonzeros) -> list[Any]:
        """The results of a program, whose derivative is written down equation by equation, as
        without memory: so programs do not depend on what was traced before them."""
        key = ("halves", *nonzeros)
        halves = closed.jaxpr.cache.get(key)
        if halves is None:
            halves = closed.jaxpr.cache[key] = Halves(closed, nonzeros)
        if halves.tangent is None:
            return bind_each(self, closed, args)
        known = [*primals, *replay(self.tangents.parent, halves.primal, primals)]
        residuals = [known[i] for i in halves.residuals]
        out_tangents = iter(StageTrace.replay(self.tangents, halves.tangent, residuals + tangents))
        return [
            JVPTracer(self, known[i], next(out_tangents)) if nz else known[i]
            for i, nz in zip(halves.outs, halves.nonzero_out, strict=True)
        ]

    def finish(self):
        self.tangents.finish()
        super().finish()


class LinearStep(Primitive):
    """The derivative of a program that was replayed: a linear program, in one equation.

    Bound again under other transformations it becomes its own operations.
    """

    name = "linear_step"
    multiple_results = True
    holds_program = True

    def bind(self, *args, jaxpr):
        return replay(context.trace, jaxpr, args)

    def abstract(self, *avals, jaxpr):
        return jaxpr.out_avals

    def transpose(self, cts, *operands, jaxpr):
        given, linear = [], []
        for x in operands:
            linear.append(type(x) is Linear)
            if type(x) is not Linear:
                given.append(x)
        nonzeros = []
        for ct in cts:
            nonzeros.append(type(ct) is not Zero)
            if type(ct) is not Zero:
                given.append(ct)
        key = ("backward", *linear, *nonzeros)
        entry = jaxpr.jaxpr.cache.get(key)
        if entry is None:
            program, nonzero_out = transpose_jaxpr(jaxpr, linear, nonzeros)
            found = iter(nonzero_out)
            places = [lin and next(found) for lin in linear]
            entry = jaxpr.jaxpr.cache[key] = program, places
        program, places = entry
        outs = iter(replay(context.trace, program, given))
        return [next(outs) if place else None for place in places]


linear_step_p = LinearStep()


def linearize(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    nonzeros: Sequence[bool],
    force: Sequence[bool] = (),
) -> tuple[list[Any], list[bool], Jaxpr, list[Any]]:
    """Values of a flat function at `primals`, and its derivative there as a linear program.

    Args:
      fun: a function of flat arguments that returns a list.
      primals: its arguments.
      nonzeros: which of them to differentiate by.
      force: results that have a tangent in any case, of zeros if need be.

    Returns:
      the results; which of them have a tangent that is not zero; the program from the tangents of
      the inputs in `nonzeros` to those tangents; and the constants (residuals) of the program.
    """
    trace = LinearizeTrace(context.trace)
    tangents = [
        trace.tangents.new_input(aval_of(x).tangent()) if nz else Zero.of(x)
        for x, nz in zip(primals, nonzeros, strict=True)
    ]
    try:
        with set_trace(trace):
            outs = fun(*map(trace.join, primals, tangents))
            pairs = [trace.pair(x) for x in outs]
        out_tangents = [t for _, t in pairs]
        if any(force):
            with set_trace(trace.parent):
                out_tangents = [
                    instantiate(t) if f else t for t, f in zip(out_tangents, force, strict=True)
                ]
        given = [t for t in out_tangents if not is_zero(t)]
        jaxpr, residuals = trace.tangents.program(given)
    finally:
        trace.finish()
    return [x for x, _ in pairs], [not is_zero(t) for t in out_tangents], jaxpr, residuals


class Linearized:
    """A program split in two: `primal` computes results and then residuals; `tangent` maps
    residuals and then tangents (of the inputs in `nonzeros`) to the tangents in `nonzero_out`.

    `forwarded[i]` is the input that residual `i` is, or None where `primal` must output it.
    """

    tangent: ClosedJaxpr
    nonzero_out: list[bool]

    def __init__(self, closed: ClosedJaxpr, nonzeros: tuple[bool, ...], force: tuple[bool, ...]):
        residual_avals: list[ShapedArray] = []
        forwarded: list[int | None] = []

        def fun(*args):
            run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
            outs, self.nonzero_out, jaxpr, residuals = linearize(run, args, nonzeros, force)
            jaxpr, residuals = _needed(jaxpr, residuals)
            places = {id(x): i for i, x in enumerate(args)}
            residual_avals[:] = map(aval_of, residuals)
            forwarded[:] = [places.get(id(r)) for r in residuals]
            self.tangent = ClosedJaxpr(
                jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
            )
            return [*outs, *(r for r, f in zip(residuals, forwarded, strict=True) if f is None)]

        primal = stage_closed(fun, closed.in_avals, closed.jaxpr.name)
        self.primal = ClosedJaxpr(dce(primal.jaxpr, [True] * len(primal.out_avals)), primal.consts)
        self.forwarded = forwarded
        self.residual_avals = residual_avals
        self.step = {"jaxpr": self.tangent}
        tangents = iter(self.tangent.out_avals)
        self.out_tangents = [
            (aval, next(tangents)) if nz else None
            for aval, nz in zip(closed.out_avals, self.nonzero_out, strict=True)
        ]
        """For each result its type and that of its tangent, or None where that is zero."""

    def residuals(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals, from the inputs of `primal` and the residuals that it computed."""
        rest = iter(computed)
        return [next(rest) if f is None else inputs[f] for f in self.forwarded]


class Halves:
    """A program and its derivative, each operation of both as its rules write it.

    `primal` computes what is not an input; `outs` and `residuals` are places among the inputs and
    what it computes.  `tangent` maps residuals and then tangents to the tangents in `nonzero_out`;
    it is None where a tangent is not computed from tangents.
    """

    tangent: ClosedJaxpr | None = None
    nonzero_out: list[bool]
    outs: list[int]
    residuals: list[int]

    def __init__(self, closed: ClosedJaxpr, nonzeros: Sequence[bool]):
        def fun(*args):
            values, self.nonzero_out, jaxpr, residuals = linearize(
                jaxpr_as_fun(closed), args, nonzeros
            )
            computed: dict[int, Any] = {}
            places = {id(x): i for i, x in enumerate(args)}
            for x in [*values, *residuals]:
                if id(x) not in places:
                    places[id(x)] = len(places)
                    computed[id(x)] = x
            self.outs = [places[id(x)] for x in values]
            self.residuals = [places[id(x)] for x in residuals]
            if not any(type(v) is Literal or v in jaxpr.constvars for v in jaxpr.outvars):
                self.tangent, _ = close(jaxpr, residuals)
            return [*computed.values()]

        self.primal = stage_closed(fun, closed.in_avals, closed.jaxpr.name)


def _needed(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """A program without the equations, and the constants, that its results do without."""
    jaxpr = dce(jaxpr, [True] * len(jaxpr.outvars))
    used = {v for eqn in jaxpr.eqns for v in eqn.invars} | set(jaxpr.outvars)
    kept = [(v, x) for v, x in zip(jaxpr.constvars, consts, strict=True) if v in used]
    return jaxpr.replace(constvars=[v for v, _ in kept]), [x for _, x in kept]


def linearize_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], force: Sequence[bool] | None = None
) -> Linearized:
    """The two halves of a program's derivative, made once; results in `force` have a tangent in
    any case, of zeros if need be."""
    nonzeros = tuple(nonzeros)
    force = (False,) * len(closed.out_avals) if force is None else tuple(force)
    make = lambda: Linearized(closed, nonzeros, force)  # noqa: E731
    return derived(closed.jaxpr, ("linearize", nonzeros, force), make)


def tangents_out(nonzero_out: Sequence[bool], avals: Sequence[Any], tangents: Sequence[Any]):
    """A full list of result tangents, with `Zero` where there is none."""
    rest = iter(tangents)
    return [
        next(rest) if nz else Zero(aval_of(x).tangent())
        for nz, x in zip(nonzero_out, avals, strict=True)
    ]


def settle(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent of a value that is the same along some mesh axes: what differs is added up."""
    extra = aval_of(ct).vma - aval.vma
    return sum_over(ct, tuple(sorted(extra, key=str))) if extra else ct


def _no_axes(x: Any, axes: tuple) -> Any:
    raise AssertionError(f"there are no collectives to add over {axes} with")


sum_over: Callable[[Any, tuple], Any] = _no_axes
"""Adds a value over mesh axes; `control.axes` puts it here."""


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents of the inputs that are `Linear`, given those of the results (may be `Zero`).

    Equations that do not depend on linear inputs are evaluated first, in order; the others are
    then transposed, last one first.
    """
    if context.trace is eval_trace and not context.checked:
        program = _steps_backward(jaxpr, consts, inputs, cts)
        if program is not None:
            closed, nonzero = program
            outs = iter(replay(eval_trace, closed, [*consts, *(c for c in cts if not is_zero(c))]))
            return [
                next(outs) if nz else Zero(v.aval.tangent())
                for v, nz in zip(jaxpr.invars, nonzero, strict=True)
            ]
    place = errors.place
    before = place.eqn, place.operation
    try:
        return _backward_pass(jaxpr, consts, inputs, cts, place)
    finally:
        place.eqn, place.operation = before


@errors.replays_equations
def _backward_pass(jaxpr, consts, inputs, cts, place):
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Atom] = set()
    for var, x in zip(jaxpr.invars, inputs, strict=True):
        if type(x) is Linear:
            linear.add(var)
        else:
            env[var] = x

    def read(atom):
        return literal_value(atom) if type(atom) is Literal else env[atom]

    waiting: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if not linear.isdisjoint(eqn.invars):
            linear.update(eqn.outvars)
            waiting.append(eqn)
        else:
            place.eqn, place.operation = eqn, eqn.known_place()
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )

    ct_env: dict[Var, Any] = {}

    def accumulate(atoms, cts):
        for atom, ct in zip(atoms, cts, strict=True):
            if ct is not None and type(ct) is not Zero and atom in linear:
                if context.checked:
                    ct = settle(ct, atom.aval)
                ct_env[atom] = add_any(ct_env[atom], ct) if atom in ct_env else ct

    accumulate(jaxpr.outvars, cts)
    for eqn in reversed(waiting):
        out_cts = [ct_env.pop(v, None) for v in eqn.outvars]
        count = len([ct for ct in out_cts if ct is not None])
        if not count:
            continue
        if count < len(out_cts):
            out_cts = [
                Zero(v.aval.tangent()) if ct is None else ct
                for v, ct in zip(eqn.outvars, out_cts, strict=True)
            ]
        place.eqn, place.operation = eqn, eqn.known_place()
        operands = [Linear(a.aval) if a in linear else read(a) for a in eqn.invars]
        try:
            in_cts = _transposed(eqn, out_cts, operands)
        except NotImplementedError as error:
            if eqn.source is not None:
                error.add_note(f"The operation was asked for at {eqn.source}.")
            raise
        accumulate(eqn.invars, in_cts)
    return [
        ct_env.get(var, Zero(var.aval.tangent()))
        for var, x in zip(jaxpr.invars, inputs, strict=True)
        if type(x) is Linear
    ]


_backward: dict[Any, Any] = {}
"""Programs of `_steps_backward`; None for what has happened once."""
_LIMIT, _MOST_STEPS = 256, 1000


def _steps_backward(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any]
) -> tuple[ClosedJaxpr, list[bool]] | None:
    """`backward_pass` as one program of the constants and of the cotangents that are not zero, and
    which of its results are not.

    None where there is more to it than steps that were replayed, which tell all types, or where
    these steps have not met in this way before.
    """
    if len(jaxpr.eqns) > _MOST_STEPS or not all(type(x) is Linear for x in inputs):
        return None
    numbers: dict[Any, int] = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    key: list[Any] = [config.trace_id(), len(consts), len(inputs)]
    for eqn in jaxpr.eqns:
        if eqn.primitive is not linear_step_p:
            return None
        key.append(eqn.params["jaxpr"])
        for atom in eqn.invars:
            if type(atom) is Literal:
                return None
            key.append(numbers[atom])
        for v in eqn.outvars:
            numbers[v] = len(numbers)
    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        if type(atom) is Literal:
            return None
        key += (numbers[atom], None if is_zero(ct) else aval_of(ct))
    found = tuple(key)
    entry = _backward.get(found)
    if entry is not None:
        return entry
    if recall.patient and found not in _backward:
        if len(_backward) >= _LIMIT:
            _backward.clear()
        _backward[found] = None
        return None
    nonzero: list[bool] = []

    def fun(*values):
        rest = iter(values[len(consts) :])
        given = [ct if is_zero(ct) else next(rest) for ct in cts]
        outs = backward_pass(jaxpr, values[: len(consts)], inputs, given)
        nonzero[:] = [not is_zero(ct) for ct in outs]
        return [ct for ct in outs if not is_zero(ct)]

    avals = [aval_of(x) for x in (*consts, *cts) if not is_zero(x)]
    entry = _backward[found] = stage_closed(fun, avals), nonzero
    return entry


def _transposed(eqn: JaxprEqn, cts: list[Any], operands: list[Any]) -> Sequence[Any]:
    """The cotangents of an equation's operands, by its rule; from memory, where equal equations
    were transposed before.  None and `Zero` stand for those that are zero."""
    trace = context.trace
    if eqn.derived is None or not eqn.primitive.only_binds or trace.eager or not trace.recalls:
        return _by_rule(eqn, cts, operands)
    key: list[Any] = [config.trace_id()]
    given = []
    for x in (*operands, *cts):
        kind = type(x)
        if kind is Linear or kind is Zero:
            key.append(kind)
        elif isinstance(x, Tracer):
            key.append(x.aval.weak_type)
            given.append(x)
        else:
            return _by_rule(eqn, cts, operands)
    found = tuple(key)
    entry = eqn.derived.get(found)
    if entry is None:
        nonzero: list[bool] = []

        def fun(*values):
            rest = iter(values)
            known = [x if type(x) in (Linear, Zero) else next(rest) for x in (*operands, *cts)]
            in_cts = _by_rule(eqn, known[len(operands) :], known[: len(operands)])
            nonzero[:] = [ct is not None and type(ct) is not Zero for ct in in_cts]
            return [ct for ct, nz in zip(in_cts, nonzero, strict=True) if nz]

        program = stage_closed(fun, [x.aval for x in given])
        entry = eqn.derived[found] = program, nonzero
    program, nonzero = entry
    outs = iter(replay(trace, program, given))
    return [next(outs) if nz else None for nz in nonzero]


def _by_rule(eqn: JaxprEqn, cts: list[Any], operands: list[Any]) -> Sequence[Any]:
    prim = eqn.primitive
    return prim.transpose(cts if prim.multiple_results else cts[0], *operands, **eqn.params)


def transpose_jaxpr(
    closed: ClosedJaxpr, is_linear: Sequence[bool], nonzero_cts: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that transposes another one in its linear inputs.

    Its inputs are the inputs that are not linear and then the cotangents in `nonzero_cts`; its
    results are the cotangents of the linear inputs that are not zero, told by the second value.
    """
    is_linear, nonzero_cts = tuple(is_linear), tuple(nonzero_cts)

    def make():
        nonzero_out: list[bool] = []

        def fun(*args):
            rest = iter(args)
            inputs = [
                Linear(a) if lin else next(rest)
                for a, lin in zip(closed.in_avals, is_linear, strict=True)
            ]
            cts = [
                next(rest) if nz else Zero(a.tangent())
                for a, nz in zip(closed.out_avals, nonzero_cts, strict=True)
            ]
            outs = backward_pass(closed.jaxpr, closed.consts, inputs, cts)
            nonzero_out[:] = [not is_zero(ct) for ct in outs]
            return [ct for ct in outs if not is_zero(ct)]

        known = [a for a, lin in zip(closed.in_avals, is_linear, strict=True) if not lin]
        ct_avals = [a.tangent() for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]
        return stage_closed(fun, [*known, *ct_avals], closed.jaxpr.name), nonzero_out

    return derived(closed.jaxpr, ("transpose", is_linear, nonzero_cts), make)
