"""Traces: who handles an operation, now.

At every moment one *current* trace interprets the operations that are bound.  A transformation
makes a trace whose parent is the current one, makes itself current while it runs the user's
function, and handles each operation by binding others on its parent.  The bottom one,
`EvalTrace`, computes with NumPy.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from namoo import _config, _dtypes, errors
from namoo.core.array import Array, EagerArray, PlacedArray, to_numpy
from namoo.core.avals import aval_of


def _guards() -> tuple[Any, Any, Any]:
    """Functions that switch NumPy's floating-point warnings, and the setting that has none.

    Entering `np.errstate` costs more than a small operation; its context variable does not.
    """
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj
    except ImportError:  # another NumPy
        return lambda s: np.seterr(**s), lambda s: np.seterr(**s), {"all": "ignore"}
    return _extobj_contextvar.set, _extobj_contextvar.reset, _make_extobj(all="ignore")


_set_floating_errors, _reset_floating_errors, _ignore = _guards()


class floating_errors_ignored:
    """Overflow and invalid operations give inf and NaN, without NumPy's warnings."""

    __slots__ = ("token",)

    def __enter__(self):
        self.token = _set_floating_errors(_ignore)

    def __exit__(self, *exc):
        _reset_floating_errors(self.token)


class Trace:
    """An interpreter of operations.  `kind` names the method of a primitive that it calls for
    operations that hold Python functions; see `Primitive.under`."""

    kind = "trace"
    alive = True
    eager = False
    """Whether it, or a stack of traces, ends in concrete values that nobody checks."""
    recalls = False
    """Whether what happens under it depends on types alone, so that it may be done again from
    memory; see `transforms.recall`."""
    parent: Trace

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        """The result of an operation under this interpreter.

        An interpreter of a library on top may define JAX's `process_primitive` instead.
        """
        return self.process_primitive(prim, args, params)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """From now on this trace's values must not be used: they escaped."""
        self.alive = False


class EvalTrace(Trace):
    """The bottom interpreter: concrete values in, NumPy, concrete values out."""

    kind = "eval"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # There is one, and transformations that were pickled must ask for that one.
        return "eval_trace" if self is eval_trace else super().__reduce__()

    def process(self, prim, args, params):
        if prim.takes_functions:
            return prim.under(self, args, params)
        values, weak, others = [], bool(args), ()
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
                    others = (*others, x)
                weak = weak and not isinstance(x, (np.ndarray, np.generic, bool))
        token = _set_floating_errors(_ignore)
        try:
            out = prim.evaluate(*values, **params)
        except Exception:
            # The abstract rule tells a mistake in shapes or types in the caller's terms.
            if not prim.holds_program:
                prim.abstract(*map(aval_of, args), **params)
            raise
        finally:
            _reset_floating_errors(token)
        if others:
            out = [apart(o, others) for o in out] if prim.multiple_results else apart(out, others)
        if prim.weak_operands is not None:
            weak = all(_dtypes.is_weak(x) for x in args[prim.weak_operands])
        if prim.multiple_results:
            flags = prim.weak_results(weak, len(out), params)
            return [wrap(o, w) for o, w in zip(out, flags, strict=True)]
        if prim.sets_weak:
            weak = prim.weak_result(weak, params)
        return EagerArray(out if type(out) is np.ndarray else np.asarray(out), weak)


def apart(value: Any, others: Sequence[np.ndarray]) -> Any:
    """A result in memory that it does not share with operands that the caller may write to."""
    if type(value) is not np.ndarray:
        return value
    if value.base is None and all(value is not x for x in others):
        return value
    return value.copy() if any(np.may_share_memory(value, x) for x in others) else value


def wrap(value: Any, weak_type: bool = False) -> EagerArray:
    """An array around what NumPy returned; what lies on a device is one already."""
    if type(value) is PlacedArray:
        return value
    return EagerArray(value if type(value) is np.ndarray else np.asarray(value), weak_type)


eval_trace = EvalTrace()


class _Context(_local):
    """What a thread is doing: its current trace, and the sizes of the named axes in scope.

    The class holds the bottom trace of all threads that have no other.
    """

    trace: Trace = eval_trace
    axes: dict[Any, int] = {}
    checked: frozenset = frozenset()
    """The axes of a `shard_map` that keeps track of what differs along them."""
    mesh: Any = None
    """The mesh of the `shard_map` whose function is traced."""

    def __reduce__(self) -> str:
        return "context"


context = _Context()


class CheckingTrace(EvalTrace):
    """The bottom interpreter while a setting looks at operands or values; see `checks`.

    The short ways of eager mode ask for `eval_trace` itself, so every operation comes here.
    """

    def process(self, prim, args, params):
        from namoo.core.checks import check_operation

        if context.trace is self and _bottom(_config.config) is eval_trace:
            context.trace = eval_trace  # another thread switched the settings off
        out = super().process(prim, args, params)
        check_operation(prim, args, params, out)
        return out


