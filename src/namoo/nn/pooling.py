"""Pooling: the maximum or mean of windows, of a given size or in a given number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from namoo import lax
from namoo import numpy as jnp
from namoo.api.map import vmap
from namoo.module.module import Module
from namoo.nn.layer import check_rank, pads, per_axis

Sizes = int | Sequence[int]


class Pool(Module):
    """A reduction over windows of the spatial axes of one example, channels first.

    Args:
        init: what the operation starts from.
        operation: an associative function of two numbers: `lax.max`, `lax.add`.
        num_spatial_dims: the number of spatial axes.
        kernel_size: of the windows.
        stride: the distance between two windows.
        padding: how many elements are added before and after each axis.
        use_ceil: whether a last window that is not full counts.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> namoo.nn.MaxPool2d(2, stride=2)(jnp.arange(16.0).reshape(1, 4, 4))
        Array([[[ 5.,  7.],
                [13., 15.]]], dtype=float32)
    """

    init: Any
    operation: Callable[[Any, Any], Any]
    num_spatial_dims: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    use_ceil: bool

    def __init__(
        self,
        init: Any,
        operation: Callable[[Any, Any], Any],
        num_spatial_dims: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        use_ceil: bool = False,
    ):
        n = num_spatial_dims
        self.init, self.operation, self.num_spatial_dims = init, operation, n
        self.kernel_size = per_axis(kernel_size, n, "kernel_size")
        self.stride = per_axis(stride, n, "stride")
        self.use_ceil = use_ceil
        found = pads(padding, n)
        if isinstance(found, str):
            raise ValueError(f"the padding of a pool is a number or numbers, not {padding!r}")
        for (before, after), size in zip(found, self.kernel_size, strict=True):
            if max(before, after) > size:
                raise ValueError(
                    f"padding may not be larger than the window, but is {(before, after)} for a "
                    f"window of {size}: a window would see nothing but padding"
                )
        self.padding = found

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the reduction of one example, channels first; `key` is not used."""
        check_rank(self, x, ["channels", *["space"] * self.num_spatial_dims])
        padding = list(self.padding)
        if self.use_ceil:
            rows = zip(x.shape[1:], padding, self.kernel_size, self.stride, strict=True)
            padding = [
                (before, after + stride * bool((size + before + after - kernel) % stride))
                for size, (before, after), kernel, stride in rows
            ]
        return lax.reduce_window(
            x,
            jnp.asarray(self.init, x.dtype),
            self.operation,
            (1, *self.kernel_size),
            (1, *self.stride),
            [(0, 0), *padding],
        )


class MaxPool(Pool):
    """The maximum of each window.

    Args:
        num_spatial_dims: the number of spatial axes.
        kernel_size: of the windows.
        stride: the distance between two windows.
        padding: how many elements are added before and after each axis.
        use_ceil: whether a last window that is not full counts.

    Example:
        >>> import namoo.numpy as jnp
        >>> MaxPool(1, 2, stride=2)(jnp.array([[1.0, 3.0, 2.0, 0.0]]))
        Array([[3., 2.]], dtype=float32)
    """

    def __init__(
        self,
        num_spatial_dims: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        use_ceil: bool = False,
    ):
        super().__init__(
            -math.inf, lax.max, num_spatial_dims, kernel_size, stride, padding, use_ceil
        )


