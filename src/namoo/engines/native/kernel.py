"""One kernel: loops over a space of indices, in which values are computed and stored.

The space has *outer* axes, whose points are independent of one another, and *inner* ones, along
which reductions run.  Without reductions all axes are outer.  With them, a kernel is a sequence of
stages for each outer point: what needs the sum of a row comes in the stage after that sum.

Loads and stores are looked at first, with one variable an axis.  Axes that are contiguous in all
of them become one loop, and the axis along which most are contiguous becomes the vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from namoo.engines.native import ops
from namoo.engines.native.graph import COMPUTE, DOT, LITERAL, PART, REDUCE, Node
from namoo.engines.native.index import Index, Loop, Quotient, Symbol, unravel
from namoo.engines.native.ir import (
    Function,
    Value,
    bits_of,
    constant,
    storage,
    suffix,
    vector_type,
)
from namoo.engines.native.types import computed_in, is_complex, is_compound, is_key, part_of, parts

VECTOR_BYTES = 64
UNROLL = 4
# A row that one stage leaves for another stays on the stack up to this size in bytes.
ROW_LIMIT = 32768


class Place:
    """Where a node's elements lie: a pointer, and how many leading indices it does not need."""

    __slots__ = ("elem", "pointer", "shape", "skip")

    def __init__(self, pointer: Value, elem: str, shape: tuple[int, ...], skip: int = 0):
        self.pointer = pointer
        self.elem = elem
        self.shape = shape
        self.skip = skip

    def position(self, index: Sequence[Index]) -> Index:
        """The element's number in memory."""
        total, stride = Index({}), 1
        for i, n in zip(reversed(index[self.skip :]), reversed(self.shape), strict=True):
            if n > 1:
                total = total + i * stride
            stride *= n
        return total


