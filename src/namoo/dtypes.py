"""Types of elements: the namespace that JAX has as `jax.dtypes`."""

from __future__ import annotations

from typing import Any

from ml_dtypes import bfloat16 as bfloat16

from namoo import _dtypes
from namoo._dtypes import TypePromotionError as TypePromotionError
from namoo._dtypes import extended as extended
from namoo._dtypes import finfo as finfo
from namoo._dtypes import float0 as float0
from namoo._dtypes import iinfo as iinfo
from namoo._dtypes import issubdtype as issubdtype
from namoo._dtypes import itemsize_bits as itemsize_bits
from namoo._dtypes import prng_key as prng_key
from namoo._dtypes import result_type as result_type
from namoo._dtypes import scalar_type_of as scalar_type_of


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
    return _dtypes.canonicalize_dtype(dtype, allow_extended_dtype)
