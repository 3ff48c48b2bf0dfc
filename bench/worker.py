"""One row in one framework: makes the work ready, then measures it as often as it is asked.

Started by run.py as ``python worker.py FRAMEWORK ROW LEAVES``. It writes its result into the file
LEAVES, one line when it is ready, and one measurement for each line that it reads.
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

SAMPLE, SAMPLES = 0.02, 5  # seconds of one sample at least; samples in one answer
ENOUGH = 1.0  # seconds after which an answer needs no further sample
CALLS_OF_PEAK = 5


class Work:
    """A row made ready in one framework: what to call, with what, and how to wait for it."""

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
            # What the others return is finished.
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
        """The leaves of the first call's result."""
        return leaves(self.row.seen(self.call(*self.args)))

    def repeat(self, times: int) -> float:
        """Seconds for so many calls."""
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
        """Seconds for one call: the best of several samples that are long enough for the clock."""
        times = 1
        while (seconds := self.repeat(times)) < SAMPLE:
            times = max(2 * times, int(1.2 * times * SAMPLE / seconds))
        samples = [seconds]
        while len(samples) < SAMPLES and sum(samples) < ENOUGH:
            samples.append(self.repeat(times))
        return min(samples) / times


def first_call(row: Row, framework: str) -> float:
    """Seconds from a function that nobody has called to its first result."""
    work = Work(row, framework)
    work.warm_up()
    start = time.perf_counter()
    out = work.call(*work.args)
    if work.wait is not None:
        work.wait(out)
    return time.perf_counter() - start


def compilation(row: Row, framework: str) -> float:
    """Seconds from a function that nobody has called to its program, compiled ahead of time."""
    work = Work(row, framework)
    work.warm_up()
    start = time.perf_counter()
    work.call.lower(*work.args).compile()
    return time.perf_counter() - start


def peak(row: Row, framework: str) -> float:
    """Bytes of this process at its largest, after a few calls.

    The kernel's own mark is read: `ru_maxrss` starts at the size of the process that started this.
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
