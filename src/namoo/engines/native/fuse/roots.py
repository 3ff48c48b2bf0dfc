"""Which values are materialised: the roots.

A node is recomputed where it is read, unless that costs too much: then it is a root, whose value is
stored in memory, or in registers until its kernel ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.fuse.kinds import KINDS, Reads
from namoo.engines.native.graph.node import CALL, COMPUTE, INPUT, LITERAL, REDUCE, Graph, Node

_SEVERAL = Node("several", (), np.dtype(np.uint8))


@dataclass
class Readers:
    """What is known of the readers of each node, by the node's number.

    Attributes:
        needed: whether a reader needs it in memory.
        uses: the number of live readers; a reader that costs nothing counts once for each of its
          own uses.
        largest: the size of its largest reader, in elements.
        reduced: whether a reader is a reduction.
    """

    needed: list[bool]
    uses: list[int]
    largest: list[float]
    reduced: list[bool]


def count_readers(graph: Graph) -> Readers:
    """Count the readers of each node, from the outputs back to the inputs."""
    count = len(graph.nodes)
    needed, uses = [False] * count, [0] * count
    largest, reduced = [0.0] * count, [False] * count
    from_memory = {name for name, kind in KINDS.items() if kind.reads_memory}
    for node in graph.outputs:
        uses[node.number] = 1
    for node in reversed(graph.nodes):
        kind, times = node.kind, uses[node.number]
        if not times and kind is not CALL:
            continue
        moves = node.cost == 0 and kind is COMPUTE
        if not moves:
            times = 1
        size = math.inf if kind is COMPUTE and node.data == "rereads" else node.count
        whole = kind in from_memory
        sums = kind is REDUCE or moves and reduced[node.number]
        for x in node.operands if len(node.operands) < 2 else set(node.operands):
            i = x.number
            uses[i] += times
            if size > largest[i]:
                largest[i] = size
            if whole:
                needed[i] = True
            if sums:
                reduced[i] = True
    return Readers(needed, uses, largest, reduced)


class Signature(NamedTuple):
    """How a root is computed. Roots of equal structure are computed by equal code."""

    structure: int
    """The number of the expression that computes it from nodes in memory."""
    reads: Reads
    """Those nodes."""


def choose_roots(graph: Graph) -> dict[Node, Signature]:
    """Return the roots in order, each with its signature."""
    signatures: dict[Node, Signature] = {}
    readers, count = count_readers(graph), len(graph.nodes)
    uses, needed = readers.uses, readers.needed
    structures, outputs = graph.structures, set(graph.outputs)
    types: dict[int, int] = {}
    expensive, depth_limit = tuning.EXPENSIVE, tuning.DEPTH_LIMIT
    weight, height = [0] * count, [0] * count
    source: list[Node | None] = [None] * count
    """The array of a node's own size that it is computed from; `_SEVERAL` if it reads several."""
    seen: list[int] = [0] * count
    behind: list[Reads] = [()] * count
    """For each node, its structure as readers see it, and the stored nodes that it reads."""
    for node in graph.nodes:
        i, kind, size = node.number, node.kind, node.count
        if not uses[i] and kind is not CALL:
            continue
        if kind is INPUT or kind is LITERAL:
            source[i] = node if node.shape else None
            seen[i] = node.structure
            if kind is INPUT:
                behind[i] = (node,)
            continue
        total, deepest, read = node.cost, 0, None
        words: list[Any] = [node.structure]
        reads: Reads = ()
        for x in node.operands:
            j = x.number
            total += weight[j]
            if height[j] > deepest:
                deepest = height[j]
            other = source[j]
            if other is not None and other is not read and x.count == size:
                read = other if read is None else _SEVERAL
            words.append(seen[j])
            reads = reads + behind[j] if reads else behind[j]
        if len(reads) > 1 and len(set(reads)) < len(reads):
            found = reads  # some are read more than once: the positions matter
            reads = tuple(dict.fromkeys(found))
            words.append(tuple(map(reads.index, found)))
        structure = structures.setdefault(tuple(words), len(structures))
        if kind is COMPUTE:
            if read is None and node.key[0] == "gather":
                read = node  # random access to a table counts as reading an array
            # A value of several arrays that a reduction reads is stored: if layers each add a term
            # to a sum, every layer would otherwise read one array more than the last, and no two of
            # them would share a kernel.
            many = read is _SEVERAL and readers.reduced[i]
            again = uses[i] > 1 and (total >= expensive or many)
            largest = readers.largest[i]
            spread = total >= expensive and largest > size
            reread = read is _SEVERAL and len(reads) > 2 and largest >= size * tuning.REREAD
            deep = deepest >= depth_limit
            if not (again or spread or reread or deep or needed[i] or node in outputs):
                weight[i], height[i], source[i] = total, 1 + deepest, read
                seen[i], behind[i] = structure, reads
                continue
        signatures[node] = Signature(structure, reads)
        source[i] = node if node.shape or kind is COMPUTE else None
        behind[i] = (node,)
        known = types.get(node.structure)
        if known is None:
            known = types[node.structure] = graph.input_structure(node)
        seen[i] = known
    return signatures
