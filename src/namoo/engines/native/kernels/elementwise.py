"""Kernels of loops over a space of indices, in which values are computed and stored.

The space has *outer* axes, whose points are independent, and *inner* ones, along which reductions
run. Without reductions all axes are outer. With them, a kernel is a sequence of stages for each
outer point: a value that needs the sum of a row is computed in the stage after that sum.

Loads and stores are analysed first, with one symbol for each axis. Axes that are contiguous in all
of them become one loop; `vector_axis` chooses the loop that is vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import LITERAL, REDUCE, Node
from namoo.engines.native.ir.extents import about
from namoo.engines.native.ir.function import (
    Function,
    Value,
    bits_of,
    constant,
    mask_of,
    storage,
)
from namoo.engines.native.ir.index import Index, Loop, Quotient, Symbol, ravel, unravel
from namoo.engines.native.ir.sizes import SizedFunction
from namoo.engines.native.ir.types import (
    computed_in,
    is_compound,
    part_of,
    parts,
    size_of,
)
from namoo.engines.native.kernels.accumulator import Accumulator
from namoo.engines.native.kernels.element_codegen import (
    Ahead,
    Place,
    Probe,
    Writer,
)
from namoo.engines.native.kernels.kernel import Kernel, KernelSpec
from namoo.engines.native.kernels.transposed import tiles
from namoo.engines.native.kernels.vector_axis import Choice, Width, Work, choose, split_axes


def reduction_axes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the axes that a reduction keeps, and of those that it reduces."""
    shape, axes = node.operands[0].shape, node.data.axes
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    return kept, tuple(shape[i] for i in axes)


def stage_numbers(roots: Iterable[Node], inputs: Iterable[Node]) -> dict[Node, int]:
    """The stage of each root: after the reductions that it needs."""
    members, known = set(roots), set(inputs)
    seen: dict[Node, int] = {}

    def stage(node: Node) -> int:
        if node in known or node.kind is LITERAL:
            return 0
        if node not in seen:
            seen[node] = max((finished(x) for x in node.operands), default=0)
        return seen[node]

    def finished(node: Node) -> int:
        return stage(node) + (node.kind is REDUCE and node in members)

    return {root: stage(root) for root in roots}


