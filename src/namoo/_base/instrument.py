"""Hooks by which the library reports to `namoo.profiler` and `namoo.monitoring`.

They cost nothing while no profile is recorded and no listener is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

session: Any = None
"""The `namoo.profiler.session.Session` of the running trace."""
timed: Callable[[str, str], AbstractContextManager[None]] | None = None
"""The handler of spans in `namoo.monitoring`, once it is loaded."""

_NOTHING = nullcontext()


def span(what: str, name: str) -> AbstractContextManager[None]:
    """Record the time in which the library does something, "trace" or "compile", for a function.

    Example:
        >>> with span("trace", "loss"):
        ...     pass
    """
    return _NOTHING if session is None and timed is None else _told(what, name)


@contextmanager
def _told(what: str, name: str) -> Iterator[None]:
    running = session
    with timed(what, name) if timed else _NOTHING:
        with _NOTHING if running is None else running.span(what, name):
            yield
