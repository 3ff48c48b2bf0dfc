"""The element types of the engine, and their NumPy dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base.dtypes import KeyDType, bfloat16, of_numpy

_ELEMS = {np.dtype(np.bool_): "i1"}
for _bits in (8, 16, 32, 64):
    _ELEMS[np.dtype(f"int{_bits}")] = f"i{_bits}"
    _ELEMS[np.dtype(f"uint{_bits}")] = f"u{_bits}"
_ELEMS |= {
    np.dtype(np.float16): "f16",
    bfloat16: "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}


def elem_of(dtype: Any) -> str:
    """The element type of a dtype; empty if the engine has none."""
    elem = _ELEMS.get(dtype)
    if elem is None:
        # A random key of n words is "wn", such as "w2".
        known = of_numpy(dtype) if isinstance(dtype, np.dtype) else dtype
        elem = f"w{known.itemsize // 4}" if isinstance(known, KeyDType) else ""
    return elem


def numpy_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype that holds values of a dtype; keys have a structured one."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(getattr(dtype, "numpy", dtype))


def is_complex(elem: str) -> bool:
    return elem[0] == "c"


def is_key(elem: str) -> bool:
    return elem[0] == "w"


def is_compound(elem: str) -> bool:
    """Whether a value is a tuple: the parts of a complex number, the words of a key."""
    return elem[0] in "cw"


def part_of(elem: str) -> str:
    """The type of the parts of a complex number or of a key; other types are their own parts."""
    return "u32" if is_key(elem) else {"c64": "f32", "c128": "f64"}.get(elem, elem)


def parts(elem: str) -> int:
    """How many parts an element has."""
    return int(elem[1:]) if is_key(elem) else 2 if is_complex(elem) else 1


def computed_in(elem: str) -> str:
    """The type that values are computed in: narrow floats are widened."""
    return "f32" if is_narrow(elem) else elem


def is_narrow(elem: str) -> bool:
    """Whether it is a 16-bit float, which is computed in f32 and rounded after each operation."""
    return elem in ("f16", "bf16")


def size_of(elem: str) -> int:
    """Bytes in memory."""
    if is_key(elem):
        return 4 * parts(elem)
    return {"i1": 1, "c64": 8, "c128": 16, "bf16": 2}.get(elem) or int(elem[1:]) // 8


def is_signed_integer(elem: str) -> bool:
    return elem[0] == "i" and elem != "i1"


def limit(dtype: np.dtype, least: bool) -> Any:
    """The least or the greatest value of a type: infinite for floats."""
    if dtype == np.bool_:
        return not least
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if least else info.max
    return -math.inf if least else math.inf
