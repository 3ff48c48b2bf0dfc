"""Matrix products: register-tiled kernels, specialised for one shape.

A tile of the result stays in vector registers while the sum runs: each step multiplies a few
vectors of a row of the right operand by single elements of the left one.  The epilogue, elementwise
functions of the result, is computed from the registers before anything is stored.

The columns of the right operand are divided into *panels*, as wide as a tile.  A panel whose rows
are far apart in memory, or whose columns are not contiguous, is first packed: copied to the stack
in the order in which it is read.  A *unit* of work is a run of consecutive tiles of one panel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from namoo._base.caches import cached
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import (
    Function,
    Mask,
    Value,
    bits_of,
    constant,
    mask_of,
    storage,
    vector_type,
)
from namoo.engines.native.ir.index import Index, Loop, unravel
from namoo.engines.native.ir.target import has
from namoo.engines.native.ir.words import FEWEST_LANES
from namoo.engines.native.kernels.element_codegen import Place, Writer
from namoo.engines.native.kernels.kernel import Kernel, KernelSpec
from namoo.engines.native.kernels.matmul.matrix_layout import Axis, Product, length
from namoo.engines.native.kernels.matmul.tiles import ONE, Packing, Step, even


class Machine(NamedTuple):
    """The vector registers of a processor."""

    vector_bytes: int
    registers: int


@cached("native matmul: machine", bound=1, keyed_by="nothing", kept=True)
def machine() -> Machine:
    """This processor's vectors."""
    if has("avx512vl"):
        return Machine(64, 32)
    if has("avx2"):
        return Machine(32, 16)
    return Machine(16, 16 if has("sse2") else 32)


class Tile(NamedTuple):
    """How a product is tiled: `rows` × `vectors` of `lanes`.

    The rows of a tile are `count` points of row axis number `axis`, and all points of later axes.
    """

    lanes: int
    axis: int
    count: int
    vectors: int
    packed: bool
    block: int
    """Tiles of one unit."""


