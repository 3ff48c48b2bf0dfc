"""A user's value in a message: its type, shape or structure, in one short line."""

from __future__ import annotations

from itertools import islice
from typing import Any

_PLAIN = (bool, int, float, complex, bytes, type(None), type(Ellipsis), slice)


def short(value: Any, width: int = 80) -> str:
    """Describe a value in at most `width` characters.

    Small Python values are shown literally, arrays by type and shape, and containers by their
    first elements.

    Example:
        >>> import numpy as np
        >>> short({"w": np.ones((3, 2)), "b": [1, 2.0]})
        "{'w': float64[3,2], 'b': [1, 2.0]}"
        >>> short(list(range(1000)))
        '[0, 1, 2, 3, 4, 5, 6, 7, … 992 more]'
        >>> short("x" * 200, 20)
        "'xxxxxxxxxxxxxxxxxx…"
    """
    text = _words(value, 3)
    return text if len(text) <= width else text[: width - 1] + "…"


def _words(value: Any, depth: int) -> str:
    kind = type(value)
    if isinstance(value, str):
        return repr(value[:200])
    if kind in _PLAIN:
        return repr(value)
    shape, dtype = _attribute(value, "shape"), _attribute(value, "dtype")
    if isinstance(shape, tuple) and dtype is not None:
        return f"{dtype}[{','.join(map(str, shape))}]"
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return _container(value, depth) if depth else f"a {kind.__name__} of {len(value)}"
    name = getattr(value, "__qualname__", None)
    if isinstance(value, type):
        return f"the class {name}"
    if callable(value) and isinstance(name, str):
        return f"the function {name.rpartition('.')[2]}"
    article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
    return f"{article} {kind.__name__}"


def _attribute(value: Any, name: str) -> Any:
    """An attribute of any object, None if it has none or reading it fails."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _container(value: Any, depth: int) -> str:
    shown = 8 if depth == 3 else 4
    if isinstance(value, dict):
        items = [f"{k!r}: {_words(v, depth - 1)}" for k, v in islice(value.items(), shown)]
    else:
        items = [_words(v, depth - 1) for v in islice(value, shown)]
    if len(value) > shown:
        items.append(f"… {len(value) - shown} more")
    text = ", ".join(items)
    fields = getattr(value, "_fields", None)
    if fields is not None:
        text = ", ".join(f"{f}={item}" for f, item in zip(fields, items, strict=False))
        return f"{type(value).__name__}({text})"
    if isinstance(value, dict):
        return f"{{{text}}}"
    if isinstance(value, list):
        return f"[{text}]"
    if isinstance(value, tuple):
        return f"({text},)" if len(value) == 1 else f"({text})"
    return f"{{{text}}}" if value else f"{type(value).__name__}()"
