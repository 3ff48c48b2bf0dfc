"""Shardings: which part of an array is on which device.

Every sharding is defined by a *tiling*: the number of tiles along each dimension, and for each
device the coordinates of its tile. Shapes, slices and equivalence are computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from namoo._base.caches import cached
from namoo._base.lazy import later
from namoo._base.source_context import entry_class
from namoo.analysis.mesh_types import MeshArray
from namoo.core.avals import ShapedArray
from namoo.devices.sharding.current_mesh import get_abstract_mesh
from namoo.devices.sharding.hlo_text import hlo_tiles, hlo_tiles_on, sdy_dims, sdy_mesh
from namoo.devices.sharding.mesh import AbstractMesh, AxisType, Mesh
from namoo.devices.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from namoo.engines.base import MEMORY_KINDS, Device

notebook = later("namoo.devices.sharding.notebook")

Shape = Sequence[int]
Index = tuple[slice, ...]


class IndivisibleError(ValueError):
    """A dimension cannot be split into equal tiles."""


class DuplicateSpecError(ValueError):
    """A spec splits two dimensions over the same mesh axis."""

    def __init__(self, message: str, mesh: Any, pspec: PartitionSpec):
        super().__init__(message)
        self.mesh = mesh
        self.pspec = pspec


class Tiling(NamedTuple):
    """The number of tiles along each dimension, and the coordinates of each device's tile."""

    parts: tuple[int, ...]
    places: np.ndarray


def _checked_memory(kind: str | None, device: Device) -> str:
    if kind is None:
        return "device"
    if kind not in MEMORY_KINDS:
        raise ValueError(
            f"memory_kind={kind!r}: a device of kind {device.device_kind} has the memories "
            f"{', '.join(map(repr, MEMORY_KINDS))}."
        )
    return kind


class Sharding:
    """Which part of an array is on which device."""

    @property
    def device_set(self) -> set[Device]:
        """The devices, including those of other processes."""
        return set(self._device_assignment)

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self._device_assignment)

    @property
    def memory_kind(self) -> str | None:
        """The kind of device memory that holds the array."""
        raise NotImplementedError(type(self))

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the same sharding in another kind of memory."""
        raise NotImplementedError(type(self))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        raise NotImplementedError(type(self))

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices in the order that programs number them."""
        raise NotImplementedError(type(self))

    def _tiling(self, ndim: int) -> Tiling:
        """Return the tiling of an array with `ndim` dimensions."""
        raise NotImplementedError(type(self))

    def _repr_html_(self) -> str:
        return notebook.sharding_html(self)

    def typed(self, aval: ShapedArray) -> ShapedArray:
        """Return the type of an array that has this sharding."""
        if type(aval) is MeshArray:
            return ShapedArray(aval.shape, aval.dtype, aval.weak_type)
        return aval

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Refuse arrays with fewer dimensions than the sharding describes."""

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process."""
        return set(self._addressable_device_assignment)

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        return tuple(device for device in self._device_assignment if device.is_addressable)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return all(device.is_addressable for device in self._device_assignment)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some devices belong to this process."""
        return any(device.is_addressable for device in self._device_assignment)

    def shard_shape(self, global_shape: Shape) -> tuple[int, ...]:
        """Return the shape of each device's part of an array.

        Raises:
            IndivisibleError: a dimension cannot be split into equal parts.
            ValueError: the array has fewer dimensions than the sharding describes.
        """
        return _shard_shape(self, tuple(global_shape))

    def devices_indices_map(self, global_shape: Shape) -> Mapping[Device, Index]:
        """Return for each device the slices of its part of an array.

        Raises:
            IndivisibleError: a dimension cannot be split into equal parts.
        """
        return _indices(self, tuple(global_shape))

    def addressable_devices_indices_map(self, global_shape: Shape) -> Mapping[Device, Index]:
        """Return for each device of this process the slices of its part of an array."""
        found = _indices(self, tuple(global_shape))
        return {device: found[device] for device in self._addressable_device_assignment}

    def with_dimension(self, dim: int, names: Any = None) -> Sharding:
        """Return the sharding for arrays with one more dimension.

        The new dimension is split over the mesh axes `names`; without names it is unconstrained.
        """
        return self

    def shardy(self, ndim: int, devices: Sequence[Device]) -> tuple[str, str]:
        """Return the mesh, and how an array is split over it, in the syntax of Shardy.

        Args:
            ndim: The number of dimensions of the array.
            devices: The devices of the program, in its order.
        """
        return sdy_mesh(Mesh(devices, ("all",)), devices), self.shardy_dims(ndim)

    def shardy_dims(self, ndim: int) -> str:
        """Return how an array with `ndim` dimensions is split, in the syntax of Shardy."""
        return sdy_dims(PartitionSpec(), (), ndim)

    def hlo_text(self, ndim: int, devices: Sequence[Device] | None = None) -> str:
        """Return the text of an HLO sharding for an array with `ndim` dimensions.

        Args:
            ndim: The number of dimensions of the array.
            devices: The devices in the order that the text numbers them; by default our own.
        """
        parts, places = self._tiling(ndim)
        if math.prod(parts) == 1:
            return "{replicated}"
        return hlo_tiles_on(
            parts, places, self._device_assignment, devices or self._device_assignment
        )

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of arrays with `ndim` dimensions on the same devices."""
        return self.memory_kind == other.memory_kind and _placed(self, ndim) == _placed(other, ndim)


