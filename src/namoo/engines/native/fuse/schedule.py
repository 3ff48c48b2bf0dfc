"""The pass `schedule`: the order in which the groups run."""

from __future__ import annotations

from dataclasses import dataclass

from namoo.engines.native.fuse.groups import Fusion
from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.graph.node import INPUT, Node


@dataclass
class Schedule:
    """The groups of a fusion, in the order in which they run."""

    fusion: Fusion
    steps: list[FusionGroup]

    def text(self) -> str:
        """The numbers of the groups, and what each must wait for."""
        lines = []
        for number, group in enumerate(self.steps):
            before = [g.number for g in self.steps if g.bit & group.ancestors]
            after = f" after {' '.join(map(str, before))}" if before else ""
            lines.append(f"{number}: group {group.number}{after}")
        return "\n".join(lines)


def schedule(fusion: Fusion) -> Schedule:
    """Let each group run where the program begins it.

    What the group reads was written recently then, and its memory is soon free.
    """
    groups = fusion.groups
    steps: list[FusionGroup] = []
    left = (1 << len(groups)) - 1
    times = _start_times(groups)
    for last in sorted(groups, key=lambda g: (times[g], not g.is_read)):
        # A group that it depends on may begin later in the program, and runs now.
        while needed := last.ancestors & left:
            before = left
            while needed:
                group = groups[(needed & -needed).bit_length() - 1]
                needed &= needed - 1
                if not group.ancestors & left:
                    steps.append(group)
                    left ^= group.bit
            assert left != before, "kernels depend on one another"
        if last.bit & left:
            steps.append(last)
            left ^= last.bit
    return Schedule(fusion, steps)


def _start_times(groups: list[FusionGroup]) -> dict[FusionGroup, int]:
    """When each group should run, as the number of a node.

    A group that only computes results waits until others have read its inputs: then the results
    may alias them.
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
