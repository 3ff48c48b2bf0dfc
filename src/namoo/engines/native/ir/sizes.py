"""Functions whose code computes with sizes that are known at run time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from namoo.engines.native.ir.extents import is_dynamic
from namoo.engines.native.ir.function import Function, Value, constant


class SizedFunction(Function):
    """A function that is given the sizes of the program's dimension variables."""

    variables: tuple[str, ...] = ()
    """The names of the dimension variables, in the order of their table."""

    def take_sizes(self, table: Value, place: int, variables: tuple[str, ...]) -> None:
        """Take the table of sizes from its place in a table of pointers."""
        if variables:
            self.sizes = self.load(self.offset(table, place, "ptr"), "ptr")
            self.variables = variables

    def number(self, n: Any) -> Value:
        """An integer, perhaps a size that is known at run time, as a value of type i64."""
        if not is_dynamic(n):
            return super().number(n)
        total = constant("i64", 0)
        for term, count in n.terms:
            value = constant("i64", count)
            for factor, exponent in term.factors:
                for _ in range(exponent):
                    value = self.mul(self._factor(factor), value)
            total = self.add(total, value)
        return total

    def _factor(self, factor: Any) -> Value:
        """A variable's size, or the result of an operation on sizes."""
        if not factor.operands:
            assert self.sizes is not None, f"the size of {factor.name} is unknown here"
            slot = self.offset(self.sizes, self.variables.index(factor.name), "i64")
            return self.load(slot, "i64")
        x, y = (self.number(operand) for operand in factor.operands)
        if factor.name in ("max", "min"):
            return self.maximum(x, y) if factor.name == "max" else self.minimum(x, y)
        # Division rounds towards zero; the quotient of dimensions is rounded down.
        zero, rest = constant("i64", 0), self.irem(x, y)
        inexact = self.compare("ne", rest, zero)
        opposite = self.compare("lt", self.xor(rest, y), zero)
        down = self.and_(inexact, opposite)
        if factor.name == "mod":
            return self.add(rest, self.select(down, y, zero))
        return self.sub(self.idiv(x, y), self.convert(self.convert(down, "u8"), "i64"))

    @contextmanager
    def loop_while_less(self, start: Value | int, stop: Value | int, step: int = 1):
        """A loop that may run no times at all; `left` gives its carried values after it."""
        start, stop = self.number(start), self.number(stop)
        with self.repeat() as number:
            index = self.carry(start)
            self.levels[-1].index = index, start, step
            self.proceed_while(number, self.compare("lt", index, stop))
            yield index
            self.carried(index, self.add(index, constant("i64", step)))

    def left(self, phi: Value, value: Value) -> Value:
        """As `carried`, for a loop whose condition comes first."""
        self.carried(phi, value)
        return Value(phi.name, phi.elem, phi.lanes, self.depth - 1)
