"""Which loops, in which order, with which memory.

`fuse` decides which values are kept in memory (*roots*) and which are computed where they are
read, then puts roots that run over the same indices into one kernel.  `Plan` gives each root that
leaves its kernel a place: an argument of the program, or a range of the arena that is used again
as soon as nothing needs it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from namoo.engines.native import contract
from namoo.engines.native.graph import (
    CALL,
    COMPUTE,
    DOT,
    EXPENSIVE,
    INPUT,
    LITERAL,
    PART,
    REDUCE,
    Emitter,
    Graph,
    Node,
)  # fmt: skip
from namoo.engines.native.index import Index, Loop, ravel
from namoo.engines.native.ir import Value
from namoo.engines.native.kernel import Spec, reduction_axes
from namoo.engines.native.writer import Place, Probe

ALIGNMENT = 64
# How many operations are written one into the other before a value is kept after all.
DEPTH_LIMIT = 64
ROOTS_LIMIT = 24
_SEVERAL = Node("several", (), np.dtype(np.uint8))


class Cluster:
    """Roots that become one kernel, or a single step of another kind."""

    __slots__ = ("ancestors", "bit", "fixed", "inputs", "read", "roots", "space", "split", "step")

    def __init__(self, root: Node, bit: int):
        self.roots: list[Node] = []
        self.bit = bit
        self.ancestors = 0
        """The bits of all clusters that must run before."""
        self.inputs: dict[Node, None] = {}
        self.read = False
        """Whether another cluster reads its values."""
        self.step = root.kind is CALL or root.kind is DOT and not contract.generated(root)
        if root.kind is REDUCE:
            kept, reduced = reduction_axes(root)
            self.space, self.split, self.fixed = kept + reduced, len(kept), True
        else:
            self.space, self.split, self.fixed = root.shape, len(root.shape), False


def nbytes(node: Node) -> int:
    """Bytes of a node's elements."""
    return node.size * node.dtype.itemsize


