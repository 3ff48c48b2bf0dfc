"""Sort short contiguous rows of one array of 32-bit elements.

Rows are loaded and stored whole, and transposed in squares of 16 by 16, so that every lane is one
row. Floats are sorted by their bits; rows with NaN, or with zeros of both signs, are sorted as
`SortRows` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant, is_float, mask_of
from namoo.engines.native.ir.lane_loops import any_lane
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import integer
from namoo.engines.native.kernels.sort.network import SortRows, network, rank

LANES = 16
_SIGN = -(1 << 31)


def suits(xs: Sequence[Node], axis: int, writes: Sequence[int | None], top: int | None) -> bool:
    """Whether these kernels can sort an array, and are the fastest for it."""
    return (
        tuple(writes) == (0,)
        and top is None
        and axis == len(xs[0].shape) - 1
        and xs[0].elem in ("i32", "u32", "f32")
        and xs[0].size >= tuning.SHORT_ROWS_ELEMENTS
    )


class ShortRows(SortRows):
    """Sort one array along its last axis."""

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        source, target = places
        n = self.count
        memory = None if n <= tuning.UNROLLED_NETWORK else self._scratch(f, "i32")
        whole = n // LANES * LANES
        with f.loop(begin, end) as unit:
            first = f.mul(unit, integer(LANES))
            last = integer(self.rows - 1)
            rows = [f.minimum(f.add(first, integer(r)), last) for r in range(LANES)]
            starts = [f.mul(row, integer(n)) for row in rows]
            nowhere = f.splat(constant("i1", False), LANES)
            columns: list[Value] = []
            if memory is None:
                columns, special = self._read(f, source, starts, integer(0), n, nowhere)
            else:
                special = nowhere
                with f.loop(0, whole, LANES) as j:
                    phi = f.carry(special)
                    found, watched = self._read(f, source, starts, j, LANES, phi)
                    self._keep(f, memory, found, j)
                    special = f.carried(phi, watched)
                if whole < n:
                    at = integer(whole)
                    found, special = self._read(f, source, starts, at, n - whole, special)
                    self._keep(f, memory, found, at)
            if is_float(source.elem):
                hard = any_lane(f, special)
                with f.branch(f.not_(hard)):
                    self._sort(f, target, first, starts, columns, memory)
                with f.branch(hard):
                    self._unit(f, [source], [target], unit)
            else:
                self._sort(f, target, first, starts, columns, memory)

    def _read(self, f: Function, source: Place, starts, j: Value, count: int, special: Value):
        """Ranks of some columns, and the lanes with an element that bits do not order."""
        mask = None if count == LANES else mask_of(LANES, count)
        elem = source.elem
        vectors = [
            routine.read(f, source.pointer, elem, f.add(start, j), LANES, mask) for start in starts
        ]
        columns = routine.transposed(f, vectors)[:count]
        for column in columns if is_float(elem) else []:
            minus = f.compare("eq", f.bitcast(column, "i32"), constant("i32", _SIGN))
            special = f.or_(special, f.or_(minus, f.unordered(column)))
        return [rank(f, column, True) for column in columns], special

    def _keep(self, f: Function, memory: Value, columns: list[Value], j: Value) -> None:
        for c, column in enumerate(columns):
            slot = self._slot(f, routine.here(f, memory), "i32", f.add(j, integer(c)))
            f.store(column, slot)

    def _sort(self, f: Function, target, first, starts, columns, memory) -> None:
        n = self.count
        if memory is None:
            for a, b in network(n):
                columns[a], columns[b] = (
                    f.minimum(columns[a], columns[b]),
                    f.maximum(columns[a], columns[b]),
                )
            self._store_columns(f, target, first, starts, integer(0), columns)
            return
        self._run(f, [memory], ["i32"])
        whole = n // LANES * LANES
        with f.loop(0, whole, LANES) as j:
            self._store_columns(f, target, first, starts, j, self._kept(f, memory, j, LANES))
        if whole < n:
            at = integer(whole)
            self._store_columns(f, target, first, starts, at, self._kept(f, memory, at, n - whole))

    def _kept(self, f: Function, memory: Value, j: Value, count: int) -> list[Value]:
        return [
            f.load(
                self._slot(f, routine.here(f, memory), "i32", f.add(j, integer(c))), "i32", LANES
            )
            for c in range(count)
        ]

    def _store_columns(self, f: Function, target: Place, first, starts, j: Value, columns) -> None:
        """Transpose sorted columns into pieces of rows, and store these."""
        count, elem = len(columns), target.elem
        values = [self._value(f, column, elem) for column in columns]
        values += [values[-1]] * (LANES - count)
        mask = None if count == LANES else mask_of(LANES, count)
        for r, (start, piece) in enumerate(zip(starts, routine.transposed(f, values), strict=True)):
            if not self.rows % LANES:
                routine.write(f, target.pointer, elem, f.add(start, j), piece, mask)
                continue
            there = f.compare("lt", f.add(first, integer(r)), integer(self.rows))
            with f.branch(there):
                pointer = routine.here(f, target.pointer)
                routine.write(f, pointer, elem, f.add(start, j), piece, mask)

    @staticmethod
    def _value(f: Function, number: Value, elem: str) -> Value:
        """The element of a rank."""
        if elem == "u32":
            return f.bitcast(f.xor(number, constant("i32", _SIGN)), "u32")
        if elem == "i32":
            return number
        flip = f.and_(f.ashr(number, constant("i32", 31)), constant("i32", (1 << 31) - 1))
        return f.bitcast(f.xor(number, flip), "f32")
