"""Padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.dimensions.sizes import dimension
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import multiply, subtract
from namoo.numpy.creation import concrete, empty_like
from namoo.numpy.number_parts import round
from namoo.numpy.promote import array_of, as_type, broadcast_to
from namoo.numpy.reductions import max, mean, min
from namoo.numpy.same_type import is_kind
from namoo.numpy.spaces import linspace
from namoo.primitives import shape as lax
from namoo.primitives import slicing

# Which keywords each mode takes.
MODES: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}

Pairs = list[tuple[Any, Any]]


def _pairs(value: Any, ndim: int, name: str) -> Pairs:
    """A number, a pair, or a pair for each axis, as a pair for each axis."""
    shape = np.shape(value) if not isinstance(value, (tuple, list)) else _nested_shape(value)
    if shape in ((), (1,), (1, 1)):
        single = _first(value, len(shape))
        return [(single, single)] * ndim
    if shape == (2,):
        return [(value[0], value[1])] * ndim
    if shape == (1, 2):
        return [(value[0][0], value[0][1])] * ndim
    if shape == (ndim, 1):
        return [(v[0], v[0]) for v in value]
    if shape == (ndim, 2):
        return [(v[0], v[1]) for v in value]
    raise ValueError(
        f"jnp.pad: {name} of shape {shape} does not fit an array of {ndim} axes: pass a number, "
        "a pair (before, after), or one pair for each axis."
    )


def _nested_shape(value: Any) -> tuple[int, ...]:
    inner = [np.shape(v) if not isinstance(v, (tuple, list)) else (len(v),) for v in value]
    if len(set(inner)) > 1:
        raise ValueError(f"jnp.pad: ragged argument {value!r}: every axis needs a pair.")
    return (len(value), *(inner[0] if inner else ()))


def _first(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = value[0]
    return value


def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any):
    """An array with elements added before and after along its axes.

    Args:
        array: the array.
        pad_width: how many: a number, a pair (before, after), or a pair for each axis.
        mode: 'constant', 'edge', 'empty', 'linear_ramp', 'maximum', 'mean', 'median', 'minimum',
            'reflect', 'symmetric', 'wrap'; or a function, as in NumPy, that returns the padded
            vector.
        constant_values: for 'constant'.
        end_values: for 'linear_ramp'.
        stat_length: for the statistics, how many elements at the edge to take.
        reflect_type: 'even' or 'odd'.

    Raises:
        ValueError: negative widths, or keywords that the mode does not take.
        NotImplementedError: an unknown mode.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect")
        Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = array_of("pad", array)
    pairs = _pairs(pad_width, x.ndim, "pad_width")
    widths = [tuple(_width(n) for n in pair) for pair in pairs]
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"index can't contain negative values, got pad_width={pad_width}")
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode not in MODES:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad; known are {', '.join(MODES)}."
        )
    unknown = set(kwargs) - set(MODES[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if not x.ndim:
        return x
    if mode == "constant":
        return _constant(x, widths, kwargs.get("constant_values", 0))
    return _by_axis(x, widths, mode, kwargs)


def _width(n: Any) -> int:
    n = concrete(n, "pad_width of jnp.pad")
    try:
        return dimension(n)
    except TypeError:
        raise TypeError(f"`pad_width` must be of integral type, got {n!r}.") from None


def _constant(x: Array, widths: Any, values: Any) -> Array:
    value = array_of("pad", values) if not isinstance(values, (tuple, list)) else None
    if value is not None and not value.ndim:
        scalar = as_type(value, x.dtype, x.weak_type)
        return slicing.pad(x, scalar, [(low, high, 0) for low, high in widths])
    source = values if value is None else value
    for axis, ((low, high), ends) in enumerate(
        zip(widths, _pairs(source, x.ndim, "constant_values"), strict=True)
    ):
        for side, (count, end) in enumerate(zip((low, high), ends, strict=True)):
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (0, count, 0) if side else (count, 0, 0)
            scalar = as_type(array_of("pad", end), x.dtype, x.weak_type)
            x = slicing.pad(x, scalar, config) if count else x
    return x


def _by_axis(x: Array, widths: Any, mode: str, options: dict[str, Any]) -> Array:
    """Modes that pad one axis after another, so that corners are correct."""
    ends = _pairs(options.get("end_values", 0), x.ndim, "end_values")
    lengths = options.get("stat_length")
    lengths = None if lengths is None else _pairs(lengths, x.ndim, "stat_length")
    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        if not n and mode in ("edge", "reflect", "symmetric", "wrap"):
            if low or high:
                raise ValueError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
                )
            continue
        if mode == "wrap":
            x = _wrap(x, axis, low, high)
        elif mode in ("reflect", "symmetric"):
            kind = options.get("reflect_type", "even")
            if kind not in ("even", "odd"):
                raise ValueError(f"reflect_type must be 'even' or 'odd', got {kind!r}")
            x = _mirror(x, axis, low, mode == "reflect", kind == "odd", True)
            x = _mirror(x, axis, high, mode == "reflect", kind == "odd", False)
        else:
            before, after = _border(x, axis, low, high, mode, ends[axis], lengths)
            x = slicing.concatenate([before, x, after], axis)
    return x


def _border(x, axis, low, high, mode, ends, lengths) -> tuple[Array, Array]:
    """The elements before and after the array along an axis."""
    n = x.shape[axis]
    if mode == "empty":
        return tuple(empty_like(x, shape=_resized(x, axis, k)) for k in (low, high))  # type: ignore
    if mode == "linear_ramp":
        return _ramp(x, axis, low, ends[0], 0, False), _ramp(x, axis, high, ends[1], n - 1, True)
    if mode == "edge":
        first = slicing.slice_in_dim(x, 0, 1, axis=axis)
        last = slicing.slice_in_dim(x, n - 1, n, axis=axis)
    else:
        first, last = _statistics(x, axis, mode, lengths)
    return _repeated(first, axis, low), _repeated(last, axis, high)


def _resized(x: Array, axis: int, n: int) -> tuple[int, ...]:
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


def _repeated(x: Array, axis: int, n: int) -> Array:
    return lax.broadcast_in_dim(x, _resized(x, axis, n), range(x.ndim))


def _ramp(x: Array, axis: int, count: int, end: Any, place: int, reverse: bool) -> Array:
    """A straight line from an end value to the element at the edge."""
    edge = slicing.index_in_dim(x, place, axis, keepdims=False)
    line = linspace(end, edge, count, endpoint=False, dtype=x.dtype, axis=axis)
    line = as_type(line, x.dtype, x.weak_type)
    return lax.rev(line, (axis,)) if reverse else line


def _statistics(x: Array, axis: int, mode: str, lengths: Pairs | None) -> tuple[Array, Array]:
    from namoo.numpy.quantiles import median

    reduce = {"maximum": max, "minimum": min, "mean": mean, "median": median}[mode]
    n = x.shape[axis]
    parts = [x, x]
    if lengths is not None:
        low, high = (_width(k) for k in lengths[axis])
        if not low or not high:
            raise ValueError("stat_length of 0 yields no value for padding")
        low, high = (k if k < n else n for k in (low, high))
        parts = [
            slicing.slice_in_dim(x, 0, low, axis=axis),
            slicing.slice_in_dim(x, n - high, n, axis=axis),
        ]
    values = [reduce(part, axis, keepdims=True) for part in parts]
    if is_kind(x, np.integer):
        values = [round(v) for v in values]
    first, last = (as_type(v, x.dtype, x.weak_type) for v in values)
    return first, last


def _wrap(x: Array, axis: int, low: int, high: int) -> Array:
    n = x.shape[axis]
    (copies_low, rest_low), (copies_high, rest_high) = divmod(low, n), divmod(high, n)
    parts = [x] * (copies_low + copies_high + 1)
    if rest_low:
        parts.insert(0, slicing.slice_in_dim(x, n - rest_low, n, axis=axis))
    if rest_high:
        parts.append(slicing.slice_in_dim(x, 0, rest_high, axis=axis))
    return slicing.concatenate(parts, axis)


def _mirror(x: Array, axis: int, count: int, skip_edge: bool, odd: bool, before: bool) -> Array:
    """Reflect at one end, repeatedly, until there are enough elements."""
    size = x.shape[axis]
    offset = int(skip_edge and size > 1)
    place = 0 if before else size - 1
    edge = slicing.slice_in_dim(x, place, place + 1, axis=axis)
    while count > 0:
        n = x.shape[axis]
        step = min_int(count, size - offset)
        count -= step
        start = offset if before else n - step - offset
        part = lax.rev(slicing.slice_in_dim(x, start, start + step, axis=axis), (axis,))
        if odd:
            part = subtract(multiply(2, edge), part)
            if size > 1:
                place = 0 if before else step - 1
                edge = slicing.slice_in_dim(part, place, place + 1, axis=axis)
        x = slicing.concatenate([part, x] if before else [x, part], axis)
    return x


def min_int(a: int, b: int) -> int:
    """The smaller integer; `min` is the reduction in this module."""
    return a if a < b else b


def _pad_by_function(x: Array, widths: Any, fun: Callable[..., Any], options: dict) -> Array:
    from namoo.numpy.mapping import apply_along_axis

    padded = _constant(x, widths, 0)
    for axis in range(x.ndim):
        padded = apply_along_axis(fun, axis, padded, widths[axis], axis, options)
    return broadcast_to(padded, padded.shape)


attach_shortcuts(globals())
