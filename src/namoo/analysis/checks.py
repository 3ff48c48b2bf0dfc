"""Checks of running operations, by setting: operands (`strict`), and values (`debug_nans`, …).

A primitive declares in its rule `guards` what must hold for its operands: indices are inside their
axis, integers are not divided by zero, and their sums and products fit their type.  Eager mode and
the interpreter check them here, native code in `engines.native.checks`; all raise the same
errors.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.source_context import Source, at_user_line, source_context
from namoo.analysis import nans
from namoo.core.array import to_numpy
from namoo.core.avals import aval_of

INTEGERS = dtypes.MEMBERS[np.integer]


class Guard(NamedTuple):
    """A condition on an operand: its elements are divisors, or positions along an axis.

    Attributes:
        operand: the number of the operand.
        axis: the axis that its elements index; None for divisors, which must not be 0.
        size: the length of that axis.
        window: how many elements are read or written from each position on.
        component: which elements of the operand's last axis are meant; None for all elements.
    """

    operand: int
    axis: int | None = None
    size: int = 0
    window: int = 1
    component: int | None = None

    def elements(self, operand: np.ndarray) -> np.ndarray:
        """The elements of an operand that the condition is about."""
        return operand if self.component is None else operand[..., self.component]

    def wrong(self, elements: np.ndarray) -> np.ndarray:
        """Which elements break the condition."""
        if self.axis is None:
            return elements == 0
        return (elements < 0) | (elements > self.size - self.window)

    def first(self, operands: Sequence[np.ndarray] | Mapping[int, np.ndarray]) -> int | None:
        """The number of the first element that breaks the condition."""
        return _first(self.wrong(self.elements(operands[self.operand])))

    def error(
        self, operation: str, number: int, operands: Sequence[np.ndarray] | Mapping[int, np.ndarray]
    ) -> Exception:
        """The error for an element; `located` adds where it came from."""
        elements = self.elements(operands[self.operand])
        position = _position(number, elements.shape)
        value = int(elements[position])
        where = f"encountered in {operation}"
        if position:
            where += f" at {list(position)} of its operand {self.operand}"
        if self.axis is None:
            return ZeroDivisionError(f"integer division by zero {where}")
        if self.window == 1:
            what = f"index {value} is out of bounds for axis {self.axis} with size {self.size}"
        else:
            what = (
                f"a window of {self.window} elements at {value} is out of bounds for axis "
                f"{self.axis} with size {self.size}"
            )
        if value < 0:
            what += f" (for x[i] with a negative i, this is {self.size} + i)"
        return IndexError(f"{what}, {where}")


class Overflow(NamedTuple):
    """The condition that the exact result of integer arithmetic fits the type of the operands.

    Attributes:
        kind: the operation; "add", "sub", "mul" and "neg" are known to engines.
        evaluate: the operation, on NumPy's arrays of any type.
    """

    kind: str
    evaluate: Callable[..., Any]

    def _wide(self, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The result in float64, which is near, and in int64, which is exact below 2**63."""
        with np.errstate(all="ignore"):
            near = self.evaluate(*(x.astype(np.float64) for x in operands))
            exact = self.evaluate(*(x.astype(np.int64) for x in operands))
        return np.asarray(near), np.asarray(exact)

    def first(self, operands: Sequence[np.ndarray]) -> int | None:
        """The number of the first element of the result that does not fit."""
        limits, (near, exact) = dtypes.iinfo(operands[0].dtype), self._wide(operands)
        outside = (exact < int(limits.min)) | (exact > int(limits.max))
        return _first(outside | ~((near >= -(2.0**63)) & (near < 2.0**63)))

    def error(self, operation: str, number: int, operands: Sequence[np.ndarray]) -> Exception:
        """The error for an element of the result."""
        near, exact = self._wide(operands)
        position = _position(number, exact.shape)
        where = f" at {list(position)} of its result" if position else ""
        value = str(exact[position]) if abs(near[position]) < 2.0**62 else f"{near[position]:.4g}"
        if self.kind in _SIGNS:
            x, y = (int(np.broadcast_to(z, exact.shape)[position]) for z in operands)
            value = f"{x} {_SIGNS[self.kind]} {y} = {value}"
        return OverflowError(
            f"integer overflow encountered in {operation}{where}: {value} does not fit "
            f"{operands[0].dtype}"
        )


def overflow(prim: Any, x: Any, params: dict[str, Any]) -> Sequence[Overflow]:
    """The guards of an operation whose result may not fit the type of its integers.

    uint32 and uint64 are left out: they hold random bits and hashes, which are made to wrap.
    """
    if x.dtype not in INTEGERS or x.dtype in (dtypes.uint32, dtypes.uint64):
        return ()
    return (Overflow(prim.name, partial(prim.evaluate, **params)),)