@cached("sharding.shardings shard shapes", bound=4096, keyed_by="sharding, shape")
def _shard_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    require_divisible("", sharding, shape)
    parts = sharding._tiling(len(shape)).parts
    return tuple(size // count for size, count in zip(shape, parts, strict=True))


@cached("sharding.shardings indices", bound=4096, keyed_by="sharding, shape")
def _indices(sharding: Sharding, shape: tuple[int, ...]) -> dict[Device, Index]:
    sizes = _shard_shape(sharding, shape)
    parts, places = sharding._tiling(len(shape))
    cuts = [
        [slice(None)] if count == 1 else [slice(i * size, (i + 1) * size) for i in range(count)]
        for count, size in zip(parts, sizes, strict=True)
    ]
    return {
        device: tuple(cut[i] for cut, i in zip(cuts, place, strict=True))
        for device, place in zip(sharding._device_assignment, places.tolist(), strict=True)
    }


@cached("sharding.shardings equivalence keys", bound=4096, keyed_by="sharding, rank")
def _placed(sharding: Sharding, ndim: int) -> Any:
    """Return a value that is equal for equivalent shardings."""
    parts, places = sharding._tiling(ndim)
    unreduced = sharding.spec.unreduced if isinstance(sharding, NamedSharding) else frozenset()
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        return parts, tuple(map(tuple, places.tolist())), unreduced
    tiles = map(tuple, places.tolist())
    return parts, dict(zip(sharding._device_assignment, tiles, strict=True)), unreduced


def require_divisible(what: str, sharding: Sharding, shape: tuple[int, ...]) -> None:
    """Refuse an array that the sharding cannot split into equal parts.

    Args:
        what: a description of the array for the message; may be empty.

    Raises:
        IndivisibleError: a dimension cannot be split into equal parts.
        ValueError: the array has fewer dimensions than the sharding describes.
    """
    sharding.check_compatible_aval(shape)
    parts = sharding._tiling(len(shape)).parts
    for dim, (size, count) in enumerate(zip(shape, parts, strict=True)):
        if size % count:
            raise IndivisibleError(
                f"{what or 'Sharding'}: {_indivisible(sharding, tuple(shape), dim, count)}"
            )


def require_fitting(what: str, sharding: Sharding, aval: Any) -> None:
    """Refuse a sharding that an array of this type cannot have.

    Raises:
        IndivisibleError: a dimension cannot be split into equal parts.
        ValueError: the array has fewer dimensions than the sharding describes.
    """
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(
            f"One of {what} is incompatible with its sharding annotation {sharding}: {error}"
        ) from None
    require_divisible(f"One of {what}", sharding, aval.shape)


def _indivisible(sharding: Sharding, shape: tuple[int, ...], dim: int, count: int) -> str:
    over, whole = f"{count} tiles", ""
    if isinstance(sharding, NamedSharding):
        axes = axes_of(sharding.spec.partitions[dim])
        names = " and ".join(f"{axis!r} (size {sharding.mesh.shape[axis]})" for axis in axes)
        product = f", {count} tiles in all" if len(axes) > 1 else ""
        over = f"mesh {'axis' if len(axes) == 1 else 'axes'} {names}{product}"
        entries = list(sharding.spec.partitions)
        entries[dim] = None
        whole = f", or do not split it: {PartitionSpec(*entries)}"
    size = shape[dim]
    return (
        f"dimension {dim} of an array of shape {shape} has size {size}, which cannot be split "
        f"evenly over {over}. Pad it to {-(-size // count) * count}{whole}. Sharding {sharding} "
        f"implies that array axis {dim} is partitioned {count} times, but the dimension size is "
        f"{size} (full shape: {shape}): the number of parts should evenly divide the shape."
    )


class SingleDeviceSharding(Sharding):
    """A sharding with the whole array on one device.

    Args:
        device: the device.
        memory_kind: the memory of the device; "device" by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.zeros(3).sharding
        SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
        >>> jnp.zeros(3).sharding.is_fully_replicated
        True
    """

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        self._device = device
        self._memory_kind = _checked_memory(memory_kind, device)

    def __reduce__(self) -> Any:
        return _single, (self._device, self._memory_kind)

    @property
    def memory_kind(self) -> str:
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return (self._device,)

    def _tiling(self, ndim: int) -> Tiling:
        return Tiling((1,) * ndim, np.zeros((1, ndim), int))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return hash((self._device, self._memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def _single(device: Device, memory_kind: str) -> SingleDeviceSharding:
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Make a sharding with the whole array on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@entry_class
class NamedSharding(Sharding):
    """A sharding over the named axes of a mesh.

    Args:
        mesh: the devices, with names for the axes they are arranged in.
        spec: for each dimension of the array the mesh axes it is split over. The array is
            replicated along axes that the spec does not name.
        memory_kind: the memory of the devices; "device" by default.

    Raises:
        TypeError: not a mesh or not a spec.
        ValueError: the spec names an axis that the mesh does not have, or one axis twice
            (`DuplicateSpecError`).

    Example:
        >>> from namoo.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
        >>> sharding = NamedSharding(AbstractMesh((4, 2), ("x", "y")), P("x"))
        >>> sharding.shard_shape((8, 3))
        (2, 3)
    """

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ):
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(
                f"NamedSharding: mesh must be a Mesh, as from namoo.make_mesh, or an AbstractMesh; "
                f"got {mesh!r} of type {type(mesh).__name__}."
            )
        if not isinstance(spec, PartitionSpec):
            entries = spec if isinstance(spec, tuple | list) else (spec,)
            raise TypeError(
                f"NamedSharding: spec must be a PartitionSpec; instead of {spec!r} write "
                f"{PartitionSpec(*entries)}."
            )
        _check_spec(mesh, spec)
        self.mesh = mesh
        self.spec = spec
        if isinstance(mesh, Mesh) and not mesh.empty:
            memory_kind = _checked_memory(memory_kind, mesh.flat_devices[0])
        self._memory_kind = memory_kind
        self._hash = hash((mesh, spec, memory_kind))

    def __reduce__(self) -> Any:
        return _named, (self.mesh, self.spec, self._memory_kind)

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return self.update(memory_kind=kind)

    def with_spec(self, spec: PartitionSpec | Sequence[Any]) -> NamedSharding:
        """Return the sharding on the same mesh with another spec."""
        return self.update(spec=spec)

    def update(self, **kwargs: Any) -> NamedSharding:
        """Return the sharding with its `mesh`, `spec` or `memory_kind` replaced."""
        given = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._memory_kind, **kwargs}
        if not isinstance(given["spec"], PartitionSpec):
            given["spec"] = PartitionSpec(*given["spec"])
        return NamedSharding(**given)

    def with_dimension(self, dim: int, names: Any = None) -> NamedSharding:
        entries = [*self.spec.partitions]
        if dim > len(entries):
            entries += [None] * (dim - len(entries))
        entries.insert(dim, UNCONSTRAINED if names is None else names)
        # Only axes of type Auto allow unconstrained dimensions.
        mesh = self.mesh.update(axis_types=(AxisType.Auto,) * len(self.mesh.axis_names))
        return self.update(mesh=mesh, spec=PartitionSpec(*entries))

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        if isinstance(self.mesh, AbstractMesh):
            self.mesh._no_devices()
        return self.mesh.flat_devices

    @cached_property
    def is_fully_replicated(self) -> bool:
        if self.mesh.size == 1:
            return True
        split = math.prod(self.mesh.shape[axis] for axis in self.spec.axes()) > 1
        return not split and not self.spec.unreduced

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes along which the array is replicated."""
        used = {*self.spec.axes(), *self.spec.unreduced, *self.spec.reduced}
        return frozenset(self.mesh.axis_names) - used

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        if len(aval_shape) < len(self.spec):
            fit = PartitionSpec(*self.spec.partitions[: len(aval_shape)])
            raise ValueError(
                f"{self} is for arrays of at least {len(self.spec)} dimensions, but the array of "
                f"shape {tuple(aval_shape)} has {len(aval_shape)}. A spec for it is {fit}."
            )

    def typed(self, aval: ShapedArray) -> ShapedArray:
        return _typed(self, aval.shape, aval.dtype, aval.weak_type)

    def in_type(self, ndim: int) -> NamedSharding | None:
        """Return the sharding in the type of an array: over axes of type Explicit only.

        It has an entry for each dimension, and no devices; None without such axes.
        """
        return _in_type(self, ndim)

    def in_program(self, ndim: int) -> NamedSharding | None:
        """Return what a type with this sharding demands of the compiler.

        Where the mesh has axes of type Auto, the compiler may split the other dimensions.
        """
        split = self.in_type(ndim)
        if split is None or not split.mesh.auto_axes:
            return split
        entries = [UNCONSTRAINED if e is None else e for e in split.spec.partitions]
        return split.with_spec(split.spec.update(entries))

    def shardy(self, ndim: int, devices: Sequence[Device]) -> tuple[str, str]:
        return sdy_mesh(self.mesh, devices), self.shardy_dims(ndim)

    def shardy_dims(self, ndim: int) -> str:
        self.check_compatible_aval((1,) * ndim)
        return sdy_dims(self.spec, self.mesh.axis_names, ndim)

    def hlo_text(self, ndim: int, devices: Sequence[Device] | None = None) -> str:
        parts = self._tiling(ndim).parts
        own = devices is None or tuple(devices) == self._device_assignment
        if own and math.prod(parts) > 1:
            return hlo_tiles(self.mesh, self.spec, parts)
        return super().hlo_text(ndim, devices)

    def _tiling(self, ndim: int) -> Tiling:
        return _named_tiling(self, ndim)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and self._hash == other._hash
            and self.spec == other.spec
            and self.mesh == other.mesh
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        memory = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"


def unsplit(ndim: int) -> NamedSharding:
    """Return the sharding of a type that no axis of the current mesh splits."""
    return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * ndim))


@cached("sharding.shardings of types", bound=4096, keyed_by="sharding, rank")
def _in_type(sharding: NamedSharding, ndim: int) -> NamedSharding | None:
    mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
    explicit = set(mesh.explicit_axes)
    if not explicit:
        return None
    entries: list[Any] = [None] * ndim
    for i, entry in enumerate(spec.partitions):
        entries[i] = tuple(name for name in axes_of(entry) if name in explicit)
    return NamedSharding(mesh, spec.update(entries))


def typed(aval: ShapedArray, place: Any) -> ShapedArray:
    """Return the type of an array with the sharding, or the spec, of a `ShapeDtypeStruct`."""
    if isinstance(place, PartitionSpec):
        place = NamedSharding(get_abstract_mesh(), place)
    return place.typed(aval) if isinstance(place, Sharding) else aval


@cached("sharding.shardings typed values", bound=4096, keyed_by="sharding, shape, dtype, weak type")
def _typed(sharding: NamedSharding, shape: Any, dtype: Any, weak: bool) -> ShapedArray:
    aval = ShapedArray(shape, dtype, weak)
    split = sharding.in_type(len(shape))
    return aval if split is None else MeshArray(aval, split=split)


def _named(mesh: Any, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


@cached("sharding.shardings tilings", bound=4096, keyed_by="sharding, rank")
def _named_tiling(sharding: NamedSharding, ndim: int) -> Tiling:
    sharding.check_compatible_aval((1,) * ndim)
    mesh = sharding.mesh
    along = dict(zip(mesh.axis_names, np.indices(mesh.axis_sizes), strict=True))
    parts = [1] * ndim
    places = np.zeros((mesh.size, ndim), int)
    for dim, part in enumerate(sharding.spec.partitions):
        for axis in axes_of(part):
            size = mesh.shape[axis]
            parts[dim] *= size
            places[:, dim] = places[:, dim] * size + along[axis].ravel()
    return Tiling(tuple(parts), places)


@cached("sharding.shardings checked specs", bound=4096, keyed_by="mesh, spec")
def _check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    axes = list(spec.axes())
    if twice := sorted({f"{axis!r}" for axis in axes if axes.count(axis) > 1}):
        raise DuplicateSpecError(
            f"NamedSharding: {spec} has duplicate entries for {', '.join(twice)}; a mesh axis can "
            "split at most one dimension.",
            mesh,
            spec,
        )
    for axis in (*axes, *spec.unreduced, *spec.reduced):
        if axis not in mesh.axis_names:
            raise ValueError(
                f"NamedSharding: Resource axis: {axis} of {spec} is not found in mesh: "
                f"{mesh.axis_names}."
            )
    if UNCONSTRAINED in spec.partitions and mesh.axis_names and not mesh.auto_axes:
        raise ValueError(
            f"NamedSharding: {spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are "
            f"`Auto`: it leaves a dimension to the compiler. The types of {mesh.axis_names} are "
            f"{mesh.axis_types}."
        )
    for what, names in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
        for axis in names:
            if axis not in mesh.explicit_axes:
                raise ValueError(
                    f"NamedSharding: {what} axes must be of type {AxisType.Explicit!r}; {axis!r} "
                    f"of {mesh} is not."
                )
