"""`x.at[index].set(y)` and its relatives: arrays with some elements changed."""

from __future__ import annotations

from collections.abc import Callable
from operator import gt
from typing import Any

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.lazy import later
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point, warn_user
from namoo.core.array import Array
from namoo.dimensions.sizes import maybe
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import power, true_divide
from namoo.numpy.creation import asarray
from namoo.numpy.indexing import (
    Item,
    Layout,
    Mode,
    Shape,
    get,
    read_index,
)
from namoo.numpy.promote import OPERANDS, as_type, to_array
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import (
    broadcast_to,
    convert_element_type,
    expand_dims,
    ones,
    reshape,
    squeeze,
)

gather = later("namoo.primitives.gather")
windows = later("namoo.primitives.gather_dimensions")


class IndexUpdateHelper:
    """The property `at` of arrays: index it, and call a method of the result.

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
    | `y = x.at[i].get(...)` | `y = x[i]`, with a choice for indices out of bounds |

    Unlike NumPy's `x[i] += y`, an element that is indexed twice is changed twice.

    Each method takes the keywords `mode` ('drop', 'clip' or 'promise_in_bounds': what indices out
    of bounds do), `indices_are_sorted` and `unique_indices` (promises that make it faster), and
    `wrap_negative_indices` (whether negative indices count from the end).

    Example:
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

    @entry_point
    def __setitem__(self, index: Any, value: Any) -> None:
        i = short(index)
        raise TypeError(
            f"x.at[{i}] = {short(value)} cannot change x. Write x = x.at[{i}].set({short(value)})."
        )

    @entry_point
    def __call__(self, *index: Any) -> Any:
        i = ", ".join(map(short, index))
        raise TypeError(f"x.at({i}) is not a call. Write x.at[{i}], with square brackets.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: a reference to elements of an array; see `IndexUpdateHelper`."""

    __slots__ = ("array", "index")

    add: Any
    divide: Any
    max: Any
    min: Any
    mul: Any
    multiply: Any
    power: Any
    set: Any
    subtract: Any

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    @entry_point
    def _no_operator(self, other: Any) -> Any:
        i = short(self.index)
        raise TypeError(
            f"x.at[{i}] is not a value. Write x[{i}] for the elements, and x.at[{i}].add(y) or "
            f"x.at[{i}].multiply(y) for a changed copy of x."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _no_operator

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, {self.index!r})"

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

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.arange(3.0).at[jnp.array([2, 5])].get(mode="fill", fill_value=-1)
            Array([ 2., -1.], dtype=float32)
        """
        flags = mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
        if out_sharding is not None:
            return with_out_sharding(out_sharding, get, self.array, self.index, *flags)
        return get(self.array, self.index, *flags)

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

        The function is applied as often as an element is indexed.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.arange(4.0).at[1:3].apply(lambda v: v * 10)
            Array([ 0., 10., 20.,  3.], dtype=float32)
        """
        # Imported here because nothing else in this module needs loops.
        from namoo.control.scatter_apply import scatter_apply

        x, target = _target(self.array, self.index, mode, wrap_negative_indices)
        out = scatter_apply(
            x,
            target.indices,
            func,
            target.numbers,
            update_shape=target.shape,
            indices_are_sorted=indices_are_sorted or target.distinct,
            unique_indices=unique_indices or target.distinct,
            mode=mode,
        )
        return reshape(out, self.array.shape)


def update_at(ref: IndexUpdateRef, kind: str, values: Any, *flags: Any) -> Any:
    """What the methods of `x.at[index]` return; `kind` and `flags` as for `update`."""
    return update(kind, ref.array, ref.index, values, *flags)


def divide_at(ref: IndexUpdateRef, kind: str, values: Any, *flags: Any) -> Any:
    """The array divided by an array of ones whose selected elements are multiplied by `values`."""
    divisor = update(kind, ones(ref.array.aval), ref.index, values, *flags)
    return true_divide(ref.array, divisor)


def power_at(ref: IndexUpdateRef, kind: str, values: Any, *flags: Any) -> Any:
    """The array to the power of an array of ones, selected elements multiplied by `values`."""
    exponent = update(kind, ones(ref.array.aval), ref.index, values, *flags)
    return power(ref.array, exponent)