class Writer:
    """Computes nodes at indices: what the function of a `compute` node gets as `k`."""

    def __init__(self, f: Function, places: dict[Node, Place]):
        self.f = f
        self.places = places
        self.registers: dict[Node, Any] = {}
        """Values that are at hand: sums of the current row, for one."""
        self.lanes = 0
        self.mask: Value | None = None

    # ---- values

    def at(self, node: Node, index: Sequence[Index]) -> Any:
        """The element of a node at an index: computed here, or loaded."""
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
        if node.kind is COMPUTE:
            value = node.fn(self, list(index))  # type: ignore[misc]
        else:
            value = self.unrolled(node, index)
        levels[_depth(value)].memo[key] = value
        return value

    def unrolled(self, node: Node, index: Sequence[Index]) -> Any:
        """An element of a small reduction or contraction, written out."""
        if node.kind is PART:
            return self.at(node.operands[0], index)[node.data]
        if node.kind is REDUCE:
            return self._unrolled_reduction(node, index)
        assert node.kind is DOT
        return self._unrolled_dot(node, index)

    def _unrolled_reduction(self, node, index):
        reduction = node.data
        shape = node.operands[0].shape
        axes = [shape[i] for i in reduction.axes]
        rows = []
        for position in range(math.prod(axes)):
            inner = iter(unravel(Index.of(position), tuple(axes)))
            outer = iter(index)
            at = [next(inner) if i in reduction.axes else next(outer) for i in range(len(shape))]
            rows.append(tuple(self.at(x, at) for x in node.operands))
        while len(rows) > 1:
            rows = [
                reduction.combine(self.f, rows[i], rows[i + 1]) if i + 1 < len(rows) else rows[i]
                for i in range(0, len(rows), 2)
            ]
        return rows[0] if len(node.operands) > 1 else rows[0][0]

    def _unrolled_dot(self, node, index):
        x, y = node.operands
        (cx, cy), (bx, by) = node.data.contract, node.data.batch
        free = iter(index)
        batch = [next(free) for _ in bx]
        sides = []
        for operand, contracted, batched in ((x, cx, bx), (y, cy, by)):
            at: list[Any] = [None] * len(operand.shape)
            for i, b in zip(batched, batch, strict=True):
                at[i] = b
            for i in range(len(at)):
                if at[i] is None and i not in contracted:
                    at[i] = next(free)
            sides.append(at)
        sizes = tuple(x.shape[i] for i in cx)
        total = None
        for position in range(math.prod(sizes)):
            for i, j, at in zip(cx, cy, unravel(Index.of(position), sizes), strict=True):
                sides[0][i] = sides[1][j] = at
            a = self._in(self.at(x, sides[0]), node)
            b = self._in(self.at(y, sides[1]), node)
            if total is None:
                total = ops.mul(self.f, a, b)
            elif isinstance(a, tuple) or a.elem[0] != "f":
                total = ops.TABLE["add"](self.f, total, ops.mul(self.f, a, b))
            else:
                total = self.f.fma(a, b, total)
        return literal_of(0, node.elem) if total is None else total

    def _in(self, value, node):
        return ops.convert(self.f, value, elem=computed_in(node.elem))

    # ---- indices

    def symbol(self, value: Value, low: int, high: int) -> Index:
        """A computed integer as an index; it must lie within `low` and `high`."""
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
            values.append(f.mul(value, constant("i64", factor)))
        values.sort(key=lambda v: (v.depth, v.lanes))
        total = constant("i64", index.constant)
        for value in values:
            total = f.add(total, value)
        return total

    def _symbol(self, symbol: Symbol, lanes: bool) -> Value:
        f = self.f
        if isinstance(symbol, Quotient):
            base = self._sum(symbol.base, lanes)
            low, high = symbol.base.range()
            n = symbol.divisor
            if low < 0:  # make it positive: the quotient of a shifted number is shifted
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

    def choose(self, condition: Value, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`; of complex values too."""
        return ops.choose(self.f, condition, x, y)

    def start(self, node: Node, last: int) -> Index:
        """A scalar node as the start of a slice: moved into [0, last]."""
        if last == 0:
            return Index.of(0)
        value = self.f.convert(self.at(node, []), "i64")
        if value.constant is not None:
            return Index.of(min(max(value.constant, 0), last))
        value = self.f.minimum(self.f.maximum(value, constant("i64", 0)), constant("i64", last))
        return self.symbol(value, 0, last)

    def within(self, index: Index, low: int, high: int) -> Value | None:
        """Whether an index is in [low, high); None if that is always so."""
        least, greatest = index.range()
        conditions = []
        if least < low:
            conditions.append(("ge", low))
        if greatest >= high:
            conditions.append(("lt", high))
        if not conditions:
            return None
        value = self.integer(index)
        out = None
        for relation, bound in conditions:
            holds = self.f.compare(relation, value, constant("i64", bound))
            if value.constant is not None and not value.lanes:
                number = value.constant
                holds = constant("i1", number >= bound if relation == "ge" else number < bound)
            out = holds if out is None else self.f.and_(out, holds)
        return out

    def clamp(self, index: Index, low: int, high: int) -> Index:
        """The nearest index in [low, high]."""
        least, greatest = index.range()
        if low <= least and greatest <= high:
            return index
        if not index.terms:
            return Index.of(min(max(index.constant, low), high))
        value = self.integer(index)
        if least < low:
            value = self.f.maximum(value, constant("i64", low))
        if greatest > high:
            value = self.f.minimum(value, constant("i64", high))
        return self.symbol(value, low, high)

    # ---- memory

    def _vector_step(self, position: Index) -> int | None:
        """By how much the position grows from lane to lane; None where that is irregular."""
        step = 0
        for symbol, factor in position.terms.items():
            if symbol.vector:
                if not isinstance(symbol, Loop):
                    return None
                step = factor
        return step

    def load(self, place: Place, index: Sequence[Index]) -> Any:
        """Read an element, or as many as there are lanes."""
        if is_compound(place.elem):
            return self._load_parts(place, index)
        value = self._load(place.pointer, place.elem, place.position(index))
        return self.f.convert(value, computed_in(place.elem))

    def _load(self, pointer: Value, elem: str, position: Index) -> Value:
        f = self.f
        step = self._vector_step(position)
        if step == 0:
            return f.load(f.offset(pointer, self._sum(position, False), elem), elem)
        if step == 1:
            address = f.offset(pointer, self._sum(position, False), elem)
            return f.load(address, elem, self.lanes, self.mask)
        if step == -1 and self.mask is None:
            first = position - (self.lanes - 1)
            address = f.offset(pointer, self._sum(first, False), elem)
            return f.shuffle(f.load(address, elem, self.lanes), range(self.lanes)[::-1])
        return self._gather(pointer, elem, position)

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
            address = f.offset(place.pointer, self._sum(position, False), part)
            both = f.load(address, part, count * n)
            return tuple(f.shuffle(both, range(i, count * n, count)) for i in range(count))
        return tuple(self._load(place.pointer, part, position + i) for i in range(count))

    def store(self, place: Place, index: Sequence[Index], value: Any) -> None:
        """Write an element, or as many as there are lanes."""
        position = place.position(index)
        if not is_compound(place.elem):
            self._store(place.pointer, place.elem, position, value)
            return
        part, n, f = part_of(place.elem), self.lanes, self.f
        step = self._vector_step(position)
        if step == 1 and self.mask is None and is_complex(place.elem):
            re, im = (f.splat(v, n) for v in value)
            both = f.shuffle(re, [i // 2 + n * (i % 2) for i in range(2 * n)], im)
            f.store(both, f.offset(place.pointer, self._sum(position * 2, False), part))
            return
        for i, one in enumerate(value):
            self._store(place.pointer, part, position * len(value) + i, one)

    def _store(self, pointer: Value, elem: str, position: Index, value: Value) -> None:
        f = self.f
        value = f.convert(value, elem)
        step = self._vector_step(position)
        if step == 0:
            f.store(f.lane(value, 0), f.offset(pointer, self._sum(position, False), elem))
            return
        value = f.splat(value, self.lanes)
        if step == 1:
            address = f.offset(pointer, self._sum(position, False), elem)
            f.store(value, address, self.mask)
            return
        if elem == "i1":
            value = f.convert(value, "u8")
        n = self.lanes
        addresses = self._addresses(pointer, elem, position)
        name = f"llvm.masked.scatter.{suffix(value.elem, n)}.v{n}p0"
        f.declarations[name] = f"declare void @{name}({value.type}, <{n} x ptr>, <{n} x i1>)"
        size = bits_of(value.elem) // 8
        f.line(
            f"  call void @{name}({value!r}, <{n} x ptr> align {size} {addresses.name}, "
            f"<{n} x i1> {self._all_lanes().name})"
        )


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


class _Nowhere(Function):
    """Takes operations and forgets them: to see which elements a kernel touches."""

    def emit(self, elem, lanes, text, operands):
        return Value("%", elem, lanes)

    def line(self, text, depth=None):
        pass


class _Probe(Writer):
    """Notes the positions that are loaded."""

    def __init__(self, places):
        super().__init__(_Nowhere("probe", ()), places)
        self.positions: list[Index] = []

    def load(self, place, index):
        self.positions.append(place.position(index))
        if is_compound(place.elem):
            return (Value("%", part_of(place.elem)),) * parts(place.elem)
        return Value("%", computed_in(place.elem))


class Spec:
    """What a kernel computes: `roots`, in an order in which they can be; some are stored.

    `space` are the sizes of its axes, the first `split` of them outer.
    """

    __slots__ = ("inputs", "roots", "space", "split", "stored")

    def __init__(self, roots, stored, inputs, space, split):
        self.roots: list[Node] = roots
        self.stored: list[Node] = stored
        self.inputs: list[Node] = inputs
        self.space: tuple[int, ...] = space
        self.split: int = split

    def key(self) -> Any:
        """Equal keys mean equal code: nodes by their place in this kernel, not by number."""
        names: dict[Node, int] = {}
        rows: list[Any] = [self.space, self.split]

        def name(node: Node) -> int:
            if node in names:
                return names[node]
            if node.kind is LITERAL:
                row = (node.kind, node.shape, node.dtype, node.key)
            elif node in inputs:  # how it was computed does not matter
                row = ("input", node.shape, node.dtype)
            else:
                row = (node.kind, node.key, node.shape, node.dtype, tuple(map(name, node.operands)))
            names[node] = len(names)
            rows.append((names[node], row))
            return names[node]

        inputs = set(self.inputs)
        order = [name(r) for r in self.roots]
        rows += [tuple(order), tuple(names[r] for r in self.stored)]
        rows += [tuple(names[n] for n in self.inputs if n in names)]
        return tuple(rows)


class Emitted:
    """A kernel's code.  It is called with pointers and a range of its `units`."""

    __slots__ = ("declarations", "name", "text", "units", "work")

    def __init__(self, name: str, text: str, declarations: dict[str, str], units: int, work: int):
        self.name = name
        self.text = text
        self.declarations = declarations
        self.units = units
        self.work = work


def reduction_axes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the axes that a reduction keeps, and of those it runs along."""
    shape, axes = node.operands[0].shape, node.data.axes
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    return kept, tuple(shape[i] for i in axes)


class KernelEmitter:
    """Writes the code of one `Spec`."""

    def __init__(self, spec: Spec, name: str):
        self.spec = spec
        self.name = name
        self.levels = self._stage_numbers()
        self.stages = sorted(set(self.levels.values()))

    def _stage_numbers(self) -> dict[Node, int]:
        """The stage of each root: after those of the reductions it needs."""
        roots = set(self.spec.roots)
        numbers: dict[Node, int] = {}
        inputs = set(self.spec.inputs)
        seen: dict[Node, int] = {}

        def stage(node: Node) -> int:
            if node in inputs or node.kind is LITERAL:
                return 0
            if node not in seen:
                seen[node] = max((finished(x) for x in node.operands), default=0)
            return seen[node]

        def finished(node: Node) -> int:
            return stage(node) + (node.kind is REDUCE and node in roots)

        for root in self.spec.roots:
            numbers[root] = stage(root)
        return numbers

    # ---- looking

    def _index_of(self, root: Node, outer: list[Index], inner: list[Index]) -> list[Index]:
        space = self.spec.space
        if root.shape == space:
            return outer + inner
        sizes = [n for n in space[: self.spec.split]]
        at = [i for i, n in zip(outer, sizes, strict=True) if n > 1]
        rest = iter(at)
        return [next(rest) if n > 1 else Index.of(0) for n in root.shape]

    @staticmethod
    def _operand_index(node: Node, outer: list[Index], inner: list[Index]) -> list[Index]:
        o, i = iter(outer), iter(inner)
        axes = node.data.axes
        return [next(i) if d in axes else next(o) for d in range(len(node.operands[0].shape))]

    def _look(self) -> tuple[list[Index], list[Index], list[Symbol]]:
        """Positions of loads and of stores, in terms of one symbol an axis."""
        nowhere = Value("%p", "ptr")
        places = {n: Place(nowhere, n.elem, n.shape) for n in self.spec.inputs}
        probe = _Probe(places)
        symbols: list[Symbol] = [Loop(Value("%i", "i64"), 0, n - 1) for n in self.spec.space]
        index = [Index.of(s) for s in symbols]
        outer, inner = index[: self.spec.split], index[self.spec.split :]
        stores = []
        for root in self.spec.roots:
            if root.kind is REDUCE:
                at = self._operand_index(root, outer, inner)
                for x in root.operands:
                    probe.at(x, at)
                value = tuple(_dummy(x) for x in root.operands)
                probe.registers[root] = value if len(value) > 1 else value[0]
            else:
                at = self._index_of(root, outer, inner)
                probe.registers[root] = probe.at(root, at)
            if root in self.spec.stored:
                stores.append(Place(nowhere, root.elem, root.shape).position(
                    outer if root.kind is REDUCE else self._index_of(root, outer, inner)))  # fmt: skip
        return probe.positions, stores, symbols

    def _merge(self, positions, symbols) -> list[list[int]]:
        """Groups of neighbouring axes that are one axis wherever memory is touched."""
        indices = list(positions)
        for position in indices:
            indices += [s.base for s in position.terms if isinstance(s, Quotient)]
        sizes, groups = self.spec.space, []
        for axis in range(len(sizes)):
            if sizes[axis] == 1:
                continue
            if groups and (groups[-1][-1] < self.spec.split) == (axis < self.spec.split):
                a, b = symbols[groups[-1][-1]], symbols[axis]
                if all(p.terms.get(a, 0) == p.terms.get(b, 0) * sizes[axis] for p in indices):
                    groups[-1].append(axis)
                    continue
            groups.append([axis])
        return groups

    def _choose_vector(self, groups, loads, stores, symbols) -> int | None:
        """The group of axes that becomes the vector."""
        best, chosen = 0.0, None
        space, split = self.spec.space, self.spec.split
        # Rows that stay on the stack between stages are one row, not one a lane.
        hidden = any(r.shape == space and r not in self.spec.stored for r in self.spec.roots)
        for g, group in enumerate(groups):
            if hidden and split < len(space) and group[-1] < split:
                continue
            symbol = symbols[group[-1]]
            size = math.prod(space[a] for a in group)
            score = 0.0
            for weight, positions in ((1.0, loads), (2.0, stores)):
                for p in positions:
                    irregular = any(
                        isinstance(s, Quotient) and symbol in _symbols(s.base) for s in p.terms
                    )
                    step = p.terms.get(symbol, 0)
                    if irregular:
                        score -= weight
                    elif step == 1:
                        score += weight
                    elif step == 0:
                        score += 0.25 * weight
                    else:
                        score -= weight
            # Most of a short vector is empty.
            score = (score + 0.01 * g + 8) * min(size, 16)
            if score > best:
                best, chosen = score, g
        return chosen

    # ---- writing

    def emit(self) -> Emitted:
        spec = self.spec
        loads, stores, symbols = self._look()
        groups = self._merge(loads + stores, symbols)
        vector = self._choose_vector(groups, loads, stores, symbols)
        sizes = [math.prod(spec.space[a] for a in group) for group in groups]
        outer = [g for g, group in enumerate(groups) if group[-1] < spec.split]
        inner = [g for g in range(len(groups)) if g not in outer]
        for section in (outer, inner):
            if vector in section:
                section.remove(vector)
                section.append(vector)
        f = self.f = Function(self.name, ["ptr", "i64", "i64"])
        self.groups, self.sizes = groups, sizes
        self.vector_group = vector
        self.lanes = self._lanes(sizes[vector]) if vector is not None else 0
        self.symbols: dict[int, Any] = {}
        table, self.begin, self.end = f.parameters
        places = {}
        for i, node in enumerate([*spec.inputs, *spec.stored]):
            slot = f.offset(table, i, "ptr")
            places.setdefault(node, Place(f.load(slot, "ptr"), node.elem, node.shape))
        self.targets = {n: places[n] for n in spec.stored}
        self.w = Writer(f, {n: places[n] for n in spec.inputs})
        self.w.lanes = self.lanes
        self.units = 1
        self._outer(outer, inner, first=True)
        f.line("  ret void")
        work = math.prod(spec.space) * max(1, sum(n.cost for n in self._computed()))
        return Emitted(self.name, f.text(), f.declarations, self.units, work)

    def _computed(self):
        seen, stack, inputs = set(), list(self.spec.roots), set(self.spec.inputs)
        while stack:
            node = stack.pop()
            if node not in seen and node not in inputs:
                seen.add(node)
                stack += node.operands
        return seen

    def _lanes(self, size: int) -> int:
        widest = 1
        for node in (*self._computed(), *self.spec.inputs):
            elem = computed_in(node.elem) if node.elem else "f64"
            width = bits_of(part_of(elem))
            widest = max(widest, width // 8)
        lanes = min(16, VECTOR_BYTES // max(widest, 4))
        while lanes // 2 >= size and lanes > 2:
            lanes //= 2
        return lanes

    def _outer(self, loops: list[int], inner: list[int], first: bool = False) -> None:
        """Open the loops of the outer axes, then run the stages."""
        if not loops:
            self._row(inner)
            return
        g, f = loops[0], self.f
        n = self.sizes[g]
        if g != self.vector_group:
            start, stop = (self.begin, self.end) if first else (constant("i64", 0), n)
            if first:
                self.units = n
            with f.loop(start, stop) as i:
                self.symbols[g] = Loop(i, 0, n - 1)
                self._outer(loops[1:], inner)
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
                self._row(inner)
        if rest:
            with ExitStack() as stack:
                if first:
                    last = f.compare("eq", self.end, constant("i64", self.units))
                    stack.enter_context(f.branch(last))
                self.symbols[g] = Loop(constant("i64", main), main, n - 1, vector=True)
                self.w.mask = mask_of(lanes, rest)
                self._row(inner)
                self.w.mask = None

    def _indices(self) -> list[Index]:
        """The index of each axis of the space, from the loops that are open."""
        out: list[Any] = [Index.of(0)] * len(self.spec.space)
        for g, symbol in self.symbols.items():
            group = self.groups[g]
            parts = unravel(_of_loop(symbol), tuple(self.spec.space[a] for a in group))
            for axis, part in zip(group, parts, strict=True):
                out[axis] = part
        return out

    def _row(self, inner: list[int]) -> None:
        """All stages of one outer point (or of as many as there are lanes)."""
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
            for root in roots:
                if root not in rows:
                    index = self._index_of(root, self._indices()[: spec.split], [])
                    self._put(root, index, w.at(root, index))

    def _put(self, root: Node, index: list[Index], value: Any) -> None:
        if root in self.targets:
            self.w.store(self.targets[root], index, value)

    def _body(self, roots: list[Node]) -> None:
        """Compute and store elementwise roots at the current index."""
        index = self._indices()
        split = self.spec.split
        for root in roots:
            at = self._index_of(root, index[:split], index[split:])
            self._put(root, at, self.w.at(root, at))

    def _sweep(self, roots: list[Node], inner: list[int]) -> None:
        """Run along the inner axes: sums grow, elementwise roots are stored."""
        f, w = self.f, self.w
        reductions = [r for r in roots if r.kind is REDUCE]
        plain = [r for r in roots if r.kind is not REDUCE]
        kept = self._rows_kept(plain)
        accumulators = [
            _Accumulator(r, self.lanes if self.vector_group is not None else 0) for r in reductions
        ]

        def point(values: list[Any]) -> list[Any]:
            index = self._indices()
            split = self.spec.split
            for root in plain:
                at = index
                value = w.at(root, at)
                self._put(root, at, value)
                if root in kept and root not in self.targets:
                    w.store(kept[root], at, value)
            out = []
            for a, value in zip(accumulators, values, strict=True):
                at = self._operand_index(a.node, index[:split], index[split:])
                new = tuple(w.at(x, at) for x in a.node.operands)
                out.append(a.join(f, value, new, w.mask if self._inner_vector(inner) else None))
            return out

        lanes = self.lanes if self.vector_group is not None else 0
        initial = [a.initial(lanes) for a in accumulators]
        finals = self._loops(inner, initial, point, accumulators)
        for a, value in zip(accumulators, finals, strict=True):
            if self._inner_vector(inner):
                value = a.folded(f, value)
            value = value if len(value) > 1 else value[0]
            w.registers[a.node] = value
            index = self._indices()[: self.spec.split]
            if a.node in self.targets:
                self._put(a.node, index, value)
        for root, place in kept.items():
            w.places[root] = place

    def _inner_vector(self, inner: list[int]) -> bool:
        return self.vector_group in inner

    def _rows_kept(self, plain: list[Node]) -> dict[Node, Place]:
        """Elementwise roots that later stages read again, and where they are until then."""
        if not plain:
            return {}
        stage = self.levels[plain[0]]
        later = {r for r in self.spec.roots if self.levels[r] > stage}
        needed = _reached(later, set(self.spec.inputs))
        kept = {}
        for root in plain:
            if root not in needed:
                continue
            place = self.targets[root] if root in self.targets else self._row_buffer(root)
            # Its values are of this row: reading them is not to be moved out of the outer loops.
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

    def _loops(self, inner, values, point, accumulators) -> list[Any]:
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
                outs = self._loops(inner[1:], phis, point, accumulators)
                outs = _carried(f, phis, outs)
            del self.symbols[g]
            return outs
        vector = g == self.vector_group
        step = self.lanes if vector else 1
        whole = n // step
        turns, extra = divmod(whole, UNROLL)
        if turns <= 1:
            turns, extra = 0, whole
        tracks = [values] + [
            [a.initial(self.lanes) for a in accumulators] for _ in range(min(UNROLL, whole) - 1)
        ]
        if turns:
            with f.loop(0, turns * UNROLL * step, UNROLL * step) as i:
                phis = [[tuple(f.carry(v) for v in value) for value in t] for t in tracks]
                base = Loop(i, 0, (turns - 1) * UNROLL * step + step - 1, vector)
                outs = []
                for u, track in enumerate(phis):
                    self.symbols[g] = _Shifted(base, u * step)
                    outs.append(point(track))
                tracks = [_carried(f, p, o) for p, o in zip(phis, outs, strict=True)]
        for u in range(extra):
            at = (turns * UNROLL + u) * step
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
            tracks = [
                [a.pair(f, x, y) for a, x, y in zip(accumulators, tracks[i], tracks[i + half], strict=True)]
                if i + half < len(tracks) else tracks[i]
                for i in range(half)
            ]  # fmt: skip
        return tracks[0]


class _Shifted:
    """A loop variable plus a constant: one of the copies of an unrolled body."""

    def __init__(self, base: Loop, shift: int):
        self.index = Index({base: 1}, shift)


def _of_loop(symbol: Any) -> Index:
    if isinstance(symbol, _Shifted):
        return symbol.index
    if isinstance(symbol, Loop) and symbol.vector:
        # Even where its range is one point, the lanes are others.
        return Index({symbol: 1})
    return Index.of(symbol)


class _Accumulator:
    """A reduction in progress: as many values as it has results, each perhaps a vector."""

    def __init__(self, node: Node, lanes: int):
        self.node = node
        self.reduction = node.data

    def initial(self, lanes: int) -> Any:
        out = []
        for x, identity in zip(self.node.operands, self.reduction.identity, strict=True):
            value = literal_of(identity, x.elem)
            out += value if isinstance(value, tuple) else [value]
        return tuple(Value(f"splat ({v!r})", v.elem, lanes) if lanes else v for v in out)

    def _group(self, flat: tuple) -> tuple:
        """Flat parts as one value an operand: pairs for complex ones."""
        parts = iter(flat)
        return tuple(
            (next(parts), next(parts)) if is_complex(x.elem) else next(parts)
            for x in self.node.operands
        )

    def pair(self, f: Function, x: tuple, y: tuple) -> tuple:
        return _flat(self.reduction.combine(f, self._group(x), self._group(y)))

    def join(self, f: Function, total: tuple, new: tuple, mask: Value | None) -> tuple:
        combined = self.pair(f, total, _flat(new))
        lanes = total[0].lanes
        combined = tuple(f.splat(v, lanes) for v in combined) if lanes else combined
        if mask is None:
            return combined
        return tuple(f.select(mask, c, t) for c, t in zip(combined, total, strict=True))

    def folded(self, f: Function, value: tuple) -> tuple:
        """One element, from the lanes of a vector: halves with halves."""
        while value[0].lanes > 1:
            half = value[0].lanes // 2
            low = tuple(f.shuffle(v, range(half)) for v in value)
            high = tuple(f.shuffle(v, range(half, 2 * half)) for v in value)
            value = self.pair(f, low, high)
        return self._group(tuple(f.lane(v, 0) for v in value))


def _flat(values: tuple) -> tuple:
    out: list[Value] = []
    for v in values:
        out += v if isinstance(v, tuple) else [v]
    return tuple(out)


def _carried(f: Function, phis: list[tuple], outs: list[tuple]) -> list[tuple]:
    return [
        tuple(f.carried(p, o) for p, o in zip(phi, out, strict=True))
        for phi, out in zip(phis, outs, strict=True)
    ]


def _dummy(node: Node) -> Any:
    if is_compound(node.elem):
        return (Value("%", part_of(node.elem)),) * parts(node.elem)
    return Value("%", computed_in(node.elem))


def mask_of(lanes: int, count: int) -> Value:
    bits = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes))
    return Value(f"<{bits}>", "i1", lanes)


def _symbols(index: Index) -> set[Symbol]:
    out = set()
    for s in index.terms:
        out |= {s} | (_symbols(s.base) if isinstance(s, Quotient) else set())
    return out


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
