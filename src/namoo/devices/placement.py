"""Computation follows data: programs run on the devices of their arguments.

`put` moves an array to devices. `plan` finds the devices of a program from its arguments and from
the shardings that the program itself specifies; the plan compiles the program for them, moves the
other arguments there, and wraps the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import namoo.api.wiring  # noqa: F401  # fills in the late attachments
from namoo._base import instrument
from namoo._base.caches import cached, derived, per_program, program_key
from namoo._base.config import config
from namoo.analysis.mesh_types import MeshArray
from namoo.core.array import EagerArray, PlacedArray, delete, owned, to_numpy
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from namoo.devices.buffers import intern
from namoo.devices.sharding.mesh import Mesh
from namoo.devices.sharding.partition_spec import PartitionSpec
from namoo.devices.sharding.read_hlo import from_hlo_text
from namoo.devices.sharding.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    require_divisible,
)
from namoo.engines import registry
from namoo.engines.base import require_donated_once
from namoo.transforms.stage import stage_closed


def as_sharding(place: Any) -> Sharding:
    """Return a sharding for a device; a sharding stays unchanged."""
    return place if isinstance(place, Sharding) else SingleDeviceSharding(place)


def needs_placing(sharding: Sharding) -> bool:
    """Whether a sharding is anything but the host's only device."""
    first, *rest = sharding._device_assignment
    return bool(rest) or first.platform != "cpu" or len(registry.of_platform()) > 1


def put(x: Any, place: Any) -> Any:
    """Put one array on a device, or distribute it over several."""
    sharding = as_sharding(place)
    aval = aval_of(x)
    if isinstance(x, PlacedArray):
        if x._buffer is None:
            to_numpy(x)  # raises: the array was deleted
        if x._sharding.is_equivalent_to(sharding, aval.ndim):
            same = x._committed and x._sharding == sharding
            return x if same else PlacedArray(aval, sharding, _reordered(x, sharding))
        if x._sharding.device_set == sharding.device_set and sharding.num_devices > 1:
            return run(_identity(aval), [x], [None], [sharding])[0]
        if not x._sharding.is_fully_addressable:
            raise ValueError(
                f"device_put: {aval.str_short()} is on devices of several processes, with "
                f"{x._sharding}, and cannot be moved to other devices, {sharding}."
            )
    if not needs_placing(sharding):
        return owned(x, aval.weak_type)
    require_divisible("device_put", sharding, aval.shape)
    return PlacedArray(intern(aval), sharding, _xla().put(to_numpy(x), aval, sharding))


def _reordered(x: PlacedArray, sharding: Sharding) -> Any:
    """Return the buffer of an array with its parts in the device order of another sharding."""
    before, after = x._sharding._device_assignment, sharding._device_assignment
    if before == after:
        return x._buffer
    return _xla().arranged(x._buffer, aval_of(x), sharding, before, after)


@cached("devices identity programs", bound=256, keyed_by="abstract value")
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    return stage_closed(lambda x: [x], [aval], "move")


def _xla() -> Any:
    # Loaded late: it needs jaxlib.
    from namoo.engines.xla import spmd

    return spmd


def run(closed: ClosedJaxpr, operands: Sequence[Any], *options: Any) -> list[PlacedArray]:
    """Run a program on the devices of its arguments, with the options of `plan`."""
    return plan(closed, operands, *options).ready()(operands)


_ON_DEVICES = program_key("compiled for devices", keyed_by="layouts, donated operands")


class Plan(NamedTuple):
    """A program, and the shardings of its inputs and results.

    Attributes:
        closed: The program.
        leader: The sharding whose devices the program runs on.
        inputs: The sharding of each input.
        wanted: The sharding of each result; None where XLA may choose.
        donated: Input → result that may take its memory.
        committed: Whether an argument or an option names the devices.
        names: The names of the inputs, for messages.
    """

    closed: ClosedJaxpr
    leader: Sharding
    inputs: tuple[Sharding, ...]
    wanted: tuple[Sharding | None, ...]
    donated: dict[int, int]
    committed: bool
    names: Sequence[str]

    def stablehlo(self) -> str:
        """Return the text that XLA compiles."""
        return _xla().write(*self._arguments())[1]

    def ready(self) -> Placed:
        """Compile the program, once."""
        key = (self.inputs, self.wanted, tuple(self.donated.items()), self.committed)

        def make():
            with instrument.span("compile", self.closed.jaxpr.name):
                program = _xla().PlacedProgram(*self._arguments())
            return Placed(program, self.inputs, self.donated, self.names, self.committed)

        return derived(self.closed.jaxpr, (_ON_DEVICES, *key), make)

    def _arguments(self) -> tuple[Any, ...]:
        devices = self.leader._device_assignment
        return self.closed, devices, self.inputs, self.wanted, self.donated, self._read

    def _read(self, text: str, ndim: int) -> Sharding:
        """Parse the sharding that XLA chose for a result, or return an equal one of an input."""
        mesh = self.leader.mesh if isinstance(self.leader, NamedSharding) else None
        if not isinstance(mesh, Mesh):
            return self.leader
        found = from_hlo_text(text, mesh, ndim)
        for own in self.inputs:
            if isinstance(own, NamedSharding) and own.mesh == mesh and len(own.spec) <= ndim:
                if own.is_equivalent_to(found, ndim):
                    return own
        if isinstance(found, NamedSharding) and mesh.explicit_axes:
            rest = [None] * (ndim - len(found.spec))
            found = found.with_spec([*found.spec.partitions, *rest])
        return found


