"""Sort short rows by a sorting network: each lane of a vector sorts one row.

The network sorts *ranks*, integers in the order of the keys, together with their indices; the
operands are then gathered by the sorted indices.  A 32-bit rank and its index are packed into a
64-bit integer; no two of these are equal, so the sort is stable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from namoo._base.caches import cached
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
    suffix,
    vector_type,
)
from namoo.engines.native.ir.types import computed_in, is_compound, part_of, parts
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer

# Marks a result that nothing reads.
UNUSED = -1


@cached(
    "native sorting: networks",
    bound="lengths below the limit of short rows",
    keyed_by="number of elements",
    kept=True,
)
def network(n: int) -> tuple[tuple[int, int], ...]:
    """Batcher's odd-even merge sort: pairs of positions that are compared and swapped."""
    pairs = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(j, min(j + k, n - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        pairs.append((i, i + k))
            k //= 2
        p *= 2
    return tuple(pairs)


def rank(f: Function, x: Value, total: bool) -> Value:
    """A signed integer in the order of `x`.

    If `total`, zeros and NaNs are ordered by their sign and bits; otherwise zeros are equal, and
    NaNs are equal and last.
    """
    if x.elem == "i1":
        return f.convert(f.convert(x, "u32"), "i32")
    width = max(bits_of(x.elem), 32)
    signed = f"i{width}"
    if not is_float(x.elem):
        if is_signed(x.elem) or bits_of(x.elem) < 32:
            return f.convert(x, signed)
        return f.xor(f.bitcast(x, signed), constant(signed, -(1 << width - 1)))
    if not total:
        x = f.select(f.compare("eq", x, constant(x.elem, 0.0)), constant(x.elem, 0.0), x)
        x = f.select(f.unordered(x), constant(x.elem, math.nan), x)
    bits = f.bitcast(x, signed)
    # For negative floats, larger bits mean smaller numbers.
    flip = f.and_(f.ashr(bits, constant(signed, width - 1)), constant(signed, (1 << width - 1) - 1))
    return f.xor(bits, flip)


class SortRows(Routine):
    """Sort operands along an axis by the first `keys` of them.

    For each result, `writes` has the number of an operand, None for the indices of the sorted
    elements, or `UNUSED`.  With `top`, the order is total and decreasing, and only the first `top`
    elements are stored.
    """

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
        self.count = shape[axis]
        self.inner = math.prod(shape[axis + 1 :])
        self.rows = math.prod(shape[:axis]) * self.inner
        key_bits = [bits_of(computed_in(part_of(x.elem))) for x in xs[:keys]]
        key_parts = sum(parts(x.elem) for x in xs[:keys])
        self.plain = (
            self.writes == (0,)
            and top is None
            and key_parts == 1
            and not is_float(part_of(xs[0].elem))
        )
        """Whether equal elements are indistinguishable: values are sorted without indices."""
        self.packed = not self.plain and key_parts == 1 and max(key_bits) <= 32
        self.lanes = 8 if max(key_bits) > 32 else 16
        self.units = -(-self.rows // self.lanes)
        self.work = self.rows * len(network(self.count)) * (2 if self.packed or self.plain else 8)

    def key(self):
        return self.axis, self.keys, self.writes, self.top

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        sources, targets = places[: -len(self.writes)], places[-len(self.writes) :]
        with f.loop(begin, end) as unit:
            self._unit(f, sources, targets, unit)

    def _unit(self, f: Function, sources, targets, unit: Value) -> None:
        """Sort as many rows as there are lanes."""
        n, lanes = self.count, self.lanes
        elems = self._elems(sources)
        memory = [] if n <= tuning.UNROLLED_NETWORK else [self._scratch(f, e) for e in elems]
        rows = Rows(f, unit, self)
        values: list[list[Value]] = []

        def load(j: Value) -> list[Value]:
            found = []
            for source in sources[: self.keys]:
                value = rows.read(source, rows.at(j, n))
                for v in value if isinstance(value, tuple) else (value,):
                    found.append(v if self.plain else rank(f, v, self.top is not None))
            if self.top is not None:
                found = [f.not_(v) for v in found]
            return self._joined(f, found, j)

        if n <= tuning.UNROLLED_NETWORK:
            values = [load(integer(j)) for j in range(n)]
            for a, b in network(n):
                values[a], values[b] = self._exchange(f, values[a], values[b])
        else:
            with f.loop(0, n) as j:
                for pointer, value in zip(memory, load(j), strict=True):
                    f.store(f.splat(value, lanes), self._slot(f, pointer, value.elem, j))
            self._run(f, memory, elems)

        def store(j: Value, values: list[Value]) -> None:
            if self.plain:
                rows.write(targets[0], rows.at(j, n), values[0])
                return
            place = f.bitcast(f.convert(values[-1], "i32"), "u32")
            where = rows.at(f.bitcast(f.convert(place, "u64"), "i64"), n)
            for number, target in zip(self.writes, targets, strict=True):
                if number == UNUSED:
                    continue
                value = place
                if number is not None:
                    value = rows.read(sources[number], where, chosen=True)
                rows.write(target, rows.at(j, size), value)

        size = n if self.top is None else self.top
        if n <= tuning.UNROLLED_NETWORK:
            for j in range(size):
                store(integer(j), values[j])
        else:
            with f.loop(0, size) as j:
                store(
                    j,
                    [
                        f.load(self._slot(f, routine.here(f, p), e, j), e, lanes)
                        for p, e in zip(memory, elems, strict=True)
                    ],
                )

    def _elems(self, sources: Sequence[Place]) -> list[str]:
        """The types of the values that are sorted."""
        if self.packed:
            return ["i64"]
        out = []
        for source in sources[: self.keys]:
            part = computed_in(part_of(source.elem))
            narrow = part if self.plain else f"i{max(bits_of(part), 32)}"
            out += [narrow] * parts(source.elem)
        if out == ["i1"]:
            return ["u8"]
        return out if self.plain else [*out, "i32"]

    def _joined(self, f: Function, ranks: list[Value], j: Value) -> list[Value]:
        """Ranks with their indices."""
        if self.plain:
            (value,) = ranks
            return [f.convert(value, "u8") if value.elem == "i1" else value]
        if not self.packed:
            return [
                *(f.splat(r, self.lanes) for r in ranks),
                f.splat(f.convert(j, "i32"), self.lanes),
            ]
        wide = f.shl(f.convert(ranks[0], "i64"), constant("i64", 32))
        return [f.splat(f.or_(wide, j), self.lanes)]

    def _exchange(self, f: Function, a: list[Value], b: list[Value]):
        if len(a) == 1:
            return [f.minimum(a[0], b[0])], [f.maximum(a[0], b[0])]
        swap = None
        for x, y in zip(reversed(a), reversed(b), strict=True):
            greater = f.compare("gt", x, y)
            if swap is None:
                swap = greater
            else:
                swap = f.or_(greater, f.and_(f.compare("eq", x, y), swap))
        assert swap is not None
        return (
            [f.select(swap, y, x) for x, y in zip(a, b, strict=True)],
            [f.select(swap, x, y) for x, y in zip(a, b, strict=True)],
        )

    def _scratch(self, f: Function, elem: str) -> Value:
        name = f.fresh()
        f.line(f"  {name} = alloca [{self.count * self.lanes} x {storage(elem)}], align 64", 0)
        return Value(name, "ptr")

    def _slot(self, f: Function, pointer: Value, elem: str, j: Value) -> Value:
        return f.offset(pointer, f.mul(j, integer(self.lanes)), elem)

    def _run(self, f: Function, memory: list[Value], elems: list[str]) -> None:
        """Compare and swap the pairs of positions in a table, one after another."""
        pairs = network(self.count)
        name = f"@network{self.count}"
        numbers = ", ".join(f"i32 {i}" for pair in pairs for i in pair)
        kind = f"[{2 * len(pairs)} x i32]"
        f.declarations[name] = f"{name} = private unnamed_addr constant {kind} [{numbers}]"
        table = Value(name, "ptr")
        with f.loop(0, len(pairs)) as c:
            first = f.mul(c, integer(2))
            slots = []
            for at in (first, f.add(first, integer(1))):
                j = f.convert(f.load(f.offset(table, at, "u32"), "u32"), "u64")
                slots.append(
                    [
                        self._slot(f, routine.here(f, p), e, f.bitcast(j, "i64"))
                        for p, e in zip(memory, elems, strict=True)
                    ]
                )
            a, b = (
                [f.load(s, e, self.lanes) for s, e in zip(side, elems, strict=True)]
                for side in slots
            )
            for side, values in zip(slots, self._exchange(f, a, b), strict=True):
                for slot, value in zip(side, values, strict=True):
                    f.store(value, slot)


class Rows:
    """As many rows as there are lanes, in memory."""

    def __init__(self, f: Function, unit: Value, step: SortRows):
        self.f, self.step = f, step
        self.lanes = lanes = step.lanes
        first = f.mul(unit, integer(lanes))
        row = f.add(first, f.iota("i64", lanes))
        self.mask = None
        if step.rows % lanes:
            self.mask = f.compare("lt", row, integer(step.rows))
        inner = integer(step.inner)
        self.outer = f.idiv(row, inner) if step.inner > 1 else row
        self.rest = f.irem(row, inner) if step.inner > 1 else integer(0)
        # How many lanes are contiguous in memory.
        self.near = step.inner % lanes == 0
        self.first_outer = f.idiv(first, inner)
        self.first_rest = f.irem(first, inner)

    def at(self, j: Value, count: int) -> tuple[Value, Value]:
        """The offsets of element `j` in all rows of a given length; and in the first row."""
        f, inner = self.f, integer(self.step.inner)

        def place(outer, rest):
            return f.add(
                f.add(f.mul(outer, integer(count * self.step.inner)), rest), f.mul(j, inner)
            )

        first = place(self.first_outer, self.first_rest) if not j.lanes else j
        return place(self.outer, self.rest), first

    def read(self, place: Place, at: tuple[Value, Value], chosen: bool = False) -> Any:
        """Load an element of each row; if `chosen`, at a different index in each."""
        f, many = self.f, self.lanes
        if self.near and not chosen:
            return routine.read(f, place.pointer, place.elem, at[1], many)
        if not is_compound(place.elem):
            value = self._gather(place.pointer, place.elem, at[0])
            return f.convert(value, computed_in(place.elem))
        count, part = parts(place.elem), part_of(place.elem)
        return tuple(
            self._gather(place.pointer, part, f.add(f.mul(at[0], integer(count)), integer(i)))
            for i in range(count)
        )

    def write(self, place: Place, at: tuple[Value, Value], value: Any) -> None:
        """Store elements of all rows."""
        f = self.f
        if not is_compound(place.elem):
            value = f.convert(value, place.elem)
            if self.near:
                routine.write(f, place.pointer, place.elem, at[1], value)
            else:
                self._scatter(place.pointer, place.elem, at[0], value)
            return
        count, part = parts(place.elem), part_of(place.elem)
        for i, v in enumerate(value):
            self._scatter(place.pointer, part, f.add(f.mul(at[0], integer(count)), integer(i)), v)

    def _addresses(self, pointer: Value, elem: str, positions: Value) -> Value:
        text = f"getelementptr {storage(elem)}, ptr {pointer.name}, {positions!r}"
        return self.f.emit("ptr", self.lanes, text, (pointer, positions))

    def _all(self) -> Value:
        return self.mask or self.f.splat(constant("i1", True), self.lanes)

    def _gather(self, pointer: Value, elem: str, positions: Value) -> Value:
        f, n = self.f, self.lanes
        stored = "u8" if elem == "i1" else elem
        kind = vector_type(stored, n)
        name = f"llvm.masked.gather.{suffix(stored, n)}.v{n}p0"
        f.declarations[name] = f"declare {kind} @{name}(<{n} x ptr>, <{n} x i1>, {kind})"
        addresses = self._addresses(pointer, elem, positions)
        text = (
            f"call {kind} @{name}(<{n} x ptr> align {bits_of(stored) // 8} {addresses.name}, "
            f"<{n} x i1> {self._all().name}, {kind} zeroinitializer)"
        )
        value = f.emit(stored, n, text, (addresses, self._all()))
        return f.convert(value, "i1") if elem == "i1" else value

    def _scatter(self, pointer: Value, elem: str, positions: Value, value: Value) -> None:
        f, n = self.f, self.lanes
        if elem == "i1":
            value = f.convert(value, "u8")
        name = f"llvm.masked.scatter.{suffix(value.elem, n)}.v{n}p0"
        f.declarations[name] = f"declare void @{name}({value.type}, <{n} x ptr>, <{n} x i1>)"
        addresses = self._addresses(pointer, elem, positions)
        size = bits_of(value.elem) // 8
        f.line(
            f"  call void @{name}({value!r}, <{n} x ptr> align {size} {addresses.name}, "
            f"<{n} x i1> {self._all().name})"
        )
