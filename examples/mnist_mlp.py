"""Train the lessons' network, 784 -> 128 -> 64 -> 10, on real handwritten digits.

Parameters are a list of dicts, the model is a function, and Adam is three lines of `tree.map`.

    python examples/mnist_mlp.py            # the whole training set, several times over
    python examples/mnist_mlp.py --short    # a few steps, to see that everything runs
"""

import argparse
from pathlib import Path

import numpy as np

import namoo as jax
import namoo.numpy as jnp
from namoo import random, train

HERE = Path(__file__).parent
SIZES = [784, 128, 64, 10]
TEST_SIZE = 2000


def load_digits():
    """Return (train images, train labels), (test images, test labels); pixels are in [0, 1]."""
    with np.load(HERE / "data" / "mnist10k.npz") as digits:
        images = (digits["images"].reshape(-1, 784) / 255).astype(np.float32)
        labels = digits["labels"].astype(np.int32)
    return (images[:-TEST_SIZE], labels[:-TEST_SIZE]), (images[-TEST_SIZE:], labels[-TEST_SIZE:])


def init_mlp(key, sizes):
    """Return one {"W", "b"} per layer; the scale of the weights preserves a relu's variance."""
    keys = random.split(key, len(sizes) - 1)
    return [
        {"W": random.normal(k, (n_in, n_out)) * (2 / n_in) ** 0.5, "b": jnp.zeros(n_out)}
        for k, n_in, n_out in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def mlp_apply(params, x):
    """Return the logits of one image."""
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ params[-1]["W"] + params[-1]["b"]


def cross_entropy(params, x, label):
    """Return the loss of one image."""
    return -jax.nn.log_softmax(mlp_apply(params, x))[label]


def batch_loss(params, images, labels):
    """Return the mean loss of a batch."""
    return jax.vmap(cross_entropy, in_axes=(None, 0, 0))(params, images, labels).mean()


def adam(params, grads, state, lr, b1=0.9, b2=0.999, eps=1e-8):
    """Take one step of Adam (Kingma and Ba, 2015); return the parameters and (m, v, t)."""
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, v, grads)
    rate = lr * jnp.sqrt(1 - b2**t) / (1 - b1**t)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + eps), params, m, v)
    return params, (m, v, t)


@jax.jit
def train_step(params, state, images, labels, lr):
    loss, grads = jax.value_and_grad(batch_loss)(params, images, labels)
    params, state = adam(params, grads, state, lr)
    return params, state, loss


@jax.jit
def accuracy(params, images, labels):
    logits = jax.vmap(mlp_apply, in_axes=(None, 0))(params, images)
    return jnp.mean(jnp.argmax(logits, axis=-1) == labels)


def main(epochs=12, steps_per_epoch=None, batch_size=64, lr=4e-3, seed=0, *, picture):
    """Train, show and draw the progress, and return the test accuracy."""
    (images, labels), test = load_digits()
    steps = steps_per_epoch or len(images) // batch_size
    key, init_key = random.split(random.PRNGKey(seed))
    params = init_mlp(init_key, SIZES)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = (zeros, zeros, jnp.float32(0))
    parameters = sum(x.size for x in jax.tree.leaves(params))
    print(f"{parameters:,} parameters, {len(images):,} training digits, {TEST_SIZE:,} test digits")

    history = []
    shown = train.progress(range(epochs * steps))
    for step in shown:
        epoch, place = divmod(step, steps)
        if place == 0:
            order = np.asarray(random.permutation(random.fold_in(key, epoch), len(images)))
        batch = order[place * batch_size : (place + 1) * batch_size]
        rate = lr * (1 - step / len(shown))  # linear decay to zero
        params, state, loss = train_step(params, state, images[batch], labels[batch], rate)
        if place == steps - 1:
            history.append({"step": step + 1, "loss": loss, "accuracy": accuracy(params, *test)})
            shown(epoch=epoch + 1, **history[-1])

    train.plot(history, picture, title="Digits: the loss, and the accuracy on others")
    result = float(accuracy(params, *test))
    print(f"test accuracy: {result:.2%}; {picture}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--short", action="store_true", help="one epoch of 30 steps")
    parser.add_argument("--out", default=HERE / "out" / "mnist_mlp.svg", help="the picture")
    args = parser.parse_args()
    main(**({"epochs": 1, "steps_per_epoch": 30} if args.short else {}), picture=args.out)
