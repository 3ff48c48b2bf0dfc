"""Interpolation on grids: JAX's `jax.scipy.interpolate`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base.source_context import entry_class
from namoo.core.array import Array
from namoo.numpy.promote import arrays_of, promote_inexact

__all__ = ["RegularGridInterpolator"]
__dir__ = __all__.copy


def _check_method(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise ValueError(
            f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}."
        )
    return method


def _points(xi: Any, ndim: int) -> Array:
    """Points as an array [..., ndim]; a tuple has the coordinates along each axis."""
    if isinstance(xi, tuple) and len(xi) == 1:
        (xi,) = xi
    if isinstance(xi, tuple):
        parts = jnp.broadcast_arrays(*arrays_of("RegularGridInterpolator", *xi))
        return jnp.stack([part.astype(float) for part in parts], axis=-1)
    (points,) = arrays_of("RegularGridInterpolator", xi)
    return points.reshape(-1, ndim) if points.ndim == 1 else points


@tree_util.register_pytree_node_class
@entry_class
class RegularGridInterpolator:
    """Values between the points of a grid.

    Args:
        points: for each axis of the grid, its coordinates in ascending order.
        values: the values at the grid's points; more axes may follow those of the grid.
        method: 'linear' or 'nearest'.
        bounds_error: raise a ValueError for points outside of the grid; this does not work under
            `jit`.
        fill_value: the value outside of the grid; None extrapolates.

    Raises:
        ValueError: another method, more axes than `values` has, or a fill value of another kind.
        TypeError: anything that is not an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> grid = jnp.array([0.0, 1.0, 3.0])
        >>> interpolate = RegularGridInterpolator((grid,), jnp.array([0.0, 10.0, 20.0]))
        >>> interpolate(jnp.array([0.5, 2.0]))
        Array([ 5., 15.], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):
        self.method = _check_method(method)
        self.bounds_error = bounds_error
        (self.values,) = promote_inexact("RegularGridInterpolator", values)
        if len(points) > self.values.ndim:
            raise ValueError(
                f"RegularGridInterpolator: points are given for {len(points)} axes, but values has "
                f"{self.values.ndim}."
            )
        if fill_value is not None:
            (fill_value,) = arrays_of("RegularGridInterpolator", fill_value)
            if not jnp.can_cast(fill_value.dtype, self.values.dtype, casting="same_kind"):
                raise ValueError(
                    f"RegularGridInterpolator: fill_value of type {fill_value.dtype} does not fit "
                    f"values of type {self.values.dtype}."
                )
        self.fill_value = fill_value
        self.grid = tuple(arrays_of("RegularGridInterpolator", *points))

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at points.

        Args:
            xi: points of shape [..., number of axes], or a tuple of coordinates along each axis.
            method: 'linear' or 'nearest', instead of the interpolator's own.

        Raises:
            ValueError: another method, or points of another number of axes.
        """
        method = self.method if method is None else _check_method(method)
        ndim = len(self.grid)
        points = _points(xi, ndim)
        if points.shape[-1] != ndim:
            raise ValueError(
                f"RegularGridInterpolator: points have {points.shape[-1]} coordinates, but the "
                f"grid has {ndim} axes."
            )
        shape = points.shape[:-1]
        columns = points.reshape(-1, ndim).T
        cells = [_cell(x, grid) for x, grid in zip(columns, self.grid, strict=True)]
        outside = jnp.zeros(columns.shape[1], bool)
        for x, grid in zip(columns, self.grid, strict=True):
            outside = outside | (x < grid[0]) | (x > grid[-1])
        if self.bounds_error and jnp.any(outside):
            raise ValueError("RegularGridInterpolator: a point is outside of the grid.")
        out = self._linear(cells) if method == "linear" else self._nearest(cells)
        if self.fill_value is not None:
            outside = outside.reshape(-1, *(1,) * (out.ndim - 1))
            out = jnp.where(outside, self.fill_value, out)
        return out.reshape(*shape, *self.values.shape[ndim:])

    def _linear(self, cells: list[tuple[Array, Array]]) -> Array:
        """Each corner of a point's cell is weighted by its closeness."""
        extra = (1,) * (self.values.ndim - len(cells))
        total: Any = 0.0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight: Any = 1.0
            for (_, part), side in zip(cells, corner, strict=True):
                weight = weight * (part if side else 1 - part)
            indices = tuple(i + side for (i, _), side in zip(cells, corner, strict=True))
            total = total + self.values[indices] * weight.reshape(-1, *extra)
        return total

    def _nearest(self, cells: list[tuple[Array, Array]]) -> Array:
        return self.values[tuple(jnp.where(part <= 0.5, i, i + 1) for i, part in cells)]

    def tree_flatten(self):
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, static, children):
        # Without checks: leaves may be anything while a tree is flattened and unflattened.
        self = object.__new__(cls)
        self.grid, self.values, self.fill_value = children
        self.method, self.bounds_error = static
        return self


def _cell(x: Array, grid: Array) -> tuple[Array, Array]:
    """The cell of a grid axis that contains each coordinate, and the position in it, 0 to 1."""
    index = jnp.clip(jnp.searchsorted(grid, x) - 1, 0, grid.size - 2)
    start, stop = grid[index], grid[index + 1]
    return index, (x - start) / (stop - start)
