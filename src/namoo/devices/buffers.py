"""Device buffers of host arrays, and programs for one device that are called with buffers."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from namoo._base.caches import cached, register
from namoo._base.deleted import Deleted
from namoo._base.runtime import native
from namoo.core.array import EagerArray, PlacedArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.devices.sharding.shardings import Sharding, SingleDeviceSharding


@cached("devices interned values", bound=4096, keyed_by="abstract value or sharding")
def intern(x: Any) -> Any:
    """Return the canonical instance of an equal type or sharding.

    The C++ fast path compares types and shardings by identity.
    """
    return x


_kept: dict[int, tuple[Any, weakref.ref, Any]] = register(
    "devices buffers of host arrays",
    {},
    bound="live arrays that were moved to a device",
    keyed_by="identity of the array",
    kept=True,
    entries=None if native is None else native.kept_count,
)


def _keep(x: EagerArray, sharding: Sharding, aval: ShapedArray, buffer: Any) -> None:
    """Remember the device buffer of a host array while the array lives.

    The buffer shares the array's memory where it can.
    """
    # Arrays may outlive the names of this module.
    key, forget = id(x), _kept.pop
    _kept[key] = sharding, weakref.ref(x, lambda _: forget(key, None)), buffer


def _buffer_of(x: EagerArray, sharding: Sharding) -> Any:
    """Return the buffer that was kept for an array, or None."""
    where, array, buffer = _kept.get(id(x), (None, None, None))
    if where is not sharding or array is None or array() is not x or type(x._value) is Deleted:
        return None
    return buffer


# The C++ fast path of calls looks up the same table.
keep = _keep if native is None else native.keep
buffer_of = _buffer_of if native is None else native.kept
count_kept = _kept.__len__ if native is None else native.kept_count


class Buffers:
    """Calls a program for one device with arrays, some of which have buffers there.

    The results stay on the device; on a CPU the host can read them in place.

    Attributes:
        program: The executable of the XLA engine.
        sharding: The device of all inputs and results.
        puts: For each input, a function from an array to a buffer.
        results: For each result its type, its sharding, and the flags of a `PlacedArray`.
    """

    __slots__ = ("program", "puts", "results", "sharding")

    def __init__(self, program: Any):
        self.program = program
        self.sharding = intern(SingleDeviceSharding(program.place))
        follows = program.place.platform != "cpu"
        self.puts = [self._put(i) for i in range(len(program.types))]
        self.results = [
            (intern(a), self.sharding, False, follows) for a in program.closed.out_avals
        ]

    def _put(self, number: int) -> Any:
        program, sharding = self.program, self.sharding

        def put_input(x: Any) -> Any:
            if type(x) is PlacedArray and x._sharding is sharding and x._buffer is not None:
                return x._buffer
            if type(x) is not EagerArray:
                return program.put(number, to_numpy(x))
            # An array that was passed before already has a buffer.
            buffer = buffer_of(x, sharding)
            if buffer is None:
                buffer = program.put(number, x._value)
                keep(x, sharding, intern(aval_of(x)), buffer)
            return buffer

        return put_input

    def __call__(self, operands: Sequence[Any]) -> list[PlacedArray]:
        outs = self.program.run([put(x) for put, x in zip(self.puts, operands, strict=True)])
        both = zip(self.results, outs, strict=True)
        return [PlacedArray(a, s, b, c, f) for (a, s, c, f), b in both]


def buffers_of(program: Any) -> Buffers:
    """Return the `Buffers` of a program of the XLA engine, which are made once."""
    if program.buffers is None:
        program.buffers = Buffers(program)
    return program.buffers
