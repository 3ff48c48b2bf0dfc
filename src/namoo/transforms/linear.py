"""Reverse mode: forward mode whose tangents are staged, then transposed.

While a function is linearised its values are computed (or traced) as usual on the parent trace,
and the operations on tangents are recorded.  The resulting program is linear; running it
forward gives directional derivatives, running it backward (see `transpose`) gives gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from namoo._base.caches import per_program
from namoo.analysis.dead_code import chosen, dce, reads
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, jaxpr_as_fun
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.core.trace import Trace, context, set_trace
from namoo.primitives.shape import instantiate, zeros
from namoo.transforms.jvp import JVPTrace, JVPTracer
from namoo.transforms.stage import StageTrace, StageTracer, bind_each, close, stage_closed


class TangentTrace(StageTrace):
    """Records operations on tangents, and passes all others on to its parent."""

    def __init__(self, parent: Trace):
        super().__init__(how="grad")
        self.stack_on(parent)
        self.linear = False
        """Whether operations on tangents are linear: the rule that binds them split them itself."""

    def owns(self, x: Any) -> bool:
        return isinstance(x, StageTracer) and x._trace is self

    def process(self, prim, args, params):
        for x in args:
            if type(x) is StageTracer and x._trace is self:
                if prim.holds_program and not self.linear:
                    on_tangents = prim.dependent([*map(self.owns, args)], params)
                    if on_tangents is not None and not all(on_tangents):
                        return self.split(prim, args, params)
                return super().process(prim, args, params)
        with set_trace(self.parent):
            return prim.bind(*args, **params)

    def split(self, prim, args, params):
        """Split a program that computes both values and tangents: the values are computed on the
        parent, the tangents by a linear program.

        JVP rules bind such programs. They are linear in the tangents, so the program of tangents is
        their derivative at any point, such as zero.
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

    how = "grad"

    def __init__(self, parent: Trace):
        self.tangents = TangentTrace(parent)
        super().__init__(self.tangents)

    def show(self, x: JVPTracer) -> str:
        return f"GradTracer(primal={x.primal}, typeof(tangent)={aval_of(x.tangent).str_short()})"

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

    def finish(self):
        self.tangents.finish()
        super().finish()


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
        nonzeros: which of them to differentiate with respect to.
        force: results that always have a tangent, possibly of zeros.

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
        pairs = trace.run(fun, primals, tangents)
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


class LinearizedProgram(NamedTuple):
    """A program split into values and tangents.

    Attributes:
        primal: computes the results, and then the residuals that are not inputs.
        tangent: maps the residuals, and then tangents of inputs, to tangents of results.
        nonzero_out: which results have a tangent that is not zero.
        forwarded: for each residual, the number of the input that it is, or None if `primal`
          computes it.
    """

    primal: ClosedJaxpr
    tangent: ClosedJaxpr
    nonzero_out: list[bool]
    forwarded: list[int | None]

    def residuals(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals, from the inputs of `primal` and the residuals that it computed."""
        rest = iter(computed)
        return [next(rest) if f is None else inputs[f] for f in self.forwarded]

    def pruned(self) -> LinearizedProgram:
        """The same without equations and residuals that the tangents do not need."""
        jaxpr = dce(self.tangent.jaxpr, [True] * len(self.tangent.out_avals))
        count = len(self.forwarded)
        kept = reads(jaxpr)[:count]
        invars = [*chosen(jaxpr.invars[:count], kept), *jaxpr.invars[count:]]
        primal = self.primal.jaxpr
        computed = [k for k, f in zip(kept, self.forwarded, strict=True) if f is None]
        outs = [True] * (len(primal.outvars) - len(computed)) + computed
        return LinearizedProgram(
            ClosedJaxpr(dce(primal, outs), self.primal.consts),
            ClosedJaxpr(jaxpr.replace(invars=invars), self.tangent.consts),
            self.nonzero_out,
            chosen(self.forwarded, kept),
        )


def split_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], force: Sequence[bool]
) -> LinearizedProgram:
    """Linearise a program, without removing operations that nothing needs.

    Args:
        closed: the program.
        nonzeros: which inputs to differentiate with respect to.
        force: which results always get a tangent, possibly of zeros.
    """
    tangent: ClosedJaxpr
    nonzero_out: list[bool]
    forwarded: list[int | None]

    def fun(*args):
        nonlocal tangent, nonzero_out, forwarded
        run = jaxpr_as_fun(closed)
        outs, nonzero_out, jaxpr, residuals = linearize(run, args, nonzeros, force)
        tangent, residuals = close(jaxpr, residuals)
        number = {id(x): i for i, x in enumerate(args)}
        forwarded = [number.get(id(r)) for r in residuals]
        return [*outs, *(r for r, f in zip(residuals, forwarded, strict=True) if f is None)]

    primal = stage_closed(fun, closed.in_avals, closed.jaxpr.name)
    return LinearizedProgram(primal, tangent, nonzero_out, forwarded)  # type: ignore[possibly-unbound]


def linearize_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], force: Sequence[bool] | None = None
) -> LinearizedProgram:
    """Linearise a program and remove operations that nothing needs; see `split_jaxpr`."""
    force = (False,) * len(closed.out_avals) if force is None else tuple(force)
    return _linearize_jaxpr(closed, tuple(nonzeros), force)


@per_program("linearize", keyed_by="inputs with tangents, results with tangents in any case")
def _linearize_jaxpr(closed, nonzeros, force):
    return split_jaxpr(closed, nonzeros, force).pruned()


def tangents_out(nonzero_out: Sequence[bool], avals: Sequence[Any], tangents: Sequence[Any]):
    """A full list of result tangents, with `Zero` where there is none."""
    rest = iter(tangents)
    return [
        next(rest) if nz else Zero(aval_of(x).tangent())
        for nz, x in zip(nonzero_out, avals, strict=True)
    ]
