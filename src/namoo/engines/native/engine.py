"""The native engine: programs in, machine code out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from namoo._accelerator import native as runtime
from namoo.core.array import to_numpy
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import eval_trace, floating_errors_ignored, set_trace
from namoo.engines.native import analysis, link
from namoo.engines.native.driver import write_program
from namoo.engines.native.graph import Emitter
from namoo.engines.native.plan import Plan, nbytes
from namoo.engines.native.types import numpy_dtype

_HOST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Host:
    """What native code calls for an equation that Python evaluates."""

    def __init__(self, equations):
        self.equations = [
            (
                eqn.primitive,
                eqn.params,
                [(n.shape, n.dtype) for n in operands],
                [(n.shape, n.dtype) for n in results],
            )
            for eqn, operands, results in equations
        ]
        self.error: BaseException | None = None
        self.callback = _HOST(self.run)

    def run(self, number: int, table: int) -> int:
        try:
            primitive, params, operands, results = self.equations[number]
            count = len(operands) + len(results)
            pointers = (ctypes.c_void_p * count).from_address(table)
            arrays = [
                view(pointers[i] or 0, shape, dtype)
                for i, (shape, dtype) in enumerate((*operands, *results))
            ]
            # What is kept beyond the call must not be in the arena.
            values = [a.copy() for a in arrays[: len(operands)]]
            with set_trace(eval_trace), floating_errors_ignored():
                out = primitive.evaluate(*values, **params)
            out = out if primitive.multiple_results else [out]
            for target, value in zip(arrays[len(operands) :], out, strict=True):
                target[...] = value
        except BaseException as error:
            self.error = error
            return 1
        return 0

    def fail(self, code: int) -> NoReturn:
        """Raise what made the program stop."""
        error, self.error = self.error, None
        raise error if error else RuntimeError(f"native code failed with code {code}")


def view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array over memory at an address."""
    size = int(np.prod(shape)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


class Program:
    """A compiled program."""

    def __init__(self, closed: ClosedJaxpr):
        self.closed = closed
        emitter = Emitter()
        inputs = [emitter.input(a) for a in closed.in_avals]
        emitter.graph.outputs = emitter.inline(closed, inputs)
        plan = Plan(emitter)
        module = write_program(plan)
        self.text = module.text()
        self.fused = plan.text()
        machine_code = link.object_code(self.text)
        self.code = link.Code(machine_code)
        self.costs = {
            "flops": float(analysis.operations(plan.graph)),
            "bytes accessed": float(analysis.traffic(plan)),
        }
        self.memory = analysis.MemoryAnalysis(
            sum(map(nbytes, plan.graph.inputs)),
            sum(map(nbytes, plan.graph.outputs)),
            plan.arena_size,
            len(machine_code),
        )
        self.entry = _ENTRY(self.code.entry)
        self.host = Host(module.host)
        self.arena_size = plan.arena_size
        self.consts = [np.ascontiguousarray(to_numpy(c)) for _, c in plan.graph.consts]
        self.outputs = [(a.shape, numpy_dtype(a.dtype)) for a in closed.out_avals]
        self.kernels = len(module.kernels)
        self.runtime_entry = None if runtime is None else self._runtime_entry()

    def _runtime_entry(self) -> Any:
        """The program for the C++ runtime, which calls it without Python in between."""
        return runtime.Entry(
            self.code.entry,
            [(a.shape, numpy_dtype(a.dtype)) for a in self.closed.in_avals],
            self.outputs,
            consts=self.consts,
            arena=self.arena_size,
            host=ctypes.cast(self.host.callback, ctypes.c_void_p).value,
            keep=(self.code, self.host),
            handler=self.host.fail,
        )

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.runtime_entry is not None:
            return self.runtime_entry(values)
        ins = [np.ascontiguousarray(v) for v in values]
        outs = [np.empty(shape, dtype) for shape, dtype in self.outputs]
        arrays = [*ins, *self.consts, *outs]
        table = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        arena = np.empty(self.arena_size + 64, np.uint8)
        start = -(-arena.ctypes.data // 64) * 64
        if code := self.entry(ctypes.addressof(table), start, self.host.callback):
            self.host.fail(code)
        return outs

    def as_text(self, stage: str = "jaxpr") -> str:
        """The program at one of its stages: "jaxpr", "fused", "llvm" or "assembly"."""
        if stage not in ("jaxpr", "fused", "llvm", "assembly"):
            raise ValueError(
                f"A program has the stages 'jaxpr', 'fused', 'llvm' and 'assembly', not {stage!r}."
            )
        if stage == "fused":
            return self.fused
        if stage == "llvm":
            return self.text
        if stage == "assembly":
            return link.target_machine().emit_assembly(link.optimised(self.text))
        return str(self.closed)


class Native:
    """Compiles programs with LLVM."""

    name = "native"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        return Program(program)


native = Native()
