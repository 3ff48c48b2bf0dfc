"""Conditions that native code checks: those of `config.strict`, and those of `namoo.check`.

A condition of `strict` becomes two nodes: an ordinary reduction that finds the first element which
violates it, and a step that tests the result. If there is such an element, the step stores the
iteration numbers of the enclosing loops and calls the host, where `Failure` raises the exception.
Without `strict` none of this is emitted.

A condition of `namoo.check` is reduced to one boolean. If it is false, the host evaluates the
equation, which raises the user's exception.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.analysis.checks import Guard, Overflow, check_operands, located
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import JaxprEqn, Var
from namoo.core.primitive import Primitive
from namoo.engines.native.graph.node import HostCall, Node, Step
from namoo.engines.native.ir.function import constant
from namoo.engines.native.ir.index import Index, ravel, unravel
from namoo.engines.native.kernels.element_codegen import on_stack
from namoo.engines.native.kernels.indexing import constant_of

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


class Failure(Primitive):
    """Raises the error of a condition that an element violates.

    Its operands are the number of the element and the operands of the checked equation.
    """

    name, multiple_results = "failure", True

    def __init__(self, eqn: JaxprEqn, guard: Guard | Overflow):
        self.eqn, self.guard = eqn, guard

    def evaluate(self, first, *operands):
        operands = _as_operands(self.guard, operands)
        error = self.guard.error(self.eqn.primitive.name, int(first), operands)
        raise located(error, self.eqn.source)


class HostCheck(Primitive):
    """Checks elements of a type that native code does not support."""

    name, multiple_results = "check", True

    def __init__(self, eqn: JaxprEqn, guard: Guard | Overflow):
        self.eqn, self.guard = eqn, guard

    def evaluate(self, *operands):
        found = _as_operands(self.guard, operands)
        check_operands(self.eqn.primitive.name, [self.guard], found, self.eqn.source)
        return []


def _as_operands(guard: Guard | Overflow, given: Sequence[np.ndarray]) -> Any:
    """The operands that a condition is about, in the positions that they have in the equation."""
    return {guard.operand: given[0]} if isinstance(guard, Guard) else given


def check(emit: Emitter, eqn: JaxprEqn, operands: Sequence[Node]) -> None:
    """Add the checks of an equation's operands to a graph."""
    for guard in eqn.primitive.guards(*(a.aval for a in eqn.invars), **eqn.params):
        if isinstance(guard, Overflow):
            _check_overflow(emit, eqn, guard, operands)
            continue
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
    """The number of the first element that violates a condition; the size if there is none."""
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


def _check_overflow(
    emit: Emitter, eqn: JaxprEqn, guard: Overflow, operands: Sequence[Node]
) -> None:
    """Add the check that the result of integer arithmetic fits its type."""
    aval = eqn.outvars[0].aval
    count = math.prod(aval.shape)
    if not count:
        return
    inline = aval.dtype.itemsize < 8 and guard.kind in ("add", "sub", "mul", "neg")
    if not inline or not all(x.elem for x in operands):
        emit.call(HostCall(_equation(HostCheck(eqn, guard), operands, eqn)), operands, [])
        return
    limits = np.iinfo(aval.dtype)

    def element(k, index, *xs):
        f = k.f
        values = [f.convert(k.at(x, index if x.shape else []), "i64") for x in xs]
        if guard.kind == "neg":
            values = [constant("i64", 0), *values]
        exact = {"add": f.add, "mul": f.mul}.get(guard.kind, f.sub)(*values)
        wrong = f.or_(
            f.compare("lt", exact, constant("i64", int(limits.min))),
            f.compare("gt", exact, constant("i64", int(limits.max))),
        )
        number = k.integer(ravel(list(index), aval.shape))
        return f.select(wrong, number, constant("i64", count))

    key = ("overflow", guard.kind, aval.dtype.name)
    kind = np.dtype(np.int64)
    first = emit.compute(operands, element, shape=aval.shape, dtype=kind, key=key, cost=4)
    if aval.shape:
        first = emit.fold("min", first, range(len(aval.shape)), count)
    emit.call(Check(eqn, guard, count), [first, *operands], [])


class Check(Step):
    """Leave the program if an element violates a condition."""

    def __init__(self, eqn: JaxprEqn, guard: Guard | Overflow, count: int):
        self.eqn, self.guard, self.count = eqn, guard, count

    def emit(self, driver, operands, results, scratch):
        f = driver.f
        first = f.emit_here("i64", 0, f"load i64, ptr {operands[0][1].name}, align 8")
        with f.branch(f.compare("ne", first, constant("i64", self.count))):
            failure = Failure(self.eqn, self.guard)
            eqn = _equation(failure, [n for n, _ in operands], self.eqn)
            driver.host_call(eqn, operands, [], failed=True)


def require(emit: Emitter, operands: Sequence[Node]) -> list[Node]:
    """Add the check of an equation whose first operand is a condition."""
    condition = operands[0]
    holds = emit.fold("and", condition, range(len(condition.shape)), True)
    assert emit.eqn is not None
    emit.call(Require(emit.eqn), [holds, *operands], [])
    return []


class Require(Step):
    """Leave the program unless a condition holds: the first operand, which the others explain."""

    def __init__(self, eqn: JaxprEqn):
        self.eqn = eqn

    def emit(self, driver, operands, results, scratch):
        f = driver.f
        byte = f.emit_here("u8", 0, f"load i8, ptr {operands[0][1].name}")
        with f.branch(f.compare("eq", byte, constant("u8", 0))):
            driver.host_call(self.eqn, operands[1:], [], failed=True)

    def small(self) -> bool:
        return True

    def unrolled_operations(self) -> int:
        return 1

    def in_registers(self, driver, operands, outer, nodes):
        f = driver.f
        ((holds,), *values) = operands
        places = [
            outer.places[node] if array is None else on_stack(f, node.elem, node.shape)
            for node, array in zip(nodes[1:], values, strict=True)
        ]
        with f.branch(f.not_(holds)):
            for place, array in zip(places, values, strict=True):
                for i, value in enumerate(array or ()):
                    outer.store(place, unravel(Index.of(i), place.shape), value)
            pointers = [(n, p.pointer) for n, p in zip(nodes[1:], places, strict=True)]
            driver.host_call(self.eqn, pointers, [], failed=True)
        return []


def _equation(primitive: Primitive, operands: Sequence[Node], eqn: JaxprEqn) -> JaxprEqn:
    """An equation without results, for the host, at the line of another."""
    invars = [Var(ShapedArray(n.shape, n.dtype)) for n in operands]
    return JaxprEqn(invars, [], primitive, {}, eqn.source)