class Fusion:
    """The clusters of a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.home: dict[Node, Cluster] = {}
        self.clusters: list[Cluster] = []
        self.roots = choose_roots(graph)
        self._looked: dict[Node, tuple[int, list[Node]]] = {}
        self._answers: dict[Any, bool] = {}
        """What was found out about forms: layers that are alike are looked at once."""
        for node in graph.nodes:
            if node in self.roots:
                self._place(node)
        outside = set(graph.outputs)
        for cluster in self.clusters:
            for node in cluster.inputs:
                if self.home.get(node) is not cluster:
                    outside.add(node)
        self.outside = outside

    def look(self, root: Node) -> tuple[int, list[Node]]:
        """The form in which a root is computed from nodes in memory, and those nodes.

        Roots of one form are computed alike, whichever nodes they read.
        """
        known = self._looked.get(root)
        if known is not None:
            return known
        roots, type_of = self.roots, self.graph.type
        # Each node that is computed on the way is its form and, negative, its operands' places.
        names: dict[Node, int] = {}
        words: list[int] = []
        reads: list[Node] = []

        def spell(node: Node) -> None:
            for x in node.operands:
                if x in names:
                    continue
                if x.kind is LITERAL:
                    words.append(x.form)
                elif x.kind is INPUT or x in roots:
                    reads.append(x)
                    words.append(type_of(x))
                else:
                    spell(x)
                    continue
                names[x] = ~len(names)
            words.append(node.form)
            for x in node.operands:
                words.append(names[x])
            names[node] = ~len(names)

        spell(root)
        known = self._looked[root] = self.graph.form(*words), reads
        return known

    def reads(self, root: Node) -> list[Node]:
        """The nodes in memory that a root is computed from."""
        return self.look(root)[1]

    def _place(self, root: Node) -> None:
        reads = self.reads(root)
        if root.kind in (COMPUTE, REDUCE) or (
            root.kind is PART and root.operands[0].kind is REDUCE
        ):
            for cluster in self._candidates(reads):
                if self._joins(cluster, root, reads):
                    self._join(cluster, root, reads)
                    return
        elif root.kind is PART:  # of a step: written by it
            cluster = self.home[root.operands[0]]
            self.home[root] = cluster
            return
        cluster = Cluster(root, 1 << len(self.clusters))
        self.clusters.append(cluster)
        self._join(cluster, root, reads)

    def _candidates(self, reads) -> list[Cluster]:
        """Clusters that produce what the root reads, the newest first."""
        found = {self.home[n] for n in reads if n in self.home}
        return sorted([c for c in found if not c.step], key=lambda c: -c.bit)

    def _joins(self, cluster: Cluster, root: Node, reads) -> bool:
        if len(cluster.roots) >= ROOTS_LIMIT:
            return False
        for node in reads:
            home = self.home.get(node)
            if home is not None and home is not cluster and home.ancestors & cluster.bit:
                return False
        if cluster.roots[0].kind is DOT:
            return root.kind is COMPUTE and self._follows(cluster, root)
        return self._fits(cluster, root) and self._aligned(cluster, root)

    def _follows(self, cluster: Cluster, root: Node) -> bool:
        """Whether each element of the root depends on one of a product, in the same order."""
        if root.size != cluster.roots[0].size or not root.elem:
            return False
        form, reads = self.look(root)
        own = [self.home.get(n) is cluster for n in reads]
        key = (form, *own)
        answer = self._answers.get(key)
        if answer is None:
            members = set(cluster.roots)
            index = [Index.of(Loop(Value("%i", "i64"), 0, n - 1)) for n in root.shape]
            place, found = ravel(index, root.shape), probe(reads, [(root, index)])
            answer = all(ravel(at, n.shape) == place for n, at in found if n in members)
            self._answers[key] = answer
        return answer

    @staticmethod
    def _fits(cluster: Cluster, root: Node) -> bool:
        if root.kind is REDUCE:
            kept, reduced = reduction_axes(root)
            if cluster.fixed:
                return (kept, reduced) == (
                    cluster.space[: cluster.split],
                    cluster.space[cluster.split :],
                )
            return kept + reduced == cluster.space == root.operands[0].shape
        if root.shape == cluster.space:
            return True
        outer = cluster.space[: cluster.split]
        return cluster.fixed and _squeezed(root.shape) == _squeezed(outer)

    def _aligned(self, cluster: Cluster, root: Node) -> bool:
        """Whether the root reads the cluster's own values only at its own place."""
        if root.kind is PART:
            return True
        form, reads = self.look(root)
        split = len(root.shape) if root.kind is REDUCE else cluster.split
        kinds = [n.kind if self.home.get(n) is cluster else "" for n in reads]
        key = (form, cluster.space, split, *kinds)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._at_own_place(cluster, root, split)
        return answer

    def _at_own_place(self, cluster: Cluster, root: Node, split: int) -> bool:
        members = set(cluster.roots)
        index = [Index.of(Loop(Value("%i", "i64"), 0, n - 1)) for n in cluster.space]
        outer, inner = index[:split], index[split:]
        points = computed_at(root, cluster.space, outer, inner)
        for node, at in probe(self.reads(root), points):
            if node in members and node.kind is not PART:
                own = outer
                if node.kind is not REDUCE:
                    own = place_in(node.shape, cluster.space, outer, inner)
                if [*at] != own:
                    return False
        return True

    def _join(self, cluster: Cluster, root: Node, reads) -> None:
        if root.kind is REDUCE and not cluster.fixed:
            cluster.split, cluster.fixed = len(root.shape), True
        cluster.roots.append(root)
        self.home[root] = cluster
        before = cluster.ancestors
        for node in reads:
            cluster.inputs[node] = None
            home = self.home.get(node)
            if home is not None and home is not cluster:
                home.read = True
                cluster.ancestors |= home.ancestors | home.bit
        if cluster.read and cluster.ancestors != before:
            for other in self.clusters:
                if other.ancestors & cluster.bit:
                    other.ancestors |= cluster.ancestors

    def ordered(self) -> list[Cluster]:
        """Clusters in the order in which they run: each where the program begins it.

        What it reads was written lately then, and its memory is soon free.
        """
        out: list[Cluster] = []
        done = 0
        turns = self._turns()
        for last in sorted(self.clusters, key=lambda c: (turns[c], not c.read)):
            # What it needs may begin later, and runs now.
            while needed := (last.ancestors | last.bit) & ~done:
                before = done
                while needed:
                    cluster = self.clusters[(needed & -needed).bit_length() - 1]
                    needed &= needed - 1
                    if not cluster.ancestors & ~done:
                        out.append(cluster)
                        done |= cluster.bit
                assert done != before, "kernels depend on one another"
        return out

    def _turns(self) -> dict[Cluster, int]:
        """When each cluster is to run: a number of a node.

        What only makes results may take inputs' memory for them, when others have read these.
        """
        turns = {c: c.roots[0].number for c in self.clusters}
        latest: dict[Node, int] = {}
        for cluster, turn in turns.items():
            if cluster.read:
                for node in cluster.inputs:
                    latest[node] = max(turn, latest.get(node, 0))
        for cluster in self.clusters:
            if not cluster.read:
                types = {(r.shape, r.dtype) for r in cluster.roots}
                given = [n for n in cluster.inputs if n.kind is INPUT and n in latest]
                after = [latest[n] for n in given if (n.shape, n.dtype) in types]
                turns[cluster] = max([turns[cluster], *after])
        return turns


