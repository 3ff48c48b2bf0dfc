"""The short way: concrete operands of one type go to NumPy at once.

A small eager operation is a few hundred nanoseconds of NumPy.  The general way (check, promote,
broadcast, bind, evaluate, wrap) costs ten times that, so the common cases are recognised here:
no transformation is running, and the operands are arrays of one type, or an array and a Python
number that takes its type.  Everything else, errors included, is left to the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from namoo import _dtypes
from namoo._config import config
from namoo.core.array import Array, EagerArray
from namoo.core.trace import _ignore as ignore
from namoo.core.trace import _reset_floating_errors as reset_floating_errors
from namoo.core.trace import _set_floating_errors as set_floating_errors
from namoo.core.trace import context, eval_trace
from namoo.errors import tidy
from namoo.numpy.promote import OPERANDS, promote_inexact
from namoo.transforms.recall import Programs, recalled

Function = Callable[..., Any]
Scalars = dict[Any, frozenset[type]]

_real = frozenset([int, float])
# Which Python numbers take which dtype.  Narrow and unsigned integers are not here: numbers that
# do not fit wrap around in them, which NumPy does not do.  64-bit types depend on a setting.
ARITHMETIC: Scalars = {
    _dtypes.float32: _real,
    _dtypes.float16: _real,
    _dtypes.complex64: frozenset([int, float, complex]),
    _dtypes.int32: frozenset([int]),
}
INEXACT: Scalars = {d: kinds for d, kinds in ARITHMETIC.items() if d != _dtypes.int32}
ORDERED: Scalars = {d: kinds for d, kinds in ARITHMETIC.items() if d != _dtypes.complex64}
REAL: Scalars = {_dtypes.float32: _real, _dtypes.float16: _real}
INTEGER: Scalars = {_dtypes.int32: frozenset([int])}
_WIDE = {_dtypes.float64: _dtypes.float32, _dtypes.complex128: _dtypes.complex64}
_none: frozenset[type] = frozenset()


def _wide_scalars(scalars: Scalars, dtype: Any) -> frozenset[type]:
    """Python numbers that take a 64-bit floating type, while such types are on."""
    if config.enable_x64 and dtype in _WIDE:
        return scalars.get(_WIDE[dtype], _none)
    return _none


def shortcut(
    compute: Function, slow: Function, kinds: str, scalars: Scalars, swap: bool = False
) -> Function:
    """`slow(x, y)`, computed by `compute` on NumPy arrays where that is the same.

    Args:
        compute: the NumPy function; where it returns None, `slow` is called after all.
        slow: the general function.
        kinds: the kinds of dtypes that `compute` treats as `slow` does.
        scalars: which Python numbers `y` may be, by dtype of `x`.
        swap: `compute(y, x)` instead, for reflected operators.
    """

    call = Programs(slow).call

    def transformed(x: Any, y: Any) -> Any:
        trace = context.trace
        if not trace.recalls or not isinstance(x, Array) or not isinstance(y, OPERANDS):
            return slow(x, y)
        if not trace.eager:
            return call(trace, (x, y), {})
        dtype, kind = x.dtype, type(y)
        number: Any = y
        if kind in scalars.get(dtype, _none) and (
            kind is not int or -0x80000000 <= number <= 0x7FFFFFFF
        ):
            # A number is an operand: its value is no part of the program.
            y = EagerArray(np.asarray(y, dtype), True)
        return call(trace, (x, y), {})

    def short(x: Any, y: Any, /) -> Any:
        try:
            if type(x) is not EagerArray or context.trace is not eval_trace:
                return transformed(x, y)
            a, weak = x._value, x._weak
            dtype, kind = a.dtype, type(y)
            if kind is EagerArray:
                b = y._value
                if dtype is not b.dtype or dtype.kind not in kinds:
                    return slow(x, y)
                if (
                    a.ndim != b.ndim
                    and a.ndim
                    and b.ndim
                    and config.numpy_rank_promotion != "allow"
                ):
                    return slow(x, y)
                weak = weak and y._weak
            elif kind in (scalars.get(dtype) or _wide_scalars(scalars, dtype)):
                if kind is int and not -0x80000000 <= y <= 0x7FFFFFFF:
                    return slow(x, y)
                b = y
            else:
                return slow(x, y)
            token = set_floating_errors(ignore)
            try:
                out = compute(b, a) if swap else compute(a, b)
            except ValueError:
                # Shapes that do not fit: the general way says which, in its own words.
                out = None
            finally:
                reset_floating_errors(token)
            if type(out) is not np.ndarray:
                if out is None:
                    return slow(x, y)
                out = np.asarray(out)
            return EagerArray(out, weak)
        except Exception as error:
            tidy(error)
            raise

    short.is_boundary = True  # type: ignore[attr-defined]
    return short


def binary(compute: Function, kinds: str, scalars: Scalars) -> Callable[[Function], Function]:
    """Give a function of two array-likes a short way through NumPy."""

    def decorate(fun: Function) -> Function:
        return wraps(fun)(shortcut(compute, fun, kinds, scalars))

    return decorate


def unary(
    compute: Function,
    kinds: str = "fc",
    promotion: Function = promote_inexact,
    keeps_weak: bool = True,
) -> Callable[[Function], Function]:
    """Make a function of one array one of anything array-like, with a short way through NumPy.

    Args:
        compute: the NumPy function.
        kinds: the kinds of dtypes that `compute` treats as the general function does.
        promotion: what makes the argument ready for the general function.
        keeps_weak: whether the result of a weakly typed argument is weakly typed.
    """

    def decorate(fun: Function) -> Function:
        name = fun.__name__
        general = recalled(lambda x: fun(*promotion(name, x)))

        @wraps(fun)
        def short(x: Any, /) -> Any:
            try:
                if (
                    type(x) is EagerArray
                    and context.trace is eval_trace
                    and x._value.dtype.kind in kinds
                ):
                    token = set_floating_errors(ignore)
                    try:
                        out = compute(x._value)
                    finally:
                        reset_floating_errors(token)
                    weak = x._weak and keeps_weak
                    return EagerArray(out if type(out) is np.ndarray else np.asarray(out), weak)
                return general(x)
            except Exception as error:
                tidy(error)
                raise

        short.is_boundary = True  # type: ignore[attr-defined]
        return short

    return decorate
