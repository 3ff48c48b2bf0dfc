"""Calls of kernels as a table of numbers, and the loop that makes them.

A program of many layers calls few kernels many times. Unrolled, these calls would be most of the
code; as a table they cost LLVM no time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.ir.function import Value
from namoo.engines.native.kernels.kernel import Kernel

Place = tuple[str, int]
PARALLEL = "declare i32 @namoo_parallel(ptr, ptr, i64, i64, i64)"

# A call is encoded as: the kernel's number, its units, the least (0: a single thread takes all) and
# the most units that a thread takes at once, the number of pointers, and the pointers: an offset in
# the arena or, if negative, an index in the program's table.
_LOOP = """define private i32 @calls(
  ptr %first, ptr %end, ptr %kernels, ptr %slots, ptr %arena, ptr %table
) {{
entry:
  br label %call
call:
  %row = phi ptr [%first, %entry], [%next, %done]
  %number = load i64, ptr %row, align 8
  %p1 = getelementptr i64, ptr %row, i64 1
  %units = load i64, ptr %p1, align 8
  %p2 = getelementptr i64, ptr %row, i64 2
  %grain = load i64, ptr %p2, align 8
  %p3 = getelementptr i64, ptr %row, i64 3
  %most = load i64, ptr %p3, align 8
  %p4 = getelementptr i64, ptr %row, i64 4
  %count = load i64, ptr %p4, align 8
  %places = getelementptr i64, ptr %row, i64 5
  %next = getelementptr i64, ptr %places, i64 %count
  %slot = getelementptr ptr, ptr %kernels, i64 %number
  %kernel = load ptr, ptr %slot, align 8
  br label %place
place:
  %i = phi i64 [0, %call], [%j, %put]
  %pp = getelementptr i64, ptr %places, i64 %i
  %p = load i64, ptr %pp, align 8
  %given = icmp slt i64 %p, 0
  br i1 %given, label %argument, label %within
argument:
  %a0 = xor i64 %p, -1
  %a1 = getelementptr ptr, ptr %slots, i64 %a0
  %a2 = load ptr, ptr %a1, align 8
  br label %put
within:
  %b0 = getelementptr i8, ptr %arena, i64 %p
  br label %put
put:
  %value = phi ptr [%a2, %argument], [%b0, %within]
  %target = getelementptr ptr, ptr %table, i64 %i
  store ptr %value, ptr %target, align 8
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %count
  br i1 %more, label %place, label %run
run:
  {run}
alone:
  call void %kernel(ptr %table, i64 0, i64 %units)
  br label %done
done:
  %left = icmp ult ptr %next, %end
  br i1 %left, label %call, label %out
out:
  %status = phi i32 [0, %done]{stopped}
  ret i32 %status
}}"""
_SHARED = """%many = icmp sgt i64 %grain, 0
  br i1 %many, label %together, label %alone
together:
  %stop = call i32 @namoo_parallel(ptr %kernel, ptr %table, i64 %units, i64 %grain, i64 %most)
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %done"""


def grain(kernel: Kernel) -> int:
    """The least number of units that a thread takes at once; 0 to run on one thread."""
    if kernel.work < tuning.PARALLEL_WORK or kernel.units < 2:
        return 0
    return max(1, kernel.units * tuning.SMALLEST_PIECE // kernel.work)


def longest(kernel: Kernel) -> int:
    """The greatest number of units that a thread takes at once."""
    return max(1, kernel.units * tuning.LONGEST_PIECE // max(kernel.work, 1))


class Calls:
    """Calls of kernels that are not emitted yet, in order.

    Args:
        driver: what emits them.
        at: returns the pointer of a buffer.
        arena: the pointer of the arena.
        slots: a table of the buffers outside the arena, if there is one.
        starts: where the buffers of each kind begin in the table.
    """

    def __init__(
        self,
        driver: Any,
        at: Callable[[Place], Value],
        arena: Value,
        slots: Value | None,
        starts: Mapping[str, int],
    ):
        self.driver = driver
        self.at = at
        self.arena = arena
        self.slots = slots
        self.starts = starts
        self.waiting: list[tuple[Kernel, list[Place]]] = []
        self.heads: dict[Kernel, tuple[int, int, int, int]] = {}
        """The first words of the calls of each kernel."""
        self.lists = 0

    def add(self, kernel: Kernel, places: list[Place]) -> None:
        """Call a kernel with pointers to buffers."""
        self.waiting.append((kernel, places))

    def write(self) -> None:
        """Emit the calls so far."""
        waiting, self.waiting = self.waiting, []
        driver = self.driver
        if self.slots is None or len(waiting) < tuning.FEW_CALLS:
            for kernel, places in waiting:
                driver.call(kernel, driver.table([self.at(p) for p in places]))
            return
        words, starts = [], self.starts
        for kernel, places in waiting:
            words += self.heads.get(kernel) or self._head(kernel)
            words.append(len(places))
            words += [i if kind == "arena" else ~(starts[kind] + i) for kind, i in places]
        driver.widest = max(driver.widest, *[len(places) for _, places in waiting])
        name, count = f"@calls{self.lists}", len(words)
        self.lists += 1
        # LLVM parses bytes faster than numbers.
        text = array("q", words).tobytes().hex("\\")
        driver.module.lists.append(
            f'{name} = private unnamed_addr constant [{8 * count} x i8] c"\\{text}", align 8'
        )
        end = f"getelementptr (i64, ptr {name}, i64 {count})"
        call = (
            f"call i32 @calls(ptr {name}, ptr {end}, ptr @kernels, {self.slots!r}, "
            f"{self.arena!r}, ptr %table)"
        )
        driver.stop(driver.f.emit_here("i32", 0, call))

    def _head(self, kernel: Kernel) -> tuple[int, int, int, int]:
        share = grain(kernel)
        head = self.heads[kernel] = (len(self.heads), kernel.units, share, longest(kernel))
        if share:
            self.driver.module.declarations["namoo_parallel"] = PARALLEL
        return head

    def finish(self) -> None:
        """Emit the loop, and the table of kernels."""
        if not self.lists:
            return
        module = self.driver.module
        kernels = ", ".join([f"ptr @{kernel.name}" for kernel in self.heads])
        module.lists.append(
            f"@kernels = private unnamed_addr constant [{len(self.heads)} x ptr] [{kernels}]"
        )
        shared = "namoo_parallel" in module.declarations
        run, stopped = (_SHARED, ", [%stop, %together]") if shared else ("br label %alone", "")
        module.functions.append(_LOOP.format(run=run, stopped=stopped))
