"""The native engine: compiles programs to machine code, and runs it."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from _thread import get_ident
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from namoo._base import instrument
from namoo._base.config import config
from namoo._base.floating_errors import floating_errors_ignored
from namoo._base.gc_policy import gc_paused
from namoo._base.runtime import native as runtime
from namoo._base.source_context import at_user_line
from namoo.analysis.checks import in_loops
from namoo.analysis.specialising import sized
from namoo.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn
from namoo.core.trace import eval_trace, set_trace
from namoo.engines.base import HostOperation, sole_owner
from namoo.engines.native.cache import programs
from namoo.engines.native.cache.fingerprint import Fingerprint
from namoo.engines.native.ir.extents import about, is_dynamic, numbered, variables
from namoo.engines.native.ir.types import numpy_dtype
from namoo.engines.native.link import code as link
from namoo.errors import InconclusiveDimensionOperation

if TYPE_CHECKING:
    from namoo.engines.native.analysis import MemoryAnalysis
    from namoo.engines.native.memory.arena import Plan
    from namoo.engines.native.pipeline import Inspection

_HOST = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Host:
    """Evaluates equations in Python, when native code calls back."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        equations: Sequence[JaxprEqn],
        around: Sequence[list[str] | None],
        loops: Sequence[JaxprEqn | None],
    ):
        self.closed = closed
        self.variables = variables(a.shape for a in closed.in_avals)
        self.loops = loops
        """Equations whose loops a signal can stop; see `Module.loops`."""
        self.equations = [
            (eqn.primitive, eqn.params, _types(eqn.invars), _types(eqn.outvars), names)
            for eqn, names in zip(equations, around, strict=True)
        ]
        self.errors: dict[int, BaseException] = {}
        """The exception that stopped a call, by thread."""

    @functools.cached_property
    def callback(self) -> Any:
        """The C function that native code calls, where there is no C++ part."""

        def run(number: int, table: int) -> None:
            try:
                self.run(number, table)
            except BaseException as error:
                self.errors[get_ident()] = error

        return _HOST(run)

    def run(self, number: int, table: int) -> None:
        """Evaluate an equation on a table of pointers; the last one is set when it is done."""
        primitive, params, operands, results, names = self.equations[number]
        count = len(operands) + len(results) + (names is not None) + bool(self.variables)
        pointers = (ctypes.c_void_p * (count + 1)).from_address(table)
        if self.variables:
            params, operands, results = self._at_sizes(pointers[count - 1], number)
        arrays = [
            view(pointers[i] or 0, shape, dtype)
            for i, (shape, dtype) in enumerate((*operands, *results))
        ]
        # The callee may keep its operands beyond the call, so they must not be in the arena.
        values = [a.copy() for a in arrays[: len(operands)]]
        turns: Any = ()
        if names:
            turns = view(pointers[count - 1] or 0, (len(names),), np.dtype(np.int64))
        with set_trace(eval_trace), floating_errors_ignored(), in_loops(names or (), turns):
            out = primitive.evaluate(*values, **params)
        out = out if primitive.multiple_results else [out]
        for target, value in zip(arrays[len(operands) :], out, strict=True):
            target[...] = value
        pointers[count] = 1

    def _at_sizes(self, address: int, number: int) -> Any:
        """The parameters and types of an equation, at the sizes in a table."""
        table = view(address, (len(self.variables),), np.dtype(np.int64))
        sizes = dict(zip(self.variables, map(int, table), strict=True))
        _, params, operands, results, _ = self.equations[number]
        params = {name: sized(value, sizes) for name, value in params.items()}
        operands = [(sized(shape, sizes), dtype) for shape, dtype in operands]
        results = [(sized(shape, sizes), dtype) for shape, dtype in results]
        return params, operands, results

    def fail(self, code: int, raised: BaseException | None = None) -> NoReturn:
        """Raise the exception that stopped the program; `raised` if the caller already has it.

        `code` is what the program returned: a code of `Module.loops`, or 1 for other failures. If
        an allocation failed, it is -1 for the arena, and -2 - i for result i.
        """
        if code < 0:
            from namoo.engines.native.analysis import no_memory

            raise MemoryError(no_memory(self.closed, None if code == -1 else -2 - code)) from None
        # Without C++, an exception that a handler raises before `run` begins is lost.
        error = raised or self.errors.pop(get_ident(), None) or KeyboardInterrupt()
        loop = self.loops[code - 2] if code > 1 else None
        if loop is not None and loop.source is not None:
            where = at_user_line(loop.source)
            error.add_note(f"The compiled program was stopped in {loop.primitive.name}{where}")
        raise error


