"""A trace in the format of TensorBoard's profiler (its `xplane.proto`).

A space has planes, a plane has lines (threads), a line has events. Names of events, and of what is
shown with them, stand once, in tables of the plane.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from namoo.profiler.wire import content, number


def space(
    threads: dict[int, str], spans: Iterable[tuple[int, int, int, str, dict[str, str] | None]]
) -> bytes:
    """The bytes of a file.

    Args:
      threads: the numbers of threads, and their names.
      spans: the thread, start and end in nanoseconds, name, and what is shown with it.
    """
    names: dict[str, int] = {}
    stats: dict[str, int] = {}

    def stat(name: str, text: str) -> bytes:
        key = number(1, stats.setdefault(name, len(stats) + 1))
        is_integer = text.removeprefix("-").isdecimal() and len(text) < 19
        return content(4, key, number(4, int(text)) if is_integer else content(5, text.encode()))

    def event(start: int, end: int, name: str, args: dict[str, str] | None) -> bytes:
        return content(
            4,
            number(1, names.setdefault(name, len(names) + 1)),
            number(2, start * 1000),  # picoseconds
            number(3, (end - start) * 1000),
            *(stat(*arg) for arg in (args or {}).items()),
        )

    # What begins together: the outer one first.
    ordered = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
    lines = [
        content(
            3,
            number(1, thread),
            content(2, threads[thread].encode()),
            *(event(*s[1:]) for s in own),
        )
        for thread, own in groupby(ordered, key=lambda span: span[0])
    ]
    tables = [
        content(table, number(1, key), content(2, number(1, key), content(2, name.encode())))
        for table, entries in ((4, names), (5, stats))
        for name, key in entries.items()
    ]
    return content(1, content(2, b"/host:CPU"), *lines, *tables)
