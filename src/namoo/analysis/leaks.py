"""The option `check_tracer_leaks`: no value may outlive its transformation."""

from __future__ import annotations

import gc
from itertools import islice
from types import CellType, ModuleType
from typing import Any

from namoo import errors
from namoo._base.source_context import at_user_line
from namoo.core.trace import Trace, Tracer

# How many references are followed from a value towards a module.
_DEPTH = 6


def refuse_leaks(trace: Trace) -> None:
    """Raise if a value of a finished trace is still referenced.

    Raises:
        UnexpectedTracerError: it names the value, the line that made it, and where it is kept.
    """
    if not _values(trace):
        return
    gc.collect()  # reference cycles are not leaks
    leaked = _values(trace)
    if not leaked:
        return
    lines = ["Leaked trace: values are kept after the transformation that made them has finished."]
    for x in islice(leaked, 3):
        where = _whereabouts(x, leaked)
        lines.append(f"  {x!r}" + (f", kept in {where}" if where else ""))
        if origin := x.origin():
            lines.append(f"    {origin}")
    if len(leaked) > 3:
        lines.append(f"  and {len(leaked) - 3} more")
    lines.append(
        "Return such values from the transformed function instead of keeping them in a global, an "
        "attribute, a list or a closure; to look at one, use namoo.debug.print."
    )
    raise errors.UnexpectedTracerError("\n".join(lines) + at_user_line())


def _values(trace: Trace) -> list[Tracer]:
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]


def _whereabouts(x: Any, known: list[Any]) -> str:
    """An expression that leads to an object from a module, or from the farthest holder found."""
    path = ""
    for _ in range(_DEPTH):
        for holder in gc.get_referrers(x):
            if holder is known:  # the list of this check
                continue
            holder = _owner(holder)
            if step := _step(holder, x):
                break
        else:
            break
        path = step + path
        if not step.startswith(("[", ".")):
            return path
        x = holder
    return f"a {type(x).__name__}: {path}" if path else ""


def _owner(holder: Any) -> Any:
    """The object whose attributes a dict holds; any other holder is returned unchanged."""
    if type(holder) is dict:
        for owner in gc.get_referrers(holder):
            if getattr(owner, "__dict__", None) is holder:
                return owner
    return holder


def _step(holder: Any, x: Any) -> str:
    """The expression that leads from a holder to the object; empty if it is not known."""
    if isinstance(holder, CellType):
        return "a closure"
    if isinstance(holder, (list, tuple)):
        return next((f"[{i}]" for i, v in enumerate(holder) if v is x), "")
    is_dict = isinstance(holder, dict)
    names = holder if is_dict else getattr(holder, "__dict__", {})
    key = next((k for k, v in [*names.items()] if v is x), None)
    if key is None:
        return ""
    if isinstance(holder, ModuleType):
        return f"{holder.__name__}.{key}"
    return f"[{key!r}]" if is_dict else f".{key}"
