"""Single operations on large arrays, and chains that a compiler should fuse."""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal

TABLE, IDS = (50_000, 256), 4096


def array(tiny, *shape, seed=0):
    """Return one array; a tiny one has the same rank."""
    return (normal(seed, *(min(n, 5) for n in shape) if tiny else shape),)


def row(name, shape, ours, torch, numpy, goal, **options):
    """Return a row for a function of one array, written for (jax, jnp), PyTorch and NumPy."""
    return Row(
        name,
        lambda tiny: array(tiny, *shape),
        lambda jax, jnp: jax.jit(partial(ours, jax, jnp)),
        lambda module, compile, x: partial(compile(partial(torch, module)), x),
        numpy,
        goal,
        **options,
    )


def softmax(x):
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def layer_norm(jax, jnp, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5)


def numpy_layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def chain(maximum, x):
    """Apply twenty cheap operations."""
    y = (x * 0.5 + 1.0) * x - 0.25
    y = (y * y - x) * 0.125 + y
    y = maximum(y, x * -0.5) + 0.75 * x
    y = (y - 0.5) * (x + 2.0) - y * 0.25
    return maximum(y * 0.5 - x, -y) * 0.1 + x


def transcendental(np, x):
    """Apply the exponential, the hyperbolic tangent and the logarithm."""
    return np.log(1.5 + np.tanh(np.exp(np.tanh(x)) - 1.0))


def embedding_inputs(tiny):
    table = (7, 3) if tiny else TABLE
    ids = np.random.default_rng(1).integers(0, table[0], 4 if tiny else IDS).astype(np.int32)
    return normal(0, *table), ids, normal(2, len(ids), table[1])


def gather(jax, jnp):
    return jax.jit(lambda table, ids, rows: table[ids])


def torch_gather(torch, compile, table, ids, rows):
    embedding = compile(torch.nn.functional.embedding)
    return partial(embedding, ids.long(), table)


def scatter(jax, jnp):
    """Return the gradient of the gather: rows are added to a table of zeros by id."""
    return jax.jit(lambda table, ids, rows: jnp.zeros_like(table).at[ids].add(rows))


def torch_scatter(torch, compile, table, ids, rows):
    add = compile(lambda ids, rows: torch.zeros_like(table).index_add(0, ids, rows))
    return partial(add, ids.long(), rows)


def numpy_scatter(table, ids, rows):
    out = np.zeros_like(table)
    np.add.at(out, ids, rows)
    return out


ROWS = [
    row(
        "sort 10^6",
        (10**6,),
        lambda jax, jnp, x: jnp.sort(x),
        lambda torch, x: torch.sort(x).values,
        np.sort,
        Goal(20.0, 10.0),
    ),
    row(
        "cumsum 10^7",
        (10**7,),
        lambda jax, jnp, x: jnp.cumsum(x),
        lambda torch, x: torch.cumsum(x, 0),
        np.cumsum,
        Goal(4.0, 1.0),
        tolerance=1e-3,
    ),
    Row(
        "gather, 50k x 256, 4096 ids",
        embedding_inputs,
        gather,
        torch_gather,
        lambda table, ids, rows: table[ids],
        Goal(1.3, 1.0),
    ),
    Row(
        "scatter-add, 50k x 256, 4096 ids",
        embedding_inputs,
        scatter,
        torch_scatter,
        numpy_scatter,
        Goal(1.3, 1.0),
    ),
    row(
        "softmax (4096, 1024)",
        (4096, 1024),
        lambda jax, jnp, x: jax.nn.softmax(x),
        lambda torch, x: torch.softmax(x, -1),
        softmax,
        Goal(1.0, 1.0),
    ),
    row(
        "layer norm (4096, 1024)",
        (4096, 1024),
        layer_norm,
        lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        numpy_layer_norm,
        Goal(1.0, 1.0),
    ),
    row(
        "20 operations, 10^7",
        (10**7,),
        lambda jax, jnp, x: chain(jnp.maximum, x),
        lambda torch, x: chain(torch.maximum, x),
        partial(chain, np.maximum),
        Goal(1.0, 1.0),
    ),
    row(
        "exp, tanh, log, 10^7",
        (10**7,),
        lambda jax, jnp, x: transcendental(jnp, x),
        lambda torch, x: transcendental(torch, x),
        partial(transcendental, np),
        Goal(1.0, 1.0),
    ),
    *(
        row(
            f"sum of {where} (4096, 1024)",
            (4096, 1024),
            lambda jax, jnp, x, axis=axis: jnp.sum(1 + x, axis=axis),
            lambda torch, x, axis=axis: torch.sum(1 + x, dim=axis),
            lambda x, axis=axis: np.sum(1 + x, axis=axis),
            Goal(1.0, 1.0),
        )
        for where, axis in [("all", None), ("rows", 1), ("columns", 0)]
    ),
]
