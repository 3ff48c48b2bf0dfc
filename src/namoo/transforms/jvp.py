"""Forward mode: each value carries its tangent, and each operation pushes it forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base import dtypes
from namoo._base.caches import per_program
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.core.trace import Trace, Tracer, context, rules_on, set_trace
from namoo.primitives.shape import instantiate
from namoo.transforms.stage import stage_closed
from namoo.tree.registry import register_pytree_node

register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))


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

    def __repr__(self) -> str:
        return self._trace.show(self)  # type: ignore[attr-defined]

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""


class JVPTrace(Trace):
    """Applies the jvp rule of each operation, on the parent trace."""

    kind = "jvp"
    how = "jvp"

    def __init__(self, parent: Trace):
        self.stack_on(parent)
        self.asks_memory = self.eager and self.replays

    def owns(self, x: Any) -> bool:
        """Whether a value has a tangent under this trace."""
        return type(x) is JVPTracer and x._trace is self

    def show(self, x: JVPTracer) -> str:
        """Return a value of this trace as text."""
        return f"JVPTracer(primal={x.primal}, tangent={x.tangent})"

    def pair(self, x: Any) -> tuple[Any, Any]:
        """A value and its tangent, which is zero for values from outside of the trace."""
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.primal, x.tangent
        return x, Zero.of(x)

    def rule(self, prim: Primitive) -> Callable[..., tuple[Any, Any]]:
        return prim.jvp

    def process(self, prim, args, params):
        if prim.higher_order:
            return prim.dispatch_by_trace(self, args, params)
        primals: list[Any] = []
        tangents: list[Any] = []
        any_tangent = False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                any_tangent = True
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(None)
        with rules_on(self.parent, prim):
            if not any_tangent:
                return prim.bind(*primals, **params)
            tangents = [Zero.of(x) if t is None else t for x, t in zip(args, tangents, strict=True)]
            out, out_tangent = self.rule(prim)(primals, tangents, **params)
        if prim.multiple_results:
            return [self.join(x, t) for x, t in zip(out, out_tangent, strict=True)]
        return self.join(out, out_tangent)

    def join(self, primal: Any, tangent: Any) -> Any:
        """A tracer for a value with a tangent; the value itself where that is zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def run(
        self, fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> list[tuple[Any, Any]]:
        """Call a flat function under this trace; return its results and their tangents.

        A Python number gets its dtype here, because the function may switch 64-bit types on or off.
        It is returned as the Python number that it was, if the function returns its argument.
        """
        numbers: dict[int, Any] = {}

        def typed(x: Any) -> Any:
            if not dtypes.is_python_scalar(x):
                return x
            array = EagerArray(dtypes.coerce_scalar(x), type(x) is not bool)
            numbers[id(array)] = x
            return array

        given = [
            x if type(t) is Zero else JVPTracer(self, typed(x), typed(t))
            for x, t in zip(primals, tangents, strict=True)
        ]
        with set_trace(self):
            pairs = [self.pair(x) for x in fun(*given)]
        if numbers:
            pairs = [(numbers.get(id(x), x), numbers.get(id(t), t)) for x, t in pairs]
        return pairs


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Values and tangents of a flat function; tangents may be `Zero`, in and out."""
    trace = JVPTrace(context.trace)
    try:
        pairs = trace.run(fun, primals, tangents)
    finally:
        trace.finish()
    return [x for x, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_outs: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Differentiate a program in forward mode.

    Args:
        closed: the program.
        nonzeros: which inputs have a tangent that is not zero.
        instantiate_outs: which results always get a tangent, possibly of zeros.

    Returns:
        The program, and which results have a nonzero tangent.  The inputs of the program are all
        values and then the nonzero tangents; its outputs are the results and then their nonzero
        tangents.
    """
    if isinstance(instantiate_outs, bool):
        instantiate_outs = (instantiate_outs,) * len(closed.out_avals)
    return _jvp_jaxpr(closed, tuple(nonzeros), tuple(instantiate_outs))


@per_program("jvp", keyed_by="inputs with tangents, results with tangents in any case")
def _jvp_jaxpr(closed, nonzeros, instantiate_outs):
    nonzero_out: list[bool] = []

    def fun(*args):
        primals, rest = args[: len(nonzeros)], iter(args[len(nonzeros) :])
        tangents = [
            next(rest) if nz else Zero.of(x) for x, nz in zip(primals, nonzeros, strict=True)
        ]
        outs, out_tangents = jvp(jaxpr_as_fun(closed), primals, tangents)
        out_tangents = [
            instantiate(t) if i else t for t, i in zip(out_tangents, instantiate_outs, strict=True)
        ]
        nonzero_out[:] = [not is_zero(t) for t in out_tangents]
        return [*outs, *(t for t in out_tangents if not is_zero(t))]

    in_avals = closed.in_avals
    tangent_avals = [a.tangent() for a, nz in zip(in_avals, nonzeros, strict=True) if nz]
    return stage_closed(fun, [*in_avals, *tangent_avals], closed.jaxpr.name), nonzero_out


def check_tangent(primal: Any, tangent: Any, where: str) -> Any:
    """A tangent a user gave, checked against its primal; float0 becomes `Zero`."""
    expected, found = aval_of(primal).tangent(), aval_of(tangent)
    if expected.shape != found.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes at {where}: "
            f"{aval_of(primal).shape} and {found.shape}."
        )
    if expected.dtype != found.dtype:
        raise TypeError(
            f"primal and tangent arguments to jax.jvp do not match. At {where}, the tangent of a "
            f"value of type {aval_of(primal).str_short()} has type {expected.str_short()}, got "
            f"{found.str_short()}. Tangents have the dtype of their primal, float0 for integers "
            "and booleans."
        )
    return Zero(expected) if expected.dtype == dtypes.float0 else tangent
