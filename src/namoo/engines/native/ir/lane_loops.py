"""Loops in which each lane of a vector has its own number of iterations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

from namoo.engines.native.ir.function import Function, Value, suffix


@contextmanager
def repeat_while_any(f: Function, first: Sequence[Value]):
    """A loop that runs while its first value, a condition, holds in some lane.

    The block gets a list of the values of an iteration, and a function that takes those of the
    next one. After the loop, the list has the last values.
    """
    outer, lanes = f.depth, max(value.lanes for value in first)
    if lanes:
        first = [f.splat(value, lanes) for value in first]
    with f.repeat() as number:
        state = [f.carry(value) for value in first]
        phis = [*state]
        f.proceed_while(number, any_lane(f, phis[0]))

        def carry(values: Sequence[Value]) -> None:
            for phi, value in zip(phis, values, strict=True):
                f.carried(phi, f.splat(value, lanes) if lanes else value)

        yield state, carry
    state[:] = [Value(phi.name, phi.elem, phi.lanes, outer) for phi in phis]


def any_lane(f: Function, condition: Value) -> Value:
    """Whether a condition holds in some lane."""
    if not condition.lanes:
        return condition
    name = f"llvm.vector.reduce.or.{suffix('i1', condition.lanes)}"
    f.declarations[name] = f"declare i1 @{name}({condition.type})"
    return f.emit("i1", 0, f"call i1 @{name}({condition!r})", (condition,))
