"""Access patterns: which elements a root reads, found by probing its code with symbolic indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from namoo.engines.native.graph.node import REDUCE, Node
from namoo.engines.native.ir.function import Value
from namoo.engines.native.ir.index import Index, Loop
from namoo.engines.native.kernels.element_codegen import Place, Probe

Access = tuple[Node, list[Index]]
"""A node, and the index of one of its elements."""


class _Recorder(Probe):
    """Records which of some nodes are read, and where."""

    def __init__(self, stop: Iterable[Node]):
        pointer = Value("%p", "ptr")
        super().__init__({n: Place(pointer, n.elem or "i8", n.shape) for n in stop})
        self.found: list[Access] = []

    def at(self, node, index):
        if node in self.places:
            self.found.append((node, list(index)))
        return super().at(node, index)


def probe(stop: Iterable[Node], points: Sequence[Access]) -> list[Access]:
    """Return the elements of the nodes in `stop` that are read to compute some elements."""
    recorder = _Recorder(stop)
    for node, index in points:
        recorder.at(node, index)
    return recorder.found


def loop_indices(shape: Sequence[int]) -> list[Index]:
    """One loop variable for each axis."""
    return [Index.of(Loop(Value("%i", "i64"), 0, n - 1)) for n in shape]


def computed_at(root: Node, space, outer: list[Index], inner: list[Index]) -> list[Access]:
    """The elements that a kernel computes for a root at one point of its loops."""
    if root.kind is not REDUCE:
        return [(root, index_in(root.shape, space, outer, inner))]
    o, i = iter(outer), iter(inner)
    at = [next(i) if d in root.data.axes else next(o) for d in range(len(space))]
    return [(x, at) for x in root.operands]


def index_in(shape, space, outer: list[Index], inner: list[Index]) -> list[Index]:
    """The index of a kernel's value of this shape at one point of its loops."""
    if shape == space:
        return outer + inner
    rest = iter([i for i in outer if i.terms])
    return [next(rest) if n != 1 else Index.of(0) for n in shape]
