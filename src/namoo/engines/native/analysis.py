"""What a program costs: operations, bytes and memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from namoo.engines.native.graph import CALL, COMPUTE, DOT, REDUCE, Graph
from namoo.engines.native.loops import ScanStep, WhileStep
from namoo.engines.native.matrices import Product
from namoo.engines.native.plan import Plan, nbytes


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
