"""Partial evaluation: compute what is known, stage the rest as a program.

Example:
    >>> import namoo.numpy as jnp
    >>> from namoo.extend import linear_util as lu
    >>> known, unknown = PartialVal.known(2.0), PartialVal.unknown(jnp.ones(3).aval)
    >>> fun = lu.wrap_init(lambda x, y: [x + 1, x * y])
    >>> jaxpr, results, constants = trace_to_jaxpr_nounits(fun, [known, unknown])
    >>> [value.is_known() for value in results]
    [True, False]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo.analysis.dead_code import dce, live, prune
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Jaxpr
from namoo.core.trace import context, set_trace
from namoo.extend import linear_util as lu
from namoo.transforms import stage
from namoo.transforms.linear import TangentTrace
from namoo.transforms.stage import StageTracer

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_consts",
    "dce_rules",
    "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]
__dir__ = __all__.copy


DynamicJaxprTracer = StageTracer
JaxprTracer = StageTracer
Val = Any

custom_partial_eval_rules: dict[Any, Callable[..., Any]] = {}
"""Accepts JAX's rules; namoo does not use them, because it can split any program without rules."""
partial_eval_jaxpr_custom_rules: dict[Any, Callable[..., Any]] = {}
"""Like `custom_partial_eval_rules`, for programs."""
dce_rules: dict[Any, Callable[..., Any]] = {}
"""Accepts JAX's rules; namoo's primitives that hold programs remove dead code themselves."""


class PartialVal(tuple[ShapedArray | None, Any]):
    """A known value, or the type of an unknown one."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Return a value of which only the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value, or None if it is unknown."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        """Return the type."""
        aval, value = self
        return aval_of(value) if aval is None else aval

    def merge_with_known(self, val: Any) -> Any:
        """Return the value, or `val` if it is unknown."""
        return self[1] if self.is_known() else val


def trace_to_jaxpr_nounits(
    fun: lu.WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run a function some of whose arguments are unknown, and stage what depends on those.

    Args:
        fun: a function of flat arguments that returns a list.
        pvals: its arguments.
        instantiate: whether known results are staged as well; one boolean for all of them, or one
            for each.

    Returns:
        The staged program, whose inputs are the constants and then the unknown arguments; the
        results; and the constants.
    """
    trace = TangentTrace(context.trace)
    try:
        with set_trace(trace):
            args = [
                pv.get_known() if pv.is_known() else trace.new_input(pv.get_aval()) for pv in pvals
            ]
            outs = list(fun.call_wrapped(*args))
            asked = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
            staged = [wanted or trace.owns(x) for x, wanted in zip(outs, asked, strict=True)]
            unknown = [x for x, s in zip(outs, staged, strict=True) if s]
            jaxpr, consts = trace.program(unknown)
    finally:
        trace.finish()
    jaxpr = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    results = [
        PartialVal.unknown(aval_of(x)) if s else PartialVal.known(x)
        for x, s in zip(outs, staged, strict=True)
    ]
    return jaxpr, results, consts


def trace_to_jaxpr_dynamic(
    fun: lu.WrappedFun, in_avals: Sequence[ShapedArray], **_: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Return the program of a function of flat arguments, its result types, and its constants.

    Example:
        >>> from namoo.core import ShapedArray
        >>> double = lu.wrap_init(lambda x: [x * 2])
        >>> trace_to_jaxpr_dynamic(double, [ShapedArray((3,), "float32")])[1]
        [ShapedArray(float32[3])]
    """
    jaxpr, consts = stage.stage(fun.call_wrapped, in_avals, fun.__name__)
    return jaxpr, jaxpr.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Dead code elimination: remove the equations and inputs that the used outputs do not need.

    Args:
        jaxpr: a program.
        used_outputs: which outputs are needed.
        instantiate: which inputs to keep even if they are not needed.

    Returns:
        The program, and for each input whether it was kept.

    Example:
        >>> import namoo
        >>> whole = namoo.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0)
        >>> dce_jaxpr(whole.jaxpr, [False, True])[1]
        [False, True]
    """
    smaller, _, inputs = dce_jaxpr_consts(jaxpr, used_outputs, instantiate)
    return smaller.replace(constvars=jaxpr.constvars), inputs


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Like `dce_jaxpr`, for a program with constants; also return which of them remain."""
    smaller = prune(dce(jaxpr, used_outputs))
    read = set(smaller.outvars)
    live(smaller.eqns, read)
    stay = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    inputs = [keep or v in read for v, keep in zip(jaxpr.invars, stay, strict=True)]
    consts = [v in read for v in jaxpr.constvars]
    return (
        smaller.replace(
            constvars=[v for v, used in zip(jaxpr.constvars, consts, strict=True) if used],
            invars=[v for v, used in zip(jaxpr.invars, inputs, strict=True) if used],
        ),
        consts,
        inputs,
    )
