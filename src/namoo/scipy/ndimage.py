"""Values of an array between its elements: JAX's `jax.scipy.ndimage`."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo._base.caches import cached
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array

__all__ = ["map_coordinates"]
__dir__ = __all__.copy


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
"""How each mode maps indices outside of the array."""


def _is_integer(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.integer)


def _nodes(coordinate: Array, order: int) -> list[tuple[Array, Any]]:
    """The elements around coordinates along one axis: their indices, and their weights.

    The weights are the values of the B-spline of that order about each element, by de Boor's
    recursion; those of order 1 are linear in the distance.
    """
    if order == 0:
        nearest = coordinate if _is_integer(coordinate) else lax.round(coordinate)
        return [(nearest.astype(np.int32), np.ones((), coordinate.dtype))]
    place = coordinate + (order + 1) / 2
    knot = jnp.floor(place)
    part = place - knot
    weights = [1 - part, part]
    for d in range(2, order + 1):
        rising = [(part + (d - j)) / d * weights[j - 1] for j in range(1, d + 1)]
        falling = [((j + 1) - part) / d * weights[j] for j in range(d)]
        inner = [a + b for a, b in zip(rising[:-1], falling[1:], strict=True)]
        weights = [falling[0], *inner, rising[-1]]
    first = knot.astype(np.int32) - order
    return [(first + j, weight) for j, weight in enumerate(weights)]


_FILTERS = {"mirror": "mirror", "reflect": "reflect", "wrap": "grid-wrap"}
"""SciPy's names of the modes that continue an array by itself."""
_MARGIN = 12
"""How many elements beyond the edge of an array affect a spline inside."""


@cached("scipy.ndimage spline filters", bound=64, keyed_by="size, order, mode")
def _filter(size: int, order: int, mode: str) -> np.ndarray:
    """The matrix from values to the coefficients of the spline through them."""
    from scipy.ndimage import spline_filter1d

    if size == 1:
        return np.ones((1, 1))
    return spline_filter1d(np.eye(size), order, axis=0, mode=_FILTERS[mode])


def _spline(
    x: Array, places: list[Array], order: int, mode: str, outside: Array
) -> tuple[Array, list[Array], str]:
    """Coefficients of a spline instead of values, their coordinates, and the boundary mode."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        x = x.astype(float)
    if mode not in _FILTERS:
        # Pad explicitly, as far as the spline reaches.
        options = {"constant_values": outside} if mode == "constant" else {}
        x = jnp.pad(x, _MARGIN, mode="constant" if mode == "constant" else "edge", **options)
        places = [c + _MARGIN for c in places]
        if mode == "nearest":
            places = [jnp.clip(c, 0, n - 1) for c, n in zip(places, x.shape, strict=True)]
        mode = "mirror"
    for axis, size in enumerate(x.shape):
        matrix = jnp.asarray(_filter(size, order, mode), x.dtype)
        x = jnp.moveaxis(jnp.tensordot(matrix, x, (1, axis), precision="highest"), 0, axis)
    return x, places, mode


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
        order: 0 for the nearest element, 1 for linear interpolation, 2 to 5 for splines of that
            degree through all elements.
        mode: the values outside of the array: 'constant' for `cval`, 'nearest' for its edge, 'wrap'
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
    if order not in range(6):
        raise NotImplementedError(
            f"map_coordinates: order must be 0 (nearest), 1 (linear) or up to 5, got {order!r}."
        )
    dtype, is_inside = x.dtype, None
    if order > 1:
        x, places, continued = _spline(x, places, order, mode, outside)
        if mode == "constant":
            inside = ((c >= 0) & (c <= n - 1) for c, n in zip(places, x.shape, strict=True))
            is_inside = functools.reduce(operator.and_, inside, True)
        mode = continued
    total = _sum_of_corners(x, places, order, mode, outside)
    if is_inside is not None:
        total = jnp.where(is_inside, total, outside)
    if jnp.issubdtype(dtype, jnp.integer) and not _is_integer(total):
        total = lax.round(total)
    return total.astype(dtype)


def _sum_of_corners(x: Array, places: list[Array], order: int, mode: str, outside: Array) -> Array:
    """Each element around a point contributes, by the product of its weights along all axes."""
    total: Any = None
    for corner in itertools.product(*(_nodes(c, order) for c in places)):
        indices = tuple(
            _FIXES[mode](index, size) for (index, _), size in zip(corner, x.shape, strict=True)
        )
        value = x.at[indices].get(mode="clip")
        if mode == "constant":
            inside = (
                (index >= 0) & (index < size)
                for (index, _), size in zip(corner, x.shape, strict=True)
            )
            value = jnp.where(functools.reduce(operator.and_, inside, True), value, outside)
        weights = [weight for _, weight in corner]
        value = functools.reduce(operator.mul, weights) * value if weights else value
        total = value if total is None else total + value
    return total


_guard(globals())
