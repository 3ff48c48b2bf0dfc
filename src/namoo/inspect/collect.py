"""Measure a function, and add up the cost of its kernels by source line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from namoo._base.source_context import Source
from namoo.api import dispatch
from namoo.api.jit import Jitted, jit
from namoo.core.avals import ShapeDtypeStruct
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, subjaxprs
from namoo.transforms.arguments import is_array

_SECONDS = 0.5
_ROUNDS = 100


@dataclass
class Cost:
    """What a line costs in one call.

    Attributes:
        seconds: how long its kernels run. A kernel that several lines share is divided between them
            by operations and memory traffic.
        flops: the approximate number of operations.
        bytes: how many bytes its kernels read and write.
    """

    seconds: float = 0.0
    flops: int = 0
    bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.seconds + other.seconds, self.flops + other.flops, self.bytes + other.bytes
        )


@dataclass
class Equation:
    """An operation that was traced from a line.

    Attributes:
        name: the operation.
        operands, results: their types, as programs print them.
        backward: whether it belongs to a backward pass.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    backward: bool

    def __str__(self) -> str:
        return f"{', '.join(self.results)} = {self.name} {' '.join(self.operands)}".rstrip()


@dataclass
class Line:
    """A line of the user's source that traced operations.

    Attributes:
        file, number, function: where it is; an empty file for operations that have no line.
        code: its text.
        forward, backward: its cost outside of the backward pass, and in it.
        equations: the operations that were traced from it.
        kernels: the numbers of the kernels that compute them.
        alive: bytes of its arrays that are in memory when the program's memory use peaks.
    """

    file: str
    number: int
    function: str
    code: str
    forward: Cost = field(default_factory=Cost)
    backward: Cost = field(default_factory=Cost)
    equations: list[Equation] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)
    alive: int = 0

    @property
    def total(self) -> Cost:
        """The cost of both directions."""
        return self.forward + self.backward


@dataclass
class Kernel:
    """A step of the compiled program.

    Attributes:
        number: its position in the program.
        name: its function in the machine code, or "" if it has none.
        kind: one word for what it does.
        space: the sizes of its loops.
        seconds: the total time of its runs in one call.
        runs: how often it ran in one call: more than once in the body of a loop.
        flops, bytes: operations and memory traffic of all runs.
        lines: the source lines that it computes, as pairs of a file and a number.
    """

    number: int
    name: str
    kind: str
    space: tuple[int, ...]
    seconds: float
    runs: int
    flops: int
    bytes: int
    lines: list[tuple[str, int]]


@dataclass
class Collected:
    """Everything that was measured of a function for some arguments."""

    name: str
    lines: list[Line]
    kernels: list[Kernel]
    wall: float | None
    timed_wall: float | None
    rounds: int
    memory: Any
    sources: list[Source]


class _Lines(dict[tuple[str, int], Line]):
    """Lines by file and number."""

    def __init__(self):
        super().__init__()
        self.sources: list[Source] = []

    def of(self, eqn: JaxprEqn | None) -> Line:
        """Return the line of an equation."""
        source = eqn.source if eqn is not None else None
        key = ("", 0) if source is None else (source.file, source.line)
        if key not in self:
            self[key] = (
                Line("", 0, "", "")
                if source is None
                else Line(source.file, source.line, source.function, source.code)
            )
            if source is not None:
                self.sources.append(source)
        return self[key]


