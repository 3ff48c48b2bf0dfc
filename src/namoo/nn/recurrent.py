"""Recurrent cells: one step of a recurrent network, for use in a `scan`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from namoo import numpy as jnp
from namoo import random
from namoo._base.short import short
from namoo.module.module import Module
from namoo.nn.activations import sigmoid
from namoo.nn.layer import uniform_init


def _check_step(cell: Any, input: Any, hidden: Any) -> None:
    if jnp.shape(input) != (cell.input_size,) or jnp.shape(hidden) != (cell.hidden_size,):
        name = type(cell).__name__
        raise ValueError(
            f"{name} takes one step of one example: an input of shape {(cell.input_size,)} and a "
            f"hidden state of shape {(cell.hidden_size,)}, but got {jnp.shape(input)} and "
            f"{jnp.shape(hidden)}. For a sequence use lax.scan, for a batch vmap."
        )


class RNNCell(Module):
    """One step of a simple recurrent network.

        h' = activation(W_ih·x + W_hh·h + b)

    All parameters are initialised uniformly between ±1/√hidden_size.

    Args:
        input_size: the length of the input x.
        hidden_size: the length of the hidden state h.
        use_bias: whether the layer has b.
        activation: the activation.
        dtype: of weights and bias.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> cell = namoo.nn.RNNCell(3, 4, key=namoo.random.key(0))
        >>> step = lambda h, x: (cell(x, h), None)
        >>> namoo.lax.scan(step, jnp.zeros(4), jnp.ones((10, 3)))[0].shape
        (4,)
    """

    weight_ih: Any
    weight_hh: Any
    bias: Any
    input_size: int
    hidden_size: int
    use_bias: bool
    activation: Callable[[Any], Any]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        activation: Callable[[Any], Any] = jnp.tanh,
        dtype: Any = None,
        *,
        key: Any,
    ):
        a, b, c = random.split(key, 3)
        limit = math.sqrt(1 / hidden_size)
        self.weight_ih = uniform_init(a, (hidden_size, input_size), dtype, limit)
        self.weight_hh = uniform_init(b, (hidden_size, hidden_size), dtype, limit)
        self.bias = uniform_init(c, (hidden_size,), dtype, limit) if use_bias else None
        self.input_size, self.hidden_size, self.use_bias = input_size, hidden_size, use_bias
        self.activation = activation

    def __call__(self, input: Any, hidden: Any, *, key: Any = None) -> Any:
        """Return the next hidden state; `key` is not used."""
        _check_step(self, input, hidden)
        total = self.weight_ih @ input + self.weight_hh @ hidden
        return self.activation(total if self.bias is None else total + self.bias)


class LSTMCell(Module):
    """One step of a long short-term memory.

        i, f, g, o = split(W_ih·x + W_hh·h + b)
        c' = σ(f)·c + σ(i)·tanh(g)
        h' = σ(o)·tanh(c')

    All parameters are initialised uniformly between ±1/√hidden_size (Hochreiter and Schmidhuber,
    1997).

    Args:
        input_size: the length of the input x.
        hidden_size: the length of the hidden state h and the cell c.
        use_bias: whether the layer has b.
        dtype: of weights and bias.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> cell = namoo.nn.LSTMCell(3, 4, key=namoo.random.key(0))
        >>> h, c = cell(jnp.ones(3), (jnp.zeros(4), jnp.zeros(4)))
        >>> h.shape
        (4,)
    """

    weight_ih: Any
    weight_hh: Any
    bias: Any
    input_size: int
    hidden_size: int
    use_bias: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: Any,
    ):
        a, b, c = random.split(key, 3)
        limit = math.sqrt(1 / hidden_size)
        self.weight_ih = uniform_init(a, (4 * hidden_size, input_size), dtype, limit)
        self.weight_hh = uniform_init(b, (4 * hidden_size, hidden_size), dtype, limit)
        self.bias = uniform_init(c, (4 * hidden_size,), dtype, limit) if use_bias else None
        self.input_size, self.hidden_size, self.use_bias = input_size, hidden_size, use_bias

    def __call__(self, input: Any, hidden: tuple[Any, Any], *, key: Any = None) -> tuple[Any, Any]:
        """Return the next pair (h, c), given an input and the previous pair; `key` is not used."""
        if not isinstance(hidden, (tuple, list)) or len(hidden) != 2:
            raise TypeError(f"the hidden state of LSTMCell is a pair (h, c), got {short(hidden)}.")
        h, c = hidden
        _check_step(self, input, h)
        total = self.weight_ih @ input + self.weight_hh @ h
        if self.bias is not None:
            total = total + self.bias
        i, f, g, o = jnp.split(total, 4)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        return sigmoid(o) * jnp.tanh(c), c


class GRUCell(Module):
    """One step of a gated recurrent unit.

        r = σ(W_ir·x + b_r + W_hr·h)
        z = σ(W_iz·x + b_z + W_hz·h)
        n = tanh(W_in·x + b_in + r·(W_hn·h + b_hn))
        h' = n + z·(h - n)

    All parameters are initialised uniformly between ±1/√hidden_size (Cho et al., 2014).

    Args:
        input_size: the length of the input x.
        hidden_size: the length of the hidden state h.
        use_bias: whether the layer has biases.
        dtype: of weights and biases.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> cell = namoo.nn.GRUCell(3, 4, key=namoo.random.key(0))
        >>> cell(jnp.ones(3), jnp.zeros(4)).shape
        (4,)
    """

    weight_ih: Any
    weight_hh: Any
    bias: Any
    bias_n: Any
    input_size: int
    hidden_size: int
    use_bias: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: Any,
    ):
        a, b, c, d = random.split(key, 4)
        limit = math.sqrt(1 / hidden_size)
        self.weight_ih = uniform_init(a, (3 * hidden_size, input_size), dtype, limit)
        self.weight_hh = uniform_init(b, (3 * hidden_size, hidden_size), dtype, limit)
        self.bias = uniform_init(c, (3 * hidden_size,), dtype, limit) if use_bias else None
        self.bias_n = uniform_init(d, (hidden_size,), dtype, limit) if use_bias else None
        self.input_size, self.hidden_size, self.use_bias = input_size, hidden_size, use_bias

    def __call__(self, input: Any, hidden: Any, *, key: Any = None) -> Any:
        """Return the next hidden state; `key` is not used."""
        _check_step(self, input, hidden)
        of_input = self.weight_ih @ input
        if self.bias is not None:
            of_input = of_input + self.bias
        ir, iz, in_ = jnp.split(of_input, 3)
        hr, hz, hn = jnp.split(self.weight_hh @ hidden, 3)
        if self.bias_n is not None:
            hn = hn + self.bias_n
        new = jnp.tanh(in_ + sigmoid(ir + hr) * hn)
        return new + sigmoid(iz + hz) * (hidden - new)
