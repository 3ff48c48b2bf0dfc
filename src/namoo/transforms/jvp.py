"""Forward mode: each value carries its tangent, and each operation pushes it forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import _dtypes
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.core.trace import Trace, Tracer, context, rules_on, set_trace
from namoo.primitives.shape import instantiate
from namoo.transforms import recall
from namoo.transforms.replay import bind_each, is_eager, replay
from namoo.transforms.stage import derived, stage_closed


class JVPTracer(Tracer):
    """A value and its tangent."""

    __slots__ = ("aval", "primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any, aval: ShapedArray | None = None):
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = aval_of(primal) if aval is None else aval

    def concrete(self, wanted: str = "a concrete value", advice: str = "") -> EagerArray:
        x = self.primal
        return x.concrete(wanted, advice) if isinstance(x, Tracer) else x

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""


class JVPTrace(Trace):
    """Applies the jvp rule of each operation, on the parent trace."""

    kind = "jvp"

    def __init__(self, parent: Trace):
        self.parent = parent
        self.eager = is_eager(parent)
        self.recalls = self.eager or parent.recalls

    def pair(self, x: Any) -> tuple[Any, Any]:
        """A value and its tangent; what comes from outside is constant."""
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.primal, x.tangent
        return x, Zero.of(x)

    def rule(self, prim: Primitive) -> Callable[..., tuple[Any, Any]]:
        return prim.jvp

    def replay(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program under this trace."""
        primals, tangents = zip(*map(self.pair, args), strict=True) if args else ((), ())
        nonzeros = [not is_zero(t) for t in tangents]
        if True not in nonzeros:
            return replay(self.parent, closed, primals)
        if not self.eager and any(
            nz and aval_of(t).weak_type is not a.weak_type
            for t, a, nz in zip(tangents, closed.in_avals, nonzeros, strict=True)
        ):
            return bind_each(self, closed, args)
        program, nonzero_out = jvp_jaxpr(closed, nonzeros)
        outs = replay(self.parent, program, [*primals, *(t for t in tangents if not is_zero(t))])
        rest = iter(outs[len(nonzero_out) :])
        return [
            JVPTracer(self, x, next(rest)) if nz else x
            for x, nz in zip(outs, nonzero_out, strict=False)
        ]

    def process(self, prim, args, params):
        if prim.takes_functions:
            return prim.under(self, args, params)
        primals: list[Any] = []
        tangents: list[Any] = []
        moves = False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                moves = True
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(None)
        if moves and self.eager:
            out = recall.operation(self, prim, args, params)
            if out is not None:
                return out
        with rules_on(self.parent, prim):
            if not moves:
                return prim.bind(*primals, **params)
            tangents = [Zero.of(x) if t is None else t for x, t in zip(args, tangents, strict=True)]
            out, out_tangent = self.rule(prim)(primals, tangents, **params)
        if prim.multiple_results:
            return [self.join(x, t) for x, t in zip(out, out_tangent, strict=True)]
        return self.join(out, out_tangent)

    def join(self, primal: Any, tangent: Any) -> Any:
        """A tracer for a value with a tangent; the value itself where that is zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Values and tangents of a flat function; tangents may be `Zero`, in and out."""
    trace = JVPTrace(context.trace)
    try:
        with set_trace(trace):
            outs = fun(*map(trace.join, primals, tangents))
            pairs = [trace.pair(x) for x in outs]
    finally:
        trace.finish()
    return [x for x, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_outs: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of values and tangents: inputs are all values, then the tangents that are not
    zero; outputs likewise.  Also tells which result tangents are not zero."""
    nonzeros = tuple(nonzeros)
    if isinstance(instantiate_outs, bool):
        instantiate_outs = (instantiate_outs,) * len(closed.out_avals)
    instantiate_outs = tuple(instantiate_outs)

    def make():
        nonzero_out: list[bool] = []

        def fun(*args):
            primals, rest = args[: len(nonzeros)], iter(args[len(nonzeros) :])
            tangents = [
                next(rest) if nz else Zero.of(x) for x, nz in zip(primals, nonzeros, strict=True)
            ]
            run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
            outs, out_tangents = jvp(run, primals, tangents)
            out_tangents = [
                instantiate(t) if i else t
                for t, i in zip(out_tangents, instantiate_outs, strict=True)
            ]
            nonzero_out[:] = [not is_zero(t) for t in out_tangents]
            return [*outs, *(t for t in out_tangents if not is_zero(t))]

        in_avals = closed.in_avals
        tangent_avals = [a.tangent() for a, nz in zip(in_avals, nonzeros, strict=True) if nz]
        return stage_closed(fun, [*in_avals, *tangent_avals], closed.jaxpr.name), nonzero_out

    return derived(closed.jaxpr, ("jvp", nonzeros, instantiate_outs), make)


def check_tangent(primal: Any, tangent: Any, where: str) -> Any:
    """A tangent a user gave, checked against its primal; float0 becomes `Zero`."""
    expected, found = aval_of(primal).tangent(), aval_of(tangent)
    if expected.shape != found.shape:
        raise ValueError(
            f"{where}: primal and tangent must have equal shapes, got {aval_of(primal).shape} "
            f"and {found.shape}."
        )
    if expected.dtype != found.dtype:
        raise TypeError(
            f"{where}: the tangent of a value of type {aval_of(primal).str_short()} has type "
            f"{expected.str_short()}, got {found.str_short()}. Tangents have the dtype of their "
            "primal, and float0 for integers and booleans."
        )
    return Zero(expected) if expected.dtype == _dtypes.float0 else tangent
