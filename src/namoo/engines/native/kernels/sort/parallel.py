"""Radix sort of rows so long that threads share each one.

For each digit, every part of a row counts its own elements. From the counts every part computes the
target of its elements: after those of all parts with lower digits, and of earlier parts with the
same digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, bits_of, constant, is_float
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import integer
from namoo.engines.native.kernels.sort.radix import Memory, Radix


def suits(xs: Sequence[Node], axis: int, keys: int) -> bool:
    """Whether several threads should sort each row: rows are few and long."""
    n = xs[0].shape[axis]
    long = n >= tuning.PARALLEL_ROW and xs[0].size // n < tuning.RADIX_PARTS
    return long and Radix(xs, axis, keys, ()).form != "places"


def sort(
    emit: Any, xs: Sequence[Node], axis: int, keys: int, writes: Sequence[int | None], top
) -> list[Node]:
    """The results of a sort; the arguments are those of `SortRows`."""
    how = xs, axis, keys, writes, top
    order = Radix(*how)
    counts = ShapedArray((order.rows, (tuning.RADIX_PARTS << order.digit) + 1), np.dtype(np.uint32))
    numbers = ShapedArray((order.rows, order.count), np.dtype(f"u{bits_of(order.moved) // 8}"))
    moved, passes = list(xs[:1]), order.passes(order.key_parts[0])
    for p in range(passes):
        found = emit.call(Count(p, *how), moved, [counts])
        if order.form == "values" and p == passes - 1:
            return emit.call(Move(p, *how), [*moved, *found, *xs], emit.avals)
        moved = emit.call(Move(p, *how), [*moved, *found], [numbers])
    return emit.call(Collect(passes, *how), [*xs, *moved], emit.avals)


class Part(Radix):
    """The work of a unit, a part of a row, on digit number `p`; lower digits are sorted."""

    cost = 0
    """About how many operations an element takes."""

    def __init__(self, p: int, *args: Any):
        super().__init__(*args)
        self.p = p
        self.units = self.rows * tuning.RADIX_PARTS
        self.work = self.rows * self.count * self.cost

    def key(self):
        return super().key(), self.p

    def open_unit(self, unit: Value, count: int) -> tuple[Value, Value, Value, Value]:
        """The row and the part of a unit, and the part's start and stop among `count` elements."""
        f, parts = self.f, integer(tuning.RADIX_PARTS)
        row, part = f.idiv(unit, parts), f.irem(unit, parts)
        self.open_row(row)
        start, stop = (
            f.idiv(f.mul(i, integer(count)), parts) for i in (part, f.add(part, integer(1)))
        )
        return row, part, start, stop

    def memory(self, place: Place, row: Value) -> Memory:
        """A row of numbers."""
        start = self.f.mul(row, integer(place.shape[-1]))
        return Memory(self.f, self.f.offset(place.pointer, start, place.elem), place.elem)


class Count(Part):
    """The histogram of digits of each part of a row, followed by a zero."""

    cost = 4

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        self.f, self.sources = f, places[:1]
        with f.loop(begin, end) as unit:
            row, part, start, stop = self.open_unit(unit, self.count)
            source = self.memory(places[0], row) if self.p else None
            table = self.memory(places[1], row)
            mine = f.mul(part, integer(1 << self.digit))
            self.counts = Memory(f, f.offset(table.pointer, mine, "u32"), "u32")
            self.count_digits(self.key_parts[0], [self.p], source, start, stop)
            table.write(integer(tuning.RADIX_PARTS << self.digit), constant("u32", 0))


class Move(Part):
    """Move elements to the range of their digit.

    If the operands are given too, the last pass converts ranks back to values.
    """

    cost = 16

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        given, counts, *origin, out = places
        self.f, self.sources, self.targets = f, [given], [out]
        self.counts = Memory.on_stack(f, 1 << self.digit, "u32")
        with f.loop(begin, end) as unit:
            row, part, start, stop = self.open_unit(unit, self.count)
            table = self.memory(counts, row)
            self._sum_up(table, part)
            source = self.memory(given, row) if self.p else None
            target = None if origin else self.memory(out, row)
            self.move(self.key_parts[0], self.p, source, target, 0, start, stop)
            if origin and is_float(self.key_parts[0].elem):
                # The part that finishes last puts zeros in order.
                done = f.offset(table.pointer, integer(tuning.RADIX_PARTS << self.digit), "u32")
                before = f.emit_here("u32", 0, f"atomicrmw add ptr {done.name}, i32 1 acq_rel")
                with f.branch(f.compare("eq", before, constant("u32", tuning.RADIX_PARTS - 1))):
                    self.order_zeros(origin[0])

    def _sum_up(self, counts: Memory, part: Value) -> None:
        """Turn counts of digits into the target of this part's first element of each digit."""
        f, size, zero = self.f, 1 << self.digit, constant("u32", 0)
        with f.loop(0, size) as d:
            before = f.carry(zero)
            with f.loop(0, tuning.RADIX_PARTS) as i:
                mine, all_ = f.carry(before), f.carry(before)
                here = counts.read(f.add(d, f.mul(i, integer(size))))
                earlier = f.select(f.compare("lt", i, part), here, zero)
                first = f.carried(mine, f.add(mine, earlier))
                total = f.carried(all_, f.add(all_, here))
            self.counts.write(d, first)
            f.carried(before, total)


class Collect(Part):
    """Read the operands in their new order."""

    cost = 8

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        number = len(places) - len(self.writes) - 1
        moved = places[number]
        self.f, self.sources, self.targets = f, places[:number], places[number + 1 :]
        count = self.count if self.top is None else self.top
        with f.loop(begin, end) as unit:
            row, _, start, stop = self.open_unit(unit, count)
            self.collect(self.memory(moved, row), start, stop)
