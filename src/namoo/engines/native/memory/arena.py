"""The pass `allocate`: a buffer for each value that leaves its kernel.

A buffer is an argument of the program, or a range of the *arena*: one block of memory whose ranges
are used again as soon as nothing reads them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from namoo.engines.native import tuning
from namoo.engines.native.fuse.groups import Fusion
from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.fuse.schedule import Schedule
from namoo.engines.native.graph.node import CALL, PART, Graph, Node

Buffer = tuple[str, int]
"""`("in", i)`, `("const", i)`, `("out", i)` or `("arena", offset)`."""


def aligned(size: int) -> int:
    """A number of bytes, rounded up to the alignment of buffers."""
    return -(-size // tuning.ALIGNMENT) * tuning.ALIGNMENT


class Arena:
    """Ranges of one block of memory, reused when free."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, int] = {}
        """Lengths of free ranges, by where they start."""
        self.starts: dict[int, int] = {}
        """Where they start, by where they end."""

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
        """Take a range back, and join it with its neighbours."""
        size = aligned(size)
        if not size:
            return
        before = self.starts.get(offset, offset)
        self._add(before, self._remove(before) + size + self._remove(offset + size))

    def _add(self, offset: int, size: int) -> None:
        self.free[offset] = size
        self.starts[offset + size] = offset

    def _remove(self, offset: int) -> int:
        """Remove the free range that starts somewhere; return its length, 0 if there is none."""
        size = self.free.pop(offset, 0)
        if size:
            del self.starts[offset + size]
        return size


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
      in_place: inputs whose buffer becomes that of the output which replaces them.
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

    def text(self) -> str:
        """The steps in order: what each computes, and where its results are."""
        lines = []
        for number, group in enumerate(self.steps):
            first = group.roots[0]
            kind = type(first.data).__name__.lower() if first.kind is CALL else "kernel"
            lines.append(f"{number}: {kind} over {list(group.space)}")
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
    arena, buffers = Arena(), plan.buffers
    last: dict[Node, int] = {}
    """The last step that reads each node."""
    for i, group in enumerate(plan.steps):
        last.update(dict.fromkeys(group.inputs, i))
    for i, group in enumerate(plan.steps):
        free: list[tuple[int, int]] = []
        first, extra, offset = group.roots[0], 0, 0
        if first.kind is CALL:
            extra = first.data.scratch
            _take_over(plan, first, i, last)
        for node in plan.written(group):
            if node not in buffers:
                buffers[node] = buffer = ("arena", arena.take(node.nbytes))
                if node not in last:
                    free.append((buffer[1], node.nbytes))
        if extra:
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


def _take_over(plan: Plan, first: Node, step: int, last: dict[Node, int]) -> None:
    """Give a step's result the buffer of an operand that nothing reads later."""
    if first.data.reuses is None:
        return
    operand = first.operands[first.data.reuses]
    (result, *_) = plan.parts.get(first, [None])
    if result is None or last.get(operand) != step or operand in plan.graph.outputs:
        return
    buffers = plan.buffers
    kind, i = buffers[operand]
    if kind == "arena" and result not in buffers:
        buffers[result] = buffers[operand]
        del last[operand]
    elif kind == "in" and buffers.get(result) == ("out", plan.graph.donated.get(i)):
        buffers[result] = buffers[operand]
        plan.in_place.add(i)