_SIGNS = {"add": "+", "sub": "-", "mul": "*"}


def _first(wrong: Any) -> int | None:
    return int(np.argmax(wrong)) if np.any(wrong) else None


def _position(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(number, shape))


class _Loops(_local):
    running: tuple[in_loop, ...] = ()


_loops = _Loops()


class in_loop:
    """Names the current iteration of a loop in errors: set `iteration` in each of them.

    Example:
        >>> with in_loop("scan") as loop:
        ...     loop.iteration = 3
        ...     iterations()
        ', in iteration 3 of scan'
    """

    __slots__ = ("name", "outer", "iteration")

    def __init__(self, name: str):
        self.name = name
        self.iteration = 0

    def __enter__(self) -> in_loop:
        self.outer = _loops.running
        _loops.running = (self, *self.outer)
        return self

    def __exit__(self, *exc: object) -> None:
        _loops.running = self.outer


@contextmanager
def in_loops(names: Sequence[str], numbers: Sequence[Any]) -> Iterator[None]:
    """Name the iterations of several loops, the outermost first, in errors."""
    with ExitStack() as stack:
        for name, number in zip(names, numbers, strict=True):
            stack.enter_context(in_loop(name)).iteration = int(number)
        yield


def iterations() -> str:
    """The loops that are running, the innermost first."""
    return "".join(f", in iteration {loop.iteration} of {loop.name}" for loop in _loops.running)


def located(error: Exception, source: Source | None) -> Exception:
    """An error whose message also names the iterations of loops and the user's line."""
    advice = "" if type(error) is not IndexError else _ADVICE
    return type(error)(f"{error}{iterations()}.{advice}{at_user_line(source)}")


def check_operands(
    operation: str,
    guards: Sequence[Guard | Overflow],
    operands: Sequence[np.ndarray] | Mapping[int, np.ndarray],
    source: Source | None = None,
) -> None:
    """Raise unless all conditions hold; they refer to operands by their numbers."""
    for guard in guards:
        number = guard.first(operands)  # type: ignore[arg-type]
        if number is not None:
            raise located(guard.error(operation, number, operands), source)  # type: ignore[arg-type]


_ADVICE = (
    " Where indices may be outside, say what they mean: x.at[i].get(mode='fill') or mode='clip', "
    "x.at[i].set(y, mode='drop')."
)

# Operations that repeat values are not checked: the values were checked where they were computed,
# or are intended, such as the NaN that a median selects.
_REPEATING = ("broadcast_in_dim",)

Test = tuple[str, Callable[[Any], Any]]


def value_tests() -> list[Test]:
    """The tests of every value that the current settings enable."""
    tests: list[Test] = []
    if config.debug_nans:
        tests.append(("nan", np.isnan))
    if config.debug_infs:
        tests.append(("inf", np.isinf))
    return tests


def check_value(
    operation: str,
    tests: Sequence[Test],
    value: np.ndarray,
    source: Source | None = None,
    operands: Sequence[Any] = (),
) -> None:
    """Raise if a value has elements that are not wanted.

    Args:
        operation: the name of the operation that computed it.
        tests: the tests for such elements.
        value: the value.
        source: the user's line, where it is not the current one.
        operands: the operands of the operation, for the message.
    """
    if operation in _REPEATING or not dtypes.issubdtype(value.dtype, np.inexact):
        return
    for name, test in tests:
        found = test(value)
        if found.any():
            kind = f"{value.dtype}[{','.join(map(str, value.shape))}]"
            backward = source_context.backward if source is None else source.backward
            error = FloatingPointError(
                f"invalid value ({name}) encountered in {operation}"
                f"{', in the backward pass' if backward else ''}: {int(found.sum())} of "
                f"{value.size} elements of its result {kind}"
                f"{nans.operands_text(np.asarray(found), operands)}"
            )
            error = located(error, source)
            # It may come from a `where`; the caller looks for one.
            error.zero_cotangent = backward and nans.has_zero(found, operands)  # type: ignore[attr-defined]
            raise error


def check_operation(prim: Any, args: Sequence[Any], params: dict, out: Any) -> None:
    """Check an eager operation, as the settings require."""
    # Operations of nested programs are checked one by one, but the constants that such
    # programs return are not.
    if config.strict and not (prim.higher_order or prim.holds_program):
        guards = prim.guards(*map(aval_of, args), **params)
        if guards:
            check_operands(prim.name, guards, [to_numpy(x) for x in args])
    tests = value_tests()
    if tests:
        for result in out if prim.multiple_results else [out]:
            check_value(prim.name, tests, to_numpy(result), operands=args)
