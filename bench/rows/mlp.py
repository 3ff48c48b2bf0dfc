"""The lessons' network, 784 -> 128 -> 64 -> 10, one training step."""

from functools import partial

import numpy as np

from row import Goal, Row, convert
from training import (
    B1,
    B2,
    DECAY,
    EPS,
    adamw_state,
    adamw_step,
    normal,
    parts,
    sgd_step,
    torch_step,
)


def network(tiny, sizes=(784, 128, 64, 10)):
    """Return the parameters as in the lessons: a list of {"W", "b"}."""
    sizes = (12, 8, 6, 4) if tiny else sizes
    shapes = zip(sizes[:-1], sizes[1:], strict=True)
    return [
        {"W": normal(i, *shape, scale=shape[0] ** -0.5), "b": np.zeros(shape[1], np.float32)}
        for i, shape in enumerate(shapes)
    ]


def batch_for(params, batch):
    """Return images and one-hot labels."""
    n_in, n_out = len(params[0]["W"]), len(params[-1]["b"])
    labels = np.random.default_rng(8).integers(0, n_out, batch)
    return normal(7, batch, n_in), np.eye(n_out, dtype=np.float32)[labels]


def sgd_inputs(tiny, batch):
    params = network(tiny)
    return params, *batch_for(params, 5 if tiny else batch), 0.001


def adamw_inputs(tiny, batch):
    params, *rest = sgd_inputs(tiny, batch)
    state = adamw_state(params, lambda tree: convert(tree, np.zeros_like))
    return params, state, *rest


def apply(jax, params, x):
    """Return the logits of one example."""
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ params[-1]["W"] + params[-1]["b"]


def loss_of(jax, jnp):
    """Return the mean loss of a batch: the mapped cross-entropy of one example."""

    def cross_entropy(params, x, y):
        return -jnp.sum(y * jax.nn.log_softmax(apply(jax, params, x)))

    def batch_loss(params, x, y):
        return jax.vmap(cross_entropy, in_axes=(None, 0, 0))(params, x, y).mean()

    return batch_loss


def sgd_function(jax, jnp):
    return sgd_step(jax, loss_of(jax, jnp))


def sgd(jax, jnp):
    return jax.jit(sgd_function(jax, jnp))


def adamw(jax, jnp):
    return jax.jit(adamw_step(jax, jnp, loss_of(jax, jnp)))


def torch_loss(torch, params, x, y):
    for layer in params[:-1]:
        x = torch.relu(torch.addmm(layer["b"], x, layer["W"]))
    logits = torch.addmm(params[-1]["b"], x, params[-1]["W"])
    return torch.nn.functional.cross_entropy(logits, y)


def torch_sgd(torch, compile, params, x, y, lr):
    parameters = [p for layer in params for p in layer.values()]
    return torch_step(torch, compile, torch_loss, params, parameters, "sgd", x, y, lr)


def torch_adamw(torch, compile, params, state, x, y, lr):
    parameters = [p for layer in params for p in layer.values()]
    return torch_step(torch, compile, torch_loss, params, parameters, "adamw", x, y, lr)


def numpy_gradients(params, x, y):
    """Return the loss and its hand-written gradients."""
    layers = [x]
    for layer in params[:-1]:
        layers.append(np.maximum(layers[-1] @ layer["W"] + layer["b"], 0))
    logits = layers[-1] @ params[-1]["W"] + params[-1]["b"]
    logits -= logits.max(axis=1, keepdims=True)
    exp = np.exp(logits)
    total = exp.sum(axis=1, keepdims=True)
    loss = np.sum(y * (np.log(total) - logits)) / len(x)
    ct = (exp / total - y) / np.float32(len(x))
    grads = []
    for layer, x in zip(params[::-1], layers[::-1], strict=True):
        grads.append({"W": x.T @ ct, "b": ct.sum(axis=0)})
        if len(grads) < len(params):
            ct = (ct @ layer["W"].T) * (x > 0)
    return loss, grads[::-1]


def numpy_sgd(params, x, y, lr):
    loss, grads = numpy_gradients(params, x, y)
    lr = np.float32(lr)
    pairs = zip(params, grads, strict=True)
    return [{key: p[key] - lr * g[key] for key in p} for p, g in pairs], loss


def numpy_adamw(params, state, x, y, lr):
    loss, grads = numpy_gradients(params, x, y)
    ms, vs, t = state
    t = t + 1
    new = [], [], []
    for p, m, v, g in zip(params, ms, vs, grads, strict=True):
        m = {key: B1 * m[key] + (1 - B1) * g[key] for key in g}
        v = {key: B2 * v[key] + (1 - B2) * g[key] ** 2 for key in g}
        p = {
            key: p[key]
            - lr
            * (
                m[key] / float(1 - B1**t) / (np.sqrt(v[key] / float(1 - B2**t)) + EPS)
                + DECAY * p[key]
            )
            for key in g
        }
        for kept, tree in zip(new, (p, m, v), strict=True):
            kept.append(tree)
    return new[0], (new[1], new[2], t), loss


ROWS = [
    Row(
        f"MLP step, SGD, batch {batch}",
        partial(sgd_inputs, batch=batch),
        sgd,
        torch_sgd,
        numpy_sgd,
        Goal(*goal),
        chain=1,
    )
    for batch, goal in [(32, (1.8, 3.0)), (512, (1.3, 1.3))]
] + [
    Row(
        f"MLP step, AdamW, batch {batch}",
        partial(adamw_inputs, batch=batch),
        adamw,
        torch_adamw,
        numpy_adamw,
        Goal(*goal),
        chain=2,
        seen=parts,
        # Adam's first step is the sign of the gradient, which noise flips where it is almost zero.
        tolerance=0.01,
    )
    for batch, goal in [(32, (2.0, 3.0)), (512, (1.3, 1.3))]
]
