"""Arrays in notebooks: values, a histogram, and a heat map of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes, html
from namoo._base.html import escape
from namoo._base.pictures import heat_map, histogram
from namoo.core.array import PlacedArray
from namoo.core.avals import aval_of
from namoo.devices.sharding.visualize import picture

_SMALL = 20
_EDGE = 4
_SAMPLE = 1_000_000


def array_html(x: Any) -> str | None:
    """Return an array as HTML; None for keys and small arrays, which a notebook prints as text.

    Example:
        >>> import namoo.numpy as jnp
        >>> array_html(jnp.ones(3)) is None
        True
        >>> "<svg" in array_html(jnp.arange(100.0))
        True
    """
    if isinstance(x.dtype, dtypes.ExtendedDType) or not dtypes.issubdtype(x.dtype, np.number):
        return None
    if x.size < _SMALL and not (x.ndim == 2 and x.size > 3):
        return None
    values = np.asarray(x._value)
    more = html.folded("values", _table(x))
    if isinstance(x, PlacedArray) and len(x._sharding.device_set) > 1:
        more += html.folded("devices", f"<pre>{escape(picture(x.shape, x._sharding))}</pre>")
    return html.fragment(f"<p>{facts(x)}</p>{_pictures(values)}{more}")


def facts(x: Any) -> str:
    """The type of an array and what its numbers are like, as HTML."""
    found = f"<b>{escape(aval_of(x).str_short(short_dtypes=False))}</b>"
    values, share = _sample(np.asarray(x._value))
    if not values.size:
        return found
    if np.iscomplexobj(values):
        return f"{found} <span class='quiet'>norm {np.linalg.norm(values.ravel()):.4g}</span>"
    values = values.astype(np.float64)
    finite = values[np.isfinite(values)]
    words = []
    if finite.size:
        words += [
            f"mean {finite.mean():.4g}",
            f"std {finite.std():.4g}",
            f"from {finite.min():.4g} to {finite.max():.4g}",
        ]
    if finite.size < values.size:
        nans = int(np.isnan(values).sum())
        counts = {"nan": nans, "inf": values.size - finite.size - nans}
        words += [f"{count} {name}" for name, count in counts.items() if count]
    if share > 1:
        words.append(f"sampled: 1 of {share} elements")
    return f"{found} <span class='quiet'>{', '.join(words)}</span>"


def _sample(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Some of the elements, and of how many each one is taken."""
    step = max(1, -(-values.size // _SAMPLE))
    return values.reshape(-1)[::step], step


def _pictures(values: np.ndarray) -> str:
    if np.iscomplexobj(values):
        return ""
    shown = []
    sample, _ = _sample(values)
    finite = sample[np.isfinite(sample.astype(np.float64))]
    if finite.size:
        shown.append(histogram(finite))
    if values.ndim == 2:
        shown.append(heat_map(values))
    return f"<div style='display:flex;gap:2em;align-items:flex-start'>{''.join(shown)}</div>"


def _table(x: Any) -> str:
    """The first and the last values as a table, or as text where there are more axes than two."""
    if x.ndim > 2:
        return f"<pre>{escape(repr(x))}</pre>"
    values = np.atleast_2d(np.asarray(x._value))
    rows, columns = (_ends(n) for n in values.shape)
    body = "".join("<tr>" + "".join(_cell(values, i, j) for j in columns) + "</tr>" for i in rows)
    return f"<table>{body}</table>"


def _ends(size: int) -> list[int | None]:
    """The numbers of the first and the last elements, None between them."""
    if size <= 2 * _EDGE + 1:
        return [*range(size)]
    return [*range(_EDGE), None, *range(size - _EDGE, size)]


def _cell(values: np.ndarray, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "<td class='quiet'>…</td>"
    value = values[i, j]
    return f"<td>{escape(f'{value:.5g}' if value.dtype.kind in 'fc' else value)}</td>"
