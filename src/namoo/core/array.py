"""Arrays: `Array` is what users see; `EagerArray` is the one that holds numbers.

`namoo.numpy` attaches the operators and methods when the first of them is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.deleted import Deleted
from namoo._base.late_methods import LateMethods, attach_late
from namoo._base.runtime import native
from namoo.core.avals import ShapedArray, handler_of

# A platform that was asked for but is not available is reported here, before anything is computed.
if config.platforms or config.platform_name:
    from namoo._base.plugins import selected_plugins

    selected_plugins()


class Array(LateMethods):
    """An immutable n-dimensional array, concrete or traced; `namoo.numpy.array` makes one."""

    __slots__ = ("__weakref__",)

    # NumPy's operators leave the work to ours: `ndarray + Array` is an Array.
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the type came from a Python scalar and gives way to other types."""
        return self.aval.weak_type

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError(
            "namoo.Array cannot be made directly; use namoo.numpy.array(...) or asarray(...)."
        )


attach_late(Array)


# Python code can give a class the buffer protocol from Python 3.12 on; C++ can everywhere.
if TYPE_CHECKING or native is None:

    class _Buffered:
        __slots__ = ()

else:
    _Buffered = native.Buffered


class EagerArray(Array, _Buffered):
    """A concrete array: a NumPy array that is never written to, and its weak type.

    The package and C++ read `_value` and `_weak`; plain names would be attributes for users.
    """

    __slots__ = ("_value", "_weak")

    def __init__(self, value: np.ndarray, weak_type: bool = False):
        self._value = value
        self._weak = weak_type

    @property
    def aval(self) -> ShapedArray:  # type: ignore[override]
        value = self._value
        dtype = value.dtype
        if dtype.names is not None:
            dtype = dtypes.of_numpy(dtype)
        return ShapedArray(value.shape, dtype, self._weak)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        dtype = self._value.dtype
        return dtype if dtype.names is None else dtypes.of_numpy(dtype)

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> int:
        return self._value.size

    @property
    def weak_type(self) -> bool:
        return self._weak

    def __reduce__(self):
        return _rebuild, (np.ascontiguousarray(self._value).reshape(self.shape), self._weak)


class PlacedArray(EagerArray):
    """A concrete array on one or several devices other than the default CPU device.

    Computation follows data: operations run on its devices, unless the user did not choose them
    (it is not `committed`) and the host can read its memory.
    """

    __slots__ = ("_buffer", "_committed", "_follows", "_host", "_sharding", "_type")

    apply: Callable[..., Any]
    """Runs an operation on the devices of its operands; set by `api.wiring`."""
    fetch: Callable[[PlacedArray], np.ndarray]
    """Copies the values to the host; set by `api.wiring`."""

    def __init__(
        self,
        aval: ShapedArray,
        sharding: Any,
        buffer: Any,
        committed: bool = True,
        follows: bool = True,
    ):
        self._committed = committed
        self._follows = follows
        self._type = sharding.typed(aval)
        self._weak = aval.weak_type
        self._sharding = sharding
        self._buffer = buffer
        self._host: np.ndarray | None = None

    @property
    def _value(self) -> np.ndarray:  # type: ignore[override]
        if self._host is None:
            if self._buffer is None:
                Deleted(np.empty(self.shape, getattr(self.dtype, "numpy", self.dtype)))._refuse()
            self._host = PlacedArray.fetch(self)
        return self._host

    aval = property(lambda self: self._type)  # type: ignore[assignment]
    shape = property(lambda self: self._type.shape)  # type: ignore[assignment]
    dtype = property(lambda self: self._type.dtype)  # type: ignore[assignment]
    ndim = property(lambda self: self._type.ndim)  # type: ignore[assignment]
    size = property(lambda self: self._type.size)  # type: ignore[assignment]


for _class in (EagerArray, PlacedArray):
    _class.__name__ = "Array"  # what users see; `__qualname__` is for pickle


def delete(x: EagerArray) -> None:
    """Free the memory of an array. The array cannot be used afterwards."""
    if isinstance(x, PlacedArray):
        x._buffer = x._host = None
        return
    if type(x._value) is not Deleted:
        x._value = Deleted(x._value)  # type: ignore[assignment]


def _rebuild(value: np.ndarray, weak: bool) -> EagerArray:
    # 64-bit types may be switched off in the process that reads it.
    dtype = dtypes.dtype_of(value)
    return EagerArray(value.astype(getattr(dtype, "numpy", dtype), copy=False), weak)


numpy_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}
"""Functions from values of other libraries' classes to NumPy arrays, by class."""


def own_copy(x: np.ndarray) -> np.ndarray:
    """The canonical form of a NumPy array, in memory that others cannot write to."""
    dtype = dtypes.dtype_of(x)
    numpy_dtype = getattr(dtype, "numpy", dtype)
    if type(x) is np.ndarray and x.dtype == numpy_dtype and not x.flags.writeable:
        if x.base is None:
            return x
    if x.dtype != numpy_dtype:
        dtypes.check_fits(x, numpy_dtype)
    return np.array(x, numpy_dtype, order="C", subok=False)


def owned(x: Any, weak_type: bool = False) -> EagerArray:
    """An array with the elements of a concrete operand, in memory that others cannot write to."""
    return EagerArray(own_copy(x) if isinstance(x, np.ndarray) else to_numpy(x), weak_type)


def to_numpy(x: Any) -> np.ndarray:
    """The canonical NumPy array behind a concrete operand: an array or a Python number."""
    if type(x) is EagerArray:
        return x._value
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = dtypes.dtype_of(x)
        if x.dtype != dtype:
            dtypes.check_fits(x, dtype)
        return np.asarray(x, dtype)
    if dtypes.is_python_scalar(x):
        return np.asarray(x, dtypes.dtype_of(x))
    if isinstance(x, PlacedArray):
        return x._value
    if isinstance(x, Array):  # a tracer outside of its transformation
        x.escaped()  # type: ignore[attr-defined]
    if (handler := handler_of(numpy_handlers, x)) is not None:
        return to_numpy(handler(x))
    raise TypeError(
        f"Value {x!r} of type {type(x)} is not a valid array type: "
        "pass an array, a NumPy array or a Python number."
    )
