"""Vector quantisation: the closest entry of a code book."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.numpy.promote import promote_types

__all__ = ["vq"]
__dir__ = __all__.copy


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The closest entry of a code book for each observation.

    Args:
        obs: observations, [m, n], or numbers, [m].
        code_book: the entries, [k, n], or numbers, [k].
        check_finite: not used.

    Returns:
        The index of the closest entry for each observation, and the distance to it.

    Raises:
        ValueError: different ranks, other ranks than 1 and 2, or no entries.
        TypeError: observations and entries of different lengths, or anything that is not an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> vq(jnp.array([1.0, 4.0, 9.0]), jnp.array([0.0, 10.0]))
        (Array([0, 0, 1], dtype=int32), Array([1., 4., 1.], dtype=float32))
    """
    x, codes = promote_types("vq", obs, code_book, to=dtypes.to_inexact_dtype)
    if x.ndim != codes.ndim:
        raise ValueError(
            f"vq: obs and code_book must have the same rank, got shapes {x.shape} and "
            f"{codes.shape}."
        )
    if x.ndim not in (1, 2):
        raise ValueError(f"vq: obs must be a vector or a matrix, got shape {x.shape}.")
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    distances = linalg.norm(x[:, None, :] - codes[None, :, :], axis=-1)
    code = jnp.argmin(distances, axis=-1)
    return code, jnp.take_along_axis(distances, code[:, None], axis=-1)[:, 0]


_guard(globals())