checking_trace = CheckingTrace()


def _bottom(settings: Any) -> EvalTrace:
    """The bottom trace that settings ask for: one that checks, or the one with short ways."""
    checks = any(getattr(settings, name) for name in _config.CHECKS)
    return checking_trace if checks else eval_trace


def _settle() -> None:
    """Make the bottom trace the one that the settings ask for now."""
    _Context.trace = _bottom(_config.Config)
    wanted, top = _bottom(_config.config), context.trace
    if isinstance(top, EvalTrace):
        if wanted is _Context.trace:
            context.__dict__.pop("trace", None)
        else:
            context.trace = wanted
        return
    while (parent := getattr(top, "parent", None)) is not None:
        if isinstance(parent, EvalTrace):
            top.parent = wanted
            return
        top = parent


_config.on_checks(_settle)


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
            # The class knows better, if settings have changed in the meantime.
            context.__dict__.pop("trace", None)
        else:
            context.trace = self.previous


class rules_on(set_trace):
    """Make a trace the current one while rules of an operation run: what they bind comes from the
    line that asked for the operation."""

    __slots__ = ("first",)

    def __init__(self, trace: Trace, prim: Any):
        self.trace = trace
        self.first = prim.only_binds and errors.place.operation is None

    def __enter__(self):
        set_trace.__enter__(self)
        if self.first:
            errors.place.operation = []

    def __exit__(self, *exc):
        set_trace.__exit__(self)
        if self.first:
            errors.place.operation = None


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
        size = 1
        for part in name:
            size *= axis_size(part)
        return size
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

    def concrete(self, wanted: str = "a concrete value", advice: str = "") -> EagerArray:
        """The value itself where the transformation knows it (as `grad` does, without `jit`)."""
        self.refuse(errors.ConcretizationTypeError, wanted, advice)

    def __reduce__(self) -> NoReturn:
        self.refuse(errors.ConcretizationTypeError, "a value that can be pickled")

    def origin(self) -> str:
        """Which arguments of which function the value was computed from, for messages."""
        return ""

    def refuse(self, error: type[Exception], wanted: str, advice: str = "") -> NoReturn:
        """Raise `error`: this value is traced, but `wanted` was needed here."""
        if not self._trace.alive:
            self.escaped()
        shape = ",".join(map(str, self.aval.shape))
        lines = [
            f"{_CONVERSIONS[error]} traced array with shape {self.aval.dtype}[{shape}].",
            f"{wanted[0].upper()}{wanted[1:]} was needed, but the value is traced: {self!r}.",
        ]
        if origin := self.origin():
            lines.append(origin)
        if advice:
            lines.append(advice)
        raise error("\n".join(lines) + errors.at_user_line())

    def escaped(self) -> NoReturn:
        """Raise: this value was used outside the transformation that made it."""
        raise errors.UnexpectedTracerError(
            f"Encountered an unexpected tracer: a traced value of type {self.aval.str_short()} "
            "escaped from the function that was being transformed, and was used after (or outside) "
            "it. Such a value has no numbers."
            f"\n{self.origin() or 'It was made under ' + type(self._trace).__name__ + '.'}"
            "\nTransformed functions must return what they compute, and not save it to global "
            "state, an attribute, a list or a closure. To look at it, use namoo.debug.print."
            + errors.at_user_line()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.str_short()}>"


_CONVERSIONS = {
    errors.ConcretizationTypeError: "Abstract tracer value encountered where concrete value is "
    "expected:",
    errors.TracerBoolConversionError: "Attempted boolean conversion of",
    errors.TracerIntegerConversionError: "The __index__() method was called on",
    errors.TracerArrayConversionError: "The numpy.ndarray conversion method __array__() was called "
    "on",
    errors.NonConcreteBooleanIndexError: "Array boolean indices must be concrete; got",
}
"""JAX's words for what each error refuses; programs and tutorials look for them."""

BOOL_ADVICE = """\
Write instead, for a choice between two values: jnp.where(condition, a, b); between two
computations: lax.cond(condition, true_fun, false_fun, *operands); for a loop: lax.while_loop.
If the argument is a setting rather than data, mark it static: jit(f, static_argnames=('name',))."""

INTEGER_ADVICE = """\
A Python integer is needed for range(), shapes, axes and list indices. Mark the argument static,
jit(f, static_argnames=('n',)), or use lax.fori_loop, lax.dynamic_slice, jnp.take or x[i] on an
array instead."""

ARRAY_ADVICE = """\
NumPy functions cannot see inside traced values. Use the function of the same name in
namoo.numpy, or namoo.pure_callback to call NumPy when the program runs."""

SCALAR_ADVICE = """\
Keep the value an array (use x.astype(...) to change its type), or return it and convert it
outside; to look at it, use namoo.debug.print."""
