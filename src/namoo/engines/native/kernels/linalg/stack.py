"""Stacks of small matrices: each lane of a vector computes one matrix.

As many matrices as there are lanes are loaded and transposed into a `Tile`, in which the same
element of all of them is one vector. Very small tiles are kept in registers, with unrolled loops;
others are on the thread's stack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import Function, Value, constant, mask_of, vector_type
from namoo.engines.native.ir.types import computed_in, is_complex, part_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer

Index = Value | int


def suits(shapes: Sequence[tuple[int, ...]], count: int) -> bool:
    """Whether matrices of these shapes are computed by the routines of this folder."""
    return count > 1 and max(max(shape) for shape in shapes) <= tuning.SMALL_MATRIX


class Cell:
    """A variable: LLVM keeps it in a register."""

    def __init__(self, w: StackWriter, elem: str):
        self.w = w
        self.known: Any = None
        self.slots = [] if w.unrolled else [w.allocate(part, 1) for part in w.parts(elem)]

    def get(self) -> Any:
        """The current value."""
        if self.w.unrolled:
            return self.known
        return self.w.joined([self.w.load(pointer, elem) for pointer, elem in self.slots])

    def set(self, value: Any) -> None:
        """Set the value."""
        self.known = value
        for (pointer, _), part in zip(self.slots, self.w.split(value), strict=False):
            self.w.f.store(self.w.wide(part), pointer)


class Tile:
    """A matrix in each lane."""

    def __init__(self, w: StackWriter, elem: str, rows: int, columns: int):
        self.w, self.elem, self.rows, self.columns = w, elem, rows, columns
        self.size = rows * columns
        self.values: dict[int, Any] = {}
        # Rows at a distance of a power of two would compete for a few cache sets.
        self.padded = not w.unrolled and columns >= 16 and not columns % 8
        self.pitch = columns + self.padded
        self.memory = (
            []
            if w.unrolled or not self.size
            else [w.allocate(part, rows * self.pitch) for part in w.parts(elem)]
        )

    def get(self, i: Index, j: Index = 0) -> Any:
        """An element of every lane's matrix."""
        return self._get(self._number(i, j))

    def put(self, i: Index, j: Index, value: Any) -> None:
        """Set an element of every lane's matrix."""
        self._put(self._number(i, j), value)

    def _number(self, i: Index, j: Index) -> Index:
        return self.w.plus(self.w.times(i, self.pitch), j)

    def element(self, number: Index) -> Any:
        """The element at a position, row by row."""
        return self._get(self._padded(number))

    def set_element(self, number: Index, value: Any) -> None:
        """Set the element at a position."""
        self._put(self._padded(number), value)

    def _padded(self, number: Index) -> Index:
        if not self.padded:
            return number
        f, i = self.w.f, self.w.index(number)
        return f.add(i, f.idiv(i, integer(self.columns)))

    def _get(self, number: Index) -> Any:
        if self.w.unrolled:
            return self.values[number]  # pyright: ignore[reportArgumentType]
        loaded = [
            self.w.load(self._address(pointer, elem, number), elem) for pointer, elem in self.memory
        ]
        return self.w.joined(loaded)

    def _put(self, number: Index, value: Any) -> None:
        if self.w.unrolled:
            self.values[number] = value  # pyright: ignore[reportArgumentType]
            return
        for (pointer, elem), part in zip(self.memory, self.w.split(value), strict=True):
            self.w.f.store(self.w.wide(part), self._address(pointer, elem, number))

    def _address(self, pointer: Value, elem: str, number: Index) -> Value:
        return self.w.f.offset(pointer, self.w.times(number, self.w.lanes), elem)

    def exchange_rows(self, i: Index, j: Value) -> None:
        """Exchange row i with row j[lane] > i of a tile in registers, in each lane."""
        w, f = self.w, self.w.f
        assert isinstance(i, int)
        for other in range(i + 1, self.rows):
            here = f.compare("eq", j, constant("i32", other))
            for column in range(self.columns):
                x, y = self.get(i, column), self.get(other, column)
                self.put(i, column, w.select(here, y, x))
                self.put(other, column, w.select(here, x, y))

    def exchange_in_lane(self, i: Index, j: Index, lane: Index) -> None:
        """Exchange two rows of the matrix of one lane, of a tile in memory."""
        for column in self.w.steps(0, self.columns):
            for pointer, elem in self.memory:
                x, y = (self._lane(pointer, elem, row, column, lane) for row in (i, j))
                one, other = (scalar(self.w.f, address, elem) for address in (x, y))
                self.w.f.store(other, x)
                self.w.f.store(one, y)

    def lane(self, i: Index, j: Index, lane: Index) -> Value:
        """An element of one lane's matrix, of a real tile in memory."""
        ((pointer, elem),) = self.memory
        return scalar(self.w.f, self._lane(pointer, elem, i, j, lane), elem)

    def _lane(self, pointer: Value, elem: str, i: Index, j: Index, lane: Index) -> Value:
        first = self._address(pointer, elem, self._number(i, j))
        return self.w.f.offset(first, lane, elem)


