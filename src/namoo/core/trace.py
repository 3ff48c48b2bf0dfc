"""Traces: the interpreters of operations.

At every moment one *current* trace interprets the operations that are bound.  A transformation
makes a trace whose parent is the current one, makes itself current while it runs the user's
function, and handles each operation by binding others on its parent.  The bottom one,
`EvalTrace`, computes with NumPy.
"""

from __future__ import annotations

import math
from _thread import _local
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from namoo import errors
from namoo._base import config, dtypes
from namoo._base.floating_errors import (
    floating_errors_off,
    reset_floating_errors,
    set_floating_errors,
)
from namoo._base.lazy import load_module
from namoo._base.source_context import at_user_line, source_context
from namoo.core.array import Array, EagerArray, PlacedArray, to_numpy
from namoo.core.avals import aval_of


class Memory:
    """The interface through which transformations reuse earlier work.

    This class remembers nothing; `namoo.memo` replaces `Trace.memory` by a subclass that does.
    """

    @staticmethod
    def operation(trace: Trace, prim: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The result of an operation under an eager transformation; None to apply the rules."""
        return None

    @staticmethod
    def backward(jaxpr: Any, consts: Any, inputs: Any, cts: Any) -> Any:
        """The result of `transforms.transpose.backward_pass`; None to run it."""
        return None

    @staticmethod
    def program_of(function: Any, key: Any, make: Callable[[], Any]) -> Any:
        """The program of a branch or loop body; `make` traces the function."""
        return make()


class Trace:
    """An interpreter of operations; `kind` names its method of primitives that hold functions."""

    kind = "trace"
    how = "a transformation"
    """The public function that it serves, for messages."""
    alive: bool = True
    eager: bool = False
    """Whether the stack of traces ends in concrete values that no setting checks."""
    replays: bool = False
    """Whether programs may be replayed under it: what it does depends on types alone."""
    asks_memory = False
    """Whether `bind` asks the memory for the result of each operation."""
    memory: Memory
    """Remembered work; one object for all traces."""
    parent: Trace
    main: Any = property(lambda self: self, doc="What identifies the trace, for libraries.")

    def stack_on(self, parent: Trace) -> None:
        """Make another trace the parent, which the rules bind operations on."""
        self.parent = parent
        self.eager = parent.eager
        self.replays = (parent.eager or parent.replays) and config.config.memo

    def process(self, prim: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interpret an operation.  Other libraries may define JAX's `process_primitive` instead."""
        return self.process_primitive(prim, args, params)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """End the trace: its values must not be used any more."""
        self.alive = False


Trace.memory = Memory()


class EvalTrace(Trace):
    """The bottom interpreter: concrete values in, NumPy, concrete values out."""

    kind = "eval"
    eager = True

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Both are singletons; unpickled transformations must refer to them.
        names = {id(eval_trace): "eval_trace", id(plain_trace): "plain_trace"}
        return names.get(id(self)) or super().__reduce__()

    def process(self, prim, args, params):
        if prim.higher_order:
            return prim.dispatch_by_trace(self, args, params)
        values, weak, mutable = [], bool(args), ()
        for x in args:
            if type(x) is EagerArray:
                values.append(x._value)
                weak = weak and x._weak
            elif isinstance(x, Tracer):
                x.escaped()
            elif isinstance(x, PlacedArray) and x._follows:
                return PlacedArray.apply(prim, args, params)
            else:
                values.append(to_numpy(x))
                if isinstance(x, np.ndarray):
                    mutable = (*mutable, x)
                weak = weak and not isinstance(x, (np.ndarray, np.generic, bool))
        token = set_floating_errors(floating_errors_off)
        try:
            out = prim.evaluate(*values, **params)
        except Exception:
            # The abstract rule explains wrong shapes or types in the caller's terms.
            if not prim.holds_program:
                prim.abstract(*map(aval_of, args), **params)
            raise
        finally:
            reset_floating_errors(token)
        if mutable and prim.multiple_results:
            out = [unaliased(o, mutable) for o in out]
        elif mutable:
            out = unaliased(out, mutable)
        if prim.weak_operands is not None:
            weak = all(dtypes.is_weak(x) for x in args[prim.weak_operands])
        if prim.multiple_results:
            flags = prim.weak_results(weak, len(out), params)
            return [wrap(o, w) for o, w in zip(out, flags, strict=True)]
        if prim.sets_weak:
            weak = prim.weak_result(weak, params)
        return EagerArray(out if type(out) is np.ndarray else np.asarray(out), weak)


def unaliased(value: Any, mutable: Sequence[np.ndarray]) -> Any:
    """Copy a result that shares memory with operands that the caller may write to."""
    if type(value) is not np.ndarray:
        return value
    if value.base is None and all(value is not x for x in mutable):
        return value
    return value.copy() if any(np.may_share_memory(value, x) for x in mutable) else value


def wrap(value: Any, weak_type: bool = False) -> EagerArray:
    """Wrap what NumPy returned; an array on a device is returned unchanged."""
    if type(value) is PlacedArray:
        return value
    return EagerArray(value if type(value) is np.ndarray else np.asarray(value), weak_type)


eval_trace = EvalTrace()


class _Context(_local):
    """The state of a thread: its current trace, and the sizes of the named axes in scope.

    The class holds the bottom trace of the threads that have no trace of their own.
    """

    trace: Trace = eval_trace
    axes: dict[Any, int] = {}
    checked: frozenset[Any] = frozenset()
    """The mesh axes of a `shard_map` that tracks which values differ along them."""
    mesh: Any = None
    """The mesh of the `shard_map` whose function is traced."""

    def __reduce__(self) -> str:
        return "context"


context = _Context()
plain_trace = EvalTrace()
"""The bottom interpreter without eager shortcuts, which are used under `eval_trace` only."""
plain_trace.eager = False


def bottom_trace(settings: Any) -> EvalTrace:
    """The bottom trace that the settings select: with checks, without shortcuts, or the usual."""
    if any(getattr(settings, name) for name in config.CHECKS):
        return load_module("namoo.analysis.checking_trace").checking_trace
    return eval_trace if settings.eager_shortcuts else plain_trace


def install_bottom_trace() -> None:
    """Make the bottom trace the one that the settings select now."""
    _Context.trace = bottom_trace(config.Config)
    bottom, top = bottom_trace(config.config), context.trace
    if isinstance(top, EvalTrace):
        if bottom is _Context.trace:
            context.__dict__.pop("trace", None)
        else:
            context.trace = bottom
        return
    while (parent := getattr(top, "parent", None)) is not None:
        if isinstance(parent, EvalTrace):
            top.parent = bottom
            return
        top = parent


class set_trace:
    """Make a trace the current one for a `with` block."""

    __slots__ = ("previous", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self):
        self.previous = context.trace
        context.trace = self.trace

    def __exit__(self, *exc):
        if self.previous is eval_trace:
            # The bottom trace of the class is right even if settings have changed inside.
            context.__dict__.pop("trace", None)
        else:
            context.trace = self.previous


class rules_on(set_trace):
    """Make a trace the current one while the rules of an operation run.

    Operations that they bind are attributed to the user's line of the outer operation.
    """

    __slots__ = ("first",)

    def __init__(self, trace: Trace, prim: Any):
        self.trace = trace
        self.first = prim.rules_are_pure and source_context.operation is None

    def __enter__(self):
        set_trace.__enter__(self)
        if self.first:
            source_context.operation = []

    def __exit__(self, *exc):
        set_trace.__exit__(self)
        if self.first:
            source_context.operation = None


class named_axis:
    """Bring a named axis of a given size into scope."""

    __slots__ = ("axes", "previous")

    def __init__(self, name: Any, size: int):
        self.axes = {} if name is None else {name: size}

    def __enter__(self):
        self.previous = context.axes
        context.axes = {**self.previous, **self.axes}

    def __exit__(self, *exc):
        context.axes = self.previous


def axis_size(name: Any) -> int:
    """The size of a named axis in scope."""
    name = tuple(name) if isinstance(name, list) else name
    if name in context.axes:
        return context.axes[name]
    if isinstance(name, tuple):
        return math.prod(map(axis_size, name))
    known = ", ".join(map(repr, context.axes)) or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. Axis names in scope: {known}. Name the axis "
        f"where the function is mapped: vmap(f, axis_name={name!r})."
    )


