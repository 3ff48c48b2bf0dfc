"""Meshes: devices arranged in an array whose axes have names."""

from __future__ import annotations

import contextlib
import enum
import math
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from namoo._base.config import Scope
from namoo._base.source_context import entry_class
from namoo.engines.base import Device


class AxisType(enum.Enum):
    """Who decides how arrays are split over a mesh axis.

    `Auto`: the compiler, guided by constraints. `Explicit`: the types of the arrays. `Manual`: the
    code itself, inside `shard_map`.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class AbstractDevice:
    """The properties of devices that a program can use before devices are chosen."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self.description()})"

    def description(self) -> str:
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"
        )


def _checked_names(what: str, names: Any) -> tuple[Hashable, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    if None in names:
        raise ValueError(f"{what}: a name of an axis cannot be None, got {names}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: each axis needs its own name, got {names}.")
    return names


def _checked_types(what: str, names: tuple[Any, ...], types: Any) -> tuple[AxisType, ...]:
    types = (AxisType.Auto,) * len(names) if types is None else types
    types = types if isinstance(types, tuple) else (types,)
    if not all(isinstance(each, AxisType) for each in types):
        raise TypeError(
            f"{what}: axis_types are AxisType.Auto, AxisType.Explicit or AxisType.Manual, one for "
            f"each axis; got {types}."
        )
    if len(types) != len(names):
        raise ValueError(
            f"{what}: there are {len(names)} axis_names {names} but {len(types)} axis_types "
            f"{types}; give one type for each axis."
        )
    return types


class BaseMesh:
    """The base class of meshes with and without devices."""

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    size: int
    has_devices: bool

    @cached_property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of an axis' name and its size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @cached_property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def empty(self) -> bool:
        """Whether there are no devices."""
        return self.size == 0

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(
            name for name, own in zip(self.axis_names, self.axis_types, strict=True) if own is kind
        )

    @cached_property
    def auto_axes(self) -> tuple[Any, ...]:
        """The axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @cached_property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @cached_property
    def manual_axes(self) -> tuple[Any, ...]:
        """The axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return bool(self.axis_names) and self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        return bool(self.axis_names) and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        return bool(self.axis_names) and self.manual_axes == self.axis_names

    def _key(self) -> tuple[Any, ...]:
        raise NotImplementedError(type(self))

    @cached_property
    def _hash(self) -> int:
        return hash(self._key())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is type(self) and self._hash == other._hash and self._key() == other._key()
        )


