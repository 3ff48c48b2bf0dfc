"""Products of narrow numbers: bytes of quantised models, bfloat16 of mixed precision."""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal


def sized(tiny: bool, *shape: int) -> tuple[int, ...]:
    return tuple(min(n, 8) for n in shape) if tiny else shape


def bytes_of(seed, shape):
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.int8)


def int8_inputs(tiny, m, k, n):
    return bytes_of(0, sized(tiny, m, k)), bytes_of(1, sized(tiny, k, n))


def int8(jax, jnp):
    return jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32))


def int8_torch(torch, compile, x, y):
    return partial(torch._int_mm, x, y)


def quantised_inputs(tiny):
    m, k, n = sized(tiny, 64, 512, 512)
    return normal(0, m, k), bytes_of(1, (k, n)), np.abs(normal(2, n)) / 100


def quantised(jax, jnp):
    """A layer with weights of bytes, whose inputs are quantised row by row."""

    def layer(x, weights, scale):
        size = jnp.abs(x).max(-1, keepdims=True) / 127
        q = jnp.round(x / size).astype(jnp.int8)
        total = jax.lax.dot(q, weights, preferred_element_type=jnp.int32)
        return jax.nn.relu(total.astype(jnp.float32) * size * scale)

    return jax.jit(layer)


def quantised_torch(torch, compile, x, weights, scale):
    def layer(x, weights, scale):
        size = x.abs().amax(-1, keepdim=True) / 127
        q = (x / size).round().to(torch.int8)
        return torch.relu(torch._int_mm(q, weights).float() * size * scale)

    return partial(compile(layer), x, weights, scale)


def square(tiny, size):
    size = 8 if tiny else size
    return normal(0, size, size), normal(1, size, size)


def narrow(jax, jnp):
    """A product of bfloat16; the conversions of the inputs are part of the work."""

    def product(x, y):
        return (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32)

    return jax.jit(product)


def narrow_torch(torch, compile, x, y):
    return partial(compile(lambda x, y: (x.bfloat16() @ y.bfloat16()).float()), x, y)


def mixed_inputs(tiny):
    batch, *widths = (4, 8, 8, 4) if tiny else (128, 256, 512, 10)
    pairs = zip(widths[:-1], widths[1:], strict=True)
    weights = [normal(i, a, b) / np.float32(a**0.5) for i, (a, b) in enumerate(pairs)]
    return weights, normal(8, batch, widths[0]), normal(9, batch, widths[-1])


def mixed(jax, jnp):
    """A step of SGD on weights in float32, with products in bfloat16."""

    def loss(weights, x, y):
        x = x.astype(jnp.bfloat16)
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w.astype(jnp.bfloat16))
        out = (x @ weights[-1].astype(jnp.bfloat16)).astype(jnp.float32)
        return ((out - y) ** 2).mean()

    def step(weights, x, y):
        gradients = jax.grad(loss)(weights, x, y)
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]

    return jax.jit(step)


def mixed_torch(torch, compile, weights, x, y):
    def loss(weights, x, y):
        x = x.bfloat16()
        for w in weights[:-1]:
            x = torch.relu(x @ w.bfloat16())
        return (((x @ weights[-1].bfloat16()).float() - y) ** 2).mean()

    loss = compile(loss)

    def step():
        leaves = [w.detach().requires_grad_() for w in weights]
        gradients = torch.autograd.grad(loss(leaves, x, y), leaves)
        return [w.detach() - 0.1 * g for w, g in zip(leaves, gradients, strict=True)]

    return step


ROWS = [
    *(
        Row(
            f"int8 matmul ({m}, {k}) x ({k}, {n})",
            partial(int8_inputs, m=m, k=k, n=n),
            int8,
            int8_torch,
            goal=Goal(1.0, 1.0),
            torch_compiles=False,
        )
        for m, k, n in [(256, 512, 256), (1024, 1024, 1024)]
    ),
    Row(
        "int8 layer, inputs quantised by row",
        quantised_inputs,
        quantised,
        quantised_torch,
        goal=Goal(1.0, 1.0),
    ),
    *(
        Row(
            f"bfloat16 matmul {n}",
            partial(square, size=n),
            narrow,
            narrow_torch,
            goal=Goal(1.0, 1.0),
            tolerance=1e-2,
        )
        for n in (256, 512, 1024)
    ),
    Row(
        "MLP step, mixed precision",
        mixed_inputs,
        mixed,
        mixed_torch,
        goal=Goal(1.0, 1.0),
        tolerance=1e-2,
    ),
]  # fmt: skip
