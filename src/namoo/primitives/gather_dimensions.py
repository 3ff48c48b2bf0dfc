"""Shared by `gather` and `scatter`: dimension numbers, modes, checks, and the plan.

Both use one *view* of the array: its leading axes are the positions where a window may start,
and its trailing axes are the window.  Reading is then one fancy index into the view, and writing
is one assignment, or one `ufunc.at`, through it.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.config import config
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import ShapedArray

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"]

Dims = tuple[int, ...]


class GatherDimensionNumbers(NamedTuple):
    """How the axes of `gather`'s operands and result correspond.

    The last axis of the indices holds one start for each axis in `start_index_map`.

    Attributes:
        offset_dims: the result's axes that run inside a window, in increasing order.
        collapsed_slice_dims: operand axes of window length 1 that the result does not have.
        start_index_map: for each component of an index, the operand axis it is a start on.
        operand_batching_dims: operand axes paired with axes of the indices.
        start_indices_batching_dims: those axes of the indices, in the same order.
    """

    offset_dims: Dims
    collapsed_slice_dims: Dims
    start_index_map: Dims
    operand_batching_dims: Dims = ()
    start_indices_batching_dims: Dims = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of `scatter`'s operands correspond.

    Attributes:
        update_window_dims: the updates' axes that run inside a window, in increasing order.
        inserted_window_dims: operand axes of window length 1 that the updates do not have.
        scatter_dims_to_operand_dims: for each component of an index, the operand axis it indexes.
        operand_batching_dims: operand axes paired with axes of the indices.
        scatter_indices_batching_dims: those axes of the indices, in the same order.
    """

    update_window_dims: Dims
    inserted_window_dims: Dims
    scatter_dims_to_operand_dims: Dims
    operand_batching_dims: Dims = ()
    scatter_indices_batching_dims: Dims = ()


class GatherScatterMode(enum.Enum):
    """The treatment of windows that are not entirely inside the array.

    * `CLIP`: they are moved inside.
    * `FILL_OR_DROP`: `gather` fills them with a value, `scatter` skips them.
    * `PROMISE_IN_BOUNDS`: there are none; the result is unspecified if there are.
    * `ONE_HOT`: as a product with a one-hot matrix: `gather` reads zeros, `scatter` drops.

    Example:
        >>> GatherScatterMode.from_any("clip")
        GatherScatterMode.CLIP
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of that name: 'clip', 'fill', 'drop', 'promise_in_bounds' or 'one_hot'.

        None fills and drops; if `config.strict` checks promises, it is a promise.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None and config.strict:
            return GatherScatterMode.PROMISE_IN_BOUNDS
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            names = ", ".join(repr(name) for name in _MODES if name)
            raise ValueError(
                f"Unknown gather mode {mode!r}: it is one of {names}, or a GatherScatterMode."
            ) from None

    def __repr__(self) -> str:
        return str(self)


_MODES: dict[str | None, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}

CLIP, FILL_OR_DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS, ONE_HOT = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.ONE_HOT


class Plan:
    """The part of a gather or scatter that the shapes determine."""

    def __init__(
        self, shape: Dims, dnums: GatherDimensionNumbers, slice_sizes: Dims, batch_ndim: int
    ):
        starts, batching = dnums.start_index_map, dnums.operand_batching_dims
        hidden = {*dnums.collapsed_slice_dims, *batching}
        self.window_axes = [d for d in range(len(shape)) if d not in hidden]
        self.place_axes = [*starts, *batching]
        # An axis on which windows cannot start has one position.
        self.window = tuple(slice_sizes[d] for d in self.window_axes)
        self.places = tuple(shape[d] - slice_sizes[d] + 1 for d in self.place_axes)
        self.last = np.array([shape[d] - slice_sizes[d] for d in starts], np.intp)
        self.batching = dnums.start_indices_batching_dims
        self.is_transpose = (
            sorted(self.place_axes + self.window_axes) == list(range(len(shape)))
            and all(slice_sizes[d] == shape[d] for d in self.window_axes)
            and all(slice_sizes[d] == 1 for d in self.place_axes)
        )
        offset = dnums.offset_dims
        ndim = batch_ndim + len(offset)
        batch_dims = [d for d in range(ndim) if d not in offset]
        order = [*batch_dims, *offset]
        self.to_front = None if order == list(range(ndim)) else order
        self.to_result = None if self.to_front is None else np.argsort(order)
        # Whole rows along one axis: the case for `np.take`.
        self.take_axis = None
        if self.is_transpose and len(starts) == 1 and not batching:
            axis = starts[0]
            if offset == (*range(axis), *range(axis + batch_ndim, ndim)):
                self.take_axis = axis

    def view(self, x: np.ndarray) -> np.ndarray:
        """The array as windows: first the axes of positions, then those of the window."""
        if self.is_transpose:
            return x.transpose(self.place_axes + self.window_axes)
        strides = [x.strides[d] for d in self.place_axes + self.window_axes]
        return as_strided(x, self.places + self.window, strides)

    def index(self, starts: np.ndarray) -> list[np.ndarray]:
        """One array for each axis of positions, from starts that are in bounds."""
        batch_shape = starts.shape[:-1]
        index = [starts[..., k] for k in range(starts.shape[-1])]
        for d in self.batching:
            line = [1] * len(batch_shape)
            line[d] = batch_shape[d]
            index.append(np.arange(batch_shape[d]).reshape(line))
        if index:
            index[0] = np.broadcast_to(index[0], batch_shape)
        return index

    def outside(self, starts: np.ndarray) -> np.ndarray:
        """Which windows are not entirely inside."""
        return np.asarray(((starts < 0) | (starts > self.last)).any(axis=-1))


@cached(
    "primitives.gather plans",
    bound=4096,
    keyed_by="shape, dimension numbers, slice sizes, batch rank",
)
def plan_of(shape, dnums, slice_sizes, batch_ndim) -> Plan:
    return Plan(shape, dnums, slice_sizes, batch_ndim)


def as_starts(indices: np.ndarray) -> np.ndarray:
    if indices.dtype == np.uint64:  # Values that do not fit are out of bounds in any case.
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.intp, copy=False)


def fill(fill_value: Any, dtype: np.dtype) -> Any:
    """The value of elements out of bounds: the given one, or the dtype's default."""
    if dtype.names is not None:  # Keys are words: no number represents a missing key.
        return np.full((), np.iinfo(np.uint32).max, np.uint32).repeat(len(dtype.names)).view(dtype)
    return np.asarray(default_fill(dtype) if fill_value is None else fill_value).astype(dtype)


