"""Learn to learn: parameters from which one step of descent fits any sine wave (MAML).

A task is a sine wave of its own amplitude and phase, seen at ten points. The inner step is
θ' = θ - a·∇L(θ) on those points; the outer loss is L(θ') on ten others. Its gradient goes through
the inner gradient: grad through grad (Finn, Abbeel and Levine, 2017, "Model-Agnostic Meta-Learning
for Fast Adaptation of Deep Networks").

    python examples/meta_learning.py            # 6000 steps of 25 tasks
    python examples/meta_learning.py --short    # a few steps, to see that everything runs
"""

import argparse
import math
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax, nn, optim, random, train

HERE = Path(__file__).parent
SHOTS = 10
INNER_RATE = 0.02


def sine_task(key):
    """Two sets of points of one random wave: to learn from, and to be judged by."""
    amplitude_key, phase_key, x_key = random.split(key, 3)
    amplitude = random.uniform(amplitude_key, minval=0.1, maxval=5.0)
    phase = random.uniform(phase_key, minval=0.0, maxval=math.pi)
    x = random.uniform(x_key, (2, SHOTS, 1), minval=-5.0, maxval=5.0)
    y = amplitude * jnp.sin(x - phase)
    return (x[0], y[0]), (x[1], y[1])


def loss(model, points):
    x, y = points
    return jnp.mean((namoo.vmap(model)(x) - y) ** 2)


def adapt(model, points, steps=1):
    """The model after some steps of plain descent on a few points."""

    def step(model, _):
        grads = namoo.grad(loss)(model, points)
        return namoo.tree.map(lambda p, g: p - INNER_RATE * g, model, grads), None

    return lax.scan(step, model, None, length=steps)[0]


def meta_loss(model, key):
    """The loss on the second points of a task, after one step on the first."""
    seen, judged = sine_task(key)
    return loss(adapt(model, seen), judged)


def plain_loss(model, key):
    """The loss without an inner step: what one network for all waves can do."""
    seen, judged = sine_task(key)
    return loss(model, judged)


@namoo.jit(static_argnames=("objective", "steps"))
def learn(objective, steps):
    """Minimise the mean objective over random tasks, the whole loop as one program."""

    def step(state, key):
        keys = random.split(key, 25)
        value, grads = namoo.value_and_grad(
            lambda model: namoo.vmap(objective, in_axes=(None, 0))(model, keys).mean()
        )(state.params)
        return state.apply_gradients(grads=grads), value

    model = nn.MLP(1, 1, width_size=40, depth=2, key=random.key(0))
    tx = optim.adam(optim.cosine_decay_schedule(2e-3, steps))
    state = train.TrainState.create(params=model, tx=tx)
    return lax.scan(step, state, random.split(random.key(1), steps))[0].params


@namoo.jit(static_argnames="steps")
def error_after(model, keys, steps):
    """The mean loss on new tasks, after some steps on ten points of each."""

    def one(key):
        seen, judged = sine_task(key)
        return loss(adapt(model, seen, steps), judged)

    return namoo.vmap(one)(keys).mean()


def main(steps=6000, *, picture):
    """Learn with and without the inner step, compare on 500 new waves, draw one of them."""
    keys, results = random.split(random.key(2), 500), {}
    seen, _ = sine_task(keys[3])
    x = np.linspace(-5, 5, 101, dtype=np.float32)[:, None]
    curves = {"x": x[:, 0].tolist()}
    for name, objective in [("plain", plain_loss), ("meta", meta_loss)]:
        model = learn(objective, steps)
        results[name] = [float(error_after(model, keys, n)) for n in (0, 1, 10)]
        shown = ", ".join(f"{v:.3f}" for v in results[name])
        print(f"{name}-learned: error {shown} after 0, 1, 10 steps on {SHOTS} points")
        for n in (0, 1, 10):
            y = namoo.vmap(adapt(model, seen, n))(x)[:, 0]
            curves[f"after {n} steps/{name}"] = y.tolist()
    train.plot(curves, picture, x="x", title="One new wave, before and after a step on ten points")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learn to learn sine waves.")
    parser.add_argument("--short", action="store_true", help="600 steps")
    parser.add_argument("--out", default=HERE / "out" / "meta_learning.svg", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 600} if args.short else {}), picture=args.out)
