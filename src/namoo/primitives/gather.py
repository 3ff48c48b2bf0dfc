"""Gather and scatter: read and write windows of an array at computed indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.analysis.checks import Guard
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive, is_linear
from namoo.primitives.elementwise import add, div, eq, max, mul, ne, neg, select
from namoo.primitives.gather_dimensions import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    Dims,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_starts,
    check_gather,
    check_scatter,
    clipped_in_xla,
    default_fill,
    fill,
    gathered_entries,
    in_xla,
    inside_in_xla,
    plan_of,
    scattered_entries,
)
from namoo.primitives.shape import (
    broadcast,
    convert_element_type,
    full,
    instantiate,
    iota,
    moveaxis,
    ones,
    reshape,
    shape_of,
    zeros,
)

__all__ = [
    "gather", "gather_p", "scatter", "scatter_add", "scatter_add_p", "scatter_max",
    "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p",
    "scatter_sub", "scatter_sub_p",
]  # fmt: skip


class Gather(Primitive):
    """Read windows of an array."""

    name = "gather"
    weak_operands = slice(1)

    def evaluate(
        self,
        x,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        indices_are_sorted,
        unique_indices,
        mode,
        fill_value,
    ):
        plan = plan_of(x.shape, dimension_numbers, slice_sizes, indices.ndim - 1)
        starts = as_starts(indices)
        outside = None
        if mode is FILL_OR_DROP or mode is ONE_HOT:
            outside = plan.outside(starts)
            if not outside.any():
                outside = None
        if plan.take_axis is not None and outside is None:
            return x.take(starts[..., 0], plan.take_axis, mode="clip")
        index = plan.index(np.clip(starts, 0, plan.last))
        view = plan.view(x)
        batch_shape = indices.shape[:-1]
        if index:
            out = view[tuple(index)]
        else:
            out = np.broadcast_to(view, batch_shape + view.shape)
        if outside is not None:
            out = out if batch_shape else np.array(out)  # for a single index NumPy returns a view
            out[outside] = fill(fill_value, x.dtype) if mode is FILL_OR_DROP else 0
        return out if plan.to_result is None else out.transpose(plan.to_result)

    def abstract(
        self,
        x,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        indices_are_sorted,
        unique_indices,
        mode,
        fill_value,
    ):
        dnums = dimension_numbers
        check_gather(x.shape, indices, dnums, slice_sizes)
        hidden = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
        window = iter([size for d, size in enumerate(slice_sizes) if d not in hidden])
        rest = iter(indices.shape[:-1])
        ndim = len(indices.shape) - 1 + len(dnums.offset_dims)
        shape = tuple(next(window if d in dnums.offset_dims else rest) for d in range(ndim))
        return x.update(shape=shape)

    def sharded(self, x, indices, *, dimension_numbers, slice_sizes, **params):
        return gathered_entries(x, indices, dimension_numbers, slice_sizes)

    def jvp(self, primals, tangents, **params):
        x, indices = primals
        out = self.bind(x, indices, **params)
        return out, self.bind(tangents[0], indices, **_with_zero_fill(params))

    def transpose(
        self,
        ct,
        x,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        indices_are_sorted,
        unique_indices,
        mode,
        fill_value,
    ):
        dnums = ScatterDimensionNumbers(*dimension_numbers)
        out = scatter_add_p.bind(
            zeros(x.aval.update(dtype=aval_of(ct).dtype)),
            indices,
            ct,
            dimension_numbers=dnums,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return [out, None]

    def batch(self, xs, dims, *, dimension_numbers, slice_sizes, **params):
        (x, indices), (dx, di) = xs, dims
        offset, collapsed, starts, batching, indices_batching = dimension_numbers
        x = x if dx is None else moveaxis(x, dx, 0)
        indices = indices if di is None else moveaxis(indices, di, 0)
        if dx is not None:
            collapsed, starts, batching = map(_shift, (collapsed, starts, batching))
        if di is not None:
            indices_batching = _shift(indices_batching)
        if dx is None:
            offset = _shift(offset)
        elif di is None:
            offset = (0, *_shift(offset))
            slice_sizes = (shape_of(x)[0], *slice_sizes)
        else:
            offset = _shift(offset)
            slice_sizes = (min(1, shape_of(x)[0]), *slice_sizes)
            batching, indices_batching = (0, *batching), (0, *indices_batching)
        dnums = GatherDimensionNumbers(offset, collapsed, starts, batching, indices_batching)
        if di is not None:
            # The indices of two examples may be in any order, and equal where they share `x`.
            params["indices_are_sorted"] = False
            params["unique_indices"] = params["unique_indices"] and dx is not None
        params = {"dimension_numbers": dnums, "slice_sizes": slice_sizes, **params}
        return self.bind(x, indices, **params), 0

    def native(
        self,
        emit,
        x,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        indices_are_sorted,
        unique_indices,
        mode,
        fill_value,
    ):
        value = None
        if mode is FILL_OR_DROP:
            value = fill(fill_value, x.dtype).reshape(())
        elif mode is ONE_HOT:
            value = np.zeros((), x.dtype)
        return emit.gather(x, indices, dimension_numbers, slice_sizes, value)

    def stablehlo(
        self,
        hlo,
        x,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        indices_are_sorted,
        mode,
        fill_value,
        **params,
    ):
        indices = hlo.index(indices)
        out = hlo.op(
            "gather",
            x,
            indices,
            dimension_numbers=in_xla(hlo, dimension_numbers, indices.ndim - 1),
            slice_sizes=slice_sizes,
            indices_are_sorted=indices_are_sorted,
        )
        if mode is not FILL_OR_DROP and mode is not ONE_HOT:
            return out
        dtype = getattr(hlo.avals[0].dtype, "numpy", hlo.avals[0].dtype)
        value = fill(fill_value, dtype).reshape(()) if mode is FILL_OR_DROP else np.zeros((), dtype)
        last = [x.shape[d] - slice_sizes[d] for d in dimension_numbers.start_index_map]
        places = [d for d in range(out.ndim) if d not in dimension_numbers.offset_dims]
        inside = hlo.broadcast(inside_in_xla(hlo, indices, last), out.shape, places)
        return hlo.select(inside, out, hlo.broadcast(hlo.constant(value), out.shape))

    def guards(self, x, indices, *, dimension_numbers, slice_sizes, mode, **params):
        return _guards(x.shape, dimension_numbers, slice_sizes, mode)


def _guards(shape: Dims, numbers: Any, sizes: Dims, mode: GatherScatterMode) -> list[Guard]:
    """The promise about the indices, which are operand 1: each window is in bounds."""
    if mode is not PROMISE_IN_BOUNDS:
        return []
    starts = numbers[2]  # the axis that each component of an index refers to
    return [Guard(1, d, shape[d], sizes[d], component=c) for c, d in enumerate(starts)]


gather_p = Gather()


def _shift(dims: Dims) -> Dims:
    """Axes of an array that got one more in front."""
    return tuple(d + 1 for d in dims)


def _with_zero_fill(params: dict) -> dict:
    return {**params, "fill_value": 0} if params["mode"] is FILL_OR_DROP else params


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """Read windows of `operand`, one for each index.

    Args:
        operand: the array to read from.
        start_indices: integers; the last axis holds the components of one start.
        dimension_numbers: how the axes correspond, see `GatherDimensionNumbers`.
        slice_sizes: the size of a window along each axis of `operand`.
        unique_indices: promise that no element is read twice, for a faster derivative.
        indices_are_sorted: promise that the indices increase.
        mode: the value of windows out of bounds: 'fill' (the default), 'clip', 'promise_in_bounds'.
        fill_value: the value for 'fill'; by default NaN, or the extreme integer.

    Returns:
        An array whose `offset_dims` run inside the windows and whose other axes are the indices'.

    Raises:
        TypeError: the axes or sizes do not fit together.
        ValueError: the indices are not integers, or the mode is unknown.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.arange(12.0).reshape(3, 4)
        >>> rows = GatherDimensionNumbers(
        ...     offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> gather(x, jnp.array([[2], [0]]), rows, slice_sizes=(1, 4))
        Array([[ 8.,  9., 10., 11.],
               [ 0.,  1.,  2.,  3.]], dtype=float32)
    """
    mode = GatherScatterMode.from_any("fill" if mode is None and fill_value is not None else mode)
    dtype = aval_of(operand).dtype
    if mode is not FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(dtype)
    params = {
        "dimension_numbers": GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        "slice_sizes": canonical_shape(slice_sizes),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": mode,
        "fill_value": fill_value,
    }
    gather_p.abstract(aval_of(operand), aval_of(start_indices), **params)
    return gather_p.bind(operand, start_indices, **params)


def _gather_form(
    dnums: ScatterDimensionNumbers, shape: Dims, updates_shape: Dims
) -> tuple[GatherDimensionNumbers, Dims]:
    """The gather that reads what a scatter writes, and its slice sizes."""
    window = iter(updates_shape[d] for d in dnums.update_window_dims)
    hidden = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    sizes = tuple(1 if d in hidden else next(window) for d in range(len(shape)))
    return GatherDimensionNumbers(*dnums), sizes


def read_back(x: Any, indices: Any, updates_shape: Dims, fill_value: Any = 0, **params) -> Any:
    """The elements of `x` in the windows of a scatter with the given parameters."""
    dnums, sizes = _gather_form(params.pop("dimension_numbers"), shape_of(x), updates_shape)
    params = _with_zero_fill({**params, "fill_value": None})
    return gather_p.bind(x, indices, dimension_numbers=dnums, slice_sizes=sizes, **params)


class Scatter(Primitive):
    """Write windows of an array; where windows overlap, the last one wins.

    Subclasses combine a window with the elements of the array by `ufunc`.
    """

    name = "scatter"
    weak_operands = slice(1)
    ufunc: np.ufunc | None = None
    accepted: type = np.generic

    def evaluate(
        self,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    ):
        dnums, sizes = _gather_form(dimension_numbers, x.shape, updates.shape)
        plan = plan_of(x.shape, dnums, sizes, indices.ndim - 1)
        starts = as_starts(indices)
        out = np.array(x, order="C")
        if updates.size == 0:
            return out
        if plan.to_front is not None:
            updates = updates.transpose(plan.to_front)
        batch_shape = starts.shape[:-1]
        count = math.prod(batch_shape)
        updates = updates.reshape(count, *plan.window)
        keep = None
        if mode is CLIP:
            starts = np.clip(starts, 0, plan.last)
        else:
            outside = plan.outside(starts)
            if outside.any():
                keep = ~outside.reshape(count)
        # One flat axis: NumPy then writes the windows in order, so that the last one wins.
        index = tuple(np.broadcast_to(i, batch_shape).reshape(count) for i in plan.index(starts))
        if keep is not None:
            index, updates = tuple(i[keep] for i in index), updates[keep]
        self._write(plan, out, index, updates, unique_indices)
        return out

    def _write(self, plan, out, index, updates, unique):
        count = len(updates)
        view = plan.view(out)
        if count == 1 or not index:
            # One window: plain slices.  (Without an index all windows are the whole array.)
            place = (*(int(i[0]) for i in index), ...)
            for update in updates:
                view[place] = update if self.ufunc is None else self.ufunc(view[place], update)
        elif self.ufunc is None:
            view[index] = updates
        elif unique or _are_distinct(plan, index):
            view[index] = self.ufunc(view[index], updates)
        else:
            # `ufunc.at` is fast only on one flat axis.
            strides = [s // out.itemsize for s in view.strides]
            flat = np.zeros(count, np.intp)
            for i, s in zip(index, strides, strict=False):
                flat += i * s
            for size, s in zip(plan.window, strides[len(index) :], strict=True):
                flat = flat[..., None] + np.arange(size) * s
            self.ufunc.at(out.reshape(-1), flat.reshape(-1), updates.reshape(-1))

    def abstract(
        self,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    ):
        check_scatter(self.name, x, indices, updates, dimension_numbers)
        self.check_dtype(x.dtype)
        return x

    def sharded(self, x, indices, updates, *, dimension_numbers, **params):
        return scattered_entries(x, indices, updates, dimension_numbers)

    def check_dtype(self, dtype: Any) -> None:
        """Raise unless elements of this type can be combined."""
        if self.ufunc is not None and not dtypes.issubdtype(dtype, self.accepted):
            raise TypeError(
                f"{self.name} does not accept dtype {dtype}. "
                f"Accepted dtypes are subtypes of {self.accepted.__name__}."
            )

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        dx, _, du = tangents
        out = self.bind(x, indices, updates, **params)
        return out, self.bind(instantiate(dx), indices, instantiate(du), **params)

    def transpose(self, ct, x, indices, updates, **params):
        shape = shape_of(updates) if not is_linear(updates) else updates.aval.shape
        dx = du = None
        if is_linear(x):
            nothing = zeros(ShapedArray(shape, aval_of(ct).dtype))
            dx = self.bind(ct, indices, nothing, **params)
        if is_linear(updates):
            du = read_back(ct, indices, shape, **params)
            if not params["unique_indices"]:
                du = select(self._stayed(ct, indices, shape, params), du, zeros(aval_of(du)))
        return [dx, None, du]

    def _stayed(self, x, indices, updates_shape, params):
        """Which elements of the updates are not overwritten by a later one."""
        number = reshape(iota(np.int32, math.prod(updates_shape)), updates_shape)
        untouched = broadcast(np.int32(-1), shape_of(x))
        holder = self.bind(untouched, indices, number, **params)
        return eq(read_back(holder, indices, updates_shape, **params), number)

    def batch(self, xs, dims, *, dimension_numbers, **params):
        (x, indices, updates), (dx, di, du) = xs, dims
        window, inserted, starts, batching, indices_batching = dimension_numbers
        size = next(shape_of(a)[d] for a, d in zip(xs, dims, strict=True) if d is not None)
        x = broadcast(x, (size,)) if dx is None else moveaxis(x, dx, 0)
        updates = broadcast(updates, (size,)) if du is None else moveaxis(updates, du, 0)
        window, inserted, starts, batching = map(_shift, (window, inserted, starts, batching))
        if di is None:
            window = (0, *window)
        else:
            indices = moveaxis(indices, di, 0)
            params["indices_are_sorted"] = False
            batching, indices_batching = (0, *batching), (0, *_shift(indices_batching))
        dnums = ScatterDimensionNumbers(window, inserted, starts, batching, indices_batching)
        return self.bind(x, indices, updates, dimension_numbers=dnums, **params), 0

    def native(
        self,
        emit,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    ):
        operation = self.name.removeprefix("scatter").removeprefix("-") or None
        return emit.scatter(x, indices, updates, dimension_numbers, operation, mode is CLIP)

    def stablehlo(
        self,
        hlo,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    ):
        indices, operation = hlo.index(indices), _OPERATIONS[self.ufunc]
        if mode is CLIP:
            numbers, sizes = _gather_form(dimension_numbers, x.shape, updates.shape)
            last = [x.shape[d] - sizes[d] for d in numbers.start_index_map]
            indices = clipped_in_xla(hlo, indices, last)
        shape = x.shape
        if not indices.shape[-1]:
            # XLA takes only the last of several windows without an index: give them an index.
            window, inserted, _, batching, theirs = dimension_numbers
            dimension_numbers = ScatterDimensionNumbers(
                window, (0, *_shift(inserted)), (0,), _shift(batching), theirs
            )
            indices = hlo.constant(0, np.int32, (*indices.shape[:-1], 1))
            x = hlo.reshape(x, (1, *shape))
        body = hlo.region(
            [((), x.dtype)] * 2,
            lambda a, b: [b if operation is None else hlo.combine(operation, a, b)],
        )
        out = hlo.op(
            "scatter",
            x,
            indices,
            updates,
            result=x,
            scatter_dimension_numbers=in_xla(hlo, dimension_numbers, indices.ndim - 1),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            regions=[body],
        )
        return hlo.reshape(out, shape)

    def guards(self, x, indices, updates, *, dimension_numbers, mode, **params):
        numbers, sizes = _gather_form(dimension_numbers, x.shape, updates.shape)
        return _guards(x.shape, numbers, sizes, mode)


_OPERATIONS = {
    None: None,
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.minimum: "minimum",
    np.maximum: "maximum",
}


def _are_distinct(plan: Any, index: tuple[np.ndarray, ...]) -> bool:
    """Whether no two windows overlap; checked only where it is worthwhile, for long whole rows."""
    if not plan.is_transpose or math.prod(plan.window) < 8:
        return False
    places = np.sort(np.ravel_multi_index(index, plan.places))
    return bool((places[1:] != places[:-1]).all())


scatter_p = Scatter()


class ScatterAdd(Scatter):
    """Add windows to an array."""

    name, ufunc, accepted = "scatter-add", np.add, np.number

    def transpose(self, ct, x, indices, updates, **params):
        dx = ct if is_linear(x) else None
        du = None
        if is_linear(updates):
            du = self._back(read_back(ct, indices, updates.aval.shape, **params))
        return [dx, None, du]

    def _back(self, ct):
        return ct


class ScatterSub(ScatterAdd):
    """Subtract windows from an array."""

    name, ufunc = "scatter-sub", np.subtract

    def _back(self, ct):
        return neg(ct)


class ScatterMul(Scatter):
    """Multiply an array by windows."""

    name, ufunc, accepted = "scatter-mul", np.multiply, np.number

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        dx, _, du = map(instantiate, tangents)
        out = self.bind(x, indices, updates, **params)
        if not params["unique_indices"]:
            du = mul(du, self._others(x, indices, updates, params))
        change = scatter_add_p.bind(zeros(aval_of(x)), indices, du, **params)
        return out, add(self.bind(dx, indices, updates, **params), mul(x, change))

    def _others(self, x, indices, updates, params):
        """For each update, the product of the other ones at its index.

        The product of all is divided by the update itself; zeros are excluded and counted, so that
        nothing is divided by zero.
        """
        aval = aval_of(updates)
        shape, zero, one = aval.shape, zeros(aval), ones(aval)
        is_zero = eq(updates, zero)
        factors = select(is_zero, one, updates)
        number = select(is_zero, one, zero)
        product = self.bind(ones(aval_of(x)), indices, factors, **params)
        count = scatter_add_p.bind(zeros(aval_of(x)), indices, number, **params)
        product = read_back(product, indices, shape, **params)
        others_zero = read_back(count, indices, shape, **params)
        return select(eq(others_zero, number), div(product, factors), zero)

    def transpose(self, ct, x, indices, updates, **params):
        return [self.bind(ct, indices, updates, **params), None, None]


class ScatterExtreme(Scatter):
    """The extreme of an array and windows; all that are equal to it share the derivative."""

    def __init__(self, name: str, ufunc: np.ufunc):
        self.name = name
        self.ufunc = ufunc

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        dx, _, du = map(instantiate, tangents)
        out = self.bind(x, indices, updates, **params)
        dtype = aval_of(x).dtype
        found = read_back(out, indices, shape_of(updates), **params)
        mine = add(*(convert_element_type(b, dtype) for b in (eq(x, out), ne(x, x))))
        theirs = convert_element_type(eq(updates, found), dtype)
        # A NaN equals nothing: its tangent is 0, unless no window touches it.
        counted = select(ne(found, found), full(shape_of(theirs), -np.inf, dtype), theirs)
        count = scatter_add_p.bind(mine, indices, counted, **params)
        total = scatter_add_p.bind(mul(dx, mine), indices, mul(du, theirs), **params)
        share = div(total, max(count, ones(aval_of(count).strong())))
        return out, select(
            eq(count, full(shape_of(x), -np.inf, dtype)), zeros(aval_of(share)), share
        )


scatter_add_p, scatter_sub_p, scatter_mul_p = ScatterAdd(), ScatterSub(), ScatterMul()
scatter_min_p = ScatterExtreme("scatter-min", np.minimum)
scatter_max_p = ScatterExtreme("scatter-max", np.maximum)


def _scatter(
    prim: Scatter,
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Any:
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }
    prim.abstract(aval_of(operand), aval_of(scatter_indices), aval_of(updates), **params)
    return prim.bind(operand, scatter_indices, updates, **params)


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Write windows into a copy of `operand`, one for each index.

    Where windows overlap, the last one wins.

    Args:
        operand: the array to write into.
        scatter_indices: integers; the last axis holds the components of one start.
        updates: the windows, of the dtype of `operand`.
        dimension_numbers: how the axes correspond, see `ScatterDimensionNumbers`.
        indices_are_sorted: promise that the indices increase.
        unique_indices: promise that no element is written twice; derivatives are then cheaper.
        mode: windows out of bounds: 'drop' (the default), 'clip', 'promise_in_bounds'.

    Raises:
        TypeError: axes, lengths or dtypes do not fit together.
        ValueError: the indices are not integers, or the mode is unknown.

    Example:
        >>> import namoo.numpy as jnp
        >>> points = ScatterDimensionNumbers(
        ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
        >>> scatter(jnp.zeros(4), jnp.array([[2], [0]]), jnp.array([1.0, 5.0]), points)
        Array([5., 0., 1., 0.], dtype=float32)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Add windows to `operand`; see `scatter` for the arguments.

    Example:
        >>> import namoo.numpy as jnp
        >>> points = ScatterDimensionNumbers((), (0,), (0,))
        >>> scatter_add(jnp.zeros(3), jnp.array([[2], [0], [2]]), jnp.ones(3), points)
        Array([1., 0., 2.], dtype=float32)
    """
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Subtract windows from `operand`; see `scatter` for the arguments."""
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_sub_p, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Multiply `operand` by windows; see `scatter` for the arguments."""
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """The smaller of `operand` and windows; see `scatter` for the arguments."""
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers, *flags)


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """The larger of `operand` and windows; see `scatter` for the arguments."""
    flags = (indices_are_sorted, unique_indices, mode)
    return _scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers, *flags)
