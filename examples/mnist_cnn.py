"""Train a convolutional network on real handwritten digits, with checkpoints and exact resume.

The model is a `namoo.Module`, the optimiser AdamW, the digits are shifted and rotated at random.
Stop it at any time: started again, it continues from its last checkpoint with the same results.

    python examples/mnist_cnn.py            # ten epochs, or what is left of them
    python examples/mnist_cnn.py --short    # a few steps, to see that everything runs
"""

import argparse
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import checkpoints, data, nn, optim, random, train, tree

HERE = Path(__file__).parent
TEST_SIZE = 2000


class CNN(namoo.Module):
    """Two convolutions with pooling, then two dense layers; it takes one image (1, 28, 28)."""

    features: nn.Sequential
    head: nn.MLP
    dropout: nn.Dropout

    def __init__(self, *, key):
        first, second, head = random.split(key, 3)
        wide = nn.Conv2d(1, 8, kernel_size=5, stride=2, padding="SAME", key=first)
        deep = nn.Conv2d(8, 16, kernel_size=3, padding="SAME", key=second)
        self.features = nn.Sequential([wide, nn.relu, deep, nn.relu, nn.MaxPool2d(2, stride=2)])
        self.head = nn.MLP(16 * 7 * 7, 10, width_size=64, depth=1, key=head)
        self.dropout = nn.Dropout(0.2)

    def __call__(self, image, *, key=None):
        return self.head(self.dropout(self.features(image).ravel(), key=key))


def load_digits():
    """Return (train images, train labels), (test images, test labels); pixels are in [0, 1]."""
    with np.load(HERE / "data" / "mnist10k.npz") as digits:
        images = (digits["images"][:, None] / 255).astype(np.float32)
        labels = digits["labels"].astype(np.int32)
    return (images[:-TEST_SIZE], labels[:-TEST_SIZE]), (images[-TEST_SIZE:], labels[-TEST_SIZE:])


def augment(image, key):
    """Rotate an image by a few degrees and shift it by up to two pixels."""
    angle, dy, dx = random.uniform(key, (3,), minval=-1, maxval=1) * jnp.array([0.2, 2.0, 2.0])
    y, x = jnp.meshgrid(jnp.arange(28.0) - 13.5, jnp.arange(28.0) - 13.5, indexing="ij")
    rows = jnp.cos(angle) * y - jnp.sin(angle) * x + 13.5 + dy
    columns = jnp.sin(angle) * y + jnp.cos(angle) * x + 13.5 + dx
    return namoo.scipy.ndimage.map_coordinates(image[0], [rows, columns], order=1)[None]


@namoo.jit
def train_step(state, key, images, labels):
    # The key is derived from the step, so that a resumed run draws the same numbers.
    turns, drops = random.split(random.fold_in(key, state.step))
    images = namoo.vmap(augment)(images, random.split(turns, len(images)))
    keys = random.split(drops, len(images))

    def loss(model):
        logits = namoo.vmap(lambda x, k: model(x, key=k))(images, keys)
        return optim.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    value, grads = namoo.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


@namoo.jit
def test_step(model, batch):
    images, labels = batch
    logits = namoo.vmap(nn.inference_mode(model))(images)
    return {"accuracy": train.Accuracy.empty().update(logits, labels)}


def main(steps=1250, save_every=125, batch_size=64, *, picture):
    """Train, save regularly, draw the curves, and return the test accuracy."""
    digits, test = load_digits()
    loader = data.Loader(digits, batch_size, key=random.key(1))
    schedule = optim.cosine_decay_schedule(4e-3, steps)
    tx = optim.adamw(schedule, weight_decay=1e-2, mask=~namoo.paths("**/bias"))
    state = train.TrainState.create(params=CNN(key=random.key(0)), tx=tx)
    folder = Path(picture).with_name(f"mnist_cnn_{steps}_steps")  # delete it to start over
    saved = checkpoints.Checkpoints(folder / "checkpoints", keep=2)
    if saved.latest is None:
        print(tree.summary(state.params))
    else:
        run = saved.load(like={"state": state, "loader": loader.state()})
        state = run["state"]
        loader.restore(run["loader"])
        print(f"resumed at step {int(state.step)}")

    log = train.Logger(folder)
    log.rewind(int(state.step) + 1)  # a line may have been logged after the last save
    left = steps - int(state.step)
    for images, labels in (shown := train.progress(loader.steps(left), total=left)):
        state, loss = train_step(state, random.key(2), images, labels)
        shown(loss=loss)
        step = int(state.step)
        if step % save_every == 0 or step == steps:
            log(step, loss=loss, **train.evaluate(test_step, state.params, data.Loader(test, 500)))
            saved.save(step, {"state": state, "loader": loader.state()})
    train.plot(log, picture, title="Digits, by a small convolutional network")
    result = log.history[-1]["accuracy"]
    print(f"test accuracy: {result:.2%}; {picture}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a convolutional network on digits.")
    parser.add_argument("--short", action="store_true", help="40 steps")
    parser.add_argument("--out", default=HERE / "out" / "mnist_cnn.svg", help="the picture")
    args = parser.parse_args()
    short = {"steps": 40, "save_every": 20} if args.short else {}
    main(**short, picture=args.out)
