"""Programs whose speed depends on how memory is walked: thin products, short axes, updates.

Each is a small example of a common pattern: one-token decoding, image pipelines, losses per
example, swaps in a loop.
"""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal


def shaped(*shapes):
    """Return the inputs of a row: normal arrays of some shapes; tiny ones have the same rank."""

    def inputs(tiny):
        cut = [tuple(min(n, 4) for n in shape) if tiny else shape for shape in shapes]
        return tuple(normal(seed, *shape) for seed, shape in enumerate(cut))

    return inputs


def row(name, shapes, ours, torch=None, numpy=None, **options):
    """Return a row for a function of arrays, written for (jax, jnp), PyTorch and NumPy."""
    return Row(
        name,
        shaped(*shapes),
        lambda jax, jnp: jax.jit(partial(ours, jax, jnp)),
        torch and (lambda module, compile, *xs: partial(compile(partial(torch, module)), *xs)),
        numpy,
        Goal(1.0, 1.0),
        **options,
    )


def projected(jax, jnp, x, residual, scale, weights):
    """One token: residual, norm, projection."""
    x = x + residual
    return x * jax.lax.rsqrt(jnp.mean(x * x) + 1e-5) * scale @ weights


def indices(tiny, count):
    size, steps = (50, 3) if tiny else (10**5, 200)
    ids = np.random.default_rng(1).integers(0, size, (steps, count))
    return normal(0, size), ids.astype(np.int32)


def updates(jax, jnp, update):
    """Return a scan in which each step updates a large carry."""
    step = partial(update, jax, jnp)
    return jax.jit(lambda x, ids: jax.lax.scan(lambda x, i: (step(x, i), None), x, ids)[0])


def two(jax, jnp, x, i):
    return x.at[i[0]].set(1.0).at[i[1]].add(2.0)


def swap(jax, jnp, x, i):
    return x.at[i[0]].set(x[i[1]]).at[i[1]].set(x[i[0]])


def perhaps(jax, jnp, x, i):
    return jax.lax.cond(i[0] % 2 == 0, lambda x: x.at[i[1]].set(1.0), lambda x: x, x)


IMAGES = (16, 224, 224, 3)

ROWS = [
    row(
        "(a + b + c) @ W, 1024",
        [(1024,), (1024,), (1024,), (1024, 1024)],
        lambda jax, jnp, a, b, c, w: (a + b + c) @ w,
        lambda torch, a, b, c, w: (a + b + c) @ w,
        lambda a, b, c, w: (a + b + c) @ w,
    ),
    row(
        "W @ (a + b + c), 1024",
        [(1024, 1024), (1024,), (1024,), (1024,)],
        lambda jax, jnp, w, a, b, c: w @ (a + b + c),
        lambda torch, w, a, b, c: w @ (a + b + c),
        lambda w, a, b, c: w @ (a + b + c),
    ),
    row(
        "residual, norm, projection of a token",
        [(1024,), (1024,), (1024,), (1024, 1024)],
        projected,
    ),
    *(
        row(
            f"matmul ({n}, 1024) x (1024, 1024)",
            [(n, 1024), (1024, 1024)],
            lambda jax, jnp, x, w: x @ w,
            lambda torch, x, w: x @ w,
            lambda x, w: x @ w,
        )
        for n in (2, 4, 8)
    ),
    row(
        "matmul (1024, 1024) x (1024, 4)",
        [(1024, 1024), (1024, 4)],
        lambda jax, jnp, w, x: w @ x,
        lambda torch, w, x: w @ x,
        lambda w, x: w @ x,
    ),
    *(
        Row(
            f"scan: {name}, 10^5",
            partial(indices, count=2),
            partial(updates, update=update),
            goal=Goal(1.0),
        )
        for name, update in [("two updates", two), ("swap", swap), ("update or not", perhaps)]
    ),
    row(
        "normalise RGB images",
        [IMAGES, (3,), (3,)],
        lambda jax, jnp, x, mean, scale: (x - mean) * scale,
        lambda torch, x, mean, scale: (x - mean) * scale,
        lambda x, mean, scale: (x - mean) * scale,
    ),
    row(
        "flip RGB images",
        [IMAGES],
        lambda jax, jnp, x: x[:, :, ::-1],
        lambda torch, x: x.flip(2),
        lambda x: x[:, :, ::-1].copy(),
    ),
    row(
        "crop RGB images",
        [IMAGES],
        lambda jax, jnp, x: x[:, 1:201, 2:202] * 2 + 1,
        lambda torch, x: x[:, 1:201, 2:202] * 2 + 1,
        lambda x: x[:, 1:201, 2:202] * 2 + 1,
    ),
    row(
        "RGB images to grey",
        [IMAGES, (3,)],
        lambda jax, jnp, x, w: x @ w,
        lambda torch, x, w: x @ w,
        lambda x, w: x @ w,
    ),
    row(
        "RGB images, channels first",
        [IMAGES],
        lambda jax, jnp, x: x.transpose(0, 3, 1, 2),
        lambda torch, x: x.permute(0, 3, 1, 2).contiguous(),
        lambda x: x.transpose(0, 3, 1, 2).copy(),
    ),
    *(
        row(
            f"sums of {n}, 400,000 rows",
            [(400_000, n)],
            lambda jax, jnp, x: x.sum(1),
            lambda torch, x: x.sum(1),
            lambda x: x.sum(1),
        )
        for n in (3, 4, 8)
    ),
    row(
        "exp of sums of 16, 100,000 rows",
        [(100_000, 16)],
        lambda jax, jnp, x: jnp.exp(x.sum(1)),
        lambda torch, x: torch.exp(x.sum(1)),
        lambda x: np.exp(x.sum(1)),
    ),
    row(
        "softplus(X @ q), (10,000, 64)",
        [(10_000, 64), (64,)],
        lambda jax, jnp, x, q: jax.nn.softplus(x @ q),
        lambda torch, x, q: torch.nn.functional.softplus(x @ q),
        lambda x, q: np.logaddexp(x @ q, 0),
    ),
    *(
        row(
            f"transpose {shape} to {order}",
            [shape],
            lambda jax, jnp, x, order=order: x.transpose(order),
            lambda torch, x, order=order: x.permute(order).contiguous(),
            lambda x, order=order: x.transpose(order).copy(),
        )
        for shape, order in [
            ((256, 256, 128), (2, 1, 0)),
            ((2048, 2048), (1, 0)),
            ((64, 256, 256), (0, 2, 1)),
        ]
    ),
]  # fmt: skip
