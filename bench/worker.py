"""Measure one row in one framework: prepare the work, then time it whenever asked.

run.py starts it as ``python worker.py FRAMEWORK ROW LEAVES``. It writes its result to the file
LEAVES, prints a line when it is ready, and one measurement for each line that it reads.
"""

import importlib
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from row import Row, convert, leaves
from rows import ROWS

SAMPLE, SAMPLES = 0.02, 5  # minimal seconds of one sample; samples per answer
ENOUGH = 1.0  # seconds after which no further sample is taken
CALLS_OF_PEAK = 5


class Work:
    """A row prepared in one framework: what to call, with which arguments, and how to wait."""

    def __init__(self, row: Row, framework: str, tiny: bool = False):
        self.row = row
        self.args = row.inputs(tiny)
        self.wait: Callable[[Any], Any] | None = None
        if framework in ("namoo", "jax"):
            assert row.program is not None
            jax = importlib.import_module(framework)
            jnp = importlib.import_module(f"{framework}.numpy")
            self.args = convert(self.args, jnp.asarray)
            self.call = row.program(jax, jnp)
            self.warm_up = lambda: jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(3)))
            # The other engines return finished results.
            by_xla = framework == "jax" or jax.config.engine == "xla"
            self.wait = jax.block_until_ready if by_xla else None
        elif framework == "numpy":
            assert row.numpy is not None
            self.call = row.numpy
        else:
            assert row.torch is not None
            torch = importlib.import_module("torch")
            compile = torch.compile if framework == "torch-compiled" else lambda function: function
            # PyTorch changes its parameters in place, so they must not share memory with ours.
            args = convert(self.args, lambda x: torch.from_numpy(x.copy()))
            self.call, self.args = row.torch(torch, compile, *args), ()

    def result(self) -> list[np.ndarray]:
        """Return the leaves of the first call's result."""
        return leaves(self.row.seen(self.call(*self.args)))

    def repeat(self, times: int) -> float:
        """Return the seconds for a number of calls."""
        call, args, wait, chain = self.call, self.args, self.wait, self.row.chain
        out = None
        start = time.perf_counter()
        if chain and args:
            for _ in range(times):
                out = call(*args)
                args = (*out[:chain], *args[chain:])
        elif wait is None or self.row.pipelined:
            for _ in range(times):
                out = call(*args)
        else:
            for _ in range(times):
                wait(call(*args))
        if wait is not None:
            wait(out)
        return time.perf_counter() - start

    def best(self) -> float:
        """Return the seconds for one call: the best of several long enough samples."""
        times = 1
        while (seconds := self.repeat(times)) < SAMPLE:
            times = max(2 * times, int(1.2 * times * SAMPLE / seconds))
        samples = [seconds]
        while len(samples) < SAMPLES and sum(samples) < ENOUGH:
            samples.append(self.repeat(times))
        return min(samples) / times


def first_call(row: Row, framework: str) -> float:
    """Return the seconds of the first call of a function."""
    work = Work(row, framework)
    work.warm_up()
    start = time.perf_counter()
    out = work.call(*work.args)
    if work.wait is not None:
        work.wait(out)
    return time.perf_counter() - start


def compilation(row: Row, framework: str) -> float:
    """Return the seconds to trace and compile a function ahead of time."""
    work = Work(row, framework)
    work.warm_up()
    start = time.perf_counter()
    work.call.lower(*work.args).compile()
    return time.perf_counter() - start


def peak(row: Row, framework: str) -> float:
    """Return the peak memory of this process in bytes, after a few calls.

    It reads the kernel's high-water mark: `ru_maxrss` starts at the size of the parent process.
    """
    Work(row, framework).repeat(CALLS_OF_PEAK)
    mark = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert mark is not None
    return 1024.0 * int(mark[1])


def main(framework: str, name: str, leaves_file: str = "") -> None:
    row = ROWS[name]
    if row.measure != "call":
        measure = {"first": first_call, "compile": compilation, "peak": peak}[row.measure]
        print(json.dumps(measure(row, framework)), flush=True)
        return
    work = Work(row, framework)
    np.savez(Path(leaves_file), *work.result())
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        print(json.dumps(work.best()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
