"""The reference engine: a program is a list of steps, and each step calls NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo._base.floating_errors import floating_errors_ignored
from namoo.analysis.checks import (
    Guard,
    check_operands,
    check_value,
    value_tests,
)
from namoo.analysis.dead_code import dce
from namoo.analysis.nans import explain_where, trap_in_program
from namoo.core.array import to_numpy
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, last_uses
from namoo.core.trace import eval_trace, set_trace, unaliased
from namoo.engines.base import HostOperation


class Program:
    """A program with numbered variables and constants in their slots."""

    def __init__(self, closed: ClosedJaxpr):
        self.closed = closed
        jaxpr = closed.jaxpr
        slots: dict[Any, int] = {}
        self.template: list[Any] = []

        def slot(atom: Any, value: Any = None) -> int:
            if type(atom) is Literal:
                self.template.append(np.asarray(atom.val))
                return len(self.template) - 1
            if atom not in slots:
                slots[atom] = len(self.template)
                self.template.append(value)
            return slots[atom]

        self.inputs = [slot(v) for v in jaxpr.invars]
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            slot(var, to_numpy(const))
        self.steps = []
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            ins = [slot(a) for a in eqn.invars]
            outs = [slot(v) for v in eqn.outvars]
            many = eqn.primitive.multiple_results
            drop = [slot(v) for v in dead]
            self.steps.append((eqn.primitive.evaluate, ins, eqn.params, outs, many, drop))
        self.results = [slot(v) for v in jaxpr.outvars]
        self.tests = value_tests()
        self.guards = [_guards(eqn) for eqn in jaxpr.eqns] if config.strict else []

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        env = self.template.copy()
        for i, value in zip(self.inputs, values, strict=True):
            env[i] = value
        with set_trace(eval_trace), floating_errors_ignored():
            for number, (evaluate, ins, params, outs, many, drop) in enumerate(self.steps):
                if self.guards and self.guards[number]:
                    self._check_operands(number, [env[i] for i in ins])
                out = evaluate(*[env[i] for i in ins], **params)
                if many:
                    for i, x in zip(outs, out, strict=True):
                        env[i] = x
                else:
                    env[outs[0]] = out if type(out) is np.ndarray else np.asarray(out)
                if self.tests:
                    self._check_values(number, [env[i] for i in outs], [env[i] for i in ins])
                for i in drop:
                    env[i] = None
            if self.tests:
                for i, atom in zip(self.results, self.closed.jaxpr.outvars, strict=True):
                    if type(atom) is Literal:  # not the result of an operation
                        name = f"the constants that {self.closed.jaxpr.name} returns"
                        check_value(name, self.tests, np.asarray(env[i]))
        # The caller may write to NumPy arrays that it passed.
        return [unaliased(env[i], values) for i in self.results]

    def _check_operands(self, number: int, values: Sequence[np.ndarray]) -> None:
        eqn = self.closed.jaxpr.eqns[number]
        check_operands(eqn.primitive.name, self.guards[number], values, eqn.source)

    def _check_values(
        self, number: int, values: Sequence[np.ndarray], operands: Sequence[np.ndarray]
    ) -> None:
        eqn = self.closed.jaxpr.eqns[number]
        try:
            for value in values:
                check_value(eqn.primitive.name, self.tests, value, eqn.source, operands)
        except FloatingPointError as error:
            explain_where(error, lambda: trap_in_program(self.closed.jaxpr, eqn))
            raise

    def host_operations(self) -> list[HostOperation]:
        """Return all operations: every one runs on the host."""
        return [HostOperation.of(eqn) for eqn in self.closed.jaxpr.eqns]

    costs: dict[str, float] | None = None
    memory: Any = None

    def as_text(self, stage: str = "jaxpr") -> str:
        """Return the program; it has no other stage here."""
        return str(self.closed)


def _guards(eqn: JaxprEqn) -> Sequence[Guard]:
    """Return the checks of `config.strict` on an equation's operands."""
    return eqn.primitive.guards(*(a.aval for a in eqn.invars), **eqn.params)


class Interpreter:
    """Evaluates programs operation by operation."""

    name = "interpreter"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        jaxpr = program.jaxpr
        return Program(program.replace(jaxpr=dce(jaxpr, [True] * len(jaxpr.outvars))))


interpreter = Interpreter()
