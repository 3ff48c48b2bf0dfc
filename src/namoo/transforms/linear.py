"""Reverse mode: forward mode whose tangents are staged, then transposed.

While a function is linearised its values are computed (or traced) as usual on the parent trace,
and the operations on tangents are written down.  The resulting program is linear; running it
forward gives directional derivatives, running it backward gives gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from namoo import errors
from namoo._config import config
from namoo.core.array import Array
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
from namoo.primitives.shape import instantiate, zeros
from namoo.transforms import recall
from namoo.transforms.jvp import JVPTrace, JVPTracer
from namoo.transforms.replay import bind_each, is_eager, replay
from namoo.transforms.stage import (
    Form,
    StageTrace,
    StageTracer,
    close,
    derived,
    stage_closed,
    written,
)


class TangentTrace(StageTrace):
    """Writes down operations on tangents, and leaves all others to its parent."""

    def __init__(self, parent: Trace):
        super().__init__(how="grad")
        self.parent = parent
        self.eager = is_eager(parent)
        self.recalls = self.eager or parent.recalls
        self.linear = False
        """Whether operations on tangents are linear: the rule that binds them split them itself."""

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
                if prim.holds_program and not self.linear:
                    moved = prim.dependent([*map(self.owns, args)], params)
                    if moved is not None and not all(moved):
                        return self.split(prim, args, params)
                return super().process(prim, args, params)
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)

    def split(self, prim, args, params):
        """The results of a program that computes values beside tangents: the values, on the parent,
        and the tangents, by a linear program.

        Rules for forward mode bind such programs. They are linear in the tangents, and a linear
        function is its own derivative, at zero as elsewhere.
        """
        if (program := prim.inlined(params)) is not None:
            return bind_each(self, program, args)
        own = [*map(self.owns, args)]
        with set_trace(self.parent):
            at = [zeros(x.aval) if o else x for x, o in zip(args, own, strict=True)]
            outs, nonzeros, jaxpr, residuals = linearize(
                lambda *xs: prim.bind(*xs, **params), at, own
            )
        self.linear, before = True, self.linear
        try:
            given = [x for x, o in zip(args, own, strict=True) if o]
            tangents = iter(eval_jaxpr(jaxpr, residuals, *given))
        finally:
            self.linear = before
        return [next(tangents) if nz else x for x, nz in zip(outs, nonzeros, strict=True)]


class LinearizeTrace(JVPTrace):
    """Forward mode on top of a `TangentTrace`; primitives that hold programs split themselves."""

    def __init__(self, parent: Trace):
        self.tangents = TangentTrace(parent)
        super().__init__(self.tangents)

    def rule(self, prim: Primitive):
        return prim.jvp if prim.linearize is None else partial(self.linearize, prim)

    def linearize(self, prim: Primitive, primals, tangents, **params):
        """Results and tangents of an operation that splits its own programs."""
        trace = self.tangents
        trace.linear, before = True, trace.linear
        try:
            return prim.linearize(primals, tangents, **params)
        finally:
            trace.linear = before

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
        residuals, consts = [], trace.consts
        for f, aval in zip(split.forwarded, split.residual_avals, strict=True):
            x = next(rest) if f is None else primals[f]
            # As `trace.atom` has it; the type is known.
            entry = consts.get(id(x))
            if entry is None:
                entry = consts[id(x)] = (x, Var(aval))
            residuals.append(entry[1])
        moved = iter(self.step(split.step, residuals, tangents))
        return [
            x if avals is None else JVPTracer(self, x, next(moved), avals)
            for x, avals in zip(outs, out_tangents, strict=False)
        ]

    def rewrite(self, closed, args, primals, tangents, nonzeros) -> list[Any]:
        """The results of a program that will be written down as it is without memory: so programs
        do not depend on what was traced before them."""
        key = ("halves", *nonzeros)
        halves = closed.jaxpr.cache.get(key)
        if halves is None:
            halves = closed.jaxpr.cache[key] = Halves(closed, nonzeros)
        if halves.step is None:
            return bind_each(self, closed, args)
        trace = self.tangents
        values = primals + replay(trace.parent, halves.primal, primals)
        if halves.moves:
            source, residuals = errors.user_source(), [values[i] for i in halves.residuals]
            variables = set()
            for t in tangents:
                if type(t) is StageTracer:
                    variables.add(t._var)
            if len(variables) == len(tangents):
                moved = written(trace, halves.form, residuals + tangents, source)
            else:  # a tangent comes twice, or is no variable
                atoms = [trace.atom(x) for x in residuals]
                moved = self.step(halves.step, atoms, tangents, source)
            tangents = tangents + moved
        return [
            values[i] if t is None else JVPTracer(self, values[i], tangents[t])
            for i, t in halves.outs
        ]

    def step(self, step, residuals, tangents, source=None) -> list[StageTracer]:
        """The tangents that a step maps others to, written down as one equation."""
        trace = self.tangents
        given = []
        for t in tangents:
            own = type(t) is StageTracer and t._trace is trace
            given.append(t._var if own else trace.atom(t))
        if len(given) > 1 and len(set(given)) < len(given):
            step, given = _given_once(step, given)
        outvars = [Var(v.aval) for v in step["jaxpr"].jaxpr.outvars]
        trace.eqns.append(JaxprEqn(residuals + given, outvars, linear_step_p, step, source))
        return [StageTracer(trace, v) for v in outvars]

    def finish(self):
        self.tangents.finish()
        super().finish()


class LinearStep(Primitive):
    """The derivative of a program that was replayed: a linear program, in one equation.

    Bound again under other transformations it becomes its own operations; cotangents take it in
    `_through_step`.
    """

    name = "linear_step"
    multiple_results = True
    holds_program = True
    only_binds = True

    def bind(self, *args, jaxpr):
        return replay(context.trace, jaxpr, args)

    def abstract(self, *avals, jaxpr):
        return jaxpr.out_avals


linear_step_p = LinearStep()


def _given_once(step: dict[str, ClosedJaxpr], tangents: list[Atom]) -> tuple[dict, list[Atom]]:
    """A step on tangents of which some are the same, as one that is given each of them once."""
    jaxpr = step["jaxpr"].jaxpr
    first: dict[Atom, int] = {}
    pattern = tuple([first.setdefault(t, len(first)) for t in tangents])

    def make():
        inputs: dict[int, Var] = {}
        residuals = jaxpr.invars[: -len(tangents)]
        same: dict[Atom, Atom] = {
            v: inputs.setdefault(i, v)
            for v, i in zip(jaxpr.invars[-len(tangents) :], pattern, strict=True)
        }
        eqns = [eqn.replace(invars=[same.get(a, a) for a in eqn.invars]) for eqn in jaxpr.eqns]
        outvars = [same.get(a, a) for a in jaxpr.outvars]
        return {"jaxpr": ClosedJaxpr(Jaxpr([], [*residuals, *inputs.values()], outvars, eqns))}

    return derived(jaxpr, ("given once", pattern), make), [*first]


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
        self.out_tangents = [
            aval if nz else None
            for aval, nz in zip(closed.out_avals, self.nonzero_out, strict=True)
        ]
        """For each result its type, or None where its tangent is zero."""

    def residuals(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals, from the inputs of `primal` and the residuals that it computed."""
        rest = iter(computed)
        return [next(rest) if f is None else inputs[f] for f in self.forwarded]


