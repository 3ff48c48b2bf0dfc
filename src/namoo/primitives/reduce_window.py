"""Reductions over a sliding window: pooling and its derivatives.

Windows are reduced axis by axis: a sum or a maximum over a box is one over its rows, then one
over the columns of the results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from namoo.analysis import sharding_rules as rules
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero
from namoo.primitives.compare import ge_p, le_p
from namoo.primitives.conv_shapes import (
    Shape,
    dilated,
    padtype_to_pads,
    pair_pads,
    window_count,
)
from namoo.primitives.cumulative import accepted
from namoo.primitives.families import accepts, floating, inexact, number
from namoo.primitives.gather import scatter_add
from namoo.primitives.gather_dimensions import ScatterDimensionNumbers
from namoo.primitives.reduction import identity
from namoo.primitives.shape import broadcast, moveaxis, shape_of, zeros

__all__ = [
    "reduce_window_max_p", "reduce_window_min_p", "reduce_window_shape_tuple",
    "reduce_window_sum_p", "select_and_gather_add_p", "select_and_scatter_add_p",
]  # fmt: skip

Params = dict[str, Any]


def _axes(
    ndim: int, window_dimensions, window_strides, padding, base_dilation, window_dilation
) -> Iterator[tuple[int, int, int, tuple[int, int], int, int]]:
    """The axes along which the window acts, last one first, with their parameters."""
    for axis in reversed(range(ndim)):
        numbers = (
            window_dimensions[axis],
            window_strides[axis],
            padding[axis],
            base_dilation[axis],
            window_dilation[axis],
        )
        if numbers[:4] != (1, 1, (0, 0), 1):
            yield (axis, *numbers)


def _pad(x: np.ndarray, axis: int, pads: tuple[int, int], gap: int, fill: Any) -> np.ndarray:
    """Pad an axis with one value, around and between elements; negative padding removes some."""
    low, high = pads
    size = x.shape[axis]
    if gap > 1 or low > 0 or high > 0:
        spread = dilated(size, gap)
        shape = list(x.shape)
        shape[axis] = spread + max(low, 0) + max(high, 0)
        out = np.full(shape, fill, x.dtype)
        start = max(low, 0)
        out[_along(axis, slice(start, start + spread, gap))] = x
        x, size = out, shape[axis]
    if low < 0 or high < 0:
        x = x[_along(axis, slice(max(-low, 0), max(size + min(high, 0), 0)))]
    return x


def _along(axis: int, index: Any) -> tuple:
    """An index that acts on one axis."""
    return (slice(None),) * axis + (index,)


def _parts(x: np.ndarray, axis: int, size: int, stride: int, step: int) -> Iterator[np.ndarray]:
    """The first, the second, … element of every window along an axis."""
    count = window_count(x.shape[axis], dilated(size, step), stride)
    for k in range(size):
        start = k * step
        yield x[_along(axis, slice(start, start + dilated(count, stride), stride))]


class ReduceWindow(Primitive):
    """One reduction for every position of a window."""

    def __init__(self, kind: str, ufunc: np.ufunc, dtypes: tuple[type, ...]):
        self.name = f"reduce_window_{kind}"
        self.kind = kind
        self.ufunc = ufunc
        self.dtypes = dtypes
        self.accepted = accepted(dtypes)

    def evaluate(self, x, **params):
        dtype = x.dtype
        if dtype not in self.accepted:  # NumPy would accept some of them
            self.abstract(EagerArray(x).aval, **params)
        if self.kind == "sum":
            if dtype.isbuiltin != 1 or dtype == np.float16:
                x = x.astype(np.float32 if accepts(dtype, floating) else np.int8)
        fill = identity(self.kind, x.dtype)
        for axis, size, stride, pads, gap, step in _axes(x.ndim, **params):
            parts = _parts(_pad(x, axis, pads, gap, fill), axis, size, stride, step)
            out = next(parts)
            for i, part in enumerate(parts):
                # The first result allocates; the following ones are written into it.
                out = self.ufunc(out, part, out=out if i else None)
            x = out
        return x.astype(dtype, copy=False)

    def abstract(self, x, **params):
        if not accepts(x.dtype, self.dtypes):
            kinds = ", ".join(kind.__name__.rstrip("_") for kind in self.dtypes)
            raise TypeError(
                f"{self.name} does not accept dtype {x.dtype}. "
                f"Accepted dtypes are subtypes of {kinds}."
            )
        return x.update(shape=window_shape(x.shape, **params))

    def sharded(self, x, **params):
        return rules.resized("reduce_window", x, window_shape(x.shape, **params))

    def batch(self, xs, dims, **params):
        (x,), (d,) = xs, dims
        return self.bind(x, **with_axis(params, d)), d

    def native(self, emit, x, **params):
        operation = "add" if self.kind == "sum" else self.kind
        return emit.window("reduce", x, operation, identity(self.kind, x.dtype), params)

    def stablehlo(self, hlo, x, **params):
        name = "add" if self.kind == "sum" else f"{self.kind}imum"
        wide = hlo.widen(x) if name == "add" else x
        start = hlo.constant(identity(self.kind, wide.dtype))
        (out,) = _windows_in_xla(
            hlo, lambda a, b: [hlo.combine(name, a, b)], [wide], [start], params
        )
        return hlo.convert(out, x.dtype)


def _windows_in_xla(hlo: Any, body: Any, xs: Any, starts: Any, params: Params) -> list[Any]:
    """Arrays of one shape reduced together over windows, by a function of twice as many."""
    shape = window_shape(xs[0].shape, **params)
    return hlo.op(
        "reduce_window",
        *xs,
        *starts,
        result=[(shape, x.dtype) for x in xs],
        window_dimensions=params["window_dimensions"],
        window_strides=params["window_strides"],
        base_dilations=params["base_dilation"],
        window_dilations=params["window_dilation"],
        padding=hlo.matrix(params["padding"]),
        regions=[hlo.region([*starts, *starts], body)],
    )


def _chosen_in_xla(hlo: Any, select: str, x: Any, y: Any, start: Any, params: Params) -> Any:
    """For each window the element of `y` at the index of the best one of `x`; else `start`."""

    def choose(a, i, b, j):
        if x.dtype.kind == "c":
            keep = hlo.less(a, b) if select == "ge" else hlo.less(b, a)
            keep = hlo.op("not", keep, result=keep)
        else:
            keep = hlo.compare(a, b, select.upper())
        return hlo.select(keep, a, b), hlo.select(keep, i, j)

    starts = hlo.constant(identity(_WORST[select], x.dtype)), hlo.constant(start, y.dtype)
    return _windows_in_xla(hlo, choose, [x, y], starts, params)[1]


def with_axis(params: Params, d: int) -> Params:
    """Parameters for arrays with one more axis, along which windows have length 1."""
    extra = {"padding": (0, 0)}
    return {
        name: value
        if value is None or name == "select_prim"
        else (*value[:d], extra.get(name, 1), *value[d:])
        for name, value in params.items()
    }


class ReduceWindowSum(ReduceWindow):
    linear = True

    def transpose(
        self,
        ct,
        x,
        *,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    ):
        """Each element goes back to the windows that contain it: sums over the window, reversed."""
        pads = []
        for axis, (low, _) in enumerate(padding):
            size, out = x.aval.shape[axis], shape_of(ct)[axis]
            window = dilated(window_dimensions[axis], window_dilation[axis])
            before = window - 1 - low
            spread = dilated(out, window_strides[axis])
            after = dilated(size, base_dilation[axis]) + window - 1 - spread - before
            pads.append((before, after))
        return [
            self.bind(
                ct,
                window_dimensions=window_dimensions,
                window_strides=base_dilation,
                padding=tuple(pads),
                base_dilation=window_strides,
                window_dilation=window_dilation,
            )
        ]


class ReduceWindowChoose(ReduceWindow):
    def __init__(self, kind: str, ufunc: np.ufunc, select: Primitive):
        super().__init__(kind, ufunc, (*number, np.bool_))
        self.select = select

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        return out, select_and_gather_add_p.bind(t, x, select_prim=self.select, **params)


reduce_window_sum_p = ReduceWindowSum("sum", np.add, number)
reduce_window_max_p = ReduceWindowChoose("max", np.maximum, ge_p)
reduce_window_min_p = ReduceWindowChoose("min", np.minimum, le_p)


def window_shape(
    shape: Shape, *, window_dimensions, window_strides, padding, base_dilation, window_dilation
) -> Shape:
    """How many windows there are along each axis, or an error that names the mismatch."""
    ndim = len(shape)
    if len(window_dimensions) != ndim:
        raise TypeError(
            "reduce_window needs one window dimension for each axis of the operand: got "
            f"window_dimensions {window_dimensions} for shape {shape}."
        )
    for name, values in (
        ("window_dimensions", window_dimensions),
        ("window_strides", window_strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        if len(values) != ndim:
            raise TypeError(
                f"reduce_window needs as many {name} as window_dimensions: got {values} and "
                f"{window_dimensions}."
            )
        if any(v < 1 for v in values):
            raise TypeError(
                f"reduce_window {name} must have every element be strictly positive, got {values}."
            )
    if len(padding) != ndim:
        raise ValueError(
            f"reduce_window needs one pair of padding for each axis of the operand: got {padding} "
            f"for shape {shape}."
        )
    return tuple(
        window_count(dilated(size, gap) + low + high, dilated(window, step), stride)
        for size, window, stride, (low, high), gap, step in zip(
            shape,
            window_dimensions,
            window_strides,
            padding,
            base_dilation,
            window_dilation,
            strict=True,
        )
    )


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The shape of a reduction over a sliding window.

    Example:
        >>> reduce_window_shape_tuple((4, 5), (2, 2), (1, 2), "VALID")
        (3, 2)
    """
    shape = tuple(operand_shape)
    params = window_params(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window_shape(shape, **params)


def window_params(
    shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Params:
    """The parameters of a window as tuples, with defaults and padding filled in."""
    window = tuple(map(operator.index, window_dimensions))
    ones = (1,) * len(window)
    strides, gaps, steps = (
        ones if values is None else tuple(map(operator.index, values))
        for values in (window_strides, base_dilation, window_dilation)
    )
    params = {
        "window_dimensions": window,
        "window_strides": strides,
        "base_dilation": gaps,
        "window_dilation": steps,
    }
    if isinstance(padding, str):
        window_shape(shape, padding=((0, 0),) * len(shape), **params)
        padding = padtype_to_pads(
            shape,  # as in JAX: without the length that dilation adds
            [dilated(size, step) for size, step in zip(window, steps, strict=True)],
            strides,
            padding,
        )
    params["padding"] = pair_pads("reduce_window", padding)
    window_shape(shape, **params)
    return params


def _fold_pairs(
    better: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    fill: Any,
    params: Params,
) -> np.ndarray:
    """For each window the element of `y` at the index of the (first) best one of `x`."""
    for axis, size, stride, pads, gap, step in _axes(x.ndim, **params):
        xs = _parts(_pad(x, axis, pads, gap, fill), axis, size, stride, step)
        ys = _parts(_pad(y, axis, pads, gap, 0), axis, size, stride, step)
        x, y = next(xs), next(ys)
        for other_x, other_y in zip(xs, ys, strict=True):
            keep = better(x, other_x)
            x, y = np.where(keep, x, other_x), np.where(keep, y, other_y)
    return y


_BETTER = {"ge": np.greater_equal, "le": np.less_equal}
_WORST = {"ge": "max", "le": "min"}


def _check_selected(name: str, x: ShapedArray, y: ShapedArray, same_shape: bool) -> None:
    if not accepts(x.dtype, inexact) or x.dtype != y.dtype:
        raise TypeError(
            f"{name} needs two arrays of one floating or complex type, got {x.dtype} and {y.dtype}."
        )
    if same_shape and x.shape != y.shape:
        raise TypeError(f"{name} needs arrays of one shape, got {x.shape} and {y.shape}.")


class SelectAndGatherAdd(Primitive):
    """For each window, the tangent at the index of the largest (or smallest) operand."""

    name = "select_and_gather_add"

    def evaluate(self, t, x, *, select_prim, **params):
        select = select_prim.name
        fill = identity(_WORST[select], x.dtype)
        return _fold_pairs(_BETTER[select], x, t, fill, params).astype(t.dtype, copy=False)

    def abstract(self, t, x, *, select_prim, **params):
        _check_selected(self.name, t, x, same_shape=True)
        weak = t.weak_type and x.weak_type
        return ShapedArray(window_shape(x.shape, **params), t.dtype, weak)

    def sharded(self, t, x, *, select_prim, **params):
        return rules.resized("select_and_gather_add", x, window_shape(x.shape, **params))

    def jvp(self, primals, tangents, **params):
        """Linear in the first operand; the choice does not change with the second."""
        (t, x), (dt, _) = primals, tangents
        out = self.bind(t, x, **params)
        if type(dt) is Zero:
            return out, Zero.of(out)
        return out, self.bind(dt, x, **params)

    def transpose(self, ct, t, x, **params):
        return [select_and_scatter_add_p.bind(ct, x, **params), None]

    def native(self, emit, t, x, *, select_prim, **params):
        select = select_prim.name
        worst = identity(_WORST[select], x.dtype)
        return emit.window("select_and_gather", t, x, select, worst, params)

    def stablehlo(self, hlo, t, x, *, select_prim, **params):
        return _chosen_in_xla(hlo, select_prim.name, x, t, 0, params)

    def batch(self, xs, dims, **params):
        xs = _together(xs, dims)
        return self.bind(*xs, **with_axis(params, 0)), 0


def _together(xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Operands with the mapped axis first in all of them."""
    size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
    return [
        broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
        for x, d in zip(xs, dims, strict=True)
    ]


class SelectAndScatterAdd(Primitive):
    """Add each element of `source` at the index of the largest (or smallest) operand in its
    window."""

    name = "select_and_scatter_add"

    def evaluate(self, source, x, *, select_prim, **params):
        select = select_prim.name
        fill = identity(_WORST[select], x.dtype)
        # Positions count from 1: padding, which is 0, can be chosen and is discarded.
        places = np.arange(1, x.size + 1).reshape(x.shape)
        chosen = _fold_pairs(_BETTER[select], x, places, fill, params)
        wide = np.float32 if source.dtype.itemsize < 4 else source.dtype
        out = np.zeros(x.size + 1, wide)
        apart = all(
            stride >= dilated(size, step)
            for size, stride, step in zip(
                params["window_dimensions"],
                params["window_strides"],
                params["window_dilation"],
                strict=True,
            )
        )
        if apart:  # no element is in two windows
            out[chosen.reshape(-1)] = source.reshape(-1)
        else:
            np.add.at(out, chosen.reshape(-1), source.reshape(-1).astype(wide, copy=False))
        return out[1:].reshape(x.shape).astype(source.dtype, copy=False)

    def abstract(self, source, x, *, select_prim, **params):
        _check_selected(self.name, source, x, same_shape=False)
        shape = window_shape(x.shape, **params)
        if source.shape != shape:
            raise TypeError(
                f"{self.name}: source has shape {source.shape}, but there are {shape} windows on "
                f"an operand of shape {x.shape}."
            )
        return ShapedArray(x.shape, source.dtype, source.weak_type and x.weak_type)

    def sharded(self, source, x, **params):
        return x.entries

    def jvp(self, primals, tangents, **params):
        """Linear in the first operand; the choice does not change with the second."""
        (source, x), (ds, _) = primals, tangents
        out = self.bind(source, x, **params)
        if type(ds) is Zero:
            return out, Zero.of(out)
        return out, self.bind(ds, x, **params)

    def transpose(self, ct, source, x, **params):
        return [select_and_gather_add_p.bind(ct, x, **params), None]

    def native(self, emit, source, x, *, select_prim, **params):
        select = select_prim.name
        worst = identity(_WORST[select], x.dtype)
        return emit.window("select_and_scatter", source, x, select, worst, params)

    def stablehlo(self, hlo, source, x, *, select_prim, **params):
        # Padding has the index -1, which is discarded.
        places = hlo.reshape(hlo.iota((x.size,), np.int32, 0), x.shape)
        chosen = _chosen_in_xla(hlo, select_prim.name, x, places, -1, params)
        total = hlo.apply(
            lambda i, u: scatter_add(zeros(aval_of(u).update(shape=(x.size,))), i, u, _POINTS),
            hlo.reshape(chosen, (source.size, 1)),
            hlo.reshape(hlo.widen(source), (source.size,)),
        )
        return hlo.convert(hlo.reshape(total, x.shape), source.dtype)

    def batch(self, xs, dims, **params):
        xs = _together(xs, dims)
        return self.bind(*xs, **with_axis(params, 0)), 0


_POINTS = ScatterDimensionNumbers((), (0,), (0,))

select_and_gather_add_p = SelectAndGatherAdd()
select_and_scatter_add_p = SelectAndScatterAdd()
