"""Functions and operations that remember their programs.

Under a transformation, the second call of a function with the same input types is traced; later
calls replay that program.  The function's operations may depend on types, on static arguments and
on settings alone.

Under `jit` the equations of the program, and of the programs that `vmap` and `grad` derive from it,
are appended to the program that is being staged: the same ones, in the same order, as without
memory, but nothing is checked or promoted and no rules are called.  Without `jit`, operations
outside of such functions are remembered one by one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.source_context import entry_point, source_context, user_source
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import Trace, Tracer, context
from namoo.memo import trace_cache
from namoo.memo.replay import replay
from namoo.memo.trace_cache import SEEN, mark_seen, programs
from namoo.transforms.custom import custom_jvp
from namoo.transforms.stage import stage

_GENERAL: Any = object()
_PLAIN = frozenset([type(None), type(...), bool, int, str])
_IMMUTABLE = (str, int, type, enum.Enum, np.generic, np.dtype, dtypes.ExtendedDType)


def _static(x: Any) -> Any:
    """A value as part of a key: equal values give equal programs."""
    if type(x) is float and x and x == x:
        return x
    if isinstance(x, (float, complex, np.inexact)):
        return repr(x)  # 0.0 == -0.0, and NaN != NaN
    if type(x) is slice:  # without a hash before Python 3.12
        return slice, x.start, x.stop, x.step
    if type(x) is tuple:
        return tuple([(type(y), y if type(y) in _PLAIN else _static(y)) for y in x])
    if isinstance(x, _IMMUTABLE):
        return x
    raise TypeError(f"{type(x)} may have changed by the next call")


class Recalled:
    """The programs of one function, by the types of its arrays and the values of the rest."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun

    def call(self, trace: Trace, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Call the function under the current trace, which replays."""
        key: list[Any] = [self.fun, config.trace_id()]
        operands = []
        kinds = Array if trace.eager else Tracer
        try:
            for x in args:
                if isinstance(x, kinds):
                    aval = x.aval
                    key += (aval.shape, aval.dtype, aval.weak_type)
                    operands.append(x)
                elif isinstance(x, Array):
                    # A staged program has the value of a concrete array in it.
                    return self.fun(*args, **options)
                else:
                    key += (type(x), x if type(x) in _PLAIN else _static(x))
            for name, x in options.items():
                key += (name, type(x), x if type(x) in _PLAIN else _static(x))
            found = tuple(key)
            program = programs.get(found)
        except TypeError:  # an array among the options, or a mutable object
            return self.fun(*args, **options)
        if program is None:
            mark_seen(found)
            if trace_cache.trace_on_second_call:
                return self.fun(*args, **options)
        if program is None or program is SEEN:
            program = programs[found] = self.stage(args, operands, options)
        if program is _GENERAL or program.consts and not trace.eager:
            return self.fun(*args, **options)
        place = source_context
        if trace.eager or place.operation is not None:
            return replay(trace, program, operands)[0]
        # All equations are attributed to the user's line of the call.
        place.operation = [user_source(inside=2)]
        try:
            return replay(trace, program, operands)[0]
        finally:
            place.operation = None

    def stage(self, args: Sequence[Any], operands: Sequence[Any], options: dict[str, Any]) -> Any:
        """Trace the function; `_GENERAL` where it does more than a program can express."""

        single = True

        def flat(*values):
            nonlocal single
            rest = iter(values)
            out = self.fun(*[next(rest) if isinstance(x, Array) else x for x in args], **options)
            single = isinstance(out, Array)
            return [out] if single else []

        program = traced(flat, [x.aval for x in operands])
        return program if program is not None and single else _GENERAL


def traced(fun: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr | None:
    """The program of a function; None where the function does more than a program can express."""
    place = source_context
    before, place.withheld = place.withheld, []
    try:
        jaxpr, consts = stage(fun, avals)
        warns = bool(place.withheld)
    except (errors.JAXTypeError, errors.NonConcreteBooleanIndexError):
        return None  # it reads values
    finally:
        place.withheld = before
    collective = any(eqn.primitive.collective_axes(eqn.params) for eqn in jaxpr.eqns)
    if collective or warns or jaxpr.effectful:
        return None
    return ClosedJaxpr(jaxpr, consts)


def operation(trace: Any, prim: Any, args: tuple, params: dict) -> Any:
    """Return the result of an operation under an eager trace; None where its rules must be called.

    Args:
        trace: the current trace, a `JVPTrace` or `BatchTrace`.
        prim: the primitive.
        args: its operands.
        params: its parameters.
    """
    if not prim.rules_are_pure or prim.effectful or not any(map(trace.owns, args)):
        return None
    key: list[Any] = [prim, config.trace_id()]
    for x in args:
        aval = aval_of(x)
        key += (aval.shape, aval.dtype, aval.weak_type)
    for name, x in params.items():
        key += (name, repr(x) if isinstance(x, (float, complex, np.inexact)) else x)
    try:
        program = programs.get(found := tuple(key))
    except TypeError:  # a parameter without a hash
        return None
    if program is None:
        mark_seen(found)
        if trace_cache.trace_on_second_call:
            return None
    if program is None or program is SEEN:
        bind = prim.bind if prim.multiple_results else lambda *xs, **p: [prim.bind(*xs, **p)]
        jaxpr, consts = stage(lambda *xs: bind(*xs, **params), [aval_of(x) for x in args])
        program = programs[found] = ClosedJaxpr(jaxpr, consts)
    outs = replay(trace, program, args)
    return outs if prim.multiple_results else outs[0]


def recalled(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays that returns one array remember its programs.

    Its operations may depend on the types of arrays and on the values of other arguments, and on
    nothing else.

    Args:
        fun: the function.

    Returns:
        A function of the same arguments.
    """
    call = Recalled(fun).call

    @wraps(fun)
    def wrapper(*args: Any, **options: Any) -> Any:
        trace = context.trace
        if trace.replays:
            return call(trace, args, options)
        return fun(*args, **options)

    # `wraps` copied it from a shortcut; the frame of this wrapper is outside of that.
    wrapper.__dict__.pop("is_entry_point", None)
    return wrapper


class recalled_jvp(custom_jvp):
    """A `custom_jvp` function that remembers its programs; see `recalled` for the conditions."""

    @entry_point
    def __call__(self, *args: Any, **options: Any) -> Any:
        trace = context.trace
        if trace.replays:
            return Recalled(super().__call__).call(trace, args, options)
        return super().__call__(*args, **options)
