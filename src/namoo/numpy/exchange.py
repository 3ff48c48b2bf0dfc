"""Memory shared with other libraries by DLPack, also in types that NumPy does not share.

NumPy exchanges only arrays of its own types.  Elements of other types travel as unsigned
integers of the same width, and the name of the type in the capsule is changed on the way.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from namoo._base import dtypes

# DLPack's numbers of types that NumPy lacks; unsigned integers have the number 1.
_CODES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
_UNSIGNED = 1
# Where the number is: behind the address of the elements, the device and the number of axes.  A
# capsule with a version has that, two pointers and flags in front of these.
_PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}

_get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _retyped(capsule: Any, code: int) -> Any:
    """The capsule, relabelled with another type of the same width."""
    name = _get_name(capsule)
    ctypes.c_uint8.from_address(_get_pointer(capsule, name) + _PLACES[name]).value = code
    return capsule


def give(value: np.ndarray, **options: Any) -> Any:
    """The capsule of a NumPy array, as `numpy.ndarray.__dlpack__` makes it."""
    code = _CODES.get(value.dtype.name)
    if code is None:
        return value.__dlpack__(**options)
    return _retyped(value.view(f"u{value.dtype.itemsize}").__dlpack__(**options), code)


class _Unsigned:
    """A tensor whose elements count as unsigned integers."""

    def __init__(self, tensor: Any):
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return _retyped(self.tensor.__dlpack__(**options), _UNSIGNED)


def take(x: Any) -> np.ndarray:
    """A NumPy array in the memory of another library's tensor."""
    name = str(getattr(x, "dtype", "")).rpartition(".")[2]
    if name not in _CODES:
        return np.from_dlpack(x)
    return np.from_dlpack(_Unsigned(x)).view(dtypes.canonicalize_dtype(name))