class _Access(Probe):
    """Notes which nodes are read, and where."""

    def __init__(self, stop):
        pointer = Value("%p", "ptr")
        super().__init__({n: Place(pointer, n.elem or "i8", n.shape) for n in stop})
        self.found: list[tuple[Node, list[Index]]] = []

    def at(self, node, index):
        if node in self.places:
            self.found.append((node, list(index)))
        return super().at(node, index)


def probe(stop, points: Sequence[tuple[Node, list[Index]]]) -> list[tuple[Node, list[Index]]]:
    """The nodes of `stop`, and where, that are read to compute some nodes at some indices."""
    access = _Access(stop)
    for node, index in points:
        access.at(node, index)
    return access.found


def computed_at(root: Node, space, outer, inner) -> list[tuple[Node, list[Index]]]:
    """What a kernel computes for a root, and where, at a point of its space."""
    if root.kind is not REDUCE:
        return [(root, place_in(root.shape, space, outer, inner))]
    o, i = iter(outer), iter(inner)
    at = [next(i) if d in root.data.axes else next(o) for d in range(len(space))]
    return [(x, at) for x in root.operands]


def place_in(shape, space, outer, inner) -> list[Index]:
    """The index of a kernel's value of this shape at a point of the kernel's space."""
    if shape == space:
        return outer + inner
    rest = iter([i for i in outer if i.terms])
    return [next(rest) if n > 1 else Index.of(0) for n in shape]


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for n in shape if n > 1)


class Readers:
    """What is known of those that read a node, for each node by its number.

    Attributes:
      live: whether outputs or steps depend on it.
      needed: whether it must be in memory for one of them.
      uses: how many there are, where what costs nothing counts as often as it is read itself.
      largest: the most elements that one has.
      reduced: whether one is a sum, or the like.
    """

    def __init__(self, graph: Graph):
        count = len(graph.nodes)
        self.live = live = [False] * count
        self.needed = needed = [False] * count
        self.uses = uses = [0] * count
        self.largest = largest = [0.0] * count
        self.reduced = reduced = [False] * count
        for node in graph.outputs:
            live[node.number] = True
            uses[node.number] = 1
        for node in reversed(graph.nodes):
            kind, moves = node.kind, node.cost == 0 and node.kind is COMPUTE
            if not live[node.number] and kind is not CALL:
                continue
            live[node.number] = True
            times = uses[node.number] if moves else 1
            size = math.inf if kind is COMPUTE and node.data == "rereads" else node.size
            whole = kind is CALL or kind is DOT
            sums = kind is REDUCE or moves and reduced[node.number]
            for x in node.operands if len(node.operands) < 2 else set(node.operands):
                i = x.number
                live[i] = True
                uses[i] += times
                if size > largest[i]:
                    largest[i] = size
                if whole:
                    needed[i] = True
                if sums:
                    reduced[i] = True


