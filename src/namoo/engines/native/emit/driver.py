"""The pass `emit`: LLVM IR for the kernels of a plan, and for the entry function that runs them.

The body of a loop is another plan, emitted into the same function.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native import tuning
from namoo.engines.native.emit.call_list import PARALLEL, Calls, grain, longest
from namoo.engines.native.emit.module import Module
from namoo.engines.native.fuse.kinds import KINDS, FusionGroup
from namoo.engines.native.graph.node import CALL, Node
from namoo.engines.native.ir.extents import about, at_least, is_dynamic
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.sizes import SizedFunction
from namoo.engines.native.kernels.kernel import Kernel
from namoo.engines.native.memory.arena import Buffer, Plan

ZERO, ONE = constant("i64", 0), constant("i64", 1)


def emit(plan: Plan) -> Module:
    """Emit a program; its entry takes a table of pointers, the arena and the host's callback."""
    module = Module(plan)
    f = SizedFunction("entry", ["ptr", "ptr", "ptr"], "i32")
    return emit_with(Driver(module, f, f.parameters[2]), plan)


def emit_with(driver: Driver, plan: Plan, more: int = 0) -> Module:
    """Emit a program with a driver that has `more` arrays beside the constants of the program."""
    module, f, graph = driver.module, driver.f, plan.graph
    table, arena, _ = f.parameters
    if graph.variables:
        entry_sizes(driver, plan, table, arena, more)
    counts = len(graph.inputs), len(graph.consts) + more, len(graph.outputs)
    ends = [0, *itertools.accumulate(counts)]
    inputs, consts, outputs = (Slots(f, table, range(*both)) for both in itertools.pairwise(ends))
    driver.run(plan, inputs, consts, outputs, arena, table)
    module.functions.append(driver.finish())
    return module


def entry_sizes(driver: Driver, plan: Plan, table: Value, arena: Value, more: int) -> None:
    """Emit what the entry does with sizes that are known at run time.

    After its arrays, the table has a pointer to numbers: the sizes of the dimension variables, to
    which the entry adds the bytes of the arena and the sizes of the results' axes. Without an
    arena it does no more: the caller learns what it must allocate.
    """
    f, graph = driver.f, plan.graph
    assert isinstance(f, SizedFunction)
    count = len(graph.inputs) + len(graph.consts) + more + len(graph.outputs)
    f.take_sizes(table, count, graph.variables)
    assert f.sizes is not None
    numbers = [plan.arena_size, *(n for node in graph.outputs for n in node.shape)]
    for i, n in enumerate(numbers, len(graph.variables)):
        f.line(f"  store {f.number(n)!r}, ptr {f.offset(f.sizes, i, 'i64').name}, align 8")
    driver.check(f.emit_here("i1", 0, f"icmp eq ptr {arena.name}, null"), 0)


