"""Which layer of a model an error comes from."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from namoo import tree
from namoo.tree_util import keystr


def name_layer(error: Exception, layer: Any, kind: type) -> None:
    """Add the path of a layer to an error, if it was called by a model that holds it.

    The models are found among the callers: the outermost `self` that has the layer inside.

    Args:
        error: The error, which leaves the layer.
        layer: The layer.
        kind: The class of models.
    """
    if getattr(error, "__notes__", None):
        return  # a layer inside of this one has been named
    frame: FrameType | None = sys._getframe(2)
    found = ""
    while frame is not None:
        model = frame.f_locals.get("self")
        if isinstance(model, kind) and model is not layer:
            found = _path(model, layer) or found
        frame = frame.f_back
    if found:
        error.add_note(f"The layer is {found}, a {type(layer).__name__}.")


def _path(model: Any, layer: Any) -> str:
    pairs = tree.leaves_with_path(model, is_leaf=lambda x: x is layer)
    path = next((path for path, x in pairs if x is layer), None)
    return f"{type(model).__name__}{keystr(path)}" if path else ""
