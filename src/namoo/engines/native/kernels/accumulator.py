"""Reductions in progress: the accumulators of a loop."""

from __future__ import annotations

from typing import Any

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value
from namoo.engines.native.ir.types import is_complex
from namoo.engines.native.kernels.element_codegen import literal_of


class Accumulator:
    """A reduction in progress: one value for each result, perhaps a vector."""

    def __init__(self, node: Node):
        self.node = node
        self.reduction = node.data

    def initial(self, lanes: int) -> Any:
        out = []
        for x, identity in zip(self.node.operands, self.reduction.identity, strict=True):
            value = literal_of(identity, x.elem)
            out += value if isinstance(value, tuple) else [value]
        return tuple(Value(f"splat ({v!r})", v.elem, lanes) if lanes else v for v in out)

    def _group(self, flat: tuple) -> tuple:
        """Regroup flat parts as one value for each operand: pairs for complex ones."""
        parts = iter(flat)
        return tuple(
            (next(parts), next(parts)) if is_complex(x.elem) else next(parts)
            for x in self.node.operands
        )

    def pair(self, f: Function, x: tuple, y: tuple) -> tuple:
        return _flat(self.reduction.combine(f, self._group(x), self._group(y)))

    def join(self, f: Function, total: tuple, new: tuple, mask: Value | None) -> tuple:
        combined = self.pair(f, total, _flat(new))
        lanes = total[0].lanes
        combined = tuple(f.splat(v, lanes) for v in combined) if lanes else combined
        if mask is None:
            return combined
        return tuple(f.select(mask, c, t) for c, t in zip(combined, total, strict=True))

    def folded(self, f: Function, value: tuple) -> tuple:
        """Reduce the lanes of a vector to one element: halves with halves."""
        while value[0].lanes > 1:
            half = value[0].lanes // 2
            low = tuple(f.shuffle(v, range(half)) for v in value)
            high = tuple(f.shuffle(v, range(half, 2 * half)) for v in value)
            value = self.pair(f, low, high)
        return self._group(tuple(f.lane(v, 0) for v in value))


def _flat(values: tuple) -> tuple:
    out: list[Value] = []
    for v in values:
        out += v if isinstance(v, tuple) else [v]
    return tuple(out)
