"""Fit a logistic regression of digits to convergence with L-BFGS.

The loss is convex and has one minimum. L-BFGS estimates the curvature from its last steps and
searches along each direction; it reaches the minimum in a number of steps after which gradient
descent is still far from it (Liu and Nocedal, 1989). The loop is one `lax.while_loop`, which ends
when the gradient is small.

    python examples/lbfgs_fit.py            # until the gradient is below 1e-4
    python examples/lbfgs_fit.py --short    # 1000 digits, a few steps
"""

import argparse
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax, optim, train

HERE = Path(__file__).parent
TEST_SIZE = 2000
DECAY = 1e-3


def load_digits():
    """Return (train images, train labels), (test images, test labels); pixels are in [0, 1]."""
    with np.load(HERE / "data" / "mnist10k.npz") as digits:
        images = (digits["images"].reshape(-1, 784) / 255).astype(np.float32)
        labels = digits["labels"].astype(np.int32)
    return (images[:-TEST_SIZE], labels[:-TEST_SIZE]), (images[-TEST_SIZE:], labels[-TEST_SIZE:])


def loss(params, images, labels):
    """Return the cross-entropy plus a small weight penalty, so that there is a minimum."""
    logits = images @ params["W"] + params["b"]
    fit = optim.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return fit + DECAY * jnp.sum(params["W"] ** 2)


@namoo.jit(static_argnames="steps")
def minimise(params, data, steps, tolerance):
    """Run L-BFGS until the gradient is small; return parameters, steps, losses and norms."""
    tx = optim.lbfgs()

    def value_fn(params):
        return loss(params, *data)

    # The line search has already computed the next value and gradient; they are in its state.
    value_and_grad = optim.value_and_grad_from_state(value_fn)

    def unfinished(carry):
        _, _, step, _, norms = carry
        return (step < steps) & ((step == 0) | (norms[step - 1] > tolerance))

    def improve(carry):
        params, state, step, values, norms = carry
        value, grad = value_and_grad(params, state=state)
        updates, state = tx.update(grad, state, params, value=value, grad=grad, value_fn=value_fn)
        values = values.at[step].set(value)
        norms = norms.at[step].set(optim.global_norm(grad))
        return optim.apply_updates(params, updates), state, step + 1, values, norms

    empty = jnp.zeros(steps)
    start = params, tx.init(params), jnp.int32(0), empty, empty
    params, _, step, values, norms = lax.while_loop(unfinished, improve, start)
    return params, step, values, norms


@namoo.jit(static_argnames="steps")
def descend(params, data, steps, rate):
    """Run plain gradient descent; return the losses and the norms of the gradients."""

    def step(params, _):
        value, grad = namoo.value_and_grad(loss)(params, *data)
        params = namoo.tree.map(lambda p, g: p - rate * g, params, grad)
        return params, (value, optim.global_norm(grad))

    return lax.scan(step, params, None, length=steps)[1]


def main(steps=300, size=8000, tolerance=1e-4, *, picture):
    """Fit in both ways, draw the norms of the gradients, and return the test accuracy."""
    (images, labels), (test_images, test_labels) = load_digits()
    digits = images[:size], labels[:size]
    zeros = {"W": jnp.zeros((784, 10)), "b": jnp.zeros(10)}
    params, count, values, norms = minimise(zeros, digits, steps, tolerance)
    count = int(count)
    slow_values, slow_norms = descend(zeros, digits, count, 0.1)
    print(f"L-BFGS: loss {values[count - 1]:.6f}, gradient {norms[count - 1]:.1e}, {count} steps")
    print(f"descent: loss {slow_values[-1]:.6f}, gradient {slow_norms[-1]:.1e}, {count} steps")

    curves = {"L-BFGS/gradient": norms[:count], "descent/gradient": slow_norms}
    train.plot(curves, picture, title="The length of the gradient", log=True)
    guesses = (test_images @ params["W"] + params["b"]).argmax(axis=-1)
    result = float(jnp.mean(guesses == test_labels))
    print(f"test accuracy: {result:.2%}; {picture}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit a logistic regression by L-BFGS.")
    parser.add_argument("--short", action="store_true", help="1000 digits, at most 30 steps")
    parser.add_argument("--out", default=HERE / "out" / "lbfgs_fit.svg", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 30, "size": 1000} if args.short else {}), picture=args.out)
