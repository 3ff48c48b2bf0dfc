"""Small loops, whose iterations do so little work that the overhead dominates."""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal


def scan_inputs(tiny):
    steps, carries = (5, 4) if tiny else (100, 80)
    return tuple(np.asarray(x) for x in normal(0, carries)), normal(1, steps)


def scan(jax, jnp, gradient):
    """Return a scan in which each of many scalars follows its neighbour."""

    def loop(carry, xs):
        def body(carry, x):
            neighbours = carry[1:] + carry[:1]
            return tuple(0.9 * c + 0.1 * n * x for c, n in zip(carry, neighbours, strict=True)), x

        return jax.lax.scan(body, carry, xs)[0]

    def loss(carry, xs):
        return sum(c * c for c in loop(carry, xs))

    return jax.jit(jax.grad(loss) if gradient else loop)


def lorenz_inputs(tiny):
    steps = 4 if tiny else 500
    return (
        np.array([1.0, 1.5, 2.0], "f4"),
        np.array([10.0, 28.0, 8 / 3], "f4"),
        np.ones(steps, "f4"),
    )


def lorenz(jax, jnp):
    """Return the gradient of an orbit's final point by its start and the system's constants."""

    def velocity(point, constants):
        (x, y, z), (sigma, rho, beta) = point, constants
        return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    def loss(point, constants, steps):
        def body(p, _):
            h = 0.01
            k1 = velocity(p, constants)
            k2 = velocity(p + h / 2 * k1, constants)
            k3 = velocity(p + h / 2 * k2, constants)
            k4 = velocity(p + h * k3, constants)
            return p + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return jnp.sum(jax.lax.scan(body, point, steps)[0] ** 2)

    return jax.jit(jax.grad(loss, argnums=(0, 1)))


def matrix_inputs(tiny):
    rotation = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]], "f4")
    return normal(2, 3, 3), rotation, np.ones(3 if tiny else 1000, "f4")


def matrices(jax, jnp):
    return jax.jit(lambda x, a, steps: jax.lax.fori_loop(0, len(steps), lambda _, x: x @ a, x))


def newton_inputs(tiny):
    return (np.linspace(1, 50, 5 if tiny else 64, dtype=np.float32),)


def newton(jax, jnp):
    """Return a function that computes square roots, each with as many iterations as it needs."""

    def root(a):
        def unfinished(state):
            x, steps = state
            return (jnp.abs(x * x - a) > 1e-4 * a) & (steps < 50)

        def body(state):
            x, steps = state
            return 0.5 * (x + a / x), steps + 1

        return jax.lax.while_loop(unfinished, body, (a, 0))

    return jax.jit(jax.vmap(root))


ROWS = [
    Row(
        "scan of 100 steps, 80 scalar carries",
        scan_inputs,
        partial(scan, gradient=False),
        goal=Goal(1.5),
    ),
    Row("the same scan, gradient", scan_inputs, partial(scan, gradient=True), goal=Goal(5.0)),
    Row(
        "Lorenz, 500 steps of RK4, gradient",
        lorenz_inputs,
        lorenz,
        goal=Goal(5.0),
        tolerance=0.01,  # the orbit is chaotic
    ),
    Row("3x3 matrix recurrence, 1000 steps", matrix_inputs, matrices, goal=Goal(1.5)),
    Row("Newton, vmap of while_loop", newton_inputs, newton, goal=Goal(1.5)),
]