def choose_roots(graph: Graph) -> set[Node]:
    """The nodes whose values are kept, in memory or at least until their kernel ends."""
    readers, count = Readers(graph), len(graph.nodes)
    live, uses = readers.live, readers.uses
    roots = set(graph.outputs)
    weight, height = [0] * count, [0] * count
    source: list[Node | None] = [None] * count
    """The array in memory, of the value's own size, that it is computed from; or `_SEVERAL`."""
    for node in graph.nodes:
        i = node.number
        if not live[i]:
            continue
        if node.kind is not COMPUTE:
            if node.kind is not INPUT and node.kind is not LITERAL:
                roots.add(node)
            source[i] = node if node.shape else None
            continue
        total, deepest, read = node.cost, 0, None
        for x in node.operands:
            if x not in roots:
                total += weight[x.number]
                deepest = max(deepest, height[x.number])
            other = source[x.number]
            if other is not None and other is not read and x.size == node.size:
                read = other if read is None else _SEVERAL
        if read is None and node.key[0] == "gather":
            read = node  # here and there, from a table: as much as an array
        weight[i], height[i] = total, 1 + deepest
        # Several arrays are more to read than one.  Where layers each add something to a sum, there
        # would be one more from layer to layer, and no two layers were alike.
        many = read is _SEVERAL and readers.reduced[i]
        again = uses[i] > 1 and (total >= EXPENSIVE or many)
        spread = total >= EXPENSIVE and readers.largest[i] > node.size
        if again or spread or readers.needed[i] or deepest >= DEPTH_LIMIT:
            roots.add(node)
        source[i] = node if node in roots else read
    return roots


def prepare(emitter: Emitter) -> Graph:
    """Make every output a node of its own, and every operand of a step an array in memory."""
    graph = emitter.graph
    seen: set[Node] = set()
    outputs = []
    for node in graph.outputs:
        if node.kind in (INPUT, LITERAL) or node in seen:
            node = emitter.stored(node)
        seen.add(node)
        outputs.append(node)
    graph.outputs = outputs
    contract.turn(graph)
    return graph


def specification(fusion: Fusion, cluster: Cluster) -> Spec:
    """What the kernel of a cluster computes."""
    home = fusion.home
    stored = [r for r in cluster.roots if r in fusion.outside and _storable(r)]
    inputs = [n for n in cluster.inputs if home.get(n) is not cluster]
    numbers = {n: i for i, n in enumerate((*inputs, *cluster.roots))}
    words: list[Any] = [cluster.space, cluster.split, len(inputs)]
    for root in cluster.roots:
        form, reads = fusion.look(root)
        words += (form, *[numbers[n] for n in reads])
    key = (*words, "stored", *[numbers[n] for n in stored])
    return Spec(cluster.roots, stored, inputs, cluster.space, cluster.split, key)


def _storable(node: Node) -> bool:
    return not (node.kind is REDUCE and len(node.operands) > 1)


