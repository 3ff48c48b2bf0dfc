"""Functions and operations that remember their programs.

A function of arrays whose operations depend on types and settings alone is staged when it meets
types for the second time under a transformation; from then on its program is replayed.  The first
time it runs as it is written: one call is quicker than its program is made, and mistakes are told
in the user's terms.

Under `jit` the equations of the program, and of those that `vmap` and `grad` derive from it, are
written down again on other operands: the same ones, in the same order, as without memory, but
nothing is checked, promoted or asked of rules.  Without `jit`, see `replay`; there, operations
outside of such functions are remembered one by one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from namoo import _dtypes, errors
from namoo._config import config
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.primitive import Primitive
from namoo.core.trace import Trace, Tracer, context
from namoo.transforms.replay import replay
from namoo.transforms.stage import stage

patient = True
"""Whether programs are made only of what happens a second time; tests look at the first."""
known: dict[Any, Any] = {}
"""All programs, by what they are programs of; what has happened once is `SEEN`."""
SEEN: Any = object()
_LIMIT = 2048
_GENERAL: Any = object()
_PLAIN = frozenset([type(None), type(...), bool, int, str])
_IMMUTABLE = (str, int, type, enum.Enum, np.generic, np.dtype, _dtypes.ExtendedDType)


def _static(x: Any) -> Any:
    """A value as a part of a key: equal where programs may depend on it in the same way."""
    if type(x) is float and x and x == x:
        return x
    if isinstance(x, (float, complex, np.inexact)):
        return repr(x)  # there are two zeros, which are equal, and NaNs, which are not
    if type(x) is slice:  # without a hash before Python 3.12
        return slice, x.start, x.stop, x.step
    if type(x) is tuple:
        return tuple([(type(y), y if type(y) in _PLAIN else _static(y)) for y in x])
    if isinstance(x, _IMMUTABLE):
        return x
    raise TypeError(f"{type(x)} may be another thing next time, as arrays under a name are")


def note(key: Any) -> None:
    """Note that something has happened; what is known does not grow without bound."""
    if len(known) >= _LIMIT:
        known.clear()
    known[key] = SEEN


class Programs:
    """The programs of one function, by the types of its arrays and the values of the rest."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun

    def call(self, trace: Trace, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The function's result under a trace that recalls, which is the current one."""
        key: list[Any] = [self, config.trace_id()]
        operands = []
        kinds = Array if trace.eager else Tracer
        try:
            for x in args:
                if isinstance(x, kinds):
                    aval = x.aval
                    key += (aval.shape, aval.dtype, aval.weak_type)
                    operands.append(x)
                elif isinstance(x, Array):
                    # A program that is written down holds a number, and what follows from it.
                    return self.fun(*args, **options)
                else:
                    key += (type(x), x if type(x) in _PLAIN else _static(x))
            for name, x in options.items():
                key += (name, type(x), x if type(x) in _PLAIN else _static(x))
            found = tuple(key)
            program = known.get(found)
        except TypeError:  # an array among the options, or another object that is no setting
            return self.fun(*args, **options)
        if program is None:
            note(found)
            if patient:
                return self.fun(*args, **options)
        if program is None or program is SEEN:
            program = known[found] = self.stage(args, operands, options)
        if program is _GENERAL or program.consts and not trace.eager:
            return self.fun(*args, **options)
        place = errors.place
        if trace.eager or place.operation is not None:
            return replay(trace, program, operands)[0]
        # All equations come from the line that calls, which is not far from here.
        place.operation = [errors.user_source(inside=2)]
        try:
            return replay(trace, program, operands)[0]
        finally:
            place.operation = None

    def stage(self, args: Sequence[Any], operands: Sequence[Any], options: dict[str, Any]) -> Any:
        """The function's program; `_GENERAL` where it does more than a program can say."""

        single = True

        def flat(*values):
            nonlocal single
            rest = iter(values)
            out = self.fun(*[next(rest) if isinstance(x, Array) else x for x in args], **options)
            single = isinstance(out, Array)
            return [out] if single else []

        place = errors.place
        before, place.withheld = place.withheld, []
        try:
            jaxpr, consts = stage(flat, [x.aval for x in operands])
            warns = bool(place.withheld)
        except (errors.JAXTypeError, errors.NonConcreteBooleanIndexError):
            return _GENERAL  # it asks for numbers
        finally:
            place.withheld = before
        collective = any(eqn.primitive.collective_axes(eqn.params) for eqn in jaxpr.eqns)
        if collective or warns or jaxpr.effectful or not single:
            return _GENERAL
        return ClosedJaxpr(jaxpr, consts)


def operation(trace: Trace, prim: Primitive, args: Sequence[Any], params: dict) -> Any:
    """The result of an operation under an eager trace; None where its rules must be asked."""
    if not prim.only_binds or prim.effectful:
        return None
    key: list[Any] = [prim, config.trace_id()]
    for x in args:
        aval = aval_of(x)
        key += (aval.shape, aval.dtype, aval.weak_type)
    for name, x in params.items():
        key += (name, repr(x) if isinstance(x, (float, complex, np.inexact)) else x)
    try:
        program = known.get(found := tuple(key))
    except TypeError:  # a parameter without a hash
        return None
    if program is None:
        note(found)
        if patient:
            return None
    if program is None or program is SEEN:
        bind = prim.bind if prim.multiple_results else lambda *xs, **p: [prim.bind(*xs, **p)]
        jaxpr, consts = stage(lambda *xs: bind(*xs, **params), [aval_of(x) for x in args])
        program = known[found] = ClosedJaxpr(jaxpr, consts)
    outs = replay(trace, program, args)
    return outs if prim.multiple_results else outs[0]


def recalled(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays that returns one array remember its programs.

    Its operations may depend on the types of arrays and on the values of other arguments, and on
    nothing else.
    """
    call = Programs(fun).call

    @wraps(fun)
    def recall(*args: Any, **options: Any) -> Any:
        trace = context.trace
        if trace.recalls:
            return call(trace, args, options)
        return fun(*args, **options)

    return recall
