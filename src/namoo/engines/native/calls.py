"""Calls of kernels as a list of numbers, and the loop that makes them.

A program of many layers calls few kernels many times.  Written out, its calls would be most of the
code; as numbers they cost LLVM nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from namoo.engines.native.ir import Value
from namoo.engines.native.kernel import Emitted

Place = tuple[str, int]
PARALLEL = "declare i32 @namoo_parallel(ptr, ptr, i64, i64, i64)"
# From this many operations on, a kernel's work is shared among threads.
PARALLEL_WORK = 1 << 17
GRAIN_WORK = 1 << 15
# A thread takes no more than this at once: the caller looks for signals between two pieces.
LONGEST_WORK = 1 << 28
# What a call of a kernel costs besides its own work.
CALL_WORK = 64
# Fewer calls than this are written out.
FEW = 16

# A call is: the kernel's number, its units, how many of them a thread takes at least (0: one thread
# takes all) and at most, the number of pointers, and for each pointer an offset in the arena or,
# negative, the place in the program's table.
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


def grain(kernel: Emitted) -> int:
    """How many units of a kernel a thread takes at once; 0 if they are not worth sharing."""
    if kernel.work < PARALLEL_WORK or kernel.units < 2:
        return 0
    return max(1, kernel.units * GRAIN_WORK // kernel.work)


def longest(kernel: Emitted) -> int:
    """How many units of a kernel a thread takes at once, at most."""
    return max(1, kernel.units * LONGEST_WORK // max(kernel.work, 1))


class Calls:
    """Calls of kernels that are still to be written, in their order.

    `at` gives the pointer of a place.  Where there is a table `slots`, places that are not in the
    arena are in it, those of each kind in a row from `starts`.
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
        self.waiting: list[tuple[Emitted, list[Place]]] = []
        self.heads: dict[Emitted, tuple[int, int, int, int]] = {}
        """What begins each call of a kernel."""
        self.lists = 0

    def add(self, kernel: Emitted, places: list[Place]) -> None:
        """Call a kernel with pointers to places."""
        self.waiting.append((kernel, places))

    def write(self) -> None:
        """Write the calls that are waiting: now comes something else."""
        waiting, self.waiting = self.waiting, []
        driver = self.driver
        if self.slots is None or len(waiting) < FEW:
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
        # LLVM reads bytes sooner than numbers.
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

    def _head(self, kernel: Emitted) -> tuple[int, int, int, int]:
        share = grain(kernel)
        head = self.heads[kernel] = (len(self.heads), kernel.units, share, longest(kernel))
        if share:
            self.driver.module.declarations["namoo_parallel"] = PARALLEL
        return head

    def finish(self) -> None:
        """Write the loop, and where it finds the kernels."""
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
