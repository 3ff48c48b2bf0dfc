"""The pass `fuse`: roots that run over the same indices become one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.fuse.kinds import KINDS, FusionGroup, LoopNest, Reads
from namoo.engines.native.fuse.roots import Signature, choose_roots
from namoo.engines.native.graph.node import PART, REDUCE, Graph, Node
from namoo.engines.native.ir.extents import is_dynamic

Homes = dict[Node, FusionGroup | None]
"""The groups that compute what a root reads; an input has none."""


@dataclass
class Fusion:
    """The groups of a graph.

    Attributes:
        graph: the graph.
        groups: all groups, in the order of their first roots.
        home: the group of each root.
        signatures: how each root is computed.
    """

    graph: Graph
    groups: list[FusionGroup]
    home: dict[Node, FusionGroup]
    signatures: dict[Node, Signature]

    def reads(self, root: Node) -> Reads:
        """The nodes in memory that a root is computed from."""
        return self.signatures[root].reads

    def text(self) -> str:
        """The groups, and the roots of each."""
        lines = []
        for group in self.groups:
            what = "step" if group.is_step else "kernel"
            lines.append(f"group {group.number}: {what} over {list(group.space)}")
            stored = set(group.stored)
            for root in group.roots:
                reads = " ".join(f"%{x.number}" for x in self.reads(root))
                kept = "  [stored]" if root in stored else ""
                lines.append(f"    {root}  reads {reads or 'nothing'}{kept}")
        return "\n".join(lines)


def fuse(graph: Graph) -> Fusion:
    """Choose the roots of a graph, and put them into groups."""
    signatures = choose_roots(graph)
    fuser = _Fuser(graph)
    for root, (structure, reads) in signatures.items():
        fuser.place(root, structure, reads)
    for group in fuser.groups:
        group.stored = [r for r in group.roots if r in fuser.outside or _keeps_row(group, r)]
    return Fusion(graph, fuser.groups, fuser.home, signatures)


class _Fuser:
    """The groups so far."""

    def __init__(self, graph: Graph):
        self.groups: list[FusionGroup] = []
        self.home: dict[Node, FusionGroup] = {}
        self.outside = set(graph.outputs)
        """Roots that another group or the caller reads."""
        # Keyed by structure, so that equal layers are analysed once.
        self._nests: dict[int, tuple[LoopNest, bool]] = {}
        self._answers: dict[Any, bool] = {}

    def place(self, root: Node, structure: int, reads: Reads) -> None:
        """Put a root into a group: one that computes what it reads, or a new one."""
        homes: Homes = {}
        for node in reads:
            homes[node] = self.home.get(node)
        if root.kind is PART:
            group = self.home[root.operands[0]]
            if group.is_step:
                self.home[root] = group  # the step writes it
            else:
                self._join(group, root, structure, homes)
            return
        kind = KINDS[root.kind]
        if kind.joins:
            for group in _candidates(homes):
                if self._fits(group, root, structure, reads, homes):
                    self._join(group, root, structure, homes)
                    return
        known = self._nests.get(structure)
        if known is None:
            known = self._nests[structure] = kind.loop_nest(root), kind.is_step(root)
        group = FusionGroup(len(self.groups), *known)
        self.groups.append(group)
        self._join(group, root, structure, homes)

    def _fits(
        self, group: FusionGroup, root: Node, structure: int, reads: Reads, homes: Homes
    ) -> bool:
        if len(group.roots) >= tuning.ROOTS_LIMIT:
            return False
        bit, own = group.bit, []
        for node, home in homes.items():
            if home is group:
                own.append(node.kind)
            elif home is not None and home.ancestors & bit:
                return False  # the group would depend on itself
            else:
                own.append("")
        key = (structure, group.nest, *own)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = KINDS[group.nest.kind].accepts(group, root, reads)
        return answer

    def _join(self, group: FusionGroup, root: Node, structure: int, homes: Homes) -> None:
        if root.kind is REDUCE and not group.nest.fixed:
            group.nest = group.nest._replace(split=len(root.shape), fixed=True)
        group.roots.append(root)
        self.home[root] = group
        before, signature, numbering = group.ancestors, group.signature, group.numbering
        signature.append(structure)
        for node, home in homes.items():
            signature.append(numbering.setdefault(node, len(numbering)))
            if home is not group:
                group.inputs[node] = None
                if home is not None:
                    home.is_read = True
                    self.outside.add(node)
                    group.ancestors |= home.ancestors | home.bit
        numbering[root] = len(numbering)
        if group.is_read and group.ancestors != before:
            for other in self.groups:
                if other.ancestors & group.bit:
                    other.ancestors |= group.ancestors


def _keeps_row(group: FusionGroup, root: Node) -> bool:
    """Whether a kernel must store a value for its own later stages.

    A row that is as long as a size at run time does not fit on the stack.
    """
    rows = not group.is_step and root.kind is not REDUCE and root.shape == group.space
    return rows and any(map(is_dynamic, group.space[group.split :]))


def _candidates(homes: Homes) -> list[FusionGroup]:
    """Kernels that produce what a root reads, the newest first."""
    found: list[FusionGroup] = []
    for group in homes.values():
        if group is not None and not group.is_step and group not in found:
            found.append(group)
    if len(found) > 1:
        found.sort(key=lambda group: -group.number)
    return found
