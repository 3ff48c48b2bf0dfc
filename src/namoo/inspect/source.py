"""The user's source around the lines of a report."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import TYPE_CHECKING

from namoo._base.source_context import Source

if TYPE_CHECKING:
    from namoo.inspect.collect import Line
    from namoo.inspect.report import Inspection

_CONTEXT = 2
_LONGEST = 60


def listings(report: Inspection) -> Iterator[tuple[str, list[tuple[int, str, Line | None] | None]]]:
    """Yield for each file the lines to show: number, text, and the line of the report if it is one.

    Functions are shown whole unless they are long; None marks lines that are left out.
    """
    by_file: dict[str, dict[int, Line]] = {}
    for line in report.lines:
        if line.file:
            by_file.setdefault(line.file, {})[line.number] = line
    shown: dict[str, set[int]] = {file: set() for file in by_file}
    for source in report._sources:
        shown[source.file] |= _around(source)
    for file, own in by_file.items():
        rows: list[tuple[int, str, Line | None] | None] = []
        numbers = sorted(shown[file] | set(own))
        for before, number in zip([numbers[0] - 1, *numbers], numbers, strict=False):
            if number > before + 1:
                rows.append(None)
            text = linecache.getline(file, number).rstrip()
            rows.append((number, text or (own[number].code if number in own else ""),
                         own.get(number)))  # fmt: skip
        yield file, rows


def _around(source: Source) -> set[int]:
    """The lines of a function, or those near a line if it is long."""
    code = source._code
    lines = [line for _, _, line in code.co_lines() if line]
    first, last = min([code.co_firstlineno, *lines]), max([code.co_firstlineno, *lines])
    if code.co_name == "<module>" or last - first >= _LONGEST:
        first, last = source.line - _CONTEXT, source.line + _CONTEXT
    return set(range(max(first, 1), last + 1))


def equations(line: Line) -> Iterator[tuple[bool, str]]:
    """Yield the distinct operations of a line: whether each is of the backward pass, and its text
    with types."""
    counts: dict[tuple[bool, str], int] = {}
    for eqn in line.equations:
        key = eqn.backward, f"{eqn.name} {', '.join(eqn.results)}".strip()
        counts[key] = counts.get(key, 0) + 1
    for (backward, text), count in counts.items():
        yield backward, text if count == 1 else f"{text} ×{count}"
