"""The reference engine: a program as a list of steps, each one a call of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import _dtypes
from namoo._config import config
from namoo.core.array import to_numpy
from namoo.core.jaxpr import ClosedJaxpr, Literal, dce, last_uses
from namoo.core.trace import eval_trace, floating_errors_ignored, set_trace


class Program:
    """A program made ready: variables are numbered, constants are in their places."""

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
        self.checks = _checks()

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        env = self.template.copy()
        for i, value in zip(self.inputs, values, strict=True):
            env[i] = value
        with set_trace(eval_trace), floating_errors_ignored():
            for number, (evaluate, ins, params, outs, many, drop) in enumerate(self.steps):
                out = evaluate(*[env[i] for i in ins], **params)
                if many:
                    for i, x in zip(outs, out, strict=True):
                        env[i] = x
                else:
                    env[outs[0]] = out if type(out) is np.ndarray else np.asarray(out)
                for name, test in self.checks:
                    for i in outs:
                        self._check(name, test, env[i], number)
                for i in drop:
                    env[i] = None
        return [env[i] for i in self.results]

    def _check(self, name: str, test: Any, value: np.ndarray, number: int) -> None:
        """Raise if a value has elements that are not wanted, naming the operation and its line."""
        if not _dtypes.issubdtype(value.dtype, np.inexact) or not test(value).any():
            return
        eqn = self.closed.jaxpr.eqns[number]
        where = f"\n  at {eqn.source}" if eqn.source else ""
        raise FloatingPointError(
            f"invalid value ({name}) encountered in {eqn.primitive.name}: {int(test(value).sum())} "
            f"of {value.size} elements of its result {eqn.outvars[0].aval.str_short()}.{where}"
        )

    costs: dict[str, float] | None = None
    memory: Any = None

    def as_text(self, stage: str = "jaxpr") -> str:
        """The program itself, which is the only stage that it has here."""
        return str(self.closed)


def _checks() -> list[tuple[str, Any]]:
    """What every value is tested for, as the settings are now."""
    checks: list[tuple[str, Any]] = []
    if config.debug_nans:
        checks.append(("nan", np.isnan))
    if config.debug_infs:
        checks.append(("inf", np.isinf))
    return checks


class Interpreter:
    """Evaluates programs operation by operation."""

    name = "interpreter"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        jaxpr = program.jaxpr
        return Program(program.replace(jaxpr=dce(jaxpr, [True] * len(jaxpr.outvars))))


interpreter = Interpreter()
