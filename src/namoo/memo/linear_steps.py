"""Remembered derivatives of replayed programs.

When a program is replayed under `LinearizeTrace`, its derivative is recorded as one equation, a
linear step.  The transposes of steps are remembered, too: of single steps, and of whole backward
passes that consist of nothing but steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo._base.caches import derived, program_key, register
from namoo._base.config import config
from namoo._base.source_context import user_source
from namoo.core.array import Array
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from namoo.core.primitive import Linear, Primitive, Zero, is_zero
from namoo.core.trace import Tracer, context, eval_trace
from namoo.memo import trace_cache
from namoo.memo.replay import Form, append_equations, replay, rules
from namoo.transforms.jvp import JVPTracer
from namoo.transforms.linear import (
    LinearizedProgram,
    LinearizeTrace,
    linearize_jaxpr,
    split_jaxpr,
)
from namoo.transforms.stage import StageTracer, bind_each, stage_closed
from namoo.transforms.transpose import transpose_equations

_EAGER = program_key("eager derivative", keyed_by="inputs with tangents")
_STAGED = program_key("staged derivative", keyed_by="inputs with tangents")
_DISTINCT = program_key("step on distinct tangents", keyed_by="which tangents are equal")
_TRANSPOSED = program_key(
    "transposed step", keyed_by="settings, which operands and cotangents exist, their types"
)


class LinearStep(Primitive):
    """The derivative of a program that was replayed: a linear program, in one equation.

    Under another transformation, binding it binds its operations.
    """

    name = "linear_step"
    multiple_results = True
    holds_program = True
    rules_are_pure = True

    def bind(self, *args, jaxpr):
        return replay(context.trace, jaxpr, args)

    def abstract(self, *avals, jaxpr):
        return jaxpr.out_avals

    def add_cotangents(self, eqn, operands, cts, before):
        return _transpose_step(eqn, operands, cts, before)


linear_step_p = LinearStep()


class _EagerSplit(NamedTuple):
    """A linearised program, with the values that every replay needs."""

    split: LinearizedProgram
    step: dict[str, ClosedJaxpr]
    residual_avals: list[ShapedArray]
    out_types: list[ShapedArray | None]
    """The type of each result, or None where its tangent is zero."""


def _eager_split(closed: ClosedJaxpr, nonzeros: list[bool]) -> _EagerSplit:
    split = linearize_jaxpr(closed, nonzeros)
    return _EagerSplit(
        split,
        {"jaxpr": split.tangent},
        split.tangent.in_avals[: len(split.forwarded)],
        [a if nz else None for a, nz in zip(closed.out_avals, split.nonzero_out, strict=True)],
    )


def _under_linearize(trace: LinearizeTrace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Replay a program, and record its derivative as one step."""
    primals, tangents, nonzeros = [], [], []
    for x in args:
        own = type(x) is JVPTracer and x._trace is trace
        nonzeros.append(own)
        primals.append(x.primal if own else x)
        if own:
            tangents.append(x.tangent)
    staging = trace.tangents
    if not tangents:
        return replay(staging.parent, closed, primals)
    if not trace.eager:
        return _staged(trace, closed, args, primals, tangents, nonzeros)
    key = (_EAGER, *nonzeros)
    entry = closed.jaxpr.cache.get(key)
    if entry is None:
        entry = closed.jaxpr.cache[key] = _eager_split(closed, nonzeros)
    split, step, residual_avals, out_types = entry
    outs = replay(staging.parent, split.primal, primals)
    if not any(out_types):
        return outs[: len(out_types)]
    rest = iter(outs[len(out_types) :])
    residuals, consts = [], staging.consts
    for f, aval in zip(split.forwarded, residual_avals, strict=True):
        x = next(rest) if f is None else primals[f]
        # As `StageTrace.atom` does it; the type is known.
        const = consts.get(id(x))
        if const is None:
            const = consts[id(x)] = (x, Var(aval))
        residuals.append(const[1])
    moved = iter(_append_step(trace, step, residuals, tangents))
    return [
        x if aval is None else JVPTracer(trace, x, next(moved), aval)
        for x, aval in zip(outs, out_types, strict=False)
    ]


