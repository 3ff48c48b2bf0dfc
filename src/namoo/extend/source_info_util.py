"""`namoo.extend.source_info_util`: hidden frames, and the user's source lines.

Example:
    >>> import namoo
    >>> equation = namoo.make_jaxpr(namoo.numpy.sin)(1.0).eqns[0]
    >>> summarize(equation.source_info).startswith("<doctest")
    True
"""

from __future__ import annotations

from namoo._base.source_context import Source, hide_frames, user_source

__all__ = ["SourceInfo", "current", "register_exclusion", "summarize"]

SourceInfo = Source


def current() -> Source | None:
    """The user's line that is executing."""
    return user_source()


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of all files in a folder, in tracebacks and reported lines."""
    hide_frames(path)


def summarize(source_info: Source | None, num_frames: int = 1) -> str:
    """A line of a user's program as text: file, line and function."""
    return "unknown" if source_info is None else str(source_info)
