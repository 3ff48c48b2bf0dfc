"""`namoo.inspect`, and the report that it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from namoo.engines.native.link.threads import get_num_threads
from namoo.inspect.collect import Kernel, Line, collect
from namoo.transforms.arguments import require_callable


def inspect(fun: Callable, *args: Any, **kwargs: Any) -> Inspection:
    """Show what each line of a function costs: operations, memory and measured time.

    The function is traced and compiled for the arguments, and run for about half a second with a
    timer around each kernel. It always uses the native engine, regardless of
    `namoo.config.engine`.

    Args:
        fun: a function of trees of arrays, under `jit` or not. To see forward and backward passes,
            inspect `namoo.grad(loss)` or a whole training step.
        *args: its arguments. If one is a `ShapeDtypeStruct`, nothing is run, and times are zero.
        **kwargs: its keyword arguments, likewise.

    Returns:
        A report. `print(report)` shows it in a terminal; a notebook shows it as a table;
        `report.save("report.html")` writes a page that needs no network; `report.lines` and
        `report.kernels` have the numbers, and `report.as_dict()` returns all of them.

    Raises:
        TypeError: the program runs on other devices or uses mutable references.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> def loss(w, x):
        ...     return jnp.sum(jnp.tanh(x @ w) ** 2)
        >>> report = namoo.inspect(namoo.grad(loss), jnp.ones((8, 4)), jnp.ones((16, 8)))
        >>> [line.code for line in report.lines]
        ['return jnp.sum(jnp.tanh(x @ w) ** 2)']
        >>> report.lines[0].forward.flops > 0, report.lines[0].backward.flops > 0
        (True, True)
    """
    require_callable(fun, "inspect")
    return Inspection(collect(fun, args, kwargs))


class Inspection:
    """What each line of a function costs, for arguments of given types.

    Attributes:
        name: the name of the function.
        lines: the lines that traced operations, by file and number.
        kernels: the steps of the compiled program, in order.
        wall: seconds of a call without timers, the fastest of `rounds`; None if nothing was run.
        timed_wall: wall time in seconds of the call in which the lines were measured.
        rounds: how often it was measured.
        threads: how many threads the program may use.
        memory: the bytes that a call needs, as `Compiled.memory_analysis` returns them.
    """

    def __init__(self, found: Any):
        self.name: str = found.name
        self.lines: list[Line] = found.lines
        self.kernels: list[Kernel] = found.kernels
        self.wall: float | None = found.wall
        self.timed_wall: float | None = found.timed_wall
        self.rounds: int = found.rounds
        self.threads = get_num_threads()
        self.memory = found.memory
        self._sources = found.sources

    @property
    def seconds(self) -> float:
        """The time of all lines."""
        return sum(line.total.seconds for line in self.lines)

    @property
    def covered(self) -> float | None:
        """The share of the measured call that the lines take; None if nothing was run.

        The rest is the overhead of the call: unwrapping arguments, allocating results and memory.
        """
        return self.seconds / self.timed_wall if self.timed_wall else None

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers as dicts and lists, ready for `json.dump`.

        Example:
            >>> import namoo, namoo.numpy as jnp
            >>> report = namoo.inspect(jnp.sin, namoo.ShapeDtypeStruct((4,), jnp.float32))
            >>> sorted(report.as_dict())
            ['kernels', 'lines', 'memory', 'name', 'rounds', 'threads', 'timed_wall', 'wall']
        """
        memory = self.memory
        return {
            "name": self.name,
            "wall": self.wall,
            "timed_wall": self.timed_wall,
            "rounds": self.rounds,
            "threads": self.threads,
            "memory": {
                "arguments": memory.argument_size_in_bytes,
                "results": memory.output_size_in_bytes,
                "temporary": memory.temp_size_in_bytes,
                "peak": memory.peak_memory_in_bytes,
            },
            "lines": [dataclasses.asdict(line) for line in self.lines],
            "kernels": [dataclasses.asdict(kernel) for kernel in self.kernels],
        }

    def save(self, path: str | Path) -> None:
        """Write the report as an HTML page without links to other files.

        Example:
            >>> import namoo, namoo.numpy as jnp, pathlib, tempfile
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
            >>> namoo.inspect(jnp.sin, jnp.ones(4)).save(path)
            >>> path.read_text()[:15]
            '<!doctype html>'
        """
        from namoo.inspect import page

        Path(path).write_text(page.page(self), encoding="utf-8")

    def __repr__(self) -> str:
        from namoo.inspect import text

        return text.text(self)

    def _repr_html_(self) -> str:
        from namoo.inspect import page

        return page.fragment(self)
