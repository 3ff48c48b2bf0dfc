"""The part of `matplotlib.pyplot` that lessons draw with, as SVG.

One figure with one pair of axes at a time. A name that is missing here raises an AttributeError.
"""

import math
from html import escape

import numpy as np

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 34, 48


class Figure:
    """What was drawn since the last `show`."""

    def __init__(self):
        self.marks: list[tuple] = []
        self.words: dict[str, str] = {}
        self.scales = {"x": "linear", "y": "linear"}
        self.limits: dict[str, tuple[float, float]] = {}
        self.legend = self.grid = False


_figure = Figure()
_done: list[str] = []


def _add(kind, x, y, label, color):
    x, y = np.asarray(x, float).ravel(), np.asarray(y, float).ravel()
    if x.shape != y.shape:
        raise ValueError(
            f"x and y must have same first dimension, but have shapes {x.shape} and {y.shape}"
        )
    colours = sum(mark[0] != "image" for mark in _figure.marks)
    _figure.marks.append((kind, x, y, label, color or COLOURS[colours % len(COLOURS)]))


def plot(*args, label=None, color=None, **style):
    """Draw lines: `plot(y)`, or `plot(x, y)`; a format with `o` or `.` draws points."""
    args, form = (args[:-1], args[-1]) if isinstance(args[-1], str) else (args, "")
    y = np.asarray(args[-1], float)
    x = np.asarray(args[0], float) if len(args) > 1 else np.arange(len(y), dtype=float)
    kind = (
        "points"
        if set("o.x") & set(form) and "-" not in form
        else "dashes"
        if "--" in form
        else "line"
    )
    for column in y.reshape(len(y), -1).T:
        _add(kind, x, column, label, color)


def scatter(x, y, s=None, c=None, label=None, color=None, **style):
    """Draw points."""
    _add("points", x, y, label, color or (c if isinstance(c, str) else None))


def bar(x, height, label=None, color=None, **style):
    """Draw bars."""
    _add("bars", x, height, label, color)


def hist(values, bins=10, label=None, color=None, **style):
    """Draw how many values are in each interval."""
    counts, edges = np.histogram(np.asarray(values, float), bins=bins)
    _add("bars", (edges[1:] + edges[:-1]) / 2, counts, label, color)


def imshow(image, cmap=None, **style):
    """Draw a matrix as grey values, or a picture with three colours."""
    image = np.asarray(image, float)
    _figure.marks.append(("image", image, None, None, cmap))


def _word(place):
    def say(text, **style):
        _figure.words[place] = str(text)

    return say


title, xlabel, ylabel = _word("title"), _word("x"), _word("y")


def _scale(axis):
    def choose(name, **options):
        _figure.scales[axis] = name

    return choose


xscale, yscale = _scale("x"), _scale("y")


def semilogy(*args, **options):
    """Draw lines over a logarithmic axis."""
    yscale("log")
    plot(*args, **options)


def xlim(low, high):
    """Set the ends of the horizontal axis."""
    _figure.limits["x"] = (float(low), float(high))


def ylim(low, high):
    """Set the ends of the vertical axis."""
    _figure.limits["y"] = (float(low), float(high))


def legend(*args, **options):
    """Show the labels."""
    _figure.legend = True


def grid(visible=True, **options):
    """Draw lines at the ticks."""
    _figure.grid = bool(visible)


def axis(*args, **options):
    """Accepted and ignored."""


def figure(*args, **options):
    """Begin a new picture."""
    show()


def tight_layout(**options):
    """Accepted and ignored."""


def show(**options):
    """Finish the picture: it appears below the cell."""
    global _figure
    if _figure.marks:
        _done.append(_svg(_figure))
    _figure = Figure()


def close(*args):
    """Forget what was drawn since the last `show`."""
    global _figure
    _figure = Figure()


def finished() -> list[str]:
    """The pictures since the last call, the unfinished one with them."""
    show()
    pictures = _done[:]
    _done.clear()
    return pictures


