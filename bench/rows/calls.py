"""The overhead of compiled calls."""

import numpy as np

from row import Goal, Row
from rows.trees import Layer, layers, register
from training import normal


def scalar(tiny):
    return (np.ones((), np.float32),)


def add_one(jax, jnp):
    return jax.jit(lambda x: x + 1)


def torch_add_one(torch, compile, x):
    function = compile(lambda x: x + 1)
    return lambda: function(x)


def mapped_inputs(tiny):
    return (normal(0, 3 if tiny else 16),)


def mapped(jax, jnp):
    """Return the lessons' composition: `jit` sees one example, `vmap` comes later."""
    return jax.vmap(jax.jit(jax.grad(lambda x: jnp.sin(x) * x)))


def small_leaves(tiny):
    return ({f"leaf{i:02}": normal(i, 3) for i in range(5 if tiny else 100)},)


def add_to_leaves(jax, jnp):
    register(jax)
    return jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree))


def dataclass_leaves(tiny):
    values = iter(normal(0, 1000))
    return ([Layer(*(np.asarray(next(values)) for _ in range(4))) for _ in layers(tiny)],)


ROWS = [
    Row("jit(x + 1) of a scalar", scalar, add_one, torch_add_one, goal=Goal(4.0), pipelined=True),
    Row("vmap(jit(grad(f)))", mapped_inputs, mapped, goal=Goal(10.0), pipelined=True),
    Row(
        "call with 100 leaves in and out",
        small_leaves,
        add_to_leaves,
        goal=Goal(3.0),
        pipelined=True,
    ),
    Row(
        "call with 1000 dataclass leaves in and out",
        dataclass_leaves,
        add_to_leaves,
        goal=Goal(3.0),
        pipelined=True,
    ),
]
