"""Values of an array between its elements: what JAX has as `jax.scipy.ndimage`."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo.core.array import Array

__all__ = ["map_coordinates"]


def _mirror(index: Array, size: int) -> Array:
    """Indices folded back at the centres of the first and last elements: … 2 1 | 0 1 2 …"""
    last = size - 1
    return jnp.abs((index + last) % max(2 * last, 1) - last)


def _reflect(index: Array, size: int) -> Array:
    """Indices folded back at the outer edges of the elements: … 1 0 | 0 1 2 …"""
    return (_mirror(2 * index + 1, 2 * size + 1) - 1) // 2


_FIXES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror,
    "reflect": _reflect,
}
"""What each mode makes of indices outside of the array."""


def _is_integer(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.integer)


def _nodes(coordinate: Array, order: int) -> list[tuple[Array, Any]]:
    """The neighbours of coordinates along one axis: their indices, and their weights."""
    if order == 0:
        nearest = coordinate if _is_integer(coordinate) else lax.round(coordinate)
        return [(nearest.astype(np.int32), np.ones((), coordinate.dtype))]
    lower = jnp.floor(coordinate)
    above = coordinate - lower
    index = lower.astype(np.int32)
    return [(index, 1 - above), (index + 1, above)]


def map_coordinates(
    input: Any,
    coordinates: Sequence[Any] | Any,
    order: int,
    mode: str = "constant",
    cval: Any = 0.0,
) -> Array:
    """The values of an array at coordinates between its elements.

    Args:
        input: an array of rank n.
        coordinates: n arrays, the coordinates along each axis, in units of elements; they
            broadcast.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: what lies outside of the array: 'constant' for `cval`, 'nearest' for its edge, 'wrap'
            for copies, 'mirror' and 'reflect' for mirror images about the centres or the edges of
            the outermost elements.
        cval: the value outside, for 'constant'.

    Returns:
        An array of the shape of the coordinates, and of the type of `input`.

    Raises:
        ValueError: another number of coordinates than `input` has axes.
        NotImplementedError: another order or mode.

    Example:
        >>> import namoo.numpy as jnp
        >>> map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.2])], order=1)
        Array([ 5., 12.], dtype=float32)
    """
    x = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    outside = jnp.asarray(cval, x.dtype)
    if len(places) != x.ndim:
        raise ValueError(
            f"map_coordinates: there must be coordinates for each of the {x.ndim} axes of input, "
            f"got {len(places)}."
        )
    if mode not in _FIXES:
        raise NotImplementedError(
            f"map_coordinates: mode must be one of {tuple(_FIXES)}, got {mode!r}."
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"map_coordinates: order must be 0 (nearest) or 1 (linear), got {order!r}."
        )
    total: Any = None
    # Each corner of the cell around a point contributes, by the product of its weights.
    for corner in itertools.product(*(_nodes(c, order) for c in places)):
        indices = tuple(
            _FIXES[mode](index, size) for (index, _), size in zip(corner, x.shape, strict=True)
        )
        value = x[indices]
        if mode == "constant":
            inside = (
                (index >= 0) & (index < size)
                for (index, _), size in zip(corner, x.shape, strict=True)
            )
            value = jnp.where(functools.reduce(operator.and_, inside, True), value, outside)
        weights = [weight for _, weight in corner]
        value = functools.reduce(operator.mul, weights) * value if weights else value
        total = value if total is None else total + value
    if _is_integer(x) and not _is_integer(total):
        total = lax.round(total)
    return total.astype(x.dtype)
