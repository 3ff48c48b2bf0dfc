"""A trace in the format of TensorBoard's profiler (its `xplane.proto`).

A space has planes, a plane has lines (threads), a line has events. The names of events and of their
values are stored once, in tables of the plane.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, starmap
from operator import itemgetter

from namoo._base.protobuf import content, number


def space(
    threads: dict[int, str], spans: Iterable[tuple[int, int, int, str, dict[str, str] | None]]
) -> bytes:
    """Return the bytes of the file.

    Args:
        threads: the names of threads by number.
        spans: the thread, start and end in nanoseconds, name, and values to show.
    """
    # Indices into the plane's tables, encoded as the fields that refer to them.
    names: dict[str, bytes] = {}
    stats: dict[str, bytes] = {}

    def key(table: dict[str, bytes], name: str) -> bytes:
        return table.get(name) or table.setdefault(name, number(1, len(table) + 1))

    def stat(name: str, text: str) -> bytes:
        is_integer = text.removeprefix("-").isdecimal() and len(text) < 19
        value = number(4, int(text)) if is_integer else content(5, text.encode())
        return content(4, key(stats, name), value)

    def event(_: int, start: int, end: int, name: str, args: dict[str, str] | None) -> bytes:
        # In picoseconds.
        times = number(2, start * 1000) + number(3, (end - start) * 1000)
        shown = b"".join(stat(*arg) for arg in args.items()) if args else b""
        return content(4, key(names, name), times, shown)

    # If two spans start at the same time, the outer one comes first.
    ordered = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
    lines = [
        content(3, number(1, thread), content(2, threads[thread].encode()), *starmap(event, own))
        for thread, own in groupby(ordered, key=itemgetter(0))
    ]
    tables = [
        content(field, own, content(2, own, content(2, name.encode())))
        for field, table in ((4, names), (5, stats))
        for name, own in table.items()
    ]
    return content(1, content(2, b"/host:CPU"), *lines, *tables)