class KernelEmitter:
    """Writes the code of one `KernelSpec`."""

    def __init__(self, spec: KernelSpec, name: str):
        self.spec = spec
        self.name = name
        self.levels = stage_numbers(spec.roots, spec.inputs)
        self.stages = sorted(set(self.levels.values()))
        self.reduces = spec.split < len(spec.space)
        self.space, self.split = spec.space, spec.split
        self.tested: list[Index] = []
        """Indices that conditions compare with the ends of an axis."""
        self.parts: list[tuple[int, ...]] | None = None
        """The sizes of the loops that each axis became, if some were split."""
        computed = self.computed = self._computed()
        widest = max(
            (
                bits_of(part_of(computed_in(n.elem) if n.elem else "f64")) // 8
                for n in (*computed, *spec.inputs)
            ),
            default=1,
        )
        self.widest_vector = min(16, tuning.VECTOR_BYTES // max(widest, 4))
        """Lanes of one register."""
        self.slow = max((n.cost for n in computed), default=0) >= tuning.SLOW_FUNCTION
        self.late = self._late_roots()
        """Roots computed from row sums, for a vector of rows at once, if vectors run along rows."""
        self.rows_in_registers = False
        """Whether loops over a row are unrolled, for a vector of rows."""
        self.registers = 1
        """How many registers a vector takes."""
        self.tiled: int | None = None
        """The group whose loop is cut into tiles, together with the vector's."""
        self.tile_width = tuning.CACHE_LINE
        self.square = False
        """Whether squares of elements are transposed in registers."""
        self.strips = False
        """Whether strips of them are, into memory on the stack."""
        self.shuffles = False
        """Whether the lanes of a vector along an outer axis are far apart in memory."""

    def _index_of(self, root: Node, outer: list[Index], inner: list[Index]) -> list[Index]:
        space = self.spec.space
        if self.parts is not None:
            rest = iter(outer)
            outer = [ravel([next(rest) for _ in sizes], sizes) for sizes in self.parts]
        if root.shape == space:
            return outer + inner
        sizes = [n for n in space[: self.spec.split]]
        at = [i for i, n in zip(outer, sizes, strict=True) if n != 1]
        rest = iter(at)
        return [next(rest) if n != 1 else Index.of(0) for n in root.shape]

    @staticmethod
    def _operand_index(node: Node, outer: list[Index], inner: list[Index]) -> list[Index]:
        o, i = iter(outer), iter(inner)
        axes = node.data.axes
        return [next(i) if d in axes else next(o) for d in range(len(node.operands[0].shape))]

    def _accesses(self) -> tuple[list[Index], list[int], list[Index], list[Symbol]]:
        """Positions and sizes of loads, positions of stores, and the symbol of each axis."""
        nowhere = Value("%p", "ptr")
        places = {n: Place(nowhere, n.elem, n.shape) for n in self.spec.inputs}
        probe = Probe(places)
        symbols: list[Symbol] = [Loop(Value("%i", "i64"), 0, n - 1) for n in self.space]
        index = [Index.of(s) for s in symbols]
        outer, inner = index[: self.split], index[self.split :]
        stores = []
        for root in self.spec.roots:
            if root.kind is REDUCE:
                at = self._operand_index(root, outer, inner)
                for x in root.operands:
                    probe.at(x, at)
                value: Any = tuple(_dummy(x) for x in root.operands)
                probe.registers[root] = value if len(value) > 1 else value[0]
            else:
                at = self._index_of(root, outer, inner)
                probe.registers[root] = probe.at(root, at)
            if root in self.spec.stored:
                at = outer if root.kind is REDUCE else self._index_of(root, outer, inner)
                stores.append(Place(nowhere, root.elem, root.shape).position(at))
        self.tested = probe.tested
        return probe.positions, probe.sizes, stores, symbols

    def _merge(self, positions, symbols) -> list[list[int]]:
        """Groups of neighbouring axes that are one axis wherever memory is touched."""
        indices = list(positions)
        for position in indices:
            indices += [s.base for s in position.terms if isinstance(s, Quotient)]
        sizes, groups = self.space, []
        for axis in range(len(sizes)):
            if sizes[axis] == 1:
                continue
            if groups and (groups[-1][-1] < self.split) == (axis < self.split):
                a, b = symbols[groups[-1][-1]], symbols[axis]
                if all(p.terms.get(a, 0) == p.terms.get(b, 0) * sizes[axis] for p in indices):
                    groups[-1].append(axis)
                    continue
            groups.append([axis])
        return groups

    def _set_parts(self, parts: list[tuple[int, ...]] | None) -> None:
        """Split each axis into loops of these sizes; None for the axes as they are."""
        self.parts = parts
        sizes = [(n,) for n in self.spec.space] if parts is None else parts
        self.space = tuple(n for part in sizes for n in part)
        self.split = len(self.space)

    def _choice(self, loads, stores, symbols) -> Choice:
        """The loops, and which of them is the vector."""
        groups = self._merge([*loads, *stores, *self.tested], symbols)
        space, split, computed = self.space, self.split, self.computed
        points, rows = math.prod(space), math.prod(space[:split])
        early = _reached(self._swept(), set(self.spec.inputs))
        sums = [r for r in self.spec.roots if r.kind is REDUCE]
        hidden = [
            r for r in self.spec.roots if r.shape == self.spec.space and r not in self.spec.stored
        ]
        work = Work(
            space,
            split,
            loads,
            stores,
            symbols,
            operations=max(1, sum(n.cost for n in computed if n.size >= points)),
            sums=len(sums),
            per_row=sum(n.cost for n in early if n.size == rows and n.kind is not REDUCE),
            # Rows that stay on the stack between stages; short ones stay in registers.
            shares_rows=bool(hidden) and not self._is_short(groups),
            short=math.prod(space[split:]) if self._is_short(groups) else 0,
        )
        return choose(work, groups, self._width)

    def _is_short(self, groups: list[list[int]]) -> bool:
        """Whether all elements of a row can be in registers, for a vector of rows."""
        inner = [group for group in groups if group[0] >= self.split]
        length = math.prod(self.space[self.split :])
        return len(inner) == 1 and length <= tuning.ROW_IN_REGISTERS

    def _across(self, outer, loads, bytes_loaded, stores, symbols) -> int | None:
        """The group along which loads are contiguous whose lanes are far apart in memory.

        Each such load fetches a cache line whose other elements belong to other rows of the result.
        Loops over tiles use them before the line is evicted.
        """
        *others, vector = outer
        along = symbols[self.groups[vector][-1]]
        for g in others:
            symbol = symbols[self.groups[g][-1]]
            for p, size in zip(loads, bytes_loaded, strict=True):
                near, far = (abs(p.terms.get(s, 0)) * size for s in (symbol, along))
                self.square = (
                    p.terms.get(symbol) == 1 < abs(p.terms.get(along, 0))
                    and self.lanes <= min(self.sizes[g], self.sizes[vector], 16)
                    and sum(n.cost for n in self.computed) <= tuning.SQUARE_COST
                )
                if self.square:
                    self.strips = any(
                        q.terms.get(symbol, 0) * size_of(r.elem) % tuning.PAGE == 0
                        for q, r in zip(stores, self.spec.stored, strict=True)
                    )
                    return g
                if (
                    self.sizes[vector] >= tuning.L1_LINES
                    and 0 < near < tuning.CACHE_LINE <= far
                    and self.sizes[g] * near >= tuning.CACHE_LINE
                ):
                    # Lines that are a multiple of a page apart map to the same cache set.
                    self.tile_width = 1 if far % tuning.PAGE == 0 else tuning.CACHE_LINE
                    return g
        return None

    def emit(self) -> Kernel:
        spec = self.spec
        loads, bytes_loaded, stores, symbols = self._accesses()
        whole = choice = self._choice(loads, stores, symbols)
        parts = None if self.reduces else split_axes(loads + stores, symbols, self.space)
        if parts is not None:
            self._set_parts(parts)
            loads, bytes_loaded, stores, symbols = self._accesses()
            choice = self._choice(loads, stores, symbols)
            if choice.cost >= whole.cost:
                self._set_parts(None)
                loads, bytes_loaded, stores, symbols = self._accesses()
                choice = self._choice(loads, stores, symbols)
        groups, vector, width, self.copies, _ = choice
        sizes = [math.prod(self.space[a] for a in group) for group in groups]
        outer = [g for g, group in enumerate(groups) if group[-1] < self.split]
        inner = [g for g in range(len(groups)) if g not in outer]
        for section in (outer, inner):
            if vector in section:
                section.remove(vector)
                section.append(vector)
        f = self.f = SizedFunction(self.name, ["ptr", "i64", "i64"])
        self.groups, self.sizes = groups, sizes
        self.vector_group = vector
        self.lanes, self.narrow = width
        if outer and outer[-1] == vector and not inner and not self.copies:
            self.tiled = self._across(outer, loads, bytes_loaded, stores, symbols)
        if self.tiled is not None:
            *others, last = outer
            outer = [*(g for g in others if g != self.tiled), self.tiled, last]
        self.registers = width.registers if vector is not None else 1
        if vector is not None and self.reduces and self._vector_is_outer():
            along = symbols[groups[vector][-1]]
            rows = [r for r in spec.roots if r.kind is not REDUCE and r.shape == spec.space]
            self.rows_in_registers = bool(rows) and self._is_short(groups)
            steps = [about(p.terms.get(along, 0)) for p in loads]
            self.shuffles = any(abs(step) > 2 * tuning.UNROLL for step in steps)
        self.symbols: dict[int, Any] = {}
        table, self.begin, self.end = f.parameters
        f.take_sizes(table, len(spec.inputs) + len(spec.stored), spec.variables)
        places = {}
        for i, node in enumerate([*spec.inputs, *spec.stored]):
            slot = f.offset(table, i, "ptr")
            places.setdefault(node, Place(f.load(slot, "ptr"), node.elem, node.shape))
        self.targets = {n: places[n] for n in spec.stored}
        self.w = Writer(f, {n: places[n] for n in spec.inputs})
        self.w.lanes = self.lanes
        self.ahead: Ahead | None = None
        alone = not inner and not self.copies
        if vector is not None and len(outer) > 1 and outer[-1] == vector and alone:
            along = symbols[groups[vector][-1]]
            if any(_is_random_access(p) and p.terms.get(along) == 1 for p in loads):
                self.ahead = Ahead(f, self.w.places)
                self.ahead.lanes = self.lanes
        self.units = 1
        self._outer(outer, inner, first=True)
        f.line("  ret void")
        work = math.prod(spec.space) * max(1, sum(n.cost for n in self.computed))
        return Kernel(self.name, f.text(), f.declarations, self.units, work)

    def _computed(self):
        seen, stack, inputs = set(), list(self.spec.roots), set(self.spec.inputs)
        while stack:
            node = stack.pop()
            if node not in seen and node not in inputs:
                seen.add(node)
                stack += node.operands
        return seen

    def _width(self, size: int, columns: bool) -> Width:
        """The width of vectors along an axis of some size: several registers if that is faster.

        Sums over the leading axes (`columns`) read a piece of every row, which should be long.
        Functions with long dependency chains are latency-bound, so two vectors should be in flight.
        """
        lanes = self.widest_vector
        while lanes // 2 >= size and lanes > 2:
            lanes //= 2
        wanted = 8 if columns else 2 if self.slow else 1
        narrow = lanes
        while lanes < wanted * narrow and size >= 2 * lanes and size % (2 * lanes) == 0:
            lanes *= 2
        return Width(lanes, narrow)

    def _vector_is_outer(self) -> bool:
        return self.groups[self.vector_group][-1] < self.split  # type: ignore[index]

    def _outer(self, loops: list[int], inner: list[int], first: bool = False) -> None:
        """Open the loops of the outer axes, then run the stages."""
        if not loops:
            self.row(inner)
            return
        g, f = loops[0], self.f
        n = self.sizes[g]
        if g == self.tiled:
            tiles(self, first, self.square, self.strips)
            return
        if len(loops) == 1 and self._finishes_together(g):
            self._blocks(g, inner, first)
            return
        if g != self.vector_group:
            start, stop = (self.begin, self.end) if first else (constant("i64", 0), n)
            if first:
                self.units = n
            with f.loop(start, stop) as i:
                self.symbols[g] = Loop(i, 0, n - 1)
                self._outer(loops[1:], inner)
            return
        if self.copies:
            self._joined(g, first)
            return
        lanes = self.lanes
        main, rest = n // lanes * lanes, n % lanes
        if first:
            self.units = -(-n // lanes)
        if main:
            with ExitStack() as stack:
                start, stop = constant("i64", 0), constant("i64", main)
                if first:
                    width = constant("i64", lanes)
                    start = f.mul(self.begin, width)
                    stop = f.minimum(f.mul(self.end, width), stop)
                    if rest:
                        stack.enter_context(f.branch(f.compare("lt", start, stop)))
                i = stack.enter_context(f.loop(start, stop, lanes))
                self.symbols[g] = Loop(i, 0, n - 1, vector=True)
                self.row(inner)
        if rest:
            with ExitStack() as stack:
                if first:
                    last = f.compare("eq", self.end, constant("i64", self.units))
                    stack.enter_context(f.branch(last))
                self.symbols[g] = Loop(constant("i64", main), main, n - 1, vector=True)
                self.w.mask = mask_of(lanes, rest)
                self.row(inner)
                self.w.mask = None

    def _swept(self) -> set[Node]:
        """The roots that are computed along the inner axes."""
        return {r for r in self.spec.roots if r.kind is REDUCE or r.shape == self.spec.space}

    def _late_roots(self) -> list[Node]:
        """The roots with one value per row that nothing along the row reads."""
        swept = self._swept()
        early = _reached(swept, set(self.spec.inputs)) if self.reduces else set()
        return [r for r in self.spec.roots if self.reduces and r not in swept and r not in early]

    def _finishes_together(self, g: int) -> bool:
        """Whether the sums of several rows are collected, and late roots computed as vectors."""
        needed = {*self.late, *_reached(set(self.late), set(self.spec.inputs))}
        rows = math.prod(self.spec.space[: self.spec.split])
        return (
            self.vector_group is not None
            and not self._vector_is_outer()
            and self.sizes[g] >= self.widest_vector
            and all(r.kind is REDUCE for r in needed & self._swept())
            and sum(n.cost for n in needed if n.kind is not REDUCE and n.size <= rows)
            >= tuning.FINISHED_TOGETHER
        )

    def _blocks(self, g: int, inner: list[int], first: bool) -> None:
        """A loop over blocks of as many rows as a vector has lanes: late roots are vectors."""
        f, w, n, lanes = self.f, self.w, self.sizes[g], self.widest_vector
        blocks = -(-n // lanes)
        begin, end = constant("i64", 0), constant("i64", blocks)
        if first:
            self.units = blocks
            begin, end = self.begin, self.end
        with f.loop(begin, end) as i:
            start = Index({Loop(i, 0, blocks - 1): lanes})
            count = constant("i64", lanes)
            if n % lanes:
                count = f.minimum(count, f.sub(constant("i64", n), f.mul(i, count)))
            needed = _reached(set(self.late), set(self.spec.inputs))
            sums = [r for r in self.spec.roots if r.kind is REDUCE and r in needed]
            with f.loop(0, count) as row:
                self.symbols[g] = start + Index.of(Loop(row, 0, lanes - 1))
                self.row(inner, set(self.late))
                stored = {r: self._set_aside(w.registers[r], row, lanes) for r in sums}
            f.epoch += 1
            lane = Loop(constant("i64", 0), 0, lanes - 1, vector=True)
            self.symbols[g] = start + Index({lane: 1})
            w.registers = {r: read() for r, read in stored.items()}
            w.lanes, wide = lanes, w.lanes
            if n % lanes:
                w.mask = f.compare("lt", f.iota("i64", lanes), f.splat(count, lanes))
            outer = self._indices()[: self.split]
            for stage in self.stages:
                roots = [r for r in self.late if self.levels[r] == stage]
                self._points([(r, self._index_of(r, outer, [])) for r in roots])
            w.lanes, w.mask = wide, None

    def _set_aside(self, value: Any, row: Value, lanes: int) -> Callable[[], Any]:
        """Store the value of a row on the stack; the returned function loads those of all rows."""
        f = self.f
        if isinstance(value, tuple):
            parts = [self._set_aside(v, row, lanes) for v in value]
            return lambda: tuple(read() for read in parts)
        name = f.fresh()
        f.line(f"  {name} = alloca [{lanes} x {storage(value.elem)}], align 64", 0)
        f.store(value, f.offset(Value(name, "ptr"), row, value.elem))
        return lambda: f.load(Value(name, "ptr", 0, f.depth), value.elem, lanes)

    def _joined(self, g: int, first: bool) -> None:
        """A loop over two joined axes: its body is one period of the pattern, in vectors."""
        f, n, lanes = self.f, self.sizes[g], self.lanes
        block = lanes * self.copies
        blocks, rest = divmod(n, block)
        lane = Index({Loop(constant("i64", 0), 0, lanes - 1, vector=True): 1})

        def vectors(start: Index, count: int) -> None:
            for at in range(0, count, lanes):
                self.symbols[g] = start + lane + at
                if count - at < lanes:
                    self.w.mask = mask_of(lanes, count - at)
                self.row([])
                self.w.mask = None

        with ExitStack() as stack:
            begin, end = constant("i64", 0), constant("i64", blocks)
            if first:
                self.units = -(-n // block)
                begin, end = self.begin, f.minimum(self.end, end)
                if rest:
                    stack.enter_context(f.branch(f.compare("lt", begin, end)))
            if blocks:
                i = stack.enter_context(f.loop(begin, end))
                vectors(Index({Loop(i, 0, blocks - 1): block}), block)
        if rest:
            with ExitStack() as stack:
                if first:
                    last = f.compare("eq", self.end, constant("i64", self.units))
                    stack.enter_context(f.branch(last))
                vectors(Index.of(n - rest), rest)

    def _indices(self) -> list[Index]:
        """The index of each axis of the space, from the loops that are open."""
        out: list[Any] = [Index.of(0)] * len(self.space)
        for g, symbol in self.symbols.items():
            group = self.groups[g]
            parts = unravel(_of_loop(symbol), tuple(self.space[a] for a in group))
            for axis, part in zip(group, parts, strict=True):
                out[axis] = part
        return out

    def row(self, inner: list[int], later: Collection[Node] = ()) -> None:
        """All stages of one outer point, or of a vector of points, except the roots in `later`."""
        spec, w = self.spec, self.w
        w.registers = {}
        for node in [n for n in w.places if n not in spec.inputs]:
            del w.places[node]
        for stage in self.stages:
            roots = [r for r in spec.roots if self.levels[r] == stage]
            if spec.split == len(spec.space):
                self._body(roots)
                continue
            rows = [r for r in roots if r.kind is REDUCE or r.shape == spec.space]
            if rows:
                self._sweep(rows, inner)
            self._outer_points([r for r in roots if r not in rows and r not in later])

    def _outer_points(self, roots: list[Node]) -> None:
        """Compute and store roots without inner axes.

        If vectors are several registers wide for the sake of sums, a loop runs over the registers.
        """
        g, f, w = self.vector_group, self.f, self.w

        def write() -> None:
            outer = self._indices()[: self.split]
            self._points([(r, self._index_of(r, outer, [])) for r in roots])

        if not roots or g is None or not self._vector_is_outer() or self.narrow == self.lanes:
            write()
            return
        wide, sums = self.symbols[g], w.registers
        needed = _reached(set(roots), set(self.spec.inputs))
        kept = {n: self._on_stack(value) for n, value in sums.items() if n in needed}
        with f.loop(0, self.lanes, self.narrow) as c:
            w.lanes, w.registers = self.narrow, {n: read(c) for n, read in kept.items()}
            self.symbols[g] = Loop(f.add(wide.value, c), wide.low, wide.high, vector=True)
            write()
        w.lanes, w.registers, self.symbols[g] = self.lanes, sums, wide

    def _on_stack(self, value: Any) -> Callable[[Value], Any]:
        """Store a vector on the stack; the returned function loads lanes from a given one on."""
        f = self.f
        if isinstance(value, tuple):
            parts = [self._on_stack(v) for v in value]
            return lambda c: tuple(read(c) for read in parts)
        if not value.lanes:
            return lambda c: value
        name = f.fresh()
        f.line(f"  {name} = alloca [{value.lanes} x {storage(value.elem)}], align 64", 0)
        f.store(value, Value(name, "ptr"))
        return lambda c: f.load(
            f.offset(Value(name, "ptr"), c, value.elem), value.elem, self.narrow
        )

    def _put(self, root: Node, index: list[Index], value: Any) -> None:
        if root in self.targets:
            self.w.store(self.targets[root], index, value)

    def _points(self, roots: list[tuple[Node, list[Index]]]) -> None:
        """Compute some roots at indices, then store them.

        All are computed before the first store, since a result may alias an operand.
        """
        values = [self.w.at(root, at) for root, at in roots]
        for (root, at), value in zip(roots, values, strict=True):
            self._put(root, at, value)

    def _body(self, roots: list[Node]) -> None:
        """Compute and store elementwise roots at the current index."""
        index, split = self._indices(), self.split
        self._points([(r, self._index_of(r, index[:split], index[split:])) for r in roots])
        if self.ahead is not None and self.w.mask is None:
            self._prefetch(self.ahead, roots)

    def _prefetch(self, ahead: Ahead, roots: list[Node]) -> None:
        """Prefetch what later iterations of the innermost scalar loop read."""
        f = self.f
        g = max((g for g in self.symbols if g != self.vector_group), key=self._depth)
        loop, n = self.symbols[g], self.sizes[g]
        row = self.spec.space[-1] * size_of(roots[0].elem)
        distance = min(max(tuning.PREFETCH_BYTES // row, 1), 16)
        later = f.add(loop.value, constant("i64", distance))
        self.symbols[g] = Loop(f.minimum(later, constant("i64", n - 1)), 0, n - 1)
        index = self._indices()
        for root in roots:
            ahead.at(root, self._index_of(root, index, []))
        self.symbols[g] = loop

    def _depth(self, g: int) -> int:
        return self.symbols[g].value.depth

    def _sweep(self, roots: list[Node], inner: list[int]) -> None:
        """Loop over the inner axes: accumulate reductions, and store elementwise roots."""
        f, w = self.f, self.w
        reductions = [r for r in roots if r.kind is REDUCE]
        plain = [r for r in roots if r.kind is not REDUCE]
        kept = self._rows_kept(plain)
        accumulators = [Accumulator(r) for r in reductions]
        waiting: dict[Node, list[tuple[list[Index], Any]]] = {r: [] for r in plain}

        def point(values: list[Any]) -> list[Any]:
            index = self._indices()
            split = self.spec.split
            found = [w.at(root, index) for root in plain]
            out = []
            for a, value in zip(accumulators, values, strict=True):
                at = self._operand_index(a.node, index[:split], index[split:])
                new = tuple(w.at(x, at) for x in a.node.operands)
                out.append(a.join(f, value, new, w.mask if self._inner_vector(inner) else None))
            for root, value in zip(plain, found, strict=True):
                if self.rows_in_registers:
                    waiting[root].append((index, value))
                    continue
                self._put(root, index, value)
                if root in kept and root not in self.targets:
                    w.store(kept[root], index, value)
            return out

        lanes = self.lanes if self.vector_group is not None else 0
        initial = [a.initial(lanes) for a in accumulators]
        finals = self._loops(inner, initial, point, accumulators, self._unroll(roots))
        for root, row in waiting.items():
            if row and root in self.targets:
                w.store_row(self.targets[root], row)
        for a, value in zip(accumulators, finals, strict=True):
            total: Any = a.folded(f, value) if self._inner_vector(inner) else value
            total = total if len(total) > 1 else total[0]
            w.registers[a.node] = total
            index = self._indices()[: self.split]
            if a.node in self.targets:
                self._put(a.node, index, total)
        for root, place in kept.items():
            w.places[root] = place

    def _unroll(self, roots: list[Node]) -> int:
        """The unroll factor of an inner loop.

        Short rows of functions with many operations have enough in flight without unrolling;
        functions of a row's sum are not in the loop. Shuffled loads would be too much code.
        """
        if self.rows_in_registers:
            return tuning.ROW_IN_REGISTERS
        if self.shuffles:
            return 1
        rows = math.prod(self.spec.space[: self.spec.split])
        known = {*self.spec.inputs, *self.w.registers, *self.w.places}
        slow = (
            n
            for n in _reached(set(roots), known)
            if n.cost >= tuning.SLOW_FUNCTION and n.size > rows
        )
        if math.prod(self.spec.space[self.spec.split :]) <= tuning.SHORT_ROW and any(slow):
            return 1
        return max(1, tuning.UNROLL // self.registers)

    def _inner_vector(self, inner: list[int]) -> bool:
        return self.vector_group in inner

    def _rows_kept(self, plain: list[Node]) -> dict[Node, Place]:
        """Elementwise roots that later stages read again, and where their row is kept."""
        if not plain:
            return {}
        stage = self.levels[plain[0]]
        later = {r for r in self.spec.roots if self.levels[r] > stage}
        needed = _reached(later, set(self.spec.inputs))
        kept = {}
        for root in plain:
            if root not in needed:
                continue
            if self.rows_in_registers:
                continue  # each element is known, and is not emitted again
            place = self.targets[root] if root in self.targets else self._row_buffer(root)
            # The buffer changes from row to row: its loads must not be hoisted out of outer loops.
            pointer = Value(place.pointer.name, "ptr", 0, self.f.depth)
            kept[root] = Place(pointer, place.elem, place.shape, place.skip)
        return kept

    def _row_buffer(self, root: Node) -> Place:
        f, split = self.f, self.spec.split
        shape = root.shape[split:]
        part = part_of(root.elem)
        count = math.prod(shape) * parts(root.elem)
        name = f.fresh()
        f.line(f"  {name} = alloca [{count} x {storage(part)}], align 64", 0)
        return Place(Value(name, "ptr"), root.elem, shape, skip=split)

    def _loops(self, inner, values, point, accumulators, unroll: int) -> list[Any]:
        """Loops over the inner axes, carrying `values`."""
        f = self.f
        if not inner:
            return point(values)
        g = inner[0]
        n = self.sizes[g]
        if len(inner) > 1:
            with f.loop(0, n) as i:
                self.symbols[g] = Loop(i, 0, n - 1)
                phis = [tuple(f.carry(v) for v in value) for value in values]
                outs = self._loops(inner[1:], phis, point, accumulators, unroll)
                outs = _carried(f, phis, outs)
            del self.symbols[g]
            return outs
        vector = g == self.vector_group
        step = self.lanes if vector else 1
        whole = n // step
        turns, extra = divmod(whole, unroll)
        if turns <= 1:
            turns, extra = 0, whole
        tracks = [values] + [
            [a.initial(self.lanes) for a in accumulators] for _ in range(min(unroll, whole) - 1)
        ]
        if turns:
            with f.loop(0, turns * unroll * step, unroll * step) as i:
                phis = [[tuple(f.carry(v) for v in value) for value in t] for t in tracks]
                base = Loop(i, 0, (turns - 1) * unroll * step + step - 1, vector)
                outs = []
                for u, track in enumerate(phis):
                    self.symbols[g] = Index({base: 1}, u * step)
                    outs.append(point(track))
                tracks = [_carried(f, p, o) for p, o in zip(phis, outs, strict=True)]
        for u in range(extra):
            at = (turns * unroll + u) * step
            last = at + step - 1
            self.symbols[g] = Loop(constant("i64", at), at, last, True) if vector else at
            tracks[u % len(tracks)] = point(tracks[u % len(tracks)])
        if vector and n % step:
            at = whole * step
            self.symbols[g] = Loop(constant("i64", at), at, n - 1, True)
            mask, self.w.mask = self.w.mask, mask_of(self.lanes, n % step)
            tracks[0] = point(tracks[0])
            self.w.mask = mask
        del self.symbols[g]
        while len(tracks) > 1:
            half = (len(tracks) + 1) // 2
            pairs = zip(tracks, tracks[half:], strict=False)
            tracks = [
                *(
                    [a.pair(f, x, y) for a, x, y in zip(accumulators, *pair, strict=True)]
                    for pair in pairs
                ),
                *tracks[len(tracks) - half : half],
            ]
        return tracks[0]


def _of_loop(symbol: Any) -> Index:
    if isinstance(symbol, Loop) and symbol.vector:
        # A loop of one vector has a single value, but its lanes differ.
        return Index({symbol: 1})
    return Index.of(symbol)


def _carried(f: Function, phis: list[tuple], outs: list[tuple]) -> list[tuple]:
    return [
        tuple(f.carried(p, o) for p, o in zip(phi, out, strict=True))
        for phi, out in zip(phis, outs, strict=True)
    ]


def _dummy(node: Node) -> Any:
    if is_compound(node.elem):
        return (Value("%", part_of(node.elem)),) * parts(node.elem)
    return Value("%", computed_in(node.elem))


def _is_random_access(position: Index) -> bool:
    """Whether addresses depend on data, and are far apart."""
    return any(
        type(s) is Symbol and about(s.high - s.low) * abs(about(factor)) >= tuning.UNCACHED_ELEMENTS
        for s, factor in position.terms.items()
    )


def _reached(roots: set[Node], stop: set[Node]) -> set[Node]:
    """All nodes that roots are computed from."""
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        for x in node.operands:
            if x not in seen and x not in stop:
                seen.add(x)
                stack.append(x)
    return seen
