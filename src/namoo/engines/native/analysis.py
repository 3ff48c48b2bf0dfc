"""What a program costs: operations, bytes and memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from namoo import errors
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn
from namoo.engines.native.graph import CALL, COMPUTE, DOT, REDUCE, Emitter, Graph, Node
from namoo.engines.native.loops import ControlStep, ScanStep, WhileStep
from namoo.engines.native.matrices import Product
from namoo.engines.native.plan import Plan, nbytes, planned
from namoo.engines.native.types import numpy_dtype


class MemoryAnalysis(NamedTuple):
    """Bytes that a call of a program needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        """All of it at once: what a call holds is the same from its start to its end."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            + self.temp_size_in_bytes
            - self.alias_size_in_bytes
        )


def operations(graph: Graph) -> int:
    """About how many operations a graph is; a while loop counts as one turn."""
    total = 0
    for node in graph.nodes:
        if node.kind is COMPUTE:
            total += node.cost * node.size
        elif node.kind is REDUCE:
            total += node.operands[0].size
        elif node.kind is DOT:
            product = node.data if isinstance(node.data, Product) else Product.of(node)
            axes = (*product.batch, *product.rows, product.columns, *product.inner)
            total += 2 * math.prod(axis.size for axis in axes)
        elif node.kind is CALL:
            bodies = getattr(node.data, "bodies", ())
            turns = node.data.length if isinstance(node.data, ScanStep) else 1
            most = [operations(body.graph) for body in bodies]
            combined = sum if isinstance(node.data, (ScanStep, WhileStep)) else max
            total += turns * combined(most) if most else sum(x.size for x in node.operands)
    return total


def traffic(plan: Plan) -> int:
    """Bytes that the steps of a plan read and write, its loops' bodies aside."""
    return sum(nbytes(node) for step in plan.steps for node in (*step.inputs, *plan.written(step)))


class SourcedEmitter(Emitter):
    """An emitter that knows the equation of each node."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.equations: dict[Node, JaxprEqn | None] = {}

    def add(self, node, unique=False):
        node = super().add(node, unique)
        self.equations.setdefault(node, self.eqn)
        return node

    def _remember(self, key, eqn, operands, results):
        """Every equation goes through its rule, and so through `add`."""


class _Value(NamedTuple):
    """What a program needs memory for."""

    size: int
    what: str
    eqn: JaxprEqn | None


def no_memory(closed: ClosedJaxpr, result: int | None) -> str:
    """The message for a program without memory for a result, or for all values in between."""
    name = closed.jaxpr.name or "function"
    if result is not None:
        var = closed.jaxpr.outvars[result]
        shape, dtype = var.aval.shape, numpy_dtype(var.aval.dtype)
        size = math.prod(shape) * dtype.itemsize
        eqn = next((e for e in closed.jaxpr.eqns if var in e.outvars), None)
        message = f"The compiled {name} could not get {_text(size)} for its result {result}:"
        return message + _line(_Value(size, f"{dtype}{list(shape)}", eqn))
    emitter = SourcedEmitter()
    plan = planned(closed, emitter)
    largest: dict[Any, _Value] = {}
    for value in sorted(_values(plan, emitter), key=lambda value: -value.size):
        largest.setdefault(value.eqn and value.eqn.source, value)
    message = f"The compiled {name} could not get {_text(plan.arena_size)} for values in between"
    return message + ", the largest of which are:" + "".join(map(_line, [*largest.values()][:3]))


def _values(plan: Plan, emitter: Any) -> list[_Value]:
    """All that lies in the arena of a plan."""
    found = [
        _Value(nbytes(node), f"{node.dtype}{list(node.shape)}", _equation(node, emitter))
        for node, (kind, _) in plan.places.items()
        if kind == "arena"
    ]
    for cluster in plan.steps:
        node = cluster.roots[0]
        if node.kind is not CALL or not node.data.scratch:
            continue
        what, size = "what it works with", node.data.scratch
        if isinstance(node.data, ControlStep):
            what = "what it carries"
            size -= max(body.plan.arena_size for body in node.data.bodies)
            for body in node.data.bodies:
                found += _values(body.plan, body.emitter)
        found.append(_Value(size, what, _equation(node, emitter)))
    return found


def _equation(node: Node, emitter: SourcedEmitter) -> JaxprEqn | None:
    """The equation of a node, or of what it is made of."""
    eqn = emitter.equations.get(node)
    for operand in () if eqn else node.operands:
        eqn = eqn or _equation(operand, emitter)
    return eqn


def _line(value: _Value) -> str:
    where = errors.at_user_line(value.eqn.source) if value.eqn and value.eqn.source else ""
    name = value.eqn.primitive.name if value.eqn else "an operation"
    return f"\n  {_text(value.size)}: {value.what}, {name}" + where.replace("\n", "\n  ")


def _text(size: int) -> str:
    """A number of bytes."""
    unit = min((size.bit_length() - 1) // 10, 4)
    short = f"{size / 1024**unit:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
    return f"{short} ({size} bytes)" if unit > 0 else f"{size} bytes"