class Arena:
    """Ranges of one block of memory, used again when free."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """The offset of a free range: the smallest that fits."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        fitting = [r for r in self.free if r[1] >= size]
        if not fitting:
            offset = self.size
            if self.free and max(self.free)[0] + max(self.free)[1] == self.size:
                offset = max(self.free)[0]  # grow the last free range
                self.free.remove(max(self.free))
            self.size = offset + size
            return offset
        offset, length = min(fitting, key=lambda r: r[1])
        self.free.remove((offset, length))
        if length > size:
            self.free.append((offset + size, length - size))
        return offset

    def give(self, offset: int, size: int) -> None:
        """Take a range back, and join it with its neighbours."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if not size:
            return
        for start, length in list(self.free):
            if start + length == offset:
                self.free.remove((start, length))
                offset, size = start, size + length
            elif offset + size == start:
                self.free.remove((start, length))
                size += length
        self.free.append((offset, size))


class Plan:
    """The steps of a program in order, and where each value lies.

    A place is `("in", i)`, `("const", i)`, `("out", i)` or `("arena", offset)`.
    """

    def __init__(self, emitter: Emitter, donated: Mapping[int, int] | None = None):
        self.graph = graph = prepare(emitter)
        self.fusion = fusion = Fusion(graph)
        self.steps = fusion.ordered()
        self.places: dict[Node, tuple[str, int]] = {}
        self.literals: list[Node] = []
        for i, node in enumerate(graph.inputs):
            self.places[node] = ("in", i)
        for i, (node, _) in enumerate(graph.consts):
            self.places[node] = ("const", i)
        for i, node in enumerate(graph.outputs):
            self.places[node] = ("out", i)
        self.kept: set[int] = set()
        """Inputs whose memory the result that takes their place is written into."""
        self.donated = dict(donated or {})
        """Inputs that may be overwritten, and the outputs that come in their place."""
        arena = Arena()
        last: dict[Node, int] = {}
        for i, cluster in enumerate(self.steps):
            for node in cluster.inputs:
                last[node] = i
        self.parts: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            if node.kind is PART and node.operands[0].kind is CALL:
                self.parts.setdefault(node.operands[0], []).append(node)
        self.scratch: list[int] = []
        for i, cluster in enumerate(self.steps):
            taken = []
            self._take_over(cluster, i, last)
            for node in self.written(cluster):
                if node not in self.places:
                    offset = arena.take(nbytes(node))
                    self.places[node] = ("arena", offset)
                    if node not in last:
                        taken.append((offset, nbytes(node)))
            extra = self.extra(cluster)
            offset = arena.take(extra) if extra else 0
            self.scratch.append(offset)
            if extra:
                taken.append((offset, extra))
            for node in cluster.inputs:
                if last.get(node) == i and self.places.get(node, ("",))[0] == "arena":
                    taken.append((self.places[node][1], nbytes(node)))
            for place in taken:
                arena.give(*place)
        self.arena_size = arena.size

    def _take_over(self, cluster: Cluster, step: int, last: dict[Node, int]) -> None:
        """Let a step's result have the memory of an operand that nothing needs any more."""
        first = cluster.roots[0]
        if first.kind is not CALL or first.data.reuses is None:
            return
        operand = first.operands[first.data.reuses]
        (result, *_) = self.parts.get(first, [None])
        if result is None or last.get(operand) != step or operand in self.graph.outputs:
            return
        kind, i = self.places[operand]
        if kind == "arena" and result not in self.places:
            self.places[result] = self.places[operand]
            del last[operand]
        elif kind == "in" and self.places.get(result) == ("out", self.donated.get(i)):
            self.places[result] = self.places[operand]
            self.kept.add(i)

    def text(self) -> str:
        """The steps in order: what each computes, and where its results are."""
        lines = []
        for number, cluster in enumerate(self.steps):
            first = cluster.roots[0]
            kind = type(first.data).__name__.lower() if first.kind is CALL else "kernel"
            lines.append(f"{number}: {kind} over {list(cluster.space)}")
            for node in cluster.roots:
                reads = " ".join(f"%{x.number}" for x in node.operands)
                place = " ".join(map(str, self.places.get(node, ("registers",))))
                what = node.key[:2] if node.key else kind
                shape = f"{node.dtype}{list(node.shape)}"
                lines.append(f"    %{node.number}: {shape} = {what} {reads}  [{place}]")
        return "\n".join(lines)

    def written(self, cluster: Cluster) -> list[Node]:
        """The nodes that a step stores."""
        first = cluster.roots[0]
        if first.kind is CALL:
            return self.parts.get(first, [])
        return [r for r in cluster.roots if r in self.fusion.outside and _storable(r)]

    def extra(self, cluster: Cluster) -> int:
        """Memory that a step needs for itself."""
        first = cluster.roots[0]
        return first.data.scratch if first.kind is CALL else 0
