"""Learn to draw digits: a variational autoencoder with a two-dimensional latent space.

The encoder maps an image to a normal distribution over the plane; the decoder draws an image from a
point. Both are trained to maximise the evidence lower bound (Kingma and Welling, 2014,
"Auto-Encoding Variational Bayes"):

    log p(x) >= E_q(z|x)[log p(x|z)] - KL(q(z|x) || N(0, 1))

The picture shows what the decoder draws at the points of a grid in the plane.

    python examples/vae.py            # twenty epochs
    python examples/vae.py --short    # a few steps, to see that everything runs
"""

import argparse
import struct
import zlib
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import data, nn, optim, random, train
from namoo.scipy.stats import norm

HERE = Path(__file__).parent
TEST_SIZE = 2000


class VAE(namoo.Module):
    """Two networks: from an image to a distribution over the plane, and back."""

    encoder: nn.MLP
    decoder: nn.MLP

    def __init__(self, hidden=2, width=256, *, key):
        first, second = random.split(key)
        self.encoder = nn.MLP(784, 2 * hidden, width, depth=2, activation=nn.gelu, key=first)
        self.decoder = nn.MLP(hidden, 784, width, depth=2, activation=nn.gelu, key=second)

    def bound(self, image, key):
        """Return the negative lower bound of one image, in nats, from one sample."""
        mean, log_scale = jnp.split(self.encoder(image), 2)
        z = mean + jnp.exp(log_scale) * random.normal(key, mean.shape)
        logits = self.decoder(z)
        log_likelihood = -optim.losses.sigmoid_binary_cross_entropy(logits, image).sum()
        divergence = 0.5 * jnp.sum(jnp.exp(2 * log_scale) + mean**2 - 1 - 2 * log_scale)
        return divergence - log_likelihood


@namoo.jit
def mean_bound(model, images, key):
    return namoo.vmap(model.bound)(images, random.split(key, len(images))).mean()


@namoo.jit
def train_step(state, images, key):
    key = random.fold_in(key, state.step)
    loss, grads = namoo.value_and_grad(mean_bound)(state.params, images, key)
    return state.apply_gradients(grads=grads), loss


def draw_plane(model, count=15):
    """Return one large image of what the decoder draws, at equal steps of probability."""
    at = norm.ppf((jnp.arange(count) + 0.5) / count)
    z = jnp.stack(jnp.meshgrid(at, at), axis=-1).reshape(-1, 2)
    images = nn.sigmoid(namoo.vmap(model.decoder)(z)).reshape(count, count, 28, 28)
    return np.asarray(images.swapaxes(1, 2).reshape(28 * count, 28 * count))


def write_png(path, image):
    """Write a grey image with values in [0, 1]."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    height, width = image.shape
    rows = np.pad(np.uint8(255 * image), ((0, 0), (1, 0))).tobytes()  # rows start with filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in chunks))


def main(steps=2500, batch_size=64, *, picture):
    """Train, draw the plane, and return the negative bound of the test digits, in nats."""
    with np.load(HERE / "data" / "mnist10k.npz") as digits:
        images = (digits["images"].reshape(-1, 784) / 255).astype(np.float32)
    test = images[-TEST_SIZE:]
    loader = data.Loader(images[:-TEST_SIZE], batch_size, key=random.key(1))
    tx = optim.adam(optim.cosine_decay_schedule(2e-3, steps))
    state = train.TrainState.create(params=VAE(key=random.key(0)), tx=tx)
    for batch in (shown := train.progress(loader.steps(steps), total=steps)):
        state, loss = train_step(state, batch, random.key(2))
        shown(loss=loss)
    write_png(picture, draw_plane(state.params))
    result = float(mean_bound(state.params, test, random.key(3)))
    print(f"test bound: {result:.1f} nats an image; {picture}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learn to draw digits.")
    parser.add_argument("--short", action="store_true", help="60 steps")
    parser.add_argument("--out", default=HERE / "out" / "vae.png", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 60} if args.short else {}), picture=args.out)
