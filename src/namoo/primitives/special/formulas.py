"""Formulas and loops on arrays in compiled programs, which `programs` is written with.

Values are computed in double precision and rounded once. A loop runs until no element changes. Each
element stops when it has converged, so its value does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo.primitives import bits
from namoo.primitives import elementwise as ew
from namoo.primitives.shape import broadcast_to, shape_of


class Number:
    """An array in a formula: Python's operators call those of `elementwise`."""

    def __init__(self, x: Any):
        self.x = x

    def _with(self, operation: Callable[[Any, Any], Any], other: Any, swap: bool = False) -> Number:
        y = other.x if isinstance(other, Number) else ew.full_like(self.x, other)
        return Number(operation(y, self.x) if swap else operation(self.x, y))

    def __add__(self, other: Any) -> Number:
        return self._with(ew.add, other)

    def __sub__(self, other: Any) -> Number:
        return self._with(ew.sub, other)

    def __rsub__(self, other: Any) -> Number:
        return self._with(ew.sub, other, swap=True)

    def __mul__(self, other: Any) -> Number:
        return self._with(ew.mul, other)

    def __truediv__(self, other: Any) -> Number:
        return self._with(ew.div, other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._with(ew.div, other, swap=True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Number:
        return Number(ew.neg(self.x))

    def __lt__(self, other: Any) -> Number:
        return self._with(ew.lt, other)

    def __le__(self, other: Any) -> Number:
        return self._with(ew.le, other)

    def __gt__(self, other: Any) -> Number:
        return self._with(ew.gt, other)

    def __ge__(self, other: Any) -> Number:
        return self._with(ew.ge, other)

    def equals(self, other: Any) -> Number:
        return self._with(ew.eq, other)

    def __and__(self, other: Number) -> Number:
        return Number(bits.bitwise_and(self.x, other.x))

    def __or__(self, other: Number) -> Number:
        return Number(bits.bitwise_or(self.x, other.x))

    def __invert__(self) -> Number:
        return Number(bits.bitwise_not(self.x))

    @property
    def finite(self) -> Number:
        return Number(ew.is_finite(self.x))


def where(condition: Number, x: Any, y: Any) -> Number:
    """`x` where a condition holds, else `y`; one of them may be a Python number."""
    like = x.x if isinstance(x, Number) else y.x
    cases = (v.x if isinstance(v, Number) else ew.full_like(like, v) for v in (x, y))
    shape = shape_of(condition.x)
    return Number(ew.select(condition.x, *(broadcast_to(v, shape) for v in cases)))


def as_function(operation: Callable[[Any], Any]) -> Callable[[Number], Number]:
    return lambda x: Number(operation(x.x))


exp, log, log1p, sqrt = map(as_function, (ew.exp, ew.log, ew.log1p, ew.sqrt))
size, square, rounded = map(as_function, (ew.abs, ew.square, ew.round))


def power(x: Number, y: Number) -> Number:
    """xʸ"""
    return Number(ew.pow(x.x, y.x))


def program(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for XLA from `compute(hlo, *values)`, on float64 values of one shape."""

    def stablehlo(hlo, *operands):
        wide = [hlo.convert(x, np.float64) for x in hlo.alike(*operands)]
        return hlo.convert(compute(hlo, *wide), hlo.avals[0].dtype)

    return stablehlo


def formula(compute: Callable[..., Number]) -> Callable[..., Any]:
    """A function of values in a program, from a formula of numbers."""
    return lambda hlo, *values: hlo.apply(lambda *xs: compute(*map(Number, xs)).x, *values)


def repeat(
    hlo: Any, step: Callable[..., Sequence[Number]], fixed: Sequence[Any], state: Sequence[Any]
) -> list[Any]:
    """Repeat steps 1, 2, … until all elements have converged, and return the state.

    Args:
        step: a function of the step's number, the fixed values and the state that returns which
          elements have not converged, and the new state.
    """
    shape = fixed[0].shape
    start = hlo.constant(0.0), hlo.constant(True, np.bool_, shape)

    def again(n, moving, *values):
        n = hlo.combine("add", n, hlo.constant(1.0))

        def moved(n, moving, *arrays):
            fix, old = arrays[: len(fixed)], arrays[len(fixed) :]
            going, *new = step(*map(Number, (n, *fix, *old)))
            kept = [where(Number(moving), a, Number(b)).x for a, b in zip(new, old, strict=True)]
            return [bits.bitwise_and(moving, going.x), *kept]

        return [n, *hlo.apply(moved, n, moving, *fixed, *values)]

    def unfinished(n, moving, *values):
        return hlo.reduce("or", moving, False, range(len(shape)))

    return hlo.while_loop([*start, *state], unfinished, again)[2:]


def corrected(name: str, correct: Callable[..., Number]) -> Callable[..., Any]:
    """Make a rule from an operation of XLA, correcting its results at the limits of its domain."""
    return program(lambda hlo, *xs: formula(correct)(hlo, *xs, hlo.op(name, *xs, result=xs[0])))


def zeta_limits(x: Number, q: Number, out: Number) -> Number:
    """Correct XLA's zeta."""
    return where(q.equals(np.inf) & (x > 1), 0.0, where(x < 1, np.nan, out))


def polygamma_limits(m: Number, x: Number, out: Number) -> Number:
    """Correct XLA's polygamma."""
    return where(x.equals(np.inf) & (m > 0) & rounded(m).equals(m), 0.0, out)
