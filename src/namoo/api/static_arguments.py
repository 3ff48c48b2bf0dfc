"""Static arguments of `jit`: part of the program, so they must be known and hashable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base.short import short
from namoo.core.array import Array
from namoo.core.trace import Tracer
from namoo.transforms.arguments import argument_names, function_name


def require_hashable(fun: Callable, static: Sequence[tuple[int | str, Any]]) -> None:
    """Refuse static arguments that cannot decide which program is used.

    Args:
        fun: The function that is compiled.
        static: The number or the keyword of each static argument, and its value.
    """
    for name, value in static:
        if isinstance(value, Tracer):
            remedy = value.static_remedy() or "Mark it static there, too."
            raise _refused(
                fun, name, f"is traced by a function outside. {value.origin()}\n{remedy}"
            )
        if isinstance(value, Array):
            raise _refused(fun, name, "is an array. Arrays are data: do not mark it static.")
        try:
            hash(value)
        except TypeError:
            raise _refused(
                fun,
                name,
                f"is {short(value)} of type {type(value).__name__}. Static arguments decide which "
                "program is used, so they need __hash__ and __eq__: pass a tuple for a list, a "
                "frozen dataclass for a dict; or do not mark it static.",
            ) from None


def _refused(fun: Callable, name: int | str, why: str) -> ValueError:
    if isinstance(name, int):
        name = argument_names(fun, [()] * (name + 1))[name]
    return ValueError(
        "Non-hashable static arguments are not supported in a jit function: argument "
        f"{name!r} of {function_name(fun)} {why}"
    )