def default_fill(dtype: Any) -> Any:
    """The default of missing values: NaN, the most negative integer, the largest unsigned, True.

    Example:
        >>> default_fill(np.dtype("int8")), default_fill(np.dtype("float32"))
        (-128, nan)
    """
    if dtypes.issubdtype(dtype, np.inexact):
        return float("nan")
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    return True if dtype == np.bool_ else None


def check_indices(name: str, indices: ShapedArray) -> None:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{name} indices must have an integer type, got {indices.str_short()}.")
    if not indices.shape:
        raise TypeError(
            f"{name} indices must have at least one axis, whose last one holds the components of "
            f"each index; got {indices.str_short()}."
        )


def check_dims(op: str, what: str, dims: Dims, ndim: int, increasing: bool = True) -> None:
    """Raise unless axes are increasing (if asked), distinct and in range."""
    if increasing and list(dims) != sorted(dims):
        raise TypeError(f"{what} in {op} op must be sorted; got {dims}.")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {op} op must not repeat; got {dims}.")
    if not all(0 <= d < ndim for d in dims):
        raise TypeError(f"Invalid {what} set in {op} op; valid range is [0, {ndim}), got {dims}.")


_PARTS = {
    "gather": ("collapsed_slice_dims", "start_index_map", "start_indices_batching_dims"),
    "scatter": (
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "scatter_indices_batching_dims",
    ),
}
"""Names of the operand's axes outside windows, of those with indices, and of the indices' axes
that belong to batching axes of the operand."""


