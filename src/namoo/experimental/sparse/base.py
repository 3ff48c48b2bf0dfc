"""The base class of sparse arrays."""

from __future__ import annotations

import math
from typing import Any

from namoo import tree_util
from namoo.core.array import Array
from namoo.core.trace import Tracer


class JAXSparse:
    """A sparse array: `data`, its stored elements, and its `shape`.

    Example:
        >>> from namoo.experimental import sparse
        >>> isinstance(sparse.eye(2), sparse.JAXSparse)
        True
    """

    data: Any
    shape: tuple[int, ...]
    nse: Any
    n_batch: Any
    n_dense: Any

    # Makes NumPy arrays defer to the operators of this class.
    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = property(lambda self: self.transpose())

    def transpose(self, axes: Any = None) -> Any:
        """Permute the axes."""
        raise NotImplementedError(f"{type(self).__name__}.transpose")

    def block_until_ready(self) -> Any:
        """Wait until the elements have been computed."""
        for x in tree_util.tree_leaves(self):
            x.block_until_ready()
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        if not isinstance(self.data, Array):  # the leaves of a tree may be other things
            return f"{name}(<structure>)"
        parts = [f"{self.dtype.name}{list(self.shape)}", f"nse={self.nse}"]
        parts += [f"{n}={getattr(self, n)}" for n in ("n_batch", "n_dense") if getattr(self, n)]
        text = f"{name}({', '.join(parts)})"
        return f"Traced[{text}]" if isinstance(self.data, Tracer) else text
