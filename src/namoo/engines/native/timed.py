"""Programs that measure themselves: how long each step took, and which equations it computed."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock

import numpy as np

from namoo._base.caches import cached
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn
from namoo.engines.native import pipeline
from namoo.engines.native.attribution import Cost, costs, kind_of, short_line
from namoo.engines.native.cache import programs
from namoo.engines.native.emit.timed import (
    COUNTER,
    DECLARATION,
    FIRST,
    WORDS,
    Timer,
    emit_timed,
)
from namoo.engines.native.engine import Program
from namoo.engines.native.link import code


@dataclass
class Measured:
    """A step of a program, and what it took in one call.

    Attributes:
        name: the kernel's function in the machine code; "" where the code is in the entry function.
        kind: what the step is, in a word.
        space: the sizes of its loops.
        costs: operations and bytes by equation, for one run; None for what has no equation.
        runs: how often it ran.
        seconds: how long all runs took.
    """

    name: str
    kind: str
    space: tuple[int, ...]
    costs: Mapping[JaxprEqn | None, Cost]
    runs: int = 0
    seconds: float = 0.0

    def shares(self) -> dict[JaxprEqn | None, float]:
        """How the time is divided between equations: by operations and by memory traffic.

        A kernel computes several equations in one loop, so this is an estimate where the time of
        the kernel is measured.
        """
        weights = {eqn: c.flops + c.bytes / 4 for eqn, c in self.costs.items()}
        total = sum(weights.values())
        if not total:
            return {eqn: 1 / len(weights) for eqn in weights}
        return {eqn: weight / total for eqn, weight in weights.items()}

    def lines(self) -> list[str]:
        """The user's lines that the step computes, the one with the most work first."""
        shares = self.shares()
        eqns = sorted(shares, key=lambda eqn: -shares[eqn])
        return list(dict.fromkeys([short_line(eqn.source) for eqn in eqns if eqn and eqn.source]))

    def title(self) -> str:
        """A name for the step in a profile: its first line, and how many others there are."""
        lines = self.lines()
        more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
        return f"{self.kind} {lines[0]}{more}" if lines else self.kind


@dataclass
class Measurement:
    """One call of a program.

    Attributes:
        steps: what was run, in the order of the program.
        seconds: from the start of the machine code to its end.
        wall: from the call to its return.
        start: when the call began, from `time.perf_counter_ns`.
    """

    steps: list[Measured]
    seconds: float
    wall: float
    start: int

    def events(self) -> Iterator[tuple[int, int, str, dict[str, str]]]:
        """Yield an event of a profile for each step: its start, its end, its name, and more.

        Runs of a step in several iterations of a loop are one event, as long as all of them.
        """
        at = float(self.start)
        for step in self.steps:
            if step.runs:
                end = at + step.seconds * 1e9
                more = {"lines": ", ".join(step.lines()), "runs": str(step.runs)}
                yield int(at), int(end), step.title(), more
                at = end


class TimedProgram(Program):
    """A compiled program with a timer for each step.

    The kernels and their order are those of the program without timers.
    """

    def __init__(self, closed: ClosedJaxpr):
        self.lock = RLock()
        super().__init__(closed, {"strict": False, "timed": True})

    def _compile(self, mark):
        self.plan = self.sourced_plan()
        module, timers = emit_timed(self.plan)
        self.words = np.zeros(FIRST + WORDS * len(timers), np.int64)
        self.timers = [_step(timer) for timer in timers]
        linked = pipeline.link(pipeline.optimise(module))
        made = programs.Compiled(linked, self.plan.arena_size, len(module.kernels))
        made.around = module.around
        consts = [c for _, c in self.plan.graph.consts]
        return made, module.host, module.loops, [*consts, self.words]

    def measure(self, values: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Measurement]:
        """Call the program, and return its results with what each step took."""
        frequency = counter_frequency()
        with self.lock:  # the timers are those of one call
            self.words[:] = 0
            start = time.perf_counter_ns()
            outs = self.run(values)
            wall = (time.perf_counter_ns() - start) * 1e-9
            begin, end, *words = self.words.tolist()
        counted = zip(words[::WORDS], words[1::WORDS], strict=True)
        steps = [
            replace(step, runs=runs, seconds=counts / frequency)
            for step, (counts, runs) in zip(self.timers, counted, strict=True)
        ]
        return outs, Measurement(steps, (end - begin) / frequency, wall, start)


@cached("native timers: frequency of the counter", bound=1, keyed_by="nothing", kept=True)
def counter_frequency() -> float:
    """How often the processor's counter counts in a second."""
    text = f"{DECLARATION}\ndefine i64 @entry() {{\n  %now = {COUNTER}\n  ret i64 %now\n}}"
    linked = code.Code(code.object_code(text, lambda _: [(["entry"], text)]))
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(linked.entry)
    first, begin = read(), time.perf_counter_ns()
    time.sleep(0.02)
    last, end = read(), time.perf_counter_ns()
    return 1e9 * (last - first) / (end - begin)


def _step(timer: Timer) -> Measured:
    plan, group, kernel, loop = timer
    found = costs(plan, group)
    if None in found and loop is not None:  # a copy of what the loop carries
        own, rest = found.pop(None), found.setdefault(loop, Cost())
        rest.flops, rest.bytes = rest.flops + own.flops, rest.bytes + own.bytes
    return Measured(kernel.name if kernel else "", kind_of(group), group.space, found)
