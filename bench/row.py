"""A row of the benchmark table: one piece of work, and how fast namoo should be at it.

A row is written once for JAX and namoo, as a function of the modules ``(jax, jnp)``. Its versions
for PyTorch and NumPy do the same work the way users of these libraries write it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FRESH = ("import", "array", "step")  # what fresh.py measures


class Goal(NamedTuple):
    """How many times as fast as another framework namoo should be; None sets no goal."""

    jax: float | None = None
    torch: float | None = None
    numpy: float | None = 1.0
    over_numpy: float | None = None  # at most this many seconds more than NumPy
    of_row: tuple[str, float] | None = None  # at most this multiple of namoo's time of another row


@dataclasses.dataclass(frozen=True)
class Row:
    """One piece of work.

    Attributes:
        name: The name in the table.
        inputs: Makes the arguments, trees of NumPy arrays and Python numbers; smaller ones if tiny.
        program: Given ``(jax, jnp)``, the function that is called with the arguments.
        torch: Given ``(torch, compile, *arguments)``, a function of no arguments. `compile` is
            `torch.compile` or the identity; the better of both counts.
        numpy: The function by hand on NumPy.
        measure: ``call``, seconds for one call; ``first``, seconds of the first call in a new
            process; ``compile``, seconds to trace and compile without a call, in such a process;
            ``peak``, peak memory in bytes of a process that made a few calls; ``import``, ``array``
            and ``step``, seconds in a new process.
        cache: The state of the disk caches of compiled code: ``cold``, ``warm``, or left alone.
        chain: How many leading arguments are replaced by the leading results of the previous call.
        pipelined: Whether a call may start before JAX has finished the previous one.
        torch_compiles: Whether the PyTorch version uses `compile`.
        seen: The part of a result in which the frameworks must agree.
        tolerance: The largest norm of a difference, relative to the norm of the value.
    """

    name: str
    inputs: Callable[[bool], tuple] = lambda tiny: ()
    program: Callable[[Any, Any], Callable] | None = None
    torch: Callable[..., Callable] | None = None
    numpy: Callable | None = None
    goal: Goal = Goal()
    measure: str = "call"
    cache: str | None = None
    chain: int = 0
    pipelined: bool = False
    torch_compiles: bool = True
    seen: Callable[[Any], Any] = lambda out: out
    tolerance: float = 1e-4
    frameworks: tuple[str, ...] = ("namoo", "jax", "torch", "numpy")

    def runs_in(self, framework: str) -> bool:
        """Return whether this row has anything to run in a framework (or its compiled variant)."""
        if self.measure in FRESH:
            return framework in self.frameworks
        if framework == "torch-compiled":
            return self.torch is not None and self.torch_compiles
        return {"torch": self.torch, "numpy": self.numpy}.get(framework, self.program) is not None


def convert(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """Apply a function to the arrays of a tree; Python numbers are left alone."""
    if isinstance(tree, dict):
        return {key: convert(value, leaf) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(convert(value, leaf) for value in tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
        return type(tree)(**convert(fields, leaf))
    return leaf(tree) if isinstance(tree, np.ndarray) else tree


def leaves(tree: Any) -> list[np.ndarray]:
    """Return the arrays of a result of any framework, as NumPy arrays in JAX's order."""
    if isinstance(tree, dict):
        return [x for key in sorted(tree) for x in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [x for value in tree for x in leaves(value)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [x for field in dataclasses.fields(tree) for x in leaves(getattr(tree, field.name))]
    detach = getattr(tree, "detach", None)  # a tensor that may have a gradient
    return [np.array(tree if detach is None else detach())]


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Return the largest relative difference between two lists of leaves."""
    if [x.shape for x in ours] != [x.shape for x in theirs]:
        return float("inf")

    def relative(x: np.ndarray, y: np.ndarray) -> float:
        x, y = x.astype(np.float64), y.astype(np.float64)
        return float(np.linalg.norm(x - y) / max(float(np.linalg.norm(y)), 1e-6))

    # Comparisons with NaN are false, so `max` could hide one.
    found = [relative(x, y) for x, y in zip(ours, theirs, strict=True)]
    return float("inf") if np.isnan(found).any() else max(found, default=0.0)
