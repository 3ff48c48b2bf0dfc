"""Computation follows data: programs on arrays that lie on devices of their own.

`plan` finds the devices of a program from its arguments and from what it says itself, moves the
other arguments there, and wraps the results.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import _spans
from namoo._accelerator import native
from namoo._config import config, disable_jit
from namoo.control.constraint import device_put_p
from namoo.core.array import Deleted, EagerArray, PlacedArray, delete, owned, to_numpy, unseen
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from namoo.core.trace import Tracer
from namoo.engines.base import Device
from namoo.engines.devices import default
from namoo.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from namoo.sharding.hlo import from_hlo_text
from namoo.sharding.shardings import require_divisible


def as_sharding(place: Any) -> Sharding:
    """A sharding, from one or from a device."""
    return place if isinstance(place, Sharding) else SingleDeviceSharding(place)


def put(x: Any, place: Any) -> Any:
    """One array on a device, or over several."""
    sharding = as_sharding(place)
    aval = aval_of(x)
    if isinstance(x, PlacedArray):
        if x._buffer is None:
            to_numpy(x)  # tells that it was deleted
        if x._sharding.is_equivalent_to(sharding, aval.ndim):
            same = x._committed and x._sharding == sharding
            return x if same else PlacedArray(aval, sharding, _in_order(x, sharding))
        if x._sharding.device_set == sharding.device_set and sharding.num_devices > 1:
            return _move(x, sharding)
        if not x._sharding.is_fully_addressable:
            raise ValueError(
                f"device_put: {aval.str_short()} lies on devices of several processes, with "
                f"{x._sharding}, and cannot go to other devices, {sharding}."
            )
    if not needs_placing(sharding):
        return owned(x, aval.weak_type)
    require_divisible("device_put", sharding, aval.shape)
    return PlacedArray(the(aval), sharding, _xla().put(to_numpy(x), aval, sharding))


def _in_order(x: PlacedArray, sharding: Sharding) -> Any:
    """The buffer of an array, with its parts in the order of another sharding's devices."""
    before, after = x._sharding._device_assignment, sharding._device_assignment
    if before == after:
        return x._buffer
    return _xla().arranged(x._buffer, aval_of(x), sharding, before, after)


def needs_placing(sharding: Sharding) -> bool:
    """Whether arrays with this sharding are more than arrays of the host."""
    from namoo.api.device import devices

    first, *rest = sharding._device_assignment
    return bool(rest) or first.platform != "cpu" or len(devices()) > 1


def _move(x: PlacedArray, sharding: Sharding) -> PlacedArray:
    """An array laid out anew over the devices it lies on."""
    closed = _identity(aval_of(x))
    return run(closed, [x], [None], [sharding])[0]


@functools.lru_cache(256)
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    from namoo.transforms.stage import stage_closed

    return stage_closed(lambda x: [x], [aval], "move")


def fetch(x: PlacedArray) -> np.ndarray:
    """The numbers of an array, on the host."""
    xla, aval, sharding = _xla(), aval_of(x), x._sharding
    if not sharding.is_fully_addressable and not sharding.is_fully_replicated:
        raise RuntimeError(
            f"{aval.str_short()} lies on devices of several processes, so this process cannot read "
            "all of it. Use x.addressable_shards for its part, or first gather it: "
            "namoo.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)."
        )
    parts = xla.pieces(x._buffer, sharding)
    if sharding.is_fully_replicated and aval.size:
        return xla.to_numpy(parts[0][1], aval.shape, aval)
    out = np.empty(aval.shape, getattr(aval.dtype, "numpy", aval.dtype))
    if not aval.size:
        return out
    cuts = sharding.devices_indices_map(aval.shape)
    shape = sharding.shard_shape(aval.shape)
    done = set()
    for device, buffer in parts:
        place = tuple((s.start, s.stop) for s in cuts[device])
        if place not in done:
            done.add(place)
            out[cuts[device]] = xla.to_numpy(buffer, shape, aval)
    return out


@functools.lru_cache(4096)
def the(x: Any) -> Any:
    """One object for all types, or shardings, that are equal: recognised calls ask for identity."""
    return x


def _xla() -> Any:
    from namoo.engines.xla import placed

    return placed


# --- programs -------------------------------------------------------------------------------------


def run(closed: ClosedJaxpr, operands: Sequence[Any], *options: Any) -> list[PlacedArray]:
    """Run a program on the devices that its arguments, or its own words, tell.

    `options` are those of `plan`.
    """
    return plan(closed, operands, *options).ready()(operands)


