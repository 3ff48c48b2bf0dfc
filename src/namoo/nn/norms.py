"""Normalisation of single examples: layer, root-mean-square and group normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo import lax
from namoo import numpy as jnp
from namoo.module.module import Module
from namoo.nn.layer import at_least_float32


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _check_shape(layer: Any, x: Any) -> None:
    if x.shape != layer.shape:
        name = type(layer).__name__
        raise ValueError(
            f"{name} was made for examples of shape {layer.shape}, but got an array of shape "
            f"{x.shape}. It normalises one example: for several, write vmap({name.lower()})(x)."
        )


class LayerNorm(Module):
    """Normalise all elements of one example together.

        y = w · (x - mean(x)) / √(var(x) + eps) + b

    Sums are taken in float32 or wider (Ba et al., 2016, "Layer Normalization").

    Args:
        shape: the shape of an example.
        eps: added to avoid division by zero.
        use_weight: whether the layer has w, which starts at one.
        use_bias: whether the layer has b, which starts at zero.
        dtype: of w and b.

    Example:
        >>> import namoo.numpy as jnp
        >>> LayerNorm(2, eps=0.0)(jnp.array([1.0, 3.0]))
        Array([-1.,  1.], dtype=float32)
    """

    weight: Any
    bias: Any
    shape: tuple[int, ...]
    eps: float
    use_weight: bool
    use_bias: bool

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        use_weight: bool = True,
        use_bias: bool = True,
        dtype: Any = None,
    ):
        self.shape, self.eps = _shape(shape), eps
        self.use_weight, self.use_bias = use_weight, use_bias
        self.weight = jnp.ones(self.shape, dtype) if use_weight else None
        self.bias = jnp.zeros(self.shape, dtype) if use_bias else None

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the normalised example; `key` is not used."""
        _check_shape(self, x)
        wide = at_least_float32(x)
        y = (wide - jnp.mean(wide)) * lax.rsqrt(jnp.var(wide) + self.eps)
        return _affine(y, self.weight, self.bias).astype(x.dtype)


class RMSNorm(Module):
    """Divide one example by its root mean square.

        y = w · x / √(mean(x²) + eps) + b

    Sums are taken in float32 or wider (Zhang and Sennrich, 2019, "Root Mean Square Layer
    Normalization").

    Args:
        shape: the shape of an example.
        eps: added to avoid division by zero.
        use_weight: whether the layer has w, which starts at one.
        use_bias: whether the layer has b, which starts at zero.
        dtype: of w and b.

    Example:
        >>> import namoo.numpy as jnp
        >>> RMSNorm(2, eps=0.0)(jnp.array([1.0, 7.0]))
        Array([0.2, 1.4], dtype=float32)
    """

    weight: Any
    bias: Any
    shape: tuple[int, ...]
    eps: float
    use_weight: bool
    use_bias: bool

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        use_weight: bool = True,
        use_bias: bool = True,
        dtype: Any = None,
    ):
        self.shape, self.eps = _shape(shape), eps
        self.use_weight, self.use_bias = use_weight, use_bias
        self.weight = jnp.ones(self.shape, dtype) if use_weight else None
        self.bias = jnp.zeros(self.shape, dtype) if use_bias else None

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the normalised example; `key` is not used."""
        _check_shape(self, x)
        wide = at_least_float32(x)
        y = wide * lax.rsqrt(jnp.mean(wide**2) + self.eps)
        return _affine(y, self.weight, self.bias).astype(x.dtype)


class GroupNorm(Module):
    """Normalise groups of channels of one example, channels first.

        y_g = w · (x_g - mean(x_g)) / √(var(x_g) + eps) + b

    With one group this is `LayerNorm` with an affine map per channel, with as many groups as
    channels it is instance normalisation (Wu and He, 2018, "Group Normalization").

    Args:
        groups: the number of groups.
        channels: the number of channels; needed for w and b.
        eps: added to avoid division by zero.
        channelwise_affine: whether the layer has w and b, one of each per channel.
        dtype: of w and b.

    Example:
        >>> import namoo.numpy as jnp
        >>> GroupNorm(2, 2, eps=0.0)(jnp.array([[1.0, 3.0], [0.0, 10.0]]))
        Array([[-1.,  1.],
               [-1.,  1.]], dtype=float32)
    """

    weight: Any
    bias: Any
    groups: int
    channels: int | None
    eps: float
    channelwise_affine: bool

    def __init__(
        self,
        groups: int,
        channels: int | None = None,
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        dtype: Any = None,
    ):
        if channels is None and channelwise_affine:
            raise ValueError("GroupNorm needs channels=…, or channelwise_affine=False")
        if channels is not None and channels % groups:
            raise ValueError(f"{groups} groups do not divide {channels} channels")
        self.groups, self.channels, self.eps = groups, channels, eps
        self.channelwise_affine = channelwise_affine
        self.weight = jnp.ones(channels, dtype) if channelwise_affine else None
        self.bias = jnp.zeros(channels, dtype) if channelwise_affine else None

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the normalised example; `key` is not used."""
        channels = x.shape[0] if x.ndim else 0
        if (self.channels not in (None, channels)) or not channels or channels % self.groups:
            raise ValueError(
                f"GroupNorm with {self.groups} groups of "
                f"{self.channels or 'any number of'} channels got an array of shape {x.shape}; the "
                "channels come first. For a batch, write vmap(groupnorm)(x)."
            )
        wide = at_least_float32(x).reshape(self.groups, -1)
        mean = jnp.mean(wide, axis=1, keepdims=True)
        y = (wide - mean) * lax.rsqrt(jnp.var(wide, axis=1, keepdims=True) + self.eps)
        per_channel = (channels, *(1,) * (x.ndim - 1))
        parts = [p if p is None else p.reshape(per_channel) for p in (self.weight, self.bias)]
        return _affine(y.reshape(x.shape), *parts).astype(x.dtype)


def _affine(y: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        y = weight.astype(y.dtype) * y
    return y if bias is None else y + bias.astype(y.dtype)
