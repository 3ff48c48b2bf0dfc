"""`namoo.extend.source_info_util`: hidden frames, and the user's source lines.

Example:
    >>> import namoo
    >>> equation = namoo.make_jaxpr(namoo.numpy.sin)(1.0).eqns[0]
    >>> summarize(equation.source_info).startswith("<doctest")
    True
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from namoo._base.source_context import (
    NameStack,
    Source,
    hide_frames,
    set_name_stack,
    source_context,
    user_source,
)

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
]
__dir__ = __all__.copy

SourceInfo = Source


def new_name_stack(name: str = "") -> NameStack:
    """Return a stack with one scope's name, or an empty one."""
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """Return the names of the scopes that the current thread is in."""
    return source_context.name_stack


def extend_name_stack(name: str) -> AbstractContextManager[None]:
    """Context manager: add a name to the scopes of operations that are traced in the block."""
    return set_name_stack(source_context.name_stack.extend(name))


def reset_name_stack() -> AbstractContextManager[None]:
    """Context manager: trace the block without the names of the scopes around it."""
    return set_name_stack(NameStack())


def current() -> Source | None:
    """The user's line that is executing."""
    return user_source()


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of all files in a folder, in tracebacks and reported lines."""
    hide_frames(path)


def summarize(source_info: Source | None, num_frames: int = 1) -> str:
    """Format a source line of the user's program: file, line and function."""
    return "unknown" if source_info is None else str(source_info)
