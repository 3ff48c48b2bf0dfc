"""Per-example gradients: `jit(vmap(grad))`."""

from functools import partial

import numpy as np

from row import Goal, Row
from rows.mlp import apply, batch_for, network
from training import normal


def linear_inputs(tiny, batch):
    batch = min(batch, 3) if tiny else batch
    return np.array([1.0, 2.0], "f4"), normal(0, batch, 2), normal(1, batch)


def linear(jax, jnp):
    def loss(params, x, y):
        return jnp.mean((jnp.dot(x, params) - y) ** 2)

    return jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))


def torch_linear(torch, compile, params, x, y):
    def loss(params, x, y):
        return ((torch.dot(x, params) - y) ** 2).mean()

    grads = compile(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)))
    return lambda: grads(params, x, y)


def numpy_linear(params, x, y):
    return 2 * (x @ params - y)[:, None] * x


def mlp_inputs(tiny):
    params = network(tiny)
    return params, *batch_for(params, 3 if tiny else 128)


def mlp(jax, jnp):
    def loss(params, x, y):
        return -jnp.sum(y * jax.nn.log_softmax(apply(jax, params, x)))

    return jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))


def torch_mlp(torch, compile, params, x, y):
    def loss(params, x, y):
        for layer in params[:-1]:
            x = torch.relu(x @ layer["W"] + layer["b"])
        logits = x @ params[-1]["W"] + params[-1]["b"]
        return -(y * torch.log_softmax(logits, -1)).sum()

    grads = compile(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)))
    return lambda: grads(params, x, y)


def numpy_mlp(params, x, y):
    layers = [x]
    for layer in params[:-1]:
        layers.append(np.maximum(layers[-1] @ layer["W"] + layer["b"], 0))
    logits = layers[-1] @ params[-1]["W"] + params[-1]["b"]
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    ct = exp / exp.sum(axis=1, keepdims=True) - y
    grads = []
    for layer, x in zip(params[::-1], layers[::-1], strict=True):
        grads.append({"W": x[:, :, None] * ct[:, None, :], "b": ct})
        if len(grads) < len(params):
            ct = (ct @ layer["W"].T) * (x > 0)
    return grads[::-1]


ROWS = [
    Row(
        f"per-example gradients, linear, batch {batch}",
        partial(linear_inputs, batch=batch),
        linear,
        torch_linear,
        numpy_linear,
        Goal(2.0, 3.0),
    )
    for batch in (1, 100, 10_000)
] + [
    Row(
        "per-example gradients, MLP, batch 128",
        mlp_inputs,
        mlp,
        torch_mlp,
        numpy_mlp,
        Goal(4.0, 3.0),
    )
]
