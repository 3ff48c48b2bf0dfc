"""Sharing memory with other libraries."""

from typing import Any

from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.numpy import from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]
__dir__ = __all__.copy


_KINDS = "biufc"


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be shared.

    Example:
        >>> [is_supported_dtype(name) for name in ("float32", "bfloat16", "int4")]
        [True, True, False]
    """
    dtype = dtypes.canonicalize_dtype(dtype, allow_extended=True)
    if dtypes.is_extended(dtype):
        return False
    return dtype.name == "bfloat16" or dtype.isbuiltin == 1 and dtype.kind in _KINDS


_guard(globals())
