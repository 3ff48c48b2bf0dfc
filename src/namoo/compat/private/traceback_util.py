"""Which frames of a traceback are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from namoo._base.source_context import hide_frames, is_hidden, show_frames

F = TypeVar("F", bound=Callable[..., Any])


class UnfilteredStackTrace(Exception):
    """JAX's cause of an error that shows all of its frames; namoo never raises it."""


class _Excluded(list[str]):
    """The paths whose frames libraries asked to hide; they may add and remove some."""

    def append(self, path: str) -> None:
        hide_frames(path)
        super().append(path)

    def remove(self, path: str) -> None:
        super().remove(path)
        show_frames(path)


_exclude_paths = _Excluded()


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of all files in a folder, in tracebacks."""
    _exclude_paths.append(path)


def api_boundary(fun: F, **_: Any) -> F:
    """Mark an entry point of a library; namoo marks its own."""
    return fun


def include_frame(frame: Any) -> bool:
    """Return whether a frame is shown."""
    return not is_hidden(frame.f_code.co_filename)