class Plan(NamedTuple):
    """A program, and how its inputs and results lie on devices.

    `leader` is the sharding whose devices are the program's; `wanted` has None where XLA may choose
    how a result lies; `committed` tells whether anybody said where the program runs.
    """

    closed: ClosedJaxpr
    leader: Sharding
    inputs: tuple[Sharding, ...]
    wanted: tuple[Sharding | None, ...]
    donated: dict[int, int]
    committed: bool
    names: Sequence[str]

    def stablehlo(self) -> str:
        """The program as XLA is given it."""
        return _xla().write(*self._written())[1]

    def ready(self) -> Placed:
        """The program made ready, once."""
        key = (self.inputs, self.wanted, tuple(self.donated.items()), self.committed)
        cache = self.closed.jaxpr.cache.setdefault("placed", {})
        found = cache.get(key)
        if found is None:
            with _spans.span("compile", self.closed.jaxpr.name):
                program = _xla().PlacedProgram(*self._written())
            found = cache[key] = Placed(
                program, self.inputs, self.donated, self.names, self.committed
            )
        return found

    def _written(self) -> tuple[Any, ...]:
        devices = self.leader._device_assignment
        return self.closed, devices, self.inputs, self.wanted, self.donated, self._read

    def _read(self, text: str, ndim: int) -> Sharding:
        mesh = self.leader.mesh if isinstance(self.leader, NamedSharding) else None
        return from_hlo_text(text, mesh, ndim) if isinstance(mesh, Mesh) else self.leader


def plan(
    closed: ClosedJaxpr,
    operands: Sequence[Any],
    given: Sequence[Sharding | None] | None = None,
    wanted: Sequence[Sharding | None] | None = None,
    donated: dict[int, int] | None = None,
    names: Sequence[str] | None = None,
) -> Plan:
    """How a program is to run on the devices that its arguments, or its own words, tell.

    Args:
      operands: arrays, or types of arrays.
      given: how each argument shall lie; None for those that stay as they are.
      wanted: how each result shall lie; None where XLA may choose.
      donated: the result whose memory each of these arguments may become.
      names: what the arguments are called, for messages.
    """
    given = given or [None] * len(operands)
    wanted = wanted or [None] * len(closed.out_avals)
    names = names or [str(i) for i in range(len(operands))]
    inputs, leader, committed = _agree(closed, operands, given, wanted, names)
    return Plan(closed, leader, tuple(inputs), tuple(wanted), donated or {}, committed, names)


class Placed:
    """A program on its devices, called with arrays that lie anywhere."""

    __slots__ = ("donated", "inputs", "names", "program", "puts", "results")

    sharding = None
    """Its arguments have each their own, and buffers that the host's were given are not kept."""

    def __init__(self, program, inputs, donated, names, committed):
        self.inputs = inputs
        self.donated = donated
        self.names = names
        self.program = program
        self.puts = [
            lambda x, s=s, name=name: put_for(x, s, name)._buffer
            for s, name in zip(inputs, names, strict=True)
        ]
        self.results = [
            (the(a), the(s), committed, True)
            for a, s in zip(program.closed.out_avals, program.results, strict=True)
        ]

    @property
    def buffers(self) -> Placed | None:
        """What recognised calls work with; arguments that are given away take the general way."""
        return None if self.donated else self

    def __call__(self, operands: Sequence[Any]) -> list[PlacedArray]:
        if self.donated:
            from namoo.api.donation import refuse_shared

            refuse_shared(self.program.closed, operands, self.donated)
        given = [unseen(x) if i in self.donated else x for i, x in enumerate(operands)]
        placed = [
            x if type(x) is PlacedArray and x._sharding is s else put_for(x, s, name)
            for x, s, name in zip(given, self.inputs, self.names, strict=True)
        ]
        if any(x._buffer is None for x in placed):
            list(map(to_numpy, placed))  # tells which was deleted
        outs = self.program([x._buffer for x in placed])
        for i in self.donated:
            if isinstance(operands[i], EagerArray):
                delete(operands[i])
        both = zip(self.results, outs, strict=True)
        return [PlacedArray(a, s, b, c, f) for (a, s, c, f), b in both]


def put_for(x: Any, sharding: Sharding, path: str) -> PlacedArray:
    """An argument where the program wants it."""
    if isinstance(x, PlacedArray):
        found = put(x, sharding)
        return found if isinstance(found, PlacedArray) else _placed(x, sharding)
    require_divisible(path, sharding, aval_of(x).shape)
    return _placed(x, sharding)


def _placed(x: Any, sharding: Sharding) -> PlacedArray:
    aval = aval_of(x)
    return PlacedArray(aval, sharding, _xla().put(to_numpy(x), aval, sharding))


