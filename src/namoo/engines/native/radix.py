"""Sort long rows by their digits, the lowest first: each pass keeps the order of the last one.

Three forms, by what there is to carry:

- *values*: one operand of up to 32 bits; its ranks are sorted, and turned back into values.
- *pairs*: one key of up to 32 bits; a rank and its place are one integer of 64 bits.
- *places*: other keys; only places are moved, and each digit is read where its place says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from namoo.engines.native import routine
from namoo.engines.native.graph import Node
from namoo.engines.native.ir import Function, Value, bits_of, constant, is_float, is_signed, storage
from namoo.engines.native.routine import Routine, integer
from namoo.engines.native.sorting import UNUSED, rank
from namoo.engines.native.types import computed_in, part_of, parts
from namoo.engines.native.writer import Place

# Rows are shared among threads in this many parts, each with memory of its own.
PARTS = 8
# From this length on wide digits pay, whose counts are more work.
LONG = 700


class Memory:
    """Counts or numbers in memory that changes: what is read is read again each time."""

    def __init__(self, f: Function, pointer: Value, elem: str):
        self.f, self.pointer, self.elem = f, pointer, elem

    def _address(self, at: Value) -> Value:
        return self.f.offset(routine.here(self.f, self.pointer), at, self.elem)

    def read(self, at: Value) -> Value:
        address = self._address(at)
        size = bits_of(self.elem) // 8
        return self.f.emit_here(
            self.elem, 0, f"load {storage(self.elem)}, ptr {address.name}, align {size}"
        )

    def write(self, at: Value, value: Value) -> None:
        self.f.store(value, self._address(at))


class RadixRows(Routine):
    """Sort operands along an axis by the first `keys` of them; the rest as in `SortRows`."""

    def __init__(
        self,
        xs: Sequence[Node],
        axis: int,
        keys: int,
        writes: Sequence[int | None],
        top: int | None = None,
    ):
        shape = xs[0].shape
        self.axis, self.keys, self.writes, self.top = axis, keys, tuple(writes), top
        self.count = n = shape[axis]
        self.inner = math.prod(shape[axis + 1 :])
        self.rows = math.prod(shape[:axis]) * self.inner
        widths = [bits_of(computed_in(part_of(x.elem))) for x in xs[:keys]]
        narrow = len(widths) == 1 and widths[0] <= 32 and parts(xs[0].elem) == 1
        self.form = "places"
        if narrow:
            self.form = "values" if self.writes == (0,) and top is None else "pairs"
        self.moved = {"values": "u32", "pairs": "u64", "places": "u32"}[self.form]
        self.digit = 11 if n >= LONG else 8
        self.units = min(PARTS, self.rows)
        self.block = -(-self.rows // self.units)
        self.units = -(-self.rows // self.block)
        self.row_bytes = -(-2 * n * bits_of(self.moved) // 8 // 64) * 64
        self.scratch = self.units * self.row_bytes
        self.work = self.rows * n * 16 * sum(-(-w // self.digit) for w in widths)

    def key(self):
        return self.axis, self.keys, self.writes, self.top

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        *places, scratch = places
        self.f = f
        number = len(places) - len(self.writes)
        self.sources, self.targets = places[:number], places[number:]
        passes = max(-(-bits // self.digit) for bits in (self._bits(s) for s in self._key_parts()))
        name = f.fresh()
        f.line(f"  {name} = alloca [{passes << self.digit} x i32], align 64", 0)
        self.counts = Memory(f, Value(name, "ptr"), "u32")
        with f.loop(begin, end) as unit:
            memory = f.offset(scratch.pointer, f.mul(unit, integer(self.row_bytes)), "i8")
            half = f.offset(memory, integer(self.count), self.moved)
            self.buffers = [Memory(f, p, self.moved) for p in (memory, half)]
            first = f.mul(unit, integer(self.block))
            last = f.minimum(f.add(first, integer(self.block)), integer(self.rows))
            with f.loop(first, last) as row:
                self._row(row)

    # ---- keys

    def _key_parts(self) -> list[tuple[Place, int]]:
        """All numbers that are compared, the first one first: operands, and which part of them."""
        return [(s, i) for s in self.sources[: self.keys] for i in range(parts(s.elem))]

    @staticmethod
    def _bits(key: tuple[Place, int]) -> int:
        part = computed_in(part_of(key[0].elem))
        return 8 if part == "i1" else bits_of(part)

    def _rank(self, key: tuple[Place, int], j: Value) -> Value:
        """An unsigned integer in the order of a key of the row's element `j`."""
        place, part = key
        value = self._read(place, j)
        return self._rank_of(value[part] if isinstance(value, tuple) else value, self._bits(key))

    def _rank_of(self, value: Value, bits: int) -> Value:
        f = self.f
        if self.form == "values" and is_float(value.elem):
            # Zeros of both signs are told apart here, and put in order at the end.
            nan = constant(value.elem, math.nan)
            out = rank(f, f.select(f.unordered(value), nan, value), True)
        else:
            out = rank(f, value, self.top is not None)
        if self.top is not None:
            out = f.not_(out)
        out = f.bitcast(out, f"u{bits_of(out.elem)}")
        return f.add(out, constant(out.elem, self._bias(value.elem, bits)))

    def _bias(self, elem: str, bits: int) -> int:
        """What makes ranks of a type start at zero: only their low bits are looked at."""
        if is_signed(elem) or bits >= 32:
            return 1 << bits - 1
        return 0 if self.top is None else 1 << bits

    def _value(self, number: Value, elem: str) -> Value:
        """The value of a rank, for the form of values."""
        f, part = self.f, computed_in(elem)
        if part == "u32" or not is_float(part) and not is_signed(part):
            return f.convert(number, part)
        bias = self._bias(part, bits_of(part))
        out = f.bitcast(f.sub(number, constant("u32", bias)), "i32")
        if not is_float(part):
            return f.convert(out, part)
        flip = f.and_(f.ashr(out, constant("i32", 31)), constant("i32", (1 << 31) - 1))
        return f.bitcast(f.xor(out, flip), part)

    # ---- a row

    def _row(self, row: Value) -> None:
        f, n, inner = self.f, self.count, self.inner
        outer, rest = f.idiv(row, integer(inner)), f.irem(row, integer(inner))

        def base(count: int) -> Value:
            return f.add(f.mul(outer, integer(count * inner)), rest)

        self.base = base(n)
        self.out_base = base(n if self.top is None else self.top)
        keys = list(reversed(self._key_parts()))
        side = 0
        for number, key in enumerate(keys):
            zeros = self._count(key)
            passes = -(-self._bits(key) // self.digit)
            for p in range(passes):
                first = number == 0 and p == 0
                last = number == len(keys) - 1 and p == passes - 1 and self.form == "values"
                self._pass(key, p, None if first else self.buffers[side], side, last)
                side = side if first else 1 - side
            if self.form == "values" and is_float(computed_in(key[0].elem)):
                self._order_zeros(key, *zeros)
        if self.form != "values":
            self._collect(self.buffers[side])

    def _read(self, place: Place, j: Value) -> Any:
        """Element `j` of the row in an operand."""
        f, elem = self.f, place.elem
        first = f.offset(place.pointer, f.mul(self.base, integer(parts(elem))), part_of(elem))
        return routine.read(f, first, elem, f.mul(j, integer(self.inner)))

    def _count(self, key) -> tuple[Value, Value]:
        """Count all digits of a key, then sum the counts up: where the elements of a digit begin.

        Returns how many zeros have a minus sign, and how many elements are below zero.
        """
        f, n = self.f, self.count
        passes, size = -(-self._bits(key) // self.digit), 1 << self.digit
        routine.clear(f, self.counts.pointer, integer(4 * passes * size))
        watched = self.form == "values" and is_float(computed_in(key[0].elem))
        zero, one = constant("u32", 0), constant("u32", 1)
        with f.loop(0, n) as j:
            phis = [f.carry(zero), f.carry(zero)] if watched else []
            number = self._rank(key, j)
            for p in range(passes):
                at = f.add(self._digit(number, p), integer(p * size))
                self.counts.write(at, f.add(self.counts.read(at), one))
            totals = []
            if watched:
                # The rank of -0 is that of 0, less 1; all below have less.
                minus = constant("u32", (1 << 31) - 1)
                tests = f.compare("eq", number, minus), f.compare("lt", number, minus)
                totals = [
                    f.carried(phi, f.add(phi, f.convert(test, "u32")))
                    for phi, test in zip(phis, tests, strict=True)
                ]
        with f.loop(0, size) as d:
            sums = [f.carry(zero) for _ in range(passes)]
            for p, before in enumerate(sums):
                at = f.add(d, integer(p * size))
                here = self.counts.read(at)
                self.counts.write(at, before)
                f.carried(before, f.add(before, here))
        return (totals[0], totals[1]) if watched else (zero, zero)

    def _digit(self, number: Value, p: int) -> Value:
        f = self.f
        shifted = f.lshr(number, constant(number.elem, p * self.digit))
        low = f.and_(shifted, constant(number.elem, (1 << self.digit) - 1))
        return f.bitcast(f.convert(low, "u64"), "i64")

    def _pass(self, key, p: int, source: Memory | None, side: int, last: bool) -> None:
        """Move all elements to where those of their digit belong."""
        f = self.f
        target = self.buffers[side if source is None else 1 - side]
        offset = integer(p << self.digit)
        with f.loop(0, self.count) as j:
            if source is not None:
                moved = source.read(j)
            elif self.form == "values":
                moved = self._rank(key, j)
            elif self.form == "pairs":
                high = f.convert(self._rank(key, j), "u64")
                moved = f.or_(f.shl(high, constant("u64", 32)), f.bitcast(j, "u64"))
            else:
                moved = f.convert(j, "u32")
            if self.form == "values":
                number = moved
            elif self.form == "pairs":
                number = f.convert(f.lshr(moved, constant("u64", 32)), "u32")
            else:
                number = self._rank(key, f.convert(moved, "i64"))
            at = f.add(self._digit(number, p), offset)
            where = self.counts.read(at)
            self.counts.write(at, f.add(where, constant("u32", 1)))
            where = f.bitcast(f.convert(where, "u64"), "i64")
            if last:
                (out,) = self.targets
                position = f.add(self.out_base, f.mul(where, integer(self.inner)))
                routine.write(f, out.pointer, out.elem, position, self._value(moved, out.elem))
            else:
                target.write(where, moved)

    def _order_zeros(self, key, negative: Value, below: Value) -> None:
        """Put zeros of both signs in the order that they came in."""
        f, (place, _), (out,) = self.f, key, self.targets
        with f.branch(f.compare("gt", negative, constant("u32", 0))):
            start = f.bitcast(f.convert(below, "u64"), "i64")
            with f.loop(0, self.count) as j:
                at = f.carry(start)
                value = self._read(place, j)
                is_zero = f.compare("eq", value, constant(value.elem, 0.0))
                following = f.add(at, f.bitcast(f.convert(is_zero, "u64"), "i64"))
                with f.branch(is_zero):
                    position = f.add(self.out_base, f.mul(at, integer(self.inner)))
                    routine.write(f, routine.here(f, out.pointer), out.elem, position, value)
                f.carried(at, following)

    def _collect(self, sorted_: Memory) -> None:
        """Read the operands in their new order."""
        f = self.f
        with f.loop(0, self.count if self.top is None else self.top) as j:
            place = f.convert(sorted_.read(j), "u32")
            source = f.bitcast(f.convert(place, "u64"), "i64")
            target = f.add(self.out_base, f.mul(j, integer(self.inner)))
            for number, y in zip(self.writes, self.targets, strict=True):
                if number == UNUSED:
                    continue
                value: Any = place
                if number is not None:
                    value = self._read(self.sources[number], source)
                routine.write(f, y.pointer, y.elem, target, value)
