"""Which NumPy types the engine computes with, and what they are called in its code."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_ELEMS = {np.dtype(np.bool_): "i1"}
for _bits in (8, 16, 32, 64):
    _ELEMS[np.dtype(f"int{_bits}")] = f"i{_bits}"
    _ELEMS[np.dtype(f"uint{_bits}")] = f"u{_bits}"
_ELEMS |= {
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}


def elem_of(dtype: Any) -> str:
    """The element type of a dtype; empty if the engine has none."""
    return _ELEMS.get(dtype, "")


def numpy_dtype(dtype: Any) -> np.dtype:
    """The NumPy type that holds values of a dtype: keys have one of their own."""
    return np.dtype(getattr(dtype, "numpy", dtype))


def is_complex(elem: str) -> bool:
    return elem[0] == "c"


def part_of(elem: str) -> str:
    """The type of the real part."""
    return {"c64": "f32", "c128": "f64"}[elem]


def computed_in(elem: str) -> str:
    """The type that values have while they are computed with: narrow floats are widened."""
    return "f32" if elem in ("f16", "bf16") else elem


def size_of(elem: str) -> int:
    """Bytes in memory."""
    return {"i1": 1, "c64": 8, "c128": 16, "bf16": 2}.get(elem) or int(elem[1:]) // 8
