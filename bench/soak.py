"""Run many train steps, or many new programs, and watch memory.

    python bench/soak.py 1000000       # train steps
    python bench/soak.py --new 20000   # functions, numbers, shapes and loops that are new

A leaked reference per call shows as blocks of Python's allocator, a leaked buffer as resident
memory. Both are read ten times. The last nine readings of train steps must not differ by more than
what bounded caches may use. New programs fill the caches up to their bounds (`jit` keeps 4,096
programs), so only the last five readings of them are compared: ask for 10,000 or more. They are
compiled into a cache folder of their own: listing a full one when it is trimmed takes 30 MiB.
"""

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import namoo as jax
import namoo.numpy as jnp

BLOCKS, BYTES = 2000, 4 << 20  # how much two readings may differ
NEW_BYTES = 1000  # what each new program may add, on average, once the caches are full


def steps():
    """Yield pairs of a name and a train step: parameters in, parameters and loss out."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal((8, 6)), "float32")

    def loss(params, scale):
        hidden = jax.nn.relu(x @ params["w"] + params["b"])
        return jnp.mean((hidden.sum(1) - scale) ** 2)

    def step(params, scale):
        value, grads = jax.value_and_grad(loss)(params, scale)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    yield "jit", jax.jit(step)
    yield "donated", jax.jit(step, donate_argnums=0)
    yield "eager", step


def new_programs():
    """Yield pairs of a name and a function of a number that runs something new for each number."""
    x = jnp.arange(8.0)

    def loop(number):
        fixed = jnp.full(8, float(number))
        return jax.lax.scan(lambda c, _: (c + fixed, None), x, length=3)[0]

    def constant(number):
        fixed = jnp.full(8, float(number))
        return jax.jit(lambda x: jnp.sin(x) + fixed)(x)

    one = jax.jit(lambda x: jnp.sin(x).sum())
    yield "loop", loop
    yield "constant", constant
    yield "number", lambda number: jax.jit(lambda x: jnp.sin(x) * number)(x)
    yield "shape", lambda number: one(np.ones((number % 500 + 1, number // 500 + 1), np.float32))


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def soak(step, calls: int, show=lambda *moment: None) -> list[tuple[int, int]]:
    """Return blocks and bytes after each tenth of the calls."""
    params = {"w": jnp.ones((6, 4)) / 8, "b": jnp.zeros(4)}
    moments = []
    for tenth in range(10):
        for i in range(calls // 10):
            params, value = step(params, float(i % 7))
        if not np.isfinite(value):
            raise FloatingPointError(f"the loss is {value}")
        gc.collect()
        moments.append((sys.getallocatedblocks(), resident()))
        show(tenth, *moments[-1])
    return moments


def run_new(run, count: int, show=lambda *moment: None) -> list[tuple[int, int]]:
    """Return blocks and bytes after each tenth of the new programs."""
    moments = []
    for tenth in range(10):
        for number in range(tenth * count // 10, (tenth + 1) * count // 10):
            run(number)
        gc.collect()
        moments.append((sys.getallocatedblocks(), resident()))
        show(tenth, *moments[-1])
    return moments


def growth(moments: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many more blocks and bytes there are at the end than after the first tenth."""
    (blocks, size), (last_blocks, last_size) = moments[0], moments[-1]
    return last_blocks - blocks, last_size - size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=10_000)
    parser.add_argument("--new", action="store_true", help="new programs instead of train steps")
    parser.add_argument("--only", default="", help="jit, donated or eager; loop, constant, …")
    arguments = parser.parse_args()
    if arguments.new:
        cache = tempfile.TemporaryDirectory(prefix="namoo-soak-")
        os.environ["NAMOO_CACHE_DIR"] = cache.name
    bad = 0
    for name, run in new_programs() if arguments.new else steps():
        if arguments.only not in name:
            continue

        def show(tenth, blocks, size, name=name):
            print(
                f"{name:8} {tenth + 1:2}/10  {blocks:9} blocks  {size / 2**20:7.1f} MiB", flush=True
            )

        if arguments.new:
            _, size = growth(run_new(run, arguments.calls, show)[5:])
            each = size / (arguments.calls * 0.4)
            print(f"{name:8} {each:.0f} bytes for each new program")
            bad += each > NEW_BYTES
        else:
            blocks, size = growth(soak(run, arguments.calls, show))
            bad += blocks > BLOCKS or size > BYTES
    return bad


if __name__ == "__main__":
    sys.exit(main())
