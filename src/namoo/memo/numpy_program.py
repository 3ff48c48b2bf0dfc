"""Programs as Python functions over NumPy arrays.

Eager transformations replay programs on concrete values.  Interpreting a program costs more than
the work on small arrays, so it is compiled to Python source once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base.floating_errors import floating_errors_ignored
from namoo.core.array import to_numpy
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, last_uses
from namoo.core.trace import eval_trace, set_trace
from namoo.primitives.shape import broadcast_in_dim_p


def compile_to_numpy(closed: ClosedJaxpr) -> Callable[..., Sequence[np.ndarray]]:
    """Write a program as a Python function of NumPy arrays, and compile that.

    The function has one line per equation: nothing is dispatched or looked up between them.
    """
    body = _Body()
    jaxpr = closed.jaxpr
    names = body.names([*jaxpr.constvars, *jaxpr.invars])
    for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
        body.scope[names[var]] = to_numpy(const)
    outs = body.write(jaxpr, names)
    head = ", ".join(names[v] for v in jaxpr.invars)
    lines = [f"def run({head}):", *body.lines, f"    return [{', '.join(outs)}]"]
    exec("\n".join(lines), body.scope)
    run = body.scope["run"]
    if not body.binds:
        return run

    def under_eval(*values):
        with set_trace(eval_trace):
            return run(*values)

    return under_eval


# A folded constant of more elements is computed in every call, to save memory.
_LARGEST_CONSTANT = 1 << 14


class _Body:
    """The text of a function that is being written, and the objects that it names."""

    def __init__(self):
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"asarray": np.asarray}
        self.count = 0
        self.binds = False

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def names(self, variables: Sequence[Var]) -> dict[Any, str]:
        return {v: self.fresh("v") for v in variables}

    def constant(self, value: Any, letter: str = "c") -> str:
        """Name an object that every call uses."""
        name = self.fresh(letter)
        self.scope[name] = value
        return name

    def write(self, jaxpr: Jaxpr, names: dict[Any, str]) -> list[str]:
        """Write a program whose inputs have names; return the names of its results."""

        def read(atom):
            return self.constant(atom.val) if type(atom) is Literal else names[atom]

        kernels = [
            eqn.primitive.kernel(*[a.aval for a in eqn.invars], **eqn.params) for eqn in jaxpr.eqns
        ]
        implied = _implied_broadcasts(jaxpr, kernels)
        owned: set[Var] = set()
        for eqn, kernel, done in zip(jaxpr.eqns, kernels, last_uses(jaxpr), strict=True):
            operands = [read(a) for a in eqn.invars]
            inner = eqn.primitive.inlined(eqn.params)
            if inner is not None:
                own = dict(zip(inner.jaxpr.invars, operands, strict=True))
                for var, const in zip(inner.jaxpr.constvars, inner.consts, strict=True):
                    own[var] = self.constant(to_numpy(const))
                names.update(zip(eqn.outvars, self.write(inner.jaxpr, own), strict=True))
            elif (shape := implied.get(id(eqn))) is not None:
                names[eqn.outvars[0]] = self.fresh("v")
                self.lines.append(f"    {names[eqn.outvars[0]]} = {operands[0]}.reshape({shape})")
            elif (value := self.folded(eqn, kernel, operands)) is not None:
                names[eqn.outvars[0]] = self.constant(value)
            else:
                owned.update(eqn.outvars)
                names.update(self.names(eqn.outvars))
                self.call(eqn, kernel, operands, [names[v] for v in eqn.outvars])
                if freed := [names[v] for v in done if v in owned]:
                    self.lines.append(f"    del {', '.join(freed)}")
        return [read(a) for a in jaxpr.outvars]

    def call(self, eqn: JaxprEqn, kernel: Any, operands: list[str], outs: list[str]) -> None:
        self.binds = self.binds or eqn.primitive.holds_program
        call = f"{self.constant(kernel, 'f')}({', '.join(operands)})"
        # NumPy returns a scalar where an array without axes is meant.
        scalars = [o for o, v in zip(outs, eqn.outvars, strict=True) if not v.aval.shape]
        if eqn.primitive.multiple_results:
            self.lines.append(f"    [{', '.join(outs)}] = {call}")
            self.lines += [f"    {o} = asarray({o})" for o in scalars]
        else:
            self.lines.append(f"    {outs[0]} = " + (f"asarray({call})" if scalars else call))

    def folded(self, eqn: JaxprEqn, kernel: Any, operands: list[str]) -> np.ndarray | None:
        """The result of an equation of constants, unless it is large."""
        prim = eqn.primitive
        if (
            prim.multiple_results
            or prim.effectful
            or prim.holds_program
            or not all(name in self.scope for name in operands)
        ):
            return None
        with floating_errors_ignored():
            value = np.asarray(kernel(*[self.scope[name] for name in operands])).view()
        value.setflags(write=False)
        return value if value.size <= _LARGEST_CONSTANT or not any(value.strides) else None


def _implied_broadcasts(jaxpr: Jaxpr, kernels: Sequence[Any]) -> dict[int, tuple[int, ...]]:
    """Find broadcasts that ufuncs do by themselves.

    A broadcast is implied where each of its uses is in a ufunc with another operand of full shape.

    Returns:
        For each such equation, by id, the shape to give its operand.
    """
    users: dict[Any, list[tuple[JaxprEqn, bool]]] = {}
    for eqn, kernel in zip(jaxpr.eqns, kernels, strict=True):
        for atom in eqn.invars:
            if type(atom) is not Literal:
                users.setdefault(atom, []).append((eqn, type(kernel) is np.ufunc))
    needed = {v for v in jaxpr.outvars if type(v) is not Literal}
    found: dict[int, tuple[int, ...]] = {}
    reduced: set[Any] = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive is not broadcast_in_dim_p or type(eqn.invars[0]) is Literal:
            continue
        (var,), dims = eqn.outvars, eqn.params["broadcast_dimensions"]
        if var in needed or list(dims) != sorted(dims):
            continue
        if all(
            is_ufunc
            and any(
                a.aval.shape == var.aval.shape and a not in reduced | {var} for a in user.invars
            )
            for user, is_ufunc in users.get(var, ())
        ):
            reduced.add(var)
            found[id(eqn)] = broadcast_in_dim_p.expanded(eqn.invars[0].aval, var.aval.shape, dims)
    return found
