"""Code for single elements: computes, loads and stores the elements of nodes.

A `Writer` emits into one function. If it has lanes, the vectorised loop variable represents that
many consecutive indices, and values are vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.fuse.kinds import KINDS
from namoo.engines.native.graph.node import COMPUTE, LITERAL, Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.extents import at_least, is_dynamic
from namoo.engines.native.ir.function import (
    Function,
    Mask,
    Value,
    bits_of,
    constant,
    mask_of,
    storage,
    suffix,
    vector_type,
)
from namoo.engines.native.ir.index import Index, Loop, Quotient, Symbol, ravel
from namoo.engines.native.ir.types import (
    computed_in,
    is_complex,
    is_compound,
    is_key,
    part_of,
    parts,
    size_of,
)
from namoo.engines.native.kernels.vector_axis import windows
from namoo.errors import InconclusiveDimensionOperation


class Place:
    """A node in memory: a pointer, its type, and how many leading indices are ignored."""

    __slots__ = ("elem", "pointer", "shape", "skip")

    def __init__(self, pointer: Value, elem: str, shape: tuple[int, ...], skip: int = 0):
        self.pointer = pointer
        self.elem = elem
        self.shape = shape
        self.skip = skip

    def position(self, index: Sequence[Index]) -> Index:
        """The offset of an element, in elements."""
        return ravel(index[self.skip :], self.shape)


class Writer:
    """Computes nodes at indices; the function of a `compute` node gets it as `k`."""

    def __init__(self, f: Function, places: dict[Node, Place]):
        self.f = f
        self.places = places
        self.registers: dict[Node, Any] = {}
        """Values in registers, such as the sums of the current row."""
        self.lanes = 0
        self.mask: Value | None = None
        self.square: Any = None
        """The rows around the current one, where these are loaded together: see `transposed`."""

    def at(self, node: Node, index: Sequence[Index]) -> Any:
        """The element of a node at an index: computed, or loaded."""
        if node.kind is LITERAL:
            return literal(node)
        if node in self.registers:
            return self.registers[node]
        place = self.places.get(node)
        if place is not None:
            return self.load(place, index)
        key = (self, node, self.mask, *(i.key() for i in index))
        levels = self.f.levels
        for level in levels:
            if (known := level.memo.get(key)) is not None:
                return known
        value = KINDS[node.kind].element(self, node, index)
        levels[_depth(value)].memo[key] = value
        return value

    def symbol(self, value: Value, low: int, high: int) -> Index:
        """A computed integer as an index; it must be between `low` and `high`."""
        value = self.f.convert(value, "i64")
        if value.constant is not None and not value.lanes:
            return Index.of(value.constant)
        return Index.of(Symbol(value, low, high, bool(value.lanes)))

    def integer(self, index: Index, elem: str = "i64") -> Value:
        """The value of an index: a vector where it differs from lane to lane."""
        return self.f.convert(self._sum(index, lanes=True), elem)

    def _sum(self, index: Index, lanes: bool) -> Value:
        f = self.f
        values = []
        for symbol, factor in index.terms.items():
            value = self._symbol(symbol, lanes)
            values.append(f.mul(value, f.number(factor)))
        values.sort(key=lambda v: (v.depth, v.lanes))
        total = f.number(index.constant)
        for value in values:
            total = f.add(total, value)
        return total

    def _symbol(self, symbol: Symbol, lanes: bool) -> Value:
        f = self.f
        if isinstance(symbol, Quotient):
            base = self._sum(symbol.base, lanes)
            low, high = symbol.base.range()
            n = symbol.divisor
            if is_dynamic(n) or is_dynamic(low) or is_dynamic(high):
                return self._dynamic_quotient(symbol, base, low)
            if base.constant is not None and not base.lanes:
                return constant(
                    "i64", base.constant % n if symbol.remainder else base.constant // n
                )
            if low < 0:  # shift it to be nonnegative, and the quotient back
                shift = -(low // n)
                base = f.add(base, constant("i64", shift * n))
                high += shift * n
            narrow = "u32" if high < 2**31 else "u64"
            base = f.convert(base, narrow)
            divisor = constant(narrow, n)
            out = f.irem(base, divisor) if symbol.remainder else f.idiv(base, divisor)
            out = f.convert(f.bitcast(out, narrow), "i64" if narrow == "u64" else "u64")
            out = f.bitcast(out, "i64")
            if low < 0 and not symbol.remainder:
                out = f.sub(out, constant("i64", shift))
            return out
        if isinstance(symbol, Loop) and symbol.vector and lanes:
            return f.add(symbol.value, f.iota("i64", self.lanes))
        return symbol.value

    def _dynamic_quotient(self, symbol: Quotient, base: Value, low: Any) -> Value:
        """The value of a quotient whose divisor or base is a size at run time."""
        if not at_least(low, 0):
            raise InconclusiveDimensionOperation(f"{symbol.base} may be negative")
        f, divisor = self.f, self.f.number(symbol.divisor)
        operands = f.bitcast(base, "u64"), f.bitcast(divisor, "u64")
        out = f.irem(*operands) if symbol.remainder else f.idiv(*operands)
        return f.bitcast(out, "i64")

    def choose(self, condition: Value, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`; of complex values too."""
        return ops.choose(self.f, condition, x, y)

    def start(self, node: Node, last: int) -> Index:
        """A scalar node as the start of a slice, clamped to [0, last]."""
        if last == 0:
            return Index.of(0)
        value = self.f.convert(self.at(node, []), "i64")
        if value.constant is not None and not is_dynamic(last):
            return Index.of(min(max(value.constant, 0), last))
        value = self.f.minimum(self.f.maximum(value, constant("i64", 0)), self.f.number(last))
        return self.symbol(value, 0, last)

    def within(self, index: Index, low: int, high: int) -> Value | None:
        """Whether an index is in [low, high); None if that is always so."""
        least, greatest = index.range()
        conditions = []
        if not at_least(least, low):
            conditions.append(("ge", low))
        if not at_least(high - 1, greatest):
            conditions.append(("lt", high))
        if not conditions:
            return None
        f, out = self.f, None
        if self._counts_lanes(index) and not any(map(is_dynamic, (least, greatest, low, high))):
            # The number of the lane is compared: words of 32 bits, and a bound for all lanes.
            if max(map(abs, (least, greatest, low, high))) < 1 << 30:
                first = self._sum(index, lanes=False)
                for relation, bound in conditions:
                    limit = f.convert(f.sub(f.number(bound), first), "i32")
                    holds = f.compare(relation, f.iota("i32", self.lanes), limit)
                    out = holds if out is None else f.and_(out, holds)
                return out
        value = self.integer(index)
        for relation, bound in conditions:
            holds = f.compare(relation, value, f.number(bound))
            if value.constant is not None and not value.lanes and not is_dynamic(bound):
                number = value.constant
                holds = constant("i1", number >= bound if relation == "ge" else number < bound)
            out = holds if out is None else f.and_(out, holds)
        return out

    def _counts_lanes(self, index: Index) -> bool:
        """Whether an index grows by one from lane to lane."""
        along = [(s, factor) for s, factor in index.terms.items() if s.vector]
        return len(along) == 1 and isinstance(along[0][0], Loop) and along[0][1] == 1

    def clamp(self, index: Index, low: int, high: int) -> Index:
        """The nearest index in [low, high]."""
        least, greatest = index.range()
        fits, ends = at_least(least, low), at_least(high, greatest)
        if fits and ends:
            return index
        if not index.terms and not any(map(is_dynamic, (index.constant, low, high))):
            return Index.of(min(max(index.constant, low), high))
        value = self.integer(index)
        if not fits:
            value = self.f.maximum(value, self.f.number(low))
        if not ends:
            value = self.f.minimum(value, self.f.number(high))
        return self.symbol(value, low, high)

    def at_within(self, node: Node, index: Sequence[Index], axis: int, inside: Value | None) -> Any:
        """The element at an index where a condition holds: that `index[axis]` is within the node.

        Where the condition differs from lane to lane, only the lanes where it holds are read.
        """
        if inside is None or not inside.lanes or self.square is not None:
            nearest = self.clamp(index[axis], 0, node.shape[axis] - 1)
            return self.at(node, [*index[:axis], nearest, *index[axis + 1 :]])
        outer = self.mask
        self.mask = inside if outer is None else self.f.and_(outer, inside)
        value = self.at(node, index)
        self.mask = outer
        return value

    def _vector_step(self, position: Index) -> int | None:
        """The stride of the position from lane to lane; None if it is not constant."""
        step = 0
        for symbol, factor in position.terms.items():
            if symbol.vector:
                if not isinstance(symbol, Loop):
                    return None
                step = factor
        return step

    def address(self, pointer: Value, elem: str, position: Index) -> Value:
        """The address of an element, or of the first one of a vector.

        The terms of outer loops are computed in those loops. The constant comes last: loads and
        stores add it for free, and elements at constant distances share the rest.
        """
        f = self.f
        if position.terms:
            key = ("address", pointer.name, pointer.depth, elem, position.key()[1])
            for level in f.levels:
                if (known := level.memo.get(key)) is not None:
                    return f.offset(known, position.constant, elem)
            terms = [(self._symbol(s, False), factor) for s, factor in position.terms.items()]
            terms.sort(key=lambda term: term[0].depth)
            for value, factor in terms:
                pointer = f.offset(pointer, f.stepped(value, factor), elem)
            f.levels[pointer.depth].memo[key] = pointer
        return f.offset(pointer, position.constant, elem)

    def load(self, place: Place, index: Sequence[Index]) -> Any:
        """Load an element, or a vector of them."""
        if 0 in place.shape:
            # The array is empty: the value is not used.
            zero = constant(computed_in(part_of(place.elem)), 0)
            return (zero,) * parts(place.elem) if is_compound(place.elem) else zero
        if is_compound(place.elem):
            return self._load_parts(place, index)
        value = self._load(place.pointer, place.elem, place.position(index))
        return self.f.convert(value, computed_in(place.elem))

    def _load(self, pointer: Value, elem: str, position: Index) -> Value:
        f = self.f
        step = self._vector_step(position)
        if step == 0:
            return f.load(self.address(pointer, elem, position), elem)
        if step == 1:
            address = self.address(pointer, elem, position)
            return f.load(address, elem, self.lanes, self.mask)
        if step is not None and self.square is not None:
            loaded = self.square.load(pointer, elem, position, step)
            if loaded is not None:
                return loaded
        offsets = self._offsets(position)
        if offsets is not None and (self.mask is None or isinstance(self.mask, Mask)):
            loaded = self._shuffled(pointer, elem, position, offsets)
            if loaded is not None:
                return loaded
        return self._gather(pointer, elem, position)

    def _count(self) -> int:
        """How many lanes are in use."""
        return self.mask.count if isinstance(self.mask, Mask) else self.lanes

    def _offsets(self, index: Index) -> list[int] | None:
        """The index of each lane relative to that of the first lane; None if unknown."""
        out = [0] * self.lanes
        for symbol, factor in index.terms.items():
            if symbol.vector:
                steps = None if is_dynamic(factor) else self._steps(symbol)
                if steps is None:
                    return None
                out = [o + factor * s for o, s in zip(out, steps, strict=True)]
        return out

    def _steps(self, symbol: Symbol) -> list[int] | None:
        """The value of a symbol in each lane relative to the first lane; None if unknown."""
        if isinstance(symbol, Loop):
            return [*range(self.lanes)]
        if not isinstance(symbol, Quotient):
            return None
        n, offsets = symbol.divisor, self._offsets(symbol.base)
        first = symbol.base.constant
        if any(map(is_dynamic, (n, first, *symbol.base.terms.values()))):
            return None
        for inner, factor in symbol.base.terms.items():
            if factor % n == 0:
                continue
            if not isinstance(inner, Loop):
                return None
            if inner.value.constant is not None:
                first += factor * inner.value.constant
            elif not inner.vector or factor * self.lanes % n:
                return None  # loops over vectors start at multiples of their lanes
        if offsets is None:
            return None
        values = [(first + o) % n if symbol.remainder else (first + o) // n for o in offsets]
        return [v - values[0] for v in values]

    def _shuffled(self, pointer: Value, elem: str, position: Index, offsets: list[int]):
        """Load elements at known offsets by shuffling a few vectors; None if these were too many.

        No memory outside the range from the first to the last element is touched.
        """
        f, n, wide = self.f, self.lanes, tuning.VECTOR_BYTES // size_of(elem)
        pieces: list[Value] = []
        for start in range(0, n, wide):
            lanes = min(wide, n - start)
            used = offsets[start : start + lanes][: max(self._count() - start, 1)]
            covers = windows(used, lanes)
            if covers is None:
                return None
            loaded = []
            for first, length in covers:
                address = self.address(pointer, elem, position + first)
                alone = len(covers) == 1 and length & (length - 1) == 0
                mask = None if alone or length == lanes else mask_of(lanes, length)
                loaded.append(f.load(address, elem, length if alone else lanes, mask))
            pieces.append(_selected(f, loaded, covers, used, lanes))
        while len(pieces) > 1:
            pieces = [
                f.shuffle(x, range(x.lanes + y.lanes), y)
                for x, y in zip(pieces[::2], pieces[1::2], strict=True)
            ]
        return pieces[0]

    def _gather(self, pointer: Value, elem: str, position: Index) -> Value:
        f, n = self.f, self.lanes
        stored = "u8" if elem == "i1" else elem
        addresses = self._addresses(pointer, elem, position)
        kind = vector_type(stored, n)
        name = f"llvm.masked.gather.{suffix(stored, n)}.v{n}p0"
        f.declarations[name] = f"declare {kind} @{name}(<{n} x ptr>, <{n} x i1>, {kind})"
        size = bits_of(stored) // 8
        text = (
            f"call {kind} @{name}(<{n} x ptr> align {size} {addresses.name}, "
            f"<{n} x i1> {self._all_lanes().name}, {kind} zeroinitializer)"
        )
        value = f.emit(stored, n, text, (addresses, self._all_lanes()))
        return f.convert(value, "i1") if elem == "i1" else value

    def _addresses(self, pointer: Value, elem: str, position: Index) -> Value:
        f = self.f
        offsets = f.splat(self._sum(position, True), self.lanes)
        text = f"getelementptr {storage(elem)}, ptr {pointer.name}, {offsets!r}"
        return f.emit("ptr", self.lanes, text, (pointer, offsets))

    def _all_lanes(self) -> Value:
        return self.mask or self.f.splat(constant("i1", True), self.lanes)

    def _load_parts(self, place: Place, index: Sequence[Index]):
        part, n, count = part_of(place.elem), self.lanes, parts(place.elem)
        position = place.position(index) * count
        step = self._vector_step(position)
        if step == count and self.mask is None:
            f = self.f
            address = self.address(place.pointer, part, position)
            both = f.load(address, part, count * n)
            return tuple(f.shuffle(both, range(i, count * n, count)) for i in range(count))
        return tuple(self._load(place.pointer, part, position + i) for i in range(count))

    def store(self, place: Place, index: Sequence[Index], value: Any) -> None:
        """Store an element, or a vector of them."""
        position = place.position(index)
        if not is_compound(place.elem):
            self._store(place.pointer, place.elem, position, value)
            return
        part, n, f = part_of(place.elem), self.lanes, self.f
        step = self._vector_step(position)
        if step == 1 and self.mask is None and is_complex(place.elem):
            re, im = (f.splat(v, n) for v in value)
            both = f.shuffle(re, [i // 2 + n * (i % 2) for i in range(2 * n)], im)
            f.store(both, self.address(place.pointer, part, position * 2))
            return
        for i, one in enumerate(value):
            self._store(place.pointer, part, position * len(value) + i, one)

    def store_row(self, place: Place, row: Sequence[tuple[Sequence[Index], Any]]) -> None:
        """Store vectors of elements, whose lanes belong to different rows.

        Where short rows follow one another in memory, the lanes are interleaved first.
        """
        f, n, lanes = self.f, len(row), self.lanes
        positions = [place.position(index) for index, _ in row]
        first = positions[0]
        neighbours = all((p - first).key() == Index.of(i).key() for i, p in enumerate(positions))
        known = self.mask is None or isinstance(self.mask, Mask)
        regular = neighbours and known and self._vector_step(first) == n > 1
        if not regular or is_compound(place.elem) or place.elem == "i1":
            for index, value in row:
                self.store(place, index, value)
            return
        values = [f.splat(f.convert(value, place.elem), lanes) for _, value in row]
        left = n * self._count()
        for start in range(0, left, lanes):
            out = self._interleaved(values, start)
            mask = mask_of(lanes, left - start) if left - start < lanes else None
            f.store(out, self.address(place.pointer, place.elem, first + start), mask)

    def _interleaved(self, values: list[Value], start: int) -> Value:
        """A vector of the elements from `start` on of rows that have an element in each value."""
        f, n, lanes = self.f, len(values), self.lanes
        places = [divmod(start + i, n) for i in range(lanes)]
        out = None
        for source, value in enumerate(values):
            own = [row if c == source else -1 for row, c in places]
            if out is None:
                out = f.shuffle(value, [max(row, 0) for row in own])
            elif max(own) >= 0:
                out = f.shuffle(out, [i if r < 0 else lanes + r for i, r in enumerate(own)], value)
        assert out is not None
        return out

    def _store(self, pointer: Value, elem: str, position: Index, value: Value) -> None:
        f = self.f
        value = f.convert(value, elem)
        step = self._vector_step(position)
        if step == 0:
            f.store(f.lane(value, 0), self.address(pointer, elem, position))
            return
        value = f.splat(value, self.lanes)
        if step == 1:
            address = self.address(pointer, elem, position)
            f.store(value, address, self.mask)
            return
        n, count = self.lanes, self._count()
        known = self.mask is None or isinstance(self.mask, Mask)
        offsets = self._offsets(position) if known else None
        if offsets is not None:
            used, low = offsets[:count], min(offsets[:count])
            if sorted(used) == [*range(low, low + count)]:  # neighbours in another order
                order = [used.index(low + i) for i in range(count)] + [0] * (n - count)
                address = self.address(pointer, elem, position + low)
                f.store(f.shuffle(value, order), address, self.mask)
                return
        if elem == "i1":
            value = f.convert(value, "u8")
        addresses = self._addresses(pointer, elem, position)
        name = f"llvm.masked.scatter.{suffix(value.elem, n)}.v{n}p0"
        f.declarations[name] = f"declare void @{name}({value.type}, <{n} x ptr>, <{n} x i1>)"
        size = bits_of(value.elem) // 8
        f.line(
            f"  call void @{name}({value!r}, <{n} x ptr> align {size} {addresses.name}, "
            f"<{n} x i1> {self._all_lanes().name})"
        )


def _selected(
    f: Function, loaded: list[Value], covers: list[tuple[int, int]], used: list[int], lanes: int
) -> Value:
    """Shuffle elements at some offsets out of vectors that cover them."""
    places = [
        next((w, o - at) for w, (at, n) in enumerate(covers) if 0 <= o - at < n) for o in used
    ]
    places += [(0, 0)] * (lanes - len(used))
    first, *others = loaded
    if not others:
        order = [at for _, at in places]
        return first if order == [*range(first.lanes)] else f.shuffle(first, order)
    out = f.shuffle(first, [at + lanes * (w == 1) for w, at in places], others[0])
    for number, vector in enumerate(others[1:], 2):
        order = [lanes + at if w == number else i for i, (w, at) in enumerate(places)]
        out = f.shuffle(out, order, vector)
    return out


class Ahead(Writer):
    """Computes addresses, and prefetches the data-dependent ones."""

    def _load(self, pointer, elem, position):
        if all(type(s) is not Symbol for s in position.terms):
            return super()._load(pointer, elem, position)
        f = self.f
        if self._vector_step(position) == 1:
            size = bits_of("u8" if elem == "i1" else elem) // 8
            first = self.address(pointer, elem, position)
            for line in range(0, self.lanes * size, tuning.CACHE_LINE):
                f.prefetch(f.offset(first, line, "i8"))
        # The value is not used.
        return constant(elem, 0)


def literal(node: Node) -> Any:
    """The value of a scalar constant."""
    if is_key(node.elem):
        return tuple(constant("u32", int(word)) for word in node.data.item())
    return literal_of(node.data, node.elem)


def literal_of(number: Any, elem: str) -> Any:
    if is_complex(elem):
        part, number = part_of(elem), complex(number)
        return constant(part, number.real), constant(part, number.imag)
    return constant(computed_in(elem), number)


def _depth(value: Any) -> int:
    if isinstance(value, tuple):
        return max(map(_depth, value), default=0)
    return value.depth


class DiscardedFunction(Function):
    """A function whose instructions are discarded, for probing which elements a kernel reads."""

    def emit(self, elem, lanes, text, operands):
        return Value("%", elem, lanes)

    def line(self, text, depth=None):
        pass

    def number(self, n):
        return Value("%", "i64") if is_dynamic(n) else super().number(n)


class Probe(Writer):
    """Records the positions that are loaded."""

    def __init__(self, places):
        super().__init__(DiscardedFunction("probe", ()), places)
        self.positions: list[Index] = []
        self.sizes: list[int] = []
        """Bytes of an element, for each of the positions."""
        self.mapped: dict[tuple, Any] = {}
        self.tested: list[Index] = []
        """Indices that conditions compare with the ends of an axis."""

    def at(self, node, index):
        mapped = node.kind is COMPUTE and node.key[0] == "map"
        if not mapped or node in self.registers or node in self.places:
            return super().at(node, index)
        # Only what it reads matters: its operands, at its own index.
        key = (node, *[i.key() for i in index])
        if key not in self.mapped:
            for x in node.operands:
                self.at(x, index if x.shape else [])
            self.mapped[key] = _unknown(node.elem)
        return self.mapped[key]

    def at_within(self, node, index, axis, inside):
        self.tested.append(index[axis])
        return self.at(node, index)

    def load(self, place, index):
        self.positions.append(place.position(index))
        self.sizes.append(size_of(place.elem))
        return _unknown(place.elem)


def _unknown(elem: str) -> Any:
    """A placeholder value."""
    if is_compound(elem):
        return (Value("%", part_of(elem)),) * parts(elem)
    return Value("%", computed_in(elem))


def on_stack(f: Function, elem: str, shape: tuple[int, ...]) -> Place:
    """Memory on the stack."""
    part = part_of(elem)
    count = math.prod(shape) * parts(elem)
    name = f.fresh()
    f.line(f"  {name} = alloca [{max(count, 1)} x {storage(part)}], align 64", 0)
    return Place(Value(name, "ptr"), elem, shape)
