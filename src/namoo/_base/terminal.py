"""Properties of the terminal."""

from __future__ import annotations

import os
from typing import Any


def colors_wanted(stream: Any) -> bool:
    """Whether a stream is a terminal whose user did not disable colours.

    Example:
        >>> import io
        >>> colors_wanted(io.StringIO())
        False
    """
    if not getattr(stream, "isatty", lambda: False)():
        return False
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
