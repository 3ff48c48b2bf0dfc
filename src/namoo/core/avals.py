"""Abstract values: what is known about an array before it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import register
from namoo._base.lazy import later
from namoo.dimensions.sizes import canonical_shape as canonical_shape

shardings = later("namoo.devices.sharding.shardings")


class AbstractValue:
    """What is known about a value before it is computed."""

    __slots__ = ()


_dtype_classes: set[type] = register(
    "core.avals dtype classes", set(), bound="classes of dtypes", keyed_by="class", kept=True
)


def _as_dtype(given: Any) -> Any:
    """Convert anything that users may pass as a dtype."""
    dtype = given if isinstance(given, dtypes.ExtendedDType) else np.dtype(given)
    _dtype_classes.add(type(dtype))
    return dtype


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    A *weak* type is one that came from a Python scalar and gives way to the other operand's type.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    vma: frozenset[Any] = frozenset()
    """The mesh axes along which the value differs between devices, where `shard_map` tracks them
    ("varying manual axes")."""

    def __init__(self, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None):
        self.shape: tuple[Any, ...] = shape if type(shape) is tuple else canonical_shape(shape)
        self.dtype: Any = dtype if type(dtype) in _dtype_classes else _as_dtype(dtype)
        self.weak_type: bool = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """A copy with some of `shape`, `dtype`, `weak_type` changed."""
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )

    def tangent(self) -> ShapedArray:
        """The type of this value's derivative: itself for inexact types, else float0."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype == self.dtype else ShapedArray(self.shape, dtype)

    def strong(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """JAX's name for `tangent`, which is also the type of cotangents."""
        return self.tangent()

    to_ct_aval = to_tangent_aval
    at_least_vspace = to_tangent_aval

    def strip_weak_type(self) -> ShapedArray:
        """JAX's name for `strong`."""
        return self.strong()

    @property
    def sharding(self) -> Any:
        """A `NamedSharding` on the current mesh that splits no axis; see `analysis.mesh_types`."""
        return shardings.unsplit(self.ndim)

    def str_short(self, short_dtypes: bool = True) -> str:
        """The type in few characters: `f32[2,3]`; `float32[2,3]` without short dtypes."""
        dtype = dtypes.short_name(self.dtype) if short_dtypes else self.dtype
        return f"{dtype}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short(short_dtypes=False)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapedArray)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


class ShapeDtypeStruct:
    """Shape and dtype of an array, without its data: what `eval_shape` returns.

    Example:
        >>> import namoo
        >>> namoo.ShapeDtypeStruct((2, 3), "float32").shape
        (2, 3)
    """

    __slots__ = ("dtype", "is_ref", "shape", "sharding", "weak_type")

    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type=False, is_ref=False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified, not None.")
        self.shape = canonical_shape(shape)
        self.dtype = dtype if isinstance(dtype, dtypes.ExtendedDType) else np.dtype(dtype)
        self.weak_type = weak_type
        self.sharding, self.is_ref = sharding, is_ref

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape and dtype of a value, and its sharding if it is committed to one.

        Example:
            >>> import namoo
            >>> namoo.ShapeDtypeStruct.like(1.5)
            ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        aval = aval_of(x)
        committed = getattr(x, "_committed", isinstance(x, ShapeDtypeStruct))
        sharding = x.sharding if committed else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: the ShapeDtypeStruct has shape ()")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed."""
        fields = {name: changes.pop(name, getattr(self, name)) for name in self.__slots__}
        if changes:
            raise TypeError(f"ShapeDtypeStruct has no field {sorted(changes)}")
        return ShapeDtypeStruct(**fields)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{sharding}{weak}{ref})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


aval_handlers: dict[type, Callable[[Any], ShapedArray]] = {
    np.ndarray: lambda x: ShapedArray(x.shape, dtypes.dtype_of(x))
}
"""Functions from values of other libraries' classes to abstract values, by class."""


ref_type: Any = None
"""Makes the type of a reference from the type of its value; `api.wiring` sets it."""


def handler_of(handlers: dict[type, Callable[[Any], Any]], x: Any) -> Callable[[Any], Any] | None:
    """The handler of a value's class, or of the closest class that it inherits from."""
    return next((handlers[cls] for cls in type(x).__mro__ if cls in handlers), None)


def aval_of(x: Any) -> ShapedArray:
    """The abstract value of anything that can be an operand."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    if isinstance(x, (np.ndarray, np.generic)):
        return ShapedArray(x.shape, dtypes.dtype_of(x))
    if isinstance(x, (bool, int, float, complex)):
        return ShapedArray((), dtypes.dtype_of(x), dtypes.is_weak(x))
    if isinstance(x, ShapeDtypeStruct):
        dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended=True)
        aval = ShapedArray(x.shape, dtype, x.weak_type)
        aval = aval if x.sharding is None else shardings.typed(aval, x.sharding)
        return ref_type(aval) if x.is_ref else aval
    if isinstance(x, AbstractValue):
        return x  # type: ignore[return-value]
    if (handler := handler_of(aval_handlers, x)) is not None:
        return handler(x)
    raise TypeError(
        f"Value {x!r} of type {type(x)} is not a valid array type: "
        "pass an array, a NumPy array or a Python number."
    )
