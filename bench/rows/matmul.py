"""Matrix products."""

from functools import partial

from row import Goal, Row
from training import normal


def square(tiny, size):
    size = 4 if tiny else size
    return normal(0, size, size), normal(1, size, size)


def batched(tiny):
    return (
        (normal(0, 2, 3, 4), normal(1, 2, 4, 3))
        if tiny
        else (normal(0, 64, 128, 64), normal(1, 64, 64, 128))
    )


def product(jax, jnp):
    return jax.jit(jnp.matmul)


def torch_product(torch, compile, x, y):
    return partial(compile(torch.matmul), x, y)


def numpy_product(x, y):
    return x @ y


def row(name, inputs, goal):
    return Row(name, inputs, product, torch_product, numpy_product, goal)


ROWS = [
    row("matmul 128", partial(square, size=128), Goal(3.0, 1.0)),
    *(row(f"matmul {n}", partial(square, size=n), Goal(1.05, 1.0)) for n in (512, 1024, 2048)),
    row("matmul (64,128,64) x (64,64,128)", batched, Goal(2.0, 1.0)),
]
