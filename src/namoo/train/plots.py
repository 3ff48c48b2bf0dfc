"""`plot`: curves of a run as a picture; SVG and HTML are written here, PNG by matplotlib."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 36, 40
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
        places = rows.get(x)
        return {
            name: [
                (float(i if places is None else places[i]), float(value))
                for i, value in enumerate(values)
            ]
            for name, values in rows.items()
            if name != x
        }
    found: dict[str, Points] = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name != x and not isinstance(value, str):
                found.setdefault(name, []).append((float(row.get(x, i)), float(value)))
    return found


def panels_of(series: dict[str, Points]) -> dict[str, dict[str, Points]]:
    """Curves that belong into one picture: those whose names end in the same word.

    >>> list(panels_of({"loss": [], "val_loss": [], "test/accuracy": []}))
    ['loss', 'accuracy']
    """
    panels: dict[str, dict[str, Points]] = {}
    for name, points in series.items():
        word = name.replace("/", "_").rsplit("_", 1)[-1] or name
        panels.setdefault(word, {})[name] = points
    return panels


def plot(history: Any, path: str | os.PathLike[str], *, x: str = "step", title: str = "") -> Path:
    """Draws the curves of a run. Names that end in the same word share a picture.

    Args:
      history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
      path: where to write; `.svg`, `.html`, or, with matplotlib, `.png`.
      x: the name of the numbers along the horizontal axis.
      title: words above.

    Returns:
      The path.

    Raises:
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
    if path.suffix == ".svg":
        text = svg(series, x, title)
    elif path.suffix == ".html":
        text = page(title or "Curves", svg(series, x))
    elif path.suffix == ".png":
        return _png(series, path, x, title)
    else:
        raise ValueError(f"a plot is .svg, .html or .png, not {path.suffix!r}.")
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
    "table{border-collapse:collapse}td,th{padding:.2em 1em .2em 0;text-align:left;"
    "border-bottom:1px solid #ddd;vertical-align:top}pre{overflow-x:auto;background:#f6f6f6;"
    "padding:1em}svg{max-width:100%;height:auto}"
)


def svg(series: dict[str, Points], x: str = "step", title: str = "") -> str:
    """The curves as SVG, one panel below the other."""
    panels = panels_of({name: points for name, points in series.items() if points})
    top = 28 if title else 0
    height = top + HEIGHT * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    ]
    if title:
        parts.append(_text(WIDTH / 2, 20, title, "middle", ' font-size="15"'))
    for i, (name, curves) in enumerate(panels.items()):
        parts.append(f'<g transform="translate(0 {top + i * HEIGHT})">')
        parts += _panel(name, curves, x)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def _panel(name: str, curves: dict[str, Points], x: str) -> list[str]:
    finite = [p for points in curves.values() for p in points if all(map(math.isfinite, p))]
    across = _Scale([p[0] for p in finite], LEFT, WIDTH - RIGHT)
    up = _Scale([p[1] for p in finite], HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, 20, name, "start", ' font-weight="bold"')]
    for tick in up.ticks():
        at = up(tick)
        parts.append(_line(LEFT, at, WIDTH - RIGHT, at, "#e4e4e4"))
        parts.append(_text(LEFT - 6, at + 4, f"{tick:.6g}", "end"))
    for tick in across.ticks():
        at = across(tick)
        parts.append(_line(at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 4, "#888"))
        parts.append(_text(at, HEIGHT - BOTTOM + 17, f"{tick:.6g}", "middle"))
    parts.append(_line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "#888"))
    parts.append(_text(WIDTH - RIGHT, HEIGHT - 6, x, "end"))
    place = WIDTH - RIGHT
    for i, (label, points) in reversed(list(enumerate(curves.items()))):
        colour = COLOURS[i % len(COLOURS)]
        for piece in _pieces(thinned(points)):
            placed = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in piece)
            if len(piece) == 1:
                a, b = piece[0]
                parts.append(
                    f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="2.5" fill="{colour}"/>'
                )
            else:
                parts.append(
                    f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" '
                    f'stroke-linejoin="round" points="{placed}"/>'
                )
        if len(curves) > 1:
            parts.append(_text(place, 20, label, "end", f' fill="{colour}"'))
            place -= 8 * len(label) + 16
    return parts


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


class _Scale:
    """From numbers to places on the paper."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        self.low, self.high = min(values, default=0.0), max(values, default=1.0)
        # Neighbouring numbers cannot be told apart, and nothing can be divided by zero.
        if self.high - self.low <= 1e-12 * max(abs(self.low), abs(self.high)):
            room = abs(self.low) / 2 or 0.5
            self.low, self.high = self.low - room, self.high + room
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers inside."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


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


def _png(series: dict[str, Points], path: Path, x: str, title: str) -> Path:
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
        for label, points in curves.items():
            axes.plot(*zip(*points, strict=True), label=label)
        axes.set(title=name, xlabel=x)
        if len(curves) > 1:
            axes.legend()
    if title:
        figure.suptitle(title)
    figure.savefig(path)
    return path
