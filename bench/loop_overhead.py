"""Measure what the parts of a training loop cost per step: loader, progress, periodic actions.

python bench/loop_overhead.py
"""

import io
import time

import numpy as np

import namoo.numpy as jnp
from namoo import data, random, train


class Terminal(io.StringIO):
    """A terminal whose output is discarded."""

    def isatty(self):
        return True


def microseconds(loop, steps: int, rounds: int = 7) -> float:
    """Return the time of one step in the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        loop(steps)
        best = min(best, time.perf_counter() - start)
    return best / steps * 1e6


def main(steps: int = 2000) -> dict[str, float]:
    """Print and return the microseconds per step of each part."""
    arrays = np.zeros((64_000, 8), np.float32), np.zeros(64_000, np.int32)
    loader = data.Loader(arrays, 32, key=random.key(0))
    loss, due = jnp.float32(0.5), train.every(100)

    def loading(count):
        for _ in loader.steps(count):
            pass

    def showing(count):
        shown = train.progress(range(count), file=Terminal())
        for _ in shown:
            shown(loss=loss)

    def acting(count):
        for i in range(count):
            due(i)

    def everything(count):
        shown = train.progress(loader.steps(count), total=count, file=Terminal())
        log = train.Logger(kinds=[])
        for i, _ in enumerate(shown):
            shown(loss=loss)
            if due(i):
                log(i, loss=loss)

    loops = {"loader": loading, "progress": showing, "every": acting, "together": everything}
    found = {name: microseconds(loop, steps) for name, loop in loops.items()}
    for name, value in found.items():
        print(f"{name:10} {value:6.2f} µs per step")
    return found


if __name__ == "__main__":
    main()
