"""Donation: a compiled function may write its results into the memory of some arguments."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.lazy import later
from namoo.api.dispatch import execute, numbers
from namoo.core.array import EagerArray, delete
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.base import require_donated_once
from namoo.transforms.program import Executable, ProgramPrimitive

placement = later("namoo.devices.placement")


class ArgInfo:
    """The type of an argument, and whether its memory may be reused."""

    __slots__ = ("_aval", "donated")

    def __init__(self, aval: ShapedArray, donated: bool):
        self._aval = aval
        self.donated = donated

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (
            other._aval,
            other.donated,
        )

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated!r})"


class Donation:
    """The donated inputs of a program, and the results that take their memory.

    An input is used if a result has the same number of elements of the same size. Then a call
    deletes the array, and the engine may write the result into its memory. The engine compiles the
    program with `aliases` (input → result), and checks `engines.base.sole_owner` at each call,
    because other arrays may still share the memory.
    """

    __slots__ = ("_aliases", "_run", "closed", "engine", "places")

    def __init__(self, closed: ClosedJaxpr, places: Sequence[int], engine: str | None = None):
        self.closed = closed
        self.engine = engine
        self.places = tuple(places)
        self._aliases: dict[int, int] | None = None
        self._run: Executable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Donation, (self.closed, self.places, self.engine)

    @property
    def aliases(self) -> dict[int, int]:
        """Input → result that may take its memory; warns once about inputs that fit no result."""
        if self._aliases is None:
            jaxpr = self.closed.jaxpr
            ins = {i: jaxpr.invars[i].aval for i in self.places}
            self._aliases, idle = _pair(ins, jaxpr.out_avals)
            if idle:
                types = ", ".join(f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in idle)
                warnings.warn(
                    f"Some donated buffers were not usable: {types}. No result of "
                    f"{jaxpr.name or 'the function'} has their size; do not donate them.",
                    stacklevel=2,
                )
        return self._aliases

    @property
    def executable(self) -> Executable:
        """The program, compiled with its aliases."""
        if self._run is None:
            options: dict[str, Any] = {"aliases": self.aliases}
            if self.engine is not None:
                options["engine"] = self.engine
            self._run = ProgramPrimitive.compiler(self.closed, options)
        return self._run

    def __call__(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Run the program, and delete the arrays that it takes over."""
        run = self.executable
        taken = [i for i in self.aliases if isinstance(inputs[i], EagerArray)]
        if getattr(run, "on_devices", False):
            require_donated_once(self.closed.jaxpr, inputs, taken)
            outs = execute(
                run, [placement.donatable(x) if i in taken else x for i, x in enumerate(inputs)]
            )
            for i in taken:
                delete(inputs[i])
            return outs
        values = numbers(inputs)
        require_donated_once(self.closed.jaxpr, values, taken)
        for i in taken:
            delete(inputs[i])
        return run(values)


def _pair(
    ins: dict[int, ShapedArray], outs: Sequence[ShapedArray]
) -> tuple[dict[int, int], list[ShapedArray]]:
    """Match inputs with results, the most similar first; also return the unmatched inputs."""
    aliases: dict[int, int] = {}
    waiting, free = dict(ins), dict(enumerate(outs))
    for kind in (
        lambda a: (a.shape, a.dtype),
        lambda a: (a.size, a.dtype.itemsize),
        lambda a: a.size,
    ):
        for i, aval in list(waiting.items()):
            match = next((o for o, out in free.items() if kind(out) == kind(aval)), None)
            if match is not None:
                if aval.dtype.itemsize == free[match].dtype.itemsize:
                    aliases[i] = match
                del waiting[i], free[match]
    return aliases, list(waiting.values())


def donated_leaves(
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: Collection[int],
    nums: Sequence[int],
    names: frozenset[str],
) -> list[bool]:
    """Return for every leaf of the arguments whether it is donated.

    `args` does not contain the static arguments; `nums` counts all.
    """
    total = len(args) + len(static)
    chosen = {i % total for i in nums if -total <= i < total}
    out: list[bool] = []
    for i, x in zip((i for i in range(total) if i not in static), args, strict=True):
        out += [i in chosen] * tree_util.tree_structure(x).num_leaves
    for name in sorted(kwargs):
        out += [name in names] * tree_util.tree_structure(kwargs[name]).num_leaves
    return out
