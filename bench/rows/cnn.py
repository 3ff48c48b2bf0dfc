"""A small convolutional network on 28x28 digits, one step of SGD."""

import numpy as np

from row import Goal, Row
from training import normal, sgd_step, torch_step


def inputs(tiny):
    batch, side, channels = (2, 8, (2, 3)) if tiny else (64, 28, (16, 32))
    first, second = channels
    params = {
        "conv1": {"W": normal(0, 3, 3, 1, first, scale=0.3), "b": np.zeros(first, np.float32)},
        "conv2": {"W": normal(1, 3, 3, first, second, scale=0.1), "b": np.zeros(second, "f4")},
        "dense": {
            "W": normal(2, (side // 4) ** 2 * second, 10, scale=0.03),
            "b": np.zeros(10, np.float32),
        },
    }
    labels = np.random.default_rng(4).integers(0, 10, batch)
    return params, normal(3, batch, side, side, 1), np.eye(10, dtype=np.float32)[labels], 0.01


def step(jax, jnp):
    def layer(p, x):
        x = jax.lax.conv_general_dilated(
            x, p["W"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + p["b"])
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(params, x, y):
        x = layer(params["conv2"], layer(params["conv1"], x))
        logits = x.reshape(len(x), -1) @ params["dense"]["W"] + params["dense"]["b"]
        return -jnp.sum(y * jax.nn.log_softmax(logits)) / len(x)

    return jax.jit(sgd_step(jax, loss))


def torch_loss(torch, params, x, y):
    functional = torch.nn.functional
    for name in ("conv1", "conv2"):
        x = functional.conv2d(x, params[name]["W"], params[name]["b"], padding=1)
        x = functional.max_pool2d(torch.relu(x), 2)
    # The weights of the dense layer are for images with channels last.
    x = x.permute(0, 2, 3, 1).flatten(1)
    return functional.cross_entropy(x @ params["dense"]["W"] + params["dense"]["b"], y)


def torch_sgd(torch, compile, params, x, y, lr):
    last = torch.channels_last
    for name in ("conv1", "conv2"):
        kernel = params[name]["W"].permute(3, 2, 0, 1)
        params[name]["W"] = kernel.contiguous(memory_format=last)
    x = x.permute(0, 3, 1, 2).contiguous(memory_format=last)
    parameters = [p for layer in params.values() for p in layer.values()]
    step = torch_step(torch, compile, torch_loss, params, parameters, "sgd", x, y, lr)

    def in_our_layout():
        params, loss = step()
        kernels = {name: params[name]["W"].permute(2, 3, 1, 0) for name in ("conv1", "conv2")}
        return {
            name: {**params[name], "W": kernels.get(name, params[name]["W"])} for name in params
        }, loss

    return in_our_layout


ROWS = [
    Row("CNN step, 28x28, batch 64", inputs, step, torch_sgd, goal=Goal(3.0, 0.9), chain=1),
]
