"""Counting, searching, sorting, scans, and arithmetic on narrow integers: work that moves data."""

from functools import partial
from typing import Any

import numpy as np

from row import Goal, Row
from training import normal

MANY = 10**6


def row(name, inputs, ours, torch=None, numpy=None, **options):
    """Return a row for a function of arrays, written for (jax, jnp), PyTorch and NumPy."""
    return Row(
        name,
        lambda tiny: inputs(40 if tiny else MANY),
        lambda jax, jnp: jax.jit(partial(ours, jax, jnp)),
        torch and (lambda module, compile, *xs: partial(torch, module, *xs)),
        numpy,
        Goal(1.0, 1.0),
        torch_compiles=False,
        **options,
    )


def integers(n, stop, *shape, seed=1, dtype: Any = np.int32):
    return np.random.default_rng(seed).integers(0, min(stop, n), shape or n).astype(dtype)


def numbers(n):
    return (normal(0, n),)


def counted(stop):
    """Return inputs: numbers, and as many integers below `stop`."""
    return lambda n: (normal(0, n), integers(n, stop))


def rows_of(width, stop):
    return lambda n: (normal(0, n // width or 1, width), integers(n, stop, n // width or 1))


def sparse(n):
    """Return the entries of a sparse matrix of 0.1%, their places, and a dense matrix."""
    side = 20 if n < MANY else 10_000
    count = side * side // 1000 or 9
    places = np.stack([integers(n, side, count, seed=s) for s in (1, 2)], 1)
    return normal(0, count), places, normal(3, side, 32)


def sparse_product(jax, jnp, data, places, x):
    from importlib import import_module

    bcoo = import_module(f"{jax.__name__}.experimental.sparse").BCOO
    return bcoo((data, places), shape=(x.shape[0], x.shape[0])) @ x


def torch_sparse_product(torch, data, places, x):
    size = (x.shape[0], x.shape[0])
    return torch.sparse_coo_tensor(places.T.long(), data, size).to_dense() @ x


def searched(count, sort=False):
    def inputs(n):
        queries = normal(0, n)
        return np.sort(normal(1, min(count, n))), np.sort(queries) if sort else queries

    return inputs


def points(n):
    return (
        normal(0, n),
        np.linspace(-3, 3, 1000 if n > 1000 else 9).astype(np.float32),
        normal(2, 1000 if n > 1000 else 9),
    )


def in_float64(operation):
    """Return an operation of one array of float64."""

    def program(jax, jnp):
        f = jax.jit(lambda x: operation(jnp, x.astype(jnp.float64)).astype(jnp.float32))

        def call(x):
            with jax.enable_x64(True):
                return f(x)

        return call

    return program


def positive_first(jax, jnp, x):
    """Return the positive elements in order, then zeros."""
    kept = x > 0
    places = jnp.where(kept, jnp.cumsum(kept) - 1, x.shape[0])
    return jnp.zeros_like(x).at[places].set(x, mode="drop")


def recurrence(jax, jnp, a, b):
    """Return all x with x[i] = a[i]·x[i - 1] + b[i]."""
    join = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])  # noqa: E731
    return jax.lax.associative_scan(join, (a, b))[1]


def numpy_recurrence(a, b):
    out, x = np.empty_like(b), 0.0
    for i in range(len(b)):
        x = a[i] * x + b[i]
        out[i] = x
    return out


def bytes_of(dtype, count=2):
    return lambda n: tuple(integers(256, 100, 4 * n, seed=s, dtype=dtype) for s in range(count))


def matrices(dtype):
    def inputs(n):
        side = 8 if n < MANY else 512
        return tuple((integers(256, 200, side, side, seed=s) - 100).astype(dtype) for s in range(2))

    return inputs


def blend(x, y):
    """Return a mean of two images, by arithmetic on bytes."""
    return (x >> 1) + (y >> 1) + (x & y & 1)


def bfloat16_product(jax, jnp, x, y):
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return jax.lax.dot(x, y, preferred_element_type=jnp.float32)


