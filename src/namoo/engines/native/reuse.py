"""Results in the memory of inputs: which may lie there, if the caller gives the inputs up.

The code is the same in either case: it reads where inputs are and writes where results are.  Where
an input is read for the last time before its result is written, or each of its elements just
before the result's element at the same place, both may be one array.  Whether they are is decided
at the call, when it is known who else has the array.
"""

from __future__ import annotations

from collections.abc import Mapping

from namoo.engines.native.graph import CALL, DOT, PART, REDUCE, Node
from namoo.engines.native.index import Index, Loop, ravel
from namoo.engines.native.ir import Value
from namoo.engines.native.kernel import KernelEmitter, Spec
from namoo.engines.native.plan import (
    Cluster,
    Plan,
    computed_at,
    place_in,
    probe,
    specification,
)


def in_place(plan: Plan, aliases: Mapping[int, int]) -> list[tuple[int, int]]:
    """The pairs of an input and a result, of those given, that may share memory."""
    graph = plan.graph
    turns = {cluster: i for i, cluster in enumerate(plan.steps)}
    last = {node: i for cluster, i in turns.items() for node in cluster.inputs}
    known: dict[tuple, bool] = {}
    out = []
    for i, o in sorted(aliases.items()):
        node, result = graph.inputs[i], graph.outputs[o]
        if (node.shape, node.dtype) != (result.shape, result.dtype) or not node.size:
            continue
        home = plan.fusion.home[result]
        written, read = turns[home], last.get(node, -1)
        if read < written or read == written and _overwrites(plan, home, node, result, known):
            out.append((i, o))
    return out


def _overwrites(plan: Plan, cluster: Cluster, node: Node, result: Node, known: dict) -> bool:
    """Whether a step that reads a node may write a result over it.

    What is known of kernels holds for equal ones: those of layers that are alike.
    """
    first = cluster.roots[0]
    if first.kind is CALL:
        operand, *others = [i for i, x in enumerate(first.operands) if x is node]
        return not others and first.data.overwrites(operand, plan.parts[first].index(result))
    if cluster.step or first.kind is DOT and node in first.operands:
        return False
    spec = specification(cluster)
    key = (spec.key, spec.inputs.index(node), spec.stored.index(result))
    if key not in known:
        if first.kind is DOT:
            known[key] = all(_follows(plan, root, node) for root in cluster.roots[1:])
        else:
            known[key] = _own_place(plan, cluster, spec, node, result)
    return known[key]


def _follows(plan: Plan, root: Node, node: Node) -> bool:
    """Whether a root that is computed with a product reads a node at its own place only."""
    index = [_loop(n) for n in root.shape]
    place = ravel(index, root.shape)
    return all(
        ravel(at, node.shape) == place
        for x, at in probe(plan.fusion.reads(root), [(root, index)])
        if x is node
    )


def _own_place(plan: Plan, cluster: Cluster, spec: Spec, node: Node, result: Node) -> bool:
    """Whether a kernel reads a node's elements only before the result's, which are at their place.

    Different places are independent of one another.  At one place all is read before anything is
    stored, in each stage: first along a row, whose sums are stored next, then what is one a row.
    """
    stages = KernelEmitter(spec, "").levels
    space, split = cluster.space, cluster.split
    index = [_loop(n) for n in space]
    outer, inner = index[:split], index[split:]
    place = ravel(place_in(result.shape, space, outer, inner), result.shape)

    def time(root: Node, stored: bool) -> tuple[int, int]:
        row = root.shape == space
        return stages[root], 0 if row else int(stored) if root.kind is REDUCE else 2

    for root in cluster.roots:
        reads = plan.fusion.reads(root)
        if node not in reads:
            continue
        if root.kind is PART or time(root, False) > time(result, True):
            return False
        found = probe(reads, computed_at(root, space, outer, inner))
        if any(x is node and ravel(at, x.shape) != place for x, at in found):
            return False
    return True


def _loop(size: int) -> Index:
    return Index.of(Loop(Value("%i", "i64"), 0, size - 1))
