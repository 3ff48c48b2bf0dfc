"""The pass `simplify`: rewrites of the graph that do not depend on how it is fused."""

from __future__ import annotations

from dataclasses import replace

from namoo.engines.native.fuse.kinds import KINDS
from namoo.engines.native.graph.node import INPUT, LITERAL, Graph, Node


def simplify(graph: Graph) -> Graph:
    """Give each output a separate node, then apply the rewrites of each kind of root.

    Constants were folded, and equal nodes interned, while the graph was built.
    """
    graph = _with_stored_outputs(graph)
    for kind in KINDS.values():
        graph = kind.simplify(graph)
    return graph


def _with_stored_outputs(graph: Graph) -> Graph:
    """Give each output a separate node, which a kernel or a step writes."""
    graph = replace(graph, nodes=[*graph.nodes])
    seen: set[Node] = set()
    outputs = []
    for node in graph.outputs:
        if node.kind in (INPUT, LITERAL) or node in seen:
            node = graph.stored(node)
        seen.add(node)
        outputs.append(node)
    graph.outputs = outputs
    return graph
