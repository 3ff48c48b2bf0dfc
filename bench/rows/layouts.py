"""Programs of thin operands: one token at a time, few columns, and last axes of two to eight.

What decides their speed is the order in which memory is read: a matrix must be read once, in the
order of its rows, and a short axis must not leave most lanes of a vector empty.
"""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal

from .shapes import row

TOKENS, WIDTH, HEADS, LAYERS = 512, 512, 8, 4


def decoder(tiny):
    """Return the weights of a layer, its keys and values so far, and the vector of one token."""
    n, heads, tokens = (8, 2, 6) if tiny else (WIDTH, HEADS, TOKENS)
    shapes = {"q": (n, n), "k": (n, n), "v": (n, n), "o": (n, n), "up": (n, 4 * n)}
    shapes |= {"down": (4 * n, n), "one": (n,), "two": (n,)}
    weights = {k: normal(i, *s) / np.float32(n**0.5) for i, (k, s) in enumerate(shapes.items())}
    cache = normal(20, 2, heads, tokens, n // heads)
    return weights, cache, normal(21, n), np.int32(tokens // 2)


def decode(jax, jnp, w, cache, x, position):
    """One layer of a decoder for one new token, with a cache of keys and values."""

    def normed(x, scale):
        return x * jax.lax.rsqrt(jnp.mean(x * x) + 1e-5) * scale

    heads, tokens, size = cache.shape[1:]
    y = normed(x, w["one"])
    q, k, v = ((y @ w[name]).reshape(heads, size) for name in "qkv")
    new = jnp.stack([k, v])[:, :, None]
    cache = jax.lax.dynamic_update_slice(cache, new, (0, 0, position, 0))
    scores = jnp.einsum("hd,htd->ht", q, cache[0]) / size**0.5
    scores = jnp.where(jnp.arange(tokens) <= position, scores, -1e30)
    seen = jnp.einsum("ht,htd->hd", jax.nn.softmax(scores), cache[1])
    x = x + seen.reshape(-1) @ w["o"]
    y = normed(x, w["two"])
    return x + jax.nn.silu(y @ w["up"]) @ w["down"], cache


def decode_torch(torch, w, cache, x, position):
    def normed(x, scale):
        return x * torch.rsqrt(torch.mean(x * x) + 1e-5) * scale

    heads, tokens, size = cache.shape[1:]
    y = normed(x, w["one"])
    q, k, v = ((y @ w[name]).reshape(heads, size) for name in "qkv")
    cache = cache.clone()
    cache[:, :, int(position)] = torch.stack([k, v])
    scores = torch.einsum("hd,htd->ht", q, cache[0]) / size**0.5
    scores = torch.where(torch.arange(tokens) <= int(position), scores, -1e30)
    seen = torch.einsum("ht,htd->hd", torch.softmax(scores, -1), cache[1])
    x = x + seen.reshape(-1) @ w["o"]
    y = normed(x, w["two"])
    return x + torch.nn.functional.silu(y @ w["up"]) @ w["down"], cache


def feed_forward(tiny, rows):
    n = 8 if tiny else WIDTH
    scale = np.float32(n**-0.5)
    up, down = normal(1, LAYERS, n, 4 * n) * scale, normal(2, LAYERS, 4 * n, n) * scale
    return (normal(0, rows, n) if rows else normal(0, n)), up, down


def blocks(jax, jnp, x, up, down):
    """Feed-forward blocks with residuals, one after the other in a scan."""

    def block(x, weights):
        up, down = weights
        y = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(y @ up) @ down, None

    return jax.lax.scan(block, x, (up, down))[0]


def blocks_torch(torch, x, up, down):
    for u, d in zip(up, down, strict=True):
        y = torch.nn.functional.layer_norm(x, x.shape[-1:])
        x = x + torch.nn.functional.gelu(y @ u, approximate="tanh") @ d
    return x


def residual(jax, jnp, x, a, b, scale, w):
    """One token: two residuals, norm, projection."""
    x = x + a + b
    return x * jax.lax.rsqrt(jnp.mean(x * x) + 1e-5) * scale @ w, x


def residual_torch(torch, x, a, b, scale, w):
    x = x + a + b
    return x * torch.rsqrt(torch.mean(x * x) + 1e-5) * scale @ w, x


def bytes_of_images(tiny, *shape):
    shape = (2, 6, 6, 3) if tiny else shape
    return (np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8),)


def same(name, shapes, function, **options):
    """Return a row for a function of (module, *arrays) that all libraries write alike."""
    return row(
        name,
        shapes,
        lambda jax, jnp, *xs: function(jnp, *xs),
        function,
        partial(function, np),
        **options,
    )


def patches(np, x):
    """Return the patches of images, each as a row of its pixels."""
    n, height, width, colours = x.shape
    x = x.reshape(n, height // 4, 4, width // 4, 4, colours)
    return np.moveaxis(x, 3, 2).reshape(n, -1, 16 * colours)


def distances(np, x, y):
    d = x[:, None] - y[None]
    return np.sqrt((d * d).sum(-1))


def rotated(np, x, angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], -1)


def multiplied(np, x, y):
    """Complex products of pairs (real, imaginary)."""
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return np.stack([a * c - b * d, a * d + b * c], -1)


def quaternions(np, x, y):
    a, b, c, d = (x[..., i] for i in range(4))
    e, f, g, h = (y[..., i] for i in range(4))
    return np.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        -1,
    )


