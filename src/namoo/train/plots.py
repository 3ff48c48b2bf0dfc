"""`plot`: curves of a run as a picture; SVG and HTML are written here, PNG by matplotlib."""

from __future__ import annotations

import math
import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 36, 40
COLOURS = ("#1f77b4", "#d95f02", "#2a9d4e", "#b3446c", "#7b61c4", "#8c6d31", "#4c9bb5", "#555555")
MOST_POINTS = 800

Points = list[tuple[float, float]]


def series_of(history: Any, x: str = "step") -> dict[str, Points]:
    """The curves of a history: for each name, its points.

    Args:
      history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
      x: the name of the numbers along the horizontal axis; the number of the row without it.

    Returns:
      The points of each name that has numbers.

    >>> series_of([{"step": 10, "loss": 2.0}, {"step": 20, "loss": 1.0}])
    {'loss': [(10.0, 2.0), (20.0, 1.0)]}
    >>> series_of({"loss": [2.0, 1.0]})
    {'loss': [(0.0, 2.0), (1.0, 1.0)]}
    """
    rows = getattr(history, "history", history)
    if isinstance(rows, Mapping):
        return {
            name: _column(name, values, x, rows.get(x))
            for name, values in rows.items()
            if name != x
        }
    found: dict[str, Points] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"a history is rows of numbers by name, not of {row!r:.40}: "
                "[{'step': 1, 'loss': 0.5}, ...], or lists by name: {'loss': [0.5, ...]}."
            )
        for name, value in row.items():
            if name != x and not isinstance(value, str):
                found.setdefault(name, []).append((float(row.get(x, i)), float(value)))
    return found


def _column(name: str, values: Any, x: str, places: Any) -> Points:
    """The points of a list of numbers, at places or at 0, 1, 2, …"""
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"a history has lists by name, and {name!r} is {values!r:.40}.")
    if places is not None and len(values) > len(places):
        raise ValueError(
            f"the history has {len(values)} numbers of {name!r}, and {len(places)} of {x!r} to "
            "draw them at."
        )
    at = range(len(values)) if places is None else places
    return [(float(a), float(value)) for a, value in zip(at, values, strict=False)]


_SPLIT = "train|training|val|valid|validation|test|eval|dev"
_OF_A_SPLIT = re.compile(rf"(?:({_SPLIT})[_ .-](.+))|(?:(.+)[_ .-]({_SPLIT}))", re.IGNORECASE)


def _quantity(name: str) -> tuple[str, str]:
    """What a name measures, and of what: `("loss", "val")` for `val_loss`."""
    of, slash, what = name.rpartition("/")
    if slash and of and what:
        return (of, what) if re.fullmatch(_SPLIT, what, re.IGNORECASE) else (what, of)
    if found := _OF_A_SPLIT.fullmatch(name):
        before, first, second, after = found.groups()
        return (first, before) if before else (second, after)
    return name, name


def panels_of(series: dict[str, Points]) -> dict[str, dict[str, Points]]:
    """Curves that belong into one picture, by the picture's name and their own.

    Two names belong together if they differ only in what stands before their last slash, or in a
    word at one end that says which data it was: train, val, test and the like.

    >>> names = ["loss", "val_loss", "sgd/error", "adam/error", "test_f1", "rate"]
    >>> {title: list(curves) for title, curves in panels_of(dict.fromkeys(names, [])).items()}
    {'loss': ['loss', 'val'], 'error': ['sgd', 'adam'], 'test_f1': ['test_f1'], 'rate': ['rate']}
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in series:
        quantity, of = _quantity(name)
        groups.setdefault(quantity, []).append((of, name))
    panels: dict[str, dict[str, Points]] = {}
    for quantity, pairs in groups.items():
        is_clear = len({of for of, _ in pairs}) == len(pairs) > 1
        title = quantity if len(pairs) > 1 else pairs[0][1]
        panels[title] = {of if is_clear else name: series[name] for of, name in pairs}
    return panels


def plot(
    history: Any,
    path: str | os.PathLike[str],
    *,
    x: str = "step",
    title: str = "",
    log: bool = False,
) -> Path:
    """Draws the curves of a run, those of one quantity (`loss` and `val_loss`) in one picture.

    Names share a picture if they differ only in what stands before their last slash, or in a word
    such as train, val or test at one end. A number that is not finite is a gap in its curve, and
    one between two gaps is a dot.

    Args:
      history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
      path: where to write; `.svg`, `.html`, or, with matplotlib, `.png`.
      x: the name of the numbers along the horizontal axis.
      title: words above.
      log: whether the vertical axes are logarithmic; numbers that are not positive are gaps.

    Returns:
      The path.

    Raises:
      TypeError: if the history is none.
      ValueError: if the file has another suffix, or there is nothing to draw.
      ImportError: if a PNG is asked for and matplotlib is not installed.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "curves.svg"
    >>> plot({"loss": [3.0, 2.0, 1.5], "val_loss": [3.1, 2.4, 2.2]}, path).read_text()[:4]
    '<svg'
    """
    path, series = Path(path), series_of(history, x)
    if not any(series.values()):
        raise ValueError("the history has no numbers to draw.")
    if path.suffix not in (".svg", ".html", ".png"):
        raise ValueError(f"a plot is .svg, .html or .png, not {path.suffix!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        return _png(series, path, x, title, log)
    text = svg(series, x, title, log)
    if path.suffix == ".html":
        text = page(title or "Curves", svg(series, x, log=log))
    path.write_text(text, encoding="utf-8")
    return path


def page(title: str, body: str) -> str:
    """A page of HTML that needs nothing else; the body is HTML, the title is text."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "td,th{padding:.2em 1em .2em 0;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid #ddd;vertical-align:top;font-variant-numeric:tabular-nums}"
    "pre{overflow-x:auto;background:#f6f6f6;padding:1em}svg{max-width:100%;height:auto}"
)


