"""Data types."""

from typing import Any

from namoo._base.dtypes import ExtendedDType
from namoo._base.dtypes import dtype_of as dtype
from namoo.compat.private._names import names_of

__all__ = ["DType", "ExtendedDType", "dtype"]

DType = Any

__getattr__ = names_of(__name__, "namoo.dtypes", "namoo._base.dtypes")