def check_batching(op: str, shape: Dims, indices: ShapedArray, dnums: Any) -> None:
    """Raise unless the batching axes of operand and indices match."""
    outside, start_map, batching = (getattr(dnums, name) for name in _PARTS[op])
    outside_name, map_name, batching_name = _PARTS[op]
    x_dims, title, last = dnums.operand_batching_dims, op.capitalize(), len(indices.shape) - 1
    check_dims(op, outside_name, outside, len(shape))
    check_dims(op, "operand_batching_dims", x_dims, len(shape))
    for name, dims in ((outside_name, outside), (map_name, start_map)):
        if set(dims) & set(x_dims):
            raise TypeError(
                f"{name} and operand_batching_dims in {op} op must be disjoint; got {dims} and "
                f"{x_dims}."
            )
    check_dims(op, batching_name, batching, last + 1, increasing=False)
    if last in batching:
        raise TypeError(
            f"{title} op cannot have the index vector dimension as a batching dimension; got "
            f"{batching_name}={batching} for indices of shape {indices.shape}."
        )
    if len(x_dims) != len(batching):
        raise TypeError(
            f"{title} op requires equal numbers of operand_batching_dims and {batching_name}; got "
            f"{x_dims} and {batching}."
        )
    lengths = tuple(shape[d] for d in x_dims), tuple(indices.shape[d] for d in batching)
    if lengths[0] != lengths[1]:
        raise TypeError(
            f"{title} op requires operand batching dimensions and indices batching dimensions to "
            f"have the same shape; got {lengths[0]} and {lengths[1]}."
        )
    if indices.shape[-1] != len(start_map):
        raise TypeError(
            f"{title} op has {len(start_map)} elements in {map_name} and the bound of dimension "
            f"index_vector_dim={last} of indices is {indices.shape[-1]}. These two numbers must be "
            "equal."
        )
    if not all(0 <= d < len(shape) for d in start_map):
        raise TypeError(
            f"Invalid {map_name} mapping in {op} op; valid range is [0, {len(shape)}), got "
            f"{start_map}."
        )
    check_dims(op, map_name, start_map, len(shape), increasing=False)


def check_gather(
    shape: Dims, indices: ShapedArray, dnums: GatherDimensionNumbers, slice_sizes: Dims
) -> None:
    check_indices("gather", indices)
    ndim, result_ndim = len(shape), len(indices.shape) - 1 + len(dnums.offset_dims)
    for i, d in enumerate(dnums.offset_dims):
        if not 0 <= d < result_ndim:
            raise TypeError(
                f"Offset dimension {i} in gather op is out of bounds; got {d}, but the result has "
                f"{result_ndim} axes."
            )
    check_dims("gather", "offset_dims", dnums.offset_dims, result_ndim)
    check_batching("gather", shape, indices, dnums)
    if len(slice_sizes) != ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got "
            f"slice_sizes={slice_sizes} for an operand of shape {shape}."
        )
    if ndim != sum(
        map(len, (dnums.offset_dims, dnums.collapsed_slice_dims, dnums.operand_batching_dims))
    ):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got {dnums} for an operand of shape {shape}."
        )
    for d, (size, n) in enumerate(zip(slice_sizes, shape, strict=True)):
        if not 0 <= size <= n:
            raise TypeError(
                f"Slice size at index {d} in gather op is out of range: it must be within [0, {n}]"
                f", got {size}."
            )
    for what, dims in (
        ("collapse slice dims with bound 1", dnums.collapsed_slice_dims),
        ("have operand batching dims with bound 0/1", dnums.operand_batching_dims),
    ):
        for position, d in enumerate(dims):
            if slice_sizes[d] > 1:
                raise TypeError(
                    f"Gather op can only {what}, but bound is {slice_sizes[d]} for index {d} at "
                    f"position {position}."
                )


def check_scatter(
    name: str,
    x: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    dnums: ScatterDimensionNumbers,
) -> None:
    check_indices(name, indices)
    if x.dtype != updates.dtype:
        raise TypeError(
            f"lax.{name} requires operand and updates of the same dtype, got {x.dtype} and "
            f"{updates.dtype}."
        )
    ndim, update_ndim = len(x.shape), len(indices.shape) - 1 + len(dnums.update_window_dims)
    if len(updates.shape) != update_ndim:
        raise TypeError(
            f"Updates tensor must be of rank {update_ndim}; got {len(updates.shape)}: it has "
            f"shape {updates.shape}, and the indices have shape {indices.shape}."
        )
    check_dims("scatter", "update_window_dims", dnums.update_window_dims, update_ndim)
    check_batching("scatter", x.shape, indices, dnums)
    hidden = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    size = len(dnums.update_window_dims) + len(hidden)
    if ndim != size:
        raise TypeError(
            f"Scatter op has window of size {size}; doesn't match operand of rank {ndim}. "
            "Every axis of the operand must be a window axis or be inserted or batching; got "
            f"{dnums} for an operand of shape {x.shape}."
        )
    window_axes = [d for d in range(ndim) if d not in hidden]
    for d, e in zip(window_axes, dnums.update_window_dims, strict=True):
        if updates.shape[e] > x.shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed those of the "
                f"operand in scatter: axis {e} of the updates has length {updates.shape[e]}, "
                f"axis {d} of the operand {x.shape[d]}."
            )
    rest = [n for e, n in enumerate(updates.shape) if e not in dnums.update_window_dims]
    if tuple(rest) != indices.shape[:-1]:
        raise TypeError(
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
            f"corresponding dimensions of scatter indices: {tuple(rest)} and "
            f"{indices.shape[:-1]}; got updates of shape {updates.shape}, indices of "
            f"shape {indices.shape} and {dnums}."
        )


