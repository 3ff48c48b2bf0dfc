"""Transposed convolutions: from the shape of a convolution's output to that of its input."""

from __future__ import annotations

from typing import Any

from namoo import lax
from namoo import numpy as jnp
from namoo.module.module import Module
from namoo.nn.convolution import Padding, Sizes, check_groups, start
from namoo.nn.layer import check_rank, pads, per_axis


class ConvTranspose(Module):
    """A transposed convolution: with stride s there are s outputs for each input.

    The output has the size of the input of the convolution with the same kernel, stride, padding
    and dilation; where several sizes are possible, `output_padding` selects one. With x↑s the input
    with s - 1 zeros between its elements,

        y = b + W ⋆ x↑s

    Args:
        num_spatial_dims: the number of spatial axes.
        in_channels: the channels of the input.
        out_channels: the channels of the result.
        kernel_size: of each spatial axis, or of all.
        stride: the number of outputs for each input.
        padding: the padding of the convolution: a word, or the elements before and after each axis.
        output_padding: how many elements longer the result is; less than the stride.
        dilation: the distance between two elements of the kernel.
        groups: the number of groups of channels; each group has its own kernels.
        use_bias: whether the layer has b.
        padding_mode: `"ZEROS"`, or `"CIRCULAR"` with padding `"SAME"` or `"SAME_LOWER"`.
        dtype: of W and b.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> key = namoo.random.key(0)
        >>> up = namoo.nn.ConvTranspose2d(4, 1, 3, stride=2, padding="SAME", key=key)
        >>> up(jnp.ones((4, 14, 14))).shape
        (1, 28, 28)
    """

    weight: Any
    bias: Any
    num_spatial_dims: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    output_padding: tuple[int, ...]
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
        output_padding: Sizes = 0,
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
        self.output_padding = per_axis(output_padding, n, "output_padding")
        self.padding = pads(padding, n)
        self.padding_mode = padding_mode.upper()
        self.num_spatial_dims, self.groups, self.use_bias = n, groups, use_bias
        self.in_channels, self.out_channels = in_channels, out_channels
        if any(o >= s for o, s in zip(self.output_padding, self.stride, strict=True)):
            raise ValueError(
                f"output_padding must be less than the stride, but is {self.output_padding} with "
                f"stride {self.stride}"
            )
        if self.padding_mode not in ("ZEROS", "CIRCULAR"):
            raise ValueError(
                f"padding_mode of a transposed convolution must be 'ZEROS' or 'CIRCULAR', not "
                f"{padding_mode!r}"
            )
        if self.padding_mode == "CIRCULAR" and (
            any(self.output_padding) or self.padding not in ("SAME", "SAME_LOWER")
        ):
            raise ValueError(
                "padding_mode='CIRCULAR' goes with padding='SAME' or 'SAME_LOWER' and without "
                f"output_padding, not with padding={padding!r}, output_padding={output_padding!r}"
            )

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the transposed convolution of one example, channels first; `key` is not used."""
        check_rank(self, x, ["channels", *["space"] * self.num_spatial_dims])
        padding = self._pads()
        if self.padding_mode == "CIRCULAR":
            pairs = [*zip(padding, self.stride, strict=True)]
            x = jnp.pad(x, [(0, 0), *((a // s, b // s) for (a, b), s in pairs)], "wrap")
            padding = [(a % s, b % s) for (a, b), s in pairs]
        y = lax.conv_general_dilated(
            x[None],
            self.weight,
            (1,) * self.num_spatial_dims,
            padding,
            lhs_dilation=self.stride,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )[0]
        return y if self.bias is None else y + self.bias

    def _pads(self) -> list[tuple[int, int]]:
        """Return the padding of the dilated input that gives the output size."""
        out = []
        for i in range(self.num_spatial_dims):
            k, s, d = self.kernel_size[i], self.stride[i], self.dilation[i]
            extra = self.output_padding[i]
            if self.padding == "VALID":
                before = after = 0
            elif isinstance(self.padding, str):
                total = d * (k - 1) - s + extra + 1
                extra, total = max(-total, 0), max(total, 0)
                before = (total + (self.padding == "SAME_LOWER")) // 2
                after = total - before
            else:
                before, after = self.padding[i]
            out.append((d * (k - 1) - before, d * (k - 1) - after + extra))
        return out


class ConvTranspose1d(ConvTranspose):
    """`ConvTranspose` over one axis.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> up = namoo.nn.ConvTranspose1d(2, 3, kernel_size=2, stride=2, key=namoo.random.key(0))
        >>> up(jnp.ones((2, 4))).shape
        (3, 8)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(1, in_channels, out_channels, kernel_size, *args, **kwargs)


class ConvTranspose2d(ConvTranspose):
    """`ConvTranspose` over two axes.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> up = namoo.nn.ConvTranspose2d(2, 3, kernel_size=2, stride=2, key=namoo.random.key(0))
        >>> up(jnp.ones((2, 4, 4))).shape
        (3, 8, 8)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(2, in_channels, out_channels, kernel_size, *args, **kwargs)


class ConvTranspose3d(ConvTranspose):
    """`ConvTranspose` over three axes.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> up = namoo.nn.ConvTranspose3d(2, 3, kernel_size=2, stride=2, key=namoo.random.key(0))
        >>> up(jnp.ones((2, 2, 2, 2))).shape
        (3, 4, 4, 4)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any
    ):
        super().__init__(3, in_channels, out_channels, kernel_size, *args, **kwargs)