class Halves:
    """A program and its derivative, each operation of both as its rules write it.

    `primal` computes what is not an input, and `step`, from residuals and the tangents of inputs,
    the tangents that are not among these; it is None where one is not computed from tangents.
    `residuals` are places among the inputs and what `primal` computes.  So are results in `outs`,
    each with the place of its tangent among those of inputs and of `step`; None where that is zero.
    """

    step: dict[str, ClosedJaxpr] | None = None
    moves: bool
    """Whether `step` does anything."""
    form: Form
    """`step` as one equation, to be written down."""
    outs: list[tuple[int, int | None]]
    residuals: list[int]

    def __init__(self, closed: ClosedJaxpr, nonzeros: Sequence[bool]):
        def fun(*args):
            values, nonzero_out, jaxpr, residuals = linearize(jaxpr_as_fun(closed), args, nonzeros)
            places = {id(x): i for i, x in enumerate(args)}
            computed = [x for x in [*values, *residuals] if _placed(id(x), places)]
            self.residuals = [places[id(x)] for x in residuals]
            moved: dict[Atom, int] = {v: i for i, v in enumerate(jaxpr.invars)}
            outvars = [v for v in jaxpr.outvars if _placed(v, moved)]
            rest = iter(jaxpr.outvars)
            self.outs = [
                (places[id(x)], moved[next(rest)] if nz else None)
                for x, nz in zip(values, nonzero_out, strict=True)
            ]
            self.moves = bool(jaxpr.eqns)
            if not any(type(v) is Literal or v in jaxpr.constvars for v in outvars):
                step = close(jaxpr.replace(outvars=outvars), residuals)[0]
                self.step = {"jaxpr": step}
                inputs, types = tuple(range(len(step.in_avals))), tuple(step.out_avals)
                outs = tuple(range(len(inputs), len(inputs) + len(types)))
                self.form = inputs, (), ((inputs, types, linear_step_p, self.step),), outs
            return computed

        self.primal = stage_closed(fun, closed.in_avals, closed.jaxpr.name)


def _placed(x: Any, places: dict[Any, int]) -> bool:
    """Give `x` the next place, if it has none."""
    return len(places) == places.setdefault(x, len(places))


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


class _Values(dict[Atom, Any]):
    """The values of variables, and of literals."""

    def __missing__(self, literal: Literal) -> Any:
        return literal_value(literal)


