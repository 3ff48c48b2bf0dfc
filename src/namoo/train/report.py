"""`report`: a run on one page of HTML; `Timings`: how long its parts take."""

from __future__ import annotations

import math
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from namoo._base import html
from namoo.engines.native.link.threads import get_num_threads
from namoo.train import charts
from namoo.train.plots import Points, series_of
from namoo.train.progress import clock
from namoo.tree.arithmetic import summary
from namoo.version import __version__


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
    against: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a run as one page of HTML that needs no other file and no network.

    The curves come first: what should become small or large (losses, accuracies) before rates and
    norms, training and validation in one chart. Each has a switch for a logarithmic axis, shows its
    values on hover and marks the best one. The page follows the dark mode of the browser.

    Args:
        path: the file to write.
        history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
        config: the configuration of the run; may be nested.
        params: a tree of arrays, shown as a table.
        timings: `Timings`, or seconds by name.
        title: the title, which is also the name of the run where it is compared with others.
        x: the name of the numbers along the horizontal axis.
        against: histories of other runs by name, to compare this one with: their curves are dashed.

    Returns:
        The path.

    Example:
        >>> import tempfile, pathlib
        >>> page = report(
        ...     pathlib.Path(tempfile.mkdtemp()) / "run.html",
        ...     {"loss": [2.0, 1.0]},
        ...     config={"rate": 0.1},
        ...     timings={"step": [0.1, 0.2]},
        ...     against={"before": {"loss": [2.5, 1.5]}},
        ... )
        >>> "<svg" in page.read_text()
        True
    """
    runs = {title: series_of(history, x)}
    for name, other in (against or {}).items():
        runs[name] = series_of(other, x)
    runs = {run: {n: p for n, p in series.items() if p} for run, series in runs.items()}
    parts = [f"<h1>{escape(title)}</h1>"]
    if any(runs.values()):
        heads = ("name", "last", "best", f"at {x}", "min", "max", "count")
        rows = [
            _number(f"{run}: {name}" if against else name, points)
            for run, series in runs.items()
            for name, points in series.items()
        ]
        parts += [charts.charts(runs, x), "<h2>Numbers</h2>", _table(heads, rows)]
    columns = []
    if config is not None:
        columns += ["<h2>Configuration</h2>" + _table(("name", "value"), _flat(config))]
    if timings is not None:
        seconds = timings.seconds if isinstance(timings, Timings) else timings
        heads = ("part", "count", "total", "mean", "median", "max")
        columns += ["<h2>Timings</h2>" + _table(heads, map(_timing, seconds.items()))]
    columns += ["<h2>Environment</h2>" + _table(("name", "value"), _environment(history))]
    if params is not None:
        columns += [f"<h2>Parameters</h2><pre>{escape(str(summary(params)))}</pre>"]
    parts.append("".join(f"<section>{column}</section>" for column in columns))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    style = charts.STYLE + _STYLE
    body = "\n".join(parts)
    path.write_text(html.page(title, body, style, charts.SCRIPT), encoding="utf-8")
    return path


_STYLE = """
h1{font-size:20px;margin:0 0 .8em}
h2{font-size:14px;margin:1.6em 0 .4em}
section{display:inline-block;vertical-align:top;margin-right:3em;max-width:100%;overflow-x:auto}
.namoo td:not(.left),.namoo th:not(.left){text-align:left}
"""


def _environment(history: Any) -> Iterator[tuple[str, str]]:
    """Yield where and how the run was made."""
    yield "written", time.strftime("%Y-%m-%d %H:%M:%S %z")
    if (started := getattr(history, "started", None)) is not None:
        yield "duration", clock(time.time() - started)
    yield "command", shlex.join(getattr(sys, "orig_argv", sys.argv))
    if commit := _commit():
        yield "commit", commit
    yield "namoo", __version__
    yield "Python", platform.python_version()
    yield "NumPy", np.__version__
    system = f"{platform.system()} {platform.machine()}"
    yield "system", f"{system}, {os.cpu_count()} cores, {get_num_threads()} threads"
    settings = sorted(name for name in os.environ if name.startswith(("NAMOO_", "JAX_", "OMP_")))
    for name in settings:
        yield name, os.environ[name]


def _commit() -> str:
    """Return the commit of the current folder, and whether files differ from it; '' without git."""
    words = [
        ["git", "rev-parse", "--short=12", "HEAD"],
        ["git", "status", "--porcelain", "--untracked-files=no"],
    ]
    try:
        done = [subprocess.run(w, capture_output=True, text=True, timeout=5) for w in words]
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done[0].returncode:
        return ""
    return done[0].stdout.strip() + (" with changes" if done[1].stdout.strip() else "")


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


def _number(name: str, points: Points) -> tuple[str, ...]:
    """A row of the table of curves: the last value, the best, and the extremes."""
    known = [point for point in points if not math.isnan(point[1])] or points
    values = [value for _, value in known]
    best = charts.best_of(name, points)
    where = ("", "") if best is None else (f"{best[1]:.4g}", f"{best[0]:.6g}")
    ends = f"{min(values):.4g}", f"{max(values):.4g}", str(len(points))
    return name, f"{points[-1][1]:.4g}", *where, *ends


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