def _types(atoms: Sequence[Atom]) -> list[tuple[tuple[int, ...], np.dtype]]:
    return [(a.aval.shape, numpy_dtype(a.aval.dtype)) for a in atoms]


def _bytes(types: Sequence[tuple[tuple[int, ...], np.dtype]]) -> int:
    return sum(about(math.prod(shape)) * dtype.itemsize for shape, dtype in types)


def view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array over the memory at an address."""
    size = int(np.prod(shape)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


class Program:
    """A compiled program."""

    def __init__(self, closed: ClosedJaxpr, options: Mapping[str, Any] | None = None):
        self.closed = closed
        self.strict = bool(options and options.get("strict"))
        self.aliases: Mapping[int, int] = (options or {}).get("aliases", {})
        mark = programs.identify(closed, options or {})
        made = mark and programs.find(mark)
        if mark is None or made is None:
            with gc_paused():  # until the plan is gone
                made, equations, loops, consts = self._compile(mark)
        else:
            equations = [mark.equations[i] for i in made.host]
            loops = [None if i is None else mark.equations[i] for i in made.loops]
            consts = [mark.arrays[i] for i in made.consts]
        self.made = made
        self.entry = _ENTRY(made.code.entry)
        self.host = Host(closed, equations, made.around, loops)
        self.variables = self.host.variables
        """The dimension variables whose sizes are known when the program runs."""
        self.host_equations = equations
        self.arena_size = made.arena
        self.kernels = made.kernels
        self.consts = [np.ascontiguousarray(c) for c in consts]
        self.outputs = _types(closed.jaxpr.outvars)
        self.found_at = [_axis_of(name, closed) for name in self.variables]
        self.runtime_entry = None if runtime is None else self._runtime_entry()
        if config.perf_map:
            from namoo.engines.native import perf_map

            perf_map.write(self)

    def _compile(self, mark: Fingerprint | None):
        """Compile the program; return it with its equations for the host, loops and constants."""
        # A program that is found in a cache needs no compiler: it is loaded here.
        from namoo.engines.native import pipeline

        module = pipeline.result_of("emit", pipeline.Source(self.closed, self.strict))
        code = pipeline.link(pipeline.optimise(module))
        consts = [c for _, c in module.plan.graph.consts]
        arena = 0 if module.variables else module.plan.arena_size
        made = programs.Compiled(code, arena, len(module.kernels))
        made.around = module.around
        if self.aliases:
            from namoo.engines.native.memory import aliasing

            made.in_place = aliasing.aliases(module.plan, self.aliases)
        if mark is not None:
            programs.keep(mark, made, module.host, module.loops, consts)
        return made, module.host, module.loops, consts

    def _runtime_entry(self) -> Any:
        """The program for the C++ runtime, which calls it without Python in between."""
        inputs, outputs = _types(self.closed.jaxpr.invars), self.outputs
        if self.variables:
            numbers = {name: -1 - k for k, name in enumerate(self.variables)}
            inputs = [(numbered(shape, numbers), dtype) for shape, dtype in inputs]
            outputs = [((-1,) * len(shape), dtype) for shape, dtype in outputs]
            if any(None in shape for shape, _ in inputs):
                return None
        return runtime.Entry(
            self.made.code.entry,
            inputs,
            outputs,
            consts=self.consts,
            arena=min(self.arena_size, sys.maxsize),
            host=self.host.run if self.host.equations else 0,
            keep=(self.made, self.host),
            handler=self.host.fail,
            in_place=self.made.in_place,
            flush=config.flush_subnormals,
            variables=len(self.variables),
        )

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        session = instrument.session
        if session is not None and session.level > 1 and not self.strict and not self.variables:
            return session.run(self, values)
        return self.run(values)

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the machine code."""
        if self.runtime_entry is not None:
            return self.runtime_entry(values)
        # Before anything else: the arrays made from the values below add references to them.
        sources = {o: i for i, o in self.made.in_place if sole_owner(values, i)}
        ins = [np.asarray(v, order="C") for v in values]
        outputs, arena_size, sizes = self.outputs, self.arena_size, []
        if self.variables:
            outputs, arena_size, sizes = self._sized(ins)
        outs = [
            _as(ins[sources[o]], shape, dtype)
            if o in sources
            else self._empty(shape, dtype, -2 - o)
            for o, (shape, dtype) in enumerate(outputs)
        ]
        arrays = [*ins, *self.consts, *outs, *sizes]
        table = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        arena = self._empty((arena_size + 64,), np.dtype(np.uint8), -1)
        start = -(-arena.ctypes.data // 64) * 64
        if code := self.entry(ctypes.addressof(table), start, self.host.callback):
            self.host.fail(code, link.raised_by_signal())
        return outs

    def _sized(self, ins: Sequence[np.ndarray]) -> tuple[list[Any], int, list[np.ndarray]]:
        """Types of the results, bytes of the arena, and the table of sizes; see `entry_sizes`."""
        count = len(self.variables)
        sizes = np.zeros(count + 1 + sum(len(shape) for shape, _ in self.outputs), np.int64)
        sizes[:count] = [ins[i].shape[axis] for i, axis in self.found_at]
        arrays = len(ins) + len(self.consts) + len(self.outputs)
        table = (ctypes.c_void_p * (arrays + 1))()
        table[arrays] = sizes.ctypes.data
        self.entry(ctypes.addressof(table), None, self.host.callback)
        arena, *rest = map(int, sizes[count:])
        numbers = iter(rest)
        outputs = [(tuple(next(numbers) for _ in s), dtype) for s, dtype in self.outputs]
        return outputs, arena, [sizes]

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype, code: int) -> np.ndarray:
        """Allocate an array; `code` names it in the message if there is no memory."""
        try:
            return np.empty(shape, dtype)
        except (MemoryError, ValueError):  # NumPy has a limit of its own
            self.host.fail(code)

    @functools.cached_property
    def _inspection(self) -> Inspection:
        """The results of the passes: computed again, since a program does not keep them to run."""
        from namoo.engines.native.attribution import SourcedEmitter
        from namoo.engines.native.pipeline import Inspection, Source

        return Inspection(Source(self.closed, self.strict, SourcedEmitter))

    @functools.cached_property
    def costs(self) -> dict[str, float]:
        """Operations, and bytes moved."""
        from namoo.engines.native import analysis
        from namoo.engines.native.fuse.kinds import operations

        plan = self.sourced_plan()
        return {
            # With sizes that are known at run time, these are numbers for typical ones.
            "flops": float(about(operations(plan.graph))),
            "bytes accessed": float(about(analysis.traffic(plan))),
        }

    @property
    def memory(self) -> MemoryAnalysis:
        """Bytes that a call needs."""
        from namoo.engines.native.analysis import MemoryAnalysis

        given, shared = _types(self.closed.jaxpr.invars), [o for _, o in self.made.in_place]
        return MemoryAnalysis(
            _bytes(given),
            _bytes(self.outputs),
            about(self.sourced_plan().arena_size) if self.variables else self.arena_size,
            self.made.code.size,
            _bytes([self.outputs[o] for o in shared]),
            self,
        )

    def sourced_plan(self) -> Plan:
        """The plan of the program, with the equation of each node."""
        return self._inspection.after("allocate")

    def host_operations(self) -> list[HostOperation]:
        """The operations that Python evaluates: their native rule is absent, or raised."""
        pairs = zip(self.host_equations, self.made.around, strict=True)
        return [HostOperation.of(eqn) for eqn, names in pairs if names is None]

    def as_text(self, stage: str = "jaxpr") -> str:
        """Print the program after one of the passes.

        Args:
            stage: "jaxpr", or the name of a pass of `pipeline.PASSES`.  "fused", "llvm" and
              "assembly" are other names of "allocate", "emit" and "optimise".
        """
        if stage == "jaxpr":
            return str(self.closed)
        from namoo.engines.native.pipeline import NAMES

        name = _STAGES.get(stage, stage)
        if name not in NAMES:
            known = ", ".join(map(repr, ("jaxpr", *_STAGES, *NAMES)))
            raise ValueError(f"A program has the stages {known}, not {stage!r}.")
        result = self._inspection.after(name)
        if name == "allocate":
            from namoo.engines.native.attribution import lines_of

            return result.text(lambda group: lines_of(result, group))
        return result.text()


def _axis_of(name: str, closed: ClosedJaxpr) -> tuple[int, int]:
    """The number of an input and its axis whose size is a dimension variable."""
    for i, aval in enumerate(closed.in_avals):
        for axis, size in enumerate(aval.shape):
            if is_dynamic(size) and str(size) == name:
                return i, axis
    raise InconclusiveDimensionOperation(f"No axis of an argument has the size '{name}' itself.")


_STAGES = {"fused": "allocate", "llvm": "emit", "assembly": "optimise"}
"""Other names for the results of passes."""


def _as(array: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array with a shape and dtype: itself if possible, since a view owns no memory."""
    if (array.shape, array.dtype) == (shape, dtype):
        return array
    return array.view(dtype).reshape(shape)


class Native:
    """Compiles programs with LLVM."""

    name = "native"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        return Program(program, options)


native = Native()
