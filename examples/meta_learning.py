"""Learn to learn: parameters from which one step of descent fits any sine wave (MAML).

A task is a sine wave with a random amplitude and phase, seen at ten points. The inner step is
θ' = θ - a·∇L(θ) on those points; the outer loss is L(θ') on ten others. Its gradient differentiates
through the inner gradient (Finn, Abbeel and Levine, 2017, "Model-Agnostic Meta-Learning for Fast
Adaptation of Deep Networks").

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

SHOTS = 10
INNER_RATE = 0.02


def wave(key, x):
    """Return a random sine wave at given points."""
    amplitude, phase = random.uniform(key, (2,)) * jnp.array([4.9, math.pi])
    return (0.1 + amplitude) * jnp.sin(x - phase)


def sine_task(key):
    """Return two sets of points of one random wave: to adapt to, and to evaluate on."""
    wave_key, x_key = random.split(key)
    x = random.uniform(x_key, (2, SHOTS, 1), minval=-5.0, maxval=5.0)
    y = wave(wave_key, x)
    return (x[0], y[0]), (x[1], y[1])


def loss(model, points):
    x, y = points
    return jnp.mean((namoo.vmap(model)(x) - y) ** 2)


def adapt(model, points, steps=1):
    """Return the model after some steps of gradient descent on a few points."""

    def step(model, _):
        grads = namoo.grad(loss)(model, points)
        return namoo.tree.map(lambda p, g: p - INNER_RATE * g, model, grads), None

    return lax.scan(step, model, None, length=steps)[0]


def meta_loss(model, key):
    """Return the loss on the second points of a task after one step on the first."""
    seen, judged = sine_task(key)
    return loss(adapt(model, seen), judged)


def plain_loss(model, key):
    """Return the loss without an inner step: what one network for all waves can reach."""
    return loss(model, sine_task(key)[1])


@namoo.jit(static_argnames=("objective", "steps"))
def learn(objective, steps):
    """Minimise the mean objective over random tasks, with the whole loop as one program."""

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
    """Return the mean loss on new tasks after some steps on ten points of each."""

    def one(key):
        seen, judged = sine_task(key)
        return loss(adapt(model, seen, steps), judged)

    return namoo.vmap(one)(keys).mean()


def main(steps=6000, *, picture):
    """Learn with and without the inner step, compare on 500 new waves, draw one of them."""
    keys, results = random.split(random.key(2), 500), {}
    seen, _ = sine_task(keys[0])
    x = np.linspace(-5, 5, 101, dtype=np.float32)[:, None]
    true, dots = wave(random.split(keys[0])[0], x)[:, 0], [math.nan] * len(x)
    # A NaN makes a gap, so a number between two of them is a dot: an observed point.
    dots += [y for point in seen[1][:, 0] for y in (math.nan, point)]
    curves = {"x": np.concatenate([x, np.repeat(seen[0], 2, axis=0)])[:, 0]}
    for name, objective in [("plain", plain_loss), ("meta", meta_loss)]:
        model = learn(objective, steps)
        results[name] = [float(error_after(model, keys, n)) for n in (0, 1, 10)]
        errors = ", ".join(f"{error:.3f}" for error in results[name])
        print(f"{name}-learned: error {errors} after 0, 1, 10 steps on {SHOTS} points")
        for n in (0, 1, 10):
            curves[f"after {n}/{name}"] = namoo.vmap(adapt(model, seen, n))(x)[:, 0]
        curves |= {f"the wave/{name}": true, f"seen/{name}": dots}
    train.plot(curves, picture, x="x", title="A new wave, after some steps on ten of its points")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learn to learn sine waves.")
    parser.add_argument("--short", action="store_true", help="600 steps")
    parser.add_argument("--out", default=Path(__file__).parent / "out" / "meta_learning.svg")
    args = parser.parse_args()
    main(**({"steps": 600} if args.short else {}), picture=args.out)
