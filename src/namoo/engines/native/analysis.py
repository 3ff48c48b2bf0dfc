"""What a program costs: memory traffic, memory, and the message where there is not enough."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from namoo._base.source_context import at_user_line
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn
from namoo.engines.native.graph.node import CALL, Node
from namoo.engines.native.ir.types import numpy_dtype
from namoo.engines.native.kernels.control_flow import ControlStep
from namoo.engines.native.kernels.emitter import Emitter
from namoo.engines.native.memory.arena import Plan
from namoo.engines.native.pipeline import Source, result_of


class MemoryAnalysis(NamedTuple):
    """Bytes that a call of a program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        """Everything: a call holds the same memory from its start to its end."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            + self.temp_size_in_bytes
            - self.alias_size_in_bytes
        )


def traffic(plan: Plan) -> int:
    """Bytes that the steps of a plan read and write, without the bodies of its loops."""
    return sum(node.nbytes for step in plan.steps for node in (*step.inputs, *plan.written(step)))


class SourcedEmitter(Emitter):
    """An emitter that records the equation of each node."""

    def equation(self, eqn, operands):
        before = len(self.graph.nodes)
        results = super().equation(eqn, operands)
        for node in self.graph.nodes[before:]:
            self.graph.equations.setdefault(node, eqn)
        return results

    def _remember(self, key, eqn, operands, results):
        """Keep no recipes, so that every equation runs its rule and is recorded."""


class _Value(NamedTuple):
    """A value in the arena, for the message about its size."""

    size: int
    what: str
    eqn: JaxprEqn | None


def no_memory(closed: ClosedJaxpr, result: int | None) -> str:
    """The message for an allocation that failed: of one result, or of the arena."""
    name = closed.jaxpr.name or "function"
    if result is not None:
        var = closed.jaxpr.outvars[result]
        shape, dtype = var.aval.shape, numpy_dtype(var.aval.dtype)
        size = math.prod(shape) * dtype.itemsize
        eqn = next((e for e in closed.jaxpr.eqns if var in e.outvars), None)
        message = f"The compiled {name} could not get {_text(size)} for its result {result}:"
        return message + _line(_Value(size, f"{dtype}{list(shape)}", eqn))
    plan = result_of("allocate", Source(closed, emitter=SourcedEmitter))
    largest: dict[Any, _Value] = {}
    for value in sorted(_values(plan), key=lambda value: -value.size):
        largest.setdefault(value.eqn and value.eqn.source, value)
    message = f"The compiled {name} could not get {_text(plan.arena_size)} for values in between"
    return message + ", the largest of which are:" + "".join(map(_line, [*largest.values()][:3]))


def _values(plan: Plan) -> list[_Value]:
    """All values in the arena of a plan."""
    found = [
        _Value(node.nbytes, f"{node.dtype}{list(node.shape)}", _equation(node, plan))
        for node, (kind, _) in plan.buffers.items()
        if kind == "arena"
    ]
    for group in plan.steps:
        node = group.roots[0]
        if node.kind is not CALL or not node.data.scratch:
            continue
        what, size = "what it works with", node.data.scratch
        if isinstance(node.data, ControlStep):
            what = "what it carries"
            size -= max(body.plan.arena_size for body in node.data.bodies)
            for body in node.data.bodies:
                found += _values(body.plan)
        found.append(_Value(size, what, _equation(node, plan)))
    return found


def _equation(node: Node, plan: Plan) -> JaxprEqn | None:
    """The equation of a node, or of one of its operands."""
    eqn = plan.graph.equations.get(node)
    for operand in () if eqn else node.operands:
        eqn = eqn or _equation(operand, plan)
    return eqn


def _line(value: _Value) -> str:
    where = at_user_line(value.eqn.source) if value.eqn and value.eqn.source else ""
    name = value.eqn.primitive.name if value.eqn else "an operation"
    return f"\n  {_text(value.size)}: {value.what}, {name}" + where.replace("\n", "\n  ")


def _text(size: int) -> str:
    """A number of bytes."""
    unit = min((size.bit_length() - 1) // 10, 4)
    short = f"{size / 1024**unit:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
    return f"{short} ({size} bytes)" if unit > 0 else f"{size} bytes"
