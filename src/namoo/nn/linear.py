"""`Linear`, and `Identity`, which returns its input."""

from __future__ import annotations

import math
from typing import Any, Literal

from namoo import numpy as jnp
from namoo import random
from namoo.module.module import Module
from namoo.nn.layer import uniform_init


class Linear(Module):
    """A linear map of one vector.

        y = W·x + b,    W of shape (out_features, in_features)

    W and b are initialised uniformly between ±1/√in_features.

    Args:
        in_features: the length of the input; `"scalar"` for a number without axes.
        out_features: the length of the result; `"scalar"` for a number without axes.
        use_bias: whether the layer has b.
        dtype: of W and b.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> linear = namoo.nn.Linear(3, 2, key=namoo.random.key(0))
        >>> linear
        Linear(weight=f32[2,3], bias=f32[2], in_features=3, out_features=2, use_bias=True)
        >>> linear(jnp.ones(3)).shape, namoo.vmap(linear)(jnp.ones((5, 3))).shape
        ((2,), (5, 2))
    """

    weight: Any
    bias: Any
    in_features: int | Literal["scalar"]
    out_features: int | Literal["scalar"]
    use_bias: bool

    def __init__(
        self,
        in_features: int | Literal["scalar"],
        out_features: int | Literal["scalar"],
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: Any,
    ):
        rows = 1 if out_features == "scalar" else out_features
        columns = 1 if in_features == "scalar" else in_features
        limit = 1 / math.sqrt(columns) if columns else 1.0
        weight_key, bias_key = random.split(key, 2)
        self.weight = uniform_init(weight_key, (rows, columns), dtype, limit)
        self.bias = uniform_init(bias_key, (rows,), dtype, limit) if use_bias else None
        self.in_features, self.out_features = in_features, out_features
        self.use_bias = use_bias

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Apply the layer to one vector; `key` is not used."""
        expected = () if self.in_features == "scalar" else (self.in_features,)
        if jnp.shape(x) != expected:
            raise ValueError(
                f"Linear takes one example of shape {expected}, but got an array of shape "
                f"{jnp.shape(x)}. For a batch, write vmap(linear)(x)."
            )
        if self.in_features == "scalar":
            x = jnp.reshape(x, (1,))
        y = self.weight @ x
        if self.bias is not None:
            y = y + self.bias
        return y[0] if self.out_features == "scalar" else y


class Identity(Module):
    """A layer that returns its input; its constructor accepts and ignores any arguments.

    Example:
        >>> Identity()(3)
        3
    """

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the input; `key` is not used."""
        return x
