"""Curves for pages and notebooks: SVG with a switch for a logarithmic axis, and values on hover.

Everything is drawn here, without a library, for both axes; style sheets choose which is shown, so
that the switch works without a script. The script of a page only shows values on hover.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from namoo._base import html
from namoo._base.html import escape
from namoo.train.plots import Points, panels_of, series_of

_WIDTH, _HEIGHT = 480, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 10, 26
_COLORS = ("var(--one)", "var(--two)", "#3a9a5b", "#a55cc2", "#b8860b", "#d0506f", "#3aa0a0")

_SMALLER = re.compile(r"loss|err|nll|perplexity|mse|mae|rmse|regret|cost|entropy", re.IGNORECASE)
_LARGER = re.compile(
    r"acc|f1|auc|precision|recall|score|reward|return|bleu|r2|iou|map|top", re.IGNORECASE
)
_LATER = re.compile(r"rate|^lr|norm|time|second|speed|memory|epoch", re.IGNORECASE)

STYLE = """
.namoo .charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));
gap:1.2em 2em}
.namoo figure{margin:0;position:relative;min-width:0}
.namoo figcaption{display:flex;gap:1em;align-items:baseline;flex-wrap:wrap}
.namoo figcaption b{font-size:14px}
.namoo figcaption label{margin-left:auto;color:var(--quiet);cursor:pointer}
.namoo figure svg{width:100%;height:auto;display:block}
.namoo figure .log,.namoo figure:has(input:checked) .linear{display:none}
.namoo figure:has(input:checked) .log{display:inline}
.namoo .key{white-space:nowrap}
.namoo .key i{display:inline-block;width:16px;margin-right:4px;vertical-align:middle}
.namoo .tip{position:absolute;pointer-events:none;background:var(--soft);color:var(--ink);
border:1px solid var(--line);border-radius:4px;padding:2px 6px;font-size:12px;display:none;
white-space:pre;font-variant-numeric:tabular-nums}
"""

SCRIPT = """
for (const figure of document.querySelectorAll('.namoo figure')) {
  const data = JSON.parse(figure.dataset.curves), tip = figure.querySelector('.tip');
  const svg = figure.querySelector('svg'), line = figure.querySelector('.cursor');
  const text = n => Number.isFinite(n) ? String(+n.toPrecision(4)) : '-';
  svg.addEventListener('mousemove', event => {
    const box = svg.getBoundingClientRect(), scale = data.width / box.width;
    const share = ((event.clientX - box.left) * scale - data.left) / data.across;
    const at = data.low + Math.min(Math.max(share, 0), 1) * (data.high - data.low);
    let best = null;
    for (const curve of data.curves) for (const [x] of curve.points)
      if (best === null || Math.abs(x - at) < Math.abs(best - at)) best = x;
    if (best === null) return;
    const rows = [data.x + ' ' + text(best)];
    for (const curve of data.curves)
      for (const [x, y] of curve.points)
        if (x === best) rows.push(curve.name + '  ' + (y === null ? '-' : text(y)));
    const place = data.left + (best - data.low) / (data.high - data.low || 1) * data.across;
    line.setAttribute('x1', place); line.setAttribute('x2', place);
    line.style.display = 'inline';
    tip.textContent = rows.join('\\n'); tip.style.display = 'block';
    const left = place / scale, right = left > box.width / 2;
    tip.style.left = right ? 'auto' : left + 12 + 'px';
    tip.style.right = right ? box.width - left + 12 + 'px' : 'auto';
    tip.style.top = event.clientY - figure.getBoundingClientRect().top + 8 + 'px';
  });
  svg.addEventListener('mouseleave', () => {
    tip.style.display = line.style.display = 'none';
  });
}
"""


def history_html(history: Any, x: str = "step") -> str:
    """Return the curves of a history for a notebook.

    Example:
        >>> history_html({"loss": [2.0, 1.0], "val_loss": [2.5, 2.0]}).count("<figure")
        1
    """
    body = charts({"": series_of(history, x)}, x)
    return html.fragment(f"<style>{STYLE}</style>{body}<script>{{{SCRIPT}}}</script>")


def better(name: str) -> int:
    """Return -1 if small values of a quantity are good, 1 if large ones are, 0 if neither is known.

    Example:
        >>> better("val_loss"), better("accuracy"), better("rate")
        (-1, 1, 0)
    """
    if _LATER.search(name):
        return 0
    return -1 if _SMALLER.search(name) else 1 if _LARGER.search(name) else 0


def charts(runs: Mapping[str, dict[str, Points]], x: str) -> str:
    """Return a chart for each quantity: what should become small or large comes first.

    Args:
        runs: the curves of each run, by its name; further runs are dashed.
        x: the name of the horizontal axis.
    """
    panels: dict[str, dict[str, tuple[int, Points]]] = {}
    for number, (run, series) in enumerate(runs.items()):
        for title, curves in panels_of({n: p for n, p in series.items() if p}).items():
            for name, points in curves.items():
                label = f"{run}: {name}" if len(runs) > 1 else name
                panels.setdefault(title, {})[label] = number, points
    order = sorted(panels, key=lambda title: (bool(_LATER.search(title)), not better(title)))
    shown = "".join(_chart(title, panels[title], x) for title in order)
    return f"<div class='charts'>{shown}</div>"


def _chart(title: str, curves: dict[str, tuple[int, Points]], x: str) -> str:
    colors = _colors(curves)
    known = [p for _, points in curves.values() for p in points if _is_finite(p)]
    low, high = _ends([a for a, _ in known])
    lines = _axes_and_lines(title, curves, colors, known, low, high, log=False)
    body, switch = f"<g class='linear'>{lines}</g>", ""
    if any(y > 0 for _, y in known):
        lines = _axes_and_lines(title, curves, colors, known, low, high, log=True)
        body += f"<g class='log'>{lines}</g>"
        switch = "<label><input type='checkbox'> log</label>"
    keys = " ".join(
        f"<span class='key'><i style='border-top:3px {'dashed' if run else 'solid'} "
        f"{colors[name]}'></i>{escape(name)}"
        f"{_best_text(f'{title} {name}', points, x)}</span>"
        for name, (run, points) in curves.items()
    )
    data = {
        "x": x, "low": low, "high": high, "left": _LEFT, "width": _WIDTH,
        "across": _WIDTH - _LEFT - _RIGHT,
        "curves": [
            {"name": name, "points": [[a, y if math.isfinite(y) else None] for a, y in points]}
            for name, (_, points) in curves.items()
        ],
    }  # fmt: skip
    cursor = (
        f"<line class='cursor' y1='{_TOP}' y2='{_HEIGHT - _BOTTOM}' stroke='var(--quiet)' "
        "style='display:none'/>"
    )
    return (
        f"<figure data-curves='{escape(json.dumps(data))}'><figcaption><b>{escape(title)}</b> "
        f"{keys}{switch}</figcaption><svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img'>{body}"
        f"{cursor}</svg><div class='tip'></div></figure>"
    )


def _colors(curves: dict[str, tuple[int, Points]]) -> dict[str, str]:
    """A colour for each name; the same name has one colour in all runs."""
    names = [name.rpartition(": ")[2] for name in curves]
    places = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return {name: _COLORS[places[name.rpartition(": ")[2]] % len(_COLORS)] for name in curves}


def best_of(names: str, points: Points) -> tuple[float, float] | None:
    """Return the best point of a curve; None where it is not known what is good.

    Args:
        names: the name of the curve, and more words that say what it is.
        points: the curve.

    Example:
        >>> best_of("val loss", [(0.0, 3.0), (10.0, 1.0), (20.0, 2.0)])
        (10.0, 1.0)
    """
    sign, known = better(names), [p for p in points if _is_finite(p)]
    return max(known, key=lambda p: sign * p[1]) if sign and known else None


def _best_text(names: str, points: Points, x: str) -> str:
    best = best_of(names, points)
    if best is None:
        return ""
    return f" <span class='quiet'>best {best[1]:.4g} at {escape(x)} {best[0]:.4g}</span>"


def _axes_and_lines(
    title: str,
    curves: dict[str, tuple[int, Points]],
    colors: Mapping[str, str],
    known: Points,
    low: float,
    high: float,
    log: bool,
) -> str:
    drawn = [y for _, y in known if y > 0] if log else [y for _, y in known]
    bottom, top = _ends([math.log10(y) for y in drawn] if log else drawn)
    across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def right(a: float) -> float:
        return _LEFT + (a - low) / (high - low) * across

    def down(y: float) -> float:
        value = math.log10(y) if log else y
        return _TOP + (top - value) / (top - bottom) * up

    parts = []
    for value in ticks(bottom, top):
        y = 10.0**value if log else value
        at = down(y)
        parts.append(
            f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{at:.1f}' y2='{at:.1f}' "
            f"stroke='var(--line)'/><text x='{_LEFT - 6}' y='{at + 4:.1f}' text-anchor='end'>"
            f"{y:.4g}</text>"
        )
    for a in ticks(low, high):
        parts.append(
            f"<text x='{right(a):.1f}' y='{_HEIGHT - 8}' text-anchor='middle'>{a:.6g}</text>"
        )
    for name, (run, points) in curves.items():
        path, gap = [], True
        for a, y in points:
            if not _is_finite((a, y)) or log and y <= 0:
                gap = True
                continue
            path.append(f"{'M' if gap else 'L'}{right(a):.1f} {down(y):.1f}")
            gap = False
        dashes = f" stroke-dasharray='{4 + run} {2 + run}'" if run else ""
        parts.append(
            f"<path d='{''.join(path)}' fill='none' stroke='{colors[name]}' stroke-width='1.6' "
            f"stroke-linejoin='round' stroke-linecap='round'{dashes}/>"
        )
        best = best_of(f"{title} {name}", points)
        if best is not None and not (log and best[1] <= 0):
            parts.append(
                f"<circle cx='{right(best[0]):.1f}' cy='{down(best[1]):.1f}' r='3.5' "
                f"fill='var(--paper)' stroke='{colors[name]}' stroke-width='1.6'/>"
            )
    return "".join(parts)


def _is_finite(point: Sequence[float]) -> bool:
    return all(math.isfinite(value) and abs(value) < 1e300 for value in point)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest value, apart from each other."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        room = abs(low) / 10 or 0.5
        return low - room, high + room
    return low, high


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two values.

    Example:
        >>> ticks(0.0, 0.9), ticks(0, 1000)
        ([0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0])
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
