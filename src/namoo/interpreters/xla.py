"""Conversion of Python values to arrays, and calls of single primitives."""

from __future__ import annotations

from typing import Any

from namoo.core.array import numpy_handlers as canonicalize_dtype_handlers

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]
__dir__ = __all__.copy


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Return the result of one operation.

    Example:
        >>> from namoo import lax
        >>> print(apply_primitive(lax.neg_p, 2.0))
        -2.0
    """
    return prim.bind(*args, **params)
