"""A small GPT, one AdamW step: pre-norm blocks, causal attention, tanh-approximated GELU."""

from functools import partial

import numpy as np

from row import Goal, Row, convert
from training import adamw_state, adamw_step, normal, parts, torch_step

VOCABULARY, HEADS = 256, 4


def model(layers, width, length):
    """Return the parameters as a dict that contains a list of blocks."""
    seeds = iter(range(10_000))

    def weight(*shape):
        return normal(next(seeds), *shape, scale=0.02)

    def norm():
        return {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}

    def block():
        return {
            "norm1": norm(),
            "qkv": weight(width, 3 * width),
            "out": weight(width, width),
            "norm2": norm(),
            "up": weight(width, 4 * width),
            "down": weight(4 * width, width),
        }

    return {
        "tokens": weight(VOCABULARY, width),
        "positions": weight(length, width),
        "blocks": [block() for _ in range(layers)],
        "norm": norm(),
        "head": weight(width, VOCABULARY),
    }


def inputs(tiny, layers=4):
    layers, width, length, batch = (2, 8, 6, 2) if tiny else (layers, 256, 128, 8)
    params = model(layers, width, length)
    text = np.random.default_rng(3).integers(0, VOCABULARY, (batch, length + 1)).astype(np.int32)
    state = adamw_state(params, lambda tree: convert(tree, np.zeros_like))
    return params, state, text[:, :-1], text[:, 1:], 1e-3


def loss_of(jax, jnp):
    def norm(p, x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]

    def attention(p, x):
        batch, length, width = x.shape
        q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, 3 * HEADS, -1), 3, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // HEADS) ** 0.5
        causal = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]

    def loss(params, tokens, targets):
        x = params["tokens"][tokens] + params["positions"]
        for p in params["blocks"]:
            x = x + attention(p, norm(p["norm1"], x))
            x = x + jax.nn.gelu(norm(p["norm2"], x) @ p["up"]) @ p["down"]
        log_probs = jax.nn.log_softmax(norm(params["norm"], x) @ params["head"])
        return -jnp.take_along_axis(log_probs, targets[..., None], axis=-1).mean()

    return loss


def step_function(jax, jnp):
    return adamw_step(jax, jnp, loss_of(jax, jnp))


def step(jax, jnp):
    return jax.jit(step_function(jax, jnp))


def torch_loss(torch, params, tokens, targets):
    functional = torch.nn.functional

    def norm(p, x):
        return functional.layer_norm(x, x.shape[-1:], p["scale"], p["bias"], 1e-5)

    def attention(p, x):
        batch, length, _ = x.shape
        heads = (x @ p["qkv"]).reshape(batch, length, 3 * HEADS, -1).transpose(1, 2)
        q, k, v = heads.split(HEADS, dim=1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(x.shape) @ p["out"]

    x = functional.embedding(tokens, params["tokens"]) + params["positions"]
    for p in params["blocks"]:
        x = x + attention(p, norm(p["norm1"], x))
        x = x + functional.gelu(norm(p["norm2"], x) @ p["up"], approximate="tanh") @ p["down"]
    logits = norm(params["norm"], x) @ params["head"]
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def torch_adamw(torch, compile, params, state, x, y, lr):
    parameters = []

    def collect(tree):
        if isinstance(tree, dict | list):
            for value in tree.values() if isinstance(tree, dict) else tree:
                collect(value)
        else:
            parameters.append(tree)

    collect(params)
    batch = x.long(), y.long()
    return torch_step(torch, compile, torch_loss, params, parameters, "adamw", *batch, lr)


def row(layers, **options):
    """Return the row of a train step of a GPT with a number of layers."""
    return Row(
        f"GPT step, {layers} layers, AdamW",
        partial(inputs, layers=layers),
        step,
        torch_adamw,
        chain=2,
        seen=parts,
        tolerance=0.05,
        **options,
    )


ROWS = [row(4, goal=Goal(1.7, 1.05))]