def require_given(
    operands: Sequence[Any], given: Sequence[Sharding | None], paths: Sequence[str], moves: bool
) -> None:
    """Refuse arguments that cannot lie, or were not put, as `in_shardings` asks for.

    Args:
      moves: arguments that were put elsewhere go where they shall lie.
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
                f"{path}, {aval_of(x).str_short()}, lies with {own}, but in_shardings asks "
                f"for {s}. Move it first: namoo.device_put(x, sharding)."
            )


def _agree(
    closed: ClosedJaxpr,
    operands: Sequence[Any],
    given: Sequence[Sharding | None],
    wanted: Sequence[Sharding | None],
    names: Sequence[str],
) -> tuple[list[Sharding], Sharding, bool]:
    """How each argument lies; the sharding whose devices lead, as all must have the same; and
    whether anybody said so."""
    claims: list[tuple[str, Sharding]] = []
    for x, s, name in zip(operands, given, names, strict=True):
        own = claimed(x)
        if own is not None:
            claims.append((f"argument {name} of {closed.jaxpr.name}", own if s is None else s))
        elif s is not None:
            claims.append((f"in_shardings for {name}", s))
    claims += [(f"out_shardings[{i}]", s) for i, s in enumerate(wanted) if s is not None]
    claims += [("a constraint in the program", s) for s in constraints(closed.jaxpr)]
    committed = bool(claims)
    if not committed:
        # Nobody said where: the program runs where its first argument happens to lie.
        loose = (x._sharding for x in operands if isinstance(x, PlacedArray) and x._follows)
        claims.append(("an argument", next(loose, None) or SingleDeviceSharding(default())))
    first = claims[0][1]
    for what, sharding in claims[1:]:
        if sharding.device_set != first.device_set:
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{claims[0][0]} on device ids {_ids(first)} and {what} on device ids "
                f"{_ids(sharding)}. Move them to the same devices with namoo.device_put."
            )
    meshes = [s for _, s in claims if isinstance(s, NamedSharding)]
    leader = meshes[0] if meshes else first
    everywhere = leader
    if isinstance(leader, NamedSharding):
        everywhere = NamedSharding(leader.mesh, PartitionSpec())
    inputs = []
    for x, s in zip(operands, given, strict=True):
        own = claimed(x) if s is None else s
        inputs.append(everywhere if own is None else own)
    return inputs, leader, committed


def claimed(x: Any) -> Sharding | None:
    """Where somebody put an array, or said that one of its type will lie."""
    if isinstance(x, PlacedArray):
        return x._sharding if x._committed else None
    return x.sharding if isinstance(x, ShapeDtypeStruct) else None


def _ids(sharding: Sharding) -> list[int]:
    return [d.id for d in sharding._device_assignment]


def constraints(jaxpr: Jaxpr) -> list[Sharding]:
    """The shardings with devices that a program speaks of."""
    found = jaxpr.cache.get("constraints")
    if found is None:
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
        jaxpr.cache["constraints"] = found
    return found


def has_devices(sharding: Sharding) -> bool:
    """Whether a sharding tells which devices it means, and not only names of axes."""
    return not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh)


_kept: dict[int, tuple[Any, weakref.ref, Any]] = {}


def _keep(x: EagerArray, sharding: Sharding, aval: ShapedArray, buffer: Any) -> None:
    """Remember the buffer that an array of the host was given, while it lives: the buffer shares
    the array's memory where it can."""
    # Arrays may outlive the names of this module.
    key, forget = id(x), _kept.pop
    _kept[key] = sharding, weakref.ref(x, lambda _: forget(key, None)), buffer


def _buffer_of(x: EagerArray, sharding: Sharding) -> Any:
    """The buffer that an array was given before; None if there is none."""
    where, array, buffer = _kept.get(id(x), (None, None, None))
    if where is not sharding or array is None or array() is not x or type(x._value) is Deleted:
        return None
    return buffer


# Recognised calls look for buffers there, too.
keep = _keep if native is None else native.keep
buffer_of = _buffer_of if native is None else native.kept
count_kept = _kept.__len__ if native is None else native.kept_count


class Buffers:
    """How a program for one device is called with arrays, of which some have buffers there.

    The results stay on the device; on a CPU they can be read where they are.
    """

    __slots__ = ("program", "puts", "results", "sharding")

    def __init__(self, program: Any):
        self.program = program
        self.sharding = the(SingleDeviceSharding(program.place))
        follows = program.place.platform != "cpu"
        self.puts = [self._put(i) for i in range(len(program.types))]
        self.results = [(the(a), self.sharding, False, follows) for a in program.closed.out_avals]

    def _put(self, number: int) -> Any:
        program, sharding = self.program, self.sharding

        def put_input(x: Any) -> Any:
            if type(x) is PlacedArray and x._sharding is sharding and x._buffer is not None:
                return x._buffer
            if type(x) is not EagerArray:
                return program.put(number, to_numpy(x))
            # An array that comes again has its buffer already.
            buffer = buffer_of(x, sharding)
            if buffer is None:
                buffer = program.put(number, x._value)
                keep(x, sharding, the(aval_of(x)), buffer)
            return buffer

        return put_input

    def __call__(self, operands: Sequence[Any]) -> list[PlacedArray]:
        outs = self.program.run([put(x) for put, x in zip(self.puts, operands, strict=True)])
        both = zip(self.results, outs, strict=True)
        return [PlacedArray(a, s, b, c, f) for (a, s, c, f), b in both]


