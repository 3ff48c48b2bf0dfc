"""`report`: a run on one page of HTML; `Timings`: how long its parts take."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from namoo.train.plots import Points, page, series_of, svg
from namoo.tree.arithmetic import summary


class Timings:
    """How long the named parts of a loop take.

    Example:
        >>> timings = Timings()
        >>> for _ in range(3):
        ...     with timings("step"):
        ...         pass
        >>> len(timings.seconds["step"])
        3
    """

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Records the time that the body of a `with` takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds.setdefault(name, []).append(time.perf_counter() - start)


def report(
    path: str | os.PathLike[str],
    history: Any,
    *,
    config: Mapping[str, Any] | None = None,
    params: Any = None,
    timings: Timings | Mapping[str, Sequence[float] | float] | None = None,
    title: str = "Run",
    x: str = "step",
) -> Path:
    """Writes a run as one self-contained page of HTML, without scripts.

    Args:
        path: the file to write.
        history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
        config: the configuration of the run; may be nested.
        params: a tree of arrays, shown as a table.
        timings: `Timings`, or seconds by name.
        title: the title.
        x: the name of the numbers along the horizontal axis.

    Returns:
        The path.

    Raises:
        ImportError: if there are curves to draw and matplotlib is not installed.

    Example:
        >>> import tempfile, pathlib
        >>> page = report(
        ...     pathlib.Path(tempfile.mkdtemp()) / "run.html",
        ...     {"loss": [2.0, 1.0]},
        ...     config={"rate": 0.1},
        ...     timings={"step": [0.1, 0.2]},
        ... )
        >>> "<svg" in page.read_text()
        True
    """
    series = {name: points for name, points in series_of(history, x).items() if points}
    parts = []
    if series:
        heads = ("name", "last", "min", f"at {x}", "max", f"at {x}", "count")
        parts += ["<h2>Curves</h2>", svg(series, x)]
        parts += ["<h2>Numbers</h2>", _table(heads, map(_number, series.items()))]
    if config is not None:
        parts += ["<h2>Configuration</h2>", _table(("name", "value"), _flat(config))]
    if params is not None:
        parts += ["<h2>Parameters</h2>", f"<pre>{escape(str(summary(params)))}</pre>"]
    if timings is not None:
        seconds = timings.seconds if isinstance(timings, Timings) else timings
        heads = ("part", "count", "total", "mean", "median", "max")
        parts += ["<h2>Timings</h2>", _table(heads, map(_timing, seconds.items()))]
    machine = [
        ("written", time.strftime("%Y-%m-%d %H:%M:%S %z")),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("system", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
    ]
    parts += ["<h2>Machine</h2>", _table(("name", "value"), machine)]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(title, "\n".join(parts)), encoding="utf-8")
    return path


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of a nested configuration."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _number(item: tuple[str, Points]) -> tuple[str, ...]:
    """A row of the table of curves: the last value, the extremes and where they are."""
    name, points = item
    known = [point for point in points if not math.isnan(point[1])] or points
    least, most = min(known, key=lambda p: p[1]), max(known, key=lambda p: p[1])
    numbers = (points[-1][1], least[1], least[0], most[1], most[0], len(points))
    return name, *(f"{number:.6g}" for number in numbers)


def _timing(item: tuple[str, Any]) -> tuple[str, ...]:
    name, seconds = item
    times = np.atleast_1d(np.asarray(seconds, float))
    values = times.sum(), times.mean(), np.median(times), times.max()
    return name, str(len(times)), *map(_duration, values)


def _duration(seconds: float) -> str:
    """Seconds in a readable unit.

    Example:
        >>> _duration(0.00002), _duration(0.5), _duration(90.0)
        ('20 µs', '500 ms', '90 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