# The fields of the two kinds of dimension numbers in StableHLO, in our order.
_FIELDS = {
    "gather": (
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "operand_batching_dims",
        "start_indices_batching_dims",
    ),
    "scatter": (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    ),
}
# The parser requires another order of the fields.
_ORDER = (0, 1, 3, 4, 2)


def in_xla(hlo: Any, numbers: Any, index_axis: int) -> str:
    """Dimension numbers as an attribute."""
    name = "gather" if isinstance(numbers, GatherDimensionNumbers) else "scatter"
    fields = {_FIELDS[name][i]: numbers[i] for i in _ORDER}
    return hlo.record(name, **fields, index_vector_dim=index_axis)


def _limits(hlo: Any, indices: Any, last: list[int]) -> tuple[Any, Any]:
    low, high = (
        hlo.broadcast(hlo.constant(np.array(bound, indices.dtype)), indices.shape)
        for bound in (0, last)
    )
    return low, high


def inside_in_xla(hlo: Any, indices: Any, last: list[int]) -> Any:
    """Whether each index is between 0 and the last start of a window, along every axis."""
    low, high = _limits(hlo, indices, last)
    above, below = hlo.compare(indices, low, "GE"), hlo.compare(indices, high, "LE")
    return hlo.reduce("and", hlo.combine("and", above, below), True, [indices.ndim - 1])


def clipped_in_xla(hlo: Any, indices: Any, last: list[int]) -> Any:
    """Indices moved to the nearest valid start."""
    low, high = _limits(hlo, indices, last)
    return hlo.combine("minimum", hlo.combine("maximum", indices, low), high)


def gathered_entries(x: Any, indices: Any, dnums: Any, slice_sizes: Any) -> list[Any]:
    """How the result of a gather is split; see `analysis.sharding_rules`."""
    cut = [
        d
        for d, size in enumerate(slice_sizes)
        if x.entries[d] and size != x.shape[d] and d not in dnums.operand_batching_dims
    ]
    starts = list(indices.entries)
    paired = zip(dnums.operand_batching_dims, dnums.start_indices_batching_dims, strict=True)
    for d, i in paired:
        if None not in (starts[i], x.entries[d]) and starts[i] != x.entries[d]:
            cut.append(d)
        starts[i] = starts[i] or x.entries[d]
    free = [i for i in range(len(starts)) if i not in dnums.start_indices_batching_dims]
    if cut or any(starts[i] for i in free):
        rules.refuse(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
            "indexing as out sharding could not be resolved unambiguously (or would require "
            f"collectives on inputs). Got an operand of shape {x.shape}, sharded as {x.spec}, "
            f"and indices sharded as {indices.spec}."
        )
    del starts[-1:]
    hidden = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = iter([entry for d, entry in enumerate(x.entries) if d not in hidden])
    ndim = len(starts) + len(dnums.offset_dims)
    rest = iter(starts)
    return [next(window if d in dnums.offset_dims else rest) for d in range(ndim)]


def scattered_entries(x: Any, indices: Any, updates: Any, dimension_numbers: Any) -> tuple:
    """How the result of a scatter is split; see `analysis.sharding_rules`."""
    window, inserted, starts, batching, indices_batching = dimension_numbers
    own = [d for d in range(len(x.shape)) if d not in inserted and d not in batching]
    clear = not any(indices.entries[-1:])
    for d, u in zip(own, window, strict=True):
        full = updates.shape[u] == x.shape[d]
        clear = clear and (full or x.entries[d] is None)
        clear = clear and updates.entries[u] in (None, x.entries[d])
    clear = clear and not any(x.entries[d] for d in inserted)
    rest = [u for u in range(len(updates.shape)) if u not in window]
    for i, u in enumerate(rest):
        if i in indices_batching:
            d = batching[indices_batching.index(i)]
            clear = clear and x.entries[d] == updates.entries[u]
        else:
            clear = clear and not updates.entries[u] and not indices.entries[i]
    if not clear:
        rules.refuse(
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for "
            "the scatter update as out sharding could not be resolved unambiguously (or would "
            f"require collectives on inputs). Got an operand sharded as {x.spec}, indices as "
            f"{indices.spec} and updates as {updates.spec}."
        )
    return x.entries
