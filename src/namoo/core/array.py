"""Arrays: `Array` is what users see; `EagerArray` is the one that holds numbers.

Operators and methods are attached by `namoo.numpy`, which knows how to compute them, when the
first of them is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from namoo import _dtypes
from namoo._accelerator import native
from namoo._config import config
from namoo.core.avals import ShapedArray, handler_of
from namoo.core.late import attach_late

# Loaded by the first thing that computes: a setting that cannot be obeyed is an error here.
if config.platforms or config.platform_name:
    from namoo._plugins import wanted

    wanted()


class Array:
    """An immutable n-dimensional array, concrete or traced.

    Make one with `namoo.numpy.array` and friends; `isinstance(x, namoo.Array)` is true of traced
    values too.
    """

    __slots__ = ("__weakref__",)

    # NumPy's operators leave the work to ours: `ndarray + Array` is an Array.
    __array_priority__ = 100

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

    if TYPE_CHECKING:
        # `namoo.numpy` attaches operators and methods; those who check types hear of them here.
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def __dlpack__(self, **options: Any) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __round__(self, ndigits: int | None = None) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __divmod__(self, other: Any) -> Any: ...
        def __rdivmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...

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
    """A concrete array: a NumPy array that nobody writes to, and its weak type."""

    __slots__ = ("_value", "_weak")

    def __init__(self, value: np.ndarray, weak_type: bool = False):
        self._value = value
        self._weak = weak_type

    @property
    def aval(self) -> ShapedArray:  # type: ignore[override]
        value = self._value
        dtype = value.dtype
        if dtype.names is not None:
            dtype = _dtypes.of_numpy(dtype)
        return ShapedArray(value.shape, dtype, self._weak)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        dtype = self._value.dtype
        return dtype if dtype.names is None else _dtypes.of_numpy(dtype)

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
    """A concrete array on devices of its own: others than the host's first, or several of them.

    Computation follows data: operations on it run where it lies, unless nobody put it there
    (it is not `committed`) and the host reads its memory.
    """

    __slots__ = ("_buffer", "_committed", "_follows", "_host", "_sharding", "_type")

    apply: Callable[..., Any]
    """Runs an operation where its operands lie; `api.placement` puts it here."""
    fetch: Callable[[PlacedArray], np.ndarray]
    """The numbers, on the host; `api.placement` puts it here."""

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
        self._type = aval
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


class Deleted:
    """In place of the value of an array that was given up: its type, and no numbers."""

    __slots__ = ("dtype", "ndim", "shape", "size")

    def __init__(self, value: np.ndarray):
        self.shape, self.dtype = value.shape, value.dtype
        self.ndim, self.size = value.ndim, value.size

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        dtype = self.dtype if self.dtype.names is None else _dtypes.of_numpy(self.dtype)
        raise RuntimeError(
            f"Array has been deleted with shape={dtype}[{','.join(map(str, self.shape))}]: it was "
            "donated to a compiled function, or x.delete() was called. Use the function's result, "
            "or pass x.copy() to keep x."
        )

    __getattr__ = __getitem__ = __iter__ = __array__ = __reduce_ex__ = _refuse
    __str__ = __repr__ = __format__ = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse


def unseen(x: Any) -> Any:
    """What can be given away for an array: a copy, where someone may look at a device's memory."""
    if isinstance(x, PlacedArray) and x._host is not None:
        return EagerArray(x._host.copy(), x._weak)
    return x


def delete(x: EagerArray) -> None:
    """Give up an array's memory; it cannot be used any more."""
    if isinstance(x, PlacedArray):
        x._buffer = x._host = None
        return
    if type(x._value) is not Deleted:
        x._value = Deleted(x._value)  # type: ignore[assignment]


def _rebuild(value: np.ndarray, weak: bool) -> EagerArray:
    return EagerArray(value, weak)


numpy_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}
"""Functions from values of other libraries' classes to NumPy arrays, by class."""


def own_copy(x: np.ndarray) -> np.ndarray:
    """The canonical form of a NumPy array, in memory that nobody else can write to."""
    dtype = _dtypes.dtype_of(x)
    numpy_dtype = getattr(dtype, "numpy", dtype)
    if type(x) is np.ndarray and x.dtype == numpy_dtype and not x.flags.writeable:
        if x.base is None:
            return x
    if x.dtype != numpy_dtype:
        _dtypes.check_fits(x, numpy_dtype)
    return np.array(x, numpy_dtype, order="C", subok=False)


def owned(x: Any, weak_type: bool = False) -> EagerArray:
    """An array with the numbers of a concrete operand, which nobody else can change."""
    return EagerArray(own_copy(x) if isinstance(x, np.ndarray) else to_numpy(x), weak_type)


def to_numpy(x: Any) -> np.ndarray:
    """The canonical NumPy array behind a concrete operand: an array or a Python number."""
    if type(x) is EagerArray:
        return x._value
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = _dtypes.dtype_of(x)
        if x.dtype != dtype:
            _dtypes.check_fits(x, dtype)
        return np.asarray(x, dtype)
    if _dtypes.is_python_scalar(x):
        return np.asarray(x, _dtypes.dtype_of(x))
    if isinstance(x, PlacedArray):
        return x._value
    if isinstance(x, Array):  # a tracer where no transformation is going on
        x.escaped()  # type: ignore[attr-defined]
    if (handler := handler_of(numpy_handlers, x)) is not None:
        return to_numpy(handler(x))
    raise TypeError(
        f"Value {x!r} of type {type(x)} is not a valid array type: "
        "pass an array, a NumPy array or a Python number."
    )
