"""What a shortcut is, and the families that most of them belong to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.floating_errors import (
    floating_errors_off,
    reset_floating_errors,
    set_floating_errors,
)
from namoo._base.source_context import hide_internal_frames
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace

Function = Callable[..., Any]


class Shortcut(NamedTuple):
    """One entry of a table.

    Attributes:
        module: the library module inside namoo.
        name: the function that is shortened.
        compute: the NumPy function; None for functions that only remember their programs.
        when: the calls that it is used for.
        install: makes the function that replaces the general one.
    """

    module: str
    name: str
    compute: Function | None
    when: str
    install: Callable[[Function], Function]


class Entries(list[Shortcut]):
    """A table of shortcuts."""

    def of(self, module: str) -> list[Shortcut]:
        """The entries of a library module."""
        return [entry for entry in self if entry.module == module]

    def shortcut(self, function: str, remembers: bool = False) -> Callable[[Function], Function]:
        """Add a function on concrete arrays that returns None where the general path must run.

        It has the signature of the function it shortens; its docstring says when it is used.  It
        is called while no transformation runs.

        Args:
            function: module and name of the function that is shortened.
            remembers: whether the general function remembers its programs under transformations.
        """

        def add(compute: Function) -> Function:
            def install(general: Function) -> Function:
                return tried_first(compute, remembered(general) if remembers else general)

            module, _, name = function.rpartition(".")
            self.append(Shortcut(module, name, compute, str(compute.__doc__), install))
            return compute

        return add

    def unary(
        self,
        function: str,
        compute: Function,
        kinds: str = "fc",
        keeps_weak: bool = True,
        remembers: bool = True,
    ) -> None:
        """Add an elementwise function of one array.

        Args:
            function: module and name of the function that is shortened.
            compute: the NumPy function.
            kinds: the kinds of dtypes for which both agree.
            keeps_weak: whether the result of a weakly typed argument is weakly typed.
            remembers: whether the general function remembers its programs under transformations.
        """

        def install(general: Function) -> Function:
            return unary(compute, remembered(general) if remembers else general, kinds, keeps_weak)

        module, _, name = function.rpartition(".")
        self.append(Shortcut(module, name, compute, f"an array of kind {kinds}", install))

    def binary(self, function: str, compute: Function, kinds: str, scalars: Scalars) -> None:
        """Add an elementwise function of two operands; see `binary` for the arguments."""

        def install(general: Function) -> Function:
            return wraps(general)(binary(compute, general, kinds, scalars))

        module, _, name = function.rpartition(".")
        self.append(Shortcut(module, name, compute, pair_condition(kinds, scalars), install))

    def remembered(self, module: str, names: str) -> None:
        """Add functions that remember their programs under transformations, and nothing else."""
        for name in names.split():
            self.append(Shortcut(module, name, None, "under transformations", remembered))


def remembered(general: Function) -> Function:
    """Let a function of arrays remember its programs under transformations."""
    from namoo.memo.recalled import recalled

    return recalled(general)


def quiet(compute: Function, *values: Any) -> np.ndarray:
    """Call NumPy without its warnings about overflow, division by zero and NaN."""
    token = set_floating_errors(floating_errors_off)
    try:
        out = compute(*values)
    finally:
        reset_floating_errors(token)
    return out if type(out) is np.ndarray else np.asarray(out)


def tried_first(compute: Function, general: Function) -> Function:
    """`general`, unless no transformation runs and `compute` returns a result."""

    @wraps(general)
    def quick(*args: Any, **options: Any) -> Any:
        try:
            if context.trace is eval_trace:
                out = compute(*args, **options)
                if out is not None:
                    return out
            return general(*args, **options)
        except (Exception, KeyboardInterrupt) as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick


def unary(
    compute: Function, general: Function, kinds: str = "fc", keeps_weak: bool = True
) -> Function:
    """`general(x)`, computed by NumPy for concrete arrays of some kinds."""

    @wraps(general)
    def quick(x: Any, /) -> Any:
        try:
            if (
                type(x) is EagerArray
                and context.trace is eval_trace
                and x._value.dtype.kind in kinds
            ):
                token = set_floating_errors(floating_errors_off)
                try:
                    out = compute(x._value)
                finally:
                    reset_floating_errors(token)
                weak = x._weak and keeps_weak
                return EagerArray(out if type(out) is np.ndarray else np.asarray(out), weak)
            return general(x)
        except Exception as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick


Scalars = dict[Any, frozenset[type]]

_real = frozenset([int, float])
# The Python numbers that take the type of an array, by its dtype.  Narrow and unsigned integers
# are left out: numbers that do not fit wrap around there, which NumPy refuses.  For 64-bit types
# it depends on a setting; see `_wide_scalars`.
ARITHMETIC: Scalars = {
    dtypes.float32: _real,
    dtypes.float16: _real,
    dtypes.complex64: frozenset([int, float, complex]),
    dtypes.int32: frozenset([int]),
}
INEXACT: Scalars = {d: kinds for d, kinds in ARITHMETIC.items() if d != dtypes.int32}
ORDERED: Scalars = {d: kinds for d, kinds in ARITHMETIC.items() if d != dtypes.complex64}
REAL: Scalars = {dtypes.float32: _real, dtypes.float16: _real}
INTEGER: Scalars = {dtypes.int32: frozenset([int])}
_WIDE = {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}
_none: frozenset[type] = frozenset()


def _wide_scalars(scalars: Scalars, dtype: Any) -> frozenset[type]:
    """The Python numbers that take a 64-bit floating type while such types are enabled."""
    if config.enable_x64 and dtype in _WIDE:
        return scalars.get(_WIDE[dtype], _none)
    return _none


def pair_condition(kinds: str, scalars: Scalars) -> str:
    """When `binary` uses NumPy, in words."""
    numbers = ", ".join(
        f"{dtype} with {' or '.join(sorted(t.__name__ for t in types))}"
        for dtype, types in scalars.items()
    )
    arrays = f"two arrays of one dtype of kind {kinds}" if kinds else "no arrays"
    return arrays + (f"; {numbers}" if numbers else "")


def binary(
    compute: Function,
    general: Function,
    kinds: str,
    scalars: Scalars,
    swap: bool = False,
    operands: Scalars | None = None,
) -> Function:
    """`general(x, y)`, computed by NumPy for two concrete arrays, or an array and a number.

    Args:
        compute: the NumPy function; where it returns None, `general` is called.
        general: the general function.  It remembers its programs under transformations.
        kinds: the kinds of dtypes for which both agree.
        scalars: which Python numbers `y` may be, by dtype of `x`.
        swap: `compute(y, x)` instead, for reflected operators.
        operands: which Python numbers are operands of remembered programs; others are part of
            their key.  The same as `scalars` by default.
    """
    from namoo.memo.recalled import Recalled
    from namoo.numpy.promote import OPERANDS

    call = Recalled(general).call
    numbers = scalars if operands is None else operands

    def transformed(x: Any, y: Any) -> Any:
        trace = context.trace
        if not trace.replays or not isinstance(x, Array) or not isinstance(y, OPERANDS):
            return general(x, y)
        if not trace.eager:
            return call(trace, (x, y), {})
        dtype, kind = x.dtype, type(y)
        number: Any = y
        if kind in numbers.get(dtype, _none) and (
            kind is not int or -0x80000000 <= number <= 0x7FFFFFFF
        ):
            # The number is an operand of the program, not a part of its key.
            y = EagerArray(np.asarray(y, dtype), True)
        return call(trace, (x, y), {})

    def quick(x: Any, y: Any, /) -> Any:
        try:
            if type(x) is not EagerArray or context.trace is not eval_trace:
                return transformed(x, y)
            a, weak = x._value, x._weak
            dtype, kind = a.dtype, type(y)
            if kind is EagerArray:
                b = y._value
                if dtype is not b.dtype or dtype.kind not in kinds:
                    return general(x, y)
                if (
                    a.ndim != b.ndim
                    and a.ndim
                    and b.ndim
                    and config.numpy_rank_promotion != "allow"
                ):
                    return general(x, y)
                weak = weak and y._weak
            elif kind in (scalars.get(dtype) or _wide_scalars(scalars, dtype)):
                if kind is int and not -0x80000000 <= y <= 0x7FFFFFFF:
                    return general(x, y)
                b = y
            else:
                return general(x, y)
            token = set_floating_errors(floating_errors_off)
            try:
                out = compute(b, a) if swap else compute(a, b)
            except ValueError:
                # The shapes do not fit: the general path raises the error with a better message.
                out = None
            finally:
                reset_floating_errors(token)
            if type(out) is not np.ndarray:
                if out is None:
                    return general(x, y)
                out = np.asarray(out)
            # Promoting booleans makes them strongly typed.
            return EagerArray(out, weak and dtype.char != "?")
        except Exception as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick
