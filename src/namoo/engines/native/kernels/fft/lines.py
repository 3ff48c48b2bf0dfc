"""Transforms of the lines of an array along one axis, by Stockham's passes.

A pass of radix r takes positions (j, p, q) of sizes r, m, s, transforms the r numbers of each
(p, q), multiplies them with twiddle factors, and writes positions (p, k, q). The next pass has
s·r in place of s. So the result is in order without a permutation, and all reads and writes are
runs of s contiguous elements.

Between passes, the data are on the stack, with separate real and imaginary parts. The lanes of a
vector are either neighbouring lines (*wide*), which all passes transform in the same way, or
neighbouring elements of one line (*single*); then the first pass has s = 1 and interleaves its
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.ir.function import Function, Value, bits_of, constant, mask_of, storage
from namoo.engines.native.ir.types import part_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.fft import butterfly
from namoo.engines.native.kernels.fft.butterfly import Complex
from namoo.engines.native.kernels.fft.factors import radices, roots
from namoo.engines.native.kernels.routine import Routine, here, integer

_PHASES = 16
"""A phase is the product of two: that of its exponent modulo this number, and that of the rest."""


class Layout(NamedTuple):
    """Distances in memory, in elements: between groups of lines, lines of a group, and elements."""

    group: int
    line: int
    element: int


Load = Callable[[Value, int, int, Any], Complex]
"""Reads `lanes` numbers at a position plus a constant, under a mask."""
Store = Callable[[Value, int, Complex, Any], None]
"""Writes numbers there."""


class Lines(Routine):
    """Transforms of lines; the operands are the array and `table()`.

    Args:
        elem: the type of the elements, c64 or c128.
        n: the number of elements of a line.
        groups, lines: the numbers of groups, and of lines of a group.
        source, target: where the elements are. The elements, or the lines, are contiguous.
        inverse: whether the sign of the exponent is +.
        scale: a factor of the results.
        total: 0; or the length of a transform of which this is the first step: results are then
          multiplied by exp(-2πi k·line/total).
        closed: whether the first result is written once more, after the last.
    """

    def __init__(
        self,
        elem: str,
        n: int,
        groups: int,
        lines: int,
        source: Layout,
        target: Layout,
        *,
        inverse: bool,
        scale: float = 1.0,
        total: int = 0,
        closed: bool = False,
    ):
        self.elem, self.part, self.n = elem, part_of(elem), n
        self.groups, self.lines, self.source, self.target = groups, lines, source, target
        self.inverse, self.scale, self.total, self.closed = inverse, scale, total, closed
        self.lanes = lanes = tuning.VECTOR_BYTES * 8 // bits_of(self.part)
        rows = source.element == target.element == 1
        # A single line needs runs of whole vectors after the first pass.
        self.wide = not rows or (lines > 1 and (n % lanes != 0 or n < 2 * lanes * lanes))
        self.width = min(lanes, 1 << (lines - 1).bit_length()) if self.wide else 1
        self.radices = radices(n, 1 if self.wide else lanes)
        self.gathers = self.wide and source.line != 1
        self.scatters = self.wide and target.line != 1
        stops = len(self.radices) - 1 + self.gathers + self.scatters
        self.buffers = min(stops, 2) + bool(total)
        self.size = -(-(n + bool(total) * _PHASES) * self.width // lanes) * lanes
        """Real, or imaginary, parts of a buffer."""
        self.blocks = self.units = groups * -(-lines // self.width)
        size = 2 * self.buffers * self.size * bits_of(self.part) // 8
        if size > tuning.FFT_STACK:
            self.units = min(self.blocks, tuning.FFT_PARTS)
            self.scratch = self.units * size
        self.work = groups * lines * n * 4 * len(self.radices)

    def key(self):
        return (
            self.n, self.groups, self.lines, self.source, self.target, self.inverse, self.scale,
            self.total, self.closed,
        )  # fmt: skip

    def table(self) -> np.ndarray:
        """The twiddle factors of all passes, followed by those of `total`."""
        pieces = []
        m, s = self.n, 1
        for r in self.radices:
            m //= r
            if m > 1:
                exponents = np.outer(np.arange(m), np.arange(1, r))
                factors = roots(r * m, exponents)  # (m, r - 1, 2)
                if self._interleaves(m, s):
                    factors = factors.transpose(1, 2, 0)
                pieces.append(factors.ravel())
            s *= r
        if self.total:
            low = 1 << self._shift()
            pieces.append(roots(self.total, np.arange(low)).ravel())
            pieces.append(roots(self.total, np.arange(0, self.total, low)).ravel())
        dtype = np.float32 if self.part == "f32" else np.float64
        return np.concatenate([*pieces, np.zeros(1)]).astype(dtype)

    def _interleaves(self, m: int, s: int) -> bool:
        """Whether the lanes of a pass are neighbouring values of p."""
        return not self.wide and s == 1 and m > 1

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        source, table, target, *memory = places
        self.f, self.factors = f, table.pointer
        if not memory:
            buffers = [self._on_stack() for _ in range(self.buffers)]
            with f.loop(begin, end) as block:
                self._block(source.pointer, target.pointer, block, buffers)
            return
        with f.loop(begin, end) as part:
            buffers = self._in_memory(memory[0].pointer, part)
            start, stop = (
                f.idiv(f.mul(i, integer(self.blocks)), integer(self.units))
                for i in (part, f.add(part, integer(1)))
            )
            with f.loop(start, stop) as block:
                self._block(source.pointer, target.pointer, block, buffers)

    def _on_stack(self) -> tuple[Value, Value]:
        """A buffer for real and imaginary parts."""
        names = [self.f.fresh() for _ in range(2)]
        for name in names:
            kind = f"[{self.size} x {storage(self.part)}]"
            self.f.line(f"  {name} = alloca {kind}, align {tuning.ALIGNMENT}", 0)
        return Value(names[0], "ptr"), Value(names[1], "ptr")

    def _in_memory(self, scratch: Value, part: Value) -> list[tuple[Value, Value]]:
        """The buffers in scratch memory for one part of the work."""
        f = self.f
        start = f.offset(scratch, f.mul(part, integer(2 * self.buffers * self.size)), self.part)
        out = [f.offset(start, i * self.size, self.part) for i in range(2 * self.buffers)]
        return list(zip(out[::2], out[1::2], strict=True))

    def _block(self, source: Value, target: Value, block: Value, buffers) -> None:
        """Transform one line, or `width` lines."""
        f = self.f
        blocks = integer(-(-self.lines // self.width))
        group, first = f.idiv(block, blocks), f.mul(f.irem(block, blocks), integer(self.width))
        mask = phases = load = store = None
        if self.wide and self.lines % self.width:
            index = f.add(first, f.iota("i64", self.width))
            mask = f.compare("lt", index, integer(self.lines))
        if self.total:
            *buffers, phases = buffers
            self._phases(first, phases)
        if self.gathers:
            self._gather(source, group, first, buffers[0])
        else:
            load = self._load_memory(self._line(source, self.source, group, first), mask)
        if not self.scatters:
            line = self._line(target, self.target, group, first)
            store = self._store_memory(line, mask, phases)
        last = self._passes(load, store, buffers)
        if self.scatters:
            f.epoch += 1
            self._scatter(target, group, first, buffers[last])
        if self.closed:
            self._close(target, group, first)

    def _close(self, target: Value, group: Value, first: Value) -> None:
        """Copy the first result of each line (or of a group that is one long line) to its end."""
        f, layout = self.f, self.target
        f.epoch += 1

        def copy(start: Value, n: int) -> None:
            for i in (0, 1):
                number = f.load(f.offset(here(f, start), i, self.part), self.part)
                f.store(number, f.offset(start, 2 * n + i, self.part))

        if layout.line == 1:
            with f.branch(f.compare("eq", first, integer(0))):
                copy(self._line(target, layout, group, first), self.lines * self.n)
        else:
            for line in self._rows(target, layout, group, first):
                copy(line, self.n)

    def _line(self, pointer: Value, layout: Layout, group: Value, line: Value) -> Value:
        """The address of the first element of a line."""
        f = self.f
        position = f.add(f.mul(group, integer(layout.group)), f.mul(line, integer(layout.line)))
        return f.offset(pointer, f.mul(position, integer(2)), self.part)

    def _passes(self, load: Load | None, store: Store | None, buffers) -> int:
        """All passes, from memory or the first buffer; return the buffer of the last results."""
        m, s, offset, now = self.n, 1, 0, -1 if load else 0
        for i, r in enumerate(self.radices):
            m //= r
            self.f.epoch += 1
            read = load if i == 0 and load else self._load_buffer(buffers[now])
            if i == len(self.radices) - 1 and store:
                write = store
            else:
                now = 1 - now if now >= 0 else 0
                write = self._store_buffer(buffers[now])
            if self._interleaves(m, s):
                self._first_pass(r, m, offset, read, write)
            else:
                self._pass(r, m, s, offset, read, write)
            offset += (r - 1) * m * 2 if m > 1 else 0
            s *= r
        return now

    def _pass(self, r: int, m: int, s: int, offset: int, read: Load, write: Store) -> None:
        """A pass whose lanes are lines, or elements of contiguous runs."""
        f = self.f

        def at(p: Value) -> None:
            twiddles: list[Complex] = []
            if m > 1:
                start = f.offset(self.factors, offset, self.part)
                start = f.offset(start, f.mul(p, integer(2 * (r - 1))), self.part)
                numbers = [
                    f.load(f.offset(start, i, self.part), self.part) for i in range(2 * r - 2)
                ]
                twiddles = list(zip(numbers[::2], numbers[1::2], strict=True))

            def body(q: Value, lanes: int, mask: Any) -> None:
                position = f.add(q, f.mul(p, integer(s)))
                xs = [read(position, s * m * j, lanes, mask) for j in range(r)]
                ys = butterfly.transform(f, xs)
                position = f.add(q, f.mul(p, integer(s * r)))
                for k, y in enumerate(ys):
                    if k and twiddles:
                        y = butterfly.multiply(f, y, twiddles[k - 1])
                    write(position, s * k, y, mask)

            if not self.wide:
                routine.along(f, s, min(self.lanes, 1 << (s - 1).bit_length()), body)
            elif s == 1:
                body(integer(0), self._vector, None)
            else:
                with f.loop(0, s) as q:
                    body(q, self._vector, None)

        if m == 1:
            at(integer(0))
        else:
            with f.loop(0, m) as p:
                at(p)

    @property
    def _vector(self) -> int:
        """The number of lanes of wide vectors; 0, a scalar, for a single line."""
        return self.width if self.width > 1 else 0

    def _first_pass(self, r: int, m: int, offset: int, read: Load, write: Store) -> None:
        """A pass over runs of one element: the lanes are neighbouring values of p."""
        f = self.f

        def body(p: Value, lanes: int, mask: Any) -> None:
            ys = butterfly.transform(f, [read(p, m * j, lanes, mask) for j in range(r)])
            for k in range(1, r):
                real, imag = (
                    f.load(
                        f.offset(f.offset(self.factors, offset + row * m, self.part), p, self.part),
                        self.part, lanes, mask,
                    )
                    for row in (2 * k - 2, 2 * k - 1)
                )  # fmt: skip
                ys[k] = butterfly.multiply(f, ys[k], (real, imag))
            position = f.mul(p, integer(r))
            if not lanes:
                for k, y in enumerate(ys):
                    write(position, k, y, None)
                return
            count = r * (mask.count if mask else lanes)
            parts = [_interleave(f, [y[i] for y in ys]) for i in (0, 1)]
            for i, (real, imag) in enumerate(zip(*parts, strict=True)):
                rest = count - i * lanes
                if rest > 0:
                    part = None if rest >= lanes else mask_of(lanes, rest)
                    write(position, i * lanes, (real, imag), part)

        routine.along(f, m, min(self.lanes, 1 << (m - 1).bit_length()), body)

    def _load_buffer(self, buffer: tuple[Value, Value]) -> Load:
        f, width = self.f, self.width

        def load(position: Value, delta: int, lanes: int, mask: Any) -> Complex:
            at = f.mul(position, integer(width))
            real, imag = (
                f.load(
                    f.offset(f.offset(here(f, pointer), at, self.part), delta * width, self.part),
                    self.part, lanes, mask,
                )
                for pointer in buffer
            )  # fmt: skip
            return real, imag

        return load

    def _store_buffer(self, buffer: tuple[Value, Value]) -> Store:
        f, width = self.f, self.width

        def store(position: Value, delta: int, value: Complex, mask: Any) -> None:
            at = f.mul(position, integer(width))
            for pointer, number in zip(buffer, value, strict=True):
                address = f.offset(f.offset(pointer, at, self.part), delta * width, self.part)
                f.store(number, address, mask)

        return store

    def _load_memory(self, line: Value, mask: Any) -> Load:
        """Load from the operand; the inverse exchanges real and imaginary parts."""
        f, stride = self.f, 2 * self.source.element

        def load(position: Value, delta: int, lanes: int, within: Any) -> Complex:
            address = f.offset(line, f.mul(position, integer(stride)), self.part)
            address = f.offset(address, delta * stride, self.part)
            value = routine.read(f, address, self.elem, integer(0), lanes, mask or within)
            return value[::-1] if self.inverse else value

        return load

    def _store_memory(self, line: Value, mask: Any, phases) -> Store:
        f, stride = self.f, 2 * self.target.element

        def store(position: Value, delta: int, value: Complex, within: Any) -> None:
            if phases:
                value = self._times_phases(value, f.add(position, integer(delta)), phases)
            if self.scale != 1:
                factor = constant(self.part, self.scale)
                value = f.mul(value[0], factor), f.mul(value[1], factor)
            address = f.offset(line, f.mul(position, integer(stride)), self.part)
            address = f.offset(address, delta * stride, self.part)
            out = value[::-1] if self.inverse else value
            routine.write(f, address, self.elem, integer(0), out, mask or within)

        return store

    def _gather(self, source: Value, group: Value, first: Value, buffer) -> None:
        """Copy lines to a buffer, transposed: the lanes of a vector are lines."""
        f, width = self.f, self.width
        rows = self._rows(source, self.source, group, first)
        write = self._store_buffer(buffer)

        def body(i: Value, lanes: int, mask: Any) -> None:
            values = []
            for row in rows:
                value = routine.read(f, here(f, row), self.elem, i, lanes, mask)
                values.append(value[::-1] if self.inverse else value)
            if not lanes:
                # The last element of each line.
                write(i, 0, (f.pack([v[0] for v in values]), f.pack([v[1] for v in values])), None)
                return
            real, imag = (routine.transposed(f, [v[c] for v in values]) for c in (0, 1))
            for j in range(mask.count if mask else lanes):
                write(i, j, (real[j], imag[j]), None)

        routine.along(f, self.n, width, body)

    def _scatter(self, target: Value, group: Value, first: Value, buffer) -> None:
        """Copy a buffer to lines."""
        f, width = self.f, self.width
        rows = self._rows(target, self.target, group, first)
        read = self._load_buffer(buffer)

        def body(i: Value, lanes: int, mask: Any) -> None:
            count = mask.count if mask else lanes or 1
            values = [read(i, j, width, None) for j in range(count)]
            if self.scale != 1:
                factor = constant(self.part, self.scale)
                values = [(f.mul(re, factor), f.mul(im, factor)) for re, im in values]
            if not lanes:
                for row in range(width):
                    value = f.lane(values[0][0], row), f.lane(values[0][1], row)
                    out = value[::-1] if self.inverse else value
                    routine.write(f, rows[row], self.elem, i, out)
                return
            values += values[-1:] * (width - count)
            real, imag = (routine.transposed(f, [v[c] for v in values]) for c in (0, 1))
            for row, value in zip(rows, zip(real, imag, strict=True), strict=True):
                out = value[::-1] if self.inverse else value
                routine.write(f, row, self.elem, i, out, mask)

        routine.along(f, self.n, width, body)

    def _rows(self, pointer: Value, layout: Layout, group: Value, first: Value) -> list[Value]:
        """The addresses of `width` lines; past the end, that of the last line again."""
        f, out = self.f, []
        for i in range(self.width):
            line = f.add(first, integer(i))
            if self.lines % self.width:
                line = f.minimum(line, integer(self.lines - 1))
            out.append(self._line(pointer, layout, group, line))
        return out

    def _shift(self) -> int:
        """The number of exponent bits that the first table of `total` covers."""
        return (self.total.bit_length() + 1) // 2

    def _phases(self, first: Value, phases: tuple[Value, Value]) -> None:
        """exp(-2πi k·line/total) for k = 0, …, 15, then for k = 0, 16, 32, …, line by line."""
        f, part = self.f, self.part
        low = 1 << self._shift()
        tables = f.offset(self.factors, self._passes_size(), part)

        def factor(table: Value, index: Value) -> Complex:
            at = f.mul(index, integer(2))
            real, imag = (
                f.load(f.offset(f.offset(table, at, part), i, part), part) for i in (0, 1)
            )
            return real, imag

        def fill(start: int, count: int, step: int) -> None:
            with f.loop(0, count) as k, f.loop(0, self.width) as lane:
                exponent = f.mul(f.mul(k, integer(step)), f.add(first, lane))
                # Lanes past the last line are not stored, but their exponents must be in the table.
                exponent = f.irem(exponent, integer(self.total))
                fine = factor(tables, f.and_(exponent, integer(low - 1)))
                coarse = f.lshr(exponent, integer(self._shift()))
                value = butterfly.multiply(f, fine, factor(f.offset(tables, 2 * low, part), coarse))
                at = f.add(f.mul(f.add(k, integer(start)), integer(self.width)), lane)
                for pointer, number in zip(phases, value, strict=True):
                    f.store(number, f.offset(pointer, at, part))

        f.epoch += 1
        fill(0, _PHASES, 1)
        fill(_PHASES, -(-self.n // _PHASES), _PHASES)
        f.epoch += 1

    def _passes_size(self) -> int:
        """The number of twiddle factors of all passes, in the table."""
        size, m = 0, self.n
        for r in self.radices:
            m //= r
            size += (r - 1) * m * 2 if m > 1 else 0
        return size

    def _times_phases(self, value: Complex, k: Value, phases: tuple[Value, Value]) -> Complex:
        """Multiply the results number `k` of all lines by their phases."""
        f = self.f
        for index in (
            f.and_(k, integer(_PHASES - 1)),
            f.add(f.lshr(k, integer(_PHASES.bit_length() - 1)), integer(_PHASES)),
        ):
            at = f.mul(index, integer(self.width))
            real, imag = (
                f.load(f.offset(here(f, p), at, self.part), self.part, self._vector) for p in phases
            )
            value = butterfly.multiply(f, value, (real, imag))
        return value


def _interleave(f: Function, vectors: Sequence[Value]) -> list[Value]:
    """The first elements of all vectors, then the second ones, and so on, in as many vectors."""
    n, lanes = len(vectors), vectors[0].lanes
    if n == 1:
        return list(vectors)
    if n % 2 == 0:
        pairs = zip(_interleave(f, vectors[::2]), _interleave(f, vectors[1::2]), strict=True)
        orders = [
            [lane // 2 + start + lanes * (lane % 2) for lane in range(lanes)]
            for start in (0, lanes // 2)
        ]
        return [f.shuffle(x, order, y) for x, y in pairs for order in orders]
    out = []
    for i in range(n):
        places = [divmod(i * lanes + lane, n) for lane in range(lanes)]
        vector = vectors[0]
        for k, other in enumerate(vectors):
            order = [lanes + p if j == k else lane for lane, (p, j) in enumerate(places)]
            vector = f.shuffle(vector, order, other)
        out.append(vector)
    return out