rules[LinearizeTrace] = _under_linearize


class _StagedSplit(NamedTuple):
    """A linearised program, without values that only pass through it.

    Attributes:
        primal: computes the values that are not inputs.
        step: maps residuals and tangents of inputs to the tangents that are not among these.
        form: `step` as one equation.
        moves: whether `step` has equations.
        residuals: their numbers among the inputs and the results of `primal`.
        outs: for each result its number among these, and the number of its tangent among those of
          inputs and of `step`; None where it is zero.
    """

    primal: ClosedJaxpr
    step: dict[str, ClosedJaxpr]
    form: Form
    moves: bool
    residuals: list[int]
    outs: list[tuple[int, int | None]]


def _staged_split(closed: ClosedJaxpr, nonzeros: list[bool]) -> _StagedSplit | None:
    """None where a tangent is a constant."""
    split = split_jaxpr(closed, nonzeros, ())
    primal, tangent, count = split.primal.jaxpr, split.tangent.jaxpr, len(split.forwarded)
    values = _Numbers(primal.invars)
    results = [values.of(a) for a in primal.outvars]
    computed = results[len(closed.out_avals) :]
    moved = _Numbers(tangent.invars[count:])
    tangents = iter([moved.of(a) for a in tangent.outvars])
    if any(type(a) is Literal or a in tangent.invars for a in moved.new):
        return None
    step = ClosedJaxpr(tangent.replace(outvars=moved.new), split.tangent.consts)
    inputs, types = tuple(range(len(step.in_avals))), tuple(step.out_avals)
    outs = tuple(range(len(inputs), len(inputs) + len(types)))
    params = {"jaxpr": step}
    return _StagedSplit(
        ClosedJaxpr(primal.replace(outvars=values.new), split.primal.consts),
        params,
        (inputs, (), ((inputs, types, linear_step_p, params),), outs),
        bool(tangent.eqns),
        split.residuals(range(len(primal.invars)), computed),
        [
            (i, next(tangents) if nz else None)
            for i, nz in zip(results, split.nonzero_out, strict=False)
        ],
    )


class _Numbers:
    """Numbers atoms: inputs first, then others in the order in which they are read."""

    def __init__(self, inputs: Sequence[Var]):
        self.numbers: dict[Atom, int] = {v: i for i, v in enumerate(inputs)}
        self.new: list[Atom] = []

    def of(self, atom: Atom) -> int:
        if atom not in self.numbers:
            self.numbers[atom] = len(self.numbers)
            self.new.append(atom)
        return self.numbers[atom]


def _staged(trace, closed, args, primals, tangents, nonzeros) -> list[Any]:
    """Replay a program whose values are staged: the equations are those that the rules would write,
    so that programs do not depend on what was traced before."""
    key = (_STAGED, *nonzeros)
    split = derived(closed.jaxpr, key, lambda: _staged_split(closed, nonzeros))
    if split is None:
        return bind_each(trace, closed, args)
    staging = trace.tangents
    values = primals + replay(staging.parent, split.primal, primals)
    if split.moves:
        source, residuals = user_source(), [values[i] for i in split.residuals]
        variables = set()
        for t in tangents:
            if type(t) is StageTracer:
                variables.add(t._var)
        if len(variables) == len(tangents):
            moved = append_equations(staging, split.form, residuals + tangents, source)
        else:  # a tangent comes twice, or is not a variable
            atoms = [staging.atom(x) for x in residuals]
            moved = _append_step(trace, split.step, atoms, tangents, source)
        tangents = tangents + moved
    return [
        values[i] if t is None else JVPTracer(trace, values[i], tangents[t]) for i, t in split.outs
    ]


