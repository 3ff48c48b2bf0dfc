"""Trees of arrays as one long vector, and back."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.avals import aval_of

__all__ = ["ravel_pytree"]
__dir__ = __all__.copy


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Flatten a tree of arrays into a vector.

    Args:
        pytree: a tree of arrays and numbers.

    Returns:
        the vector, of the leaves' common dtype, and the function that turns such a vector back
        into a tree with the leaves' own shapes and dtypes. If all leaves have one dtype, it takes
        vectors of any dtype.

    Example:
        >>> import namoo.numpy as jnp
        >>> vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.zeros((2, 2))})
        >>> vector
        Array([1., 0., 0., 0., 0.], dtype=float32)
        >>> unravel(vector)["b"].shape
        (2, 2)
    """
    leaves, tree = tree_util.tree_flatten(pytree)
    types = tuple((a.shape, a.dtype) for a in map(aval_of, leaves))
    if not leaves:
        return jnp.zeros(0, jnp.float32), _Unravel(tree, types, None)
    dtype = dtypes.result_type(*leaves)
    vector = jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(dtype) for x in leaves])
    return vector, _Unravel(tree, types, dtype)


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """Turns a vector into a tree. Equal for equal trees: a program that it decides serves both."""

    tree: Any
    types: tuple[tuple[tuple[int, ...], Any], ...]
    dtype: Any

    def __call__(self, vector: Any) -> Any:
        if not self.types:
            return self.tree.unflatten([])
        found = aval_of(vector)
        ends = np.cumsum([math.prod(shape) for shape, _ in self.types])
        if found.shape != (int(ends[-1]),):
            raise ValueError(
                f"unravel function given array of shape {found.shape}, but expected ({ends[-1]},)."
            )
        mixed = any(dtype != self.dtype for _, dtype in self.types)
        if mixed and found.dtype != self.dtype:
            raise TypeError(
                f"unravel function given array of dtype {found.dtype}, but expected dtype "
                f"{self.dtype}."
            )
        parts = jnp.split(jnp.asarray(vector), ends[:-1])
        parts = [part.reshape(shape) for part, (shape, _) in zip(parts, self.types, strict=True)]
        if mixed:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex to real, where a leaf is real
                parts = [x.astype(dtype) for x, (_, dtype) in zip(parts, self.types, strict=True)]
        return self.tree.unflatten(parts)


_guard(globals())