def _ticks(low, high, log):
    if log:
        first, last = math.floor(low), math.ceil(high)
        return [
            float(e)
            for e in range(first, last + 1, max(1, (last - first) // 6))
            if low <= e <= high
        ]
    step = 10 ** math.floor(math.log10((high - low) / 5))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    return [round(i * step, 10) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _svg(figure):
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    if title := figure.words.get("title"):
        parts.append(
            f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="14">'
            f"{escape(title)}</text>"
        )
    curves = [mark for mark in figure.marks if mark[0] != "image"]
    for mark in figure.marks:
        if mark[0] == "image":
            parts += _image(mark[1])
    if curves:
        parts += _axes(figure, curves)
    return "".join([*parts, "</svg>"])


def _image(image):
    low, high = float(image.min()), float(image.max())
    rows, columns = image.shape[:2]
    side = min((WIDTH - 40) / columns, (HEIGHT - TOP - 20) / rows)
    left = (WIDTH - side * columns) / 2
    for i in range(rows):
        for j in range(columns):
            grey = (image[i, j] - low) / ((high - low) or 1)
            levels = np.broadcast_to(np.clip(255 * grey, 0, 255).astype(int), 3)
            colour = f"rgb({levels[0]},{levels[1]},{levels[2]})"
            yield (
                f'<rect x="{left + j * side:.1f}" y="{TOP + i * side:.1f}" '
                f'width="{side + 0.3:.1f}" height="{side + 0.3:.1f}" fill="{colour}"/>'
            )


def _axes(figure, curves):
    ranges, pixels = {}, {}
    ends = {"x": (LEFT, WIDTH - RIGHT), "y": (HEIGHT - BOTTOM, TOP)}
    for axis, place in (("x", 1), ("y", 2)):
        log = figure.scales[axis] == "log"
        values = np.concatenate([mark[place] for mark in curves])
        if any(mark[0] == "bars" for mark in curves):
            values = np.append(values, [0.0] if axis == "y" else values[:1] - 0.5)
        if axis in figure.limits:
            values = np.asarray(figure.limits[axis])
        with np.errstate(all="ignore"):
            values = np.log10(values) if log else values
        values = values[np.isfinite(values)]
        low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
        margin = 0.05 * (high - low) if high > low else 0.5
        low, high = low - margin, high + margin
        ranges[axis] = low, high, log

        def pixel(value, low=low, high=high, log=log, ends=ends[axis]):
            with np.errstate(all="ignore"):
                value = np.log10(value) if log else value
            return ends[0] + (value - low) / (high - low) * (ends[1] - ends[0])

        pixels[axis] = pixel
    x, y = pixels["x"], pixels["y"]
    yield (
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - RIGHT - LEFT}" '
        f'height="{HEIGHT - BOTTOM - TOP}" fill="none" stroke="#444"/>'
    )
    for axis in ("x", "y"):
        low, high, log = ranges[axis]
        for tick in _ticks(low, high, log):
            text = f"1e{tick:.0f}" if log else f"{tick:g}"
            at = pixels[axis](10.0**tick if log else tick)
            if axis == "x":
                low_edge = HEIGHT - BOTTOM + 16
                yield f'<text x="{at:.1f}" y="{low_edge}" text-anchor="middle">{text}</text>'
            else:
                yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
            if figure.grid:
                line = (
                    f'x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
                    if axis == "x"
                    else f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"'
                )
                yield f'<line {line} stroke="#ddd"/>'
    if word := figure.words.get("x"):
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(word)}</text>'
    if word := figure.words.get("y"):
        yield (
            f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(word)}</text>'
        )
    for kind, xs, ys, _, colour in curves:
        points = [
            (a, b)
            for a, b in zip(x(xs), y(ys), strict=True)
            if math.isfinite(a) and math.isfinite(b)
        ]
        if kind in ("line", "dashes"):
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            dashes = ' stroke-dasharray="6 4"' if kind == "dashes" else ""
            stroke = f'stroke="{colour}" stroke-width="1.8"{dashes}'
            yield f'<polyline points="{path}" fill="none" {stroke}/>'
        elif kind == "points":
            yield from (
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points
            )
        else:
            wide = 0.8 * (x(1.0) - x(0.0)) * (np.diff(np.sort(xs)).min() if len(xs) > 1 else 1)
            zero = y(0.0)
            yield from (
                f'<rect x="{a - wide / 2:.1f}" y="{min(b, zero):.1f}" width="{wide:.1f}" '
                f'height="{abs(zero - b):.1f}" fill="{colour}"/>'
                for a, b in points
            )
    labels = [(mark[3], mark[4]) for mark in curves if mark[3]] if figure.legend else []
    for i, (label, colour) in enumerate(labels):
        top = TOP + 10 + 18 * i
        yield f'<rect x="{LEFT + 10}" y="{top}" width="14" height="4" fill="{colour}"/>'
        yield f'<text x="{LEFT + 30}" y="{top + 6}">{escape(str(label))}</text>'
