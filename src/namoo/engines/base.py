"""The interface of engines: they compile a program to an executable, which runs on arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from namoo._base.lazy import later
from namoo._base.source_context import Source
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from namoo.errors import JaxRuntimeError

backend = later("namoo.extend.backend")

stage: Callable[..., tuple[Jaxpr, list[Any]]]
"""Traces a function of arrays, for engines that write some primitives in terms of others; set by
`api.wiring`."""


class HostOperation:
    """An operation of a compiled program that Python evaluates, with NumPy.

    Attributes:
        name: the name of the operation.
        operands, results: their types, as programs print them.
        source: the user's line that it comes from.
    """

    __slots__ = ("name", "operands", "results", "source")

    def __init__(
        self, name: str, operands: tuple[str, ...], results: tuple[str, ...], source: Source | None
    ):
        self.name, self.operands, self.results, self.source = name, operands, results, source

    @staticmethod
    def of(eqn: JaxprEqn) -> HostOperation:
        """Describe an equation."""
        operands, results = (
            tuple(atom.aval.str_short() for atom in atoms) for atoms in (eqn.invars, eqn.outvars)
        )
        return HostOperation(eqn.primitive.name, operands, results, eqn.source)

    def __str__(self) -> str:
        where = f"  at {self.source}" if self.source else ""
        return f"{self.name}({', '.join(self.operands)}) -> {', '.join(self.results)}{where}"

    __repr__ = __str__


class Executable(Protocol):
    """A compiled program: flat arrays in, flat arrays out."""

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]: ...

    def as_text(self, stage: str = "jaxpr") -> str: ...

    def host_operations(self) -> list[HostOperation]: ...


class Engine(Protocol):
    """Compiles programs."""

    name: str

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Executable:
        """Compile a program.

        Options:
            aliases: input → result; the caller donates these inputs, so the engine may write the
                result into the input's memory if `sole_owner` is true at the call.
            strict: check indices and divisors, as the rule `guards` of the primitives says.
        """
        ...


def sole_owner(values: Sequence[np.ndarray], place: int) -> bool:
    """Whether only the list `values` refers to the memory of `values[place]`, and no view.

    It must be called before anything else refers to the array.

    Example:
        >>> values = [np.ones(3), np.ones(3)]
        >>> view = values[1][:2]
        >>> sole_owner(values, 0), sole_owner(values, 1)
        (True, False)
    """
    # One reference is the list's, one is this call's.
    return values[place].flags.owndata and sys.getrefcount(values[place]) == 2


def require_donated_once(jaxpr: Jaxpr, values: Sequence[Any], donated: Iterable[int]) -> None:
    """Refuse donated inputs of a program that it is given a second time.

    Args:
        jaxpr: The program.
        values: Its inputs.
        donated: The positions of the inputs that are donated.

    Raises:
        JaxRuntimeError: A donated input is among the inputs twice.
    """
    given = {id(values[i]): i for i in donated}
    for i, value in enumerate(values):
        if given.get(id(value), i) != i:
            raise JaxRuntimeError(
                f"{jaxpr.name or 'A compiled function'} was called with an array "
                f"that it is given to keep, and with the same array once more: inputs "
                f"{min(i, given[id(value)])} and {max(i, given[id(value)])}, {value.dtype}"
                f"{list(value.shape)}. Pass x.copy() for one of them, or do not donate it."
            )


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class Memory(NamedTuple):
    """A memory of a device, by its kind."""

    kind: str
    device: Device

    @property
    def platform(self) -> str:
        """The platform of the device."""
        return self.device.platform

    def addressable_by_devices(self) -> list[Device]:
        """Return the devices that read and write the memory."""
        return [self.device]


class Device:
    """A device that holds arrays and runs programs.

    Example:
        >>> import namoo
        >>> namoo.devices()
        [CpuDevice(id=0)]
    """

    platform = "cpu"
    device_kind = "cpu"
    process_index = 0
    host_id = 0
    task_id = 0
    # Whether the device belongs to this process, which can read its memory.
    is_addressable = True

    def __init__(self, id: int = 0):
        self.id = id
        self.local_hardware_id = id

    def addressable_memories(self) -> list[Memory]:
        """Return the memories that the device reads and writes."""
        return [Memory(kind, self) for kind in MEMORY_KINDS]

    def default_memory(self) -> Memory:
        """Return the default memory of arrays on the device."""
        return Memory(MEMORY_KINDS[0], self)

    def memory(self, kind: str) -> Memory:
        """Return the memory of a kind."""
        if kind not in MEMORY_KINDS:
            raise ValueError(f"{self!r} has no memory of kind {kind!r}: use one of {MEMORY_KINDS}.")
        return Memory(kind, self)

    def memory_stats(self) -> None:
        """Return None: the memory is the host's, and its use by arrays is not counted."""

    @property
    def client(self) -> Any:
        """The platform that the device belongs to, a `namoo.extend.backend.Backend`."""
        return backend.get_backend(self.platform)

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"cpu:{self.id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)

    def __hash__(self) -> int:
        return hash((self.platform, self.id))


def asks_for_nothing(place: Any) -> bool:
    """Whether a place is a sharding on an empty mesh, as that of a type is."""
    return getattr(getattr(place, "mesh", None), "empty", False)


def require_device(what: str, device: Any) -> None:
    """Refuse a value that is not a device, a sharding or None.

    A sharding is recognised by its `device_set`; `what` is the function that got the value.
    """
    if device is None or isinstance(device, Device) or hasattr(device, "device_set"):
        return
    raise ValueError(
        f"{what}: device must be None, a device such as namoo.devices()[0], or a sharding. "
        f"Received invalid value: {device!r} of type {type(device).__name__}."
    )
