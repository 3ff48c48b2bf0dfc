"""Radix sort of long rows: by digits, the lowest first; each pass is stable.

Three forms, by what is moved:

- *values*: one operand of up to 32 bits; its ranks are sorted, and converted back to values.
- *pairs*: one key of up to 32 bits; a rank and its index are one integer of 64 bits.
- *places*: other keys; only indices are moved, and each digit is read through them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import (
    Function,
    Value,
    bits_of,
    constant,
    is_float,
    is_signed,
    storage,
)
from namoo.engines.native.ir.types import computed_in, part_of, parts
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer
from namoo.engines.native.kernels.sort.network import UNUSED, rank


class Memory:
    """Integers in memory that is rewritten: loads are never reused."""

    def __init__(self, f: Function, pointer: Value, elem: str):
        self.f, self.pointer, self.elem = f, pointer, elem

    @staticmethod
    def on_stack(f: Function, count: int, elem: str) -> Memory:
        """Allocate uninitialised memory for `count` integers on the stack."""
        name = f.fresh()
        f.line(f"  {name} = alloca [{count} x {storage(elem)}], align 64", 0)
        return Memory(f, Value(name, "ptr"), elem)

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


class Key(NamedTuple):
    """A number that is compared: an operand's element, or a part of a complex one."""

    operand: int
    part: int
    elem: str
    """The type that it is computed in."""

    @property
    def bits(self) -> int:
        return 8 if self.elem == "i1" else bits_of(self.elem)