class Tracer(Array):
    """A value under a transformation."""

    # Underscored, because arrays have methods `trace` and `var`.
    __slots__ = ("_trace",)

    _trace: Trace

    def __init__(self, trace: Trace, aval: Any):  # for tracers of other libraries
        self._trace, self.aval = trace, aval  # type: ignore[misc]

    def concrete(self, wanted: str = "a concrete value", advice: str = "") -> EagerArray:
        """The value itself where the transformation knows it (as `grad` does, without `jit`)."""
        self.refuse(errors.ConcretizationTypeError, wanted, advice)

    def __reduce__(self) -> NoReturn:
        self.refuse(errors.ConcretizationTypeError, "a value that can be pickled")

    def origin(self) -> str:
        """Which arguments of which function the value was computed from, for messages."""
        return ""

    def static_remedy(self) -> str:
        """How to make the value known, if it is an argument that may be a setting, for messages."""
        return ""

    def refuse(
        self,
        error: type[errors.JAXTypeError | errors.JAXIndexError],
        wanted: str,
        advice: str = "",
    ) -> NoReturn:
        """Raise `error`: this value is traced, but `wanted` was needed here."""
        from namoo._base.user_code import advice_for_code  # needed only for errors

        if not self._trace.alive:
            self.escaped()
        lines = [
            f"{error.opening} traced array with shape {self.aval.str_short(short_dtypes=False)}.",
            f"{wanted[0].upper()}{wanted[1:]} was needed, but the value is traced: {self!r}.",
        ]
        lines += filter(None, (self.origin(), advice_for_code() or advice, self.static_remedy()))
        raise error("\n".join(lines) + at_user_line())

    def escaped(self) -> NoReturn:
        """Raise: this value was used outside the transformation that made it."""
        raise errors.UnexpectedTracerError(
            "Encountered an unexpected tracer: a traced value of type "
            f"{self.aval.str_short(short_dtypes=False)} escaped from the function that was being "
            "transformed, and was used after (or outside) it. Such a value has no numbers."
            f"\n{self.origin() or 'It was made by ' + self._trace.how + '.'}"
            "\nTransformed functions must return what they compute, and not save it to global "
            "state, an attribute, a list or a closure (grad takes further results with "
            "has_aux=True). To look at it, use namoo.debug.print." + at_user_line()
        )

    def __repr__(self) -> str:
        # A subclass may not have a type (yet); printing it must work all the same.
        return f"{type(self).__name__}<{self.aval and self.aval.str_short()}>"


config.on_checks(install_bottom_trace)
