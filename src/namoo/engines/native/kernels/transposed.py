"""Loops over tiles, for kernels that read across the lines of memory that they write along.

A vector along such an axis would be gathered from as many cache lines as it has lanes. Where the
elements beside those belong to the next rows of the result, a square of them is loaded as vectors
along the lines, and transposed in registers.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from namoo.engines.native import tuning
from namoo.engines.native.ir.function import Function, Value, constant, mask_of
from namoo.engines.native.ir.index import Index, Loop, Quotient, Symbol
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place, Writer, on_stack
from namoo.engines.native.kernels.routine import integer

if TYPE_CHECKING:
    from namoo.engines.native.kernels.elementwise import KernelEmitter


class Square:
    """Loads of the rows from `row` on, as many as a vector has lanes.

    Attributes:
        number: the row, counted from the first one, that is being computed.
    """

    def __init__(self, w: Writer, row: Loop):
        self.w, self.row = w, row
        self.number = 0
        self.known: dict[tuple, Any] = {}
        """What was loaded for all rows, by the position in the first one."""

    def load(self, pointer: Value, elem: str, position: Index, step: int) -> Value | None:
        """A vector of the current row; None if the rows are not contiguous there."""
        w, f = self.w, self.w.f
        if position.terms.get(self.row) != 1 or any(
            s is not self.row and _depends(s, self.row) for s in position.terms
        ):
            return None
        first = position + -self.number
        key = (pointer.name, elem, first.key())
        if key not in self.known:
            stored = "u8" if elem == "i1" else elem
            lines = [
                f.load(w.address(pointer, elem, first + lane * step), stored, w.lanes)
                for lane in range(w.lanes)
            ]
            self.known[key] = routine.transposed(f, lines)
        return f.convert(self.known[key][self.number], elem)


class Strip(Square):
    """Loads of a strip of such rows, which is transposed into memory on the stack.

    Rows of the result that are a multiple of a page apart compete for a few cache sets, so each is
    written for many columns at once.

    Args:
        w: writes the kernel.
        row: the first row.
        rows: the number of rows.
        start, stop: the range of columns.
    """

    def __init__(self, w: Writer, row: Loop, rows: Value, start: Value, stop: Value):
        super().__init__(w, row)
        self.rows = rows
        self.start, self.stop, self.depth = start, stop, w.f.depth
        self.inner: Loop
        """The loop over the rows, counted from the first one."""
        self.column: Loop

    def load(self, pointer: Value, elem: str, position: Index, step: int) -> Value | None:
        w, f, own = self.w, self.w.f, (self.row, self.inner)
        if any(position.terms.get(s) != 1 for s in own) or any(
            _depends(s, on) for s in position.terms for on in (*own, self.column)
        ):
            return None
        stored = "u8" if elem == "i1" else elem
        terms = {s: n for s, n in position.terms.items() if s not in (self.inner, self.column)}
        first = Index(terms, position.constant)
        key = (pointer.name, elem, first.key(), step)
        if key not in self.known:
            place = on_stack(f, stored, (tuning.CACHE_LINE, tuning.STRIP_COLUMNS))
            # The strip is filled before the loops over it, which are being written.
            inside = f.levels[self.depth + 1 :]
            del f.levels[self.depth + 1 :]
            with (
                f.loop(self.start, self.stop, w.lanes) as column,
                f.loop(0, self.rows, w.lanes) as r,
            ):
                across = Loop(column, 0, self.column.high)
                at = first + Index({across: step, Loop(r, 0, self.inner.high): 1})
                lines = [
                    f.load(w.address(pointer, elem, at + lane * step), stored, w.lanes)
                    for lane in range(w.lanes)
                ]
                for number, line in enumerate(routine.transposed(f, lines)):
                    f.store(line, self._address(place, f.add(r, integer(number)), column))
            f.levels += inside
            self.known[key] = place
        address = self._address(self.known[key], self.inner.value, self.column.value)
        return f.convert(f.load(address, stored, w.lanes), elem)

    def _address(self, place: Place, number: Value, column: Value) -> Value:
        f = self.w.f
        at = f.add(f.mul(number, integer(tuning.STRIP_COLUMNS)), f.sub(column, self.start))
        return f.offset(place.pointer, at, place.elem)


def _depends(symbol: Symbol, on: Symbol) -> bool:
    if isinstance(symbol, Quotient):
        return any(s is on or _depends(s, on) for s in symbol.base.terms)
    return False


def tiles(kernel: KernelEmitter, first: bool, square: bool, strips: bool) -> None:
    """The last two loops, tiled so that a tile touches few cache lines.

    Args:
        kernel: the kernel; its group `tiled` is the loop outside of the vector's.
        first: whether these are all of its loops.
        square: transpose squares of as many rows as a vector has lanes.
        strips: transpose strips of so many rows.
    """
    f, g, vector = kernel.f, kernel.tiled, kernel.vector_group
    assert g is not None and vector is not None
    rows, columns, lanes = kernel.sizes[g], kernel.sizes[vector], kernel.lanes
    height = lanes if square else 1
    whole_rows, whole_columns = rows // height * height, columns // lanes * lanes
    wide = tuning.STRIP_COLUMNS if strips else max(lanes, kernel.tile_width)
    high = tuning.CACHE_LINE
    start, stop = constant("i64", 0), constant("i64", rows)
    if first:
        kernel.units = -(-rows // high)
        start = f.mul(kernel.begin, constant("i64", high))
        stop = f.minimum(f.mul(kernel.end, constant("i64", high)), stop)

    def columns_left(i: Loop) -> None:
        if columns % lanes:
            kernel.symbols[g] = i
            at = constant("i64", whole_columns)
            kernel.symbols[vector] = Loop(at, whole_columns, columns - 1, vector=True)
            kernel.w.mask = mask_of(lanes, columns % lanes)
            kernel.row([])
            kernel.w.mask = None

    with ExitStack() as stack:
        end = stop
        if whole_rows < rows:
            end = f.minimum(stop, constant("i64", whole_rows))
            stack.enter_context(f.branch(f.compare("lt", start, end)))
        top = stack.enter_context(f.loop(start, end, high))
        bottom = _upto(f, top, high, end)
        if whole_columns:
            with f.loop(0, whole_columns, wide) as left:
                right = _upto(f, left, wide, constant("i64", whole_columns))
                if strips:
                    row, count = Loop(top, 0, whole_rows - 1), f.sub(bottom, top)
                    strip = kernel.w.square = Strip(kernel.w, row, count, left, right)
                    with f.loop(0, count) as r, f.loop(left, right, lanes) as j:
                        strip.inner = Loop(r, 0, high - 1)
                        strip.column = Loop(j, 0, columns - 1, vector=True)
                        kernel.symbols[vector] = strip.column
                        kernel.symbols[g] = Index({row: 1, strip.inner: 1})
                        kernel.row([])
                else:
                    with f.loop(top, bottom, height) as i, f.loop(left, right, lanes) as j:
                        row = Loop(i, 0, rows - height)
                        kernel.symbols[vector] = Loop(j, 0, columns - 1, vector=True)
                        kernel.w.square = Square(kernel.w, row) if square else None
                        for number in range(height):
                            if kernel.w.square is not None:
                                kernel.w.square.number = number
                            kernel.symbols[g] = Index({row: 1}, number)
                            kernel.row([])
                kernel.w.square = None
        if columns % lanes:
            with f.loop(top, bottom) as i:
                columns_left(Loop(i, 0, rows - 1))
    if whole_rows < rows:
        with ExitStack() as stack:
            if first:
                last = f.compare("eq", kernel.end, constant("i64", kernel.units))
                stack.enter_context(f.branch(last))
            with f.loop(whole_rows, rows) as i:
                row = Loop(i, whole_rows, rows - 1)
                if whole_columns:
                    with f.loop(0, whole_columns, lanes) as j:
                        kernel.symbols[g] = row
                        kernel.symbols[vector] = Loop(j, 0, columns - 1, vector=True)
                        kernel.row([])
                columns_left(row)


def _upto(f: Function, first: Value, length: int, end: Value) -> Value:
    return f.minimum(f.add(first, constant("i64", length)), end)
