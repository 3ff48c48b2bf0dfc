"""`x.at[index].set(y)` and its relatives: arrays with some elements changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import _dtypes, errors
from namoo._config import config
from namoo._lazy import later
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace
from namoo.numpy.arithmetic import power, true_divide
from namoo.numpy.creation import asarray
from namoo.numpy.indexing import (
    BASIC,
    Item,
    Layout,
    Mode,
    Shape,
    as_numpy_index,
    get,
    read_index,
)
from namoo.numpy.promote import OPERANDS, as_type, fast, to_array
from namoo.primitives.shape import (
    broadcast_to,
    convert_element_type,
    expand_dims,
    ones,
    reshape,
    squeeze,
)

gather = later("namoo.primitives.gather")
windows = later("namoo.primitives.windows")


class IndexUpdateHelper:
    """The property `at` of arrays: index it, and call a method of what you get.

    | expression | the same, if arrays could be changed |
    |---|---|
    | `x = x.at[i].set(y)` | `x[i] = y` |
    | `x = x.at[i].add(y)` | `x[i] += y` |
    | `x = x.at[i].subtract(y)` | `x[i] -= y` |
    | `x = x.at[i].multiply(y)` | `x[i] *= y` |
    | `x = x.at[i].divide(y)` | `x[i] /= y` |
    | `x = x.at[i].power(y)` | `x[i] **= y` |
    | `x = x.at[i].min(y)` | `x[i] = minimum(x[i], y)` |
    | `x = x.at[i].max(y)` | `x[i] = maximum(x[i], y)` |
    | `x = x.at[i].apply(f)` | `x[i] = f(x[i])`, for a function of one number |
    | `y = x.at[i].get(...)` | `y = x[i]`, with a choice of what is out of bounds |

    Unlike NumPy's `x[i] += y`, an element that is indexed twice is changed twice.

    Each method takes the keywords `mode` ('drop', 'clip' or 'promise_in_bounds': what indices out
    of bounds do), `indices_are_sorted` and `unique_indices` (promises that make it faster), and
    `wrap_negative_indices` (whether negative indices count from the end).

    >>> import namoo.numpy as jnp
    >>> x = jnp.zeros(4)
    >>> x.at[jnp.array([1, 3, 3])].add(1.0)
    Array([0., 1., 0., 2.], dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: a place in an array; see `IndexUpdateHelper` for its methods."""

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, {self.index!r})"

    def _update(self, kind: str, values: Any, flags: tuple[Any, ...]) -> Any:
        held = self._holders() if type(self.array) is EagerArray else None
        if _nobody_else is None:  # it is being measured
            return held
        own = held == _nobody_else
        return update(kind, self.array, self.index, values, *flags, own=own)

    def _holders(self) -> tuple[int, ...]:
        """How often the place, its array and the array's memory are referred to."""
        x: Any = self.array
        return sys.getrefcount(self), sys.getrefcount(x), sys.getrefcount(x._value)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The elements; with mode 'fill', those out of bounds are `fill_value`.

        >>> import namoo.numpy as jnp
        >>> jnp.arange(3.0).at[jnp.array([2, 5])].get(mode="fill", fill_value=-1)
        Array([ 2., -1.], dtype=float32)
        """
        return get(
            self.array,
            self.index,
            mode,
            fill_value,
            indices_are_sorted,
            unique_indices,
            wrap_negative_indices,
        )

    def set(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the elements replaced.

        >>> import namoo.numpy as jnp
        >>> jnp.zeros((2, 3)).at[:, 1].set(jnp.array([5.0, 6.0]))
        Array([[0., 5., 0.],
               [0., 6., 0.]], dtype=float32)
        """
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter", values, flags)

    def add(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with `values` added to the elements.

        >>> import namoo.numpy as jnp
        >>> jnp.ones(3).at[jnp.array([0, 0, 2])].add(jnp.array([1.0, 2.0, 3.0]))
        Array([4., 1., 4.], dtype=float32)
        """
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter_add", values, flags)

    def subtract(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with `values` subtracted from the elements."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter_sub", values, flags)

    def multiply(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the elements multiplied by `values`."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter_mul", values, flags)

    mul = multiply

    def divide(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the elements divided by `values`; integers become floating."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        divisor = update("scatter_mul", _ones(self.array), self.index, values, *flags)
        return true_divide(self.array, divisor)

    def power(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the elements raised to the power `values`."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        exponent = update("scatter_mul", _ones(self.array), self.index, values, *flags)
        return power(self.array, exponent)

    def min(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the smaller of the elements and `values`."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter_min", values, flags)

    def max(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with the larger of the elements and `values`."""
        flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return self._update("scatter_max", values, flags)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with a function of one number applied to the elements.

        An element that is indexed several times goes through the function as often.

        >>> import namoo.numpy as jnp
        >>> jnp.arange(4.0).at[1:3].apply(lambda v: v * 10)
        Array([ 0., 10., 20.,  3.], dtype=float32)
        """
        # Loaded late: nothing else here needs loops.
        from namoo.control.scatter_apply import scatter_apply

        x, place = _place(self.array, self.index, mode, wrap_negative_indices)
        out = scatter_apply(
            x,
            place.indices,
            func,
            place.numbers,
            update_shape=place.shape,
            indices_are_sorted=indices_are_sorted or place.distinct,
            unique_indices=unique_indices or place.distinct,
            mode=mode,
        )
        return reshape(out, self.array.shape)


def _ones(x: Array) -> Any:
    return ones(x.aval)


class Place:
    """Where an update goes, in the words of `scatter`.

    Attributes:
      indices, numbers: its operand and its dimension numbers.
      result_shape: the shape of `x[index]`, to which the values are broadcast.
      shape: the same without the axes that None adds: the shape of `scatter`'s updates.
      distinct: whether no element can be meant twice, and the indices are in order.
    """

    def __init__(self, shape: Shape, items: list[Item], wrap: bool):
        slices = [item for item in items if item.kind == "slice"]
        lines = [item for item in slices if item.value[1] > 1 and item.value[2] != 1]
        layout = Layout(items, lines)
        # A whole axis is in the window without being indexed.
        whole = [item for item in slices if item.value == (0, shape[item.axis], 1)]
        indexed = [item for item in items if item.axis >= 0 and item not in whole]
        gone = [item.axis for item in indexed if item.kind != "slice" or item in lines]
        self.indices = layout.indices(indexed, shape, wrap)
        self.numbers = windows.ScatterDimensionNumbers(
            layout.window_axes, tuple(gone), tuple(item.axis for item in indexed)
        )
        self.result_shape = layout.result_shape
        self.new_axes = layout.new_axes
        self.shape = tuple(n for i, n in enumerate(self.result_shape) if i not in layout.new_axes)
        self.distinct = not layout.has_arrays and all(item.value[2] > 0 for item in lines)


def _place(x: Array, index: Any, mode: Mode, wrap: bool) -> tuple[Any, Place]:
    """The array with the axes that scalar booleans add, and the place of an update in it."""
    items, inserted, shape = read_index(
        x.shape, index, strict=mode is None and config.check_static_indices, wrap=wrap
    )
    return expand_dims(x, inserted) if inserted else x, Place(shape, items, wrap)


def update(
    kind: str,
    x: Array,
    index: Any,
    values: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    wrap: bool = True,
    own: bool = False,
) -> Any:
    """`x` with `values` written to `x[index]`, or combined with it.

    Args:
      kind: 'scatter', which writes, 'scatter_add', …
      x: an array.
      index: as in `x[index]`.
      values: anything that broadcasts to `x[index]`.
      indices_are_sorted, unique_indices, mode, wrap: as for the methods of `x.at[index]`.
      own: nobody will ask for `x` any more, so its memory can be the result's.

    Raises:
      IndexError, TypeError: as for `x[index]`.
      ValueError: the values do not broadcast to the shape of `x[index]`.
    """
    if type(x) is EagerArray and context.trace is eval_trace and wrap and mode is None:
        value = x._value
        # What a function of NumPy's or an engine gave us may be a view, or read-only.
        own = own and value.flags.owndata and value.flags.writeable
        # What writes needs nothing of the primitive, which few programs load.
        ufunc = None if kind == "scatter" else getattr(gather, f"{kind}_p").ufunc
        out = _update_with_numpy(ufunc, value, index, values, own)
        if out is not None:
            return EagerArray(out, x._weak)
    if not isinstance(values, OPERANDS):
        values = asarray(values)
    y = to_array(values)
    warn_if_unsafe(x, y)
    prim = getattr(gather, f"{kind}_p")
    wide, place = _place(x, index, mode, wrap)
    dtype, weak = _dtypes.join(_dtypes.dtype_and_weak(x), _dtypes.dtype_and_weak(y))
    prim.check_dtype(dtype)
    out = prim.bind(
        as_type(wide, dtype, x.weak_type if x.dtype == dtype else weak),
        place.indices,
        _fitted(y if y.dtype == dtype else as_type(values, dtype), place),
        dimension_numbers=place.numbers,
        indices_are_sorted=indices_are_sorted or place.distinct,
        unique_indices=unique_indices or place.distinct,
        mode=windows.GatherScatterMode.from_any(mode),
    )
    return convert_element_type(reshape(out, x.shape), x.dtype, x.weak_type)


def warn_if_unsafe(x: Array, y: Array) -> None:
    """Warn where values lose something in the type of the array they go into."""
    if not _dtypes.safe_to_cast(y, x):
        errors.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.dtype} to dtype={x.dtype} with "
            f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion}. Convert it explicitly: "
            "x.at[i].set(y.astype(x.dtype)). In future JAX releases this will result in an error.",
            FutureWarning,
        )


def _fitted(y: Array, place: Place) -> Any:
    """Values broadcast to the shape of `x[index]`, without the axes that None adds."""
    shape = place.result_shape
    if y.ndim > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: the values have shape {y.shape}, "
            f"but x[index] has shape {shape}." + errors.at_user_line()
        )
    if any(a not in (1, b) for a, b in zip(y.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: the values have shape {y.shape}, but x[index] "
            f"has shape {shape}." + errors.at_user_line()
        )
    y = broadcast_to(y, shape)
    return squeeze(y, place.new_axes) if place.new_axes else y


# Which Python numbers NumPy puts into which kind of dtype without loss, as we do.
_SCALARS = {"f": (int, float), "c": (int, float, complex), "i": (int,), "u": (int,), "b": (bool,)}

# Up to so many elements `ufunc.at` is quicker than to set up a scatter.
_FEW = 256


def _update_with_numpy(
    ufunc: np.ufunc | None, value: np.ndarray, index: Any, values: Any, own: bool
) -> np.ndarray | None:
    """A changed copy, or the array itself if it is our own, where NumPy does what we do; None where
    there is more to do, and then nothing is changed."""
    if type(values) is EagerArray and values._value.dtype is value.dtype:
        y: Any = values._value
    elif type(values) in _SCALARS.get(value.dtype.kind, ()):
        try:
            y = np.asarray(values, value.dtype)
        except OverflowError:  # Numbers that do not fit wrap around.
            return None
    else:
        return None
    if ufunc is not None and value.dtype == np.bool_:
        return None
    kind = type(index)
    basic = kind in BASIC or kind is tuple and BASIC.issuperset(map(type, index))
    if not basic:
        index = as_numpy_index(index)
        # Of two values for one place the last one stays: NumPy keeps the order along one axis.
        if index is None or any(np.ndim(i) > 1 for i in (index if kind is tuple else (index,))):
            return None
    try:
        place = value[index]
        if np.ndim(y) > np.ndim(place):
            return None
        out = value if own else value.copy()
        if ufunc is None:
            out[index] = y
        elif basic:
            out[index] = fast(ufunc, place, y)
        elif np.size(place) <= _FEW:
            fast(ufunc.at, out, index, y)
        else:
            return None
    except (IndexError, ValueError):
        # Arrays out of bounds have a meaning, and mistakes a better message, elsewhere.
        return None
    return out


def _measured() -> tuple[int, ...]:
    """What `_holders` tells of `f(x).at[index].set(y)`, where nothing else holds the array.

    Python's versions differ in how often a call refers to what it works on, so it is measured.
    Where the count of something that has a name is the same, it is of no use.
    """
    x = EagerArray(np.zeros(1, np.float32))
    place = IndexUpdateRef(EagerArray(np.zeros(1, np.float32)), 0)
    named = [IndexUpdateRef(x, 0).set(0.0), place.set(0.0)]
    temporary = IndexUpdateRef(EagerArray(np.zeros(1, np.float32)), 0).set(0.0)
    return () if temporary in named else temporary


_nobody_else: tuple[int, ...] | None = None
_nobody_else = _measured()
