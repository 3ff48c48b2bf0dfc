"""Images of another size: what JAX has as `jax.image`.

Each axis is resized on its own, by a matrix that says how much every element of the input counts
for every element of the output. Where few elements count, the others are not read.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.analysis.reflection import eval_context
from namoo.api.inspect import is_traced
from namoo.core.array import Array
from namoo.core.avals import canonical_shape
from namoo.numpy.promote import promote_inexact, promote_types
from namoo.primitives.precision import Precision
from namoo.primitives.shape import canonical_axis
from namoo.transforms.linear_call import linear_call

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__dir__ = __all__.copy


class ResizeMethod(enum.Enum):
    """How values between the elements of an image are found.

    NEAREST is the nearest element, LINEAR linear interpolation (a triangle), CUBIC that of Keys
    with a = -0.5, CUBIC_PYTORCH the same with a = -0.75, as PyTorch and OpenCV have it, LANCZOS3
    and LANCZOS5 windowed sincs, AREA the mean over the area of an element.

    Example:
        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name."""
        for method, names in _NAMES.items():
            if s in names.split():
                return method
        known = " ".join(_NAMES.values()).split()
        raise ValueError(f"Unknown resize method {s!r}; write one of {known}.")


_NAMES = {
    ResizeMethod.NEAREST: "nearest",
    ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch",
    ResizeMethod.AREA: "area",
}


def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Array], Array]:
    """Keys' piecewise cubic with the slope `a` at 1."""

    def kernel(x):
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((x - 5) * x + 8) * x * a - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


def _lanczos(radius: float) -> Callable[[Array], Array]:
    """sinc(x) sinc(x / radius), up to the radius."""

    def kernel(x):
        product = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
        out = product / jnp.where(x == 0, 1, np.pi**2 * x * x)
        return jnp.where(x > radius, 0, jnp.where(x > 1e-3, out, 1))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Array], Array]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}
"""Weights by distance, in elements of the coarser image."""


def _weights(
    size: int, new_size: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool
) -> Array:
    """How much each element of an axis counts for each new one, [size, new_size]."""
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    dtype = dtypes.result_type(scale, translation)
    step = 1.0 / scale
    place = jnp.arange(new_size, dtype=dtype)
    shift = translation * step
    # Where the centres of the new elements are on the old axis.
    centre = (place + 0.5) * step - shift - 0.5
    if method is ResizeMethod.AREA:
        left = place * step - shift
        old = jnp.arange(size, dtype=dtype)[:, None]
        overlap = jnp.minimum(left + step, old + 1) - jnp.maximum(left, old)
        weights = jnp.maximum(0, overlap)
    else:
        # Edges are repeated by as many elements as the kernel reaches, for that one method.
        reach = 2 if method is ResizeMethod.CUBIC_PYTORCH else 0
        old = jnp.arange(-reach, size + reach, dtype=dtype)[:, None]
        width = jnp.maximum(step, 1.0) if antialias else 1.0
        weights = _KERNELS[method](jnp.abs(centre - old) / width)
        if reach:
            home = np.clip(np.arange(-reach, size + reach), 0, size - 1)
            weights = jnp.zeros((size, new_size), weights.dtype).at[home].add(weights)
    total = jnp.sum(weights, axis=0, keepdims=True)
    is_seen = jnp.abs(total) > 1000 * float(np.finfo(np.float32).eps)
    weights = jnp.where(is_seen, weights / jnp.where(total == 0, 1, total), 0)
    if method is ResizeMethod.CUBIC_PYTORCH:
        return weights
    return jnp.where((centre >= -0.5) & (centre <= size - 0.5), weights, 0)


