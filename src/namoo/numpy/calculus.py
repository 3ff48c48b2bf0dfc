"""Gradients, integrals and interpolation of sampled functions; convolution and correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.arithmetic import absolute, remainder
from namoo.numpy.differences import diff
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    check_arraylike,
    check_ranks,
    promote_types,
    same,
)
from namoo.numpy.same_type import const, is_complex, is_kind, refuse_complex
from namoo.numpy.searching import searchsorted
from namoo.numpy.selection import clip, where
from namoo.numpy.sorting import argsort
from namoo.primitives import cumulative
from namoo.primitives import elementwise as lax
from namoo.primitives.conv import conv_general_dilated
from namoo.primitives.shape import canonical_axis, expand_dims, moveaxis, reshape, rev
from namoo.primitives.slicing import concatenate, slice_in_dim


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule: Σ (xₖ₊₁ - xₖ)·(yₖ + yₖ₊₁)/2.

    Args:
        y: the values.
        x: where they are, a vector or an array of the shape of `y`.
        dx: the distance between them, where `x` is None; an array is broadcast with `y`.
        axis: the axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 3.0]))
        Array(6.5, dtype=float32)
    """
    check_arraylike("trapezoid", *([y] if x is None else [y, x]))
    if x is None:
        (y,) = promote_types("trapezoid", y, to=dtypes.to_inexact_dtype)
        step = array_of("trapezoid", dx)
    else:
        y, x = promote_types("trapezoid", y, x, to=dtypes.to_inexact_dtype)
        check_ranks("trapezoid", [y.shape, x.shape])
        step = diff(x, axis=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            step = expand_dims(step, range(1, y.ndim - canonical_axis(axis, y.ndim)))
    axis = canonical_axis(axis, y.ndim)
    n = y.shape[axis]
    after = slice_in_dim(y, min(n, 1), n, axis=axis)
    before = slice_in_dim(y, 0, max(n - 1, 0), axis=axis)
    return 0.5 * reductions.sum(step * (after + before), axis=axis - y.ndim)


def gradient(
    f: Any,
    *varargs: Any,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """The slope of values on a grid, by differences: central ones inside, one-sided at the ends.

    Args:
        f: the values.
        varargs: the distance between neighbours, one for all axes or one for each; or vectors of
            coordinates.
        axis: an axis, several, or None for all.
        edge_order: 1 (or None) for differences of two values at the ends, 2 for three.

    Returns:
        An array of the shape of `f`, or a list with one for each axis.

    Raises:
        TypeError: the number of distances is neither 1 nor the number of axes.
        ValueError: an axis is too short, or coordinates do not fit; another `edge_order`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))
        Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    f, *spacings = promote_types("gradient", f, *varargs, to=dtypes.to_inexact_dtype)
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}.")
    if axis is None:
        axes = list(range(f.ndim))
    else:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = [canonical_axis(i, f.ndim) for i in given]
    for i in axes:
        if f.shape[i] < order + 1:
            raise ValueError(
                f"gradient: axis {i} of an array of shape {f.shape} is too short, at least "
                f"{order + 1} elements are required."
            )
    if not spacings:
        spacings = [None] * len(axes)
    elif len(spacings) == 1:
        spacings = spacings * len(axes)
    elif len(spacings) != len(axes):
        raise TypeError(
            f"gradient: invalid number of spacing arguments {len(spacings)} for axis={axis}: give "
            "one for each axis, or one for all."
        )
    slopes = [_slope(f, h, i, order) for h, i in zip(spacings, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slope(f: Array, spacing: Array | None, axis: int, edge_order: int) -> Array:
    f = moveaxis(f, axis, f.ndim - 1)
    n = f.shape[-1]
    steps = None
    if spacing is None:
        spacing = const(f, 1)
    elif spacing.ndim:
        if spacing.ndim != 1:
            raise ValueError(
                f"gradient: coordinates must be vectors or numbers, got shape {spacing.shape}."
            )
        if spacing.size != n:
            raise ValueError(
                f"gradient: {spacing.size} coordinates for an axis of length {n}; they must agree."
            )
        steps = spacing[1:] - spacing[:-1]
    if steps is None:
        inner = (f[..., 2:] - f[..., :-2]) / (const(f, 2) * spacing)
        left = right = before = after = spacing
    else:
        left, right = steps[:-1], steps[1:]
        rise = (f[..., 2:] - f[..., 1:-1]) / right
        fall = (f[..., 1:-1] - f[..., :-2]) / left
        # The slope of the parabola through three points.
        inner = (left * rise + right * fall) / (left + right)
        before, after = steps[0], steps[-1]
    first = (f[..., 1:2] - f[..., :1]) / before
    last = (f[..., -1:] - f[..., -2:-1]) / after
    if edge_order == 2:
        # The same parabola at its outer points: its slope changes by the same amount on the other
        # side.
        next_step = before if steps is None else steps[1]
        last_step = after if steps is None else steps[-2]
        second = (f[..., 2:3] - f[..., 1:2]) / next_step
        first = first - before * (second - first) / (before + next_step)
        second = (f[..., -2:-1] - f[..., -3:-2]) / last_step
        last = last + after * (last - second) / (after + last_step)
    return moveaxis(concatenate([first, inner, last], f.ndim - 1), f.ndim - 1, axis)


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Array:
    """Angles without jumps: where neighbours differ by more than half a period, whole periods are
    added to the following elements.

    Args:
        p: the array.
        discont: the least difference that counts as a jump; half a period by default.
        axis: the axis.
        period: the period.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unwrap(jnp.array([0, 3, 2, 1]), period=4)
        Array([ 0, -1, -2, -3], dtype=int32)
    """
    p = array_of("unwrap", p)
    refuse_complex("unwrap", p, ValueError)
    dtype = dtypes.result_type(p, period)
    whole = dtypes.issubdtype(dtype, np.integer)
    axis = canonical_axis(axis, p.ndim)
    if not p.shape[axis]:
        return p
    n = p.shape[axis]
    p = p.astype(dtype)
    before, after = slice_in_dim(p, 0, n - 1, axis=axis), slice_in_dim(p, 1, n, axis=axis)
    step = after - before
    length = array_of("unwrap", period).astype(dtype)
    half = length // 2 if whole else length / 2
    low = -half
    wrapped = remainder(step - low, length) + low
    at_end = (wrapped == low) & (step > 0)
    if whole:
        # An odd whole period has no step of exactly half of it.
        at_end = at_end & (length % 2 == 0)
    wrapped = where(at_end, half, wrapped)
    limit = half if discont is None else array_of("unwrap", discont)
    correction = where(absolute(step) < limit, const(step, 0), wrapped - step)
    correction = correction.astype(dtype)
    first = slice_in_dim(p, 0, 1, axis=axis)
    return concatenate([first, after + cumulative.cumsum(correction, axis)], axis)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Values between given points, on the straight lines that join them.

    Args:
        x: the coordinates at which to interpolate.
        xp: the coordinates of the points, ascending (in any order, with a period).
        fp: their values.
        left, right: the values before the first and after the last point: a number, None for the
            value of that point, or 'extrapolate' to continue in a straight line.
        period: the coordinates are modulo this; `left` and `right` have no effect then.

    Raises:
        ValueError: `xp` and `fp` are not vectors of one length; complex coordinates; another
            string.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.interp(jnp.array([0.0, 1.5, 9.0]), jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))
        Array([10., 15., 20.], dtype=float32)
    """
    check_arraylike("interp", x, xp, fp)
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise ValueError(f"interp: {name} must be a number or 'extrapolate', got {end!r}.")
    x, xp, fp = arrays_of("interp", x, xp, fp)
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError(
            "xp and fp must be one-dimensional arrays of equal size, got shapes "
            f"{xp.shape} and {fp.shape} in interp."
        )
    if not xp.size:
        raise TypeError("interp: xp and fp are empty; there is nothing to interpolate between.")
    if is_complex(x) or is_complex(xp):
        raise ValueError("interp does not support complex x and xp.")
    place_dtype = dtypes.to_inexact_dtype(dtypes.result_type(x, xp))
    x, xp = x.astype(place_dtype), xp.astype(place_dtype)
    fp = fp.astype(dtypes.to_inexact_dtype(dtypes.result_type(fp, place_dtype)))
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, array_of("interp", period))
    i = clip(searchsorted(xp, x, side="right"), min(1, xp.size - 1), xp.size - 1)
    before = clip(i - 1, 0, xp.size - 1)
    rise, run = fp[i] - fp[before], xp[i] - xp[before]
    # No line joins two points with the same x.
    flat = absolute(run) <= np.spacing(dtypes.finfo(xp.dtype).eps)
    slope = (x - xp[before]) / where(flat, const(run, 1), run)
    out = where(flat, fp[before], fp[before] + slope.astype(fp.dtype) * rise)
    if period is None:
        if not isinstance(left, str):
            out = where(x < xp[0], fp[0] if left is None else left, out)
        if not isinstance(right, str):
            out = where(x > xp[-1], fp[-1] if right is None else right, out)
    return out


def _periodic(x: Array, xp: Array, fp: Array, period: Array) -> tuple[Array, Array, Array]:
    """All coordinates in one period, and a point of the neighbouring periods on either side."""
    if period.ndim:
        raise ValueError(f"interp: period must be a number, got shape {period.shape}.")
    period = absolute(period.astype(xp.dtype))
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period], 0)
    return x, xp, concatenate([fp[-1:], fp, fp[:1]], 0)


