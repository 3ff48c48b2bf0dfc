"""Convolutions over one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from namoo import lax, random
from namoo import numpy as jnp
from namoo.module.module import Module
from namoo.nn.layer import check_channels, check_rank, pads, per_axis, uniform_init

Sizes = int | Sequence[int]
Padding = str | int | Sequence[int] | Sequence[tuple[int, int]]

_MODES = {"ZEROS": "constant", "REFLECT": "reflect", "REPLICATE": "edge", "CIRCULAR": "wrap"}


class Conv(Module):
    """A convolution (a cross-correlation, as usual in networks) over the axes of one example.

        y[o, i] = b[o] + Σ_c Σ_k W[o, c, k] · x[c, i·stride + k·dilation]

    Channels come first. W and b are initialised uniformly between ±1/√n, where n is the number of
    inputs of one output: in_channels/groups · Π kernel_size.

    Args:
        num_spatial_dims: the number of spatial axes.
        in_channels: the channels of the input.
        out_channels: the channels of the result.
        kernel_size: of each spatial axis, or of all.
        stride: the distance between two outputs, in inputs.
        padding: `"SAME"`, `"SAME_LOWER"`, `"VALID"`, or the elements before and after each axis.
        dilation: the distance between two elements of the kernel.
        groups: the number of groups of channels; each group has its own kernels.
        use_bias: whether the layer has b.
        padding_mode: how the padding is filled: `"ZEROS"`, `"REFLECT"`, `"REPLICATE"` or
            `"CIRCULAR"`.
        dtype: of W and b.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> conv = namoo.nn.Conv2d(1, 4, kernel_size=3, padding="SAME", key=namoo.random.key(0))
        >>> conv(jnp.ones((1, 28, 28))).shape
        (4, 28, 28)
    """

    weight: Any
    bias: Any
    num_spatial_dims: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int
    use_bias: bool
    padding_mode: str

    def __init__(
        self,
        num_spatial_dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "ZEROS",
        dtype: Any = None,
        *,
        key: Any,
    ):
        n = num_spatial_dims
        check_groups(in_channels, out_channels, groups)
        self.kernel_size = per_axis(kernel_size, n, "kernel_size")
        self.weight, self.bias = start(
            in_channels, out_channels, groups, self.kernel_size, use_bias, dtype, key
        )
        self.stride = per_axis(stride, n, "stride")
        self.dilation = per_axis(dilation, n, "dilation")
        self.padding = pads(padding, n)
        self.padding_mode = padding_mode.upper()
        if self.padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {list(_MODES)}, not {padding_mode!r}")
        self.num_spatial_dims, self.groups, self.use_bias = n, groups, use_bias
        self.in_channels, self.out_channels = in_channels, out_channels

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the convolution of one example, channels first; `key` is not used."""
        check_rank(self, x, ["channels", *["space"] * self.num_spatial_dims])
        check_channels(self, x, self.in_channels)
        padding: Any = self.padding
        if self.padding_mode != "ZEROS":
            if isinstance(padding, str):
                extent = [
                    d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True)
                ]
                padding = lax.padtype_to_pads(x.shape[1:], extent, self.stride, padding)
            x = jnp.pad(x, [(0, 0), *padding], _MODES[self.padding_mode])
            padding = "VALID"
        y = lax.conv_general_dilated(
            x[None],
            self.weight,
            self.stride,
            padding,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )[0]
        return y if self.bias is None else y + self.bias


def check_groups(in_channels: int, out_channels: int, groups: int) -> None:
    if in_channels % groups or out_channels % groups:
        raise ValueError(
            f"the number of groups must divide the channels, but {groups} groups were asked for "
            f"with {in_channels} channels in and {out_channels} out"
        )


def start(
    in_channels: int,
    out_channels: int,
    groups: int,
    kernel_size: tuple[int, ...],
    use_bias: bool,
    dtype: Any,
    key: Any,
) -> tuple[Any, Any]:
    """Return the initial weights and bias of a convolution."""
    fan_in = in_channels // groups * math.prod(kernel_size)
    limit = 1 / math.sqrt(fan_in) if fan_in else 1.0
    weight_key, bias_key = random.split(key, 2)
    shape = (out_channels, in_channels // groups, *kernel_size)
    weight = uniform_init(weight_key, shape, dtype, limit)
    bias_shape = (out_channels, *(1 for _ in kernel_size))
    return weight, uniform_init(bias_key, bias_shape, dtype, limit) if use_bias else None


class Conv1d(Conv):
    """`Conv` over one axis.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> namoo.nn.Conv1d(2, 3, kernel_size=3, key=namoo.random.key(0))(jnp.ones((2, 8))).shape
        (3, 6)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(1, in_channels, out_channels, kernel_size, *args, **kwargs)


class Conv2d(Conv):
    """`Conv` over two axes.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> namoo.nn.Conv2d(2, 3, kernel_size=3, key=namoo.random.key(0))(jnp.ones((2, 8, 8))).shape
        (3, 6, 6)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(2, in_channels, out_channels, kernel_size, *args, **kwargs)


class Conv3d(Conv):
    """`Conv` over three axes.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> conv = namoo.nn.Conv3d(2, 3, kernel_size=2, key=namoo.random.key(0))
        >>> conv(jnp.ones((2, 4, 4, 4))).shape
        (3, 3, 3, 3)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(3, in_channels, out_channels, kernel_size, *args, **kwargs)
