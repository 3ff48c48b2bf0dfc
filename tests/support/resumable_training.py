"""Train, resuming from the last checkpoint: `resumable_training.py FOLDER SOURCE WORKERS`.

It prints the loss of each step as bits, with the examples it was computed from, and finally the
parameters. `kill_training.py` kills it.
"""

import hashlib
import sys

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import data, nn, optim, random
from namoo.checkpoints import Checkpoints
from namoo.train import TrainState

STEPS = 40
SIZE = 50  # seven batches of six in an epoch and two examples left; the run ends in epoch six


def examples():
    return [{"x": np.full(3, i / SIZE, np.float32), "y": np.float32(i % 7)} for i in range(SIZE)]


def noisy(example, key):
    return {**example, "x": example["x"] + np.asarray(random.normal(key, (3,)))}


# Arrays and a list are read by index, a stream from its start.
SOURCES = {
    "arrays": lambda: data.Loader(data.stack(examples()), 6, key=random.key(3), **OPTIONS),
    "list": lambda: data.Loader(examples(), 6, key=random.key(3), last="keep", **OPTIONS),
    "stream": lambda: data.Loader(
        lambda: iter(examples()), 6, key=random.key(3), shuffle_buffer=9, **OPTIONS
    ),
}
# All kinds of workers must make the same batches.
WORKERS = {
    "none": {},
    "threads": {"workers": 3},
    "processes": {"workers": 2, "worker_kind": "process", "prefetch": 3},
}
OPTIONS: dict = {"map": noisy}


@namoo.jit
def train_step(state, key, batch):
    key, noise = random.split(key)

    def loss(model):
        keys = random.split(noise, len(batch["y"]))
        guess = namoo.vmap(lambda x, k: model(x, key=k))(batch["x"], keys)
        return jnp.mean((guess[:, 0] - batch["y"]) ** 2)

    value, grads = namoo.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), key, value


def main(folder: str, source: str, workers: str) -> None:
    OPTIONS.update(WORKERS[workers])
    first, last = random.split(random.key(1))
    layers = [nn.Linear(3, 8, key=first), nn.relu, nn.Dropout(0.1), nn.Linear(8, 1, key=last)]
    state = TrainState.create(params=nn.Sequential(layers), tx=optim.adam(0.05))
    loader = SOURCES[source]()
    # The random key and the position in the data are saved, too.
    run = {"state": state, "key": random.key(2), "position": loader.state()}
    checkpoints = Checkpoints(folder, keep=2, background=True)
    if checkpoints.latest is not None:
        run = checkpoints.load(like=run)
        loader.restore(run["position"])
    start = int(run["state"].step)
    for step, batch in enumerate(loader.steps(STEPS - start), start):
        state, key, loss = train_step(run["state"], run["key"], batch)
        seen = hashlib.sha256(batch["x"].tobytes() + batch["y"].tobytes()).hexdigest()
        print(step, float(loss).hex(), seen[:12], random.key_data(key), flush=True)
        run = {"state": state, "key": key, "position": loader.state()}
        checkpoints.save(step, run)
    checkpoints.wait()
    for leaf in namoo.tree.leaves(run["state"]):
        print(np.asarray(leaf).tobytes().hex())
    print(loader.state(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
