"""Trends of signals, and their removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy.promote import promote_types


def _basis(length: int) -> np.ndarray:
    """Orthonormal rows: a constant, and a line whose mean is zero (none for a single point)."""
    place = np.arange(length) - (length - 1) / 2
    rows = [np.ones(length), place][: 1 + (length > 1)]
    return np.stack([row / np.linalg.norm(row) for row in rows])


def detrend(
    data: Any,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: Any = None,
) -> Array:
    """Signals without their mean, or without the line that fits them best.

    Args:
        data: an array.
        axis: the axis of time.
        type: 'linear' or 'constant'.
        bp: where one line ends and the next one begins, for 'linear'.
        overwrite_data: not used.

    Raises:
        ValueError: another type, or break points outside of the data.
        IndexError: an axis that does not exist.

    Example:
        >>> import namoo.numpy as jnp
        >>> detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
        Array([-2., -1.,  3.], dtype=float32)
    """
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}.")
    (x,) = promote_types("detrend", jnp.asarray(data), to=dtypes.to_inexact_dtype)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"detrend: axis {axis} is out of range for an array of rank {x.ndim}.")
    if type == "constant":
        return x - x.mean(axis, keepdims=True)
    length = x.shape[axis]
    ends = np.unique([0, *np.atleast_1d(bp), length])
    if ends[0] < 0 or ends[-1] > length:
        raise ValueError(f"detrend: break points {bp} must be between 0 and {length}.")
    x = jnp.moveaxis(x, axis, -1)
    parts = []
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        part = x[..., start:stop]
        basis = jnp.asarray(_basis(stop - start), x.dtype)
        parts.append(part - jnp.matmul(jnp.matmul(part, basis.T), basis))
    return jnp.moveaxis(jnp.concatenate(parts, -1) if parts else x, -1, axis)
