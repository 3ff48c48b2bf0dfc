"""Trees of arrays as one long vector, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import _dtypes, tree_util
from namoo import numpy as jnp
from namoo.core.avals import aval_of


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Flatten a tree of arrays into a vector.

    Args:
      pytree: a tree of arrays and numbers.

    Returns:
      the vector, of the leaves' common dtype, and the function that turns such a vector back into
      a tree with the leaves' own shapes and dtypes.

    >>> import namoo.numpy as jnp
    >>> vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.zeros((2, 2))})
    >>> vector
    Array([1., 0., 0., 0., 0.], dtype=float32)
    >>> unravel(vector)["b"].shape
    (2, 2)
    """
    leaves, tree = tree_util.tree_flatten(pytree)
    if not leaves:
        empty = jnp.zeros(0, jnp.float32)
        return empty, lambda vector: tree.unflatten([])
    avals = [aval_of(x) for x in leaves]
    dtype = _dtypes.result_type(*leaves)
    ends = np.cumsum([a.size for a in avals])
    total = int(ends[-1])
    vector = jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(dtype) for x in leaves])

    def unravel(vector: Any) -> Any:
        found = aval_of(vector)
        if found.shape != (total,):
            raise ValueError(
                f"unravel function given array of shape {found.shape}, but expected ({total},)."
            )
        if found.dtype != dtype:
            raise TypeError(
                f"unravel function given array of dtype {found.dtype}, but expected dtype {dtype}."
            )
        parts = jnp.split(jnp.asarray(vector), ends[:-1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex to real, where a leaf is real
            return tree.unflatten(
                [
                    part.reshape(a.shape).astype(a.dtype)
                    for part, a in zip(parts, avals, strict=True)
                ]
            )

    return vector, unravel
