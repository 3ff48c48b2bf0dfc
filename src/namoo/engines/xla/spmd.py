"""Programs over several devices, or on a device other than the host's first.

XLA's SPMD partitioner divides the work: a program gives the shardings of its inputs, and of results
where they matter; XLA chooses the rest. Inputs and results are buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines import registry
from namoo.engines.base import Device
from namoo.engines.xla import clients, engine, pjrt
from namoo.engines.xla.engine import Type, logical, physical_value
from namoo.engines.xla.hlo import kind_of
from namoo.engines.xla.lower import Module


def write(
    closed: ClosedJaxpr,
    devices: Sequence[Device],
    inputs: Sequence[Any],
    results: Sequence[Any],
    donated: dict[int, int],
    read: Callable[[str, int], Any],
) -> tuple[Module, str]:
    """Lower a program, with the arguments of `PlacedProgram`; return the module and its text."""
    module = Module(devices, read)
    heads = [_annotation(module, s, a.ndim) for s, a in zip(inputs, closed.in_avals, strict=True)]
    tails = [_annotation(module, s, a.ndim) for s, a in zip(results, closed.out_avals, strict=True)]
    for i, o in donated.items():
        if len(devices) == 1 or (results[o] is not None and results[o] == inputs[i]):
            heads[i]["tf.aliasing_output"] = f"{o} : i32"
        else:
            heads[i]["jax.buffer_donor"] = "true"
    return module, engine.write(closed, module, heads, tails)


class PlacedProgram(engine.Inspected):
    """A program compiled for its devices.

    Args:
        devices: the devices, in the order that the program numbers them.
        inputs: the sharding of each input.
        results: the sharding of each result; None where XLA may choose.
        donated: input → result that may take its memory.
        read: makes a sharding from the text of an HLO sharding and a number of dimensions.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        devices: Sequence[Device],
        inputs: Sequence[Any],
        results: Sequence[Any],
        donated: dict[int, int],
        read: Callable[[str, int], Any],
    ):
        self.closed = closed
        raw = [clients.raw(d) for d in devices]
        self.client = raw[0].client
        self.module, self.stablehlo = write(closed, devices, inputs, results, donated, read)
        module = self.module
        options = pjrt.compile_options(raw, len(results), [r is None for r in results])
        self.loaded = pjrt.compile(
            self.client,
            self.stablehlo,
            raw,
            options,
            module.callbacks,
            inspected=bool(module.inspections),
        )
        texts = self.loaded.output_shardings() if len(devices) > 1 else []
        self.results = [
            r if r is not None else read(texts[i] if texts else "{replicated}", a.ndim)
            for i, (r, a) in enumerate(zip(results, closed.out_avals, strict=True))
        ]
        self.loaded.results(
            [Type(a) for a in closed.out_avals],
            [
                placement(s, a.ndim, devices)
                for s, a in zip(self.results, closed.out_avals, strict=True)
            ],
        )
        # Arrays whose sharding has the devices in another order.
        self.devices = tuple(devices)
        self.turned_in = [(i, s) for i, s in enumerate(inputs) if self._is_turned(s)]
        self.turned_out = [(i, s) for i, s in enumerate(self.results) if self._is_turned(s)]
        self.run = self.loaded.finish if closed.effectful else self.loaded.call
        count = registry.processes()[1]
        self.of_all_processes = count > 1 and len({d.process_index for d in devices}) == count

    @property
    def steps(self) -> tuple[Any, ...]:
        """The program alone, or the steps of a call."""
        more = self.turned_in or self.turned_out or self.of_all_processes or self.module.callbacks
        if more or self.closed.effectful or clients.were_others():
            return (self,)
        return self.loaded.steps

    def _is_turned(self, sharding: Any) -> bool:
        return sharding._device_assignment != self.devices

    def __call__(self, buffers: list[Any]) -> list[Any]:
        for i, s in self.turned_in:
            aval = self.closed.in_avals[i]
            buffers[i] = arranged(buffers[i], aval, s, s._device_assignment, self.devices)
        outs = self._run(buffers)
        for i, s in self.turned_out:
            aval = self.closed.out_avals[i]
            outs[i] = arranged(outs[i], aval, s, self.devices, s._device_assignment)
        return outs

    def _run(self, buffers: list[Any]) -> list[Any]:
        buffers = clients.at_home(buffers, self.client)
        if self.of_all_processes:
            # Processes that have started fewer programs are the ones that others wait for.
            registry.progress.started += 1
        if not self.module.callbacks:
            return self.run(buffers)
        return self.module.raising(self.run, buffers)


def _annotation(module: Module, sharding: Any, ndim: int) -> dict[str, str]:
    text = None if sharding is None else module.sharding(sharding, ndim)
    return {} if text is None else {"sdy.sharding": f"#sdy.sharding{text}"}


def placement(sharding: Any, ndim: int, devices: Sequence[Device] | None = None) -> pjrt.Placement:
    """Return jaxlib's placement of a sharding, in the order of `devices` or in its own."""
    order = sharding._device_assignment if devices is None else devices
    return pjrt.placement([clients.raw(d) for d in order], sharding.hlo_text(ndim, order))


def arranged(
    buffer: Any,
    aval: ShapedArray,
    sharding: Any,
    before: Sequence[Device],
    after: Sequence[Device],
) -> Any:
    """Reorder the parts of a buffer for another order of the devices."""
    found = dict(zip((d for d in before if d.is_addressable), pjrt.pieces(buffer), strict=True))
    own = [found[d] for d in after if d.is_addressable]
    return pjrt.join(Type(aval), placement(sharding, aval.ndim, after), own)


def put(value: np.ndarray, aval: ShapedArray, sharding: Any) -> Any:
    """Make a buffer from a host array, split by a sharding."""
    value = physical_value(value, Type(aval))
    cuts = sharding.addressable_devices_indices_map(aval.shape)
    return put_pieces(
        [np.ascontiguousarray(value[i]).reshape(value[i].shape) for i in cuts.values()],
        aval,
        sharding,
        list(cuts),
    )


def put_pieces(
    pieces: Sequence[np.ndarray], aval: ShapedArray, sharding: Any, devices: Sequence[Device]
) -> Any:
    """Make a buffer from the parts of the devices of this process."""
    kind = Type(aval)
    pieces = [physical_value(x, kind) for x in pieces]
    where = placement(sharding, aval.ndim)
    return pjrt.put(kind, where, pieces, [clients.raw(d) for d in devices])


def join(buffers: Sequence[Any], aval: ShapedArray, sharding: Any) -> Any:
    """Make a buffer from buffers on their devices, in the order of the sharding."""
    return pjrt.join(Type(aval), placement(sharding, aval.ndim), list(buffers))


def pieces(buffer: Any, sharding: Any) -> list[tuple[Device, Any]]:
    """Return the parts of a buffer on the devices of this process."""
    local = sharding._addressable_device_assignment
    found = [buffer] if len(sharding._device_assignment) == 1 else pjrt.pieces(buffer)
    return list(zip(local, found, strict=True))


def to_numpy(buffer: Any, shape: tuple[int, ...], aval: ShapedArray) -> np.ndarray:
    """Copy a part on one device to NumPy; `shape` is the part's."""
    _, physical = kind_of(aval)
    dtype = getattr(aval.dtype, "numpy", aval.dtype)
    return logical(pjrt.to_numpy(buffer, shape, physical), dtype)
