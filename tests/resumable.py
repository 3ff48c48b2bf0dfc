"""A training run that goes on from its last checkpoint: `python resumable.py FOLDER`.

It prints the loss of each step as bits, and at the end the parameters. `kill_training.py` kills it.
"""

import sys

import namoo
import namoo.numpy as jnp
from namoo import optim
from namoo.checkpoints import Checkpoints
from namoo.train import TrainState

STEPS = 40


@namoo.jit
def train_step(state, key, order):
    key, noise = namoo.random.split(key)
    x = namoo.random.normal(noise, (4, 3)) + order[:, None]

    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - x.sum(1)) ** 2)

    value, grads = namoo.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), key, value


def main(folder: str) -> None:
    w, v = namoo.random.split(namoo.random.key(1))
    params = {"w": namoo.random.normal(w, (3, 5)), "v": namoo.random.normal(v, (5,))}
    state = TrainState.create(params=params, tx=optim.adam(0.05))
    # The random state and the position in the data are part of what is saved.
    run = {"state": state, "key": namoo.random.key(2), "position": 0}
    checkpoints = Checkpoints(folder, keep=2, background=True)
    if checkpoints.latest is not None:
        run = checkpoints.load(like=run)
    data = jnp.arange(4.0 * STEPS) / STEPS
    for step in range(int(run["state"].step), STEPS):
        position = run["position"]
        batch = data[position : position + 4]
        state, key, loss = train_step(run["state"], run["key"], batch)
        print(step, float(loss).hex(), flush=True)
        run = {"state": state, "key": key, "position": position + 4}
        checkpoints.save(step, run)
    checkpoints.wait()
    for name, value in sorted(run["state"].params.items()):
        print(name, value.tobytes().hex())


if __name__ == "__main__":
    main(sys.argv[1])
