"""The order of calls: a plan becomes the text of one function that runs its steps.

A loop's body is another plan, written into the same function.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native import contract
from namoo.engines.native.calls import CALL_WORK, PARALLEL, Calls, grain, longest
from namoo.engines.native.graph import CALL, DOT
from namoo.engines.native.ir import Function, Value, constant
from namoo.engines.native.kernel import Emitted, KernelEmitter, Spec
from namoo.engines.native.plan import Plan, specification
from namoo.engines.native.tiles import inlined


class Part(NamedTuple):
    """Text to be compiled by itself, and the functions in it that others call."""

    names: list[str]
    text: str


# About how many operations a loop does between two checks for signals: up to a few milliseconds.
BETWEEN_CHECKS = 1 << 20


class Module:
    """The functions of one program: equal kernels are one function."""

    def __init__(self) -> None:
        self.kernels: dict[Any, Emitted] = {}
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        """Constants in memory."""
        self.lists: list[str] = []
        """Those of them that only the program's own functions read."""
        self.host: list[JaxprEqn] = []
        """Equations that Python evaluates."""
        self.loops: list[JaxprEqn | None] = []
        """Equations whose loops a signal can stop: the program then returns their number plus 2."""

    def text(self) -> str:
        """The module as LLVM reads it."""
        return self._part(list(self.kernels.values()), [*self.lists, *self.functions])

    def parts(self, count: int) -> list[Part]:
        """The module as several of about equal size; the last one needs those before it."""
        rows: list[list[Emitted]] = [[] for _ in range(count)]
        sizes = [0] * (count - 1) + [sum(map(len, self.functions))]
        for kernel in sorted(self.kernels.values(), key=lambda k: -len(k.text)):
            least = sizes.index(min(sizes))
            rows[least].append(kernel)
            sizes[least] += len(kernel.text)
        *others, last = rows
        out = [Part([k.name for k in row], self._part(row, [])) for row in others if row]
        elsewhere = [f"declare void @{k.name}(ptr, i64, i64)" for row in others for k in row]
        return [*out, Part(["entry"], self._part(last, [*elsewhere, *self.lists, *self.functions]))]

    def _part(self, kernels: list[Emitted], others: list[str]) -> str:
        declarations = dict(self.declarations)
        for kernel in kernels:
            declarations |= kernel.declarations
        # A function with one caller is less work for LLVM as a part of that.
        uses = Counter(name for kernel in kernels for name in kernel.declarations)
        for name, text in declarations.items():
            if uses[name] == 1:
                declarations[name] = inlined(text)
        texts = (k.text for k in kernels)
        return "\n\n".join([*self.globals.values(), *declarations.values(), *texts, *others])

    def number(self, value: int) -> Value:
        """A 32-bit constant in memory, as Fortran wants its arguments."""
        name = f"@n{value}" if value >= 0 else f"@m{-value}"
        self.globals[name] = f"{name} = private unnamed_addr constant i32 {value}"
        return Value(name, "ptr")

    def letter(self, value: str) -> Value:
        name = f"@l{value}"
        self.globals[name] = f"{name} = private unnamed_addr constant i8 {ord(value)}"
        return Value(name, "ptr")

    def real(self, elem: str, value: float) -> Value:
        one = constant("f64" if elem in ("f64", "c128") else "f32", value)
        zero = constant(one.elem, 0.0)
        name = f"@r{elem}{int(value)}"
        kind = one.type
        self.globals[name] = (
            f"{name} = private unnamed_addr constant [2 x {kind}] [{one!r}, {zero!r}]"
        )
        return Value(name, "ptr")


