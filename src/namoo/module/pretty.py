"""Print modules: arrays as dtype and shape, on one line if it fits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct, aval_of

_WIDTH = 88


def pretty(value: Any, indent: int = 0) -> str:
    """Return the text of a value that starts at a column; further lines are indented."""
    if isinstance(value, (Array, np.ndarray, ShapeDtypeStruct)):
        return aval_of(value).str_short()
    if hasattr(type(value), "_form"):
        parts = [(f"{name}=", value.__dict__.get(name)) for name in type(value)._fields]
        return _enclose(f"{type(value).__name__}(", parts, ")", indent)
    if type(value) is list:
        return _enclose("[", [("", x) for x in value], "]", indent)
    if type(value) is tuple:
        return _enclose("(", [("", x) for x in value], ",)" if len(value) == 1 else ")", indent)
    if type(value) is dict:
        return _enclose("{", [(f"{k!r}: ", v) for k, v in value.items()], "}", indent)
    if isinstance(value, functools.partial):
        return f"partial({pretty(value.func)}, …)"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return repr(value)


def _enclose(start: str, parts: list[tuple[str, Any]], end: str, indent: int) -> str:
    line = start + ", ".join(label + pretty(x) for label, x in parts) + end
    if len(line) + indent <= _WIDTH and "\n" not in line:
        return line
    pad = " " * (indent + 2)
    rows = [f"{pad}{label}{pretty(x, indent + 2)}" for label, x in parts]
    return start + "\n" + ",\n".join(rows) + "\n" + " " * indent + end.lstrip(",")