def normed(np, x, scale, shift):
    """Layer norm."""
    d = x - x.mean(-1)[..., None]
    return d / np.sqrt((d * d).mean(-1)[..., None] + 1e-5) * scale + shift


def softmax(n):
    return row(
        f"softmax over {n}, 200,000 rows",
        [(200_000, n)],
        lambda jax, jnp, x: jax.nn.softmax(x),
        lambda torch, x: torch.softmax(x, -1),
    )


def resized(name, before, after):
    """Return a row for images of one size that are resized to another."""

    def size(tiny):
        return tuple(min(n, 5) for n in after) if tiny else after

    def ours(jax, jnp, x):
        return jax.image.resize(x, (len(x), *size(x.shape[1] < 7), x.shape[-1]), "bilinear")

    def torch(torch, x):
        y = torch.nn.functional.interpolate(
            x.permute(0, 3, 1, 2), size(x.shape[1] < 7), mode="bilinear", antialias=True
        )
        return y.permute(0, 2, 3, 1).contiguous()

    return row(name, [before], ours, torch, torch_compiles=False)


def kernel_gradient(jax, jnp, x, w):
    """The gradient of the kernel of a convolution of images with one channel."""

    def loss(w):
        y = jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.sum(y * y)

    return jax.grad(loss)(w)


def kernel_gradient_torch(torch, x, w):
    x = x.permute(0, 3, 1, 2).contiguous()
    kernel = w.permute(3, 2, 0, 1).contiguous().requires_grad_()
    y = torch.nn.functional.conv2d(x, kernel, padding="same")
    (g,) = torch.autograd.grad((y * y).sum(), kernel)
    return g.permute(2, 3, 1, 0)


IMAGES = (16, 224, 224, 3)