_MODES = ("full", "same", "valid")


def _vectors(name: str, a: Any, v: Any, mode: str, preferred: Any) -> list[Array]:
    a, v = promote_types(name, a, v, to=dtypes.to_inexact_dtype if preferred is None else same)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"jnp.{name} takes vectors, got shapes {a.shape} and {v.shape}.")
    if not a.size or not v.size:
        raise ValueError(f"jnp.{name}: inputs must not be empty, got {a.shape} and {v.shape}.")
    if mode not in _MODES:
        raise ValueError(f"jnp.{name}: mode must be one of {_MODES}, got {mode!r}.")
    return [a, v]


def _slide(x: Array, kernel: Array, mode: str, precision: Any, preferred: Any) -> Array:
    """Σₖ x[n + k]·kernel[k] of a longer and a shorter vector, with zeros around the longer one."""
    n = kernel.size
    padding = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}[mode]
    out = conv_general_dilated(
        reshape(x, (1, 1, x.size)),
        reshape(kernel, (1, 1, n)),
        (1,),
        [padding],
        precision=precision,
        preferred_element_type=preferred,
    )
    return reshape(out, (out.size,))


def convolve(
    a: Any,
    v: Any,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The convolution of two vectors: cₙ = Σₖ aₖ·vₙ₋ₖ.

    Args:
        a, v: the vectors.
        mode: 'full' for all n where they overlap; 'same' for as many as the longer vector has;
            'valid' for those where the shorter one is inside the longer one.
        precision, preferred_element_type: as for `dot`.

    Raises:
        ValueError: arrays that are empty or not vectors, or another mode.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
        Array([1., 3., 5., 3.], dtype=float32)
    """
    a, v = _vectors("convolve", a, v, mode, preferred_element_type)
    if a.size < v.size:
        a, v = v, a
    return _slide(a, rev(v, (0,)), mode, precision, preferred_element_type)


def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The cross-correlation of two vectors: cₙ = Σₖ aₙ₊ₖ·conj(vₖ).

    Args:
        a, v: the vectors.
        mode: as for `convolve`.
        precision, preferred_element_type: as for `dot`.

    Raises:
        ValueError: arrays that are empty or not vectors, or another mode.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
        Array([2., 3.], dtype=float32)
    """
    a, v = _vectors("correlate", a, v, mode, preferred_element_type)
    if a.size < v.size:
        # With the operands exchanged, the shifts are reversed.
        out = _slide(_conjugate(v), a, mode, precision, preferred_element_type)
        return rev(out, (0,))
    return _slide(a, _conjugate(v), mode, precision, preferred_element_type)


def _conjugate(x: Array) -> Array:
    return lax.conj(x) if is_kind(x, np.complexfloating) else x


attach_shortcuts(globals())