@errors.replays_equations
def _backward_pass(jaxpr, consts, inputs, cts, place, before=(), source=None):
    """`backward_pass`, one equation after the other.

    Args:
      before: for each input the cotangent that it has already, or None.
      source: where all equations were asked for, if they do not tell it themselves.
    """
    env = _Values(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, inputs, strict=True))
    read = env.__getitem__
    linear: set[Atom] = {v for v, x in zip(jaxpr.invars, inputs, strict=True) if type(x) is Linear}
    waiting: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if not linear.isdisjoint(eqn.invars):
            for v in eqn.outvars:
                linear.add(v)
                env[v] = Linear(v.aval)
            waiting.append(eqn)
        else:
            if source is None:
                place.eqn, place.operation = eqn, eqn.known_place()
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )

    ct_env = {v: ct for v, ct in zip(jaxpr.invars, before, strict=False) if ct is not None}
    checked = context.checked

    def accumulate(atoms, cts):
        for atom, ct in zip(atoms, cts, strict=True):
            if ct is not None and type(ct) is not Zero and atom in linear:
                if checked:
                    ct = settle(ct, atom.aval)
                ct_env[atom] = add_any(ct_env[atom], ct) if atom in ct_env else ct

    accumulate(jaxpr.outvars, cts)
    for eqn in reversed(waiting):
        prim = eqn.primitive
        out_cts = [ct_env.pop(v, None) for v in eqn.outvars]
        count = len([ct for ct in out_cts if ct is not None])
        if not count:
            continue
        if count < len(out_cts):
            out_cts = [
                Zero(v.aval.tangent()) if ct is None else ct
                for v, ct in zip(eqn.outvars, out_cts, strict=True)
            ]
        if source is None:
            place.eqn, place.operation = eqn, eqn.known_place()
        operands = list(map(read, eqn.invars))
        if prim is linear_step_p:
            ct_env.update(_through_step(eqn, operands, out_cts, [*map(ct_env.get, eqn.invars)]))
            continue
        try:
            ct = out_cts if prim.multiple_results else out_cts[0]
            in_cts = prim.transpose(ct, *operands, **eqn.params)
        except NotImplementedError as error:
            if source or eqn.source:
                error.add_note(f"The operation was asked for at {source or eqn.source}.")
            raise
        accumulate(eqn.invars, in_cts)
    return [
        ct_env.get(var, Zero(var.aval.tangent()))
        for var, x in zip(jaxpr.invars, inputs, strict=True)
        if type(x) is Linear
    ]


_ABSENT = frozenset([type(None), Linear, Zero])


def _through_step(
    eqn: JaxprEqn, operands: list[Any], cts: list[Any], before: list[Any]
) -> list[tuple[Atom, Any]]:
    """The operands of a step that have cotangents, and these, given those of its results and what
    operands have `before`; from memory, where the step was taken in this way already.

    Its equations are transposed, and what they give is added up, in the order in which they would
    be without the step: so programs do not depend on what was traced before them.
    """
    trace = context.trace
    eager = is_eager(trace)
    kinds = Array if eager else Tracer if trace.recalls else ()
    values = operands + cts + before
    key: list[Any] = ["backward", config.trace_id()]
    given = []
    for x in values:
        if type(x) in _ABSENT:
            key.append(None)
        elif isinstance(x, kinds):
            key.append(x.weak_type)
            given.append(x)
        else:  # a number, which is a part of a program
            return _by_equations(eqn, operands, cts, before)
    jaxpr: Jaxpr = eqn.params["jaxpr"].jaxpr
    found = tuple(key)
    entry = jaxpr.cache.get(found)
    if entry is None:
        places: list[int] = []

        def fun(*xs):
            rest = iter(xs)
            known = [x if type(x) in _ABSENT else next(rest) for x in values]
            n, m = len(operands), len(operands) + len(cts)
            pairs = _by_equations(eqn, known[:n], known[n:m], known[m:])
            places[:] = [eqn.invars.index(a) for a, _ in pairs]
            return [ct for _, ct in pairs]

        entry = jaxpr.cache[found] = stage_closed(fun, [x.aval for x in given]), places
    program, places = entry
    if program.consts and not eager:
        return _by_equations(eqn, operands, cts, before)
    outs = replay(trace, program, given)
    return [(eqn.invars[i], ct) for i, ct in zip(places, outs, strict=True)]


def _by_equations(eqn, operands, cts, before) -> list[tuple[Atom, Any]]:
    """`_through_step` without memory."""
    jaxpr = eqn.params["jaxpr"].jaxpr
    found = _backward_pass(jaxpr, (), operands, cts, errors.place, before, eqn.source)
    linear = [a for a, x in zip(eqn.invars, operands, strict=True) if type(x) is Linear]
    return [(a, ct) for a, ct in zip(linear, found, strict=True) if not is_zero(ct)]


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
