"""Types for annotations.

Example:
    >>> import namoo.typing
    >>> def scale(x: namoo.typing.ArrayLike) -> float: ...
"""

from typing import Any, TypeAlias

import numpy as np

from namoo.core.array import Array

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = __all__.copy


ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""Anything that can be used where an array is expected."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | Any
"""Anything that names a dtype."""
