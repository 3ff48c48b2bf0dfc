"""The contract of engines: a program goes in, something that runs it on arrays comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from namoo.errors import Source

stage: Callable[..., tuple[Jaxpr, list[Any]]]
"""Traces a function of arrays to a program, for engines that write some primitives as functions of
others; `api.jit` puts it here."""


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
        """What is told of an equation."""
        operands, results = (
            tuple(atom.aval.str_short() for atom in atoms) for atoms in (eqn.invars, eqn.outvars)
        )
        return HostOperation(eqn.primitive.name, operands, results, eqn.source)

    def __str__(self) -> str:
        where = f"  at {self.source}" if self.source else ""
        return f"{self.name}({', '.join(self.operands)}) -> {', '.join(self.results)}{where}"

    __repr__ = __str__


class Executable(Protocol):
    """A program made ready: flat arrays in, flat arrays out."""

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]: ...

    def as_text(self, stage: str = "jaxpr") -> str: ...

    def host_operations(self) -> list[HostOperation]: ...


class Engine(Protocol):
    """Turns programs into executables."""

    name: str

    def compile(self, program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Executable:
        """Make a program ready to run.

        Options:
          aliases: input → result; the caller gives these inputs up, so where `sole_owner` agrees
            at the call the engine may write the result into the input's memory.
          strict: check indices and divisors, as the rule `guards` of the primitives asks.
        """
        ...


def sole_owner(values: Sequence[np.ndarray], place: int) -> bool:
    """Whether the list `values` alone holds the memory of `values[place]`: no view shares it.

    To be asked before anything else refers to the array.

    >>> values = [np.ones(3), np.ones(3)]
    >>> view = values[1][:2]
    >>> sole_owner(values, 0), sole_owner(values, 1)
    (True, False)
    """
    # One reference is the list's, one is this call's.
    return values[place].flags.owndata and sys.getrefcount(values[place]) == 2


class Device:
    """A place where arrays live and programs run.

    >>> import namoo
    >>> namoo.devices()
    [CpuDevice(id=0)]
    """

    platform = "cpu"
    device_kind = "cpu"
    process_index = 0
    host_id = 0
    task_id = 0
    # Whether this process has the device, and can read what lies on it.
    is_addressable = True

    def __init__(self, id: int = 0):
        self.id = id
        self.local_hardware_id = id

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"cpu:{self.id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.platform, self.id) == (other.platform, other.id)

    def __hash__(self) -> int:
        return hash((self.platform, self.id))


def require_device(what: str, device: Any) -> None:
    """Refuse what is no place for arrays, naming the function it was given to.

    A sharding (which has a `device_set`) is a place, too; None is wherever the array is made.
    """
    if device is None or isinstance(device, Device) or hasattr(device, "device_set"):
        return
    raise ValueError(
        f"{what}: device must be None, a device such as namoo.devices()[0], or a sharding; got "
        f"{device!r} of type {type(device).__name__}."
    )