def _append_step(trace, step, residuals, tangents, source=None) -> list[StageTracer]:
    """Record a step as one equation; return its results."""
    staging = trace.tangents
    given = []
    for t in tangents:
        own = type(t) is StageTracer and t._trace is staging
        given.append(t._var if own else staging.atom(t))
    if len(given) > 1 and len(set(given)) < len(given):
        step, given = _with_distinct_tangents(step, given)
    outvars = [Var(v.aval) for v in step["jaxpr"].jaxpr.outvars]
    staging.eqns.append(JaxprEqn(residuals + given, outvars, linear_step_p, step, source))
    return [StageTracer(staging, v) for v in outvars]


def _with_distinct_tangents(
    step: dict[str, ClosedJaxpr], tangents: list[Atom]
) -> tuple[dict, list[Atom]]:
    """Change a step with equal tangents into one that takes each of them once."""
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

    return derived(jaxpr, (_DISTINCT, pattern), make), [*first]


_ABSENT = frozenset([type(None), Linear, Zero])


def _transpose_step(
    eqn: JaxprEqn, operands: list[Any], cts: list[Any], before: list[Any]
) -> list[tuple[Atom, Any]]:
    """Transpose a step, and add the cotangents of its operands to those in `before`.

    Equations are transposed, and cotangents added, in the same order as without steps, so that
    programs do not depend on what was traced before.

    Returns:
        The operands that have cotangents, each with its own.
    """
    trace = context.trace
    eager = trace.eager
    kinds = Array if eager else Tracer if trace.replays else ()
    values = operands + cts + before
    key: list[Any] = [_TRANSPOSED, config.trace_id()]
    given = []
    for x in values:
        if type(x) in _ABSENT:
            key.append(None)
        elif isinstance(x, kinds):
            # A rule of the user's may return cotangents of another type than its operand's.
            key += (x.dtype, x.weak_type)
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
    """`_transpose_step` without memory."""
    jaxpr = eqn.params["jaxpr"].jaxpr
    found = transpose_equations(jaxpr, (), operands, cts, before, eqn.source)
    linear = [a for a, x in zip(eqn.invars, operands, strict=True) if type(x) is Linear]
    return [(a, ct) for a, ct in zip(linear, found, strict=True) if not is_zero(ct)]


_LIMIT = 256
_MOST_STEPS = 1000
_passes: dict[Any, Any] = register(
    "memo.linear_steps backward passes",
    {},
    bound=_LIMIT,
    keyed_by="linear steps, their operands, cotangent types, settings",
)


def backward(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any]
) -> list[Any] | None:
    """Return the result of `backward_pass` on concrete values, from memory; None to compute it."""
    if context.trace is not eval_trace or context.checked or not config.memo:
        return None
    program = _backward_program(jaxpr, consts, inputs, cts)
    if program is None:
        return None
    closed, nonzero = program
    outs = iter(replay(eval_trace, closed, [*consts, *(c for c in cts if not is_zero(c))]))
    return [
        next(outs) if nz else Zero(v.aval.tangent())
        for v, nz in zip(jaxpr.invars, nonzero, strict=True)
    ]


def _backward_program(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any]
) -> tuple[ClosedJaxpr, list[bool]] | None:
    """Make a backward pass through linear steps one program.

    Returns:
        The program from the constants and the nonzero cotangents to nonzero cotangents, and which
        results have one.  None if the program has other equations than linear steps, or if it is
        the first backward pass through these steps.
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
    entry = _passes.get(found)
    if entry is not None:
        return entry
    seen = found in _passes
    if not seen and len(_passes) >= _LIMIT:
        _passes.clear()
    if not seen and trace_cache.trace_on_second_call:
        _passes[found] = None
        return None
    nonzero: list[bool] = []

    def fun(*values):
        rest = iter(values[len(consts) :])
        given = [ct if is_zero(ct) else next(rest) for ct in cts]
        outs = transpose_equations(jaxpr, values[: len(consts)], inputs, given)
        nonzero[:] = [not is_zero(ct) for ct in outs]
        return [ct for ct in outs if not is_zero(ct)]

    avals = [aval_of(x) for x in (*consts, *cts) if not is_zero(x)]
    entry = _passes[found] = stage_closed(fun, avals), nonzero
    return entry
