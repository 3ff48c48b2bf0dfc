"""The state of an array after its memory was freed or donated."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from namoo._base import dtypes


class Deleted:
    """The value of an array that was donated or deleted: it has a type, and no elements."""

    __slots__ = ("dtype", "ndim", "shape", "size")

    def __init__(self, value: np.ndarray):
        self.shape, self.dtype = value.shape, value.dtype
        self.ndim, self.size = value.ndim, value.size

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        dtype = self.dtype if self.dtype.names is None else dtypes.of_numpy(self.dtype)
        raise RuntimeError(
            f"Array has been deleted with shape={dtype}[{','.join(map(str, self.shape))}]: it was "
            "donated to a compiled function, or x.delete() was called. Use the function's result, "
            "or pass x.copy() to keep x."
        )

    __getattr__ = __getitem__ = __iter__ = __array__ = __reduce_ex__ = _refuse
    __str__ = __repr__ = __format__ = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
