"""Which loops, in which order, with which memory.

`Fusion` decides which values are kept in memory (*roots*) and which are computed where they are
read, then puts roots that run over the same indices into one kernel.  `Plan` gives each root that
leaves its kernel a place: an argument of the program, or a range of the arena that is used again
as soon as nothing needs it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo.core.jaxpr import ClosedJaxpr
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

Reads = tuple[Node, ...]
"""Nodes in memory, in the order in which they are read first."""


class Frame(NamedTuple):
    """The loops of a cluster: what decides, with a root's form, whether the root fits in."""

    space: tuple[int, ...]
    """Points at which it computes: outer ones, and those along which its sums run."""
    split: int
    """How many axes of the space are outer ones."""
    fixed: bool
    """Whether a reduction has said so."""
    kind: str
    """That of the first root."""

    @classmethod
    def of(cls, root: Node) -> Frame:
        """The loops of a cluster that begins with a root."""
        if root.kind is REDUCE:
            kept, reduced = reduction_axes(root)
            return cls(kept + reduced, len(kept), True, REDUCE)
        return cls(root.shape, len(root.shape), False, root.kind)


class Cluster:
    """Roots that become one kernel, or a single step of another kind."""

    __slots__ = (
        "ancestors", "bit", "frame", "inputs", "number", "places", "read", "roots", "step",
        "stored", "words",
    )  # fmt: skip

    def __init__(self, number: int, frame: Frame, step: bool):
        self.number = number
        self.frame = frame
        self.step = step
        """Whether it is no kernel."""
        self.roots: list[Node] = []
        self.stored: list[Node] = []
        """Those of them that a kernel writes to memory."""
        self.bit = 1 << number
        self.ancestors = 0
        """The bits of all clusters that must run before."""
        self.inputs: dict[Node, None] = {}
        """What it reads, of others."""
        self.read = False
        """Whether another cluster reads its values."""
        self.places: dict[Node, int] = {}
        """Numbers of what it reads and computes, in this order."""
        self.words: list[int] = []
        """The form of each root, and the numbers of what the root reads."""

    @property
    def space(self) -> tuple[int, ...]:
        return self.frame.space

    @property
    def split(self) -> int:
        return self.frame.split


Homes = dict[Node, Cluster | None]
"""The clusters that compute what a root reads; none computes an input."""


def nbytes(node: Node) -> int:
    """Bytes of a node's elements."""
    return node.size * node.dtype.itemsize