def plan(
    closed: ClosedJaxpr,
    operands: Sequence[Any],
    given: Sequence[Sharding | None] | None = None,
    wanted: Sequence[Sharding | None] | None = None,
    donated: dict[int, int] | None = None,
    names: Sequence[str] | None = None,
) -> Plan:
    """Decide on which devices a program runs, and with which shardings.

    Args:
        closed: The program.
        operands: Arrays, or types of arrays.
        given: The sharding requested for each argument; None for those that stay where they are.
        wanted: The sharding requested for each result; None where XLA may choose.
        donated: Input → result that may take its memory.
        names: The names of the arguments, for messages.

    Raises:
        ValueError: Arguments, options and the program name different devices.
    """
    given = given or [None] * len(operands)
    wanted = wanted or [None] * len(closed.out_avals)
    names = names or [str(i) for i in range(len(operands))]
    claims = _claims(closed, operands, given, wanted, names)
    committed = bool(claims)
    if not committed:
        # Nothing names devices: the program runs on those of its first placed argument, or of the
        # current mesh.
        loose = (x._sharding for x in operands if isinstance(x, PlacedArray) and x._follows)
        mesh = config.mesh
        where = SingleDeviceSharding(registry.default())
        if mesh is not None and not mesh.empty:
            where, committed = NamedSharding(mesh, PartitionSpec()), True
        where = next(loose, None) or where
        claims.append(("an argument", where))
    leader = _leader(claims)
    replicated = leader
    if isinstance(leader, NamedSharding):
        replicated = NamedSharding(leader.mesh, PartitionSpec())
        if isinstance(leader.mesh, Mesh):
            wanted = [
                s or _of_type(a, leader.mesh) for s, a in zip(wanted, closed.out_avals, strict=True)
            ]
    inputs = []
    for x, s in zip(operands, given, strict=True):
        own = claimed(x) if s is None else s
        inputs.append(replicated if own is None else own)
    return Plan(closed, leader, tuple(inputs), tuple(wanted), donated or {}, committed, names)


def _of_type(aval: Any, mesh: Mesh) -> Sharding | None:
    """Return the sharding that the type of a result decides; None if the compiler chooses."""
    if mesh.auto_axes or not mesh.explicit_axes or not isinstance(aval, ShapedArray):
        return None
    split = aval.split if type(aval) is MeshArray else None
    if split is None and config.sharding_rules == "strict":
        return NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim))
    if split is None or split.mesh != mesh.abstract_mesh:
        return None
    return NamedSharding(mesh, split.spec)


def _claims(
    closed: ClosedJaxpr,
    operands: Sequence[Any],
    given: Sequence[Sharding | None],
    wanted: Sequence[Sharding | None],
    names: Sequence[str],
) -> list[tuple[str, Sharding]]:
    """Return everything that names devices for a program: a description, and the sharding."""
    claims: list[tuple[str, Sharding]] = []
    for x, s, name in zip(operands, given, names, strict=True):
        own = claimed(x)
        if own is not None:
            claims.append((f"argument {name} of {closed.jaxpr.name}", own if s is None else s))
        elif s is not None:
            claims.append((f"in_shardings for {name}", s))
    claims += [(f"out_shardings[{i}]", s) for i, s in enumerate(wanted) if s is not None]
    claims += [("a constraint in the program", s) for s in constraints(closed.jaxpr)]
    return claims


def _leader(claims: Sequence[tuple[str, Sharding]]) -> Sharding:
    """Return the sharding whose devices a program runs on; all claims must have the same."""
    source, first = claims[0]
    for what, sharding in claims[1:]:
        if sharding.device_set != first.device_set:
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{source} on device ids {_ids(first)} and {what} on device ids "
                f"{_ids(sharding)}. Move them to the same devices with namoo.device_put."
            )
    return next((s for _, s in claims if isinstance(s, NamedSharding)), first)


def claimed(x: Any) -> Sharding | None:
    """Return the sharding that an array, or a type of an array, is committed to; else None."""
    if isinstance(x, PlacedArray):
        return x._sharding if x._committed else None
    return x.sharding if isinstance(x, ShapeDtypeStruct) else None


