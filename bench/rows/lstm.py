"""An LSTM over 256 steps: the gradient of a loss over all its outputs."""

import numpy as np

from row import Goal, Row
from training import normal


def inputs(tiny):
    steps, hidden, batch = (4, 3, 2) if tiny else (256, 128, 32)
    params = {
        "Wx": normal(0, hidden, 4 * hidden, scale=hidden**-0.5),
        "Wh": normal(1, hidden, 4 * hidden, scale=hidden**-0.5),
        "b": np.zeros(4 * hidden, np.float32),
    }
    return params, normal(2, steps, batch, hidden)


def gradient(jax, jnp):
    def loss(params, xs):
        def cell(carry, x):
            h, c = carry
            gates = x @ params["Wx"] + h @ params["Wh"] + params["b"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros(xs.shape[1:])
        _, hs = jax.lax.scan(cell, (zeros, zeros), xs)
        return jnp.mean(hs**2)

    return jax.jit(jax.value_and_grad(loss))


def torch_gradient(torch, compile, params, xs):
    lstm = torch.nn.LSTM(xs.shape[-1], params["Wh"].shape[0])
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(params["Wx"].T)
        lstm.weight_hh_l0.copy_(params["Wh"].T)
        lstm.bias_ih_l0.copy_(params["b"])
        lstm.bias_hh_l0.zero_()
    lstm.bias_hh_l0.requires_grad_(False)

    def step():
        lstm.zero_grad()
        loss = (lstm(xs)[0] ** 2).mean()
        loss.backward()
        grads = {"Wx": lstm.weight_ih_l0.grad.T, "Wh": lstm.weight_hh_l0.grad.T}
        return loss, {**grads, "b": lstm.bias_ih_l0.grad}

    return step


ROWS = [
    Row(
        "LSTM, 256 steps, hidden 128, batch 32, gradient",
        inputs,
        gradient,
        torch_gradient,
        goal=Goal(1.7, 1.2),
        # torch.compile does not look inside torch.nn.LSTM.
        torch_compiles=False,
        tolerance=1e-3,
    )
]
