"""Train step after train step, and what memory is left: `python bench/soak.py 1000000`.

A leak of one reference a call shows as blocks of Python's allocator, one of a buffer as resident
memory.  Both are read at ten moments; the last nine must not differ from one another by more than
what caches of bounded size may take.
"""

import argparse
import gc
import sys
from pathlib import Path

import numpy as np

import namoo as jax
import namoo.numpy as jnp

BLOCKS, BYTES = 2000, 4 << 20  # how far apart two moments may be


def steps():
    """Pairs of a name and a train step: parameters in, parameters and loss out."""
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


def resident() -> int:
    """Bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def soak(step, calls: int, show=lambda *moment: None) -> list[tuple[int, int]]:
    """Blocks and bytes after each tenth of the calls."""
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


def growth(moments: list[tuple[int, int]]) -> tuple[int, int]:
    """How much more blocks and bytes there are at the end than after the first tenth."""
    (blocks, size), (last_blocks, last_size) = moments[0], moments[-1]
    return last_blocks - blocks, last_size - size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=10_000)
    parser.add_argument("--only", default="", help="jit, donated or eager")
    arguments = parser.parse_args()
    bad = 0
    for name, step in steps():
        if arguments.only not in name:
            continue

        def show(tenth, blocks, size, name=name):
            print(
                f"{name:8} {tenth + 1:2}/10  {blocks:9} blocks  {size / 2**20:7.1f} MiB", flush=True
            )

        blocks, size = growth(soak(step, arguments.calls, show))
        bad += blocks > BLOCKS or size > BYTES
    return bad


if __name__ == "__main__":
    sys.exit(main())
