"""Checks of a program between passes, and the function that runs passes.

With the setting `verify`, or `NAMOO_VERIFY=1` in the environment, the result of every pass is
checked, so that a broken invariant is reported with the pass that broke it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo._base.config import config
from namoo.engines.native.fuse.groups import Fusion
from namoo.engines.native.fuse.kinds import KINDS, FusionGroup
from namoo.engines.native.fuse.schedule import Schedule
from namoo.engines.native.graph.node import (
    CALL,
    COMPUTE,
    DOT,
    INPUT,
    LITERAL,
    PART,
    REDUCE,
    Contraction,
    Graph,
    Node,
)
from namoo.engines.native.ir.extents import about
from namoo.engines.native.memory.arena import Plan, aligned


class InvalidProgram(Exception):
    """A pass broke an invariant: a defect of the engine, not of the user's program."""


def run_passes(passes: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    """Apply passes in order; check the result of each if the setting `verify` is on."""
    for step in passes:
        value = step(value)
        if config.verify:
            try:
                verify(value)
            except InvalidProgram as error:
                error.add_note(f"The pass is {step.__name__!r}.")
                raise
    return value


@functools.singledispatch
def verify(value: Any) -> None:
    """Check the result of a pass.

    Args:
        value: a `Graph`, `Fusion`, `Schedule` or `Plan`; other things have nothing to check.

    Raises:
        InvalidProgram: an invariant does not hold.
    """


def _require(condition: object, message: str) -> None:
    if not condition:
        raise InvalidProgram(message)


@verify.register
def _(graph: Graph) -> None:
    """Operands precede their users, nodes have the types of their kinds, outputs are nodes."""
    for number, node in enumerate(graph.nodes):
        _require(node.number == number, f"{node} is at position {number} of the graph.")
        for x in node.operands:
            known = x.number < number and graph.nodes[x.number] is x
            _require(known, f"{node} reads {x}, which is not before it in the graph.")
        what = (node.kind, node.key, node.shape, node.dtype)
        _require(
            graph.structures.get(what) == node.structure,
            f"{node} has the structure {node.structure}, which is not that of its kind and type.",
        )
        _check_types(node)
    members = set(graph.nodes)
    ends = [*graph.inputs, *graph.outputs, *(node for node, _ in graph.consts)]
    for node in ends:
        _require(node in members, f"{node} is an end of the graph, and not in it.")
    for node, value in graph.consts:
        same = (node.shape, node.dtype) == (value.shape, value.dtype)
        _require(same, f"{node} stands for a constant of type {value.dtype}{list(value.shape)}.")


def _check_types(node: Node) -> None:
    """Check a node against what its kind says of operands and results."""
    kind, operands = node.kind, node.operands
    if kind in (INPUT, LITERAL):
        _require(not operands, f"{node} has operands.")
        _require(kind is INPUT or node.shape == (), f"{node} is a literal and no scalar.")
        return
    _require(kind in KINDS, f"{node} is of an unknown kind.")
    if kind is COMPUTE:
        _require(callable(node.fn) and node.elem, f"{node} cannot be computed.")
        if node.key[0] == "map":
            same = all(x.shape in ((), node.shape) for x in operands)
            _require(same, f"{node} maps operands of other shapes.")
    elif kind is REDUCE:
        first, axes = operands[0], node.data.axes
        kept = tuple(n for i, n in enumerate(first.shape) if i not in axes)
        _require(node.shape == kept, f"{node} is not {first} without the axes {axes}.")
        _require(
            all(x.shape == first.shape for x in operands) and node.dtype == first.dtype,
            f"{node} reduces operands of different types.",
        )
    elif kind is DOT:
        x, y = operands
        _require(x.dtype == y.dtype == node.dtype, f"{node} multiplies different types.")
        if isinstance(node.data, Contraction):
            _require(_contracted(node) == node.shape, f"{node} has not the shape of its product.")
    elif kind is PART:
        (source,) = operands
        _require(source.kind in (CALL, REDUCE), f"{node} is a part of {source}.")


def _contracted(node: Node) -> tuple[int, ...] | None:
    """The shape of a contraction; None if its operands do not match."""
    (x, y), (cx, cy), (bx, by) = node.operands, node.data.contract, node.data.batch
    sizes = [[v.shape[i] for i in axes] for v, axes in ((x, cx), (y, cy), (x, bx), (y, by))]
    if sizes[0] != sizes[1] or sizes[2] != sizes[3]:
        return None
    free = [
        [n for i, n in enumerate(v.shape) if i not in used]
        for v, used in ((x, (*cx, *bx)), (y, (*cy, *by)))
    ]
    return tuple(sizes[2] + free[0] + free[1])


@verify.register
def _(fusion: Fusion) -> None:
    """Every needed value belongs to one group, which runs after the groups that it reads from."""
    seen: set[Node] = set()
    for group in fusion.groups:
        _require(group.roots, f"Group {group.number} computes nothing.")
        _require(fusion.groups[group.number] is group, f"Group {group.number} is misnumbered.")
        _require(not group.ancestors & group.bit, f"Group {group.number} depends on itself.")
        for root in group.roots:
            _require(root not in seen, f"{root} is in two groups.")
            _require(fusion.home.get(root) is group, f"{root} is not at home in its group.")
            seen.add(root)
            for node in fusion.reads(root):
                _check_read(fusion, group, root, node)
    for root in fusion.signatures:
        _require(root in fusion.home, f"{root} is in no group.")
    for node in fusion.graph.outputs:
        group = fusion.home.get(node)
        _require(group is not None, f"The output {node} is in no group.")
        if group is not None and group.roots[0].kind is not CALL:
            _require(node in group.stored, f"The output {node} is not stored.")


def _check_read(fusion: Fusion, group: FusionGroup, root: Node, node: Node) -> None:
    home = fusion.home.get(node)
    if home is group:
        return
    _require(node in group.inputs, f"{root} reads {node}, which is no input of its group.")
    if home is None:
        _require(node.kind is INPUT, f"{root} reads {node}, which nothing computes.")
        return
    _require(group.ancestors & home.bit, f"Group {group.number} does not wait for {home.number}.")
    if home.roots[0].kind is not CALL:
        _require(node in home.stored, f"{root} reads {node}, which is not stored.")


@verify.register
def _(schedule: Schedule) -> None:
    """Every group runs once, after its ancestors."""
    done = 0
    for group in schedule.steps:
        _require(not done & group.bit, f"Group {group.number} runs twice.")
        early = group.ancestors & ~done
        _require(not early, f"Group {group.number} runs before groups that it reads.")
        done |= group.bit
    everything = (1 << len(schedule.fusion.groups)) - 1
    _require(done == everything, "Some groups do not run.")


@verify.register
def _(plan: Plan) -> None:
    """Every value in memory has a buffer, and buffers that are live together do not overlap."""
    last: dict[Node, int] = {}
    for i, group in enumerate(plan.steps):
        for node in group.inputs:
            _require(node in plan.buffers, f"{node} is read, and has no buffer.")
            last[node] = i
    live: dict[Node, tuple[int, int]] = {}
    """The ranges of the arena in use, by the node that they hold."""
    for i, (group, offset) in enumerate(zip(plan.steps, plan.scratch, strict=True)):
        first = group.roots[0]
        taken = _taken_over(plan, first)
        used = [r for node, r in live.items() if node not in taken or last.get(node) != i]
        for node in plan.written(group):
            _require(node in plan.buffers, f"{node} is written, and has no buffer.")
            kind, start = plan.buffers[node]
            if kind == "arena":
                used.append(live.setdefault(node, _range(start, node.nbytes)))
        if first.kind is CALL and first.data.scratch != 0:
            used.append(_range(offset, first.data.scratch))
        _check_apart(plan, used, i)
        for node in [n for n in live if last.get(n, i) <= i]:
            del live[node]


def _taken_over(plan: Plan, first: Node) -> list[Node]:
    """The operands whose buffers the results of a step take over."""
    if first.kind is not CALL or first not in plan.parts:
        return []
    pairs = [(first.operands[i], plan.parts[first][o]) for i, o in first.data.takes_over.items()]
    return [x for x, result in pairs if plan.buffers[x] == plan.buffers[result]]


def _range(start: Any, size: Any) -> tuple[int, int]:
    """A range of the arena; if it depends on sizes at run time, for typical ones."""
    return about(start), about(start + aligned(size))


def _check_apart(plan: Plan, ranges: Iterable[tuple[int, int]], step: int) -> None:
    end = 0
    for start, stop in sorted(r for r in ranges if r[0] < r[1]):
        _require(start >= end, f"Buffers overlap at {start} in step {step}.")
        end = stop
    _require(end <= about(plan.arena_size), f"A buffer in step {step} ends beyond the arena.")
