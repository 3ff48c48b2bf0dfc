"""JAX's names for inspecting programs: variables, types, and where they run."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo.core import jaxpr as programs
from namoo.core.array import Array
from namoo.core.avals import AbstractValue, ShapedArray, aval_of
from namoo.core.jaxpr import Atom, ClosedJaxpr, Effects, Jaxpr, JaxprEqn, Literal, Var, no_effects
from namoo.core.primitive import Primitive
from namoo.core.trace import EvalTrace, Trace, Tracer, context, eval_trace, set_trace
from namoo.dimensions.sizes import is_symbolic
from namoo.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation

Value = Any
ParamDict = dict[str, Any]


def get_aval(x: Any) -> ShapedArray:
    """The type of a value: shape, dtype and weak type.

    Example:
        >>> get_aval(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    return aval_of(x)


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a known integer: neither symbolic nor traced.

    Example:
        >>> is_constant_dim(3), is_constant_dim(2.0)
        (True, False)
    """
    if isinstance(d, Tracer) or is_symbolic(d):
        return False
    try:
        operator.index(d)
    except TypeError:
        return False
    return True


def valid_jaxtype(x: Any) -> bool:
    """Whether something can be an operand: an array, a number, or the type of one.

    Example:
        >>> valid_jaxtype(1.0), valid_jaxtype("one")
        (True, False)
    """
    if isinstance(x, AbstractValue):
        return False
    try:
        aval_of(x)
    except (TypeError, ValueError):
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """A concrete value, passed through `force`.

    Args:
        force: `int`, `np.asarray` or the like; None returns the value unchanged.
        val: the value.
        context: a sentence for the message, which says why the numbers are needed.

    Raises:
        ConcretizationTypeError: the value is traced.

    Example:
        >>> concrete_or_error(int, np.float32(3.0))
        3
    """
    known = val.concrete("a concrete value", context) if isinstance(val, Tracer) else val
    return known if force is None else force(known)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type at each call.

    Example:
        >>> new = gensym()
        >>> new(get_aval(1.0)) == new(get_aval(1.0))
        False
    """
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: ParamDict,
    effects: Effects = no_effects,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation of a program.

    Args:
        invars: operands.
        outvars: variables of the results.
        primitive: the operation.
        params: its parameters.
        effects: JAX's parameter; here the primitive itself says whether it has any.
        source_info: the `source_info` of another equation, to name the same line.
        ctx: JAX's parameter; ignored here.

    Example:
        >>> from namoo.primitives.elementwise import sin_p
        >>> a, b = Var(get_aval(1.0)), Var(get_aval(1.0))
        >>> new_jaxpr_eqn([a], [b], sin_p, {}).primitive
        sin
    """
    return JaxprEqn(invars, outvars, primitive, params, source_info)


def jaxprs_in_params(params: ParamDict) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters.

    Example:
        >>> list(jaxprs_in_params({"axis": 0}))
        []
    """
    return programs.subjaxprs(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations of a program hold.

    Example:
        >>> list(subjaxprs(Jaxpr([], [], [], [])))
        []
    """
    for eqn in jaxpr.eqns:
        yield from programs.subjaxprs(eqn.params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch: without the axis, which has the given size.

    Example:
        >>> mapped_aval(3, 0, ShapedArray((3, 4), "float32"))
        ShapedArray(float32[4])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise AssertionError(f"Axis {axis} of {aval} was said to have size {size}.")
    axis %= aval.ndim
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a batch of examples: with one more axis.

    Example:
        >>> unmapped_aval(3, 1, ShapedArray((4,), "float32"))
        ShapedArray(float32[4,3])
    """
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of derivatives of values of a dtype: itself, or float0 for integers.

    Example:
        >>> primal_dtype_to_tangent_dtype(np.dtype("float32"))
        dtype('float32')
    """
    return dtypes.tangent_dtype(np.dtype(primal_dtype))


class FoldingTrace(Trace):
    """Computes operations on known values at once, and leaves all others to its parent."""

    kind = "fold"

    def __init__(self, parent: Trace):
        self.parent = parent

    def process(self, prim, args, params):
        trace = self.parent if any(isinstance(x, Tracer) for x in args) else eval_trace
        with set_trace(trace):
            return Primitive.bind(prim, *args, **params)


def eval_context() -> AbstractContextManager[None]:
    """Within this context operations on known values are computed at once, even under `jit`.

    Example:
        >>> with eval_context():
        ...     int(get_aval(2).size)
        1
    """
    top = context.trace
    return set_trace(top if isinstance(top, EvalTrace | FoldingTrace) else FoldingTrace(top))


def find_top_trace(_: Any = ()) -> Trace:
    """The interpreter that handles operations now.

    Example:
        >>> find_top_trace([]).kind
        'eval'
    """
    return context.trace


set_current_trace = set_trace


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Yield the current interpreter, and compute at once within the block.

    Example:
        >>> with take_current_trace() as trace:
        ...     trace.kind
        'eval'
    """
    taken = context.trace
    with set_trace(eval_trace):
        yield taken


class TraceTag:
    """Marks the interpreters of one transformation, where several of them work together."""


class AbstractToken(AbstractValue):
    """The type of a token, which orders effects."""


class Token:
    """A value that orders effects; on namoo's CPU engines effects happen in order."""


array_types: set[type] = {np.ndarray, np.generic, Array}
"""The classes of arrays."""


class OpaqueTraceState:
    """Compares equal within one transformation; see `get_opaque_trace_state`."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace):
        # The transformation may be over before this: it is not kept alive.
        self._trace = weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueTraceState):
            return NotImplemented
        trace = self._trace()
        return trace is not None and trace is other._trace()

    __hash__ = None  # type: ignore[assignment]


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """An object that equals another one where both were asked for in the same transformation.

    Example:
        >>> get_opaque_trace_state() == get_opaque_trace_state()
        True
    """
    trace = context.trace
    return OpaqueTraceState(eval_trace if isinstance(trace, EvalTrace) else trace)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that functions are mapped over at this moment.

    Example:
        >>> unsafe_get_axis_names_DO_NOT_USE()
        []
    """
    return list(context.axes)


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether any named axis is in scope.

    Example:
        >>> nonempty_axis_env_DO_NOT_USE()
        False
    """
    return bool(context.axes)


def _is_under(kind: str) -> bool:
    trace: Trace | None = context.trace
    while trace is not None and trace.kind != kind:
        trace = getattr(trace, "parent", None)
    return trace is not None


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being traced.

    Example:
        >>> unsafe_am_i_under_a_jit_DO_NOT_USE()
        False
    """
    return _is_under("stage")


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being mapped.

    Example:
        >>> unsafe_am_i_under_a_vmap_DO_NOT_USE()
        False
    """
    return _is_under("batch")


_PARAMS: dict[str, dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "cond": {
        "branches": (
            "tuple of ClosedJaxpr",
            lambda x: isinstance(x, tuple) and all(isinstance(b, ClosedJaxpr) for b in x),
        )
    },
    "scan": {
        "jaxpr": ("ClosedJaxpr", lambda x: isinstance(x, ClosedJaxpr)),
        "num_carry": ("non-negative int", lambda x: isinstance(x, int) and x >= 0),
        "num_consts": ("non-negative int", lambda x: isinstance(x, int) and x >= 0),
        "reverse": ("bool", lambda x: isinstance(x, bool)),
        "unroll": ("positive int", lambda x: isinstance(x, int) and x > 0),
    },
}
"""Operation → parameter → what it must be, in words and as a test."""


def _check_params(eqn: Any) -> None:
    for name, (words, fits) in _PARAMS.get(eqn.primitive.name, {}).items():
        value = eqn.params.get(name)
        if name in eqn.params and not fits(value):
            raise errors.JaxprTypeError(
                f"invalid {eqn.primitive.name} param {name} of type {type(value).__name__}, "
                f"{words} required: {value}"
            )


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise `JaxprTypeError` unless every equation's types follow from its operands'."""
    known: set[Var] = {*jaxpr.constvars, *jaxpr.invars}

    def check_read(atom: Atom, where: str) -> None:
        if type(atom) is not Literal and atom not in known:
            raise errors.JaxprTypeError(
                f"Variable {atom!r} is used before it is defined, in {where}"
            )

    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            check_read(atom, repr(eqn))
        _check_params(eqn)
        with eqn.primitive.scope(eqn.params):
            for sub in programs.subjaxprs(eqn.params):
                check_jaxpr(sub)
        if not eqn.primitive.higher_order:
            out = eqn.primitive.abstract(*(a.aval for a in eqn.invars), **eqn.params)
            out = out if eqn.primitive.multiple_results else [out]
            for var, aval in zip(eqn.outvars, out, strict=True):
                if (var.aval.shape, var.aval.dtype) != (aval.shape, aval.dtype):
                    raise errors.JaxprTypeError(
                        f"{eqn!r} yields {aval}, but its variable is {var.aval}"
                    )
        known.update(eqn.outvars)
    for atom in jaxpr.outvars:
        check_read(atom, "the results")
