"""The pass `schedule`: the order in which the groups run."""

from __future__ import annotations

from dataclasses import dataclass

from namoo.engines.native.fuse.groups import Fusion
from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.graph.node import CALL, INPUT, Node


@dataclass
class Schedule:
    """The groups of a fusion, in the order in which they run."""

    fusion: Fusion
    steps: list[FusionGroup]

    def text(self) -> str:
        """The groups in order, and the dependencies of each."""
        lines = []
        for number, group in enumerate(self.steps):
            before = [g.number for g in self.steps if g.bit & group.ancestors]
            after = f" after {' '.join(map(str, before))}" if before else ""
            lines.append(f"{number}: group {group.number}{after}")
        return "\n".join(lines)


def schedule(fusion: Fusion) -> Schedule:
    """Order the groups by where the program begins them.

    The operands of a group are then still in the cache, and their buffers are free again soon.
    """
    groups = fusion.groups
    before = _readers_first(groups)
    steps: list[FusionGroup] = []
    left = (1 << len(groups)) - 1
    times = _start_times(groups)
    for last in sorted(groups, key=lambda g: (times[g], not g.is_read)):
        # Dependencies that begin later in the program run now.
        while needed := before[last.number] & left:
            waiting = left
            while needed:
                group = groups[(needed & -needed).bit_length() - 1]
                needed &= needed - 1
                if not before[group.number] & left:
                    steps.append(group)
                    left ^= group.bit
            assert left != waiting, "kernels depend on one another"
        if last.bit & left:
            steps.append(last)
            left ^= last.bit
    return Schedule(fusion, steps)


def _readers_first(groups: list[FusionGroup]) -> list[int]:
    """For each group, a bit mask of the groups that run before it.

    These are its dependencies, and the other readers of an operand whose buffer its result takes
    over, where they can run first.
    """
    before = [g.ancestors for g in groups]
    readers: dict[Node, int] | None = None
    for group in groups:
        first = group.roots[0]
        if first.kind is not CALL or not first.data.takes_over:
            continue
        if readers is None:
            readers = {}
            for other in groups:
                for node in other.inputs:
                    readers[node] = readers.get(node, 0) | other.bit
        for i in first.data.takes_over:
            others = readers[first.operands[i]] & ~before[group.number] & ~group.bit
            while others:
                other = groups[(others & -others).bit_length() - 1]
                others &= others - 1
                if before[other.number] & group.bit:
                    continue
                earlier = before[other.number] | other.bit
                for n, bits in enumerate(before):
                    if bits & group.bit or n == group.number:
                        before[n] = bits | earlier
    return before


def _start_times(groups: list[FusionGroup]) -> dict[FusionGroup, int]:
    """When each group should run, as the number of a node.

    A group that only computes outputs is delayed until others have read its inputs, so that the
    outputs may alias them.
    """
    times = {g: g.roots[0].number for g in groups}
    latest: dict[Node, int] = {}
    for group, time in times.items():
        if group.is_read:
            latest.update(dict.fromkeys(group.inputs, time))
    for group, time in times.items():
        if not group.is_read:
            later = [n for n in group.inputs if latest.get(n, 0) > time and n.kind is INPUT]
            types = {(r.shape, r.dtype) for r in group.roots} if later else ()
            after = [latest[n] for n in later if (n.shape, n.dtype) in types]
            times[group] = max([time, *after])
    return times
