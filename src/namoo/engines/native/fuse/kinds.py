"""Kinds of roots: the interface between the passes and the kernels.

A *root* is a node whose value a kernel materialises; a *fusion group* is the roots of one kernel.
Each kind of root is a `RootKind`, registered by the file of its kernel:

| kind      | file                      |
|-----------|---------------------------|
| `compute` | `kernels/loops.py`        |
| `reduce`  | `kernels/loops.py`        |
| `dot`     | `kernels/matmul/dot.py`   |
| `call`    | here: `Step` has the code |
| `part`    | here: one of the results of a step or of a reduction |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from namoo.engines.native.graph.node import CALL, COMPUTE, PART, Graph, Node
from namoo.engines.native.ir.index import Index

if TYPE_CHECKING:
    from namoo.engines.native.emit.driver import Module
    from namoo.engines.native.kernels.kernel import Kernel

Reads = tuple[Node, ...]
"""Nodes in memory, in the order in which they are first read."""


class LoopNest(NamedTuple):
    """The loops of a fusion group; together with a root's structure, whether the root fits in."""

    space: tuple[int, ...]
    """Sizes of the loops: the outer ones, then those along which reductions run."""
    split: int
    """How many of the loops are outer ones."""
    fixed: bool
    """Whether a reduction has determined the split."""
    kind: str
    """The kind of the first root."""


class FusionGroup:
    """Roots that one kernel computes, or a single step of another kind."""

    __slots__ = (
        "ancestors", "bit", "inputs", "is_read", "is_step", "nest", "number", "numbering", "roots",
        "signature", "stored",
    )  # fmt: skip

    def __init__(self, number: int, nest: LoopNest, is_step: bool):
        self.number = number
        self.nest = nest
        self.is_step = is_step
        """Whether nothing can be fused into it."""
        self.roots: list[Node] = []
        self.stored: list[Node] = []
        """The roots that the kernel writes to memory."""
        self.bit = 1 << number
        self.ancestors = 0
        """A bit mask of the groups that must run before it."""
        self.inputs: dict[Node, None] = {}
        """What it reads from memory, in order."""
        self.is_read = False
        """Whether another group reads its values."""
        self.numbering: dict[Node, int] = {}
        """A number for each input and each root, in order."""
        self.signature: list[int] = []
        """The structure of each root, and the numbers of what it reads: equal kernels have equal
        signatures."""

    @property
    def space(self) -> tuple[int, ...]:
        return self.nest.space

    @property
    def split(self) -> int:
        return self.nest.split


class RootKind:
    """What the passes ask about nodes of one kind; the defaults suit an elementwise value."""

    reads_memory = False
    """Whether the operands must be in memory, because the kernel cannot compute them itself."""
    joins = False
    """Whether a root of this kind may join the group that computes what it reads."""

    def simplify(self, graph: Graph) -> Graph:
        """Return the graph with nodes of this kind rewritten; the given graph is not mutated."""
        return graph

    def is_step(self, root: Node) -> bool:
        """Return whether nothing can be fused into the kernel of a root."""
        return False

    def loop_nest(self, root: Node) -> LoopNest:
        """Return the loops of a group that begins with a root."""
        return LoopNest(root.shape, len(root.shape), False, root.kind)

    def accepts(self, group: FusionGroup, root: Node, reads: Reads) -> bool:
        """Return whether a root fits into the loops of a group that begins with this kind."""
        return False

    def kernel(self, module: Module, group: FusionGroup) -> tuple[Kernel, Sequence[Node]]:
        """Return the kernel of a group that begins with this kind, and the nodes it is called on.

        The kernel is emitted into the module, unless that already has an equal one.
        """
        raise NotImplementedError

    def overwrites(
        self, group: FusionGroup, node: Node, result: Node, reads: dict[Node, Reads]
    ) -> bool:
        """Return whether a result of a group that begins with this kind may alias a node it reads.

        Args:
            group: the group, which is not a step.
            node: one of its inputs.
            result: one of the roots that it stores, of the same type.
            reads: for each root, the nodes in memory that it is computed from.
        """
        return False

    def element(self, k: Any, node: Node, index: Sequence[Index]) -> Any:
        """Emit one element of a node, with loops unrolled, by the code generator `k`."""
        raise NotImplementedError

    def operations(self, node: Node) -> int:
        """About how many operations a node takes."""
        return 0

    def unrolled_operations(self, node: Node) -> int | None:
        """About how many operations `element` emits for all elements; None if it cannot."""
        return node.size * min(node.cost, 4)


KINDS: dict[str, RootKind] = {}
"""The kinds by name; see `register`."""


def register(name: str, kind: RootKind) -> None:
    """Register a kind of node."""
    KINDS[name] = kind


class _Call(RootKind):
    """Steps: their own code reads operands from memory and writes results."""

    reads_memory = True

    def simplify(self, graph):
        """Steps that only elementwise operations read are computed there, if that is cheap."""
        readers: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for x in node.operands:
                readers.setdefault(x, []).append(node)
        outputs, replaced = set(graph.outputs), {}
        elementwise: set[Node] = set()  # nodes that only elementwise operations read

        def suits(reader: Node, count: int) -> bool:
            if reader.kind is not COMPUTE:
                return reader in replaced
            moves = reader.cost == 0 and reader.count <= count and reader in elementwise
            return moves or reader.key[0] == "map"

        for node in reversed(graph.nodes):
            users = readers.get(node)
            if not users or node in outputs or not all(suits(x, node.count) for x in users):
                continue
            elementwise.add(node)
            if node.kind is PART and node.operands[0].kind is CALL:
                (call,) = node.operands
                computed = call.data.computed(call.operands) if len(readers[call]) == 1 else None
                if computed is not None:
                    replaced |= {call: computed, node: _same(node)}
        return graph.replaced(replaced) if replaced else graph

    def is_step(self, root):
        return True

    def operations(self, node):
        return node.data.operations(node.operands)


def _same(node: Node) -> Node:
    """A node that is, element by element, what the given one reads."""
    return Node(
        COMPUTE, node.shape, node.dtype, node.operands,
        fn=lambda k, index, x: k.at(x, index), key=("reshape", node.shape), cost=0,
    )  # fmt: skip


class _Part(RootKind):
    """One of the results of a node with several."""

    def element(self, k, node, index):
        return k.at(node.operands[0], index)[node.data]


register(CALL, _Call())
register(PART, _Part())


def operations(graph: Graph) -> int:
    """About how many operations a graph takes; a while loop counts as one iteration."""
    total, seen, stack = 0, set(), [*graph.outputs, *(n for n in graph.nodes if n.kind is CALL)]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.operands
            kind = KINDS.get(node.kind)
            total += kind.operations(node) if kind else 0
    return total