def with_buffers(program: Any) -> Any:
    """A program of the XLA engine, made ready to be called with arrays of its device."""
    if program.buffers is None:
        program.buffers = Buffers(program)
    return program


# --- operations -----------------------------------------------------------------------------------

_operations: dict[Any, Any] = {}


def apply(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """An operation on arrays of which some lie on devices of their own."""
    from namoo.api.jit import jit

    for x in args:
        if isinstance(x, Tracer):
            x.escaped()
    if prim is device_put_p:
        return put(args[0], params["sharding"])
    key: Any = (prim, tuple(sorted(params.items())))
    try:
        known = _operations.get(key)
    except TypeError:  # parameters without hash
        key = known = None
    if known is None:

        def operation(*xs):
            return prim.bind(*xs, **params)

        operation.__name__ = prim.name
        known = jit(operation)
        if key is not None:
            if len(_operations) > 4096:
                _operations.clear()
            _operations[key] = known
    if config.disable_jit:
        # Devices run nothing but programs.
        with disable_jit(False):
            return known(*args)
    return known(*args)


PlacedArray.apply = staticmethod(apply)
PlacedArray.fetch = staticmethod(fetch)


class Shard:
    """The part of an array on one device."""

    def __init__(self, array: EagerArray, device: Device, number: int, replica_id: int):
        self._array = array
        self._number = number
        self.device = device
        self.replica_id = replica_id

    @property
    def index(self) -> tuple[slice, ...]:
        """The slices of the whole array that the part is."""
        return self._array.sharding.devices_indices_map(self._array.shape)[self.device]

    @property
    def data(self) -> Any:
        """The part as an array on its device; None of another process' device."""
        return None if self._number < 0 else self._array.addressable_data(self._number)

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def addressable_data(x: PlacedArray, number: int) -> Any:
    """The part of an array on one of this process' devices."""
    aval, sharding = aval_of(x), x._sharding
    parts = _xla().pieces(x._buffer, sharding)
    device, buffer = parts[number]
    own = aval.update(shape=sharding.shard_shape(aval.shape))
    part = PlacedArray(own, SingleDeviceSharding(device), buffer)
    if device.platform == "cpu":
        # Its memory is the whole array's, which may be given away while someone looks at the part.
        part._host = part._value.copy()
    return part


def shards(x: PlacedArray, local: bool) -> list[Shard]:
    """The parts of an array, of this process' devices or of all."""
    sharding = x._sharding
    cuts = sharding.devices_indices_map(x.shape)
    seen: dict[Any, int] = {}
    out, number = [], 0
    for device in sharding._device_assignment:
        place = tuple((s.start, s.stop) for s in cuts[device])
        replica = seen.get(place, 0)
        seen[place] = replica + 1
        if device.is_addressable or not local:
            out.append(Shard(x, device, number if device.is_addressable else -1, replica))
        number += device.is_addressable
    return out


# --- what users ask of arrays ---------------------------------------------------------------------


def _block(x: PlacedArray) -> PlacedArray:
    """The array itself, once it is computed."""
    if x._buffer is not None:
        x._buffer.block_until_ready()
    return x


def _device(x: PlacedArray) -> Any:
    """The device of an array that lies on one, else its sharding."""
    sharding = x._sharding
    return sharding._device_assignment[0] if sharding.num_devices == 1 else sharding


def _device_bytes(x: PlacedArray) -> int:
    """The bytes of the array on all devices."""
    part = aval_of(x).update(shape=x._sharding.shard_shape(x.shape))
    return part.size * part.dtype.itemsize * x._sharding.num_devices


for _name, _member in {
    "sharding": property(lambda self: self._sharding, doc="How the array lies on devices."),
    "device": property(_device),
    "devices": lambda self: self._sharding.device_set,
    "committed": property(lambda self: self._committed, doc="Whether it was put where it lies."),
    "is_fully_addressable": property(lambda self: self._sharding.is_fully_addressable),
    "is_fully_replicated": property(lambda self: self._sharding.is_fully_replicated),
    "addressable_shards": property(lambda self: shards(self, True)),
    "global_shards": property(lambda self: shards(self, False)),
    "addressable_data": addressable_data,
    "to_device": lambda self, device, *, stream=None: put(self, device),
    "block_until_ready": _block,
    "on_device_size_in_bytes": _device_bytes,
    "is_ready": lambda self: self._buffer.is_ready(),
    "is_deleted": lambda self: self._buffer is None,
}.items():
    setattr(PlacedArray, _name, _member)
