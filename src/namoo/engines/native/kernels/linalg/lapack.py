"""Calls of LAPACK and BLAS on stacks of matrices, in the type of the operands.

LAPACK stores matrices by columns: it reads an array of shape [..., n, m] as a stack of m × n
matrices. The worker threads share the matrices of a stack, and each has its own workspace. For a
single large matrix, LAPACK uses its own threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.types import part_of, size_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.matmul.dot import blas_allowed
from namoo.engines.native.kernels.routine import Routine, integer
from namoo.engines.native.link.threads import get_num_threads

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter

THREADS = "namoo_lapack_threads"
"""The function that sets how many threads LAPACK uses."""

PREFIX = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
"""The letter of LAPACK's names for an element type."""


Argument = tuple[str, int] | str | int | float
"""An argument: a letter, a number, or memory. ("in", i) is the matrix of operand i, ("out", i) that
of result i; the last result is LAPACK's `info`. ("work", n), ("real", n) and ("int", n) are
workspace for n numbers: of the matrices' type, of its real part, and integers."""


class Lapack(Routine):
    """Calls of one routine.

    Args:
        name: its name, with the letter of the type.
        inputs: the number of operands.
        arguments: letters, numbers, matrices and workspace; floats have the type of the matrices.
        batch: the leading axes of all operands and results.
        copies: for each operand that the routine overwrites, the result that it becomes.
        cost: the approximate number of operations of one call.
        fixed: operands without the leading axes: all calls read the same matrix.
    """

    def __init__(
        self,
        name: str,
        inputs: int,
        arguments: Sequence[Argument],
        batch: tuple[int, ...],
        copies: dict[int, int],
        cost: int,
        fixed: Sequence[int] = (),
    ):
        self.fixed = tuple(fixed)
        self.name, self.inputs, self.copies = name, inputs, copies
        self.arguments = tuple(arguments)
        self.takes_over = copies
        self.elem = {letter: elem for elem, letter in PREFIX.items()}[name[0]]
        self.batch = len(batch)
        self.count = math.prod(batch)
        self.units = min(self.count, tuning.LAPACK_PARTS)
        self.work = self.count * cost
        alone = self.count == 1 and name[1:] not in ("getrf", "potrf", "trsm")
        self.shared = alone and cost >= tuning.LAPACK_SHARED_WORK
        """Whether LAPACK's own threads share one call."""
        self.room = sum(map(self._room, arguments))
        self.scratch = self.room * self.units

    def key(self) -> Any:
        threads = get_num_threads() if self.shared else 1
        return (
            self.name,
            self.fixed,
            threads,
            self.arguments,
            self.batch,
            tuple(self.copies.items()),
        )

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        values = [self._constant(f, a) for a in self.arguments]
        declared = ", ".join(["ptr"] * len(values))
        name = f"namoo_lapack_{self.name}"
        f.declarations[name] = f"declare void @{name}({declared})"
        operands, results = places[: self.inputs], places[self.inputs :]
        self.common = [operands[number] for number in self.fixed]
        share = integer(self.units)
        with f.loop(begin, end) as unit:
            first = f.idiv(f.mul(unit, integer(self.count)), share)
            last = f.idiv(f.mul(f.add(unit, integer(1)), integer(self.count)), share)
            with f.loop(first, last) as i:
                for source, target in self.copies.items():
                    x, y = self._at(f, operands[source], i), self._at(f, results[target], i)
                    size = self._size(operands[source]) * size_of(operands[source].elem)
                    apart = f.emit_here("i1", 0, f"icmp ne ptr {x.name}, {y.name}")
                    with f.branch(apart):
                        routine.copy(f, y, x, integer(size))
                passed, offset = [], 0
                for argument, value in zip(self.arguments, values, strict=True):
                    if room := self._room(argument):
                        at = f.add(f.mul(unit, integer(self.room)), integer(offset))
                        value = f.offset(places[-1].pointer, at, "i8")
                        offset += room
                    elif isinstance(argument, tuple):
                        kind, number = argument
                        value = self._at(f, (operands if kind == "in" else results)[number], i)
                    passed.append(value)
                self._set_threads(f, get_num_threads())
                f.line(f"  call void @{name}({', '.join(map(repr, passed))})")
                self._set_threads(f, 1)

    def _set_threads(self, f: Function, count: int) -> None:
        """Set the number of LAPACK's threads, if this call uses them."""
        if self.shared:
            f.declarations[THREADS] = f"declare void @{THREADS}(i32)"
            f.line(f"  call void @{THREADS}(i32 {count})")

    def _room(self, argument: Argument) -> int:
        """Bytes of workspace, rounded up to whole cache lines."""
        if not isinstance(argument, tuple) or argument[0] not in ("work", "real", "int"):
            return 0
        kind, length = argument
        elem = {"work": self.elem, "real": part_of(self.elem), "int": "i32"}[kind]
        return -(-max(length, 1) * size_of(elem) // tuning.ALIGNMENT) * tuning.ALIGNMENT

    def _size(self, place: Place) -> int:
        return math.prod(place.shape[self.batch :])

    def _at(self, f: Function, place: Place, i: Value) -> Value:
        if place in self.common:
            return place.pointer
        step = self._size(place) * size_of(place.elem)
        return f.offset(place.pointer, f.mul(i, integer(step)), "i8")

    def _constant(self, f: Function, argument: Any) -> Value:
        """Store a letter or number in memory, because Fortran takes arguments by reference."""
        if isinstance(argument, tuple):
            return Value("null", "ptr")
        name = f.fresh()
        if isinstance(argument, str):
            stored = [constant("i8", ord(argument))]
        elif isinstance(argument, int):
            stored = [constant("i32", argument)]
        else:
            part = "f64" if self.name[0] in "dz" else "f32"
            stored = [constant(part, argument), constant(part, 0.0)]
        kind = stored[0].type
        f.preamble.append(f"  {name} = alloca [{len(stored)} x {kind}], align 8")
        f.preamble.append(f"  store {stored[0]!r}, ptr {name}, align 8")
        for i, value in enumerate(stored[1:], 1):
            f.preamble.append(f"  {name}.{i} = getelementptr {kind}, ptr {name}, i64 {i}")
            f.preamble.append(f"  store {value!r}, ptr {name}.{i}, align 4")
        return Value(name, "ptr")


def lapack(
    emit: Emitter,
    name: str,
    *operands: Node,
    result: Sequence[tuple[tuple[int, ...], Any]],
    arguments: Sequence[Argument],
    copies: dict[int, int],
    cost: int,
    fixed: Sequence[int] = (),
) -> list[Node]:
    """Emit calls of a LAPACK routine; return its results and `info`.

    Args:
        name: its name, without the letter of the type.
        operands: stacks of matrices, by columns; the first, or the last if some are fixed, has two
          axes besides those of the stack.
        result: the shapes for one matrix, and the types.
        arguments: the arguments of the routine.
        copies: for each operand that the routine overwrites, the result that it becomes.
        cost: the approximate number of operations of one call.
        fixed: operands that are one matrix for all calls.
    """
    if not blas_allowed() or find_spec("scipy") is None:
        raise emit.unsupported()
    batch = operands[-1].shape[:-2] if fixed else operands[0].shape[:-2]
    kinds = [ShapedArray((*batch, *shape), np.dtype(dtype)) for shape, dtype in result]
    kinds.append(ShapedArray(batch, np.dtype(np.int32)))
    name = PREFIX[operands[0].elem] + name
    step = Lapack(name, len(operands), arguments, batch, copies, cost, fixed)
    return emit.call(step, operands, kinds)
