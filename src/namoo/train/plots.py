"""`plot`: the curves of a run as a picture, drawn by matplotlib."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

Points = list[tuple[float, float]]


def series_of(history: Any, x: str = "step") -> dict[str, Points]:
    """The curves of a history: for each name, its points.

    Args:
        history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
        x: the name of the numbers along the horizontal axis; without them rows are numbered.

    Returns:
        The points of each name that has numbers.

    Example:
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
                f"a history has rows of numbers by name, not {row!r:.40}: "
                "[{'step': 1, 'loss': 0.5}, ...], or lists by name: {'loss': [0.5, ...]}."
            )
        for name, value in row.items():
            if name != x and not isinstance(value, str):
                found.setdefault(name, []).append((float(row.get(x, i)), float(value)))
    return found


def _column(name: str, values: Any, x: str, across: Any) -> Points:
    """The points of a list of numbers, with the given horizontal coordinates or 0, 1, 2, …"""
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"a history has lists by name, but {name!r} is {values!r:.40}.")
    if across is not None and len(values) > len(across):
        raise ValueError(
            f"the history has {len(values)} numbers of {name!r}, but {len(across)} of {x!r} to "
            "plot them against."
        )
    at = range(len(values)) if across is None else across
    return [(float(a), float(value)) for a, value in zip(at, values, strict=False)]


_SPLIT = "train|training|val|valid|validation|test|eval|dev"
_OF_A_SPLIT = re.compile(rf"(?:({_SPLIT})[_ .-](.+))|(?:(.+)[_ .-]({_SPLIT}))", re.IGNORECASE)


def _quantity(name: str) -> tuple[str, str]:
    """The quantity and the data that a name refers to: `("loss", "val")` for `val_loss`."""
    of, slash, what = name.rpartition("/")
    if slash and of and what:
        return (of, what) if re.fullmatch(_SPLIT, what, re.IGNORECASE) else (what, of)
    if found := _OF_A_SPLIT.fullmatch(name):
        before, first, second, after = found.groups()
        return (first, before) if before else (second, after)
    return name, name


def panels_of(series: dict[str, Points]) -> dict[str, dict[str, Points]]:
    """The curves of each panel, by the panel's name and their own.

    Two names share a panel if they differ only in the part before their last slash, or in a word
    at one end that names the data: train, val, test and the like.

    Example:
        >>> names = ["loss", "val_loss", "sgd/error", "adam/error", "test_f1", "rate"]
        >>> {title: list(curves) for title, curves in panels_of(dict.fromkeys(names, [])).items()}
        {'loss': ['loss', 'val'], 'error': ['sgd', 'adam'], 'test_f1': ['test_f1'],
         'rate': ['rate']}
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
    """Draws the curves of a run; those of one quantity (`loss` and `val_loss`) share a panel.

    Names share a panel if they differ only in the part before their last slash, or in a word such
    as train, val or test at one end. A value that is not finite leaves a gap in its curve, and a
    value between two gaps is a dot.

    Args:
        history: a `Logger`; or rows, dicts of numbers by name; or one dict of lists by name.
        path: the file to write: `.html`, or what matplotlib writes (`.svg`, `.png`, `.pdf`, …).
        x: the name of the numbers along the horizontal axis.
        title: the title of the figure.
        log: whether the vertical axes are logarithmic; values that are not positive leave gaps.

    Returns:
        The path.

    Raises:
        TypeError: if `history` is not a history.
        ValueError: if the file has another suffix, or there is nothing to draw.
        ImportError: if matplotlib is not installed.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "curves.svg"
        >>> history = {"loss": [3.0, 2.0, 1.5], "val_loss": [3.1, 2.4, 2.2]}
        >>> "<svg" in plot(history, path).read_text()
        True
    """
    path, series = Path(path), series_of(history, x)
    if not any(series.values()):
        raise ValueError("the history has no numbers to draw.")
    if path.suffix in (".svg", ".html"):
        text = svg(series, x, title if path.suffix == ".svg" else "", log)
        content = (text if path.suffix == ".svg" else page(title or "Curves", text)).encode()
    else:
        picture = figure(series, x, title, log)
        known = {"html", *picture.canvas.get_supported_filetypes()}
        if path.suffix[1:] not in known:
            raise ValueError(f"a plot is one of {', '.join(sorted(known))}, not {path.suffix!r}.")
        buffer = io.BytesIO()
        picture.savefig(buffer, format=path.suffix[1:])
        content = buffer.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def page(title: str, body: str) -> str:
    """A page of HTML that needs no other file; the body is HTML, the title is text."""
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
    """The curves as an `<svg>` element; equal curves give equal text."""
    picture = figure(series, x, title, log)
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "namoo"}), warnings.catch_warnings():
        # Text stays text, and the viewer has its own fonts.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        picture.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def figure(series: dict[str, Points], x: str, title: str, log: bool) -> Any:
    """The curves as a matplotlib figure, one panel below the other with one horizontal axis."""
    try:
        # Without pyplot there is no window, and no global state to close.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: `pip install namoo[plots]`, or `pip install matplotlib`."
        ) from error
    panels = panels_of({name: points for name, points in series.items() if points})
    heights = [max(2.6, 0.5 + 0.22 * len(curves)) for curves in panels.values()]  # with its legend
    picture = Figure(figsize=(6.4, 0.4 + sum(heights)), layout="constrained")
    every = picture.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, curves) in zip(every, panels.items(), strict=True):
        lines = []
        for i, points in enumerate(curves.values()):
            across, up = np.array(points).T
            # Matplotlib's axes overflow at the largest floats.
            drawn = np.isfinite(across) & (np.abs(up) < 1e300) & ((up > 0) | (not log))
            # A point between two gaps has no line to it.
            alone = drawn & ~np.append(drawn[1:], False) & ~np.append(False, drawn[:-1])
            style = ("-", "--", ":")[i // 10 % 3]
            lines += axes.plot(
                across, np.where(drawn, up, np.nan), style, marker=".", markevery=alone
            )
        axes.set_title(_shortened(name, 40), loc="left", parse_math=False)
        axes.set_yscale("log" if log else "linear")
        axes.grid(axis="y", alpha=0.4)
        if len(curves) > 1:
            labels = [_shortened(label, 24) for label in curves]
            legend = axes.legend(lines, labels, loc="upper left", bbox_to_anchor=(1, 1))
            for text in legend.get_texts():
                text.set_parse_math(False)
    every[-1].set_xlabel(_shortened(x, 40), parse_math=False)
    picture.suptitle(_shortened(title, 60), parse_math=False)
    return picture


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
