"""The pass `allocate`: a buffer for each value that leaves its kernel.

A buffer is an argument of the program, or a range of the *arena*: one block of memory whose ranges
are used again as soon as nothing reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.fuse.groups import Fusion
from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.fuse.schedule import Schedule
from namoo.engines.native.graph.node import CALL, COMPUTE, COPY, PART, Graph, Node

Buffer = tuple[str, int]
"""`("in", i)`, `("const", i)`, `("out", i)` or `("arena", offset)`."""


def aligned(size: int) -> int:
    """A number of bytes, rounded up to the alignment of buffers."""
    return (size + tuning.ALIGNMENT - 1) // tuning.ALIGNMENT * tuning.ALIGNMENT


class Arena:
    """Ranges of one block of memory, reused when free."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, int] = {}
        """The lengths of the free ranges, by start."""
        self.starts: dict[int, int] = {}
        """The starts of the free ranges, by end."""

    def take(self, size: int) -> int:
        """Return the offset of a free range: the smallest that fits."""
        size = aligned(size)
        best, least = -1, math.inf
        for offset, length in self.free.items():
            if size <= length < least:
                best, least = offset, length
        if best < 0:
            best = self.starts.get(self.size, self.size)  # grow the last range, if it is free
            self.size = best + size
        length = self._remove(best)
        if length > size:
            self._add(best + size, length - size)
        return best

    def give(self, offset: int, size: int) -> None:
        """Free a range, and merge it with free neighbours."""
        size = aligned(size)
        if not size:
            return
        before = self.starts.get(offset, offset)
        self._add(before, self._remove(before) + size + self._remove(offset + size))

    def _add(self, offset: int, size: int) -> None:
        self.free[offset] = size
        self.starts[offset + size] = offset

    def _remove(self, offset: int) -> int:
        """Remove the free range that starts at an offset; return its length, 0 if there is none."""
        size = self.free.pop(offset, 0)
        if size:
            del self.starts[offset + size]
        return size


class DynamicArena:
    """As `Arena`, with sizes that are known at run time: a range is reused for an equal size."""

    def __init__(self) -> None:
        self.size: Any = 0
        self.free: dict[Any, list[Any]] = {}
        """The starts of the free ranges, by length."""

    def take(self, size: Any) -> Any:
        size = aligned(size)
        if free := self.free.get(size):
            return free.pop()
        offset, self.size = self.size, self.size + size
        return offset

    def give(self, offset: Any, size: Any) -> None:
        self.free.setdefault(aligned(size), []).append(offset)


@dataclass
class Plan:
    """The steps of a program in order, and the buffer of each value.

    Attributes:
        fusion: the groups.
        steps: the groups in the order in which they run.
        buffers: where each value in memory is.
        parts: the results of each step of kind `call`.
        scratch: for each step, the offset of its scratch memory in the arena.
        arena_size: bytes of the arena.
        in_place: inputs whose buffer the output that replaces them uses.
    """

    fusion: Fusion
    steps: list[FusionGroup]
    buffers: dict[Node, Buffer]
    parts: dict[Node, list[Node]]
    scratch: list[int] = field(default_factory=list)
    arena_size: int = 0
    in_place: set[int] = field(default_factory=set)

    @property
    def graph(self) -> Graph:
        return self.fusion.graph

    def written(self, group: FusionGroup) -> list[Node]:
        """The nodes that a step stores."""
        first = group.roots[0]
        return self.parts.get(first, []) if first.kind is CALL else group.stored

    def text(self, lines_of: Callable[[FusionGroup], str] = lambda group: "") -> str:
        """The steps in order: what each computes, and where its results are.

        Args:
            lines_of: the user's lines of a step, as text.
        """
        lines = []
        for number, group in enumerate(self.steps):
            first = group.roots[0]
            kind = type(first.data).__name__.lower() if first.kind is CALL else "kernel"
            where = lines_of(group)
            at = f"  at {where}" if where else ""
            lines.append(f"{number}: {kind} over {list(group.space)}{at}")
            for node in group.roots:
                reads = " ".join(f"%{x.number}" for x in node.operands)
                buffer = " ".join(map(str, self.buffers.get(node, ("registers",))))
                what = node.key[:2] if node.key else kind
                shape = f"{node.dtype}{list(node.shape)}"
                lines.append(f"    %{node.number}: {shape} = {what} {reads}  [{buffer}]")
        return "\n".join(lines)


