"""Layers whose weight is computed from another: `WeightNorm` and `SpectralNorm`."""

from __future__ import annotations

from typing import Any

from namoo import lax, random
from namoo import numpy as jnp
from namoo.module.module import Module
from namoo.nn.state import State, StatefulLayer, StateIndex


class WeightNorm(Module):
    """A layer whose weight is stored as a length and a direction.

        w = g · v / ‖v‖

    The norm is taken over all axes but one; v is the layer's own weight, and g starts at its norm
    (Salimans and Kingma, 2016, "Weight Normalization").

    Args:
        layer: a layer with a weight.
        weight_name: the name of its field.
        axis: the axis with one g per index; None for a single g.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> linear = namoo.nn.Linear(3, 2, key=namoo.random.key(0))
        >>> normed = namoo.nn.WeightNorm(linear)
        >>> bool(jnp.allclose(normed(jnp.ones(3)), linear(jnp.ones(3)), atol=1e-6)), normed.g.shape
        (True, (2, 1))
    """

    layer: Any
    g: Any
    weight_name: str
    axis: int | None

    def __init__(self, layer: Any, weight_name: str = "weight", axis: int | None = 0):
        self.layer, self.weight_name, self.axis = layer, weight_name, axis
        self.g = _norm_except(getattr(layer, weight_name), axis)

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the layer with the computed weight."""
        v = getattr(self.layer, self.weight_name)
        weight = v * self.g / _norm_except(v, self.axis)
        return self.layer.replace(**{self.weight_name: weight})(x, *args, **kwargs)


def _norm_except(v: Any, axis: int | None) -> Any:
    axes = tuple(i for i in range(v.ndim) if axis is None or i != axis % v.ndim)
    return jnp.sqrt(jnp.sum(jnp.real(v * jnp.conj(v)), axis=axes, keepdims=True))


class SpectralNorm(StatefulLayer):
    """A layer whose weight is divided by its largest singular value.

        w = W / σ(W),    σ(W) ≈ uᵀ W v

    u and v are in the state. Each call in training improves them by one power iteration, which is
    not differentiated. W is the weight reshaped to a matrix, its first axis against all others
    (Miyato et al., 2018, "Spectral Normalization").

    Args:
        layer: a layer with a weight.
        weight_name: the name of its field.
        num_power_iterations: how many steps each call makes.
        eps: the smallest norm to divide by.
        inference: whether u and v stay unchanged; `nn.inference_mode` sets it.
        key: for the initial u and v.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> linear = namoo.nn.Linear(3, 2, use_bias=False, key=namoo.random.key(0))
        >>> make = namoo.nn.make_with_state(namoo.nn.SpectralNorm)
        >>> layer, state = make(linear, key=namoo.random.key(1))
        >>> y, state = layer(jnp.ones(3), state)
        >>> largest = jnp.linalg.norm(linear.weight, 2)
        >>> bool(jnp.allclose(y, linear(jnp.ones(3)) / largest, atol=1e-5))
        True
    """

    layer: Any
    vectors: StateIndex
    weight_name: str
    num_power_iterations: int
    eps: float
    inference: bool

    def __init__(
        self,
        layer: Any,
        weight_name: str = "weight",
        num_power_iterations: int = 1,
        eps: float = 1e-12,
        inference: bool = False,
        *,
        key: Any,
    ):
        self.layer, self.weight_name, self.eps = layer, weight_name, eps
        self.num_power_iterations, self.inference = num_power_iterations, inference
        weight = getattr(layer, weight_name)
        if weight.ndim < 2:
            raise ValueError(
                f"SpectralNorm needs a weight of at least two axes, but {weight_name!r} has the "
                f"shape {weight.shape}"
            )
        matrix = weight.reshape(weight.shape[0], -1)
        u_key, v_key = random.split(key)
        u = random.normal(u_key, matrix.shape[:1], matrix.dtype)
        v = random.normal(v_key, matrix.shape[1:], matrix.dtype)
        # Enough iterations for the first calls to be accurate.
        for _ in range(15):
            u, v = _power_iteration(matrix, v, eps)
        self.vectors = StateIndex((u, v))

    def __call__(
        self, x: Any, state: State, *, key: Any = None, inference: bool | None = None
    ) -> tuple[Any, State]:
        """Call the layer with the computed weight.

        Args:
            x: the layer's input.
            state: the state of the model.
            key: is not used.
            inference: whether u and v stay, overriding the layer's own setting.

        Returns:
            The layer's result, and the state with new u and v.
        """
        u, v = state.get(self.vectors)
        weight = getattr(self.layer, self.weight_name)
        matrix = weight.reshape(weight.shape[0], -1)
        if not (self.inference if inference is None else inference):
            for _ in range(self.num_power_iterations):
                u, v = _power_iteration(lax.stop_gradient(matrix), v, self.eps)
            state = state.set(self.vectors, (u, v))
        divided = weight / (u @ matrix @ v)
        return self.layer.replace(**{self.weight_name: divided})(x), state


def _power_iteration(matrix: Any, v: Any, eps: float) -> tuple[Any, Any]:
    u = matrix @ v
    u = u / jnp.maximum(eps, jnp.sqrt(jnp.sum(u**2)))
    v = matrix.T @ u
    return u, v / jnp.maximum(eps, jnp.sqrt(jnp.sum(v**2)))
