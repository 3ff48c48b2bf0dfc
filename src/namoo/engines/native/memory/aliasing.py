"""Input-output aliasing: which outputs may overwrite donated inputs.

The code is the same in either case: it reads from the inputs' pointers and writes to the outputs'.
An output may alias an input if the input is read for the last time before the output is written,
or if each of its elements is read just before the output's element at the same index. Whether the
two really share memory is decided at the call, when it is known who else holds the array.
"""

from __future__ import annotations

from collections.abc import Mapping

from namoo.engines.native.fuse.kinds import KINDS, FusionGroup
from namoo.engines.native.graph.node import CALL, Node
from namoo.engines.native.memory.arena import Buffer, Plan


def aliases(plan: Plan, wanted: Mapping[int, int]) -> list[tuple[int, int]]:
    """Of the wanted pairs of an input and an output, those that may share memory."""
    graph = plan.graph
    times = {group: i for i, group in enumerate(plan.steps)}
    last = {node: i for group, i in times.items() for node in group.inputs}
    first: dict[Buffer, Node] = {}
    """The first node that is written into each buffer."""
    for group in reversed(plan.steps):
        first.update({plan.buffers[node]: node for node in plan.written(group)})
    known: dict[tuple, bool] = {}
    out = []
    for i, o in sorted(wanted.items()):
        node, result = graph.inputs[i], graph.outputs[o]
        if (node.shape, node.dtype) != (result.shape, result.dtype) or not node.size:
            continue
        result = first["out", o]
        home = plan.fusion.home[result]
        written, read = times[home], last.get(node, -1)
        if read < written or read == written and _overwrites(plan, home, node, result, known):
            out.append((i, o))
    return out


def _overwrites(plan: Plan, group: FusionGroup, node: Node, result: Node, known: dict) -> bool:
    """Whether a step that reads a node may write a result over it.

    The answer depends on the kernel alone and is kept in `known`: equal layers are analysed once.
    """
    first = group.roots[0]
    if first.kind is CALL:
        operand, *others = [i for i, x in enumerate(first.operands) if x is node]
        return not others and first.data.overwrites(operand, plan.parts[first].index(result))
    if group.is_step:
        return False
    numbers = group.numbering
    key = (group.nest, *group.signature, "alias", numbers[node], numbers[result])
    if key not in known:
        reads = {root: plan.fusion.reads(root) for root in group.roots}
        known[key] = KINDS[first.kind].overwrites(group, node, result, reads)
    return known[key]
