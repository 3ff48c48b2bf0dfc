"""The table of remembered programs.

A program is made on the second call with a key: a single call is faster than making a program, and
its errors refer to the user's own code.
"""

from __future__ import annotations

from typing import Any

from namoo._base.caches import register

trace_on_second_call = True
"""Whether the first call is only marked as seen; tests switch it off to get its program."""
SEEN: Any = object()
"""The entry of a key that was seen once."""
_LIMIT = 2048
programs: dict[Any, Any] = register(
    "memo.trace_cache programs",
    {},
    bound=_LIMIT,
    keyed_by="function or primitive, abstract values, static arguments, settings",
)


def mark_seen(key: Any) -> None:
    """Mark a key as seen once; a full table is cleared."""
    if len(programs) >= _LIMIT:
        programs.clear()
    programs[key] = SEEN
