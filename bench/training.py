"""What the rows that train share: inputs, hand-written optimisers, PyTorch's training step."""

from functools import partial

import numpy as np

DECAY, B1, B2, EPS = 0.01, 0.9, 0.999, 1e-8


def normal(seed, *shape, scale=1.0):
    """Reproducible float32 normals."""
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def parts(out):
    """Return the new parameters and the loss, which every framework's step returns."""
    return out[0], out[-1]


def sgd_step(jax, loss):
    """Return the lessons' step: parameters, then a batch, then the rate."""

    def step(params, x, y, lr):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), value

    return step


def adamw_step(jax, jnp, loss):
    """Return the same with AdamW (Loshchilov and Hutter, 2019); the state is (m, v, t)."""

    def step(params, state, x, y, lr):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        m, v, t = state
        t = t + 1
        m = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, m, grads)
        v = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * g**2, v, grads)

        def update(p, m, v):
            direction = (m / (1 - B1**t)) / (jnp.sqrt(v / (1 - B2**t)) + EPS)
            return p - lr * (direction + DECAY * p)

        return jax.tree.map(update, params, m, v), (m, v, t), value

    return step


def adamw_state(params, zeros):
    """Return the first (m, v, t) for a tree of NumPy arrays; `zeros` maps such a tree to zeros."""
    return zeros(params), zeros(params), np.zeros((), np.float32)


def torch_step(torch, compile, loss, params, parameters, optimiser, x, y, lr):
    """Return a PyTorch step: a compiled loss, its backward pass, and a fused optimiser."""
    for p in parameters:
        p.requires_grad_()
    if optimiser == "adamw":
        settings = {"weight_decay": DECAY, "betas": (B1, B2), "eps": EPS}
        update = torch.optim.AdamW(parameters, lr=lr, fused=True, **settings)
    else:
        update = torch.optim.SGD(parameters, lr=lr, fused=True)
    loss = compile(partial(loss, torch))

    def step():
        update.zero_grad()
        value = loss(params, x, y)
        value.backward()
        update.step()
        return params, value

    return step