class Driver:
    """Emits the steps of plans into one function."""

    def __init__(self, module: Module, f: Function, host: Value):
        self.module = module
        self.f = f
        self.host = host
        self.leaves: dict[str, int] = {}
        """The blocks that leave the program, and what it returns there."""
        self.widest = 1
        """The largest number of pointers that a step is called with."""
        self.iterations: list[tuple[str, Value]] = []
        """The loops around the current step, and their iteration numbers."""
        self.deepest = 0
        """The largest number of iteration numbers that a step stores before it may fail."""
        self.work = 0
        """About how many operations were emitted so far, in the innermost loop."""
        self.codes: list[int] = []
        """For each enclosing loop, what the program returns if a signal stops it there."""
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
        """Emit all steps of a plan; `slots` is a table of its inputs, constants and outputs."""
        banks = {"in": inputs, "const": consts, "out": outputs}
        starts = {"in": 0, "const": len(inputs), "out": len(inputs) + len(consts)}

        def at(buffer: Buffer) -> Value:
            kind, i = buffer
            return self.f.offset(arena, i, "i8") if kind == "arena" else banks[kind][i]

        if self.f.sizes is not None:
            banks["sizes"], slots = [self.f.sizes], None
        calls = Calls(self, at, arena, slots, starts)
        for group, offset in zip(plan.steps, plan.scratch, strict=True):
            self.step(plan, group, offset, calls)
        calls.write()
        calls.finish()

    def step(self, plan: Plan, group: FusionGroup, offset: int, calls: Calls) -> None:
        """Emit a step of a plan, or a call of its kernel; `offset` is that of its scratch."""
        first, buffers = group.roots[0], plan.buffers
        if first.kind is CALL:
            step, written = first.data, plan.written(group)
            kernel = step.kernel(self.module, first.operands, written)
            if kernel is not None:
                places = [buffers[n] for n in (*first.operands, *written)]
                calls.add(kernel, [*places, ("arena", offset)] if step.scratch != 0 else places)
                return
            calls.write()
            operands = [(n, calls.at(buffers[n])) for n in first.operands]
            results = [(n, calls.at(buffers[n])) for n in written]
            self.work += tuning.CALL_WORK
            step.emit(self, operands, results, self.f.offset(calls.arena, offset, "i8"))
        elif first.size != 0 and 0 not in group.space:
            if not at_least(first.size, 1):
                calls.write()
                with self.f.branch(self.f.compare("gt", self.f.number(first.size), ZERO)):
                    self.kernel(group, buffers, calls)
                    calls.write()
                return
            self.kernel(group, buffers, calls)

    def kernel(self, group: FusionGroup, buffers: dict[Node, Buffer], calls: Calls) -> None:
        """Emit the call of the kernel of a group."""
        kernel, nodes = KINDS[group.roots[0].kind].kernel(self.module, group)
        places = [buffers[n] for n in nodes]
        calls.add(kernel, [*places, ("sizes", 0)] if self.module.variables else places)

    def call(self, kernel: Kernel, table: Value) -> None:
        """Run all units of a kernel, on several threads if that is worthwhile."""
        self.work += about(kernel.work) + tuning.CALL_WORK
        units = self.f.number(kernel.units)
        if is_dynamic(kernel.work):
            self.call_of_any_size(kernel, table, units)
        elif share := grain(kernel):
            self.module.declarations["namoo_parallel"] = PARALLEL
            numbers = ", ".join(f"i64 {n}" for n in (kernel.units, share, longest(kernel)))
            call = f"@namoo_parallel(ptr @{kernel.name}, {table!r}, {numbers})"
            self.stop(self.f.emit_here("i32", 0, f"call i32 {call}"))
        else:
            self.f.line(f"  call void @{kernel.name}({table!r}, i64 0, {units!r})")

    def call_of_any_size(self, kernel: Kernel, table: Value, units: Value) -> None:
        """As `call`, for a kernel whose work is known at run time only."""
        f = self.f
        work, count = f.number(kernel.work), f.number(kernel.units)
        ratio = [constant("i64", n) for n in (tuning.SMALLEST_PIECE, tuning.LONGEST_PIECE)]
        least, most = (f.maximum(f.idiv(f.mul(count, n), f.maximum(work, ONE)), ONE) for n in ratio)
        many = f.compare("ge", f.number(kernel.work), constant("i64", tuning.PARALLEL_WORK))
        with f.branch(many):
            self.module.declarations["namoo_parallel"] = PARALLEL
            numbers = ", ".join(map(repr, (units, least, most)))
            call = f"@namoo_parallel(ptr @{kernel.name}, {table!r}, {numbers})"
            self.stop(f.emit_here("i32", 0, f"call i32 {call}"))
        with f.branch(f.not_(many)):
            f.line(f"  call void @{kernel.name}({table!r}, i64 0, {units!r})")

    def table(self, pointers: Sequence[Value]) -> Value:
        """Store pointers in a table, which all steps share: they run one after another."""
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
        count = self.f.number(size)
        self.f.line(
            f"  call void @{name}(ptr {target.name}, ptr {source.name}, {count!r}, i1 false)"
        )

    def copy_unless_aliased(self, target: Value, source: Value, size: int) -> None:
        """Copy bytes unless both are the same: a result may alias an operand."""
        if size == 0 or target.name == source.name:
            return
        apart = f"icmp ne ptr {target.name}, {source.name}"
        with self.f.branch(self.f.emit_here("i1", 0, apart)):
            self.copy(target, source, size)

    def host_call(self, eqn: JaxprEqn, operands, results, failed: bool = False) -> None:
        """Emit the call that lets Python evaluate an equation.

        An equation that `failed` only runs to raise an error, and gets the iterations of loops.
        """
        f = self.f
        number = len(self.module.host)
        self.module.host.append(eqn)
        self.module.around.append([name for name, _ in self.iterations] if failed else None)
        # The last pointer is null until Python has finished: a signal handler may raise before or
        # after the function that Python calls.
        pointers = [p for _, p in (*operands, *results)]
        if failed:
            pointers.append(self.stored_iterations())
        if f.sizes is not None:
            pointers.append(f.sizes)
        table = self.table([*pointers, Value("null", "ptr")])
        f.line(f"  call void {self.host.name}(i64 {number}, ptr {table.name})")
        last = f.offset(table, len(pointers), "ptr")
        done = f.emit_here("ptr", 0, f"load ptr, ptr {last.name}, align 8")
        self.check(f.emit_here("i1", 0, f"icmp eq ptr {done.name}, null"))

    @contextmanager
    def iteration(self, loop: str, number: Value):
        """Emit the steps of a loop's body; errors raised inside report the iteration number."""
        self.iterations.append((loop, number))
        yield
        self.iterations.pop()

    @contextmanager
    def stoppable(self, eqn: JaxprEqn | None, length: int | None = None):
        """Emit the body of a loop, and the check for signals at its end.

        A loop of known `length` and little work leaves the check to the loop around it.
        """
        outer, self.work = self.work, 1
        self.codes.append(2 + len(self.module.loops))
        self.module.loops.append(eqn)
        yield
        length = length if length is None else about(length)
        if length is None or length * self.work > tuning.WORK_BETWEEN_SIGNAL_CHECKS // 16:
            self._check_signals()
            length = 1
        self.codes.pop()
        self.work = outer + length * self.work

    def _check_signals(self) -> None:
        """Leave the program if a signal handler raised; see `interrupted` in workers.cpp."""
        f, name = self.f, "namoo_interrupted"
        self.checks_signals = True
        self.module.declarations[name] = f"declare i32 @{name}() cold"
        full = f.emit_here("i64", 0, "load i64, ptr %until_check, align 8")
        left = f.emit_here("i64", 0, f"sub i64 {full.name}, {self.work}")
        f.line(f"  store {left!r}, ptr %until_check, align 8")
        with f.branch(f.compare("lt", left, constant("i64", 0))):
            f.line(f"  store i64 {tuning.WORK_BETWEEN_SIGNAL_CHECKS}, ptr %until_check, align 8")
            self.stop(f.emit_here("i32", 0, f"call i32 @{name}()"))

    def stored_iterations(self) -> Value:
        """Store the iteration numbers of all enclosing loops; return the pointer to them."""
        f, slot = self.f, Value("%turns", "ptr")
        self.deepest = max(self.deepest, len(self.iterations), 1)
        for i, (_, number) in enumerate(self.iterations):
            f.line(f"  store {number!r}, ptr {f.offset(slot, i, 'i64').name}, align 8")
        return slot

    def check(self, failed: Value, code: int = 1) -> None:
        """Leave the program if a step failed."""
        label = f"LEAVE{code}"
        self.leaves[label] = code
        self.f.leave_if(failed, label)

    def stop(self, status: Value) -> None:
        """Leave the program if a signal stopped a step; the code says in which loop."""
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
            first = tuning.WORK_BETWEEN_SIGNAL_CHECKS
            f.preamble.append(f"  store i64 {first}, ptr %until_check, align 8")
        for label, code in self.leaves.items():
            f.start_block(label)
            f.line(f"  ret i32 {code}")
        self.module.declarations |= f.declarations
        return f.text()


class Slots(Sequence[Value]):
    """Pointers of a table, each loaded on first use."""

    def __init__(self, f: Function, table: Value, places: range):
        self.f = f
        self.table = table
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: Any) -> Any:
        return self.f.load(self.f.offset(self.table, self.places[i], "ptr"), "ptr")
