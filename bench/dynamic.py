"""Measure programs with dynamic dimensions beside those compiled for one size.

    python bench/dynamic.py                   # every program
    python bench/dynamic.py --only attention --k 20

The runs of both alternate, and the best of `k` rounds counts. Times are CPU times of the calling
thread, without others, which other load on the machine affects little. The last column is
dynamic / specialised.
"""

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax

RNG = np.random.default_rng(0)
SIZES = 784, 256, 128, 10


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape), "float32")


def layers():
    return [(normal(i, o) / i**0.5, normal(o)) for i, o in zip(SIZES, SIZES[1:], strict=False)]


def mlp(x, params):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def step(x, y, params):
    def loss(params):
        return -jnp.mean(jnp.sum(namoo.nn.log_softmax(mlp(x, params)) * y, 1))

    return namoo.tree.map(lambda p, g: p - 0.1 * g, params, namoo.grad(loss)(params))


def attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
    return jnp.einsum("hqk,hkd->hqd", namoo.nn.softmax(scores), v)


def recurrent(xs, u, w):
    def cell(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return lax.scan(cell, jnp.zeros(w.shape[0]), xs)


def rows():
    """The programs: name, function, marked axes, arguments."""
    for b in (8, 32, 128, 1000):
        yield f"MLP, batch {b}", mlp, {"x": "b, _"}, (normal(b, 784), layers())
    for b in (32, 128):
        given = normal(b, 784), normal(b, 10), layers()
        yield f"MLP train step, batch {b}", step, {"x": "b, _", "y": "b, _"}, given
    yield "softmax, 64 dynamic rows", namoo.nn.softmax, {"x": "b, _"}, (normal(64, 1000),)
    yield "softmax, rows of dynamic 1000", namoo.nn.softmax, {"x": "_, n"}, (normal(64, 1000),)
    for n in (32, 128, 512):
        given = tuple(normal(8, n, 64) for _ in "qkv")
        yield f"attention, 8 heads, {n}", attention, dict.fromkeys("qkv", "_, n, _"), given
    given = normal(100, 32), normal(32, 64) / 6, normal(64, 64) / 8
    yield "scan of dynamic length 100", recurrent, {"xs": "n, _"}, given


def timed(f, arguments, seconds=0.01):
    """Return the CPU time of a call, from as many calls as take about `seconds`."""
    start, count = time.thread_time(), 0
    while (passed := time.thread_time() - start) < seconds:
        f(*arguments)
        count += 1
    return passed / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--k", type=int, default=10, help="rounds")
    options = parser.parse_args()
    for name, f, marks, arguments in rows():
        if options.only not in name:
            continue
        programs = namoo.jit(lambda *a, f=f: f(*a)), namoo.jit(f, dynamic=marks)
        results = [namoo.tree.leaves(p(*arguments)) for p in programs]
        for x, y in zip(*results, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)
        rounds = [[timed(p, arguments) for p in programs] for _ in range(options.k)]
        fixed, dynamic = (min(times) * 1e6 for times in zip(*rounds, strict=True))
        print(f"{name:32} {fixed:9.1f} µs {dynamic:9.1f} µs {dynamic / fixed:6.2f}", flush=True)


if __name__ == "__main__":
    main()