def allocate(schedule: Schedule) -> Plan:
    """Give each value that leaves its kernel a buffer."""
    graph = schedule.fusion.graph
    plan = Plan(schedule.fusion, schedule.steps, _arguments(graph), _results_of_calls(graph))
    _drop_copies(plan)
    arena, buffers = DynamicArena() if graph.variables else Arena(), plan.buffers
    last: dict[Node, int] = {}
    """The last step that reads each node."""
    for i, group in enumerate(plan.steps):
        last.update(dict.fromkeys(group.inputs, i))
    _place_chains(plan, last)
    for i, group in enumerate(plan.steps):
        free: list[tuple[int, int]] = []
        first, extra, offset = group.roots[0], 0, 0
        if first.kind is CALL:
            extra = first.data.scratch
            _take_over(plan, first, last)
        for node in plan.written(group):
            if node not in buffers:
                buffers[node] = buffer = ("arena", arena.take(node.nbytes))
                if node not in last:
                    free.append((buffer[1], node.nbytes))
        if extra != 0:
            offset = arena.take(extra)
            free.append((offset, extra))
        plan.scratch.append(offset)
        for node in group.inputs:
            if last.get(node) == i:
                kind, start = buffers[node]
                if kind == "arena":
                    free.append((start, node.nbytes))
        for place in free:
            arena.give(*place)
    plan.arena_size = arena.size
    return plan


def _arguments(graph: Graph) -> dict[Node, Buffer]:
    buffers: dict[Node, Buffer] = {}
    for i, node in enumerate(graph.inputs):
        buffers[node] = ("in", i)
    for i, (node, _) in enumerate(graph.consts):
        buffers[node] = ("const", i)
    for i, node in enumerate(graph.outputs):
        buffers[node] = ("out", i)
    return buffers


def _results_of_calls(graph: Graph) -> dict[Node, list[Node]]:
    parts: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node.kind is PART and node.operands[0].kind is CALL:
            parts.setdefault(node.operands[0], []).append(node)
    return parts


def _drop_copies(plan: Plan) -> None:
    """Drop the copy of an input that is returned unchanged, if the output may use its buffer."""
    graph, copies = plan.graph, {}
    for i, j in graph.donated.items():
        output = graph.outputs[j]
        if output.kind is COMPUTE and output.key == COPY and output.operands == (graph.inputs[i],):
            copies[output] = i
    alone = {n for n in copies if plan.fusion.home[n].roots == [n]}
    for node in alone:
        plan.buffers[node] = ("in", copies[node])
        plan.in_place.add(copies[node])
    if alone:
        plan.steps = [g for g in plan.steps if g.roots[0] not in alone]


def _place_chains(plan: Plan, last: dict[Node, int]) -> None:
    """Let a chain of steps, each overwriting the result of the last, work in the output's buffer.

    If the first step overwrites the input that the output replaces, they work in the input's
    buffer.
    """
    graph, outputs = plan.graph, set(plan.graph.outputs)
    for j, output in enumerate(graph.outputs):
        chain = [output]
        while (operand := _overwritten(plan, chain[-1], last)) and operand not in outputs:
            chain.append(operand)
        kind, i = plan.buffers.get(chain[-1], ("", -1))
        place = ("out", j)
        if kind == "in":
            chain.pop()
            if graph.donated.get(i) == j and chain:
                place = ("in", i)
                plan.in_place.add(i)
        elif kind == "const":
            chain.pop()
        plan.buffers.update(dict.fromkeys(chain, place))


def _overwritten(plan: Plan, result: Node, last: dict[Node, int]) -> Node | None:
    """The operand whose buffer the result of a step may take over: nothing reads it later."""
    if result.kind is not PART or result.operands[0].kind is not CALL:
        return None
    (call,) = result.operands
    for i, o in call.data.takes_over.items():
        operand = call.operands[i]
        if o == result.data and call.operands.count(operand) == 1:
            now = plan.steps[last[operand]] is plan.fusion.home[call]
            return operand if now else None
    return None


def _take_over(plan: Plan, first: Node, last: dict[Node, int]) -> None:
    """Give a step's results the buffers of operands that nothing reads later."""
    buffers = plan.buffers
    for result in plan.parts.get(first, []):
        operand = _overwritten(plan, result, last)
        if operand and result not in buffers and buffers[operand][0] == "arena":
            buffers[result] = buffers[operand]
            del last[operand]
