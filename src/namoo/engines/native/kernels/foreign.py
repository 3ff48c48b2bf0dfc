"""Calls of compiled functions of other libraries, by their address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import errors
from namoo._base.foreign import Arguments, Buffer, Here, Target, failure
from namoo._base.source_context import Source, at_user_line
from namoo.analysis.checks import iterations
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import JaxprEqn, Var
from namoo.core.primitive import Primitive
from namoo.engines.native.graph.node import INPUT, Node, Step
from namoo.engines.native.ir.function import Value

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


class ForeignError(Primitive):
    """Raises the error that a function returned; the operand is its status, or its address."""

    name, multiple_results = "foreign_error", True

    def __init__(self, target: Target, source: Source | None):
        self.target, self.source = target, source

    def evaluate(self, code):
        text = failure(self.target, int(code))
        raise errors.JaxRuntimeError(f"{text}{iterations()}{at_user_line(self.source)}")


def foreign(
    emit: Emitter,
    target: Target,
    arguments: Arguments,
    operands: Sequence[Node],
    moved: Sequence[Node],
    orders: Sequence[Sequence[int]],
    aliases: Sequence[tuple[int, int]],
) -> list[Node]:
    """Emit a call and return its results.

    Args:
        operands: the operands, in the shapes that the function expects.
        moved: the operands with their axes in memory order.
        orders: the order of the axes of each result.
        aliases: pairs of an operand and a result that are one buffer.
    """
    assert emit.eqn is not None
    outs = [(tuple(a.shape), np.dtype(getattr(a.dtype, "numpy", a.dtype))) for a in emit.avals]
    frame = []
    if target.typed:
        frame = arguments.frame([(x.shape, x.dtype) for x in operands], outs)
    stored = [
        ShapedArray(tuple(shape[i] for i in order), dtype)
        for (shape, dtype), order in zip(outs, orders, strict=True)
    ]
    return emit.call(ForeignStep(emit.eqn, target, arguments, frame, aliases), moved, stored)


class ForeignStep(Step):
    """Call a function with pointers to operands and results."""

    def __init__(
        self,
        eqn: JaxprEqn,
        target: Target,
        arguments: Arguments,
        frame: Sequence[Any],
        aliases: Sequence[tuple[int, int]],
    ):
        self.eqn, self.target, self.arguments = eqn, target, arguments
        self.frame, self.aliases = frame, aliases

    def emit(self, driver, operands, results, scratch):
        pointers = [p for _, p in (*operands, *results)]
        for i, j in self.aliases:
            target = results[j][1]
            driver.copy(target, operands[i][1], operands[i][0].nbytes)
            pointers[i] = target
        if self.target.typed:
            self._typed(driver, pointers)
        else:
            self._plain(driver, pointers)

    def _typed(self, driver, pointers: list[Value]) -> None:
        f, block = driver.f, driver.f.fresh()
        f.line(f"  {block} = alloca [{len(self.frame)} x i64], align 16", 0)
        base = Value(block, "ptr")
        for i, word in enumerate(self.frame):
            place = f.offset(base, i, "i64").name
            if isinstance(word, Here):
                f.line(f"  store ptr {f.offset(base, word.word, 'i64').name}, ptr {place}, align 8")
            elif isinstance(word, Buffer):
                f.line(f"  store ptr {pointers[word.number].name}, ptr {place}, align 8")
            else:
                f.line(f"  store i64 {word}, ptr {place}, align 8")
        function = f"inttoptr (i64 {self.target.address} to ptr)"
        error = f.emit_here("ptr", 0, f"call ptr {function}(ptr {block})")
        code = f.emit_here("i64", 0, f"ptrtoint ptr {error.name} to i64")
        self._raise_unless_zero(driver, code)

    def _plain(self, driver, pointers: list[Value]) -> None:
        f, rest = driver.f, iter(pointers)
        words = [
            f"ptr {next(rest).name}" if x is None else _by_value(x.value, x.dtype)
            for x in self.arguments.order
        ]
        words += [f"ptr {p.name}" for p in rest]
        function = f"inttoptr (i64 {self.target.address} to ptr)({', '.join(words)})"
        if not self.target.status:
            f.line(f"  call void {function}")
            return
        status = f.emit_here("i32", 0, f"call i32 {function}")
        self._raise_unless_zero(driver, f.convert(status, "i64"))

    def _raise_unless_zero(self, driver, code: Value) -> None:
        f, slot = driver.f, driver.f.fresh()
        f.line(f"  {slot} = alloca i64, align 8", 0)
        node = Node(INPUT, (), np.dtype(np.int64))
        error = ForeignError(self.target, self.eqn.source)
        eqn = JaxprEqn([Var(ShapedArray((), np.dtype(np.int64)))], [], error, {}, self.eqn.source)
        with f.branch(f.emit_here("i1", 0, f"icmp ne i64 {code.name}, 0")):
            f.line(f"  store i64 {code.name}, ptr {slot}, align 8")
            driver.host_call(eqn, [(node, Value(slot, "ptr"))], [], failed=True)


def _by_value(value: Any, dtype: np.dtype) -> str:
    """A number as an argument; C's calling convention extends narrow integers."""
    if dtype.kind == "f":
        bits = int(np.asarray(value, np.float64).view(np.uint64))
        return f"{'double' if dtype.itemsize == 8 else 'float'} 0x{bits:016X}"
    size = 8 * dtype.itemsize
    extended = "" if size >= 32 else "signext " if dtype.kind == "i" else "zeroext "
    return f"i{size} {extended}{int(value)}"