def _ids(sharding: Sharding) -> list[int]:
    return [d.id for d in sharding._device_assignment]


@per_program("sharding constraints")
def constraints(jaxpr: Jaxpr) -> list[Sharding]:
    """Return the shardings with devices that the equations of a program name."""
    found = []
    for eqn in jaxpr.eqns:
        sharding = eqn.params.get("sharding")
        if isinstance(sharding, Sharding) and has_devices(sharding):
            found.append(sharding)
        mesh = eqn.params.get("mesh")
        if isinstance(mesh, Mesh):
            found.append(NamedSharding(mesh, PartitionSpec()))
        for sub in subjaxprs(eqn.params):
            found += constraints(sub)
    return found


def has_devices(sharding: Sharding) -> bool:
    """Whether a sharding names devices, and not only the axes of an abstract mesh."""
    return not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh)


def donatable(x: Any) -> Any:
    """An array that can be donated instead: a copy, if the host reads the device's memory."""
    if isinstance(x, PlacedArray) and x._host is not None:
        return EagerArray(x._host.copy(), x._weak)
    return x


class Placed:
    """A program compiled for its devices, called with arrays that may be anywhere.

    Attributes:
        program: The executable of the XLA engine.
        inputs: The sharding of each input.
        donated: Input → result that may take its memory.
        names: The names of the inputs, for messages.
        puts: For each input, a function from an array to a buffer.
        results: For each result its type, its sharding, and the flags of a `PlacedArray`.
    """

    __slots__ = ("donated", "inputs", "names", "program", "puts", "results")

    sharding = None
    """There is none for all arguments, so buffers of host arrays are not kept."""

    def __init__(
        self,
        program: Any,
        inputs: Sequence[Sharding],
        donated: dict[int, int],
        names: Sequence[str],
        committed: bool,
    ):
        self.inputs = inputs
        self.donated = donated
        self.names = names
        self.program = program
        self.puts = [
            lambda x, s=s, name=name: put_argument(x, s, name)._buffer
            for s, name in zip(inputs, names, strict=True)
        ]
        self.results = [
            (intern(s).typed(intern(a)), intern(s), committed, True)
            for a, s in zip(program.closed.out_avals, program.results, strict=True)
        ]

    @property
    def buffers(self) -> Placed | None:
        """What the C++ fast path calls; None with donated arguments, which it does not handle."""
        return None if self.donated else self

    def __call__(self, operands: Sequence[Any]) -> list[PlacedArray]:
        if self.donated:
            require_donated_once(self.program.closed.jaxpr, operands, self.donated)
        given = [donatable(x) if i in self.donated else x for i, x in enumerate(operands)]
        placed = [
            x if type(x) is PlacedArray and x._sharding is s else put_argument(x, s, name)
            for x, s, name in zip(given, self.inputs, self.names, strict=True)
        ]
        if any(x._buffer is None for x in placed):
            list(map(to_numpy, placed))  # raises: one of them was deleted
        outs = self.program([x._buffer for x in placed])
        for i in self.donated:
            if isinstance(operands[i], EagerArray):
                delete(operands[i])
        both = zip(self.results, outs, strict=True)
        return [PlacedArray(a, s, b, c, f) for (a, s, c, f), b in both]


def put_argument(x: Any, sharding: Sharding, path: str) -> PlacedArray:
    """Put an argument on the devices of a program."""
    if isinstance(x, PlacedArray):
        found = put(x, sharding)
        if isinstance(found, PlacedArray):
            return found
    else:
        require_divisible(path, sharding, aval_of(x).shape)
    aval = aval_of(x)
    return PlacedArray(aval, sharding, _xla().put(to_numpy(x), aval, sharding))


def require_given(
    operands: Sequence[Any], given: Sequence[Sharding | None], paths: Sequence[str], moves: bool
) -> None:
    """Refuse arguments that do not fit `in_shardings`.

    Args:
        operands: The arguments.
        given: The sharding requested for each argument, or None.
        paths: The names of the arguments.
        moves: Whether arguments that are committed to other devices are moved.

    Raises:
        ValueError: A dimension is not divisible, or an argument is committed to another sharding.
    """
    for x, s, path in zip(operands, given, paths, strict=True):
        if s is None:
            continue
        require_divisible(path, s, aval_of(x).shape)
        own = claimed(x)
        if own is None or moves or own.is_equivalent_to(s, x.ndim):
            continue
        if own.device_set != s.device_set or own.num_devices > 1:
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg: "
                f"{path}, {aval_of(x).str_short()}, has {own}, but in_shardings asks "
                f"for {s}. Move it first: namoo.device_put(x, sharding)."
            )