class AvgPool(Pool):
    """The mean of each window, in which padding counts as zero.

    Args:
        num_spatial_dims: the number of spatial axes.
        kernel_size: of the windows.
        stride: the distance between two windows.
        padding: how many elements are added before and after each axis.
        use_ceil: whether a last window that is not full counts.

    Example:
        >>> import namoo.numpy as jnp
        >>> AvgPool(1, 2, stride=2)(jnp.array([[1.0, 3.0, 2.0, 0.0]]))
        Array([[2., 1.]], dtype=float32)
    """

    def __init__(
        self,
        num_spatial_dims: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        use_ceil: bool = False,
    ):
        super().__init__(0, lax.add, num_spatial_dims, kernel_size, stride, padding, use_ceil)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the means of one example, channels first; `key` is not used."""
        return super().__call__(x) / math.prod(self.kernel_size)


class AdaptivePool(Module):
    """A reduction over a given number of windows along each spatial axis.

    An axis of length n becomes t windows: the first n mod t of them have ⌊n/t⌋ + 1 elements, the
    others ⌊n/t⌋.

    Args:
        target_shape: the lengths of the spatial axes of the result.
        num_spatial_dims: the number of spatial axes.
        operation: from a vector to a number: `jnp.mean`, `jnp.max`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> namoo.nn.AdaptiveAvgPool1d(2)(jnp.array([[1.0, 2.0, 3.0, 4.0, 6.0]]))
        Array([[2., 5.]], dtype=float32)
    """

    target_shape: tuple[int, ...]
    operation: Callable[[Any], Any]

    def __init__(self, target_shape: Sizes, num_spatial_dims: int, operation: Callable[[Any], Any]):
        self.target_shape = per_axis(target_shape, num_spatial_dims, "target_shape")
        self.operation = operation

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the reduction of one example, channels first; `key` is not used."""
        check_rank(self, x, ["channels", *["space"] * len(self.target_shape)])
        for axis, target in enumerate(self.target_shape, start=1):
            x = self._along(x, axis, target)
        return x

    def _along(self, x: Any, axis: int, target: int) -> Any:
        x = jnp.moveaxis(x, axis, -1)
        size, longer = divmod(x.shape[-1], target)
        cut = longer * (size + 1)
        parts = [(x[..., :cut], longer, size + 1), (x[..., cut:], target - longer, size)]
        reduce = vmap(self.operation)
        found = [
            reduce(part.reshape(-1, width)).reshape(*x.shape[:-1], count)
            for part, count, width in parts
            if count
        ]
        return jnp.moveaxis(jnp.concatenate(found, axis=-1), -1, axis)


class MaxPool1d(MaxPool):
    """`MaxPool` over one axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> MaxPool1d(2, stride=2)(jnp.ones((2, 8))).shape
        (2, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(1, kernel_size, stride, padding, use_ceil)


class MaxPool2d(MaxPool):
    """`MaxPool` over two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> MaxPool2d(2, stride=2)(jnp.ones((2, 8, 8))).shape
        (2, 4, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(2, kernel_size, stride, padding, use_ceil)


class MaxPool3d(MaxPool):
    """`MaxPool` over three axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> MaxPool3d(2, stride=2)(jnp.ones((2, 8, 8, 8))).shape
        (2, 4, 4, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(3, kernel_size, stride, padding, use_ceil)


class AvgPool1d(AvgPool):
    """`AvgPool` over one axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> AvgPool1d(2, stride=2)(jnp.ones((2, 8))).shape
        (2, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(1, kernel_size, stride, padding, use_ceil)


class AvgPool2d(AvgPool):
    """`AvgPool` over two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> AvgPool2d(2, stride=2)(jnp.ones((2, 8, 8))).shape
        (2, 4, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(2, kernel_size, stride, padding, use_ceil)


class AvgPool3d(AvgPool):
    """`AvgPool` over three axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> AvgPool3d(2, stride=2)(jnp.ones((2, 8, 8, 8))).shape
        (2, 4, 4, 4)
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes = 1, padding: Any = 0, use_ceil: bool = False
    ):
        super().__init__(3, kernel_size, stride, padding, use_ceil)


class AdaptiveAvgPool1d(AdaptivePool):
    """`AdaptivePool` over one axis with `jnp.mean`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveAvgPool1d(3)(jnp.ones((2, 5))).shape
        (2, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 1, jnp.mean)


class AdaptiveAvgPool2d(AdaptivePool):
    """`AdaptivePool` over two axes with `jnp.mean`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveAvgPool2d(3)(jnp.ones((2, 5, 5))).shape
        (2, 3, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 2, jnp.mean)


class AdaptiveAvgPool3d(AdaptivePool):
    """`AdaptivePool` over three axes with `jnp.mean`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveAvgPool3d(3)(jnp.ones((2, 5, 5, 5))).shape
        (2, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 3, jnp.mean)


class AdaptiveMaxPool1d(AdaptivePool):
    """`AdaptivePool` over one axis with `jnp.max`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveMaxPool1d(3)(jnp.ones((2, 5))).shape
        (2, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 1, jnp.max)


class AdaptiveMaxPool2d(AdaptivePool):
    """`AdaptivePool` over two axes with `jnp.max`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveMaxPool2d(3)(jnp.ones((2, 5, 5))).shape
        (2, 3, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 2, jnp.max)


class AdaptiveMaxPool3d(AdaptivePool):
    """`AdaptivePool` over three axes with `jnp.max`.

    Example:
        >>> import namoo.numpy as jnp
        >>> AdaptiveMaxPool3d(3)(jnp.ones((2, 5, 5, 5))).shape
        (2, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes):
        super().__init__(target_shape, 3, jnp.max)