def svg(series: dict[str, Points], x: str = "step", title: str = "", log: bool = False) -> str:
    """The curves as SVG, one panel below the other."""
    drawn = panels_of({name: points for name, points in series.items() if points})
    panels = [_Panel(name, curves, log) for name, curves in drawn.items()]
    left = max([LEFT, *(_width(label) + 12 for panel in panels for _, label in panel.ticks)])
    # One horizontal axis for all, so that what lies above one another happened together.
    across = _Scale([a for panel in panels for a, _ in panel.finite])
    parts, height = [], 0.0
    if title:
        size = min(15.0, 15 * (WIDTH - 20) / (_width(title) * 15 / 12))
        parts.append(_text(WIDTH / 2, 20, title, "middle", f' font-size="{size:.3g}"'))
        height = 28.0
    for panel in panels:
        parts += [f'<g transform="translate(0 {height:g})">', *panel.drawn(left, across, x), "</g>"]
        height += panel.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height:g}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


class _Panel:
    """One picture: axes, curves and their names."""

    def __init__(self, name: str, curves: dict[str, Points], log: bool):
        self.name = _shortened(name, 0.85 * (WIDTH - LEFT - RIGHT))  # bold letters are wider
        if log:
            curves = {k: [(a, b if b > 0 else math.nan) for a, b in v] for k, v in curves.items()}
        self.curves = {name: thinned(points) for name, points in curves.items()}
        self.finite = [
            p for points in curves.values() for p in points if all(map(math.isfinite, p))
        ]
        self.up = _Scale([p[1] for p in self.finite], log, margin=0.04)
        self.ticks = self.up.ticks()
        room = WIDTH - LEFT - RIGHT
        labels = [_shortened(label, room - 40) for label in curves] if len(curves) > 1 else []
        # The names of the curves stand beside the panel's own if there is room, and below if not.
        self.beside = sum(map(_entry, labels)) + _width(self.name) <= room
        self.legend = [labels] if self.beside else _rows(labels, room)
        self.top = TOP + (0 if self.beside else 18 * len(self.legend))
        self.height = HEIGHT + self.top - TOP

    def drawn(self, left: float, across: _Scale, x: str) -> list[str]:
        """The parts of the picture, its vertical axis at `left`."""
        right, bottom = WIDTH - RIGHT, self.height - BOTTOM

        def place(point: tuple[float, float]) -> tuple[float, float]:
            share, up = across(point[0]), self.up(point[1])
            return left + share * (right - left), bottom - up * (bottom - self.top)

        parts = [_text(left, 20, self.name, "start", ' font-weight="bold"')]
        for tick, label in self.ticks:
            _, y = place((0, tick))
            parts.append(_line(left, y, right, y, "#e4e4e4"))
            parts.append(_text(left - 6, y + 4, label, "end"))
        for tick, label in across.ticks():
            at, _ = place((tick, 1))
            parts.append(_line(at, bottom, at, bottom + 4, "#888"))
            parts.append(_text(at, bottom + 17, label, "middle"))
        parts.append(_line(left, bottom, right, bottom, "#888"))
        parts.append(_text(right, self.height - 6, _shortened(x, right - left), "end"))
        for i, points in enumerate(self.curves.values()):
            for piece in _pieces(points):
                parts.append(_curve([place(point) for point in piece], i))
        return parts + self.names(left, right)

    def names(self, left: float, right: float) -> list[str]:
        """The names of the curves, each after a piece of its line."""
        parts, i = [], 0
        for n, row in enumerate(self.legend):
            at = right - sum(map(_entry, row)) + 16 if self.beside else left
            y = 20 if self.beside else 38 + 18 * n
            for label in row:
                parts.append(_curve([(at, y - 4), (at + 14, y - 4)], i))
                parts.append(_text(at + 19, y, label, "start", f' fill="{_colour(i)}"'))
                at, i = at + _entry(label), i + 1
        return parts


def _rows(labels: list[str], room: float) -> list[list[str]]:
    """Labels in as many rows as they need."""
    rows: list[list[str]] = [[]]
    for label in labels:
        if rows[-1] and sum(map(_entry, [*rows[-1], label])) > room + 16:
            rows.append([])
        rows[-1].append(label)
    return rows


