"""A driver that measures: a program with a timer for each step, for `namoo.inspect`.

After each step the program reads the processor's counter, and adds the time since the reading
before to the step's timer. So all time that the program takes is that of some step, and a step
costs one reading. Programs that are not inspected have no timers.
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native.attribution import equation_of
from namoo.engines.native.emit.driver import Driver, emit_with
from namoo.engines.native.emit.module import Module
from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.graph.node import CALL
from namoo.engines.native.ir.function import Function
from namoo.engines.native.kernels.control_flow import ControlStep
from namoo.engines.native.kernels.kernel import Kernel
from namoo.engines.native.memory.arena import Plan

WORDS = 2
"""Numbers of 64 bits for each timer: counts of the processor's counter, and runs of the step."""
FIRST = 2
"""The numbers before the timers: the counter when a call begins, and when it ends."""

# User code may not read the cycles of an ARM processor, only a counter of constant frequency.
_IS_ARM = platform.machine() in ("aarch64", "arm64")
COUNTER = (
    'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()'
    if _IS_ARM
    else "call i64 @llvm.readcyclecounter()"
)
DECLARATION = "" if _IS_ARM else "declare i64 @llvm.readcyclecounter()"


class Timer(NamedTuple):
    """A step that is measured.

    Attributes:
        plan: the plan that the step belongs to: the program's, or that of the body of a loop.
        group: what it computes.
        kernel: the kernel that it calls, None if its code is part of the entry function.
        loop: the equation of the innermost loop around it.
    """

    plan: Plan
    group: FusionGroup
    kernel: Kernel | None
    loop: JaxprEqn | None


def emit_timed(plan: Plan) -> tuple[Module, list[Timer]]:
    """Emit a program whose last constant is an array of timers."""
    module = Module(plan)
    f = Function("entry", ["ptr", "ptr", "ptr"], "i32")
    driver = TimedDriver(module, f, f.parameters[2])
    return emit_with(driver, plan, more=1), driver.timers


class TimedDriver(Driver):
    """Emits the steps of plans, and a reading of the counter after each."""

    def __init__(self, module, f, host):
        super().__init__(module, f, host)
        self.timers: list[Timer] = []
        self.called: Kernel | None = None
        self.loop: JaxprEqn | None = None
        if DECLARATION:
            module.declarations["llvm.readcyclecounter"] = DECLARATION
        f.preamble.append("  %clock = alloca i64, align 8")

    def run(self, plan, inputs, consts, outputs, arena, slots=None):
        outermost = slots is not None
        if outermost:
            self.words = consts[len(consts) - 1].name
            self._store(self._read(), 0)
        # Without `slots`, each call is written out.
        super().run(plan, inputs, consts, outputs, arena)
        if outermost:
            self._store(self._emit("load i64, ptr %clock, align 8"), 1)

    def step(self, plan, group, offset, calls):
        first, outer = group.roots[0], self.loop
        is_loop = first.kind is CALL and isinstance(first.data, ControlStep)
        if is_loop:
            self.loop = equation_of(first, plan.graph) or outer
        self.called = None
        super().step(plan, group, offset, calls)
        calls.write()
        self.loop = outer
        self._add_time(FIRST + WORDS * len(self.timers))
        self.timers.append(Timer(plan, group, None if is_loop else self.called, outer))

    def call(self, kernel, table):
        self.called = kernel
        super().call(kernel, table)

    def _emit(self, text: str) -> str:
        return self.f.emit_here("i64", 0, text).name

    def _place(self, number: int) -> str:
        return self._emit(f"getelementptr i64, ptr {self.words}, i64 {number}")

    def _read(self) -> str:
        """Read the counter, and keep what it says."""
        now = self._emit(COUNTER)
        self.f.line(f"  store i64 {now}, ptr %clock, align 8")
        return now

    def _store(self, value: Any, number: int) -> None:
        self.f.line(f"  store i64 {value}, ptr {self._place(number)}, align 8")

    def _add_time(self, number: int) -> None:
        """Add the time since the last reading to a timer."""
        before = self._emit("load i64, ptr %clock, align 8")
        now = self._read()
        for place, more in ((number, self._emit(f"sub i64 {now}, {before}")), (number + 1, "1")):
            pointer = self._place(place)
            so_far = self._emit(f"load i64, ptr {pointer}, align 8")
            total = self._emit(f"add i64 {so_far}, {more}")
            self.f.line(f"  store i64 {total}, ptr {pointer}, align 8")