@entry_class
class Mesh(BaseMesh, contextlib.ContextDecorator):
    """Devices in an array whose axes have names, which a `PartitionSpec` refers to.

    Args:
        devices: an array of devices, with as many dimensions as there are names.
        axis_names: the name of each axis.
        axis_types: an `AxisType` for each axis; Auto by default.

    Raises:
        ValueError: the numbers of dimensions, names and types differ, or a name occurs twice.
        TypeError: an element of `devices` is not a device.

    Example:
        >>> import namoo
        >>> mesh = Mesh(namoo.devices()[:1], ("data",))
        >>> mesh
        Mesh(axis_sizes=(1,), axis_names=('data',), axis_types=(Auto,))
        >>> mesh.shape["data"], mesh.size
        (1, 1)
    """

    devices: np.ndarray
    has_devices = True

    def __init__(
        self,
        devices: np.ndarray | Sequence[Device],
        axis_names: str | Sequence[Any],
        axis_types: tuple[AxisType, ...] | AxisType | None = None,
    ):
        self.axis_names = _checked_names("Mesh", axis_names)
        # A copy, which cannot be changed from outside.
        box = np.array(devices, dtype=object)
        if box.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument to be the number of axis_names: "
                f"devices is an array of shape {box.shape}, with {box.ndim} dimensions, but there "
                f"are {len(self.axis_names)} axis_names {self.axis_names}. Reshape the devices to "
                "one dimension for each name, or use make_mesh."
            )
        self.axis_types = _checked_types("Mesh", self.axis_names, axis_types)
        # The empty mesh is an array without dimensions that holds None.
        empty = not self.axis_names and box.item() is None
        for each in () if empty else box.flat:
            if not hasattr(each, "id"):
                raise TypeError(
                    f"Mesh: devices must be devices, such as those of namoo.devices(); got {each!r}"
                    f" of type {type(each).__name__}."
                )
        box.flags.writeable = False
        self.devices = box
        self.axis_sizes = box.shape
        self.size = 0 if empty else box.size
        self._scopes: list[Scope] = []

    def _key(self) -> tuple[Any, ...]:
        return self.flat_devices, self.axis_sizes, self.axis_names, self.axis_types

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return the mesh with some fields replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @cached_property
    def flat_devices(self) -> tuple[Device, ...]:
        """The devices in order, the last axis varying fastest."""
        return tuple(self.devices.flat)

    @property
    def is_scalar(self) -> bool:
        """Whether this is one device without axes."""
        return self.size == 1 and not self.axis_names

    @cached_property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, in the mesh's shape."""
        return np.array([device.id for device in self.flat_devices]).reshape(self.axis_sizes)

    @cached_property
    def local_devices(self) -> list[Device]:
        """The devices of this process, in order."""
        return [device for device in self.flat_devices if device.is_addressable]

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return len(self.local_devices) != self.size

    @cached_property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that this process has.

        Raises:
            ValueError: the devices of this process are not a rectangular part of the mesh.
        """
        if self.empty:
            return self
        local = np.array([d.is_addressable for d in self.flat_devices]).reshape(self.axis_sizes)
        places = np.argwhere(local)
        if not len(places):
            raise ValueError(f"{self} has no devices of this process.")
        box = tuple(
            slice(first, last + 1)
            for first, last in zip(places.min(axis=0), places.max(axis=0), strict=True)
        )
        if not local[box].all():
            raise ValueError(
                f"local_mesh: this process' devices are not a contiguous box within {self}; their "
                f"positions are {places.tolist()}."
            )
        return self.update(devices=self.devices[box])

    @cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        if not self.axis_names:
            return EMPTY_ABSTRACT_MESH
        device = self.flat_devices[0]
        cores = {"tpu": "num_cores", "gpu": "core_count"}.get(device.platform)
        kind = AbstractDevice(
            device.device_kind, getattr(device, cores, None) if cores else None, device.platform
        )
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def __str__(self) -> str:
        if self.empty:
            return "Mesh()"
        return f"Mesh({_sizes(self)}, axis_types={self.axis_types})"

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, "
            f"axis_types={self.axis_types})"
        )

    def __enter__(self) -> Mesh:
        warnings.warn(
            "`with mesh:` context manager has been deprecated. Please use "
            "`with namoo.set_mesh(mesh):` instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        scope = Scope("mesh", self)
        scope.__enter__()
        self._scopes.append(scope)
        return self

    def __exit__(self, *exc: object) -> None:
        self._scopes.pop().__exit__(*exc)


def _sizes(mesh: BaseMesh) -> str:
    return ", ".join(f"'{name}': {size}" for name, size in mesh.shape_tuple)


@entry_class
class AbstractMesh(BaseMesh):
    """The names and sizes of a mesh's axes, without devices.

    A program that is traced with it need not be traced again when the devices change.

    Args:
        axis_sizes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: an `AxisType` for each axis; Auto by default.
        abstract_device: what is known about the devices.

    Example:
        >>> AbstractMesh((4, 2), ("x", "y"))
        AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[Any],
        axis_types: tuple[AxisType, ...] | AxisType | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        self.axis_names = _checked_names("AbstractMesh", axis_names)
        self.axis_sizes = tuple(axis_sizes)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh: {len(self.axis_sizes)} axis_sizes {self.axis_sizes} but "
                f"{len(self.axis_names)} axis_names {self.axis_names}; give one name for each size."
            )
        self.axis_types = _checked_types("AbstractMesh", self.axis_names, axis_types)
        self.abstract_device = abstract_device
        self.size = math.prod(self.axis_sizes) if self.axis_sizes else 0

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: Any = None,
        **kwargs: Any,
    ) -> AbstractMesh:
        """Return the mesh with some fields replaced."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """Return the mesh with the types of some axes replaced."""
        types = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, own) for name, own in types))

    def __repr__(self) -> str:
        device = f", {self.abstract_device.description()}" if self.abstract_device else ""
        return f"AbstractMesh({_sizes(self) or '()'}, axis_types={self.axis_types}{device})"

    has_devices = False

    def _no_devices(self) -> NoReturn:
        raise ValueError(
            "an AbstractMesh has no devices: it is only names and sizes. Use a Mesh, as from "
            "namoo.make_mesh."
        )

    devices = device_ids = local_devices = local_mesh = is_multi_process = property(_no_devices)


EMPTY_MESH = Mesh(np.empty((), dtype=object), ())
EMPTY_ABSTRACT_MESH = AbstractMesh((), ())