class Fusion:
    """The clusters of a graph."""

    def __init__(self, graph: Graph):
        self.home: dict[Node, Cluster] = {}
        self.clusters: list[Cluster] = []
        self.roots = Roots(graph)
        self.outside = set(graph.outputs)
        """What leaves its kernel."""
        self._frames: dict[int, tuple[Frame, bool]] = {}
        self._answers: dict[Any, bool] = {}
        """What was found out about forms: layers that are alike are looked at once."""
        for root, (form, reads) in self.roots.looks.items():
            self._place(root, form, reads)
        for cluster in self.clusters:
            cluster.stored = [r for r in cluster.roots if r in self.outside]

    def reads(self, root: Node) -> Reads:
        """The nodes in memory that a root is computed from."""
        return self.roots.looks[root][1]

    def _place(self, root: Node, form: int, reads: Reads) -> None:
        homes: Homes = {}
        for node in reads:
            homes[node] = self.home.get(node)
        kind = root.kind
        if kind is PART:
            cluster = self.home[root.operands[0]]
            if cluster.step:
                self.home[root] = cluster  # which writes it
            else:
                self._join(cluster, root, form, homes)
            return
        if kind is COMPUTE or kind is REDUCE:
            for cluster in _candidates(homes):
                if self._joins(cluster, root, form, homes):
                    self._join(cluster, root, form, homes)
                    return
        known = self._frames.get(form)
        if known is None:
            step = kind is CALL or kind is DOT and not contract.generated(root)
            known = self._frames[form] = Frame.of(root), step
        cluster = Cluster(len(self.clusters), *known)
        self.clusters.append(cluster)
        self._join(cluster, root, form, homes)

    def _joins(self, cluster: Cluster, root: Node, form: int, homes: Homes) -> bool:
        if len(cluster.roots) >= ROOTS_LIMIT:
            return False
        bit, own = cluster.bit, []
        for node, home in homes.items():
            if home is cluster:
                own.append(node.kind)
            elif home is not None and home.ancestors & bit:
                return False
            else:
                own.append("")
        key = (form, cluster.frame, *own)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._suits(cluster, root)
        return answer

    def _suits(self, cluster: Cluster, root: Node) -> bool:
        """Whether a root can be computed in the loops of a cluster."""
        if cluster.frame.kind is DOT:
            return root.kind is COMPUTE and self._follows(cluster, root)
        return self._fits(cluster, root) and self._aligned(cluster, root)

    def _follows(self, cluster: Cluster, root: Node) -> bool:
        """Whether each element of the root depends on one of a product, in the same order."""
        if root.size != cluster.roots[0].size or not root.elem:
            return False
        members = set(cluster.roots)
        index = [Index.of(Loop(Value("%i", "i64"), 0, n - 1)) for n in root.shape]
        place, found = ravel(index, root.shape), probe(self.reads(root), [(root, index)])
        return all(ravel(at, n.shape) == place for n, at in found if n in members)

    @staticmethod
    def _fits(cluster: Cluster, root: Node) -> bool:
        space, split, fixed, _ = cluster.frame
        if root.kind is REDUCE:
            kept, reduced = reduction_axes(root)
            if fixed:
                return (kept, reduced) == (space[:split], space[split:])
            return kept + reduced == space == root.operands[0].shape
        return root.shape == space or fixed and _squeezed(root.shape) == _squeezed(space[:split])

    def _aligned(self, cluster: Cluster, root: Node) -> bool:
        """Whether the root reads the cluster's own values only at its own place."""
        split = len(root.shape) if root.kind is REDUCE else cluster.split
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

    def _join(self, cluster: Cluster, root: Node, form: int, homes: Homes) -> None:
        if root.kind is REDUCE and not cluster.frame.fixed:
            cluster.frame = cluster.frame._replace(split=len(root.shape), fixed=True)
        cluster.roots.append(root)
        self.home[root] = cluster
        before, words, places = cluster.ancestors, cluster.words, cluster.places
        words.append(form)
        for node, home in homes.items():
            words.append(places.setdefault(node, len(places)))
            if home is not cluster:
                cluster.inputs[node] = None
                if home is not None:
                    home.read = True
                    self.outside.add(node)
                    cluster.ancestors |= home.ancestors | home.bit
        places[root] = len(places)
        if cluster.read and cluster.ancestors != before:
            for other in self.clusters:
                if other.ancestors & cluster.bit:
                    other.ancestors |= cluster.ancestors

    def ordered(self) -> list[Cluster]:
        """Clusters in the order in which they run: each where the program begins it.

        What it reads was written lately then, and its memory is soon free.
        """
        out: list[Cluster] = []
        left = (1 << len(self.clusters)) - 1
        turns = self._turns()
        for last in sorted(self.clusters, key=lambda c: (turns[c], not c.read)):
            # What it needs may begin later, and runs now.
            while needed := last.ancestors & left:
                before = left
                while needed:
                    cluster = self.clusters[(needed & -needed).bit_length() - 1]
                    needed &= needed - 1
                    if not cluster.ancestors & left:
                        out.append(cluster)
                        left ^= cluster.bit
                assert left != before, "kernels depend on one another"
            if last.bit & left:
                out.append(last)
                left ^= last.bit
        return out

    def _turns(self) -> dict[Cluster, int]:
        """When each cluster is to run: a number of a node.

        What only makes results may take inputs' memory for them, when others have read these.
        """
        turns = {c: c.roots[0].number for c in self.clusters}
        latest: dict[Node, int] = {}
        for cluster, turn in turns.items():
            if cluster.read:
                latest.update(dict.fromkeys(cluster.inputs, turn))
        for cluster, turn in turns.items():
            if not cluster.read:
                later = [n for n in cluster.inputs if latest.get(n, 0) > turn and n.kind is INPUT]
                types = {(r.shape, r.dtype) for r in cluster.roots} if later else ()
                after = [latest[n] for n in later if (n.shape, n.dtype) in types]
                turns[cluster] = max([turn, *after])
        return turns


