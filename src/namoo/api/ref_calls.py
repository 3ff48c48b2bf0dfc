"""Calls of compiled functions that read and write references.

The program that is compiled takes the values of the references, and returns the last values of
those that it changes. The memory of a reference is given to the call, so that a result is written
in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo.analysis.dead_code import prune
from namoo.api.dispatch import execute
from namoo.core.array import EagerArray, to_numpy
from namoo.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from namoo.core.trace import wrap
from namoo.transforms.discharge import discharged, is_ref_type, makes_refs, strong_value
from namoo.transforms.program import Executable, ProgramPrimitive, uses_several_devices
from namoo.transforms.refs import Cell, refuse_aliases

_OPTIONS: dict[str, Any] = dict(
    static=(None, None),
    donate=(None, None),
    keep_unused=False,
    inline=False,
    engine=None,
    shardings=(None, None, None, None),
)
"""The shardings of a `jit` without such options: its arrays decide where the program runs."""


def of(closed: ClosedJaxpr) -> RefCall | None:
    """How to call a program; None if it takes no references and makes none."""
    found = any(map(is_ref_type, closed.in_avals)) or makes_refs(closed.jaxpr)
    return RefCall(closed) if found else None


class RefCall:
    """A program without references, and where its inputs come from and its results go."""

    __slots__ = ("_placed", "_runs", "changed", "program", "weak")

    def __init__(self, closed: ClosedJaxpr):
        which = tuple([is_ref_type(a) for a in closed.in_avals])
        program, self.changed = discharged(closed, which)
        self.program = program.replace(jaxpr=prune(program.jaxpr))
        self.weak = [a.weak_type for a in self.program.out_avals]
        self._placed: Any = None
        """The function that runs the program on devices."""
        self._runs: dict[str | None, Executable] = {}

    def executable(self, engine: str | None) -> Executable:
        """The program, compiled so that last values may use the memory of the first ones."""
        if engine not in self._runs:
            first = len(self.program.out_avals) - len(self.changed)
            options: dict[str, Any] = {
                "aliases": {i: first + n for n, i in enumerate(self.changed)}
            }
            if engine is not None:
                options["engine"] = engine
            self._runs[engine] = ProgramPrimitive.compiler(self.program, options)
        return self._runs[engine]

    def __call__(
        self,
        consts: Sequence[Any],
        leaves: Sequence[Any],
        operands: Sequence[Any],
        jitted: Any,
        names: Callable[[], Sequence[str]],
    ) -> list[Any]:
        """Run the program, and write to the references.

        Args:
            consts: what the function closes over.
            leaves: its flat arguments.
            operands: those of them that are arrays or references.
            jitted: the function under `jit`.
            names: makes the names of the arguments.

        Raises:
            ValueError: the function gets a reference twice.
        """
        refuse_aliases(jitted._name, "jit", leaves, names, consts)
        inputs = [*consts, *operands]
        refs = {i: x for i, x in enumerate(inputs) if isinstance(x, Cell)}
        plain = all(type(x._held[0]) is np.ndarray for x in refs.values()) and all(
            type(x) is EagerArray or not isinstance(x, EagerArray) for x in inputs
        )
        if not plain or uses_several_devices(self.program.jaxpr):
            values = [strong_value(x) if i in refs else x for i, x in enumerate(inputs)]
            self._placed = self._placed or type(jitted)(jaxpr_as_fun(self.program), **_OPTIONS)
            outs = self._placed(*values)
            # A result that is an input stays where it is.
            given = dict(zip(self.program.jaxpr.invars, values, strict=True))
            outs = [given.get(v, x) for v, x in zip(self.program.jaxpr.outvars, outs, strict=True)]  # type: ignore[arg-type]
        else:
            outs = [*map(wrap, self._run(inputs, refs, jitted._engine), self.weak)]
        n = len(outs) - len(self.changed)
        for i, value in zip(self.changed, outs[n:], strict=True):
            refs[i].store(value)
        return outs[:n]

    def _run(self, inputs: Sequence[Any], refs: dict[int, Cell], engine: str | None) -> list[Any]:
        run = self.executable(engine)
        values = [refs[i]._held[0] if i in refs else to_numpy(x) for i, x in enumerate(inputs)]
        if getattr(run, "on_devices", False):
            return execute(run, values)
        # The engine writes in place if the list alone refers to the memory.
        held = [refs[i]._held for i in self.changed]
        for cell in held:
            cell.clear()
        try:
            return run(values)
        except BaseException:
            for cell, i in zip(held, self.changed, strict=True):
                cell.append(values[i])
            raise
