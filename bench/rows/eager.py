"""Without `jit`: one operation at a time, as in a notebook."""

from functools import partial

import numpy as np

from row import Goal, Row
from rows import mlp
from training import normal

NORMALS, ZEROS = 10**6, 10**6
GENERATOR = np.random.default_rng(0)
SMALL = Goal(jax=5.0, torch=1.0, numpy=None, over_numpy=2e-6)


def one(name, function):
    """Return a row for a function that is written the same way in every framework."""
    return Row(
        name,
        lambda tiny: (normal(0, 16, 16), normal(1, 16, 16)),
        lambda jax, jnp: function,
        lambda torch, compile, x, y: partial(function, x, y),
        function,
        SMALL,
        pipelined=True,
        torch_compiles=False,
    )


def set_inputs(tiny):
    return (4 if tiny else ZEROS,)


def set_one(jax, jnp):
    """Return an update that needs no copy, because nothing else refers to the zeros."""
    return lambda size: jnp.zeros(size).at[3].set(1.0)


def torch_set_one(torch, compile, size):
    def function():
        x = torch.zeros(size)
        x[3] = 1.0
        return x

    return function


def numpy_set_one(size):
    x = np.zeros(size, np.float32)
    x[3] = 1.0
    return x


def normals_inputs(tiny):
    return (10_000 if tiny else NORMALS,)


def normals(jax, jnp):
    key = jax.random.key(0)
    return lambda size: jax.random.normal(key, (size,))


def torch_normals(torch, compile, size):
    return lambda: torch.randn(size)


def numpy_normals(size):
    return GENERATOR.standard_normal(size, np.float32)


ROWS = [
    one("eager x + 1.0", lambda x, y: x + 1.0),
    one("eager x[3]", lambda x, y: x[3]),
    one("eager x.sum()", lambda x, y: x.sum()),
    one("eager x @ y", lambda x, y: x @ y),
    Row(
        "eager MLP step, SGD, batch 32",
        partial(mlp.sgd_inputs, batch=32),
        mlp.sgd_function,
        mlp.torch_sgd,
        mlp.numpy_sgd,
        Goal(jax=15.0, numpy=None),
        chain=1,
        torch_compiles=False,
    ),
    Row(
        "zeros(10^6).at[3].set(1.0)",
        set_inputs,
        set_one,
        torch_set_one,
        numpy_set_one,
        # A copy would take much longer than this.
        Goal(numpy=None, over_numpy=50e-6),
        torch_compiles=False,
    ),
    Row(
        "10^6 normals",
        normals_inputs,
        normals,
        torch_normals,
        numpy_normals,
        Goal(numpy=0.5),
        torch_compiles=False,
        seen=lambda x: (1 + x.mean(), x.std()),  # each framework has its own generator
        tolerance=0.05,
    ),
]