def _candidates(homes: Homes) -> list[Cluster]:
    """Kernels that produce what a root reads, the newest first."""
    found: list[Cluster] = []
    for cluster in homes.values():
        if cluster is not None and not cluster.step and cluster not in found:
            found.append(cluster)
    if len(found) > 1:
        found.sort(key=lambda c: -c.number)
    return found


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
      needed: whether it must be in memory for one of them.
      uses: how many there are that are needed themselves, where what costs nothing counts as often
        as it is read itself.
      largest: the most elements that one has.
      reduced: whether one is a sum, or the like.
    """

    def __init__(self, graph: Graph):
        count = len(graph.nodes)
        self.needed = needed = [False] * count
        self.uses = uses = [0] * count
        self.largest = largest = [0.0] * count
        self.reduced = reduced = [False] * count
        for node in graph.outputs:
            uses[node.number] = 1
        for node in reversed(graph.nodes):
            kind, times = node.kind, uses[node.number]
            if not times and kind is not CALL:
                continue
            moves = node.cost == 0 and kind is COMPUTE
            if not moves:
                times = 1
            size = math.inf if kind is COMPUTE and node.data == "rereads" else node.size
            whole = kind is CALL or kind is DOT
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


class Roots:
    """The nodes whose values are kept, in memory or at least until their kernel ends.

    Attributes:
      looks: for each of them, in order, the form in which it is computed from nodes in memory, and
        those nodes.  Roots of one form are computed alike, whichever nodes they read.
    """

    def __init__(self, graph: Graph):
        self.looks: dict[Node, tuple[int, Reads]] = {}
        readers, count = Readers(graph), len(graph.nodes)
        uses, needed = readers.uses, readers.needed
        forms, outputs = graph.forms, set(graph.outputs)
        types: dict[int, int] = {}
        weight, height = [0] * count, [0] * count
        source: list[Node | None] = [None] * count
        """The array in memory, of the value's own size, that it is computed from; or `_SEVERAL`."""
        seen: list[int] = [0] * count
        behind: list[Reads] = [()] * count
        """What it is to those that read it: a form, and the nodes in memory behind it."""
        for node in graph.nodes:
            i, kind, size = node.number, node.kind, node.size
            if not uses[i] and kind is not CALL:
                continue
            if kind is INPUT or kind is LITERAL:
                source[i] = node if node.shape else None
                seen[i] = node.form
                if kind is INPUT:
                    behind[i] = (node,)
                continue
            total, deepest, read = node.cost, 0, None
            words: list[Any] = [node.form]
            reads: Reads = ()
            for x in node.operands:
                j = x.number
                total += weight[j]
                if height[j] > deepest:
                    deepest = height[j]
                other = source[j]
                if other is not None and other is not read and x.size == size:
                    read = other if read is None else _SEVERAL
                words.append(seen[j])
                reads = reads + behind[j] if reads else behind[j]
            if len(reads) > 1 and len(set(reads)) < len(reads):
                found = reads  # some are in several places: it matters in which
                reads = tuple(dict.fromkeys(found))
                words.append(tuple(map(reads.index, found)))
            form = forms.setdefault(tuple(words), len(forms))
            if kind is COMPUTE:
                if read is None and node.key[0] == "gather":
                    read = node  # here and there, from a table: as much as an array
                # Several arrays are more to read than one.  Where layers each add something to a
                # sum, there would be one more from layer to layer, and no two layers were alike.
                many = read is _SEVERAL and readers.reduced[i]
                again = uses[i] > 1 and (total >= EXPENSIVE or many)
                spread = total >= EXPENSIVE and readers.largest[i] > size
                deep = deepest >= DEPTH_LIMIT
                if not (again or spread or deep or needed[i] or node in outputs):
                    weight[i], height[i], source[i] = total, 1 + deepest, read
                    seen[i], behind[i] = form, reads
                    continue
            self.looks[node] = form, reads
            source[i] = node if node.shape or kind is COMPUTE else None
            behind[i] = (node,)
            known = types.get(node.form)
            if known is None:
                known = types[node.form] = graph.type(node)
            seen[i] = known


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


