"""Convolution: sums of products under a window that slides over an array."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from namoo._base import dtypes
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, is_linear
from namoo.primitives.contract import (
    bilinear_jvp,
    cast,
    matrix_product,
    multiply_in,
    product_in_xla,
)
from namoo.primitives.conv_shapes import (
    ConvDimensionNumbers,
    Pads,
    Shape,
    conv_dimension_numbers,
    conv_shape_tuple,
    dilated,
    padtype_to_pads,
    pair_pads,
)
from namoo.primitives.families import accepts
from namoo.primitives.precision import canonicalize_precision, is_algorithm, round_operands
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import (
    convert_element_type_p,
    moveaxis,
    reshape,
    rev,
    shape_of,
    zeros,
)

__all__ = ["conv_general_dilated", "conv_general_dilated_p"]

# Windows are copied side by side for one large product of matrices; at most this many bytes at a
# time.
_CHUNK_BYTES = 1 << 26


class ConvGeneralDilated(Primitive):
    """Convolution of `lhs` with the kernel `rhs`.

    y[n, o, p] = Σ x[n, c, p·stride + k·rhs_dilation - padding] · w[o, c, k], over c and k, where x
    is `lhs` with gaps of zeros by `lhs_dilation`.
    """

    name = "conv_general_dilated"

    def evaluate(
        self,
        x,
        w,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred_element_type,
    ):
        dtype = x.dtype if preferred_element_type is None else preferred_element_type
        if x.dtype != w.dtype:
            raise TypeError("dtypes differ")
        if is_algorithm(precision):
            x, w = round_operands(precision, x, w)
        lhs_spec, rhs_spec, out_spec = dimension_numbers

        def convolve(x, w):
            x = np.moveaxis(x.transpose(lhs_spec), 1, -1)
            w = np.moveaxis(w.transpose(rhs_spec), (1, 0), (-2, -1))
            x, w = _grouped(x, w, feature_group_count, batch_group_count)
            if all(gap == 1 for gap in lhs_dilation) or any(s != 1 for s in window_strides):
                out = _convolve(_pad(x, padding, lhs_dilation), w, window_strides, rhs_dilation)
            else:
                out = _convolve_gaps(x, w, padding, lhs_dilation, rhs_dilation)
            # From (group, batch, *spatial, feature) to (batch, feature, *spatial).
            out = np.moveaxis(out, 0, -2)
            out = out.reshape(*out.shape[:-2], w.shape[0] * w.shape[-1])
            out = np.moveaxis(out, -1, 1)
            return out.transpose(np.argsort(out_spec))

        return cast(multiply_in(convolve, x, w, dtype), dtype)

    def abstract(self, x, w, *, preferred_element_type, **params):
        if x.dtype != w.dtype:
            raise TypeError(
                "lax.conv_general_dilated requires arguments to have the same dtypes, got "
                f"{x.dtype}, {w.dtype}: convert one of them."
            )
        if not accepts(x.dtype, (np.number, np.bool_)):
            raise TypeError(f"conv_general_dilated does not accept dtype {x.dtype}.")
        dtype = x.dtype
        if preferred_element_type is not None:
            _check_preferred(dtype, preferred_element_type)
            dtype = preferred_element_type
        shape = _result_shape(x.shape, w.shape, **params)
        return ShapedArray(shape, dtype, x.weak_type and w.weak_type)

    def sharded(self, x, w, *, preferred_element_type, **params):
        lhs, _, out = params["dimension_numbers"]
        if any(w.entries) or x.entries[lhs[1]] is not None:
            rules.refuse(
                "Please specify the output sharding via `out_sharding` parameter of "
                f"`conv_general_dilated`. Got an input sharded as {x.spec}, a kernel as {w.spec}."
            )
        shape = _result_shape(x.shape, w.shape, **params)
        whole = [0] * len(shape)
        for i, j in zip(lhs, out, strict=True):
            whole[i] = shape[j]
        whole[lhs[1]] = x.shape[lhs[1]]
        entries = rules.resized("conv_general_dilated", x, whole)
        found = [None] * len(shape)
        for i, j in zip(lhs, out, strict=True):
            found[j] = entries[i]
        return found

    def jvp(self, primals, tangents, **params):
        return bilinear_jvp(self, primals, tangents, **params)

    def transpose(self, ct, x, w, **params):
        if is_linear(x):
            return [self._transpose_lhs(ct, x.aval, w, **params), None]
        return [None, self._transpose_rhs(ct, x, w.aval, **params)]

    def _transpose_lhs(
        self,
        ct,
        x: ShapedArray,
        w,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred_element_type,
    ):
        """The cotangent, with gaps by the strides, convolved with the reversed kernel."""
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        spatial = zip(
            (x.shape[d] for d in lhs_spec[2:]),
            (shape_of(w)[d] for d in rhs_spec[2:]),
            (shape_of(ct)[d] for d in out_spec[2:]),
            window_strides,
            lhs_dilation,
            rhs_dilation,
            padding,
            strict=True,
        )
        pads = []
        for size, k, out, stride, gap, step, (low, _) in spatial:
            window = dilated(k, step)
            before = window - 1 - low
            after = dilated(size, gap) + window - 1 - dilated(out, stride) - before
            pads.append((before, after))
        groups = max(feature_group_count, batch_group_count)
        o, i = rhs_spec[:2]
        if groups > 1:
            w = _fold(_unfold(w, o, groups), o, i)
        out = conv_general_dilated(
            ct,
            rev(_retyped(w, aval_of(ct)), rhs_spec[2:]),
            lhs_dilation,
            pads,
            window_strides,
            rhs_dilation,
            ConvDimensionNumbers(out_spec, (i, o, *rhs_spec[2:]), lhs_spec),
            groups,
            precision=precision,
        )
        if batch_group_count > 1:
            n, c = lhs_spec[:2]
            out = _fold(_unfold(out, c, groups), c, n)
        return _retyped(out, x)

    def _transpose_rhs(
        self,
        ct,
        x,
        w: ShapedArray,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred_element_type,
    ):
        """The input convolved with the cotangent, with batch and feature swapped."""
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        spatial = zip(
            (shape_of(x)[d] for d in lhs_spec[2:]),
            (w.shape[d] for d in rhs_spec[2:]),
            (shape_of(ct)[d] for d in out_spec[2:]),
            window_strides,
            lhs_dilation,
            rhs_dilation,
            padding,
            strict=True,
        )
        pads = []
        for size, k, out, stride, gap, step, (low, _) in spatial:
            window = dilated(k, step)
            pads.append((low, window + dilated(out, stride) - 1 - dilated(size, gap) - low))

        def swapped(spec):
            return (spec[1], spec[0], *spec[2:])

        out = conv_general_dilated(
            _retyped(x, aval_of(ct)),
            ct,
            rhs_dilation,
            pads,
            lhs_dilation,
            window_strides,
            ConvDimensionNumbers(swapped(lhs_spec), swapped(out_spec), swapped(rhs_spec)),
            batch_group_count,
            feature_group_count,
            precision=precision,
        )
        return _retyped(out, w)

    def batch(
        self, xs, dims, *, dimension_numbers, feature_group_count, batch_group_count, **params
    ):
        (x, w), (dx, dw) = xs, dims
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        size = shape_of(x)[dx] if dx is not None else shape_of(w)[dw]
        groups = max(feature_group_count, batch_group_count)
        out_axis = out_spec[1]
        if not size:
            # In an empty batch only the shape of the results matters.
            one = (
                aval_of(v).update(shape=tuple(n for i, n in enumerate(shape_of(v)) if i != d))
                for v, d in zip(xs, dims, strict=True)
            )
            out = self.abstract(
                *one,
                dimension_numbers=dimension_numbers,
                feature_group_count=feature_group_count,
                batch_group_count=batch_group_count,
                **params,
            )
            return zeros(out.update(shape=(0, *out.shape))), 0
        if dx is None:
            w = _fold(w, dw, rhs_spec[0], groups)
        elif dw is None:
            x = _fold(x, dx, lhs_spec[0], batch_group_count)
            out_axis = out_spec[0]
        else:
            # Each example becomes a group with its own kernel.
            if batch_group_count > 1:
                x, batch_group_count = _fold(x, dx, lhs_spec[0]), batch_group_count * size
            else:
                x, feature_group_count = _fold(x, dx, lhs_spec[1]), feature_group_count * size
            w = _fold(w, dw, rhs_spec[0])
        out = self.bind(
            x,
            w,
            dimension_numbers=dimension_numbers,
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
            **params,
        )
        if dx is None and groups > 1:
            # The features are (group, example, feature of the group).
            out = _unfold(_unfold(out, out_axis, groups), out_axis + 1, size)
            out = moveaxis(out, out_axis + 1, 0)
            return _fold(out, out_axis + 1, out_axis + 1), 0
        return _unfold(out, out_axis, size), out_axis

    def native(self, emit, x, w, *, precision, preferred_element_type, **params):
        if is_algorithm(precision):
            raise emit.unsupported()
        return emit.convolution(x, w, **params)

    def stablehlo(
        self, hlo, x, w, *, padding, dimension_numbers, precision, preferred_element_type, **sizes
    ):
        lhs, rhs, out = map(_letters, dimension_numbers, ("bf", "oi", "bf"))
        options = {
            "dimension_numbers": f"#stablehlo.conv<{lhs}x{rhs}->{out}>",
            "padding": hlo.matrix(padding),
            **sizes,
        }
        return product_in_xla(hlo, "convolution", x, w, precision, options)


def _letters(spec: Shape, pair: str) -> str:
    """The axes of an array in StableHLO's notation: two letters, and the numbers of the others."""
    names = [""] * len(spec)
    for i, d in enumerate(spec):
        names[d] = pair[i] if i < 2 else str(i - 2)
    return f"[{', '.join(names)}]"