def _method(name: str, change: Callable[..., Any], kind: str, doc: str) -> Callable[..., Any]:
    def method(
        self: IndexUpdateRef,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        flags = indices_are_sorted, unique_indices, mode, wrap_negative_indices
        if out_sharding is not None:
            return with_out_sharding(out_sharding, change, self, kind, values, *flags)
        return change(self, kind, values, *flags)

    method.__name__ = name
    method.__qualname__ = f"IndexUpdateRef.{name}"
    method.__doc__ = doc
    return entry_point(method)


class Target:
    """The elements that an update changes, in the terms of `scatter`.

    Attributes:
        indices, numbers: its operand and its dimension numbers.
        result_shape: the shape of `x[index]`, to which the values are broadcast.
        shape: the same without the axes that None adds: the shape of `scatter`'s updates.
        distinct: whether no element can be selected twice, and the indices are in order.
    """

    def __init__(self, shape: Shape, items: list[Item], wrap: bool):
        slices = [item for item in items if item.kind == "slice"]
        lines = [item for item in slices if item.value[2] != 1 and maybe(gt, item.value[1], 1)]
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


def _target(x: Array, index: Any, mode: Mode, wrap: bool) -> tuple[Any, Target]:
    """The array with the axes that scalar booleans add, and the target of an update in it."""
    items, inserted, shape = read_index(
        x.shape, index, strict=mode is None and config.check_static_indices, wrap=wrap
    )
    return expand_dims(x, inserted) if inserted else x, Target(shape, items, wrap)


def update(
    kind: str,
    x: Array,
    index: Any,
    values: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    wrap: bool = True,
) -> Any:
    """`x` with `values` written to `x[index]`, or combined with it.

    Args:
        kind: 'scatter', which writes, 'scatter_add', …
        x: an array.
        index: as in `x[index]`.
        values: anything that broadcasts to `x[index]`.
        indices_are_sorted, unique_indices, mode, wrap: as for the methods of `x.at[index]`.

    Raises:
        IndexError, TypeError: as for `x[index]`.
        ValueError: the values do not broadcast to the shape of `x[index]`.
    """
    if not isinstance(values, OPERANDS):
        values = asarray(values)
    y = to_array(values)
    warn_if_unsafe(x, y)
    prim = getattr(gather, f"{kind}_p")
    wide, target = _target(x, index, mode, wrap)
    dtype, weak = dtypes.join(dtypes.dtype_and_weak(x), dtypes.dtype_and_weak(y))
    prim.check_dtype(dtype)
    out = prim.bind(
        as_type(wide, dtype, x.weak_type if x.dtype == dtype else weak),
        target.indices,
        _fitted(y if y.dtype == dtype else as_type(values, dtype), target),
        dimension_numbers=target.numbers,
        indices_are_sorted=indices_are_sorted or target.distinct,
        unique_indices=unique_indices or target.distinct,
        mode=windows.GatherScatterMode.from_any(mode),
    )
    return convert_element_type(reshape(out, x.shape), x.dtype, x.weak_type)


def warn_if_unsafe(x: Array, y: Array) -> None:
    """Warn where values lose something in the type of the array they go into."""
    if not dtypes.safe_to_cast(y, x):
        warn_user(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.dtype} to dtype={x.dtype} with "
            f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion}. Convert it explicitly: "
            "x.at[i].set(y.astype(x.dtype)). In future JAX releases this will result in an error.",
            FutureWarning,
        )


def _fitted(y: Array, target: Target) -> Any:
    """Values broadcast to the shape of `x[index]`, without the axes that None adds."""
    shape = target.result_shape
    if y.ndim > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: the values have shape {y.shape}, "
            f"but x[index] has shape {shape}." + at_user_line()
        )
    if any(a not in (1, b) for a, b in zip(y.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: the values have shape {y.shape}, but x[index] "
            f"has shape {shape}." + at_user_line()
        )
    y = broadcast_to(y, shape)
    return squeeze(y, target.new_axes) if target.new_axes else y


attach_shortcuts(globals())

# Method, what it does, its primitive, and its documentation.
_METHODS: list[tuple[str, Callable[..., Any], str, str]] = [
    (
        "set",
        update_at,
        "scatter",
        """The array with the elements replaced.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.zeros((2, 3)).at[:, 1].set(jnp.array([5.0, 6.0]))
            Array([[0., 5., 0.],
                   [0., 6., 0.]], dtype=float32)
        """,
    ),
    (
        "add",
        update_at,
        "scatter_add",
        """The array with `values` added to the elements.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.ones(3).at[jnp.array([0, 0, 2])].add(jnp.array([1.0, 2.0, 3.0]))
            Array([4., 1., 4.], dtype=float32)
        """,
    ),
    ("subtract", update_at, "scatter_sub", "The array with `values` subtracted from the elements."),
    ("multiply", update_at, "scatter_mul", "The array with the elements multiplied by `values`."),
    ("min", update_at, "scatter_min", "The array with the smaller of the elements and `values`."),
    ("max", update_at, "scatter_max", "The array with the larger of the elements and `values`."),
    (
        "divide",
        divide_at,
        "scatter_mul",
        "The array with the elements divided by `values`; integers become floating.",
    ),
    ("power", power_at, "scatter_mul", "The array with the elements raised to the power `values`."),
]
for _name, _change, _kind, _doc in _METHODS:
    setattr(IndexUpdateRef, _name, _method(_name, _change, _kind, _doc))
IndexUpdateRef.mul = IndexUpdateRef.multiply