@cached("native matmul: best tiles", bound=512, keyed_by="sizes, registers, limits")
def _best(
    sizes: tuple[int, ...], wide: int, terms: int, registers: int, most_rows: int, most_vectors: int
) -> tuple[float, int, int, int]:
    """The tile of least estimated cycles: (cycles, axis, count, vectors).

    `wide` is the number of vectors of a row of the result.
    """
    out = []
    # The weight of compile time.
    brief = 1 if math.prod(sizes) * wide * terms < tuning.LONG_PRODUCT else 0.2
    for vectors in range(1, min(wide, most_vectors) + 1):
        limit = min(most_rows, (registers - 1 - vectors) // vectors)
        full, rest = divmod(wide, vectors)
        for axis, size in enumerate(sizes):
            after = math.prod(sizes[axis + 1 :])
            for count in range(1, size + 1):
                if count * after > limit:
                    break
                down, left = divmod(size, count)
                cycles = 0.0
                for panels, v in ((full, vectors), (1, rest)):
                    if not panels * v:
                        continue
                    for tiles, c in ((down, count), (1, left)):
                        if tiles * c:
                            rows = c * after
                            # Loads: a vector a cycle, two single elements a cycle.
                            step = max(rows * v, tuning.FMA_LATENCY, v + rows / 2)
                            # The prologue and epilogue of a tile count too.
                            cycles += panels * tiles * (step * terms + 2 * rows * v + 12)
                cycles *= math.prod(sizes[:axis])
                rows = count * after
                variants = (1 + bool(rest and full)) * (1 + bool(left))
                # Loads are not free, and tiles of few rows read the panel more often.
                cycles *= 1 + 0.1 * (rows + vectors) / (rows * vectors) + 0.1 / rows
                cycles *= 1 + brief * (0.02 * (variants - 1) + 0.002 * rows * vectors)
                out.append((cycles, axis, count, vectors))
    return min(out)


def choose(product: Product, others_can: bool) -> Tile | None:
    """How to tile a product; None for other types, and if `others_can` for sums left to BLAS."""
    if product.elem not in ("f32", "f64") and not product.narrow:
        return None
    size = bits_of(product.elem) // 8
    lanes = machine().vector_bytes // size
    columns = product.columns.size
    fewest = FEWEST_LANES if product.narrow else 2
    while lanes // 2 >= columns and lanes > fewest:
        lanes //= 2
    _, rows, _, terms = product.sizes
    scattered = product.columns.right != 1 and columns > 1
    # Contiguous rows of the right operand need no copy to be read in order.
    dense = product.inner[-1].right == columns <= 4 * lanes
    far = sum(a.size * a.right for a in product.inner) * size >= tuning.BYTES_TO_PACK
    packed = scattered or far and rows >= tuning.ROWS_TO_PACK and not dense
    most_vectors = min(4, tuning.PANEL_BYTES // (terms * lanes * size)) if packed else 4
    if most_vectors == 0:
        if scattered or others_can:
            return None
        packed, most_vectors = False, 4
    # Rows that are a multiple of a page apart would evict one another from the L1 cache.
    most_rows = 8 if product.rows[-1].left * size % 2048 == 0 else 16
    wide = -(-columns // lanes)
    sizes = tuple(a.size for a in product.rows)
    _, axis, count, vectors = _best(
        sizes, wide, terms, machine().registers, most_rows, most_vectors
    )
    tiles = -(-product.rows[axis].size // count)
    others = rows * length(product.batch) * -(-columns // (vectors * lanes))
    # Units as large as possible while there are enough for all threads; but packing a panel for
    # each unit must not cost much.
    least = max(64 if packed else 1, min(256, others // tuning.PRODUCT_UNITS))
    block = max(1, -(-least // (count * length(product.rows[axis + 1 :]))))
    return Tile(lanes, axis, count, vectors, packed, min(block, tiles))


class ProductKernel:
    """Emits the kernel of a product and of its elementwise epilogue."""

    def __init__(self, spec: KernelSpec, name: str, product: Product, tile: Tile):
        self.spec = spec
        self.name = name
        self.product = product
        self.tile = tile
        self.node: Node = spec.roots[0]
        self.elem = product.elem
        self.shapes = {root.shape for root in spec.roots}
        size = product.rows[tile.axis].size
        self.after = length(product.rows[tile.axis + 1 :])
        self.full, self.left = divmod(size, tile.count)
        self.again = 0
        """How many points of the last tile repeat points of the one before."""
        self.cost = sum(n.cost for n in _between(spec))
        """The cost of the epilogue of an element."""
        terms = length(product.inner)
        spare = tile.count - self.left if self.left else 0
        looped = self._in_loop(tile.count * self.after * tile.vectors)
        few = size * (tuning.REPEATED_ROWS_WITH_LOOP if looped else tuning.REPEATED_ROWS)
        if 0 < spare <= few and terms >= tuning.REPEATED_ROWS_TERMS:
            self.again, self.left, self.full = spare, 0, self.full + 1
        self.alone = spec.roots == [self.node] and product.columns.out == 1
        """Whether the kernel stores nothing but the sums, as contiguous vectors."""
        long = product.multiplications >= tuning.SHARED_SUMS_WORK * tile.lanes
        self.by_function = self.cost >= tuning.SHARED_SUMS_COST or (
            long and (self.alone or terms >= tuning.SHARED_SUMS_TERMS)
        )
        self.width = tile.vectors * tile.lanes
        self.panels, self.rest = divmod(product.columns.size, self.width)

    def _in_loop(self, vectors: int) -> bool:
        """Whether the epilogue of this many vectors is a loop."""
        return self.cost * vectors > tuning.EPILOGUE_LIMIT

    def emit(self) -> Kernel:
        spec, product, tile = self.spec, self.product, self.tile
        f = self.f = Function(self.name, ["ptr", "i64", "i64"])
        table, begin, end = f.parameters
        places: dict[Node, Place] = {}
        for i, node in enumerate([*spec.inputs, *spec.stored]):
            slot = f.offset(table, i, "ptr")
            places.setdefault(node, Place(f.load(slot, "ptr"), node.elem, node.shape))
        self.targets = {n: places[n] for n in spec.stored}
        w = self.w = Writer(f, {n: places[n] for n in spec.inputs})
        w.lanes = tile.lanes
        left, right = (places[x].pointer for x in self.node.operands)
        terms = length(product.inner)
        self.buffer = self._stack(terms * self.width) if tile.packed else None
        self.tile_buffer: Value | None = None
        outer = length(product.rows[: tile.axis])
        self.blocks = -(-self.full // tile.block) if self.full else 1
        counts = (length(product.batch), self.panels + bool(self.rest), outer, self.blocks)
        units = math.prod(counts)
        with f.loop(begin, end) as u:
            unit = Index.of(Loop(u, 0, units - 1))
            batch, panel, row, block = unravel(unit, counts)
            fresh = constant("i1", True)
            if tile.packed and outer * self.blocks > 1:
                first = w.integer(unit % (outer * self.blocks))
                fresh = f.compare("eq", first, constant("i64", 0))
                fresh = f.or_(f.compare("eq", u, begin), fresh)
            outer_rows = product.rows[: tile.axis]
            a = self._moved(left, product.batch, batch, "left")
            a = self._moved(a, outer_rows, row, "left")
            b = self._moved(right, product.batch, batch, "right")
            place = _position(product.batch, batch, "out") + _position(outer_rows, row, "out")
            for count, number, columns in self._panel_kinds():
                with ExitStack() as stack:
                    if 0 < count < counts[1]:
                        relation = "lt" if number is None else "eq"
                        at = w.integer(panel)
                        stack.enter_context(
                            f.branch(f.compare(relation, at, constant("i64", self.panels)))
                        )
                    elif not count:
                        continue
                    start = panel * self.width if number is None else Index.of(number)
                    self._panel(a, b, start, columns, fresh, (place, block))
        f.line("  ret void")
        return Kernel(self.name, f.text(), f.declarations, units, product.multiplications // 4)

    def _panel_kinds(self):
        """The full panels and the last, partial one: how many, the first column, and the width."""
        yield self.panels, None, self.width
        yield bool(self.rest), self.panels * self.width, self.rest

    def _moved(self, pointer: Value, axes: Sequence[Axis], point: Index, side: str) -> Value:
        """The pointer of an operand at a point of some axes."""
        f = self.f
        return f.offset(pointer, self.w._sum(_position(axes, point, side), False), self.elem)

    def _stack(self, count: int) -> Value:
        name = self.f.fresh()
        self.f.line(f"  {name} = alloca [{count} x {storage(self.elem)}], align 64", 0)
        return Value(name, "ptr")

    def _panel(self, a, b, start: Index, columns: int, fresh: Value, point) -> None:
        f, tile, product = self.f, self.tile, self.product
        lanes = tile.lanes
        vectors = -(-columns // lanes)
        b = f.offset(b, self.w._sum(start * product.columns.right, False), self.elem)
        step, outs, inner, mask = self._cut(tile.count, columns)
        together = self.full and tile.block > 1 and self._has_equal_rows(step, outs, inner)
        source = b if together and self._copies_rows() else None
        if self.buffer is not None:
            if source is None:
                with f.branch(fresh):
                    Packing(f, product, lanes, columns, vectors).write(b, self.buffer)
            b = Value(self.buffer.name, "ptr", 0, f.depth)
        place, block = point
        last = product.columns.size - 1 - (vectors - 1) * lanes
        column = Loop(self.w._sum(start, False), start.constant, last, True)

        def write(i: Value, number: Index) -> None:
            at, ends = number * tile.count, None
            if self.again:
                start = f.minimum(self.w.integer(at), constant("i64", end))
                at = Index.of(Loop(start, 0, end))
                ends = f.compare("eq", i, constant("i64", self.full - 1))
            self._tile(a, b, place, at, tile.count, column, columns, ends)

        end = product.rows[tile.axis].size - tile.count
        first, stop = self.w._sum(block * tile.block, False), constant("i64", self.full)
        if self.full and tile.block == 1:
            write(first, block)
        elif self.full:
            if self.blocks > 1:
                stop = f.minimum(f.add(first, constant("i64", tile.block)), stop)
            if together:
                # Recomputed rows have the same values, so it is safe to store them again.
                out, width, bottom = self._target(place, column), outs[1], end * self.after
                if source is not None:
                    second, axis = f.add(first, constant("i64", 1)), product.inner[0]
                    with f.branch(fresh):
                        one = first, second, bottom
                        step.call(a, source, axis, out, width, one, mask, copy=b)
                    first = f.select(fresh, second, first)
                with f.branch(f.compare("lt", first, stop)):
                    step.call(a, b, inner[0], out, width, (first, stop, bottom), mask)
            else:
                with f.loop(first, stop) as i:
                    write(i, Index.of(Loop(i, 0, self.full - 1)))
        if self.left:
            with ExitStack() as stack:
                if self.blocks > 1:
                    number = self.w.integer(block)
                    last = f.compare("eq", number, constant("i64", self.blocks - 1))
                    stack.enter_context(f.branch(last))
                at = Index.of(self.full * tile.count)
                self._tile(a, b, place, at, self.left, column, columns)

    def _cut(self, count: int, columns: int) -> tuple[Step, list[int], Sequence[Axis], Mask | None]:
        """A tile with `count` points of the row axis and `columns` columns.

        Returns:
            Its step, the offsets of its rows in the result, the axes of its sums, and the mask of
            its last vectors if they are partial.
        """
        product, tile = self.product, self.tile
        lanes, axes, inner = tile.lanes, product.rows[tile.axis :], product.inner
        box = [Axis(count, *axes[0][1:]), *axes[1:]]
        offsets, outs = [0], [0]
        for axis in box:
            offsets = [x + i * axis.left for x in offsets for i in range(axis.size)]
            outs = [x + i * axis.out for x in outs for i in range(axis.size)]
        vectors = -(-columns // lanes)
        mask = mask_of(lanes, columns % lanes) if columns % lanes else None
        step = Step(self.f, self.elem, lanes, offsets, vectors, product.narrow)
        if tile.packed:
            width = vectors * lanes
            inner = tuple(
                Axis(x.size, x.left, length(inner[i + 1 :]) * width) for i, x in enumerate(inner)
            )
        else:
            step.last = mask
        return step, outs, inner, mask

    def _has_equal_rows(self, step: Step, outs: list[int], inner: Sequence[Axis]) -> bool:
        """Whether a shared function can compute and store consecutive tiles of a panel."""
        axis, after = self.product.rows[self.tile.axis], self.after
        return (
            self.by_function
            and self.alone
            and step.can_call(inner)
            and even(outs)
            and axis.left == after * step.offsets[1]
            and axis.out == after * outs[1]
        )

    def _copies_rows(self) -> bool:
        """Whether the first tile of a panel packs the rows that it reads."""
        product = self.product
        large = product.multiplications >= tuning.COPY_IN_TILE_WORK
        return self.tile.packed and large and product.columns.right == 1

    def _target(self, place: Index, column: Loop) -> Value:
        """Where the product is stored."""
        return self.w.address(
            self.targets[self.node].pointer, self.elem, place + Index({column: 1})
        )

    def _tile(
        self, a, b, place, at: Index, count: int, column: Loop, columns: int, ends=None
    ) -> None:
        """Sum a tile, then compute and store its epilogue.

        `ends` is true for a last tile that repeats rows of the one before.
        """
        f, axis = self.f, self.product.rows[self.tile.axis]
        step, outs, inner, mask = self._cut(count, columns)
        vectors, lanes = step.vectors, step.lanes
        a = f.offset(a, self.w._sum(at * axis.left, False), self.elem)
        place = place + at * axis.out
        if self.by_function and step.can_call(inner) and even(outs):
            if self.alone:
                step.call(a, b, inner[0], self._target(place, column), outs[1], ONE, mask)
            else:
                apart = self.cost >= tuning.SHARED_SUMS_COST
                out, width = self._tile_buffer(), vectors * lanes
                step.call(a, b, inner[0], out, width, ONE, None, apart=apart)
                self._finish_in_loops(outs, place, column, vectors, mask, ends)
            return
        zero = Value(f"splat ({constant(self.elem, 0.0)!r})", self.elem, lanes)
        sums = step.run(a, b, inner, [zero] * (len(outs) * vectors))
        self._finish(sums, place, outs, column, vectors, mask, ends)

    def _finish(
        self, sums, place: Index, outs: list[int], column: Loop, vectors, mask, ends: Value | None
    ) -> None:
        f, rows = self.f, len(outs)
        if self._in_loop(rows * vectors) and even(outs):
            buffer = self._tile_buffer()
            for i, value in enumerate(sums):
                f.store(value, f.offset(buffer, i * self.tile.lanes, self.elem))
            self._finish_in_loops(outs, place, column, vectors, mask, ends)
            return
        again = self.again * self.after if ends is not None else 0

        def store(some: range) -> None:
            for r in some:
                for v in range(vectors):
                    last = mask if v == vectors - 1 else None
                    shift = Index.of(v * self.tile.lanes)
                    self._store(sums[r * vectors + v], place + outs[r], column, shift, last)

        if ends is not None:
            with f.branch(f.not_(ends)):
                store(range(again))
        store(range(again, rows))

    def _tile_buffer(self) -> Value:
        if self.tile_buffer is None:
            most = max(self.tile.count, self.left)
            self.tile_buffer = self._stack(most * self.after * self.width)
        return Value(self.tile_buffer.name, "ptr", 0, self.f.depth)

    def _finish_in_loops(
        self, outs: list[int], place: Index, column: Loop, vectors: int, mask, ends: Value | None
    ) -> None:
        """Compute and store the epilogue row by row, from sums in memory."""
        f, lanes, buffer = self.f, self.tile.lanes, self._tile_buffer()
        rows, step = len(outs), outs[1] if len(outs) > 1 else 0
        first = constant("i64", 0)
        if ends is not None:
            first = f.select(ends, constant("i64", self.again * self.after), first)
        whole = vectors - (mask is not None)

        def write(c: Value | int, mask: Value | None) -> None:
            shift = Index.of(c) if isinstance(c, int) else Index.of(Loop(c, 0, (whole - 1) * lanes))
            self._store(self._reload(line, c), at, column, shift, mask)

        with f.loop(first, rows) as r:
            at = place + Index.of(Loop(r, 0, rows - 1)) * step
            line = f.offset(buffer, f.stepped(r, vectors * lanes), self.elem)
            if whole > 1:
                with f.loop(0, whole * lanes, lanes) as c:
                    write(c, None)
            elif whole:
                write(0, None)
            if mask is not None:
                write(whole * lanes, mask)
        self.w.registers = {}

    def _reload(self, line: Value, at: Value | int) -> Value:
        """Load a vector of sums, without reusing earlier loads: the buffer changes."""
        f, lanes = self.f, self.tile.lanes
        kind, size = vector_type(self.elem, lanes), bits_of(self.elem) // 8
        address = f.offset(line, at, self.elem)
        return f.emit_here(self.elem, lanes, f"load {kind}, ptr {address.name}, align {size}")

    def _store(self, value, place: Index, column: Loop, shift: Index, mask) -> None:
        """Compute and store the roots at a vector of elements of the result."""
        w, node = self.w, self.node
        position = place + (Index({column: 1}) + shift) * self.product.columns.out
        w.mask = mask
        w.registers = {node: value}
        places = {shape: unravel(position, shape) for shape in self.shapes}
        # Load everything before storing anything: a result may alias an operand.
        values = [w.at(root, places[root.shape]) for root in self.spec.roots]
        for root, value in zip(self.spec.roots, values, strict=True):
            if root in self.targets:
                w.store(self.targets[root], places[root.shape], value)
        w.mask = None


def _position(axes: Sequence[Axis], point: Index, side: str) -> Index:
    """The position of a point of some axes in an operand or in the result."""
    total = Index({})
    for i, axis in zip(unravel(point, tuple(a.size for a in axes)), axes, strict=True):
        total = total + i * getattr(axis, side)
    return total


def _between(spec: KernelSpec) -> list[Node]:
    """The nodes that are computed from a product."""
    seen: set[Node] = set()
    stop = {*spec.inputs, spec.roots[0]}
    stack = [r for r in spec.roots[1:]]
    while stack:
        node = stack.pop()
        if node not in seen and node not in stop:
            seen.add(node)
            stack += node.operands
    return list(seen)
