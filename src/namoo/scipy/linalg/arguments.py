"""Arguments of the functions of linear algebra."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy.promote import promote_types


def inexact(name: str, *args: Any) -> list[Array]:
    """Arguments, nested lists among them, as arrays of their common floating or complex type."""
    arrays = map(jnp.asarray, args)
    return promote_types(f"scipy.linalg.{name}", *arrays, to=dtypes.to_inexact_dtype)


def fitting(name: str, a: Array, b: Array) -> tuple[Array, Array, bool]:
    """The two sides of linear systems, as matrices with the same batch axes.

    Args:
        name: the public function, for messages.
        a: matrices of shape [..., n, n].
        b: a vector [n], or matrices [..., n, k].

    Returns:
        `a`, `b`, and whether `b` holds vectors: then k is 1.

    Raises:
        ValueError: the shapes do not fit.
    """
    is_vector = b.ndim == 1
    if not is_vector and a.ndim == b.ndim + 1 and b.ndim and a.shape[-1] == b.shape[-1]:
        warnings.warn(
            f"scipy.linalg.{name}: b of shape {b.shape} is taken as a stack of vectors, which is "
            "deprecated: stacks of matrices are meant in general. Add an axis, b[..., None], and "
            "take it from the result with [..., 0].",
            FutureWarning,
            stacklevel=3,
        )
        is_vector = True
    rows = b.shape[-1 if is_vector else -2] if b.ndim else None
    if a.ndim < 2 or not a.shape[-2] == a.shape[-1] == rows:
        raise ValueError(
            f"scipy.linalg.{name}: shapes {a.shape} and {b.shape} do not fit: the matrices are "
            "[..., n, n], and b is [n] or [..., n, k]."
        )
    if is_vector:
        b = b[..., None]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        jnp.broadcast_to(a, (*batch, *a.shape[-2:])),
        jnp.broadcast_to(b, (*batch, *b.shape[-2:])),
        is_vector,
    )


def on_stacks(fun: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """A function of single matrices, mapped over the axes before the last two."""
    mapped = jnp.vectorize(fun, signature=signature)

    def call(*arrays: Array) -> Any:
        return fun(*arrays) if all(x.ndim == 2 for x in arrays) else mapped(*arrays)

    return call
