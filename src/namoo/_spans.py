"""Where the library tells a running trace of `namoo.profiler` what it does.

While no trace runs, `session` is None and there is nothing to tell.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

session: Any = None
"""The `namoo.profiler.session.Session` of the running trace."""

_NOTHING = nullcontext()


def span(what: str, name: str) -> AbstractContextManager[Any]:
    """The time in which the library does something, "trace" or "compile", for a function.

    >>> with span("trace", "loss"):
    ...     pass
    """
    return _NOTHING if session is None else session.span(what, name)
