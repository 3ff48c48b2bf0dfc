"""The order of calls: a plan becomes the text of one function that runs its steps.

A loop's body is another plan, written into the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native import contract
from namoo.engines.native.graph import CALL, DOT, Node
from namoo.engines.native.ir import Function, Value, constant
from namoo.engines.native.kernel import Emitted, KernelEmitter
from namoo.engines.native.plan import Plan, specification

# From this many operations on, a kernel's work is shared among threads.
PARALLEL_WORK = 1 << 17
GRAIN_WORK = 1 << 15


class Module:
    """The functions of one program: equal kernels are one function."""

    def __init__(self) -> None:
        self.kernels: dict[Any, Emitted] = {}
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self.host: list[JaxprEqn] = []
        """Equations that Python evaluates."""

    def text(self) -> str:
        """The module as LLVM reads it."""
        declarations = dict(self.declarations)
        defined = {k.name for k in self.kernels.values()}
        for kernel in self.kernels.values():
            declarations |= kernel.declarations
        lines = [*self.globals.values()]
        lines += [d for name, d in declarations.items() if name not in defined]
        lines += [k.text for k in self.kernels.values()]
        return "\n\n".join([*lines, *self.functions])

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
        self.fails = False
        self.widest = 1

    def run(
        self,
        plan: Plan,
        inputs: Sequence[Value],
        consts: Sequence[Value],
        outputs: Sequence[Value],
        arena: Value,
    ) -> None:
        """Write all steps of a plan."""
        banks = {"in": inputs, "const": consts, "out": outputs}

        def pointer(node: Node) -> Value:
            kind, i = plan.places[node]
            return self.f.offset(arena, i, "i8") if kind == "arena" else banks[kind][i]

        for cluster, offset in zip(plan.steps, plan.scratch, strict=True):
            first = cluster.roots[0]
            if first.kind is CALL:
                operands = [(n, pointer(n)) for n in first.operands]
                results = [(n, pointer(n)) for n in plan.written(cluster)]
                first.data.emit(self, operands, results, self.f.offset(arena, offset, "i8"))
            elif first.size == 0:
                continue
            elif first.kind is DOT and not contract.generated(first):
                contract.emit(self, first, [pointer(x) for x in first.operands], pointer(first))
            elif 0 not in cluster.space:
                self.kernel(specification(plan.fusion, cluster), pointer)

    def kernel(self, spec, pointer) -> None:
        """Call a kernel, which is written unless an equal one was."""
        key = spec.key()
        kernel = self.module.kernels.get(key)
        if kernel is None:
            name = f"k{len(self.module.kernels)}"
            if spec.roots[0].kind is DOT:
                kernel = contract.kernel(spec, name)
            else:
                kernel = KernelEmitter(spec, name).emit()
            self.module.kernels[key] = kernel
        table = self.table([pointer(n) for n in (*spec.inputs, *spec.stored)])
        self.call(kernel, table)

    def call(self, kernel: Emitted, table: Value) -> None:
        """Run all units of a kernel: by several threads if they are much work."""
        if kernel.work < PARALLEL_WORK or kernel.units < 2:
            self.f.line(f"  call void @{kernel.name}(ptr {table.name}, i64 0, i64 {kernel.units})")
            return
        self.parallel(kernel.name, table, kernel.units, kernel.work)

    def parallel(self, name: str, table: Value, units: int, work: int) -> None:
        """Share `units` of a function `(table, begin, end)` among threads."""
        grain = max(1, units * GRAIN_WORK // max(work, 1))
        self.module.declarations["namoo_parallel"] = (
            "declare void @namoo_parallel(ptr, ptr, i64, i64)"
        )
        self.f.line(
            f"  call void @namoo_parallel(ptr @{name}, ptr {table.name}, i64 {units}, i64 {grain})"
        )

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

    def host_call(self, eqn: JaxprEqn, operands, results) -> None:
        """Let Python evaluate an equation."""
        f = self.f
        number = len(self.module.host)
        self.module.host.append(eqn)
        table = self.table([p for _, p in (*operands, *results)])
        self.check(
            f.emit_here("i32", 0, f"call i32 {self.host.name}(i64 {number}, ptr {table.name})")
        )

    def check(self, code: Value) -> None:
        """Leave the program if a step failed."""
        self.fails = True
        self.f.leave_if(self.f.compare("ne", code, constant("i32", 0)))

    def finish(self) -> str:
        """The function's text."""
        f = self.f
        f.preamble.append(f"  %table = alloca [{self.widest} x ptr], align 8")
        f.line("  ret i32 0")
        if self.fails:
            f.start_block("FAIL")
            f.line("  ret i32 1")
        self.module.declarations |= f.declarations
        return f.text()


def write_program(plan: Plan) -> Module:
    """The module of a whole program: its entry takes a table of pointers, an arena and the host."""
    module = Module()
    f = Function("entry", ["ptr", "ptr", "ptr"], "i32")
    table, arena, host = f.parameters
    graph = plan.graph

    def slots(start: int, count: int) -> list[Value]:
        return [f.load(f.offset(table, start + i, "ptr"), "ptr") for i in range(count)]

    n_in, n_const, n_out = len(graph.inputs), len(graph.consts), len(graph.outputs)
    inputs = slots(0, n_in)
    consts = slots(n_in, n_const)
    outputs = slots(n_in + n_const, n_out)
    driver = Driver(module, f, host)
    driver.run(plan, inputs, consts, outputs, arena)
    module.functions.append(driver.finish())
    return module
