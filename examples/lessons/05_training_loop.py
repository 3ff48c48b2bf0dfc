"""JAX 학습 루프가 명시적인 이유 (why the training loop is explicit).

No trainer: one step function and one loop, with everything in sight.
"""

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import namoo as jax
import namoo.numpy as jnp


# What the lesson takes from its libraries, in the fewest lines: a model with `apply`, an optimiser
# as the pair (init, update), and a state that is a pytree with `replace`.
class Model(NamedTuple):
    init: object
    apply: object


class Optimizer(NamedTuple):
    init: object
    update: object


def momentum(lr, decay=0.9):
    def init(params):
        return jax.tree.map(jnp.zeros_like, params)

    def update(grads, opt_state, params):
        velocity = jax.tree.map(lambda v, g: decay * v + g, opt_state, grads)
        return jax.tree.map(lambda v: -lr * v, velocity), velocity

    return Optimizer(init, update)


def apply_updates(params, updates):
    return jax.tree.map(lambda p, u: p + u, params, updates)


def mlp(hidden):
    def init(key):
        k1, k2 = jax.random.split(key)
        return {
            "hidden": {"w": jax.random.normal(k1, (2, hidden)), "b": jnp.zeros(hidden)},
            "out": {"w": jax.random.normal(k2, (hidden,)) / hidden**0.5, "b": jnp.zeros(())},
        }

    def apply(params, x):
        h = jnp.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
        return h @ params["out"]["w"] + params["out"]["b"]

    return Model(init, apply)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    params: dict
    opt_state: dict
    step: int

    replace = dataclasses.replace


def compute_loss(pred, y):
    return jnp.mean(jax.nn.softplus(-(2 * y - 1) * pred))


def accuracy(pred, y):
    return jnp.mean((pred > 0) == (y > 0.5))


model, optimizer = mlp(hidden=16), momentum(lr=0.1)
traces = []


@jax.jit
def train_step(state, batch):
    traces.append("train_step")  # Python runs only while jit traces
    x, y = batch

    def loss_fn(params):
        pred = model.apply(params, x)
        loss = compute_loss(pred, y)
        metrics = {"acc": accuracy(pred, y)}
        return loss, metrics

    (loss, metrics), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    updates, new_opt_state = optimizer.update(grads, state.opt_state, state.params)
    new_params = apply_updates(state.params, updates)
    new_state = state.replace(params=new_params, opt_state=new_opt_state, step=state.step + 1)
    return new_state, loss, metrics


key, init_key, data_key = jax.random.split(jax.random.PRNGKey(0), 3)
points = jax.random.normal(data_key, (500, 64, 2))
inside = (jnp.sum(points**2, axis=-1) < 1.4).astype(jnp.float32)  # learn a disc
params = model.init(init_key)
state = TrainState(params, optimizer.init(params), step=jnp.zeros((), jnp.int32))
metrics = {}
for batch in zip(points, inside):
    state, loss, metrics = train_step(state, batch)
    if state.step % 100 == 0:
        print(f"step {state.step}: loss={loss:.4f} acc={metrics['acc']:.3f}")
assert state.step == 500 and traces == ["train_step"]  # one step function, traced once
assert jax.tree.structure(state.params) == jax.tree.structure(params)
assert metrics["acc"] > 0.9


# The lesson's second block: forward, loss, gradient, update, repeat; nothing but functions.
def sgd_step(params, x, y, lr=0.01):
    def loss_fn(params):
        predictions = model.apply(params, x)
        return jnp.mean((predictions - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    new_params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return new_params, loss


sgd_step_jit = jax.jit(sgd_step)
first, losses = sgd_step(params, points[0], inside[0])[1], []
for _ in range(2):
    for batch in zip(points, inside):
        params, loss = sgd_step_jit(params, *batch)
        losses.append(float(loss))
assert sum(losses[-50:]) / 50 < 0.5 * first
print(f"plain SGD on the squared error: {first:.4f} -> {sum(losses[-50:]) / 50:.4f}")

print("""
Exercise: a loop by hand, compared with Lightning's training_step and configure_optimizers
  + every value of a step (loss, gradients, optimiser state) has a name in your own code
  + clipping, schedules and new update rules are lines in the step, not hooks to look for
  + what is compiled is exactly the function under jit, and it was traced once above
  - checkpoints, logging and early stopping do not come with it
  - devices, precision and resuming are yours to write, and to get wrong
JAX asks you to give up the trainer, and gives back a program that you can read from end to end.""")
