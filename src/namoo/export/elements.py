"""How dtypes and arrays are written in a file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import EagerArray, to_numpy

_DTYPES: dict[str, Any] = {
    "float0" if dtype == dtypes.float0 else dtype.name: dtype for dtype in dtypes.SUPPORTED
}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype: NumPy's, or `key:` and the name of a random generator.

    Example:
        >>> dtype_name(np.dtype("float32"))
        'float32'
    """
    if isinstance(dtype, dtypes.KeyDType):
        return f"key:{dtype.impl}"
    return "float0" if dtype == dtypes.float0 else np.dtype(dtype).name


def read_dtype(name: Any) -> Any:
    """Return the dtype with a name.

    Raises:
        ValueError: there is no such dtype.
    """
    if isinstance(name, str) and name.startswith("key:"):
        return dtypes.KeyDType(name.removeprefix("key:"))
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"unknown dtype {name!r:.40}")
    return _DTYPES[name]


def _stored(dtype: Any) -> tuple[np.dtype, tuple[int, ...]]:
    """Return the little-endian dtype that an element is stored as, and the shape of one element."""
    if isinstance(dtype, dtypes.KeyDType):
        return np.dtype("<u4"), dtype.key_shape
    return dtype.newbyteorder("<"), ()


def array_bytes(x: Any) -> bytes:
    """Return the elements in row-major order, little endian."""
    value = np.asarray(to_numpy(x))
    dtype = dtypes.of_numpy(value.dtype)
    if isinstance(dtype, dtypes.KeyDType):
        value = dtype.to_words(value)
        dtype = value.dtype
    if dtype == dtypes.float0:
        return b""
    return np.ascontiguousarray(value).astype(_stored(dtype)[0], copy=False).tobytes()


def size_in_bytes(dtype: Any, shape: tuple[int, ...]) -> int:
    """Return how many bytes an array takes in a file."""
    if dtype == dtypes.float0:
        return 0
    stored, inner = _stored(dtype)
    return math.prod(shape) * math.prod(inner) * stored.itemsize


def read_array(data: Any, dtype: Any, shape: tuple[int, ...], weak: bool = False) -> EagerArray:
    """Read an array that `array_bytes` wrote.

    Raises:
        ValueError: the number of bytes does not match.
    """
    if len(data) != size_in_bytes(dtype, shape):
        raise ValueError(
            f"an array of {dtype} and shape {shape!r:.80} has {size_in_bytes(dtype, shape)} "
            f"bytes, not {len(data)}"
        )
    if dtype == dtypes.float0:
        # Arrays of this dtype take no memory, so any shape would be accepted.
        if math.prod(shape) > 1 << 40:
            raise ValueError(f"an array of shape {shape!r:.80} is too large")
        return EagerArray(np.zeros(shape, dtypes.float0))
    stored, inner = _stored(dtype)
    numbers = np.frombuffer(data, stored).reshape((*shape, *inner))
    if isinstance(dtype, dtypes.KeyDType):
        return EagerArray(dtype.from_words(numbers.astype(np.uint32)))
    # A copy: it is aligned, and does not keep the whole file alive.
    return EagerArray(numbers.astype(dtype), weak)
