"""Which frames of a traceback are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from namoo._base.source_context import hide_frames, is_hidden

F = TypeVar("F", bound=Callable[..., Any])


class UnfilteredStackTrace(Exception):
    """JAX's cause of an error that shows all of its frames; namoo never raises it."""


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of all files in a folder, in tracebacks."""
    hide_frames(path)


def api_boundary(fun: F, **_: Any) -> F:
    """Mark an entry point of a library; namoo marks its own."""
    return fun


def include_frame(frame: Any) -> bool:
    """Return whether a frame is shown."""
    return not is_hidden(frame.f_code.co_filename)