def scalar(f: Function, address: Value, elem: str) -> Value:
    """Load one element here; the load is not moved."""
    return f.emit_here(elem, 0, f"load {vector_type(elem, 0)}, ptr {address.name}, align 4")


class StackWriter:
    """Writes code for the lanes of one unit.

    Args:
        f: the function.
        elem: the type of elements.
        lanes: the number of matrices; 1 is computed with scalars.
        unrolled: whether tiles are in registers.
    """

    def __init__(self, f: Function, elem: str, lanes: int, unrolled: bool):
        self.f, self.elem, self.lanes, self.unrolled = f, elem, lanes, unrolled
        self.complex = is_complex(elem)
        self.part = computed_in(part_of(elem))
        self.vector = lanes if lanes > 1 else 0

    # Values.

    def parts(self, elem: str) -> list[str]:
        """The types in which an element's parts are computed."""
        return [computed_in(part_of(elem))] * (2 if is_complex(elem) else 1)

    @staticmethod
    def split(value: Any) -> tuple[Value, ...]:
        """The parts of a value."""
        return value if isinstance(value, tuple) else (value,)

    @staticmethod
    def joined(values: list[Value]) -> Any:
        """The value with these parts."""
        return tuple(values) if len(values) > 1 else values[0]

    def wide(self, value: Value) -> Value:
        """A value in all lanes."""
        return self.f.splat(value, self.vector) if self.vector else value

    def allocate(self, elem: str, count: int) -> tuple[Value, str]:
        """Memory on the stack for some vectors."""
        name = self.f.fresh()
        kind = f"[{count} x {vector_type(elem, self.vector)}]"
        self.f.preamble.append(f"  {name} = alloca {kind}, align 64")
        return Value(name, "ptr"), elem

    def load(self, address: Value, elem: str) -> Value:
        """Load a vector of lanes here; the load is not moved, because the memory changes."""
        kind = vector_type(elem, self.vector)
        size = max(4, int(elem[1:]) // 8)
        text = f"load {kind}, ptr {address.name}, align {size}"
        return self.f.emit_here(elem, self.vector, text)

    # Loops and indices.

    def plus(self, i: Index, j: Index) -> Index:
        """i + j"""
        if isinstance(i, int) and isinstance(j, int):
            return i + j
        return self.f.add(self.index(i), self.index(j))

    def minus(self, i: Index, j: Index) -> Index:
        """i - j"""
        if isinstance(i, int) and isinstance(j, int):
            return i - j
        return self.f.sub(self.index(i), self.index(j))

    def times(self, i: Index, factor: int) -> Index:
        """i · factor"""
        return i * factor if isinstance(i, int) else self.f.mul(i, integer(factor))

    @staticmethod
    def index(i: Index) -> Value:
        """An index as a value."""
        return integer(i) if isinstance(i, int) else i

    def steps(self, start: Index, stop: Index) -> Iterator[Index]:
        """Loop over a range, which may be empty: `for i in w.steps(0, n)`, without `break`."""
        if isinstance(start, int) and isinstance(stop, int) and (self.unrolled or stop <= start):
            yield from range(start, stop)
            return
        first, last = self.index(start), self.index(stop)
        if isinstance(start, int) and isinstance(stop, int):
            with self.f.loop(first, last) as i:
                yield i
            return
        with self.f.branch(self.f.compare("lt", first, last)), self.f.loop(first, last) as i:
            yield i

    def blocks(self, start: Index, stop: Index) -> Iterator[tuple[Index, int]]:
        """Split a range of independent work into blocks: the start and the length of each."""
        if self.unrolled:
            for i in self.steps(start, stop):
                yield i, 1
            return
        width = tuning.SMALL_MATRIX_ROWS
        first = self.index(start)
        whole = self.f.sub(self.index(stop), first)
        rest = self.f.irem(whole, integer(width))
        middle = self.f.sub(self.index(stop), rest)
        with (
            self.f.branch(self.f.compare("lt", first, middle)),
            self.f.loop(first, middle, width) as i,
        ):
            yield i, width
        for i in self.steps(middle, stop):
            yield i, 1

    # Arithmetic.

    def number(self, x: float) -> Any:
        """A constant."""
        one = self.wide(constant(self.part, x))
        return (one, self.wide(constant(self.part, 0.0))) if self.complex else one

    def add(self, x: Any, y: Any) -> Any:
        """x + y"""
        return ops.TABLE["add"](self.f, x, y)

    def sub(self, x: Any, y: Any) -> Any:
        """x - y"""
        return ops.TABLE["sub"](self.f, x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """x · y"""
        return ops.TABLE["mul"](self.f, x, y)

    def div(self, x: Any, y: Any) -> Any:
        """x / y"""
        return ops.TABLE["div"](self.f, x, y)

    def plus_product(self, z: Any, x: Any, y: Any) -> Any:
        """z + x y"""
        f = self.f
        if not self.complex:
            return f.muladd(x, y, z)
        (a, b), (c, d), (re, im) = x, y, z
        re = f.muladd(f.neg(b), d, f.muladd(a, c, re))
        return re, f.muladd(b, c, f.muladd(a, d, im))

    def less_product(self, z: Any, x: Any, y: Any) -> Any:
        """z - x y, rounded twice: as NumPy does, so that eager results are the same."""
        return self.sub(z, self.mul(x, y))

    def minus_product(self, z: Any, x: Any, y: Any) -> Any:
        """z - x y"""
        return self.plus_product(z, self.neg(x), y)

    def neg(self, x: Any) -> Any:
        """-x"""
        return self.joined([self.f.neg(part) for part in self.split(x)])

    def conj(self, x: Any) -> Any:
        """The complex conjugate."""
        return (x[0], self.f.neg(x[1])) if self.complex else x

    def real(self, x: Any) -> Value:
        """The real part."""
        return self.split(x)[0]

    def from_real(self, x: Value) -> Any:
        """A real number as an element."""
        return (x, self.wide(constant(self.part, 0.0))) if self.complex else x

    def scale(self, x: Any, factor: Value) -> Any:
        """x times a real number."""
        return self.joined([self.f.mul(part, factor) for part in self.split(x)])

    def squared(self, total: Value, x: Any) -> Value:
        """total + |x|²"""
        for part in self.split(x):
            total = self.f.muladd(part, part, total)
        return total

    def size(self, x: Any) -> Value:
        """|Re x| + |Im x|, which LAPACK compares pivots by."""
        sizes = [self.f.fabs(part) for part in self.split(x)]
        return sizes[0] if len(sizes) == 1 else self.f.add(*sizes)

    def select(self, condition: Value, x: Any, y: Any) -> Any:
        """x where a condition holds, else y."""
        pairs = zip(self.split(x), self.split(y), strict=True)
        return self.joined([self.f.select(condition, a, b) for a, b in pairs])


class StackRoutine(Routine):
    """A routine whose units are some matrices of a stack, one in each lane.

    Args:
        operands: stacks of matrices or vectors with equal leading axes.
        batch: the number of these axes.
    """

    def __init__(self, operands: Sequence[Node], batch: int):
        elem = operands[0].elem
        self.elem = elem
        self.count = math.prod(operands[0].shape[:batch])
        most = routine.lanes_of(elem)
        self.lanes = min(most, 1 << (self.count - 1).bit_length())
        self.units = -(-self.count // self.lanes)

    def writer(self, f: Function, size: int) -> StackWriter:
        """A writer for tiles of at most `size` elements."""
        unrolled = size <= tuning.UNROLLED_MATRIX
        return StackWriter(f, self.elem, self.lanes, unrolled)

    def load_matrices(self, w: StackWriter, place: Place, unit: Value, tile: Tile) -> None:
        """Load the matrices of a unit."""
        f, lanes = w.f, self.lanes
        starts = self._starts(w, unit, tile.size)

        def chunk(at: Index, count: int) -> None:
            mask = None if count == lanes else mask_of(lanes, count)
            rows = []
            for start in starts:
                position = f.add(start, w.index(at))
                rows.append(
                    w.split(routine.read(f, _now(f, place), place.elem, position, w.vector, mask))
                )
            parts = [routine.transposed(f, part) for part in zip(*rows, strict=True)]
            for c in range(count):
                value = w.joined([part[c] for part in parts])
                tile.set_element(w.plus(at, c), value)

        self._chunks(w, tile.size, chunk)

    def store_matrices(self, w: StackWriter, place: Place, unit: Value, tile: Tile) -> None:
        """Store the matrices of a unit."""
        f, lanes = w.f, self.lanes
        starts = self._starts(w, unit, tile.size)
        first = f.mul(unit, integer(lanes))

        def chunk(at: Index, count: int) -> None:
            values = [w.split(tile.element(w.plus(at, c))) for c in range(count)]
            values = [tuple(map(w.wide, value)) for value in values]
            values += [values[-1]] * (lanes - count)
            parts = [routine.transposed(f, part) for part in zip(*values, strict=True)]
            mask = None if count == lanes else mask_of(lanes, count)
            for r, start in enumerate(starts):
                value = w.joined([part[r] for part in parts])
                position = f.add(start, w.index(at))
                if not self.count % lanes:
                    routine.write(f, place.pointer, place.elem, position, value, mask)
                    continue
                there = f.compare("lt", f.add(first, integer(r)), integer(self.count))
                with f.branch(there):
                    pointer = routine.here(f, place.pointer)
                    routine.write(f, pointer, place.elem, position, value, mask)

        self._chunks(w, tile.size, chunk)

    def _starts(self, w: StackWriter, unit: Value, size: int) -> list[Value]:
        """The offsets of a unit's matrices; lanes beyond the last matrix repeat it."""
        f = w.f
        first, last = f.mul(unit, integer(self.lanes)), integer(self.count - 1)
        numbers = [f.minimum(f.add(first, integer(r)), last) for r in range(self.lanes)]
        return [f.mul(number, integer(size)) for number in numbers]

    def _chunks(self, w: StackWriter, size: int, chunk: Any) -> None:
        lanes = self.lanes
        whole = size // lanes * lanes
        if w.unrolled:
            for at in range(0, whole, lanes):
                chunk(at, lanes)
        elif whole:
            with w.f.loop(0, whole, lanes) as at:
                chunk(at, lanes)
        if whole < size:
            chunk(whole, size - whole)


def _now(f: Function, place: Place) -> Value:
    """The pointer of a place, for loads that are not moved."""
    return routine.here(f, place.pointer)
