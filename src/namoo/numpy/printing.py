"""Text of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray


def _dtype_text(x: EagerArray) -> str:
    name = x.dtype.name if hasattr(x.dtype, "name") else str(x.dtype)
    return f"dtype={name}, weak_type=True" if x._weak else f"dtype={name}"


def array_text(x: EagerArray) -> str:
    """The array as it is shown by the interpreter: `Array([1, 2], dtype=int32)`."""
    prefix, dtype = "Array(", _dtype_text(x)
    value = x._value
    if dtypes.is_extended(x.dtype):
        words = x.dtype.to_words(value)
        return f"Array({x.shape}, dtype={x.dtype}) overlaying:\n{words}"
    if not value.size:
        body = f"[], shape={value.shape}"
    else:
        width = np.get_printoptions()["linewidth"]
        body = np.array2string(
            value, prefix=prefix, suffix=",", separator=", ", max_line_width=width
        )
    width = np.get_printoptions()["linewidth"]
    last = len(body) - body.rfind("\n") + 1
    gap = " " if last + len(dtype) + 2 <= width else " " * len(prefix)
    return f"{prefix}{body},{gap}{dtype})"


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """NumPy's text of an array as the interpreter shows it.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.array_repr(jnp.array([1.25, 2.5]), precision=1)
        'Array([1.2, 2.5], dtype=float32)'
    """
    if not isinstance(arr, Array):
        return np.array_repr(arr, max_line_width, precision, suppress_small)
    text = np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)
    return text.replace("array(", "Array(", 1).replace("\n ", "\n ")


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """NumPy's text of an array as `print` shows it.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.array_str(jnp.array([1.25, 2.5]), precision=1)
        '[1.2 2.5]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