def specification(cluster: Cluster) -> Spec:
    """What the kernel of a cluster computes."""
    stored = cluster.stored
    key = (cluster.frame, *cluster.words, "stored", *[cluster.places[n] for n in stored])
    return Spec(cluster.roots, stored, list(cluster.inputs), cluster.space, cluster.split, key)


class Arena:
    """Ranges of one block of memory, used again when free."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, int] = {}
        """Lengths of free ranges, by where they start."""
        self.starts: dict[int, int] = {}
        """Where they start, by where they end."""

    def take(self, size: int) -> int:
        """The offset of a free range: the smallest that fits."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        best, least = -1, math.inf
        for offset, length in self.free.items():
            if size <= length < least:
                best, least = offset, length
        if best < 0:
            best = self.starts.get(self.size, self.size)  # grow the last range, if it is free
            self.size = best + size
        length = self._remove(best)
        if length > size:
            self._add(best + size, length - size)
        return best

    def give(self, offset: int, size: int) -> None:
        """Take a range back, and join it with its neighbours."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if not size:
            return
        before = self.starts.get(offset, offset)
        self._add(before, self._remove(before) + size + self._remove(offset + size))

    def _add(self, offset: int, size: int) -> None:
        self.free[offset] = size
        self.starts[offset + size] = offset

    def _remove(self, offset: int) -> int:
        """The length of the free range that was there; 0 if there was none."""
        size = self.free.pop(offset, 0)
        if size:
            del self.starts[offset + size]
        return size


class Plan:
    """The steps of a program in order, and where each value lies.

    A place is `("in", i)`, `("const", i)`, `("out", i)` or `("arena", offset)`.
    """

    def __init__(self, emitter: Emitter, donated: Mapping[int, int] | None = None):
        self.emitter = emitter
        self.graph = graph = prepare(emitter)
        self.fusion = fusion = Fusion(graph)
        self.steps = fusion.ordered()
        self.places: dict[Node, tuple[str, int]] = {}
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
            last.update(dict.fromkeys(cluster.inputs, i))
        self.parts: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            if node.kind is PART and node.operands[0].kind is CALL:
                self.parts.setdefault(node.operands[0], []).append(node)
        self.scratch: list[int] = []
        for i, cluster in enumerate(self.steps):
            free: list[tuple[int, int]] = []
            first, extra, offset = cluster.roots[0], 0, 0
            if first.kind is CALL:
                extra = first.data.scratch
                self._take_over(first, i, last)
            for node in self.written(cluster):
                if node not in self.places:
                    self.places[node] = place = ("arena", arena.take(nbytes(node)))
                    if node not in last:
                        free.append((place[1], nbytes(node)))
            if extra:
                offset = arena.take(extra)
                free.append((offset, extra))
            self.scratch.append(offset)
            for node in cluster.inputs:
                if last.get(node) == i:
                    kind, start = self.places[node]
                    if kind == "arena":
                        free.append((start, nbytes(node)))
            for place in free:
                arena.give(*place)
        self.arena_size = arena.size

    def _take_over(self, first: Node, step: int, last: dict[Node, int]) -> None:
        """Let a step's result have the memory of an operand that nothing needs any more."""
        if first.data.reuses is None:
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
        return cluster.stored


def planned(closed: ClosedJaxpr, emitter: Emitter) -> Plan:
    """The plan of a program."""
    inputs = [emitter.input(a) for a in closed.in_avals]
    emitter.graph.outputs = emitter.inline(closed, inputs)
    return Plan(emitter)
