"""Trees and modules in notebooks: what can be folded, with shapes and norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from namoo import tree
from namoo._base import html
from namoo._base.html import escape
from namoo._base.short import short
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.core.trace import Tracer
from namoo.tree.paths import path_string

_OPEN = 2
_SHOWN = 100


def tree_html(value: Any) -> str:
    """Return a tree as HTML: each node can be folded, and has its number of parameters.

    Example:
        >>> import namoo.numpy as jnp
        >>> tree_html({"w": jnp.ones((2, 3)), "layers": [jnp.ones(4)]}).count("<details")
        2
    """
    return html.fragment(f"<div class='code'>{_node('', value, 0)}</div>")


def _node(name: str, value: Any, depth: int) -> str:
    label = f"<span class='quiet'>{escape(name)}</span> " if name else ""
    children = [*_children(value)]
    if not children:
        return f"<div>{label}{_leaf(value)}</div>"
    shown = "".join(_node(key, child, depth + 1) for key, child in children[:_SHOWN])
    if len(children) > _SHOWN:
        shown += f"<div class='quiet'>… {len(children) - _SHOWN} more</div>"
    head = f"{label}{escape(type(value).__name__)} <span class='quiet'>{_total(value)}</span>"
    return html.folded(head, shown, is_open=depth < _OPEN)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values inside a node; nothing for leaves."""
    if hasattr(type(value), "_form"):  # a module: settings are shown, too
        yield from ((name, value.__dict__.get(name)) for name in type(value)._fields)
        return
    for path, child in tree.leaves_with_path(value, is_leaf=lambda x: x is not value):
        if child is not value:
            yield path_string(path), child


def _leaf(value: Any) -> str:
    if isinstance(value, (Array, np.ndarray, ShapeDtypeStruct)):
        text = escape(aval_of(value).str_short())
        norm = _norm([value])
        return f"<b>{text}</b> <span class='quiet'>{norm}</span>" if norm else f"<b>{text}</b>"
    if callable(value) and hasattr(value, "__name__"):
        return escape(value.__name__)
    return escape(short(value))


def _total(value: Any) -> str:
    arrays = [x for x in tree.leaves(value) if isinstance(x, (Array, np.ndarray, ShapeDtypeStruct))]
    count = sum(int(np.prod(x.shape)) for x in arrays)
    words = [f"{count:,} parameters" if arrays else "", _norm(arrays)]
    return ", ".join(word for word in words if word)


def _norm(arrays: list[Any]) -> str:
    """The norm as text, '' where values are not known or are no numbers."""
    total = 0.0
    for x in arrays:
        if isinstance(x, (ShapeDtypeStruct, Tracer)) or aval_of(x).dtype.kind not in "fc":
            return ""
        total += float(np.sum(np.abs(np.asarray(x).astype(np.complex128)) ** 2))
    return f"norm {total**0.5:.4g}" if arrays else ""
