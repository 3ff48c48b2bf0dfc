"""Counting: how often integers occur, and how many values fall into bins."""

from __future__ import annotations

import math
from builtins import range as iterate
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.control.cond import cond
from namoo.core.array import Array
from namoo.dimensions.sizes import exceeds
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.creation import concrete, static_count
from namoo.numpy.promote import array_of, arrays_of, as_type, check_arraylike, promote_types
from namoo.numpy.same_type import const, is_kind
from namoo.numpy.searching import searchsorted
from namoo.numpy.selection import where
from namoo.numpy.spaces import linspace
from namoo.primitives import elementwise as lax
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import check_lengths, expand_dims, ones, reshape, zeros
from namoo.primitives.slicing import concatenate


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each non-negative integer occurs.

    Args:
        x: a vector of integers; negative ones count as 0.
        weights: what each of them adds, instead of 1.
        minlength: the least length of the result.
        length: length of the result, needed under `jit`; larger integers are left out.
        out_sharding: the sharding of the result; it has no effect on one device.

    Raises:
        TypeError: `x` does not hold integers.
        ValueError: `x` is not a vector, or `weights` has another shape.
        ConcretizationTypeError: under `jit` without `length`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bincount(jnp.array([1, 1, 3, 0]))
        Array([1, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, bincount, x, weights, minlength, length=length)
    x = array_of("bincount", x)
    if not is_kind(x, np.integer) and x.dtype != np.bool_:
        raise TypeError(f"bincount: x must hold integers, got dtype {x.dtype}.")
    if x.ndim != 1:
        raise ValueError(f"bincount: x must be a vector, got shape {x.shape}.")
    x = as_type(x, dtypes.to_numeric_dtype(x.dtype))
    minlength = static_count(minlength, "the 'minlength' argument of jnp.bincount")
    if length is None:
        largest = concrete(
            reductions.max(x, initial=0),
            "the largest element of jnp.bincount's x",
            "It decides the shape of the result. Pass length=n to jnp.bincount.",
        )
        length = max(int(largest) + 1 if x.size else 0, minlength)
    else:
        length = static_count(length, "the 'length' argument of jnp.bincount")
    check_lengths("bincount", (length,))
    if weights is None:
        weights = ones(x.aval.update(dtype=dtypes.default_int_dtype(), weak_type=False))
    weights = array_of("bincount", weights)
    if weights.shape != x.shape:
        raise ValueError(
            f"bincount: weights must have the shape of x, got {weights.shape} and {x.shape}."
        )
    if weights.dtype == np.bool_:
        raise TypeError("bincount: weights must be numbers, got booleans; convert them first.")
    start = zeros(weights.aval.update(shape=(length,), weak_type=False))
    return start.at[lax.max(x, lax.full_like(x, 0))].add(weights, mode="drop")


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of the bins of a histogram.

    Args:
        a: the values.
        bins: how many bins of equal width, or a vector of edges, which is returned.
        range: the first and the last edge; the extreme values by default.
        weights: has no influence.

    Raises:
        ValueError: no values and no `range`, or a `range` that is not a pair.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.histogram_bin_edges(jnp.array([0.0, 3.0, 4.0]), bins=2)
        Array([0., 2., 4.], dtype=float32)
    """
    return _edges(a, bins, range)[0]


def _edges(a: Any, bins: Any, range: Any) -> tuple[Array, tuple[Array, Array] | None]:
    """The edges of bins; and the first and the last one, if the bins have equal width."""
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram: bins={bins!r} is a rule of NumPy's, whose number of bins depends on the "
            "values; pass a number, or the edges that np.histogram_bin_edges returns."
        )
    check_arraylike("histogram_bin_edges", a, bins)
    x, edges = arrays_of("histogram_bin_edges", a, bins)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    if edges.ndim == 1:
        return as_type(edges, dtype), None
    count = static_count(bins, "the 'bins' argument of a histogram")
    if range is None:
        low, high = reductions.min(x).astype(dtype), reductions.max(x).astype(dtype)
    else:
        ends = [array_of("histogram_bin_edges", end) for end in range]
        if len(ends) != 2 or any(end.ndim for end in ends):
            raise ValueError(f"histogram: range must be None or a pair of numbers, got {range!r}.")
        low, high = (end.astype(dtype) for end in ends)
    # Values that are all equal get a bin around them.
    half = where(low == high, 0.5, 0.0).astype(dtype)
    low, high = low - half, high + half
    return linspace(low, high, count + 1, dtype=dtype), (low, high)


def _bin_numbers(x: Array, edges: Array, ends: tuple[Array, Array] | None) -> Array:
    """The bin of each value, counted from 1; the last edge belongs to the last bin."""
    count = edges.size - 1

    def searched():
        return as_type(searchsorted(edges, x, side="right"), np.dtype(np.int32))

    def computed():
        # As `linspace` computes them, so that values on an edge are in the same bin.
        def edge(i):
            part = i / const(i, count)
            return where(i == count, high, low * (1 - part) + high * part)

        place = (x - low) * (count / (high - low))
        # Rounding may lead to a neighbouring bin, and the first and last one get all outside.
        near = lax.min(where(place >= 0, lax.floor(place), 0), const(x, count - 1))
        after = (edge(near) <= x).astype(np.int32) + (edge(near + 1) <= x).astype(np.int32)
        return near.astype(np.int32) + after

    if ends is None or not exceeds(x.size, _MANY_VALUES - 1) or not 1 < count < 2**20:
        place = searched()
    else:
        low, high = ends
        # Where edges are so near that they are rounded, a bin is found only by comparisons.
        apart = (high - low) / count > 16 * dtypes.finfo(x.dtype).eps * lax.max(abs(low), abs(high))
        place = cond(apart, computed, searched)
    return where(x == edges[-1], count, place)


_MANY_VALUES = 1024
"""From so many values on, bins of equal width are computed instead of searched."""


def histogram(
    a: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many values fall into each bin.

    Bins contain their lower edge, and the last one its upper edge too.

    Args:
        a: the values, flattened.
        bins: how many bins of equal width, or a vector of ascending edges.
        range: the first and the last edge; the extreme values by default.
        weights: what each value adds, instead of 1.
        density: return a probability density, whose integral is 1.

    Returns:
        The counts, in a floating type, and the edges.

    Raises:
        ValueError: `weights` has another shape; or as for `histogram_bin_edges`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.histogram(jnp.array([1.0, 2.0, 2.5, 4.0]), bins=3)
        (Array([1., 2., 1.], dtype=float32), Array([1., 2., 3., 4.], dtype=float32))
    """
    if weights is None:
        check_arraylike("histogram", a, bins)
        (x,) = promote_types("histogram", a, to=dtypes.to_inexact_dtype)
        w = ones(x.aval.strong())
    else:
        check_arraylike("histogram", a, bins, weights)
        if np.shape(a) != np.shape(weights):
            raise ValueError(
                f"histogram: weights must have the shape of a, got {np.shape(weights)} and "
                f"{np.shape(a)}."
            )
        x, w = promote_types("histogram", a, weights, to=dtypes.to_inexact_dtype)
    edges, ends = _edges(x, bins, range)
    bin_numbers = reshape(_bin_numbers(x, edges, ends), (x.size,))
    counts = zeros(w.aval.update(shape=(edges.size + 1,), weak_type=False))
    counts = counts.at[bin_numbers].add(reshape(w, (x.size,)))[1 : edges.size]
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / reductions.sum(counts)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of a plane fall into each rectangle of a grid.

    Args:
        x, y: vectors of coordinates.
        bins: a number of bins or a vector of edges for both axes, or a pair of those.
        range: a pair of pairs of first and last edges; the extreme values by default.
        weights: what each point adds, instead of 1.
        density: return a probability density, whose integral is 1.

    Returns:
        The counts [x bin, y bin], the edges along x, and the edges along y.

    Raises:
        ValueError: `x` and `y` are not vectors.
        TypeError: `x` and `y` have different lengths.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    x, y = arrays_of("histogram2d", x, y)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"histogram2d: x and y must be vectors, got {x.shape} and {y.shape}.")
    if x.shape != y.shape:
        raise TypeError(f"histogram2d: x and y have different lengths, {x.size} and {y.size}.")
    if not _is_one(bins) and len(bins) not in (1, 2):
        bins = (bins, bins)
    x, y = promote_types("histogram2d", x, y)
    points = concatenate([expand_dims(x, (1,)), expand_dims(y, (1,))], 1)
    counts, (x_edges, y_edges) = histogramdd(points, bins, range, weights, density)
    return counts, x_edges, y_edges


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points fall into each cell of a grid.

    Args:
        sample: the points, an array of shape [points, coordinates].
        bins: a number of bins, or for each coordinate a number of bins or a vector of edges.
        range: for each coordinate a pair of first and last edge, or None for the extreme values.
        weights: what each point adds, instead of 1.
        density: return a probability density, whose integral is 1.

    Returns:
        The counts, with one axis for each coordinate, and a list of edges.

    Raises:
        ValueError: `sample` is not a matrix, or bins, ranges or weights are too many or too few.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    check_arraylike("histogramdd", sample)
    given = [sample] if weights is None else [sample, weights]
    points, *given = promote_types("histogramdd", *given, to=dtypes.to_inexact_dtype)
    weights = given[0] if given else None
    if points.ndim != 2:
        raise ValueError(f"histogramdd: sample must be [points, coordinates], got {points.shape}.")
    n, dims = points.shape
    if weights is not None and np.shape(weights) != (n,):
        raise ValueError(
            f"histogramdd: there must be one weight for each of {n} points, got shape "
            f"{np.shape(weights)}."
        )
    bins = [bins] * dims if _is_one(bins) else bins
    if len(bins) != dims:
        raise ValueError(f"histogramdd: got bins for {len(bins)} of {dims} coordinates.")
    ranges = [None] * dims if range is None else range
    if len(ranges) != dims:
        raise ValueError(
            f"histogramdd: range must have a pair or None for each of {dims} coordinates, got "
            f"{range!r}."
        )
    edges = []
    cells = zeros(points.aval.update(shape=(n,), dtype=np.dtype(np.int32), weak_type=False))
    inside = cells == 0
    for i, (some, ends) in enumerate(zip(bins, ranges, strict=True)):
        column = points[:, i]
        both = _edges(column, some, ends)
        edges.append(both[0])
        numbers = _bin_numbers(column, *both)
        count = edges[-1].size - 1
        inside = inside & (numbers >= 1) & (numbers <= count)
        cells = cells * count + (numbers - 1)
    shape = tuple(edge.size - 1 for edge in edges)
    total = math.prod(shape)
    # Points outside the grid are counted in a cell beyond the last, which is dropped.
    counts = reshape(bincount(where(inside, cells, total), weights, length=total), shape)
    if density:
        counts = counts.astype(points.dtype) / reductions.sum(counts)
        for i, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / expand_dims(width, [j for j in iterate(dims) if j != i])
    return counts, edges


def _is_one(bins: Any) -> bool:
    """Whether `bins` is one number for all coordinates."""
    return not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0


attach_shortcuts(globals())
