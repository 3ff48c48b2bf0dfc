"""The table of remembered programs.

A program is made when something happens for the second time: one call is faster than making its
program, and errors name the user's own calls.
"""

from __future__ import annotations

from typing import Any

from namoo._base.caches import register

trace_on_second_call = True
"""Whether the first call is only noted; tests switch it off to look at the first program."""
SEEN: Any = object()
"""The entry of what has happened once."""
_LIMIT = 2048
programs: dict[Any, Any] = register(
    "memo.trace_cache programs",
    {},
    bound=_LIMIT,
    keyed_by="function or primitive, abstract values, static arguments, settings",
)


def mark_seen(key: Any) -> None:
    """Note that something has happened once; a full table is emptied."""
    if len(programs) >= _LIMIT:
        programs.clear()
    programs[key] = SEEN
