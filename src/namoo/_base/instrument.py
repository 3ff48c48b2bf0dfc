"""Hooks by which the library reports to `namoo.profiler`, `namoo.monitoring` and the log.

They cost nothing while no profile is recorded, no listener is registered and nothing is logged.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from namoo._base.config import config

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
    if (
        session is None
        and timed is None
        and not (what == "compile" and _is_logged(config.log_compiles))
    ):
        return _NOTHING
    return _told(what, name)


@contextmanager
def _told(what: str, name: str) -> Iterator[None]:
    running, start = session, time.perf_counter()
    if what == "compile":
        log(config.log_compiles, "Compiling jit(%s)", name)
    with timed(what, name) if timed else _NOTHING:
        with _NOTHING if running is None else running.span(what, name):
            yield
    if what == "compile":
        took = time.perf_counter() - start
        log(config.log_compiles, "Finished compilation of jit(%s) in %.6f sec", name, took)


def log(asked: bool, text: str, *args: Any) -> None:
    """Log what the library does: a warning if a setting asks for it, else for debugging.

    Args:
        asked: whether a setting enables it.
        text, *args: the message and its arguments, as for `logging`.
    """
    if _is_logged(asked):
        import logging

        level = logging.WARNING if asked else logging.DEBUG
        logging.getLogger("namoo").log(level, text, *args)


def _is_logged(asked: bool) -> bool:
    logging = sys.modules.get("logging")  # importing it is slow; without it there are no handlers
    return asked or (logging is not None and logging.getLogger("namoo").isEnabledFor(logging.DEBUG))
