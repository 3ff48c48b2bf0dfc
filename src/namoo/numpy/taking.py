"""`take`, `put` and their `_along_axis` forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import remainder
from namoo.numpy.at import update, warn_if_unsafe
from namoo.numpy.indexing import Mode, Shape, component, get, static_fill
from namoo.numpy.promote import array_of, arrays_of
from namoo.primitives.elementwise import clamp
from namoo.primitives.gather import gather_p, scatter_p
from namoo.primitives.gather_dimensions import (
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
)
from namoo.primitives.shape import (
    broadcast_to,
    canonical_axis,
    convert_element_type,
    expand_dims,
    full,
    reshape,
)
from namoo.primitives.slicing import concatenate, slice_in_dim


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Elements of an array along an axis.

    Args:
        a: the array.
        indices: integers; negative ones count from the end, unless `mode` is 'clip'.
        axis: the axis to take along; None takes from the flattened array.
        out: not used.
        mode: what indices out of bounds give: 'fill' (the default), 'clip' or 'wrap'.
        unique_indices: promise that no index comes twice.
        indices_are_sorted: promise that the indices increase.
        fill_value: the value for 'fill'; by default NaN, or the extreme integer.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the axis does not exist; the mode is unknown; the indices are not integers.
        IndexError: something is taken from an axis of length 0.

    Example:
        >>> import namoo.numpy as jnp
        >>> take(jnp.array([10.0, 20.0, 30.0]), jnp.array([2, 0, 5]))
        Array([30., 10., nan], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError(
            "The 'out' argument to jnp.take is not supported: use the result."
        )
    x, index = arrays_of("take", a, indices)
    axis = None if axis is None else canonical_axis(axis, x.ndim)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.take is not supported: whether an index is out of bounds may "
            "not be known yet. Use mode='fill' (NaN) or 'clip', or check the indices before."
        )
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode {mode!r} for jnp.take: it is 'fill', 'clip' or 'wrap'.")
    if index.dtype == np.bool_:
        index = convert_element_type(index, np.int32)
    if not dtypes.issubdtype(index.dtype, np.integer):
        raise ValueError(f"take: indices must have an integer type, got {index.dtype}.")
    n = x.shape[axis]
    if n == 0 and index.size:
        raise IndexError(
            f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {x.shape}."
        )
    if mode == "wrap" and n:
        # NumPy's own "wrap" subtracts the length until the index fits.
        index = remainder(index, np.asarray(n, index.dtype))
    key = (*(slice(None),) * axis, index)
    flags = (indices_are_sorted, unique_indices)
    if mode == "clip":
        return get(x, key, "clip", None, *flags, wrap=False)
    if mode == "wrap":
        return get(x, key, PROMISE_IN_BOUNDS, None, *flags, wrap=False)
    chosen = FILL_OR_DROP if fill_value is not None else GatherScatterMode.from_any(mode)
    return get(x, key, chosen, fill_value, *flags)


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Mode = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements along an axis, with separate indices at each position of the other axes.

    With `axis` the last of two: `out[i, j] = arr[i, indices[i, j]]`.

    Args:
        arr: the array.
        indices: integers, with as many axes as `arr`; their other axes broadcast with its.
        axis: the axis to take along; None takes from the flattened array.
        mode: what indices out of bounds give: 'fill' (the default), 'clip', 'promise_in_bounds'
            or 'one_hot' (zeros).
        fill_value: the value for 'fill'; by default NaN, or the extreme integer.
        wrap_negative_indices: whether negative indices count from the end; by default they do,
            unless `mode` is 'promise_in_bounds'.

    Raises:
        TypeError: an argument is not an array; the indices are not integers.
        ValueError: shapes do not fit; the axis does not exist; the mode is unknown.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
        >>> take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
        Array([[1, 2, 3],
               [4, 5, 6]], dtype=int32)
    """
    x, index = arrays_of("take_along_axis", arr, indices)
    if not dtypes.issubdtype(index.dtype, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {index.dtype}.")
    if axis is None:
        if index.ndim != 1:
            raise ValueError(
                f"take_along_axis indices must be 1D if axis=None, got shape {index.shape}."
            )
        x, axis = reshape(x, (x.size,)), 0
    if x.ndim != index.ndim:
        raise ValueError(
            "take_along_axis: indices and arr must have the same number of dimensions, got shapes "
            f"{index.shape} and {x.shape}."
        )
    axis = canonical_axis(axis, x.ndim)
    kind = GatherScatterMode.from_any(mode if fill_value is None else mode or "fill")
    wrap = wrap_negative_indices
    if wrap is None:
        wrap = mode is None or kind is not PROMISE_IN_BOUNDS
    if kind is FILL_OR_DROP and fill_value is None:
        fill_value = default_fill(x.dtype)
    return _take_along(x, index, axis, kind, fill_value, wrap)


def _take_along(
    x: Array, index: Array, axis: int, mode: GatherScatterMode, fill_value: Any, wrap: bool
) -> Any:
    """The gather of `take_along_axis`.

    On each other axis the two arrays are paired; or one of them has length 1 there: then the
    operand's axis is dropped, or the index's axis, and the operand's is in the window.
    """
    both, window, x_gone, index_gone = [], [], [], []
    for d, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)):
        if d == axis:
            continue
        if n == m:
            both.append(d)
        elif n == 1:
            x_gone.append(d)
        elif m == 1:
            window.append(d)
            index_gone.append(d)
        else:
            raise ValueError(
                "Incompatible shapes for broadcasting in take_along_axis: arr has shape "
                f"{x.shape}, indices have shape {index.shape}; they may differ on axis {axis} only."
            )
    shape = [n if m == 1 else m for n, m in zip(x.shape, index.shape, strict=True)]
    shape[axis] = index.shape[axis]
    if 0 in shape or 0 in x.shape and mode is FILL_OR_DROP:
        # There is nothing to take, or from an empty axis, where every index is out of bounds.
        return full(tuple(shape), fill_value or 0, x.dtype)
    places = component(getattr(index, "_value", index), x.shape[axis], wrap)
    kept = tuple(m for d, m in enumerate(index.shape) if d not in index_gone)
    places = reshape(places, (*kept, 1))
    x = reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in x_gone))
    x_axis = axis - sum(d < axis for d in x_gone)
    batching = tuple(d - sum(g < d for g in x_gone) for d in both)
    numbers = GatherDimensionNumbers(
        tuple(window),
        (x_axis,),
        (x_axis,),
        batching,
        tuple(d - sum(g < d for g in index_gone) for d in both),
    )
    return gather_p.bind(
        x,
        places,
        dimension_numbers=numbers,
        slice_sizes=tuple(1 if d == x_axis or d in batching else n for d, n in enumerate(x.shape)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=mode,
        fill_value=static_fill(fill_value) if mode is FILL_OR_DROP else None,
    )


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jnp.{name} cannot modify arrays in-place, because arrays are immutable. Pass "
            f"inplace=False and use the result: x = jnp.{name}(x, ..., inplace=False)."
            + at_user_line()
        )


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Array:
    """An array with elements of its flattened form replaced.

    Args:
        a: the array.
        ind: integers, indices into the flattened array.
        v: the new values, repeated or cut to the number of indices.
        mode: what indices out of bounds mean: None leaves them out, 'clip' or 'wrap'.
        inplace: must be False: arrays cannot be changed.

    Raises:
        ValueError: `inplace` is True; the mode is unknown.

    Example:
        >>> import namoo.numpy as jnp
        >>> put(jnp.zeros((2, 2)), jnp.array([0, 3]), jnp.array([5.0, 6.0]), inplace=False)
        Array([[5., 0.],
               [0., 6.]], dtype=float32)
    """
    _refuse_in_place("put", inplace)
    x, index, values = arrays_of("put", a, ind, v)
    if not index.size or not values.size:
        return x
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported: use 'clip'.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got mode={mode!r}.")
    index, values = reshape(index, (index.size,)), reshape(values, (values.size,))
    if values.size < index.size:
        values = concatenate([values] * -(-index.size // values.size), 0)
    values = slice_in_dim(values, 0, index.size)
    if mode == "clip":
        low, high = (np.asarray(b, index.dtype) for b in (0, x.size - 1))
        index = clamp(low, index, high)
    elif mode == "wrap":
        index = remainder(index, np.asarray(x.size, index.dtype))
    flat = reshape(x, (x.size,))
    return reshape(update("scatter", flat, index, values, mode="drop"), x.shape)


def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Mode = None,
) -> Array:
    """An array with elements along an axis replaced, at separate indices for each position.

    With `axis` the last of two: `out[i, indices[i, j]] = values[i, j]`.

    Args:
        arr: the array.
        indices: integers, with as many axes as `arr`; their other axes broadcast to its.
        values: the new values; they broadcast to the shape of the indices.
        axis: the axis to put along; None puts into the flattened array.
        inplace: must be False: arrays cannot be changed.
        mode: what indices out of bounds do: 'drop' (the default), 'clip', 'promise_in_bounds'.

    Raises:
        ValueError: `inplace` is True; shapes do not fit; the mode is unknown.
        TypeError: the indices are not integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> put_along_axis(jnp.zeros((2, 3)), jnp.array([[1], [2]]), 7.0, axis=1, inplace=False)
        Array([[0., 7., 0.],
               [0., 0., 7.]], dtype=float32)
    """
    _refuse_in_place("put_along_axis", inplace)
    original, index = arrays_of("put_along_axis", arr, indices)
    y = array_of("put_along_axis", values)
    if not dtypes.issubdtype(index.dtype, np.integer):
        raise TypeError(f"put_along_axis indices must be of integer type, got {index.dtype}.")
    x = original
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if x.ndim != index.ndim:
        raise ValueError(
            "put_along_axis: indices and arr must have the same number of dimensions, got shapes "
            f"{index.shape} and {x.shape}."
        )
    axis = canonical_axis(axis, x.ndim)
    shape = (*x.shape[:axis], index.shape[axis], *x.shape[axis + 1 :])
    warn_if_unsafe(x, y)
    index, y = _spread(index, shape, "indices"), _spread(y, shape, "values")
    others = tuple(d for d in range(x.ndim) if d != axis)
    out = scatter_p.bind(
        x,
        expand_dims(component(getattr(index, "_value", index), x.shape[axis], True), (x.ndim,)),
        convert_element_type(y, x.dtype),
        dimension_numbers=ScatterDimensionNumbers((), (axis,), (axis,), others, others),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.from_any(mode),
    )
    return reshape(out, original.shape)


def _spread(x: Array, shape: Shape, what: str) -> Any:
    if x.ndim > len(shape) or any(
        a not in (1, b) for a, b in zip(x.shape[::-1], shape[::-1], strict=False)
    ):
        raise ValueError(
            f"Incompatible shapes for broadcasting in put_along_axis: {what} of shape {x.shape} "
            f"do not broadcast to {shape}."
        )
    return broadcast_to(x, shape)


attach_shortcuts(globals())
