"""pytree 의 모든 도구를 합쳐 — 작은 NN 을 from-scratch 로 (a small network from scratch).

Parameters are a list of dicts, a model is a function, and every step is a pytree operation.
"""

from pathlib import Path

import numpy as np

import namoo as jax
import namoo.numpy as jnp
from namoo import random


def init_layer(key, in_dim, out_dim, scale=0.01):
    k1, k2 = random.split(key)
    return {
        "W": random.normal(k1, (in_dim, out_dim)) * scale,
        "b": jnp.zeros(out_dim),
    }


def init_mlp(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [init_layer(k, in_d, out_d) for k, in_d, out_d in zip(keys, sizes[:-1], sizes[1:])]


key = random.PRNGKey(0)
params = init_mlp(key, [784, 128, 64, 10])
shapes = jax.tree.map(lambda x: x.shape, params)
assert shapes == [
    {"W": (784, 128), "b": (128,)},
    {"W": (128, 64), "b": (64,)},
    {"W": (64, 10), "b": (10,)},
]
n = sum(x.size for x in jax.tree.leaves(params))
assert n == 109_386
print(f"{n:,} parameters: {shapes}")


def mlp_apply(params, x):
    """One example forward; no activation after the last layer."""
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ params[-1]["W"] + params[-1]["b"]


assert mlp_apply(params, jnp.zeros(784)).shape == (10,)
mlp_batch = jax.vmap(mlp_apply, in_axes=(None, 0))
assert mlp_batch(params, jnp.zeros((32, 784))).shape == (32, 10)


def cross_entropy_loss(params, x, y):
    """One example; y is one-hot (10,)."""
    logits = mlp_apply(params, x)
    log_probs = jax.nn.log_softmax(logits)
    return -jnp.sum(y * log_probs)


def batch_loss(params, X, Y):
    """X: (B, 784), Y: (B, 10)."""
    losses = jax.vmap(cross_entropy_loss, in_axes=(None, 0, 0))(params, X, Y)
    return losses.mean()


# The lesson leaves its batch open; here it is 32 real digits.
digits = np.load(Path(__file__).parents[1] / "data" / "mnist10k.npz")
images = (digits["images"].reshape(-1, 784) / 255).astype(np.float32)
labels = digits["labels"]
batch_x = jnp.asarray(images[:32])
batch_y = jax.nn.one_hot(labels[:32], 10)
grads = jax.grad(batch_loss)(params, batch_x, batch_y)
assert jax.tree.map(lambda x: x.shape, grads) == shapes  # gradients have the parameters' shape


@jax.jit
def train_step(params, X, Y, lr):
    loss, grads = jax.value_and_grad(batch_loss)(params, X, Y)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return new_params, loss


first = batch_loss(params, batch_x, batch_y)
for _ in range(1000):
    params, loss = train_step(params, batch_x, batch_y, 0.001)
assert loss < first
print(f"1000 steps of SGD on one batch: loss {first:.4f} -> {loss:.4f}")


def add_weight_decay(grads, params, wd=1e-4):
    """Decay every W; a leaf does not know its name, so this works layer by layer."""
    new_grads = []
    for g, p in zip(grads, params):
        new_grads.append({"W": g["W"] + wd * p["W"], "b": g["b"]})
    return new_grads


def clip_grads(grads, max_norm=1.0):
    leaves = jax.tree.leaves(grads)
    total_norm = jnp.sqrt(sum(jnp.sum(l**2) for l in leaves))
    scale = jnp.minimum(1.0, max_norm / (total_norm + 1e-6))
    return jax.tree.map(lambda g: g * scale, grads)


decayed = add_weight_decay(grads, params, wd=0.5)
assert jnp.allclose(decayed[0]["W"] - grads[0]["W"], 0.5 * params[0]["W"], atol=1e-6)
assert decayed[0]["b"] is grads[0]["b"]
norm = jnp.sqrt(sum(jnp.sum(l**2) for l in jax.tree.leaves(clip_grads(grads, max_norm=1e-3))))
assert jnp.allclose(norm, 1e-3, rtol=1e-2)


# This lesson sets no exercise of its own, so its six steps are put together: a tree of parameters,
# a forward function, a loss, a gradient, an update by tree.map, all under jit.
@jax.jit
def full_step(params, X, Y, lr):
    loss, grads = jax.value_and_grad(batch_loss)(params, X, Y)
    grads = clip_grads(add_weight_decay(grads, params))
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss


# Plain SGD needs a wider start than 0.01 to learn within one epoch.
params = jax.tree.map(lambda p: 5 * p, init_mlp(key, [784, 128, 64, 10]))
for start in range(0, 8000, 32):
    batch = slice(start, start + 32)
    X, Y = jnp.asarray(images[batch]), jax.nn.one_hot(labels[batch], 10)
    params, loss = full_step(params, X, Y, 0.2)
predicted = jnp.argmax(mlp_batch(params, jnp.asarray(images[8000:])), axis=-1)
accuracy = float(np.mean(np.asarray(predicted) == labels[8000:]))
assert accuracy > 0.85
print(f"All six steps, one epoch over 8,000 digits: test accuracy {accuracy:.1%}")