def _resample(
    x: Array,
    shape: Sequence[int],
    axes: Sequence[int],
    scale: Sequence[Any],
    translation: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Array:
    """Resize some axes of an array of floats, one after another."""
    for axis, factor, offset in zip(axes, scale, translation, strict=True):
        weights = _weights(x.shape[axis], shape[axis], factor, offset, method, antialias)
        x = _product(x, weights, axis, precision)
    return x


def _product(x: Array, weights: Any, axis: int, precision: Any) -> Array:
    """Multiply one axis of an array by a matrix."""
    weights = jnp.asarray(weights).astype(x.dtype)
    return jnp.moveaxis(jnp.tensordot(x, weights, (axis, 0), precision=precision), -1, axis)


# An axis is resized by its non-zero weights if there are at most so many for each new element, and
# this many times more elements. Each becomes a term of an unrolled sum.
_MOST_TAPS, _FEWER = 16, 8
# A product of fewer multiplications than this takes less time than finding these weights does.
_SMALL_PRODUCT = 1 << 20
# Axes after the resized one with fewer elements than this, together, are joined with it: vectors
# run along all of them.
_SHORT_ROW = 16


def _taps(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The elements that count for each new one, and how much: two arrays [taps, new_size].

    None if there are many of them.
    """
    size, new_size = weights.shape
    if 0 in weights.shape:
        return None
    used = weights != 0
    used[0] |= ~used.any(0)  # one that nothing counts for
    first, last = used.argmax(0), size - 1 - used[::-1].argmax(0)
    taps = int((last - first).max()) + 1
    if taps > _MOST_TAPS or taps * _FEWER > size:
        return None
    places = np.minimum(first, size - taps) + np.arange(taps)[:, None]
    return places.astype(np.int32), weights[places, np.arange(new_size)]


def _weighted(x: Array, weights: np.ndarray, axis: int, precision: Any) -> Array:
    """Multiply one axis of an array by a known matrix; read few elements where few count."""
    found = _taps(weights)
    if found is None:
        return _product(x, weights, axis, precision)
    places, parts = found
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    row = math.prod(after)
    if row < _SHORT_ROW:
        places = (places[..., None] * row + np.arange(row, dtype=np.int32)).reshape(len(places), -1)
        parts = np.repeat(parts, row, axis=1)
        flat = x.reshape(*before, -1)
    else:
        parts = parts[..., None]
        flat = x.reshape(*before, x.shape[axis], row)
    # Half-precision sums are rounded once, as those of products are.
    wide = dtypes.result_type(x.dtype, np.float32)
    terms = [
        jnp.take(flat, at, axis=axis, mode="clip").astype(wide) * part.astype(wide)
        for at, part in zip(places, parts, strict=True)
    ]
    return functools.reduce(operator.add, terms).astype(x.dtype).reshape(*before, -1, *after)


def _resized(x: Array, new_size: int, axis: int, method: ResizeMethod, antialias: bool, precision):
    """Resize one axis, by weights that are known."""
    size = x.shape[axis]
    scale = new_size / size if new_size else 1.0
    is_known = all(isinstance(n, int) for n in (*x.shape, new_size))
    if not is_known or x.size * new_size < _SMALL_PRODUCT:
        weights = _weights(size, new_size, scale, 0.0, method, antialias)
        return _product(x, weights, axis, precision)
    with eval_context():
        weights = np.asarray(_weights(size, new_size, scale, 0.0, method, antialias))
    if not is_traced(x):
        return _weighted(x, weights, axis, precision)
    # The transpose reads few elements, too; that of a gather would scatter.
    return linear_call(
        lambda _, x: _weighted(x, weights, axis, precision),
        lambda _, ct: _weighted(ct, weights.T, axis, precision),
        (),
        x,
    )


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else ResizeMethod(method)


def _new_shape(name: str, image: Any, shape: Any) -> tuple[int, ...]:
    shape = canonical_shape(shape)
    if len(shape) != image.ndim:
        raise ValueError(
            f"{name}: shape {shape} must have a length for each of the {image.ndim} axes of the "
            f"image, whose shape is {image.shape}."
        )
    return shape


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Scale an image about its corner, then move it.

        output[y] = input[(y - translation) / scale]

    It can be differentiated by the image, by the scale and by the translation.

    Args:
        image: an array.
        shape: the shape of the result; axes that are not in `spatial_dims` stay unchanged.
        spatial_dims: the axes to be scaled and moved.
        scale: a vector of factors, one for each of these axes.
        translation: a vector of offsets, one for each of these axes.
        method: a method but 'nearest', or its name.
        antialias: smooth the image where it gets smaller.
        precision: the precision of products.

    Returns:
        The image; zero where there is nothing of the old one.

    Raises:
        ValueError: a shape of another rank, the method 'nearest', or an unknown one.

    Example:
        >>> import namoo.numpy as jnp
        >>> scale_and_translate(
        ...     jnp.array([1.0, 2.0]), (3,), (0,), jnp.ones(1), jnp.ones(1), "linear"
        ... )
        Array([0., 1., 2.], dtype=float32)
    """
    shape = _new_shape("scale_and_translate", image, shape)
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "scale_and_translate cannot do the method 'nearest', which has no weights: write "
            "'linear'."
        )
    (x,) = promote_inexact("scale_and_translate", image)
    factors, offsets = promote_types(
        "scale_and_translate", scale, translation, to=dtypes.to_inexact_dtype
    )
    axes = [canonical_axis(operator.index(axis), x.ndim) for axis in spatial_dims]
    if factors.shape != (len(axes),) or offsets.shape != (len(axes),):
        raise ValueError(
            f"scale_and_translate: scale and translation must have shape ({len(axes)},), an "
            f"element for each of spatial_dims, got {factors.shape} and {offsets.shape}."
        )
    return _resample(x, shape, axes, list(factors), list(offsets), method, antialias, precision)


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """An image in another size.

    Args:
        image: an array.
        shape: the new shape, of the same rank.
        method: how values between elements are found: 'nearest', 'linear' ('bilinear',
            'trilinear', 'triangle'), 'cubic' ('bicubic', 'tricubic'), 'cubic-pytorch', 'lanczos3',
            'lanczos5' or 'area'.
        antialias: smooth the image where it gets smaller; 'nearest' does not.
        precision: the precision of products.

    Raises:
        ValueError: a shape of another rank, or an unknown method.

    Example:
        >>> import namoo.numpy as jnp
        >>> resize(jnp.array([0.0, 2.0]), (4,), "linear")
        Array([0. , 0.5, 1.5, 2. ], dtype=float32)
    """
    shape = _new_shape("resize", image, shape)
    method = _method(method)
    axes = [i for i, (old, new) in enumerate(zip(image.shape, shape, strict=True)) if old != new]
    if method is ResizeMethod.NEAREST:
        x = jnp.asarray(image)
        for axis in axes:
            x = jnp.take(x, _nearest(x.shape[axis], shape[axis]), axis=axis)
        return x
    (x,) = promote_inexact("resize", image)
    # In the order of least work: axes that shrink come first, and a last axis, whose elements are
    # read one by one, while there are few.
    shrinking = [axis for axis in axes if shape[axis] < x.shape[axis]]
    growing = [axis for axis in reversed(axes) if axis not in shrinking]
    for axis in shrinking + growing:
        x = _resized(x, shape[axis], axis, method, antialias, precision)
    return x


def _nearest(size: int, new_size: int) -> np.ndarray:
    """The old element that each new one is in."""
    centre = (np.arange(new_size, dtype=np.float32) + np.float32(0.5)) * np.float32(size)
    return np.floor(centre / np.float32(new_size)).astype(np.int32)


_guard(globals())
