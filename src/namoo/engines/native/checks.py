"""What `config.strict` wants of operands, checked in native code.

A condition becomes the place of the first element that breaks it, which is a reduction like any
other, and a step that looks at that number.  If there is such an element, the step writes the turns
of the loops around it into a slot, and leaves the program by way of the host, where `Failure` turns
all that into the exception of `core.checks`.  Without `strict` none of this is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.core.checks import Guard, check_operands, located
from namoo.core.jaxpr import JaxprEqn, Var
from namoo.core.primitive import Primitive
from namoo.engines.native.graph import INPUT, Emitter, HostCall, Node, Step
from namoo.engines.native.index import Index, ravel
from namoo.engines.native.indexing import constant_of
from namoo.engines.native.ir import constant


class Failure(Primitive):
    """Raises the error of a condition that an element breaks.

    Its operands are the number of the element, the operand of the equation that has it, and the
    turns of the loops, the outermost first.
    """

    name, multiple_results = "failure", True

    def __init__(self, eqn: JaxprEqn, guard: Guard, loops: Sequence[str]):
        self.eqn, self.guard, self.loops = eqn, guard, loops

    def evaluate(self, first, operand, turns):
        elements = self.guard.elements(operand)
        position = tuple(int(i) for i in np.unravel_index(int(first), elements.shape))
        error = self.guard.error(self.eqn.primitive.name, int(elements[position]), position)
        loops = [(name, int(turn)) for name, turn in zip(self.loops, turns, strict=True)]
        raise located(error, self.eqn.source, loops[::-1])


class HostCheck(Primitive):
    """Looks at elements of a type that native code does not compute with."""

    name, multiple_results = "check", True

    def __init__(self, eqn: JaxprEqn, guard: Guard):
        self.eqn, self.guard = eqn, guard

    def evaluate(self, operand):
        operands = {self.guard.operand: operand}
        check_operands(self.eqn.primitive.name, [self.guard], operands, self.eqn.source)
        return []


def check(emit: Emitter, eqn: JaxprEqn, operands: Sequence[Node]) -> None:
    """Add to a graph what looks at the operands of an equation."""
    for guard in eqn.primitive.guards(*(a.aval for a in eqn.invars), **eqn.params):
        x = operands[guard.operand]
        shape = x.shape if guard.component is None else x.shape[:-1]
        known = constant_of(x)
        if math.prod(shape) == 0 or known is not None and not guard.wrong(known.data):
            continue
        if not x.elem:
            emit.call(HostCall(_equation(HostCheck(eqn, guard), [x], eqn)), [x], [])
            continue
        first = _first(emit, guard, x, shape)
        emit.call(Check(eqn, guard, math.prod(shape)), [first, x], [])


def _first(emit: Emitter, guard: Guard, x: Node, shape: tuple[int, ...]) -> Node:
    """The number of the first element that breaks a condition; that of all elements if none."""
    count = math.prod(shape)
    inner = [guard.component] if guard.component is not None else []
    last = guard.size - guard.window

    def element(k, index, x):
        f = k.f
        value = k.at(x, [*index, *map(Index.of, inner)])
        if guard.axis is None:
            wrong = f.compare("eq", value, constant(value.elem, 0))
        elif last < 0:
            wrong = constant("i1", True)
        elif value.elem[0] == "u":
            wrong = f.compare("gt", f.convert(value, "u64"), constant("u64", last))
        else:
            wide = f.convert(value, "i64")
            wrong = f.or_(
                f.compare("lt", wide, constant("i64", 0)),
                f.compare("gt", wide, constant("i64", last)),
            )
        number = k.integer(ravel(list(index), shape))
        return f.select(wrong, number, constant("i64", count))

    key = ("check", guard)
    numbers = emit.compute([x], element, shape=shape, dtype=np.dtype(np.int64), key=key, cost=3)
    return emit.fold("min", numbers, range(len(shape)), count) if shape else numbers


class Check(Step):
    """Leave the program if a number is that of an element that breaks a condition."""

    def __init__(self, eqn: JaxprEqn, guard: Guard, count: int):
        self.eqn, self.guard, self.count = eqn, guard, count

    def emit(self, driver, operands, results, scratch):
        f, loops = driver.f, [name for name, _ in driver.turns]
        first = f.emit_here("i64", 0, f"load i64, ptr {operands[0][1].name}, align 8")
        with f.branch(f.compare("ne", first, constant("i64", self.count))):
            slot = Node(INPUT, (len(loops),), np.dtype(np.int64))
            operands = [*operands, (slot, driver.noted_turns())]
            failure = Failure(self.eqn, self.guard, loops)
            driver.host_call(_equation(failure, [n for n, _ in operands], self.eqn), operands, [])


def _equation(primitive: Primitive, operands: Sequence[Node], eqn: JaxprEqn) -> JaxprEqn:
    """An equation without results, for the host, at the line of another."""
    invars = [Var(ShapedArray(n.shape, n.dtype)) for n in operands]
    return JaxprEqn(invars, [], primitive, {}, eqn.source)
