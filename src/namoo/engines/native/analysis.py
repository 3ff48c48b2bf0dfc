"""What a program costs: memory traffic, memory, and the message where there is not enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from namoo._base.source_context import Source, at_user_line
from namoo.core.jaxpr import ClosedJaxpr, Literal
from namoo.engines.native import pipeline
from namoo.engines.native.attribution import Alive, SourcedEmitter, arrays_at_peak
from namoo.engines.native.ir.extents import about
from namoo.engines.native.ir.types import numpy_dtype
from namoo.engines.native.memory.arena import Plan


class ArrayInMemory(NamedTuple):
    """An array that is in memory when a program needs the most.

    Attributes:
        size: its bytes.
        role: "argument", "result" or "temporary".
        what: its type, or what the memory is for.
        source: the user's line that computes it.
    """

    size: int
    role: str
    what: str
    source: Source | None = None

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        return f"{_text(self.size)}: {self.role} {self.what}{where}"


@dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes that a call of a program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0
    program: Any = field(default=None, repr=False, compare=False)

    @property
    def peak_memory_in_bytes(self) -> int:
        """Everything: a call holds the same memory from its start to its end."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            + self.temp_size_in_bytes
            - self.alias_size_in_bytes
        )

    def arrays_at_peak(self) -> list[ArrayInMemory]:
        """Return the arrays that are in memory when the program needs the most, largest first.

        A result that takes the memory of a donated argument is listed once, as the argument.
        """
        closed, in_place = self.program.closed, {o for _, o in self.program.made.in_place}
        jaxpr = closed.jaxpr
        makers = {v: eqn.source for eqn in jaxpr.eqns for v in eqn.outvars}
        found = [_whole(v, "argument", None) for v in jaxpr.invars]
        found += [
            _whole(v, "result", None if type(v) is Literal else makers.get(v))
            for i, v in enumerate(jaxpr.outvars)
            if i not in in_place
        ]
        for array in arrays_at_peak(self.program.sourced_plan()):
            source = array.eqn.source if array.eqn is not None else None
            found.append(ArrayInMemory(array.size, "temporary", array.what, source))
        return sorted(found, key=lambda array: -array.size)

    def __str__(self) -> str:
        peak = _text(self.peak_memory_in_bytes)
        lines = [f"  {array}" for array in self.arrays_at_peak()[:20]]
        return "\n".join([f"{peak} at the peak, of which:", *lines])


def _whole(atom: Any, role: str, source: Source | None) -> ArrayInMemory:
    shape, dtype = atom.aval.shape, numpy_dtype(atom.aval.dtype)
    size = math.prod(shape) * dtype.itemsize
    return ArrayInMemory(about(size), role, f"{dtype}{list(shape)}", source)


def traffic(plan: Plan) -> int:
    """Bytes that the steps of a plan read and write, without the bodies of its loops."""
    return sum(
        about(node.nbytes) for step in plan.steps for node in (*step.inputs, *plan.written(step))
    )


def no_memory(closed: ClosedJaxpr, result: int | None) -> str:
    """The message for an allocation that failed: of one result, or of the arena."""
    name = closed.jaxpr.name or "function"
    if result is not None:
        var = closed.jaxpr.outvars[result]
        shape, dtype = var.aval.shape, numpy_dtype(var.aval.dtype)
        size = math.prod(shape) * dtype.itemsize
        eqn = next((e for e in closed.jaxpr.eqns if var in e.outvars), None)
        message = f"The compiled {name} could not get {_text(size)} for its result {result}:"
        return message + _line(Alive(size, f"{dtype}{list(shape)}", eqn))
    plan = pipeline.result_of("allocate", pipeline.Source(closed, emitter=SourcedEmitter))
    largest: dict[Any, Alive] = {}
    for value in arrays_at_peak(plan):
        largest.setdefault(value.eqn and value.eqn.source, value)
    message = f"The compiled {name} could not get {_text(plan.arena_size)} for values in between"
    return message + ", the largest of which are:" + "".join(map(_line, [*largest.values()][:3]))


def _line(value: Alive) -> str:
    where = at_user_line(value.eqn.source) if value.eqn and value.eqn.source else ""
    name = value.eqn.primitive.name if value.eqn else "an operation"
    return f"\n  {_text(value.size)}: {value.what}, {name}" + where.replace("\n", "\n  ")


def _text(size: int) -> str:
    """A number of bytes."""
    unit = min((size.bit_length() - 1) // 10, 4)
    short = f"{size / 1024**unit:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
    return f"{short} ({size} bytes)" if unit > 0 else f"{size} bytes"