class Radix(Routine):
    """The common part of radix sorts: ranks of elements, counts of digits, moves.

    The arguments are those of `SortRows`.
    """

    f: Function
    sources: Sequence[Place]
    """The operands."""
    targets: Sequence[Place]
    """The results."""
    counts: Memory
    """The count of each digit, then the target of its next element."""

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
        self.key_parts = [
            Key(i, part, computed_in(part_of(x.elem)))
            for i, x in enumerate(xs[:keys])
            for part in range(parts(x.elem))
        ]
        self.form = "places"
        if len(self.key_parts) == 1 and self.key_parts[0].bits <= 32:
            self.form = "values" if self.writes == (0,) and top is None else "pairs"
        self.moved = {"values": "u32", "pairs": "u64", "places": "u32"}[self.form]
        self.digit = 11 if n >= tuning.WIDE_DIGITS else 8

    def key(self):
        return self.axis, self.keys, self.writes, self.top

    def passes(self, key: Key) -> int:
        """How many digits a key has."""
        return -(-key.bits // self.digit)

    def open_row(self, row: Value) -> None:
        """Set the element pointers to a row."""
        f, n, inner = self.f, self.count, self.inner
        outer, rest = f.idiv(row, integer(inner)), f.irem(row, integer(inner))

        def base(count: int) -> Value:
            return f.add(f.mul(outer, integer(count * inner)), rest)

        self.base = base(n)
        self.out_base = base(n if self.top is None else self.top)

    def _read(self, place: Place, j: Value) -> Any:
        """Element `j` of the row in an operand."""
        f, elem = self.f, place.elem
        first = f.offset(place.pointer, f.mul(self.base, integer(parts(elem))), part_of(elem))
        return routine.read(f, first, elem, f.mul(j, integer(self.inner)))

    def _rank(self, key: Key, j: Value) -> Value:
        """An unsigned integer in the order of a key of the row's element `j`."""
        f, value = self.f, self._read(self.sources[key.operand], j)
        value = value[key.part] if isinstance(value, tuple) else value
        if self.form == "values" and is_float(value.elem):
            # Zeros of different sign have different ranks: see `order_zeros`.
            nan = constant(value.elem, math.nan)
            out = rank(f, f.select(f.unordered(value), nan, value), True)
        else:
            out = rank(f, value, self.top is not None)
        if self.top is not None:
            out = f.not_(out)
        out = f.bitcast(out, f"u{bits_of(out.elem)}")
        return f.add(out, constant(out.elem, self._bias(key)))

    def _bias(self, key: Key) -> int:
        """The offset that makes the ranks of a type start at zero, so only low bits are sorted."""
        if is_signed(key.elem) or key.bits >= 32:
            return 1 << key.bits - 1
        return 0 if self.top is None else 1 << key.bits

    def _value(self, number: Value, key: Key) -> Value:
        """Convert a rank back to its value, in the form *values*."""
        f, part = self.f, key.elem
        if part == "u32" or not is_float(part) and not is_signed(part):
            return f.convert(number, part)
        out = f.bitcast(f.sub(number, constant("u32", self._bias(key))), "i32")
        if not is_float(part):
            return f.convert(out, part)
        flip = f.and_(f.ashr(out, constant("i32", 31)), constant("i32", (1 << 31) - 1))
        return f.bitcast(f.xor(out, flip), part)

    def _element(self, key: Key, source: Memory | None, j: Value) -> tuple[Value, Value]:
        """The value that is moved for element `j`, and the number whose digits are sorted.

        They are read from `source`, or in the first pass from the operands.
        """
        f = self.f
        if self.form == "values":
            moved = number = self._rank(key, j) if source is None else source.read(j)
        elif self.form == "places":
            moved = f.convert(j, "u32") if source is None else source.read(j)
            number = self._rank(key, f.convert(moved, "i64"))
        elif source is None:
            number = self._rank(key, j)
            high = f.shl(f.convert(number, "u64"), constant("u64", 32))
            moved = f.or_(high, f.bitcast(j, "u64"))
        else:
            moved = source.read(j)
            number = f.convert(f.lshr(moved, constant("u64", 32)), "u32")
        return moved, number

    def _digit(self, number: Value, p: int) -> Value:
        f = self.f
        shifted = f.lshr(number, constant(number.elem, p * self.digit))
        low = f.and_(shifted, constant(number.elem, (1 << self.digit) - 1))
        return f.bitcast(f.convert(low, "u64"), "i64")

    def count_digits(
        self, key: Key, passes: Sequence[int], source: Memory | None, start, stop
    ) -> None:
        """Count the digits of some passes, of elements `start` to `stop`."""
        f, size, one = self.f, 1 << self.digit, constant("u32", 1)
        routine.clear(f, self.counts.pointer, integer(4 * len(passes) * size))
        with f.loop(start, stop) as j:
            _, number = self._element(key, source, j)
            for i, p in enumerate(passes):
                at = f.add(self._digit(number, p), integer(i * size))
                self.counts.write(at, f.add(self.counts.read(at), one))

    def move(
        self, key: Key, p: int, source: Memory | None, target: Memory | None, slot: int, start, stop
    ) -> None:
        """Move elements to the range of their digit; `slot` is the position of its counts.

        Without a `target` they are stored in the result, as values.
        """
        f, offset = self.f, integer(slot << self.digit)
        with f.loop(start, stop) as j:
            moved, number = self._element(key, source, j)
            at = f.add(self._digit(number, p), offset)
            where = self.counts.read(at)
            self.counts.write(at, f.add(where, constant("u32", 1)))
            where = f.bitcast(f.convert(where, "u64"), "i64")
            if target is None:
                (out,) = self.targets
                position = f.add(self.out_base, f.mul(where, integer(self.inner)))
                routine.write(f, out.pointer, out.elem, position, self._value(moved, key))
            else:
                target.write(where, moved)

    def order_zeros(self, place: Place) -> None:
        """Restore the order that zeros of both signs have in an operand.

        Negative zeros were sorted before positive ones: if there are any, the first element that is
        not less than zero is one.
        """
        f, (out,), n = self.f, self.targets, self.count

        def read(j: Value) -> Value:
            position = f.add(self.out_base, f.mul(j, integer(self.inner)))
            return routine.read(f, routine.here(f, out.pointer), out.elem, position)

        zero = constant(computed_in(out.elem), 0.0)
        with f.loop(0, n.bit_length()) as i:
            below = f.carry(integer(0))
            more = f.add(below, f.lshr(integer(1 << n.bit_length() - 1), i))
            less = f.compare("lt", read(f.sub(f.minimum(more, integer(n)), integer(1))), zero)
            fits = f.compare("le", more, integer(n))
            start = f.carried(below, f.select(f.and_(fits, less), more, below))
        first = read(f.minimum(start, integer(n - 1)))
        bits = f.bitcast(first, f"i{bits_of(first.elem)}")
        with f.branch(f.compare("eq", bits, constant(bits.elem, -(1 << bits_of(bits.elem) - 1)))):
            with f.loop(0, n) as j:
                at = f.carry(start)
                value = self._read(place, j)
                is_zero = f.compare("eq", value, zero)
                following = f.add(at, f.bitcast(f.convert(is_zero, "u64"), "i64"))
                with f.branch(is_zero):
                    position = f.add(self.out_base, f.mul(at, integer(self.inner)))
                    routine.write(f, routine.here(f, out.pointer), out.elem, position, value)
                f.carried(at, following)

    def collect(self, source: Memory, start, stop) -> None:
        """Read the operands in their new order."""
        f = self.f
        with f.loop(start, stop) as j:
            place = f.convert(source.read(j), "u32")
            at = f.bitcast(f.convert(place, "u64"), "i64")
            target = f.add(self.out_base, f.mul(j, integer(self.inner)))
            for number, y in zip(self.writes, self.targets, strict=True):
                if number == UNUSED:
                    continue
                value: Any = place
                if number is not None:
                    value = self._read(self.sources[number], at)
                routine.write(f, y.pointer, y.elem, target, value)


class RadixRows(Radix):
    """Sort rows, some by each thread."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        n = self.count
        self.units = min(tuning.RADIX_PARTS, self.rows)
        self.block = -(-self.rows // self.units)
        self.units = -(-self.rows // self.block)
        self.row_bytes = -(-2 * n * bits_of(self.moved) // 8 // 64) * 64
        self.scratch = self.units * self.row_bytes
        self.work = self.rows * n * 16 * sum(map(self.passes, self.key_parts))

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        *places, scratch = places
        self.f = f
        number = len(places) - len(self.writes)
        self.sources, self.targets = places[:number], places[number:]
        passes = max(map(self.passes, self.key_parts))
        self.counts = Memory.on_stack(f, passes << self.digit, "u32")
        with f.loop(begin, end) as unit:
            memory = f.offset(scratch.pointer, f.mul(unit, integer(self.row_bytes)), "i8")
            half = f.offset(memory, integer(self.count), self.moved)
            buffers = [Memory(f, p, self.moved) for p in (memory, half)]
            first = f.mul(unit, integer(self.block))
            last = f.minimum(f.add(first, integer(self.block)), integer(self.rows))
            with f.loop(first, last) as row:
                self.open_row(row)
                self._row(*buffers)

    def _row(self, target: Memory, other: Memory) -> None:
        n, source = self.count, None
        keys = list(reversed(self.key_parts))
        for key in keys:
            passes = range(self.passes(key))
            self.count_digits(key, passes, None, 0, n)
            self._sum_up(len(passes))
            for p in passes:
                last = self.form == "values" and p == passes[-1]
                self.move(key, p, source, None if last else target, p, 0, n)
                source, target, other = target, other, target
        if self.form != "values":
            assert source is not None
            self.collect(source, 0, n if self.top is None else self.top)
        elif is_float(keys[0].elem):
            self.order_zeros(self.sources[0])

    def _sum_up(self, passes: int) -> None:
        """Turn counts of digits into the target of the first element of each digit."""
        f, size = self.f, 1 << self.digit
        with f.loop(0, size) as d:
            for p in range(passes):
                before = f.carry(constant("u32", 0))
                at = f.add(d, integer(p * size))
                here = self.counts.read(at)
                self.counts.write(at, before)
                f.carried(before, f.add(before, here))