ROWS = [
    Row(
        "decode a token with a cache of 512",
        decoder,
        lambda jax, jnp: jax.jit(partial(decode, jax, jnp)),
        lambda torch, compile, *xs: partial(partial(decode_torch, torch), *xs),
        goal=Goal(1.0, 1.0),
        torch_compiles=False,
    ),
    *(
        Row(
            f"four feed-forward blocks in scan, {rows or 'one'} row{'s' * bool(rows)}",
            partial(feed_forward, rows=rows),
            lambda jax, jnp: jax.jit(partial(blocks, jax, jnp)),
            lambda torch, compile, *xs: partial(partial(blocks_torch, torch), *xs),
            goal=Goal(1.0, 1.0),
            torch_compiles=False,
        )
        for rows in (0, 3)
    ),
    row(
        "two residuals, norm, projection of a token",
        [(1024,), (1024,), (1024,), (1024,), (1024, 4096)],
        residual,
        residual_torch,
    ),
    *(
        same(f"matvec {m} x {n}", [(m, n), (n,)], lambda np, w, x: w @ x)
        for m, n in [(300, 77), (4096, 1024), (64, 65_536)]
    ),
    *(
        same(f"vecmat {m} x {n}", [(m,), (m, n)], lambda np, x, w: x @ w)
        for m, n in [(300, 77), (4096, 1024)]
    ),
    *(
        same(f"matmul {m} x {k} x {n}", [(m, k), (k, n)], lambda np, x, y: x @ y)
        for m, k, n in [(4096, 256, 2), (100_000, 16, 3), (3, 256, 4096)]
    ),
    Row(
        "RGB bytes to floats, normalised",
        lambda tiny: bytes_of_images(tiny, *IMAGES),
        lambda jax, jnp: jax.jit(
            lambda x: (x.astype(jnp.float32) / 255 - jnp.array([0.5, 0.4, 0.3]))
            / jnp.array([0.2, 0.25, 0.3])
        ),
        lambda torch, compile, x: partial(
            compile(
                lambda x: (x.float() / 255 - torch.tensor([0.5, 0.4, 0.3]))
                / torch.tensor([0.2, 0.25, 0.3])
            ),
            x,
        ),
        goal=Goal(1.0, 1.0),
    ),
    row(
        "flip and crop RGB images",
        [IMAGES],
        lambda jax, jnp, x: x[:, 12:212, 12:212][:, :, ::-1],
        lambda torch, x: x[:, 12:212, 12:212].flip(2),
        lambda x: x[:, 12:212, 12:212][:, :, ::-1].copy(),
    ),
    row(
        "RGB to BGR",
        [IMAGES],
        lambda jax, jnp, x: x[..., ::-1],
        lambda torch, x: x.flip(-1),
        lambda x: x[..., ::-1].copy(),
    ),
    row(
        "RGB images to grey by weights",
        [IMAGES],
        lambda jax, jnp, x: 0.3 * x[..., 0] + 0.6 * x[..., 1] + 0.1 * x[..., 2],
        lambda torch, x: 0.3 * x[..., 0] + 0.6 * x[..., 1] + 0.1 * x[..., 2],
    ),
    row(
        "mean and variance of each channel",
        [IMAGES],
        lambda jax, jnp, x: (x.mean((0, 1, 2)), x.var((0, 1, 2))),
        lambda torch, x: (x.mean((0, 1, 2)), x.var((0, 1, 2), correction=0)),
        lambda x: (x.mean((0, 1, 2)), x.var((0, 1, 2))),
    ),
    softmax(5),
    softmax(8),
    *(
        row(
            f"argmax over {n}, 200,000 rows",
            [(200_000, n)],
            lambda jax, jnp, x: jnp.argmax(x, -1),
            lambda torch, x: torch.argmax(x, -1),
            lambda x: np.argmax(x, -1),
        )
        for n in (3, 8)
    ),
    same("norms of 400,000 points", [(400_000, 3)], lambda np, x: np.sqrt((x * x).sum(-1))),
    same("distances of 1000 x 1000 points", [(1000, 2), (1000, 2)], distances),
    same("rotate 200,000 points", [(200_000, 2), (200_000,)], rotated),
    same("complex products of pairs, 200,000", [(200_000, 2), (200_000, 2)], multiplied),
    same("products of 200,000 quaternions", [(200_000, 4), (200_000, 4)], quaternions),
    *(
        same(f"layer norm over {n}, 100,000 rows", [(100_000, n), (n,), (n,)], normed)
        for n in (4, 8)
    ),
    same(
        "transpose (100,000, 4) and scale", [(100_000, 4), (4, 1)], lambda np, x, s: x.T * s,
        seen=np.ascontiguousarray,
    ),
    *(
        same(
            f"transpose {shape} to {axes}", [shape],
            lambda np, x, axes=axes: np.moveaxis(x, axes, tuple(range(len(axes)))),
            seen=np.ascontiguousarray,
        )
        for shape, axes in (
            ((1024, 1024), (1, 0)), ((1000, 1000), (1, 0)),
            ((32, 64, 64, 16), (0, 3, 1, 2)), ((32, 16, 64, 64), (0, 2, 3, 1)),
        )
    ),
    same("patches of 4 x 4 of RGB images", [(8, 128, 128, 3)], patches),
    resized("resize 8 RGB images from 224 to 448", (8, 224, 224, 3), (448, 448)),
    resized("resize 8 RGB images from 500 to 224", (8, 500, 500, 3), (224, 224)),
    row(
        "gradient of a kernel, one channel",
        [(32, 64, 64, 1), (5, 5, 1, 8)],
        kernel_gradient,
        kernel_gradient_torch,
        torch_compiles=False,
    ),
]  # fmt: skip
