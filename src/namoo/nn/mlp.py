"""`MLP`: linear layers with an activation between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from namoo import random
from namoo.module.module import Module
from namoo.nn.activations import identity, relu
from namoo.nn.linear import Linear


class MLP(Module):
    """A multi-layer perceptron: `depth` hidden layers of one width.

        x ← activation(W·x + b), depth times;   y = final_activation(W·x + b)

    Args:
        in_size: the length of the input; `"scalar"` for a number without axes.
        out_size: the length of the result; `"scalar"` for a number without axes.
        width_size: the length of each hidden layer.
        depth: the number of hidden layers; 0 gives a linear map.
        activation: after each hidden layer.
        final_activation: after the last.
        use_bias: whether the hidden layers have b.
        use_final_bias: whether the last has b.
        dtype: of weights and biases.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> net = namoo.nn.MLP(784, 10, width_size=128, depth=2, key=namoo.random.key(0))
        >>> net(jnp.ones(784)).shape, namoo.tree.count(net)
        ((10,), 118282)
    """

    layers: tuple[Linear, ...]
    activation: Callable[[Any], Any]
    final_activation: Callable[[Any], Any]
    in_size: int | Literal["scalar"]
    out_size: int | Literal["scalar"]
    width_size: int
    depth: int
    use_bias: bool
    use_final_bias: bool

    def __init__(
        self,
        in_size: int | Literal["scalar"],
        out_size: int | Literal["scalar"],
        width_size: int,
        depth: int,
        activation: Callable[[Any], Any] = relu,
        final_activation: Callable[[Any], Any] = identity,
        use_bias: bool = True,
        use_final_bias: bool = True,
        dtype: Any = None,
        *,
        key: Any,
    ):
        keys = random.split(key, depth + 1)
        sizes = [in_size, *[width_size] * depth, out_size]
        biases = [*[use_bias] * depth, use_final_bias]
        rows = zip(sizes[:-1], sizes[1:], biases, keys, strict=True)
        self.layers = tuple(Linear(a, b, bias, dtype, key=k) for a, b, bias, k in rows)
        self.activation, self.final_activation = activation, final_activation
        self.in_size, self.out_size = in_size, out_size
        self.width_size, self.depth = width_size, depth
        self.use_bias, self.use_final_bias = use_bias, use_final_bias

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Apply the network to one example; `key` is not used."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.final_activation(self.layers[-1](x))
