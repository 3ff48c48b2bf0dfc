"""Layouts, padding and shapes of convolutions and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo.dimensions.sizes import dimension, larger

__all__ = [
    "conv_dimension_numbers", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose_shape_tuple", "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers", "padtype_to_pads",
]  # fmt: skip

Shape = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Which axes of a convolution's arrays are which.

    Args:
        lhs_spec: axes of the input: batch, feature, and the spatial ones.
        rhs_spec: axes of the kernel: output feature, input feature, and the spatial ones.
        out_spec: axes of the result: batch, feature, and the spatial ones.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Dimension numbers as positions, from strings such as `("NHWC", "HWIO", "NHWC")`.

    Args:
        lhs_shape, rhs_shape: the shapes of input and kernel.
        dimension_numbers: three strings; None for "NCHW", "OIHW", "NCHW" and the like; or
            `ConvDimensionNumbers`, which are returned.

    Raises:
        TypeError: the strings do not describe the arrays.

    Example:
        >>> conv_dimension_numbers((2, 8, 8, 3), (5, 5, 3, 4), ("NHWC", "HWIO", "NHWC"))
        ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs to have the same number of axes, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        order = tuple(range(ndim))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(
            "convolution dimension_numbers must be a tuple of three strings or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3 or not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers must be three strings, such as ('NHWC', 'HWIO', "
            f"'NHWC'), got {dimension_numbers!r}."
        )
    for name, letters in zip(("lhs", "rhs", "out"), dimension_numbers, strict=True):
        if len(letters) != ndim:
            raise TypeError(
                f"convolution dimension_numbers name {len(letters)} axes of {name}, {letters!r}, "
                f"but lhs and rhs have shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Shape, Shape, Shape]:
    """Positions of the axes that three strings name, in the order of `ConvDimensionNumbers`.

    Example:
        >>> conv_general_permutations(("NHWC", "HWIO", "NCHW"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
    """
    lhs, rhs, out = dimension_numbers
    for letters, pair in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(set(letters)) != len(letters):
            raise TypeError(
                f"convolution dimension_numbers cannot have duplicate characters, got {letters!r}."
            )
        if not set(pair) <= set(letters):
            raise TypeError(
                f"convolution dimension_numbers must contain the characters {pair[0]!r} and "
                f"{pair[1]!r} exactly once, got {letters!r}."
            )
    if not set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC"):
        raise TypeError(
            "convolution dimension_numbers must have the same spatial characters in all three "
            f"strings, got {tuple(dimension_numbers)}."
        )
    spatial = [c for c in rhs if c not in "OI"]
    a, b, c = (
        tuple(letters.index(letter) for letter in (*pair, *spatial))
        for letters, pair in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    )
    return a, b, c


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """Padding before and after each axis, from "SAME", "SAME_LOWER" or "VALID".

    With "SAME" there are ⌈size / stride⌉ windows along each axis, and if the padding is odd, the
    larger part comes after; with "SAME_LOWER" it comes before.

    Raises:
        RuntimeError: an unknown string.
        TypeError: not a string.

    Example:
        >>> padtype_to_pads((8, 9), (3, 2), (2, 3), "SAME")
        [(0, 1), (0, 0)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}. It must be a string.")
    mode = padding.upper()
    if mode == "VALID":
        return [(0, 0)] * len(in_shape)
    if mode not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}."
        )
    pads = []
    for axis in zip(in_shape, window_shape, window_strides, strict=True):
        size, window, stride = map(dimension, axis)
        count = -(-size // stride)
        total = larger((count - 1) * stride + window - size, 0)
        small = total // 2
        pads.append((small, total - small) if mode == "SAME" else (total - small, small))
    return pads


def dilated(size: int, dilation: int) -> int:
    """The length of an axis with `dilation - 1` gaps between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_count(size: int, window: int, stride: int) -> int:
    """How many windows fit on an axis."""
    return larger(0, (size - window) // stride + 1)


def pair_pads(name: str, padding: Any) -> Pads:
    """Explicit padding as a tuple of pairs, or a ValueError that shows it."""
    try:
        return tuple((dimension(low), dimension(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(
            f"padding argument to {name} should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        ) from None


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution's result, of arrays in the order "NCHW", "OIHW".

    Args:
        lhs_shape: (batch, feature, *spatial), with dilation already counted.
        rhs_shape: (output feature, input feature, *spatial), with dilation already counted.
        strides: the step between windows on each axis.
        pads: a string, or pairs of padding before and after.
        batch_group_count: into how many groups the batch is divided.

    Example:
        >>> conv_shape_tuple((2, 3, 8, 9), (4, 3, 2, 3), (1, 1), "VALID")
        (2, 4, 7, 7)
    """
    spatial = tuple(lhs_shape[2:])
    if isinstance(pads, str):
        pads = padtype_to_pads(spatial, rhs_shape[2:], strides, pads)
    if len(pads) != len(spatial):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(spatial)}, "
            f"got {len(pads)}."
        )
    padded = [size + low + high for size, (low, high) in zip(spatial, pads, strict=True)]
    if any(size < 0 for size in padded):
        raise ValueError(
            f"Negative padding {tuple(map(tuple, pads))} removes more elements than there are on "
            f"the spatial axes {spatial}."
        )
    windows = map(window_count, padded, rhs_shape[2:], strides)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *windows)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of a convolution's result, of arrays in the order given by the strings.

    Example:
        >>> layout = ("NHWC", "HWIO", "NHWC")
        >>> conv_general_shape_tuple((2, 8, 9, 3), (2, 3, 3, 4), (1, 2), "SAME", layout)
        (2, 8, 5, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding
    )
    return tuple(shape[out.index(i)] for i in range(len(out)))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of `conv_transpose`'s result, of arrays in the order given by the strings.

    Example:
        >>> layout = ("NHWC", "HWIO", "NHWC")
        >>> conv_transpose_shape_tuple((2, 8, 9, 3), (2, 3, 3, 4), (1, 2), "SAME", layout)
        (2, 8, 18, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    lhs_shape, rhs_shape = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    kernel = rhs_shape[2:]
    if isinstance(padding, str):
        padding = [
            transposed_pads(k, s, padding) for k, s in zip(kernel, window_strides, strict=True)
        ]
    spatial = map(dilated, lhs_shape[2:], window_strides)
    ones = (1,) * len(kernel)
    shape = conv_shape_tuple([*lhs_shape[:2], *spatial], rhs_shape, ones, padding)
    return tuple(shape[out.index(i)] for i in range(len(out)))


def transposed_pads(kernel: int, stride: int, padding: Any) -> tuple[int, int]:
    """Padding of a transposed convolution, from that of the convolution it inverts.

    Raises:
        ValueError: a string other than "SAME" and "VALID".
    """
    if padding == "SAME":
        total = kernel + stride - 2
        before = kernel - 1 if stride > kernel - 1 else -(-total // 2)
    elif padding == "VALID":
        total = kernel + stride - 2 + max(kernel - stride, 0)
        before = kernel - 1
    elif isinstance(padding, str):
        raise ValueError(
            f"conv_transpose takes padding 'SAME', 'VALID' or pairs of integers, got {padding!r}."
        )
    else:
        low, high = padding
        return kernel - 1 - low, kernel - 1 - high
    return before, total - before
