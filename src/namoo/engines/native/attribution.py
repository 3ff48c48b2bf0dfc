"""Which equations, and so which of the user's lines, each step of a plan computes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from namoo._base.source_context import Source
from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native.fuse.kinds import KINDS, FusionGroup
from namoo.engines.native.graph.node import CALL, INPUT, LITERAL, Graph, HostCall, Node
from namoo.engines.native.ir.extents import about
from namoo.engines.native.kernels.control_flow import ControlStep, ScanStep
from namoo.engines.native.kernels.emitter import Emitter
from namoo.engines.native.kernels.registers import Body
from namoo.engines.native.memory.arena import Plan


class SourcedEmitter(Emitter):
    """An emitter that records the equation of each node."""

    def equation(self, eqn, operands):
        before = len(self.graph.nodes)
        results = super().equation(eqn, operands)
        for node in self.graph.nodes[before:]:
            self.graph.equations.setdefault(node, eqn)
        return results

    def _remember(self, key, eqn, operands, results):
        """Keep no recipes: every equation goes through its rule."""


@dataclass
class Cost:
    """What an equation costs in one run of a step: operations, and bytes of memory traffic."""

    flops: int = 0
    bytes: int = 0


Costs = dict[JaxprEqn | None, Cost]


def equation_of(node: Node, graph: Graph) -> JaxprEqn | None:
    """The equation of a node, or of one of its operands where a pass made the node."""
    eqn = graph.equations.get(node)
    for operand in () if eqn else node.operands:
        eqn = eqn or equation_of(operand, graph)
    return eqn


def costs(plan: Plan, group: FusionGroup) -> Costs:
    """What each equation costs that a step computes, or a part of it.

    A loop whose body is a separate plan has no costs: they belong to the steps of that plan.
    """
    found: Costs = {}
    graph, first = plan.graph, group.roots[0]
    if first.kind is CALL:
        eqn = equation_of(first, graph)
        own = found.setdefault(eqn, Cost())
        if isinstance(first.data, ControlStep) and not first.data.small():
            return found
        own.bytes = sum(about(n.nbytes) for n in (*first.operands, *plan.written(group)))
        if isinstance(first.data, ControlStep):
            _add_bodies(found, first.data, 1)
        else:
            own.flops = first.data.operations(first.operands)
        return found
    read: set[Node] = set()
    for root, node in _computed(plan, group):
        cost = found.setdefault(equation_of(node, graph), Cost())
        cost.flops += KINDS[node.kind].operations(node)
        for x in node.operands:
            if x in group.inputs and x not in read and x.kind is not LITERAL:
                read.add(x)
                cost.bytes += about(x.nbytes)
        if node is root and node in group.stored:
            cost.bytes += about(node.nbytes)
    return found


def _computed(plan: Plan, group: FusionGroup) -> Iterator[tuple[Node, Node]]:
    """The nodes that a kernel computes, each with the root that it is computed for first."""
    seen: set[Node] = set(group.inputs)
    for root in group.roots:
        stack = [root]
        while stack:
            node = stack.pop()
            if node in seen or node.kind in (INPUT, LITERAL) or node.kind not in KINDS:
                continue
            seen.add(node)
            yield root, node
            stack += node.operands


def _add_bodies(found: Costs, step: ControlStep, times: int) -> None:
    """Add what the bodies of a loop in registers compute; a while loop counts as one iteration."""
    times *= step.length if isinstance(step, ScanStep) else 1
    for body in step.bodies:
        graph = body.graph
        for node in graph.nodes:
            if node.kind is CALL and isinstance(node.data, ControlStep):
                _add_bodies(found, node.data, times)
            elif node.kind in KINDS:
                cost = found.setdefault(equation_of(node, graph), Cost())
                cost.flops += times * KINDS[node.kind].operations(node)


def short_line(source: Source) -> str:
    """A user's line in few characters, with ← where it is the backward pass of the line."""
    return f"{os.path.basename(source.file)}:{source.line}" + " ←" * source.backward


def lines_of(plan: Plan, group: FusionGroup) -> str:
    """The user's lines that a step computes, as text."""
    sources = [eqn.source for eqn in costs(plan, group) if eqn is not None]
    return ", ".join(sorted({short_line(source) for source in sources if source is not None}))


def kind_of(group: FusionGroup) -> str:
    """What a step is, in a word: "loop", "dot", "reduce", "scan", "host", …"""
    first = group.roots[0]
    if first.kind is not CALL:
        kinds = {root.kind for root in group.roots}
        return "reduce" if "reduce" in kinds else "loop" if kinds <= {"compute", "part"} else "dot"
    if isinstance(first.data, HostCall):
        return "host"
    return type(first.data).__name__.removesuffix("Step").lower()


class Alive:
    """An array in the arena at some step.

    Attributes:
        size: its bytes.
        what: its type, or what the memory is for.
        eqn: the equation that it comes from.
    """

    __slots__ = ("eqn", "size", "what")

    def __init__(self, size: int, what: str, eqn: JaxprEqn | None):
        self.size, self.what, self.eqn = size, what, eqn


def arrays_at_peak(plan: Plan) -> list[Alive]:
    """What the arena holds at the step at which it holds the most, the largest first."""
    last: dict[tuple[str, int], int] = {}
    for i, group in enumerate(plan.steps):
        for node in (*group.inputs, *plan.written(group)):
            if plan.buffers[node][0] == "arena":
                last[plan.buffers[node]] = i
    alive: dict[tuple[str, int], Node] = {}
    most, best = -1, []
    for i, group in enumerate(plan.steps):
        alive |= {plan.buffers[n]: n for n in plan.written(group) if plan.buffers[n][0] == "arena"}
        first = group.roots[0]
        scratch = first.data.scratch if first.kind is CALL else 0
        size = about(scratch) + sum(about(node.nbytes) for node in alive.values())
        if size > most:
            most, best = size, [_array(node, plan.graph) for node in alive.values()]
            best += _scratch(first, plan.graph) if scratch else []
        # Buffers of a chain of steps that overwrite one array are read again under other names.
        alive = {place: node for place, node in alive.items() if last[place] > i}
    return sorted(best, key=lambda array: -array.size)


def _array(node: Node, graph: Graph) -> Alive:
    return Alive(about(node.nbytes), f"{node.dtype}{list(node.shape)}", equation_of(node, graph))


def _scratch(call: Node, graph: Graph) -> list[Alive]:
    """What the memory of a step is for: its bodies hold arrays, too."""
    step, found = call.data, []
    size, what = step.scratch, "what it works with"
    if isinstance(step, ControlStep):
        body: Body = max(step.bodies, key=lambda body: body.plan.arena_size)
        found = arrays_at_peak(body.plan)
        size, what = size - body.plan.arena_size, "what it carries"
    return [*found, Alive(size, what, equation_of(call, graph))]