class Driver:
    """Writes the steps of plans into one function."""

    def __init__(self, module: Module, f: Function, host: Value):
        self.module = module
        self.f = f
        self.host = host
        self.leaves: dict[str, int] = {}
        """The blocks that leave the program, and what it returns there."""
        self.widest = 1
        self.turns: list[tuple[str, Value]] = []
        """The loops around the step that is being written, and the numbers of their turns."""
        self.deepest = 0
        """How many of those a step that may fail needs memory for."""
        self.work = 0
        """About how many operations were written so far, in the innermost loop."""
        self.codes: list[int] = []
        """For each loop around, what the program returns if a signal stops it there."""
        self.checks_signals = False

    def run(
        self,
        plan: Plan,
        inputs: Sequence[Value],
        consts: Sequence[Value],
        outputs: Sequence[Value],
        arena: Value,
        slots: Value | None = None,
    ) -> None:
        """Write all steps of a plan; `slots` is a table of its inputs, constants and outputs."""
        banks = {"in": inputs, "const": consts, "out": outputs}
        starts = {"in": 0, "const": len(inputs), "out": len(inputs) + len(consts)}

        def at(place: tuple[str, int]) -> Value:
            kind, i = place
            return self.f.offset(arena, i, "i8") if kind == "arena" else banks[kind][i]

        calls = Calls(self, at, arena, slots, starts)
        for cluster, offset in zip(plan.steps, plan.scratch, strict=True):
            first = cluster.roots[0]
            if first.kind is CALL:
                step, written = first.data, plan.written(cluster)
                kernel = step.kernel(self.module.kernels, first.operands, written)
                if kernel is not None:
                    places = [plan.places[n] for n in (*first.operands, *written)]
                    calls.add(kernel, [*places, ("arena", offset)] if step.scratch else places)
                    continue
                calls.write()
                operands = [(n, at(plan.places[n])) for n in first.operands]
                results = [(n, at(plan.places[n])) for n in written]
                self.work += CALL_WORK
                step.emit(self, operands, results, self.f.offset(arena, offset, "i8"))
                continue
            if first.size == 0 or 0 in cluster.space:
                continue
            if cluster.step:
                kernel, nodes = contract.blocks(self.module, first), (*first.operands, first)
            else:
                spec = specification(cluster)
                kernel, nodes = self.kernel(spec), (*spec.inputs, *spec.stored)
            calls.add(kernel, [plan.places[n] for n in nodes])
        calls.write()
        calls.finish()

    def kernel(self, spec: Spec) -> Emitted:
        """A kernel, which is written unless an equal one was."""
        key = spec.key
        kernel = self.module.kernels.get(key)
        if kernel is None:
            name = f"k{len(self.module.kernels)}"
            if spec.roots[0].kind is DOT:
                kernel = contract.kernel(spec, name)
            else:
                kernel = KernelEmitter(spec, name).emit()
            self.module.kernels[key] = kernel
        return kernel

    def call(self, kernel: Emitted, table: Value) -> None:
        """Run all units of a kernel: by several threads if they are much work."""
        self.work += kernel.work + CALL_WORK
        if share := grain(kernel):
            self.module.declarations["namoo_parallel"] = PARALLEL
            numbers = ", ".join(f"i64 {n}" for n in (kernel.units, share, longest(kernel)))
            call = f"@namoo_parallel(ptr @{kernel.name}, {table!r}, {numbers})"
            self.stop(self.f.emit_here("i32", 0, f"call i32 {call}"))
        else:
            self.f.line(f"  call void @{kernel.name}({table!r}, i64 0, i64 {kernel.units})")

    def table(self, pointers: Sequence[Value]) -> Value:
        """Pointers in a row, in memory: the same for all steps, since each ends before the next."""
        f = self.f
        self.widest = max(self.widest, len(pointers))
        table = Value("%table", "ptr")
        for i, p in enumerate(pointers):
            f.line(f"  store ptr {p.name}, ptr {f.offset(table, i, 'ptr').name}, align 8")
        return table

    def copy(self, target: Value, source: Value, size: int) -> None:
        """Copy bytes."""
        if size == 0 or target.name == source.name:
            return
        name = "llvm.memcpy.p0.p0.i64"
        self.module.declarations[name] = f"declare void @{name}(ptr, ptr, i64, i1)"
        self.f.line(
            f"  call void @{name}(ptr {target.name}, ptr {source.name}, i64 {size}, i1 false)"
        )

    def bring(self, target: Value, source: Value, size: int) -> None:
        """Copy bytes unless they are there: a result may lie where an operand does."""
        if size == 0 or target.name == source.name:
            return
        apart = f"icmp ne ptr {target.name}, {source.name}"
        with self.f.branch(self.f.emit_here("i1", 0, apart)):
            self.copy(target, source, size)

    def host_call(self, eqn: JaxprEqn, operands, results) -> None:
        """Let Python evaluate an equation."""
        f = self.f
        number = len(self.module.host)
        self.module.host.append(eqn)
        # The last pointer is null until Python has done all: a signal's handler may raise before
        # or after the function that it calls.
        table = self.table([*(p for _, p in (*operands, *results)), Value("null", "ptr")])
        f.line(f"  call void {self.host.name}(i64 {number}, ptr {table.name})")
        last = f.offset(table, len(operands) + len(results), "ptr")
        done = f.emit_here("ptr", 0, f"load ptr, ptr {last.name}, align 8")
        self.check(f.emit_here("i1", 0, f"icmp eq ptr {done.name}, null"))

    @contextmanager
    def turn(self, loop: str, number: Value):
        """Write the steps of a loop's body; what fails there tells in which turn."""
        self.turns.append((loop, number))
        yield
        self.turns.pop()

    @contextmanager
    def stoppable(self, eqn: JaxprEqn | None, length: int | None = None):
        """Write the body of a loop, and the check for signals at its end.

        A loop of little work, which a known `length` tells, is left to the loop around it.
        """
        outer, self.work = self.work, 1
        self.codes.append(2 + len(self.module.loops))
        self.module.loops.append(eqn)
        yield
        if length is None or length * self.work > BETWEEN_CHECKS // 16:
            self._check_signals()
            length = 1
        self.codes.pop()
        self.work = outer + length * self.work

    def _check_signals(self) -> None:
        """Leave the program if the handler of a signal raised: see `interrupted` in workers.cpp."""
        f, name = self.f, "namoo_interrupted"
        self.checks_signals = True
        self.module.declarations[name] = f"declare i32 @{name}() cold"
        full = f.emit_here("i64", 0, "load i64, ptr %until_check, align 8")
        left = f.emit_here("i64", 0, f"sub i64 {full.name}, {self.work}")
        f.line(f"  store {left!r}, ptr %until_check, align 8")
        with f.branch(f.compare("lt", left, constant("i64", 0))):
            f.line(f"  store i64 {BETWEEN_CHECKS}, ptr %until_check, align 8")
            self.stop(f.emit_here("i32", 0, f"call i32 @{name}()"))

    def noted_turns(self) -> Value:
        """The numbers of the turns of all loops around, written to memory."""
        f, slot = self.f, Value("%turns", "ptr")
        self.deepest = max(self.deepest, len(self.turns), 1)
        for i, (_, number) in enumerate(self.turns):
            f.line(f"  store {number!r}, ptr {f.offset(slot, i, 'i64').name}, align 8")
        return slot

    def check(self, failed: Value, code: int = 1) -> None:
        """Leave the program if a step failed."""
        label = f"LEAVE{code}"
        self.leaves[label] = code
        self.f.leave_if(failed, label)

    def stop(self, status: Value) -> None:
        """Leave the program if a signal stopped a step, and tell in which loop."""
        stopped = self.f.compare("ne", status, constant("i32", 0))
        self.check(stopped, self.codes[-1] if self.codes else 1)

    def finish(self) -> str:
        """The function's text."""
        f = self.f
        f.preamble.append(f"  %table = alloca [{self.widest} x ptr], align 8")
        if self.deepest:
            f.preamble.append(f"  %turns = alloca [{self.deepest} x i64], align 8")
        f.line("  ret i32 0")
        if self.checks_signals:
            f.preamble.append("  %until_check = alloca i64, align 8")
            f.preamble.append(f"  store i64 {BETWEEN_CHECKS}, ptr %until_check, align 8")
        for label, code in self.leaves.items():
            f.start_block(label)
            f.line(f"  ret i32 {code}")
        self.module.declarations |= f.declarations
        return f.text()


class Slots(Sequence[Value]):
    """Pointers of a table, each loaded when it is asked for."""

    def __init__(self, f: Function, table: Value, places: range):
        self.f = f
        self.table = table
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: Any) -> Any:
        return self.f.load(self.f.offset(self.table, self.places[i], "ptr"), "ptr")


def write_program(plan: Plan) -> Module:
    """The module of a whole program: its entry takes a table of pointers, an arena and the host."""
    module = Module()
    f = Function("entry", ["ptr", "ptr", "ptr"], "i32")
    table, arena, host = f.parameters
    graph = plan.graph

    driver = Driver(module, f, host)
    counts = len(graph.inputs), len(graph.consts), len(graph.outputs)
    ends = [0, *itertools.accumulate(counts)]
    inputs, consts, outputs = (Slots(f, table, range(*both)) for both in itertools.pairwise(ends))
    driver.run(plan, inputs, consts, outputs, arena, table)
    module.functions.append(driver.finish())
    return module