def _width(text: str) -> float:
    """About how wide a text is; letters of East Asia take a square."""
    return sum(12.0 if unicodedata.east_asian_width(c) in "WF" else 7.2 for c in text)


def _entry(label: str) -> float:
    """The room that a name takes, with its piece of a line and a space after it."""
    return _width(label) + 35


def _shortened(text: str, room: float) -> str:
    most = int(room / 7.2)
    return text if len(text) <= most else text[: most - 1] + "…"


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _curve(points: Points, i: int) -> str:
    """The i-th curve through places on the paper, or a dot; later rounds of colours are dashed."""
    if len(points) == 1:
        ((x, y),) = points
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.8" fill="{_colour(i)}"/>'
    dashes = f' stroke-dasharray="{4 * (i // len(COLOURS))} 3"' if i >= len(COLOURS) else ""
    placed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline fill="none" stroke="{_colour(i)}" stroke-width="1.6"{dashes} '
        f'stroke-linejoin="round" points="{placed}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


class _Scale:
    """From numbers to shares of an axis, 0 at its start and 1 at its end."""

    def __init__(self, values: Sequence[float], log: bool = False, margin: float = 0.0):
        self.log = log
        low, high = min(values, default=1.0), max(values, default=10.0)
        if log:
            low, high = math.log10(low), math.log10(high)
        # Neighbouring numbers cannot be told apart, and nothing can be divided by zero.
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            room = 1.0 if log else abs(low) / 2 or 0.5
            low, high = low - room, high + room
        # In parts: the distance of two numbers may be more than the largest number.
        room, most = high * margin - low * margin, 308.0 if log else sys.float_info.max
        self.low, self.high = max(low - room, -most), min(high + room, most)

    def __call__(self, value: float) -> float:
        value = math.log10(value) if self.log else value
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Round numbers inside, and how they are written."""
        if self.log and self.high - self.low >= 0.8:
            step = max(1, round((self.high - self.low) / about))
            first = math.floor(self.low / step) * step
            powers = range(first, math.floor(self.high) + 1, step)
            within = (1, 2, 5) if self.high - self.low < 2.5 else (1,)
            exact = [(m * 10.0**n, f"{m * 10.0**n:.6g}") for n in powers for m in within]
            return [(tick, label) for tick, label in exact if tick and 0 <= self(tick) <= 1]
        low, high = (10.0**self.low, 10.0**self.high) if self.log else (self.low, self.high)
        rough = high / about - low / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = min((1, 2, 2.5, 5, 10), key=lambda m: abs(math.log(m * power / rough))) * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        numbers = [i * step for i in range(first, last + 1)]
        # Enough digits to tell neighbours apart, far from zero too.
        digits = max(6, 2 + math.floor(math.log10(max(abs(low), abs(high)) / step)))
        return [(number, f"{number:.{digits}g}") for number in numbers]


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """Fewer points with the same outline: the lowest and the highest of each of many parts.

    >>> thinned([(float(i), float(i % 2)) for i in range(8)], most=4)
    [(0.0, 0.0), (1.0, 1.0), (4.0, 0.0), (5.0, 1.0)]
    """
    if len(points) <= most:
        return points
    parts, kept = max(1, most // 2), []
    for i in range(parts):
        part = points[i * len(points) // parts : (i + 1) * len(points) // parts]
        finite = [p for p in part if math.isfinite(p[1])]
        if not finite:
            kept.append(part[0])
            continue
        ends = {finite.index(min(finite, key=lambda p: p[1]))}
        ends.add(finite.index(max(finite, key=lambda p: p[1])))
        kept += [finite[j] for j in sorted(ends)]
    return kept


def _pieces(points: Points) -> list[Points]:
    """Runs of points without a gap; what is not finite is one."""
    pieces: list[Points] = [[]]
    for point in points:
        if all(map(math.isfinite, point)):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _png(series: dict[str, Points], path: Path, x: str, title: str, log: bool) -> Path:
    try:
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "a plot as PNG needs matplotlib: `pip install matplotlib`. SVG and HTML need nothing: "
            "plot(history, 'curves.svg')."
        ) from error
    panels = panels_of({name: points for name, points in series.items() if points})
    # Without pyplot there is no window and nothing global to close.
    figure = Figure(figsize=(6.4, 3 * len(panels)), layout="constrained")
    for axes, (name, curves) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
    ):
        for i, (label, points) in enumerate(curves.items()):
            line = "-" if i < len(COLOURS) else "--"
            for piece in _pieces(points):
                marker = "." if len(piece) == 1 else ""
                axes.plot(
                    *zip(*piece, strict=True), line, color=_colour(i), marker=marker, label=label
                )
                label = None
        axes.set(title=name, xlabel=x, yscale="log" if log else "linear")
        axes.grid(axis="y", color="#e4e4e4")
        if len(curves) > 1:
            axes.legend()
    if title:
        figure.suptitle(title)
    figure.savefig(path)
    return path
