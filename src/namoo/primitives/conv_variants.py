"""Variants of convolution: with fewer arguments, transposed, as patches, or unshared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.avals import aval_of
from namoo.primitives.contract import dot_general
from namoo.primitives.conv import conv_general_dilated
from namoo.primitives.conv_shapes import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    dilated,
    transposed_pads,
)
from namoo.primitives.shape import moveaxis, rev, shape_of, transpose

__all__ = [
    "conv", "conv_general_dilated_local", "conv_general_dilated_patches", "conv_transpose",
    "conv_with_general_padding",
]  # fmt: skip


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolution of an input "NCHW…" with a kernel "OIHW…".

    Args:
        lhs: the input, of rank n + 2.
        rhs: the kernel, of rank n + 2.
        window_strides: the step of the window on each of the n axes.
        padding: "SAME", "SAME_LOWER" or "VALID".
        precision, preferred_element_type: as for `dot_general`.

    Example:
        >>> import namoo.numpy as jnp
        >>> conv(jnp.ones((1, 3, 8, 8)), jnp.ones((5, 3, 3, 3)), (1, 1), "VALID").shape
        (1, 5, 6, 6)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolution of an input "NCHW…" with a kernel "OIHW…", with gaps and any padding.

    The arguments are those of `conv_general_dilated`.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, w = jnp.ones((1, 3, 8)), jnp.ones((5, 3, 3))
        >>> conv_with_general_padding(x, w, (1,), [(1, 1)], (2,), None).shape
        (1, 5, 15)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _channels_last(ndim: int) -> tuple[str, str, str]:
    """The layout with features last, for up to three spatial axes."""
    if not 2 <= ndim <= 5:
        raise ValueError(
            f"conv_transpose has no default dimension_numbers for {ndim - 2} spatial axes; give "
            "them, such as ('NHWC', 'HWIO', 'NHWC')."
        )
    spatial = "DHW"[5 - ndim :]
    return f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """Convolution that undoes the strides of another one: its result is `strides` times larger.

    Args:
        lhs: the input.
        rhs: the kernel.
        strides: how much larger the result is along each spatial axis.
        padding: "SAME" or "VALID", of the convolution that is undone; or pairs of integers, of
            this one.
        rhs_dilation: the distance of kernel elements.
        dimension_numbers: the layouts; by default features come last, as in
            ("NHWC", "HWIO", "NHWC").
        transpose_kernel: reverse the kernel, and exchange its features: then this is the
            derivative of a convolution with the same kernel.
        precision, preferred_element_type: as for `dot_general`.
        use_consistent_padding: pairs of integers also refer to the convolution that is undone.

    Example:
        >>> import namoo.numpy as jnp
        >>> conv_transpose(jnp.ones((1, 4, 4, 3)), jnp.ones((2, 2, 3, 5)), (2, 2), "SAME").shape
        (1, 8, 8, 5)
    """
    ndim = len(shape_of(lhs))
    if dimension_numbers is None:
        dimension_numbers = _channels_last(ndim)
    numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    steps = (1,) * (ndim - 2) if rhs_dilation is None else tuple(rhs_dilation)
    if use_consistent_padding or padding in ("SAME", "VALID"):
        windows = [
            dilated(shape_of(rhs)[d], step)
            for d, step in zip(numbers.rhs_spec[2:], steps, strict=True)
        ]
        each = [padding] * len(windows) if isinstance(padding, str) else padding
        padding = [transposed_pads(k, s, p) for k, s, p in zip(windows, strides, each, strict=True)]
    if transpose_kernel:
        o, i = numbers.rhs_spec[:2]
        order = list(range(ndim))
        order[o], order[i] = i, o
        rhs = transpose(rev(rhs, numbers.rhs_spec[2:]), order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        padding,
        strides,
        steps,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The elements under the window of a convolution at each position, as features of the result.

    Args:
        lhs: the input, of rank n + 2.
        filter_shape: the size of the window along each of the n spatial axes.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for
            `conv_general_dilated`.
        precision, preferred_element_type: as for `dot_general`.

    Returns:
        An array like the result of that convolution, whose features are those of the input times
        the positions of the window, which vary faster.

    Example:
        >>> import namoo.numpy as jnp
        >>> conv_general_dilated_patches(jnp.arange(4.0)[None, None], (2,), (1,), "VALID")
        Array([[[0., 1., 2.],
                [1., 2., 3.]]], dtype=float32)
    """
    filter_shape = tuple(filter_shape)
    shape, ndim = shape_of(lhs), len(shape_of(lhs))
    numbers = conv_dimension_numbers(shape, (1,) * ndim, dimension_numbers)
    features, size = shape[numbers.lhs_spec[1]], math.prod(filter_shape)
    # One kernel per position of the window, with a single one there, for each feature.
    one_hot = np.eye(size, dtype=aval_of(lhs).dtype).reshape(size, 1, *filter_shape)
    kernel = np.tile(one_hot, (features, *(1,) * (ndim - 1)))
    return conv_general_dilated(
        lhs,
        kernel.transpose(np.argsort(numbers.rhs_spec)),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """Convolution with a different kernel at each position of the window.

    Args:
        lhs: the input, of rank n + 2.
        rhs: the kernels, of rank n + 2: spatial axes as the result has them, and as many input
            features as the input has, times the positions of the window, which vary faster.
        filter_shape: the size of the window along each of the n spatial axes.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
            `conv_general_dilated`.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, w = jnp.ones((1, 1, 4)), jnp.arange(6.0).reshape(1, 2, 3)
        >>> conv_general_dilated_local(x, w, (1,), "VALID", (2,))
        Array([[[3., 5., 7.]]], dtype=float32)
    """
    numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    lhs_spec, rhs_spec, out_spec = numbers
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(lhs_spec, rhs_spec, lhs_spec),
        precision,
    )
    contracting = ((lhs_spec[1],), (rhs_spec[1],))
    batch = (tuple(lhs_spec[2:]), tuple(rhs_spec[2:]))
    out = dot_general(patches, rhs, (contracting, batch), precision)
    # From (*spatial, batch, feature) to (batch, feature, *spatial).
    n = len(lhs_spec) - 2
    out = moveaxis(moveaxis(out, n, 0), n + 1, 1)
    return transpose(out, np.argsort(out_spec))
