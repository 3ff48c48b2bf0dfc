"""Programs as text, in JAX's form."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from namoo.core.jaxpr import Jaxpr, JaxprEqn, Var

_WIDTH = 80
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _letters() -> Iterator[str]:
    for length in itertools.count(1):
        for letters in itertools.product(_LETTERS, repeat=length):
            yield "".join(letters)


class _Names:
    """Names for variables, in the order in which they are printed."""

    def __init__(self):
        self.letters = _letters()
        self.names: dict[Var, str] = {}

    def nested(self) -> _Names:
        """A copy for a nested program: the names that it adds are not seen outside."""
        names = _Names()
        names.letters, names.names = self.letters, dict(self.names)
        return names

    def inside(self, eqn: JaxprEqn) -> _Names:
        """Names inside of a call: operands and results keep their names."""
        inner = eqn.params["jaxpr"].jaxpr
        names = self.nested()
        outside = [*eqn.outvars, *eqn.invars]
        for var, outer in zip([*inner.outvars, *inner.invars], outside, strict=True):
            if outer in self.names and not _is_literal(var):
                names.names[var] = self.names[outer]
        return names

    def __call__(self, var: Var) -> str:
        if var.dropped:
            return "_"
        if var not in self.names:
            self.names[var] = next(self.letters)
        return self.names[var]


def format_jaxpr(jaxpr: Jaxpr, source: bool = False) -> str:
    """A program as text; with `source`, each equation ends with the user's line."""
    return _jaxpr(jaxpr, _Names(), source, _WIDTH)


def format_eqn(eqn: JaxprEqn) -> str:
    return _eqn(eqn, _Names(), False, _WIDTH)


def _typed(names: _Names, variables: list[Var]) -> str:
    return " ".join(f"{names(v)}:{v.aval.str_short()}" for v in variables)


def _is_literal(atom: Any) -> bool:
    return hasattr(atom, "val")


def _is_program(value: Any) -> bool:
    """Whether a value is a `Jaxpr` or a `ClosedJaxpr`."""
    return hasattr(value, "eqns")


def _atom(names: _Names, atom: Any) -> str:
    if _is_literal(atom):
        value = np.asarray(atom.val)
        text = str(value.item()) if value.dtype.kind in "biufc" else str(value)
        return f"{text}:{atom.aval.str_short()}"
    return names(atom)


def _jaxpr(jaxpr: Jaxpr, names: _Names, source: bool, room: int, used: int = 0) -> str:
    """Format a program, on one line if it fits into the rest of the line."""
    consts = _typed(names, jaxpr.constvars)
    head = f"{{ lambda {consts}; {_typed(names, jaxpr.invars)}. let"
    eqns = [_eqn(eqn, names, source, room - 4) for eqn in jaxpr.eqns]
    outs = ", ".join(_atom(names, v) for v in jaxpr.outvars)
    tail = f"in ({outs}{',' if len(jaxpr.outvars) == 1 else ''}) }}"
    line = " ".join([head, "; ".join(eqns), tail])
    if "\n" not in line and used + len(line) <= room and not (source and len(eqns) > 1):
        return line
    return "\n".join([head, *(_indent(e, 4) for e in eqns), "  " + tail])


def _eqn(eqn: JaxprEqn, names: _Names, source: bool, room: int) -> str:
    operands = "".join(" " + _atom(names, a) for a in eqn.invars)
    # Results are named before the variables of inner programs.
    typed = _typed(names, eqn.outvars)
    if eqn.primitive.format is not None:
        return eqn.primitive.format(eqn, lambda atom: _atom(names, atom), typed)
    start = f"{typed} = {eqn.primitive.name}" if typed else eqn.primitive.name
    items = _params(eqn, names.inside(eqn) if eqn.primitive.name == "jit" else names, source, room)
    text = f"{start}[{' '.join(items)}]{operands}" if items else start + operands
    if items and (any("\n" in item for item in items) or len(text) > room):
        lines = "\n".join(_indent(item, 2) for item in items)
        text = f"{start}[\n{lines}\n]{operands}"
    if source and eqn.source is not None:
        text += f"  # {eqn.source.file.rpartition('/')[2]}:{eqn.source.line}"
    return text


def _params(eqn: JaxprEqn, names: _Names, source: bool, room: int) -> list[str]:
    """The parameters as text, `name` first."""
    prim = eqn.primitive
    return [
        f"{key}={_value(value, names, source, room - 2, len(key) + 1)}"
        for key, value in sorted(eqn.params.items(), key=lambda item: (item[0] != "name", item[0]))
        if key not in prim.implied_params and not (key in prim.quiet_params and value in (None, ()))
    ]


def _value(value: Any, names: _Names, source: bool, room: int, used: int = 0) -> str:
    if _is_program(value):
        return _jaxpr(getattr(value, "jaxpr", value), names.nested(), source, room, used)
    if isinstance(value, tuple) and any(map(_is_program, value)):
        inner = "\n".join(_indent(_value(v, names, source, room - 2), 2) for v in value)
        return f"(\n{inner}\n)"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


def _indent(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))