def collect(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Collected:
    """Trace, compile and measure a function."""
    from namoo.engines.native.attribution import arrays_at_peak
    from namoo.engines.native.timed import TimedProgram

    jitted = fun if isinstance(fun, Jitted) else jit(fun)
    traced = jitted.trace(*args, **kwargs)
    inner = traced._traced
    _require_plain(jitted, inner, traced._leaves)
    program = TimedProgram(inner.program)
    leaves = [x for x in traced._leaves if is_array(x)]
    known = not any(isinstance(x, ShapeDtypeStruct) for x in leaves)
    steps, walls, rounds = program.timers, (None, None), 0
    if known:
        values = dispatch.numbers([*inner.given, *inner.used(leaves)])
        steps, walls, rounds = _measure(program, inner.program, values)
    lines = _Lines()
    for eqn in _equations(inner.program.jaxpr):
        lines.of(eqn).equations.append(_described(eqn))
    kernels = [_add_kernel(lines, number, step) for number, step in enumerate(steps)]
    for array in arrays_at_peak(program.plan):
        lines.of(array.eqn).alive += array.size
    for eqn, size in _results(inner.program):
        lines.of(eqn).alive += size
    found = sorted(lines.values(), key=lambda line: (not line.file, line.file, line.number))
    return Collected(jitted._name, found, kernels, *walls, rounds, program.memory, lines.sources)


def _require_plain(jitted: Jitted, program: Any, leaves: Sequence[Any]) -> None:
    """Raise an error for programs that do not run as native code on the host's CPU."""
    if program.refs is not None:
        raise TypeError(
            f"namoo.inspect: {jitted._name} takes or closes over mutable references, and such "
            "programs cannot be inspected. Pass the values, ref[...], and return new ones."
        )
    arrays = [x for x in leaves if is_array(x)]
    if jitted._is_placed(program, program.used(arrays)):
        raise TypeError(
            f"namoo.inspect: {jitted._name} runs on other devices. inspect measures native code on "
            "the host: call it with arrays that are not placed, such as numpy.asarray(x)."
        )


def _measure(
    timed: Any, program: ClosedJaxpr, values: list[np.ndarray]
) -> tuple[list[Any], tuple[float, float], int]:
    """Run a program alternately without and with timers.

    Returns:
        The steps of the fastest timed run, which other processes disturbed the least; the best wall
        time without timers; the wall time of that timed run; and the number of runs.
    """
    from namoo.engines.native.engine import native

    plain = native.compile(program, {"strict": False})
    plain(values)
    best, wall = timed.measure(values)[1], float("inf")
    rounds, until = 0, time.perf_counter() + _SECONDS
    while rounds < 5 or rounds < _ROUNDS and time.perf_counter() < until:
        start = time.perf_counter_ns()
        plain(values)
        wall = min(wall, (time.perf_counter_ns() - start) * 1e-9)
        found = timed.measure(values)[1]
        best = min(best, found, key=lambda m: m.seconds)
        rounds += 1
    return best.steps, (wall, best.wall), rounds


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """Yield all equations; those of an inner program follow the equation that holds it."""
    for eqn in jaxpr.eqns:
        inner = list(subjaxprs(eqn.params))
        if not (inner and eqn.primitive.name == "jit"):
            yield eqn
        for program in inner:
            yield from _equations(getattr(program, "jaxpr", program))


def _described(eqn: JaxprEqn) -> Equation:
    operands, results = (
        tuple(atom.aval.str_short() for atom in atoms) for atoms in (eqn.invars, eqn.outvars)
    )
    return Equation(eqn.primitive.name, operands, results, _is_backward(eqn))


def _is_backward(eqn: JaxprEqn | None) -> bool:
    return eqn is not None and eqn.source is not None and eqn.source.backward


def _add_kernel(lines: _Lines, number: int, step: Any) -> Kernel:
    """Add the costs of a step to its lines."""
    runs = max(step.runs, 1)
    shares = step.shares()
    kernel = Kernel(
        number, step.name, step.kind, tuple(step.space), step.seconds, step.runs, 0, 0, []
    )
    for eqn, own in step.costs.items():
        line = lines.of(eqn)
        cost = Cost(step.seconds * shares[eqn], runs * own.flops, runs * own.bytes)
        if _is_backward(eqn):
            line.backward += cost
        else:
            line.forward += cost
        if number not in line.kernels:
            line.kernels.append(number)
        if line.file and (line.file, line.number) not in kernel.lines:
            kernel.lines.append((line.file, line.number))
        kernel.flops += cost.flops
        kernel.bytes += cost.bytes
    kernel.lines.sort()
    return kernel


def _results(program: ClosedJaxpr) -> Iterator[tuple[JaxprEqn | None, int]]:
    """Yield the bytes of each result that is not an input, with the equation that makes it."""
    makers = {v: eqn for eqn in program.jaxpr.eqns for v in eqn.outvars}
    for atom in program.jaxpr.outvars:
        if type(atom) is not Literal and atom in makers:
            size = (
                int(np.prod(atom.aval.shape))
                * np.dtype(getattr(atom.aval.dtype, "numpy", atom.aval.dtype)).itemsize
            )
            yield makers[atom], size
