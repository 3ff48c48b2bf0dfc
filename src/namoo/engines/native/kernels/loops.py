"""The kinds `compute` and `reduce`: elementwise values and reductions, fused into loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from namoo.engines.native.fuse.kinds import FusionGroup, LoopNest, Reads, RootKind, register
from namoo.engines.native.graph.node import COMPUTE, PART, REDUCE, Node
from namoo.engines.native.ir.extents import is_dynamic
from namoo.engines.native.ir.index import Index, ravel, unravel
from namoo.engines.native.kernels import access
from namoo.engines.native.kernels.elementwise import KernelEmitter, reduction_axes, stage_numbers
from namoo.engines.native.kernels.kernel import KernelSpec


class _Loops(RootKind):
    """Values that a kernel of loops computes; see `elementwise`."""

    joins = True

    def accepts(self, group, root, reads):
        return _has_loops_for(group, root) and _reads_own_index(group, root, reads)

    def kernel(self, module, group):
        spec = KernelSpec(group)
        spec.variables = module.variables
        if any(map(is_dynamic, spec.space)):
            from namoo.engines.native.kernels.dynamic_loops import DynamicEmitter as Loops
        else:
            Loops = KernelEmitter
        kernel = module.kernel(spec.key, lambda name: Loops(spec, name).emit())
        return kernel, (*spec.inputs, *spec.stored)

    def overwrites(self, group, node, result, reads):
        return _reads_before_store(group, node, result, reads)


class _Compute(_Loops):
    """Each element by a function of its index."""

    def element(self, k, node, index):
        return node.fn(k, list(index), *node.operands)  # pyright: ignore[reportOptionalCall]

    def operations(self, node):
        return node.cost * node.count


class _Reduce(_Loops):
    """Elements combined along axes."""

    def loop_nest(self, root):
        kept, reduced = reduction_axes(root)
        return LoopNest(kept + reduced, len(kept), True, REDUCE)

    def element(self, k, node, index):
        reduction = node.data
        shape = node.operands[0].shape
        axes = [shape[i] for i in reduction.axes]
        rows = []
        for position in range(math.prod(axes)):
            inner = iter(unravel(Index.of(position), tuple(axes)))
            outer = iter(index)
            at = [next(inner) if i in reduction.axes else next(outer) for i in range(len(shape))]
            rows.append(tuple(k.at(x, at) for x in node.operands))
        while len(rows) > 1:
            rows = [
                reduction.combine(k.f, rows[i], rows[i + 1]) if i + 1 < len(rows) else rows[i]
                for i in range(0, len(rows), 2)
            ]
        return rows[0] if len(node.operands) > 1 else rows[0][0]

    def operations(self, node):
        return node.operands[0].count

    def unrolled_operations(self, node):
        return node.operands[0].count


register(COMPUTE, _Compute())
register(REDUCE, _Reduce())


def _has_loops_for(group: FusionGroup, root: Node) -> bool:
    """Whether a root can be computed in the loops of a group."""
    space, split, fixed, _ = group.nest
    if root.kind is REDUCE:
        kept, reduced = reduction_axes(root)
        if fixed:
            return (kept, reduced) == (space[:split], space[split:])
        return kept + reduced == space == root.operands[0].shape
    return root.shape == space or fixed and _squeezed(root.shape) == _squeezed(space[:split])


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _reads_own_index(group: FusionGroup, root: Node, reads: Reads) -> bool:
    """Whether a root reads the values of a group only at the index that is being computed."""
    split = len(root.shape) if root.kind is REDUCE else group.split
    members = set(group.roots)
    index = access.loop_indices(group.space)
    outer, inner = index[:split], index[split:]
    points = access.computed_at(root, group.space, outer, inner)
    for node, at in access.probe(reads, points):
        if node in members:
            own = outer
            if node.kind is not REDUCE and node.kind is not PART:
                own = access.index_in(node.shape, group.space, outer, inner)
            if [*at] != own:
                return False
    return True


def _reads_before_store(
    group: FusionGroup, node: Node, result: Node, reads: dict[Node, Reads]
) -> bool:
    """Whether a kernel reads each element of a node before it overwrites it with the result's.

    Points of the outer loops are independent. At one point, each stage loads everything before it
    stores anything: first the elements of a row, then its sums, then values computed from these.
    """
    stages = stage_numbers(group.roots, group.inputs)
    space, split = group.space, group.split
    index = access.loop_indices(space)
    outer, inner = index[:split], index[split:]
    place = ravel(access.index_in(result.shape, space, outer, inner), result.shape)

    def time(root: Node, stored: bool) -> tuple[int, int]:
        row = root.shape == space
        return stages[root], 0 if row else int(stored) if root.kind is REDUCE else 2

    for root in group.roots:
        if node not in reads[root]:
            continue
        if root.kind is PART or time(root, False) > time(result, True):
            return False
        found = access.probe(reads[root], access.computed_at(root, space, outer, inner))
        if any(x is node and ravel(at, x.shape) != place for x, at in found):
            return False
    return True
