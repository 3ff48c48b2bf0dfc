"""The engine: programs compiled by XLA, run on NumPy arrays or on buffers of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.jaxpr import ClosedJaxpr, dce
from namoo.engines.base import Device
from namoo.engines.xla import clients, pjrt
from namoo.engines.xla.hlo import kind_of
from namoo.engines.xla.lower import Module


class Type:
    """What jaxlib wants to know of a buffer."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, aval: Any):
        self.shape, self.dtype = kind_of(aval)
        self.weak_type = False


class Program:
    """A program compiled for one device: NumPy arrays in, NumPy arrays out."""

    def __init__(self, closed: ClosedJaxpr, device: Device):
        self.closed = closed
        self.device = clients.raw(device)
        module = Module()
        self.stablehlo = module.text(closed.jaxpr.name or "main", module.main(closed))
        self.failures = module.failures
        self.types = [Type(a) for a in closed.in_avals]
        self.results = [(*kind_of(a), getattr(a.dtype, "numpy", a.dtype)) for a in closed.out_avals]
        options = pjrt.compile_options([self.device], len(self.results), [True] * len(self.results))
        self.loaded = pjrt.compile(
            self.device.client, self.stablehlo, [self.device], options, module.callbacks
        )
        # Effects are over when the call returns.
        self.run = self.loaded.finish if closed.effectful else self.loaded
        self.where = pjrt.placement([self.device])
        self.loaded.results([Type(a) for a in closed.out_avals], [self.where] * len(self.results))

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        devices = [self.device]
        buffers = [
            pjrt.put(t, self.where, [physical_value(x, t)], devices)
            for t, x in zip(self.types, values, strict=True)
        ]
        try:
            outs = self.run(buffers)
            return [
                logical(pjrt.to_numpy(x, shape, physical), dtype)
                for x, (shape, physical, dtype) in zip(outs, self.results, strict=True)
            ]
        except Exception:
            if self.failures:
                raise self.failures.pop() from None
            raise

    def as_text(self, stage: str = "jaxpr") -> str:
        """The program as "jaxpr", "stablehlo", or as XLA left it, "hlo"."""
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


def physical_value(x: np.ndarray, t: Type) -> np.ndarray:
    """Numbers as they are, and keys as numbers."""
    return x if x.dtype == t.dtype else np.ascontiguousarray(x).view(t.dtype).reshape(x.shape)


def logical(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers as they are, or as the keys that they stand for."""
    return x if x.dtype == dtype else x.view(dtype)


class Xla:
    """Compiles programs by XLA, for its first CPU unless told another device."""

    name = "xla"

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Program:
        jaxpr = program.jaxpr
        program = program.replace(jaxpr=dce(jaxpr, [True] * len(jaxpr.outvars)))
        return Program(program, (options or {}).get("device") or Device(0))


xla = Xla()
