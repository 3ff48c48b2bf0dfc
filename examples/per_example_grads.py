"""Learn digits with differential privacy: no single digit can be read out of the parameters.

`vmap(grad(loss))` is the gradient of each example alone. Each is clipped to a length of at most C,
and noise of C times a multiplier is added to their sum (Abadi et al., 2016, "Deep Learning with
Differential Privacy"). Adding or removing a digit changes the probability of any outcome by a
factor of at most e^ε, up to δ.

    python examples/per_example_grads.py            # 600 steps: no noise, some, much
    python examples/per_example_grads.py --short    # a few steps, to see that everything runs
"""

import argparse
import math
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import optim, random, train

HERE = Path(__file__).parent
TEST_SIZE = 2000
DELTA = 1e-5


def load_digits():
    """Return (train images, train labels), (test images, test labels); pixels are in [0, 1]."""
    with np.load(HERE / "data" / "mnist10k.npz") as digits:
        images = (digits["images"].reshape(-1, 784) / 255).astype(np.float32)
        labels = digits["labels"].astype(np.int32)
    return (images[:-TEST_SIZE], labels[:-TEST_SIZE]), (images[-TEST_SIZE:], labels[-TEST_SIZE:])


def init(key, width=32):
    first, second = random.split(key)
    hidden = {"W": random.normal(first, (784, width)) / 28, "b": jnp.zeros(width)}
    return [hidden, {"W": random.normal(second, (width, 10)) * width**-0.5, "b": jnp.zeros(10)}]


def predict(params, x):
    """Return the logits of one image, or of many."""
    hidden, output = params
    return jnp.tanh(x @ hidden["W"] + hidden["b"]) @ output["W"] + output["b"]


def loss(params, x, label):
    """Return the loss of one image."""
    return -namoo.nn.log_softmax(predict(params, x))[label]


@namoo.jit
def accuracy(params, images, labels):
    return jnp.mean(predict(params, images).argmax(-1) == labels)


def private_gradient(params, images, labels, here, size, key, clip, noise):
    """Return the sum of the clipped gradients of the sampled examples plus noise, over `size`."""
    grads = namoo.vmap(namoo.grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    factors = here * jnp.minimum(1.0, clip / namoo.vmap(optim.global_norm)(grads))
    leaves, structure = namoo.tree.flatten(grads)
    sums = [jnp.tensordot(factors, g, axes=1) for g in leaves]
    keys = random.split(key, len(sums))
    noisy = [s + clip * noise * random.normal(k, s.shape) for s, k in zip(sums, keys, strict=True)]
    return namoo.tree.map(lambda s: s / size, namoo.tree.unflatten(structure, noisy))


def epsilon(noise, rate, steps):
    """Return ε, at δ = DELTA, after some steps in which each digit takes part with chance q.

    The Rényi divergence of order α between the two outcomes of a step (Mironov et al., 2019) is

        1/(α-1) · log Σ_k C(α, k) (1-q)^(α-k) q^k exp((k² - k) / 2σ²)
    """

    def divergence(a):
        k = np.arange(a + 1)
        ways = [math.log(math.comb(a, i)) for i in k]
        drawn = (a - k) * math.log1p(-rate) + k * math.log(rate)
        return np.logaddexp.reduce(ways + drawn + (k * k - k) / (2 * noise**2)) / (a - 1)

    if noise == 0:
        return math.inf
    return min(steps * divergence(a) + math.log(1 / DELTA) / (a - 1) for a in range(2, 65))


def main(steps=600, size=200, clip=1.0, lr=1.0, check_every=30, *, picture):
    """Train with several levels of noise, draw the test accuracies, and return them."""
    (images, labels), test = load_digits()
    rate, room = size / len(images), size + 6 * math.isqrt(size)

    @namoo.jit
    def train_step(params, key, noise):
        draw, noise_key = random.split(key)
        drawn = random.bernoulli(draw, rate, (len(images),))
        (at,) = jnp.nonzero(drawn, size=room, fill_value=0)
        batch = jnp.asarray(images)[at], jnp.asarray(labels)[at], jnp.arange(room) < drawn.sum()
        grads = private_gradient(params, *batch, size, noise_key, clip, noise)
        return namoo.tree.map(lambda p, g: p - lr * g, params, grads)

    curves = {}
    for noise in [0.0, 1.0, 3.0]:
        params, name = init(random.key(0)), f"noise {noise:g}/accuracy"
        for step in range(1, steps + 1):
            params = train_step(params, random.fold_in(random.key(1), step), noise)
            if step % check_every == 0:
                curves.setdefault(name, []).append(float(accuracy(params, *test)))
        spent = epsilon(noise, rate, steps)
        print(f"noise {noise:g}: accuracy {curves[name][-1]:.2%}, ε = {spent:.2f}")
    at = [*range(check_every, steps + 1, check_every)]
    train.plot({"step": at, **curves}, picture, title="Test accuracy with differential privacy")
    return curves


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learn digits with differential privacy.")
    parser.add_argument("--short", action="store_true", help="40 steps")
    parser.add_argument("--out", default=HERE / "out" / "per_example_grads.svg", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 40, "check_every": 10} if args.short else {}), picture=args.out)
