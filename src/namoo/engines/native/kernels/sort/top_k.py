"""The few greatest elements of long rows: one pass that maintains a short sorted list.

A vector comparison skips elements that are less than the last of the list, as most are; the others
are inserted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, bits_of, constant
from namoo.engines.native.ir.types import computed_in
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer
from namoo.engines.native.kernels.sort.network import rank
from namoo.engines.native.kernels.sort.radix import Memory

LANES = 16


def suits(x: Node, axis: int, top: int) -> bool:
    """Whether this kernel supports an array, and is the fastest for it."""
    n = x.shape[axis]
    narrow = bits_of(computed_in(x.elem)) <= 32
    return narrow and axis == len(x.shape) - 1 and 0 < top <= min(tuning.LONGEST_TOP_K, n // 4)


class TopRows(Routine):
    """The `top` greatest elements of each row in order, and their indices.

    An entry of the list is one integer: a rank that increases as elements decrease, and the index.
    """

    def __init__(self, x: Node, top: int):
        self.count, self.top = x.shape[-1], top
        self.units = x.size // self.count
        self.work = x.size
        self.slots = 1 << (top - 1).bit_length()

    def key(self):
        return self.top

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        source, values, indices = places
        self.f, self.source = f, source
        entries = self.entries = Memory.on_stack(f, self.slots, "i64")
        n, top = self.count, self.top
        block = LANES * tuning.TOP_K_UNROLL
        start = -(-top // block) * block if n >= 2 * block + top else n
        stop = start + (n - start) // block * block
        with f.loop(begin, end) as row:
            base = f.mul(row, integer(n))
            with f.loop(0, self.slots) as i:
                entries.write(i, constant("i64", np.iinfo(np.int64).max))
            self._insert_greater(base, integer(0), integer(start))
            if start < stop:
                with f.loop(start, stop, block) as j:
                    with f.branch(self._any(base, j)):
                        self._insert_greater(base, j, f.add(j, integer(block)))
            if stop < n:
                self._insert_greater(base, integer(stop), integer(n))
            out = f.mul(row, integer(top))
            with f.loop(0, top) as i:
                place = f.bitcast(f.convert(entries.read(i), "i32"), "u32")
                at = f.add(base, f.bitcast(f.convert(place, "u64"), "i64"))
                pointer = routine.here(f, source.pointer)
                value = routine.read(f, pointer, source.elem, at)
                routine.write(f, values.pointer, values.elem, f.add(out, i), value)
                routine.write(f, indices.pointer, "i32", f.add(out, i), f.bitcast(place, "i32"))

    def _rank(self, position: Value, lanes: int = 0) -> Value:
        f = self.f
        value = routine.read(f, self.source.pointer, self.source.elem, position, lanes)
        return f.not_(rank(f, value, True))

    def _worst(self) -> Value:
        """The rank of the last entry."""
        last = self.entries.read(integer(self.top - 1))
        return self.f.convert(self.f.ashr(last, constant("i64", 32)), "i32")

    def _any(self, base: Value, j: Value) -> Value:
        """Whether one of the next elements belongs in the list."""
        f = self.f
        worst = self._worst()
        found = None
        for u in range(tuning.TOP_K_UNROLL):
            position = f.add(base, f.add(j, integer(u * LANES)))
            better = f.compare("lt", self._rank(position, LANES), worst)
            found = better if found is None else f.or_(found, better)
        assert found is not None
        bits = f.emit("u16", 0, f"bitcast {found!r} to i16", (found,))
        return f.compare("ne", bits, constant("u16", 0))

    def _insert_greater(self, base: Value, start: Value, stop: Value) -> None:
        """Insert the elements that belong into the list."""
        f, entries, top = self.f, self.entries, self.top
        with f.loop(start, stop) as j:
            number = f.convert(self._rank(f.add(base, j)), "i64")
            entry = f.or_(f.shl(number, constant("i64", 32)), j)
            last = entries.read(integer(top - 1))
            with f.branch(f.compare("lt", entry, last)):
                place, step = integer(0), self.slots // 2
                while step:
                    before = entries.read(f.add(place, integer(step - 1)))
                    less = f.compare("lt", before, entry)
                    place = f.add(place, f.select(less, integer(step), integer(0)))
                    step //= 2
                if self.slots > 1:
                    less = f.compare("lt", entries.read(place), entry)
                    place = f.add(place, f.convert(f.convert(less, "u64"), "i64"))
                here = f.offset(routine.here(f, entries.pointer), place, "i64")
                size = f.mul(f.sub(integer(top - 1), place), integer(8))
                name = "llvm.memmove.p0.p0.i64"
                f.declarations[name] = f"declare void @{name}(ptr, ptr, i64, i1)"
                after = f.offset(here, integer(1), "i64")
                f.line(
                    f"  call void @{name}(ptr {after.name}, ptr {here.name}, {size!r}, i1 false)"
                )
                entries.write(place, entry)