def _fold(x: Any, src: int, dst: int, groups: int = 1) -> Any:
    """Merge the axis `src` into another one, as its slower part.

    `dst` counts the axes without `src`.  With `groups` the other axis is (group, element), and the
    new one (group, src, element).
    """
    x = moveaxis(x, src, dst)
    size, length = shape_of(x)[dst : dst + 2]
    if groups > 1:
        x = moveaxis(_unfold(x, dst + 1, groups), dst, dst + 1)
    return reshape(x, (*shape_of(x)[:dst], size * length, *shape_of(x)[dst + 2 + (groups > 1) :]))


def _unfold(x: Any, axis: int, size: int) -> Any:
    """Split an axis in two, the slower of which has the given length."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))


def _retyped(x: Any, aval: ShapedArray) -> Any:
    """`x` in the type of another value."""
    if aval_of(x).dtype == aval.dtype:
        return x
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type)


def _pad(x: np.ndarray, padding: Pads, dilation: Shape) -> np.ndarray:
    """An array (group, batch, *spatial, feature) with zeros around and between its elements."""
    if all(d == 1 for d in dilation) and all(pads == (0, 0) for pads in padding):
        return x
    sizes, take, put = [], [], []
    for size, gap, (low, high) in zip(x.shape[2:-1], dilation, padding, strict=True):
        total = dilated(size, gap) + low + high
        # The first element that stays inside, and how many.
        first = max(0, -(low // gap)) if low < 0 else 0
        place = low + first * gap
        count = max(0, min(size - first, -((place - total) // gap)))
        sizes.append(total)
        take.append(slice(first, first + count))
        put.append(slice(place, place + dilated(count, gap), gap))
    out = np.zeros((*x.shape[:2], *sizes, x.shape[-1]), x.dtype)
    out[:, :, *put] = x[:, :, *take]
    return out


def _grouped(x, w, feature_groups: int, batch_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Input as (group, batch, *spatial, feature) and kernel as (group, *spatial, feature, out)."""
    groups = feature_groups * batch_groups
    if groups == 1:
        return x[None], w[None]
    if batch_groups > 1:
        x = x.reshape(batch_groups, x.shape[0] // batch_groups, *x.shape[1:])
    else:
        x = x.reshape(*x.shape[:-1], feature_groups, x.shape[-1] // feature_groups)
        x = np.moveaxis(x, -2, 0)
    return x, np.moveaxis(w.reshape(*w.shape[:-1], groups, w.shape[-1] // groups), -2, 0)


def _convolve(x: np.ndarray, w: np.ndarray, strides: Shape, steps: Shape) -> np.ndarray:
    """Products of all windows with the kernel, group by group: (group, batch, *places, out)."""
    groups, batch, *spatial, features = x.shape
    kernel, outs = w.shape[1:-2], w.shape[-1]
    places = [
        max(0, (size - dilated(k, step)) // stride + 1)
        for size, k, stride, step in zip(spatial, kernel, strides, steps, strict=True)
    ]
    out = np.empty((groups, batch, *places, outs), x.dtype)
    columns = math.prod(kernel) * features
    if out.size == 0 or columns == 0:
        out[...] = 0
        return out
    inner = x.strides[2:-1]
    windows = as_strided(
        x,
        (groups, batch, *places, *kernel, features),
        (
            *x.strides[:2],
            *(s * stride for s, stride in zip(inner, strides, strict=True)),
            *(s * step for s, step in zip(inner, steps, strict=True)),
            x.strides[-1],
        ),
        writeable=False,
    )
    if features == 1 and outs <= 4 < groups and math.prod(kernel) <= math.prod(places):
        return _depthwise(windows, w, len(places))
    w = w.reshape(groups, columns, outs)
    rows = math.prod(places)
    step = max(1, _CHUNK_BYTES // (groups * rows * columns * x.itemsize))
    for i in range(0, batch, step):
        part = windows[:, i : i + step]
        flat = part.reshape(groups, -1, columns)
        product = matrix_product(flat[0], w[0])[None] if groups == 1 else np.matmul(flat, w)
        if step >= batch:
            return product.reshape(out.shape)
        out[:, i : i + step] = product.reshape(out[:, i : i + step].shape)
    return out


def _convolve_gaps(x, w, padding: Pads, gaps: Shape, steps: Shape) -> np.ndarray:
    """Convolution of an input with gaps, without multiplying by the zeros in the gaps.

    Results `gap` apart use the same elements of the kernel; the other elements would multiply
    zeros: each such set is a convolution of the input itself with a part of the kernel.
    """
    kernel = w.shape[1:-2]
    places = [
        max(0, dilated(size, gap) + low + high - dilated(k, step) + 1)
        for size, k, gap, step, (low, high) in zip(
            x.shape[2:-1], kernel, gaps, steps, padding, strict=True
        )
    ]
    out = np.zeros((*x.shape[:2], *places, w.shape[-1]), x.dtype)
    for first in np.ndindex(*gaps):
        part = [
            _one_set(*numbers)
            for numbers in zip(
                first, x.shape[2:-1], kernel, places, gaps, steps, padding, strict=True
            )
        ]
        if all(numbers is not None for numbers in part):
            taps, pads, wide = zip(*part, strict=True)
            ones = (1,) * len(kernel)
            padded = _pad(x, pads, ones)
            index = tuple(slice(f, None, gap) for f, gap in zip(first, gaps, strict=True))
            out[:, :, *index] = _convolve(padded, w[:, *taps], ones, wide)
    return out


def _one_set(first, size, k, places, gap, step, pads) -> tuple[slice, tuple[int, int], int] | None:
    """Along one axis: which kernel elements the results first, first + gap, … use, how the input
    is then padded, and how far apart those elements are in it; None if there are none."""
    common = math.gcd(step, gap)
    period = gap // common
    start = next((i for i in range(period) if (i * step + first - pads[0]) % gap == 0), k)
    taps, wide = len(range(start, k, period)), step // common
    count = len(range(first, places, gap))
    if not taps or not count:
        return None
    low = (pads[0] - first - start * step) // gap
    return slice(start, None, period), (low, count - 1 + dilated(taps, wide) - size - low), wide


def _depthwise(windows: np.ndarray, w: np.ndarray, ndim: int) -> np.ndarray:
    """One feature in each group: a sum over the positions of the kernel, for all groups at once."""
    windows = np.moveaxis(windows[..., 0], 0, -1)
    w = np.moveaxis(w[..., 0, :], 0, -2)
    kernel = w.shape[:ndim]
    total = np.zeros((*windows.shape[: ndim + 1], *w.shape[ndim:]), windows.dtype)
    for place in np.ndindex(*kernel):
        index = (slice(None), *[slice(None)] * ndim, *place)
        total += windows[index][..., None] * w[place]
    return np.moveaxis(total, -2, 0)


def _check_preferred(dtype: Any, preferred: Any) -> None:
    """A result may be wider than the operands, and floating where they are integers."""
    kinds = (np.integer, np.floating, np.complexfloating)
    to_float = accepts(dtype, (np.integer,)) and accepts(preferred, (np.floating,))
    if not to_float and any(accepts(dtype, (k,)) and not accepts(preferred, (k,)) for k in kinds):
        raise TypeError(
            f"preferred_element_type {preferred} is not possible for operands of type {dtype}: "
            "integers give integers or floats, floats give floats, complex numbers complex ones."
        )
    if (
        not to_float
        and accepts(dtype, (np.signedinteger,))
        and not accepts(preferred, (np.signedinteger,))
    ):
        raise TypeError(
            f"preferred_element_type {preferred} must be signed, as the operands' {dtype} is."
        )
    if dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            f"preferred_element_type {preferred} must not be narrower than the operands' {dtype}."
        )


def _result_shape(
    x: Shape,
    w: Shape,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
) -> Shape:
    """The shape of the result, or an error that names the mismatch."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    count = len(lhs_spec) - 2
    for name, values in (
        ("window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(values) != count:
            raise ValueError(
                f"conv_general_dilated window and {name} must have the same number of dimensions: "
                f"one number for each of the {count} spatial axes, got {values}."
            )
        if any(v < 1 for v in values):
            error = ValueError if name == "window_strides" else TypeError
            raise error(f"conv_general_dilated: {name} must be positive, got {values}.")
    lhs, rhs = [x[d] for d in lhs_spec], [w[d] for d in rhs_spec]
    for name, groups, size, what in (
        ("feature_group_count", feature_group_count, lhs[1], "feature"),
        ("batch_group_count", batch_group_count, lhs[0], "batch"),
    ):
        if groups < 1:
            raise ValueError(
                f"conv_general_dilated {name} must be a positive integer, got {groups}."
            )
        if size % groups:
            raise ValueError(
                f"conv_general_dilated {name} must divide the lhs {what} dimension, "
                f"but {groups} does not divide {size} (lhs of shape {x})."
            )
        if rhs[0] % groups:
            raise ValueError(
                f"conv_general_dilated {name} must divide the rhs output feature dimension, "
                f"but {groups} does not divide {rhs[0]} (rhs of shape {w})."
            )
    if feature_group_count > 1 and batch_group_count > 1:
        raise ValueError(
            "conv_general_dilated: one of feature_group_count and batch_group_count must be 1, "
            f"got {feature_group_count} and {batch_group_count}."
        )
    if lhs[1] // feature_group_count != rhs[1]:
        raise ValueError(
            "conv_general_dilated lhs feature dimension divided by feature_group_count must equal "
            f"the rhs input feature dimension, but {lhs[1]} // {feature_group_count} != {rhs[1]} "
            f"(lhs of shape {x}, rhs of shape {w}, {dimension_numbers})."
        )
    shape = conv_shape_tuple(
        [*lhs[:2], *map(dilated, lhs[2:], lhs_dilation)],
        [*rhs[:2], *map(dilated, rhs[2:], rhs_dilation)],
        window_strides,
        padding,
        batch_group_count,
    )
    return tuple(shape[out_spec.index(i)] for i in range(len(out_spec)))


conv_general_dilated_p = ConvGeneralDilated()


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Convolution over any number of spatial axes, with strides, gaps and groups.

    y[n, o, p] = Σ x[n, c, p·stride + k·rhs_dilation - padding] · w[o, c, k], over c and k.

    Args:
        lhs: the input, of rank n + 2.
        rhs: the kernel, of rank n + 2.
        window_strides: the step of the window on each of the n axes.
        padding: "SAME", "SAME_LOWER", "VALID", or n pairs of zeros before and after.
        lhs_dilation: the distance of input elements, with zeros between them.
        rhs_dilation: the distance of kernel elements.
        dimension_numbers: which axes are which, as three strings like ("NHWC", "HWIO", "NHWC");
            None for "NCHW", "OIHW", "NCHW".
        feature_group_count: the number of groups of input features, each with its own kernels.
        batch_group_count: the number of groups of the batch, each with its own kernels.
        precision, preferred_element_type, out_sharding: as for `dot_general`.

    Raises:
        ValueError, TypeError: shapes, groups or types do not fit; the message says which.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, w = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 5))
        >>> layout = ("NHWC", "HWIO", "NHWC")
        >>> conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=layout).shape
        (1, 4, 4, 5)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            conv_general_dilated,
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
        )
    x, w = shape_of(lhs), shape_of(rhs)
    if len(x) != len(w):
        kind = ValueError if isinstance(dimension_numbers, ConvDimensionNumbers) else TypeError
        raise kind(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, got shapes "
            f"{x} and {w}."
        )
    numbers = conv_dimension_numbers(x, w, dimension_numbers)
    numbers = ConvDimensionNumbers(*(tuple(map(operator.index, spec)) for spec in numbers))
    ones = (1,) * (len(x) - 2)
    strides = tuple(map(operator.index, window_strides))
    gaps = ones if lhs_dilation is None else tuple(map(operator.index, lhs_dilation))
    steps = ones if rhs_dilation is None else tuple(map(operator.index, rhs_dilation))
    if isinstance(padding, str):
        if any(gap != 1 for gap in gaps):
            raise ValueError(
                "conv_general_dilated with lhs_dilation needs explicit padding, a (low, high) pair "
                f"for each spatial axis, got {padding!r}; or use conv_transpose."
            )
        if not len(strides) == len(steps) == len(ones):
            raise ValueError(
                "conv_general_dilated window and window_strides must have the same number of "
                f"dimensions, and rhs_dilation too: got window_strides {strides} and rhs_dilation "
                f"{steps} for {len(ones)} spatial axes."
            )
        window = [dilated(w[d], step) for d, step in zip(numbers.rhs_spec[2:], steps, strict=True)]
        padding = padtype_to_pads([x[d] for d in numbers.lhs_spec[2:]], window, strides, padding)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    params = {
        "window_strides": strides,
        "padding": pair_pads("conv_general_dilated", padding),
        "lhs_dilation": gaps,
        "rhs_dilation": steps,
        "dimension_numbers": numbers,
        "feature_group_count": operator.index(feature_group_count),
        "batch_group_count": operator.index(batch_group_count),
        "precision": canonicalize_precision(precision),
        "preferred_element_type": preferred_element_type,
    }
    conv_general_dilated_p.abstract(aval_of(lhs), aval_of(rhs), **params)
    return conv_general_dilated_p.bind(lhs, rhs, **params)
