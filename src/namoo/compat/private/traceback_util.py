"""Which frames of a traceback a user sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from namoo.errors import hide_frames, is_hidden

F = TypeVar("F", bound=Callable[..., Any])


class UnfilteredStackTrace(Exception):
    """The cause that JAX can attach to an error to show all of its frames; namoo never does."""


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of a folder's files, in tracebacks."""
    hide_frames(path)


def api_boundary(fun: F, **_: Any) -> F:
    """Mark a function at which a user enters a library; namoo marks its own."""
    return fun


def include_frame(frame: Any) -> bool:
    """Whether a user sees a frame."""
    return not is_hidden(frame.f_code.co_filename)
