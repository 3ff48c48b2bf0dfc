"""The engine: programs compiled by XLA, run on NumPy arrays or on device buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from namoo.analysis.dead_code import dce
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.base import Device, HostOperation
from namoo.engines.registry import default
from namoo.engines.xla import clients, pjrt
from namoo.engines.xla.hlo import kind_of
from namoo.engines.xla.lower import Module


class Type:
    """The type of a buffer, as jaxlib expects it."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, aval: Any):
        self.shape, self.dtype = kind_of(aval)
        self.weak_type = False


def write(
    closed: ClosedJaxpr,
    module: Module,
    inputs: Sequence[dict[str, str]],
    results: Sequence[dict[str, str]] = (),
) -> str:
    """Write a program as a module; `inputs` and `results` are the attributes of each."""
    return module.text(closed.jaxpr.name or "main", module.main(closed, inputs, results))


def stablehlo(closed: ClosedJaxpr) -> str:
    """Return the StableHLO text of a program for one device."""
    return write(closed, Module([default()]), [{} for _ in closed.in_avals])


class Inspected:
    """Inspection of a program that XLA compiled."""

    closed: ClosedJaxpr
    stablehlo: str
    loaded: pjrt.Loaded
    module: Module

    def as_text(self, stage: str = "jaxpr") -> str:
        """Return the program as "jaxpr", "stablehlo", or after XLA's passes, "hlo"."""
        texts = {
            "jaxpr": lambda: str(self.closed),
            "stablehlo": lambda: self.stablehlo,
            "hlo": self.loaded.text,
        }
        if stage not in texts:
            raise ValueError(f"as_text: stage must be one of {[*texts]}, got {stage!r}.")
        return texts[stage]()

    @property
    def costs(self) -> dict[str, float]:
        return self.loaded.costs()

    @property
    def memory(self) -> Any:
        return self.loaded.memory()

    def host_operations(self) -> list[HostOperation]:
        """Return the operations that call back into Python."""
        return [HostOperation.of(eqn) for eqn in self.module.host_equations]


class Program(Inspected):
    """A program compiled for one device; it takes and returns NumPy arrays or buffers.

    Args:
        aliases: input → result that may take its memory.
    """

    on_devices = True

    def __init__(self, closed: ClosedJaxpr, device: Device, aliases: dict[int, int]):
        self.closed = closed
        self.place = device
        self.device = clients.raw(device)
        module = Module([device])
        heads: list[dict[str, str]] = [{} for _ in closed.in_avals]
        for i, o in aliases.items():
            heads[i]["tf.aliasing_output"] = f"{o} : i32"
        self.module = module
        self.stablehlo = write(closed, module, heads)
        self.types = [Type(a) for a in closed.in_avals]
        self.results = [(*kind_of(a), getattr(a.dtype, "numpy", a.dtype)) for a in closed.out_avals]
        options = pjrt.compile_options([self.device], len(self.results), [True] * len(self.results))
        self.loaded = pjrt.compile(
            self.device.client, self.stablehlo, [self.device], options, module.callbacks
        )
        self.where = pjrt.placement([self.device])
        self.loaded.results([Type(a) for a in closed.out_avals], [self.where] * len(self.results))
        self.call = self.loaded.finish if closed.effectful else self.loaded.call
        if module.callbacks or module.handlers:
            self.call = partial(module.raising, self.call)
        self.buffers: Any = None
        """Calls the program with buffers instead of NumPy arrays; set by `devices.buffers`."""

    def run(self, buffers: list[Any]) -> list[Any]:
        """Run the program on buffers."""
        return self.call(clients.at_home(buffers, self.device.client))

    @property
    def steps(self) -> tuple[Any, ...]:
        """`run` alone, or its steps if all buffers belong to one client."""
        calls = self.module.callbacks or self.module.handlers
        if self.closed.effectful or calls or clients.were_others():
            return (self.run,)
        return self.loaded.steps

    def put(self, number: int, value: np.ndarray) -> Any:
        """Make a buffer for an input."""
        kind = self.types[number]
        value = physical_value(np.asarray(value), kind)
        return pjrt.put(kind, self.where, [value], [self.device])

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        outs = self.run([self.put(i, x) for i, x in enumerate(values)])
        return [
            logical(pjrt.to_numpy(x, shape, physical), dtype)
            for x, (shape, physical, dtype) in zip(outs, self.results, strict=True)
        ]


def physical_value(x: np.ndarray, t: Type) -> np.ndarray:
    """Convert to the device's dtype: random keys become numbers, float0 becomes False."""
    if x.dtype == t.dtype:
        return x
    if not x.dtype.itemsize:
        return np.zeros(x.shape, t.dtype)
    return np.ascontiguousarray(x).view(t.dtype).reshape(x.shape)


def logical(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert from the device's dtype: numbers become random keys or float0 again."""
    if x.dtype == dtype:
        return x
    return x.view(dtype) if dtype.itemsize else np.zeros(x.shape, dtype)


class Xla:
    """Compiles programs with XLA, by default for the default device."""

    name = "xla"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        jaxpr = program.jaxpr
        program = program.replace(jaxpr=dce(jaxpr, [True] * len(jaxpr.outvars)))
        options = options or {}
        device = options.get("device") or default()
        return Program(program, device, options.get("aliases") or {})


xla = Xla()
