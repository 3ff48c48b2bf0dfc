"""The pass `simplify`: rewrites of the graph that do not depend on how it is fused."""

from __future__ import annotations

from dataclasses import replace

from namoo.engines.native.fuse.kinds import KINDS
from namoo.engines.native.graph.node import INPUT, LITERAL, Graph, Node


def simplify(graph: Graph) -> Graph:
    """Return a graph whose outputs are nodes of their own, rewritten by each kind of root.

    The emitter has already folded constants and interned equal nodes while it built the graph.
    """
    graph = _with_stored_outputs(graph)
    for kind in KINDS.values():
        graph = kind.simplify(graph)
    return graph


def _with_stored_outputs(graph: Graph) -> Graph:
    """Give each output a node of its own: a kernel or a step writes it."""
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