ROWS = [
    row(
        "histogram, 100 bins",
        numbers,
        lambda jax, jnp, x: jnp.histogram(x, bins=100, range=(-4, 4))[0],
        lambda torch, x: torch.histc(x, 100, -4, 4),
        lambda x: np.histogram(x, bins=100, range=(-4, 4))[0],
    ),
    row(
        "histogram of the range of the values",
        numbers,
        lambda jax, jnp, x: jnp.histogram(x, bins=64)[0],
        lambda torch, x: torch.histc(x, 64, float(x.min()), float(x.max())),
        lambda x: np.histogram(x, bins=64)[0],
    ),
    row(
        "bincount, 1000",
        lambda n: counted(1000)(n)[1:],
        lambda jax, jnp, i: jnp.bincount(i, length=1000),
        lambda torch, i: torch.bincount(i, minlength=1000),
        lambda i: np.bincount(i, minlength=1000),
    ),
    row(
        "bincount with weights, 1000",
        counted(1000),
        lambda jax, jnp, x, i: jnp.bincount(i, x, length=1000),
        lambda torch, x, i: torch.bincount(i, x, minlength=1000),
        lambda x, i: np.bincount(i, x, minlength=1000),
    ),
    row(
        "segment_sum of numbers, 10^5",
        counted(10**5),
        lambda jax, jnp, x, i: jax.ops.segment_sum(x, i, 10**5),
        lambda torch, x, i: torch.zeros(10**5).index_add(0, i, x),
        lambda x, i: np.bincount(i, x, minlength=10**5),
    ),
    row(
        "segment_sum of rows of 16, 1000",
        rows_of(16, 1000),
        lambda jax, jnp, x, i: jax.ops.segment_sum(x, i, 1000),
        lambda torch, x, i: torch.zeros(1000, 16).index_add(0, i, x),
    ),
    row(
        "scatter of a permutation",
        lambda n: (normal(0, n), np.random.default_rng(1).permutation(n).astype(np.int32)),
        lambda jax, jnp, x, i: jnp.zeros_like(x).at[i].set(x),
        lambda torch, x, i: torch.zeros_like(x).scatter(0, i.long(), x),
        lambda x, i: x[np.argsort(i)],
    ),
    row("sparse product, 0.1% of 10^4 x 10^4, 32", sparse, sparse_product, torch_sparse_product),
    row(
        "searchsorted among 10^4",
        searched(10**4),
        lambda jax, jnp, a, x: jnp.searchsorted(a, x),
        lambda torch, a, x: torch.searchsorted(a, x),
        np.searchsorted,
    ),
    row(
        "searchsorted, sorted, among 10^6",
        searched(10**6, sort=True),
        lambda jax, jnp, a, x: jnp.searchsorted(a, x),
        lambda torch, a, x: torch.searchsorted(a, x),
        np.searchsorted,
    ),
    row(
        "digitize into 20",
        searched(20),
        lambda jax, jnp, a, x: jnp.digitize(x, a),
        lambda torch, a, x: torch.bucketize(x, a, right=True),
        lambda a, x: np.digitize(x, a),
    ),
    row(
        "interp among 1000",
        points,
        lambda jax, jnp, x, xp, fp: jnp.interp(x, xp, fp),
        None,
        np.interp,
    ),
    row(
        "argsort",
        numbers,
        lambda jax, jnp, x: jnp.argsort(x),
        lambda torch, x: torch.argsort(x),
        np.argsort,
    ),
    Row(
        "sort of float64",
        lambda tiny: numbers(40 if tiny else MANY),
        in_float64(lambda jnp, x: jnp.sort(x)),
        lambda torch, compile, x: lambda: torch.sort(x.double()).values.float(),
        lambda x: np.sort(x.astype(np.float64)).astype(np.float32),
        Goal(1.0, 1.0),
        torch_compiles=False,
    ),
    row(
        "lexsort of two keys",
        counted(1000),
        lambda jax, jnp, x, i: jnp.lexsort((x, i)),
        None,
        lambda x, i: np.lexsort((x, i)),
    ),
    row(
        "take_along_axis (1000, 1000)",
        lambda n: (normal(0, n // 1000 or 1, min(n, 1000)), integers(n, 1000, n // 1000 or 1, 50)),
        lambda jax, jnp, x, i: jnp.take_along_axis(x, i, 1),
        lambda torch, x, i: torch.take_along_dim(x, i.long(), 1),
        lambda x, i: np.take_along_axis(x, i, 1),
    ),
    row(
        "associative_scan: sum",
        numbers,
        lambda jax, jnp, x: jax.lax.associative_scan(jnp.add, x),
        lambda torch, x: torch.cumsum(x, 0),
        np.cumsum,
        tolerance=1e-3,
    ),
    row(
        "associative_scan: linear recurrence",
        lambda n: (np.tanh(normal(0, n)), normal(1, n)),
        recurrence,
        None,
        numpy_recurrence,
        tolerance=1e-3,
    ),
    row(
        "cumsum of uint8 masks",
        lambda n: (integers(n, 2, n, dtype=np.uint8),),
        lambda jax, jnp, x: jnp.cumsum(x, dtype=jnp.int32),
        lambda torch, x: torch.cumsum(x, 0, dtype=torch.int32),
        lambda x: np.cumsum(x, dtype=np.int32),
    ),
    *(
        row(
            f"mean of two images, {np.dtype(dtype).name}",
            bytes_of(dtype),
            lambda jax, jnp, x, y: blend(x, y),
            lambda torch, x, y: blend(x, y),
            blend,
        )
        for dtype in (np.uint8, np.int16)
    ),
    row(
        "popcount of x ^ y, uint8",
        bytes_of(np.uint8),
        lambda jax, jnp, x, y: jax.lax.population_count(x ^ y),
        None,
        lambda x, y: np.bitwise_count(x ^ y),
    ),
    row(
        "distances by popcount, uint32",
        lambda n: tuple(integers(n, n, n, seed=s, dtype=np.uint32) for s in range(2)),
        lambda jax, jnp, x, y: jax.lax.population_count(x ^ y).astype(jnp.int32).sum(),
        None,
        lambda x, y: np.bitwise_count(x ^ y).astype(np.int32).sum(),
    ),
    row(
        "int8 matmul to int32, 512",
        matrices(np.int8),
        lambda jax, jnp, x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32),
        lambda torch, x, y: torch._int_mm(x, y),
        lambda x, y: x.astype(np.int32) @ y.astype(np.int32),
    ),
    row(
        "bfloat16 matmul, 512",
        matrices(np.float32),
        bfloat16_product,
        lambda torch, x, y: (x.bfloat16() @ y.bfloat16()).float(),
        tolerance=1e-2,
    ),
    row(
        "histogram of a plane, 32 x 32",
        lambda n: (normal(0, n // 10), normal(1, n // 10)),
        lambda jax, jnp, x, y: jnp.histogram2d(x, y, bins=32)[0],
        None,
        lambda x, y: np.histogram2d(x, y, bins=32)[0],
    ),
    row(
        "bincount of a byte image, 256",
        lambda n: (integers(256, 256, n // 4, dtype=np.uint8),),
        lambda jax, jnp, x: jnp.bincount(x, length=256),
        lambda torch, x: torch.bincount(x, minlength=256),
        lambda x: np.bincount(x, minlength=256),
    ),
    row(
        "segment means of rows of 64, 2000",
        rows_of(64, 2000),
        lambda jax, jnp, x, i: (
            jax.ops.segment_sum(x, i, 2000) / jnp.maximum(jnp.bincount(i, length=2000), 1)[:, None]
        ),
        lambda torch, x, i: (
            torch.zeros(2000, 64).index_add(0, i, x)
            / torch.bincount(i, minlength=2000).clamp(min=1)[:, None]
        ),
    ),
    row(
        "sort of float32",
        numbers,
        lambda jax, jnp, x: jnp.sort(x),
        lambda torch, x: torch.sort(x).values,
        np.sort,
    ),
    row(
        "positive numbers first, by cumsum and scatter",
        numbers,
        positive_first,
        None,
        lambda x: np.concatenate([x[x > 0], np.zeros((x <= 0).sum(), x.dtype)]),
    ),
    row(
        "nonzero, of a given size",
        numbers,
        lambda jax, jnp, x: jnp.nonzero(x > 1, size=x.shape[0] // 4)[0],
        None,
        lambda x: np.resize(np.append(np.flatnonzero(x > 1), np.zeros(len(x), int)), len(x) // 4),
    ),
    row(
        "quotients and remainders of int32",
        lambda n: (integers(n, n, n), integers(n, 100, n, seed=2) + 1),
        lambda jax, jnp, x, y: x // y + x % y,
        lambda torch, x, y: x // y + x % y,
        lambda x, y: x // y + x % y,
    ),
    row(
        "(31 x + 7) mod 1009",
        lambda n: (integers(n, 10_000, n),),
        lambda jax, jnp, x: (x * 31 + 7) % 1009,
        lambda torch, x: (x * 31 + 7) % 1009,
        lambda x: (x * 31 + 7) % 1009,
    ),
    row(
        "blend of two byte images, in float32",
        bytes_of(np.uint8),
        lambda jax, jnp, x, y: jnp.clip(x * 0.25 + y * 0.75, 0, 255).astype(jnp.uint8),
        lambda torch, x, y: (x * 0.25 + y * 0.75).clamp(0, 255).to(torch.uint8),
        lambda x, y: (x * np.float32(0.25) + y * np.float32(0.75)).clip(0, 255).astype(np.uint8),
    ),
    row(
        "packbits of rows of 1024",
        lambda n: (normal(0, n // 1024 or 1, 1024) > 0,),
        lambda jax, jnp, x: jnp.packbits(x, axis=-1),
        None,
        lambda x: np.packbits(x, axis=-1),
    ),
]
