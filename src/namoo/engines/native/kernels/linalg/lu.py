"""LU factors of small matrices, with partial pivoting."""

from __future__ import annotations

import math
from collections.abc import Sequence

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.linalg.stack import (
    Cell,
    Index,
    StackRoutine,
    StackWriter,
    Tile,
    scalar,
)
from namoo.engines.native.kernels.routine import Routine, integer


class LUStack(StackRoutine):
    """P A = L U: both factors in one matrix, the row exchanges, and the order of rows."""

    takes_over = {0: 0}

    def __init__(self, a: Node):
        super().__init__([a], len(a.shape) - 2)
        self.m, self.n = a.shape[-2:]
        self.work = self.count * self.m * self.n * min(self.m, self.n)

    def key(self):
        return "lu"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        m, n = self.m, self.n
        w = self.writer(f, m * n)
        a = Tile(w, self.elem, m, n)
        pivots, order = Tile(w, "i32", min(m, n), 1), Tile(w, "i32", m, 1)
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, a)
            for i in w.steps(0, m):
                order.put(i, 0, w.wide(f.convert(w.index(i), "i32")))
            for k in w.steps(0, min(m, n)):
                chosen = self._pivot(w, a, k)
                pivots.put(k, 0, chosen)
                exchange(w, [a, order], pivots, k)
                self._eliminate(w, a, k)
            for place, tile in zip(places[1:], (a, pivots, order), strict=True):
                self.store_matrices(w, place, unit, tile)

    def _pivot(self, w: StackWriter, a: Tile, k: Index) -> Value:
        """The row of the largest element of a column, in each lane; the first one if several."""
        f = w.f
        best, chosen = Cell(w, w.part), Cell(w, "i32")
        best.set(w.size(a.get(k, k)))
        chosen.set(w.wide(f.convert(w.index(k), "i32")))
        for i in w.steps(w.plus(k, 1), self.m):
            size, before = w.size(a.get(i, k)), best.get()
            better = f.compare("gt", size, before)
            best.set(f.select(better, size, before))
            row = w.wide(f.convert(w.index(i), "i32"))
            chosen.set(f.select(better, row, chosen.get()))
        return chosen.get()

    def _eliminate(self, w: StackWriter, a: Tile, k: Index) -> None:
        f = w.f
        pivot = a.get(k, k)
        # A column of zeros stays as it is.
        nothing = f.compare("eq", w.size(pivot), constant(w.part, 0.0))
        pivot = w.select(nothing, w.number(1.0), pivot)
        after = w.plus(k, 1)
        for i, rows in w.blocks(after, self.m):
            factors = []
            for r in range(rows):
                factors.append(w.div(a.get(w.plus(i, r), k), pivot))
                a.put(w.plus(i, r), k, factors[-1])
            for j in w.steps(after, self.n):
                above = a.get(k, j)
                for r, factor in enumerate(factors):
                    here = w.plus(i, r), j
                    a.put(*here, w.less_product(a.get(*here), factor, above))


def exchange(w: StackWriter, tiles: Sequence[Tile], pivots: Tile, k: Index) -> None:
    """Exchange row k with row pivots[k], in each lane."""
    if w.unrolled:
        for tile in tiles:
            tile.exchange_rows(k, pivots.get(k))
        return
    f = w.f
    for lane in w.steps(0, w.lanes):
        chosen = f.convert(pivots.lane(k, 0, lane), "i64")
        with f.branch(f.compare("ne", chosen, w.index(k))):
            for tile in tiles:
                tile.exchange_in_lane(k, chosen, lane)


class Permutation(Routine):
    """The order of rows after exchanging row i with row pivots[i], for i = 0, 1, …"""

    def __init__(self, pivots: Node, permutation_size: int):
        self.count, self.size = pivots.shape[-1], permutation_size
        self.units = math.prod(pivots.shape[:-1])
        self.work = 4 * self.units * self.size

    def key(self):
        return "permutation"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        pivots, order = places
        with f.loop(begin, end) as unit:
            first = f.mul(unit, integer(self.size))
            out = f.offset(order.pointer, first, "i32")
            with f.loop(0, self.size) as i:
                f.store(f.convert(i, "i32"), f.offset(out, i, "i32"))
            if not self.count:
                return
            with f.loop(0, self.count) as i:
                number = f.add(f.mul(unit, integer(self.count)), i)
                other = f.load(f.offset(pivots.pointer, number, "i32"), "i32")
                other = f.maximum(other, constant("i32", 0))
                other = f.minimum(other, constant("i32", self.size - 1))
                x = f.offset(out, i, "i32")
                y = f.offset(out, f.convert(other, "i64"), "i32")
                one, two = scalar(f, x, "i32"), scalar(f, y, "i32")
                f.store(two, x)
                f.store(one, y)
