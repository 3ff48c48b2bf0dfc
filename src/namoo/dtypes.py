"""Types of elements: the namespace that JAX has as `jax.dtypes`."""

from __future__ import annotations

from typing import Any

from namoo._base import dtypes
from namoo._base.dtypes import (
    TypePromotionError,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)
from namoo._base.source_context import make_entry_points as _guard

bfloat16: type = dtypes.bfloat16.type

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
__dir__ = __all__.copy


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that values of a type really have: 64 bits become 32 unless `enable_x64` is on.

    Args:
        dtype: a dtype, its name, a scalar type or a Python type; None for the default float.
        allow_extended_dtype: whether random keys' types pass.

    Raises:
        TypeError: not a dtype.
        ValueError: an extended type where none is allowed.

    Example:
        >>> canonicalize_dtype("float64")
        dtype('float32')
    """
    return dtypes.canonicalize_dtype(dtype, allow_extended_dtype)


_guard(globals())
