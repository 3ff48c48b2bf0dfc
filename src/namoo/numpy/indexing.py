"""`x[...]` by NumPy's rules: integers, slices, None, Ellipsis, integer arrays and masks.

An index is parsed once into a list of `Item`s, one for each axis it selects from or adds.  Static
integers and slices become slices, traced integers become `dynamic_slice`, and arrays become one
`gather`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.lazy import later
from namoo._base.source_context import at_user_line
from namoo.core.array import Array, EagerArray
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import broadcast_shapes, exceeds, is_symbolic, maybe, slice_of
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import to_array
from namoo.primitives.dimensions import size_array
from namoo.primitives.elementwise import add, lt, min, select
from namoo.primitives.shape import (
    broadcast_in_dim,
    convert_element_type,
    convert_element_type_p,
    expand_dims,
    iota,
    rev,
    squeeze,
    zeros,
)

if TYPE_CHECKING:
    from namoo.primitives import gather, gather_dimensions, slicing

    Mode = str | gather_dimensions.GatherScatterMode | None
else:  # not needed for concrete arrays
    gather = later("namoo.primitives.gather")
    slicing = later("namoo.primitives.slicing")
    gather_dimensions = later("namoo.primitives.gather_dimensions")
    Mode = Any

Shape = tuple[int, ...]


def getitem(x: Any, index: Any) -> Any:
    """`x[index]`.

    Args:
        x: an array.
        index: an integer, slice, None, Ellipsis, integer array or boolean mask, or a tuple of them.

    Returns:
        The elements, arranged as in NumPy.  Integer arrays and traced integers that are out
        of bounds are moved inside; negative ones count from the end.

    Raises:
        IndexError: a Python integer is out of bounds; there are more indices than axes; a mask has
            another shape; a slice has traced ends.
        TypeError: a list or a string as index; an index that is not an integer.
        errors.NonConcreteBooleanIndexError: a traced mask.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.arange(12).reshape(3, 4)
        >>> getitem(x, (slice(None, None, -2), jnp.array([0, -1])))
        Array([[ 8, 11],
               [ 0,  3]], dtype=int32)
    """
    return get(x, index)


class Item(NamedTuple):
    """One entry of an index: an "int", a "slice", a "new" axis or an "array" of integers; or a
    "gap", an Ellipsis that matches no axis but separates its neighbours.

    `axis` is the operand's axis, -1 where there is none.  `value` is the integer in [0, length);
    the start, length and step of the slice; or the array.
    """

    kind: str
    axis: int
    value: Any


class Index(NamedTuple):
    """A parsed index.

    `inserted` are axes of length 1 that are first inserted into the operand, which then has
    `shape`: scalar booleans index them.
    """

    items: list[Item]
    inserted: list[int]
    shape: Shape


def read_index(shape: Shape, index: Any, strict: bool = True, wrap: bool = True) -> Index:
    """Read an index of an array of a given shape.

    Args:
        shape: the array's shape.
        index: the expression between the brackets.
        strict: whether Python integers out of bounds are errors; otherwise they become arrays.
        wrap: whether negative integers count from the end.
    """
    entries = _entries(shape, index)
    items: list[Item] = []
    inserted: list[int] = []
    full: list[int] = []  # the shape with the inserted axes
    rest = iter(shape)
    for position, entry in enumerate(entries):
        axis = len(full)
        if entry is None:
            items.append(Item("new", -1, None))
        elif entry is Ellipsis:
            items.append(Item("gap", -1, None))
        elif isinstance(entry, bool):
            full.append(1)
            inserted.append(axis)
            items.append(Item("array", axis, np.zeros(int(entry), np.int32)))
        elif isinstance(entry, slice):
            full.append(next(rest))
            items.append(Item("slice", axis, _resolve(entry, full[-1], position)))
        elif isinstance(entry, int):
            full.append(next(rest))
            items.append(_integer(entry, axis, len(inserted), shape, full[-1], strict, wrap))
        elif entry.dtype == np.bool_:
            lengths = [next(rest) for _ in entry.shape]
            if entry.shape != tuple(lengths):
                raise IndexError(
                    f"boolean index did not match shape of indexed array in index {position}: got "
                    f"{entry.shape}, expected {tuple(lengths)}, for an array of shape {shape}."
                )
            full += lengths
            places = np.nonzero(entry)
            items += (Item("array", axis + k, p) for k, p in enumerate(places))
        else:
            full.append(next(rest))
            if not full[-1] and not entry.shape:
                raise IndexError(
                    f"index is out of bounds for axis {axis - len(inserted)} with size 0, of an "
                    f"array of shape {shape}." + at_user_line()
                )
            items.append(Item("array", axis, entry))
    return Index(items, inserted, tuple(full))


def _entries(shape: Shape, index: Any) -> list[Any]:
    """The entries of an index in normal form; Ellipsis becomes the slices it represents, if any."""
    if isinstance(index, (list, range)):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed: got "
            f"x[{_shown(index)}]. Write arr[array(seq)], as in x[jnp.array({_shown(index)})], to "
            "take several elements along the first axis, or arr[tuple(seq)] for one index on each "
            "axis." + at_user_line()
        )
    entries = [_entry(e) for e in (index if isinstance(index, tuple) else (index,))]
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError(
            f"an index can only have a single ellipsis ('...'), got {len(dots)} in "
            f"x[{_shown(index)}]." + at_user_line()
        )
    count = sum(
        0 if e is None or e is Ellipsis or isinstance(e, bool) else _axes_of(e) for e in entries
    )
    missing = len(shape) - count
    if missing < 0:
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {count} were indexed; its "
            f"shape is {shape}." + at_user_line()
        )
    if dots and not missing:
        return entries
    place = dots[0] if dots else len(entries)
    return [*entries[:place], *[slice(None)] * missing, *entries[place + 1 :]]


def _shown(index: Any) -> str:
    text = ", ".join(map(repr, index)) if isinstance(index, tuple) else repr(index)
    return text if len(text) < 40 else text[:37] + "..."


def _axes_of(entry: Any) -> int:
    return entry.ndim if getattr(entry, "dtype", None) == np.bool_ else 1


def _entry(entry: Any) -> Any:
    """None, Ellipsis, a slice, a Python integer or bool, or an array of integers or booleans."""
    if entry is None or entry is Ellipsis or type(entry) in (bool, int, slice):
        return entry
    if isinstance(entry, np.bool_):
        return bool(entry)
    if isinstance(entry, (int, np.integer)):
        return int(entry)
    if isinstance(entry, str):
        raise TypeError(
            f"JAX does not support string indexing: got x[{entry!r}]. An index is an integer, a "
            "slice, None, ... or an array." + at_user_line()
        )
    if isinstance(entry, (list, tuple)):
        entry = _array_of(entry)
    elif isinstance(entry, (float, complex, np.generic)):
        entry = np.asarray(entry)
    elif hasattr(entry, "__jax_array__"):
        entry = to_array(entry)
    if not isinstance(entry, (Array, np.ndarray)):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
            f"boolean arrays are valid indices. Got {entry!r}." + at_user_line()
        )
    if entry.dtype == np.bool_:
        return _mask(entry)
    if not dtypes.issubdtype(entry.dtype, np.integer):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {entry.dtype}. "
            "Convert it first: x[index.astype(int)]." + at_user_line()
        )
    return entry._value if type(entry) is EagerArray else entry


def _array_of(entries: Sequence[Any]) -> Any:
    """A list inside an index as an array; it may hold traced integers."""
    if not any(isinstance(e, (Array, list, tuple)) for e in entries):
        out = np.asarray(entries)
        return out if out.size else out.astype(np.int32)
    parts = [_array_of(e) if isinstance(e, (list, tuple)) else to_array(e) for e in entries]
    dtype = dtypes.result_type(*parts)
    rows = [expand_dims(convert_element_type(p, dtype), (0,)) for p in parts]
    return slicing.concatenate(rows, 0)


def _mask(mask: Any) -> Any:
    """A concrete mask as a NumPy array; a scalar one as a bool."""
    if isinstance(mask, Tracer):
        try:
            mask = mask.concrete()
        except errors.ConcretizationTypeError:
            mask.refuse(
                errors.NonConcreteBooleanIndexError,
                "a boolean index with known values (the result's shape depends on them)",
                "Write instead, for one value where the mask is false: jnp.where(mask, x, 0); to "
                "change elements: jnp.where(mask, new, x); for a sum: jnp.sum(x, where=mask); to "
                "have indices of a fixed number: jnp.nonzero(mask, size=n).",
            )
    value = mask._value if type(mask) is EagerArray else np.asarray(mask)
    return value if value.ndim else bool(value)


def _resolve(entry: slice, n: int, position: int) -> tuple[int, int, int]:
    """Start, length and step of a slice on an axis of length n."""
    if any(isinstance(part, Tracer) for part in (entry.start, entry.stop, entry.step)):
        part = next(x for x in (entry.start, entry.stop, entry.step) if isinstance(x, Tracer))
        raise IndexError(
            f"Slice entries must be static integers, got {entry} at position {position}: the "
            f"length of the result would depend on values that are not known yet. {part.origin()}\n"
            "Write lax.dynamic_slice_in_dim(x, start, size, axis) with a fixed size, or a mask "
            f"with jnp.where. {part.static_remedy()}".rstrip()
            + at_user_line()
        )
    return slice_of(entry, n)


def _count(length: int) -> Any:
    """0, 1, 2, … as NumPy's array, or as a traced one where the length is not known."""
    return iota(np.int32, length) if is_symbolic(length) else np.arange(length)


def _decided(value: int, n: int) -> bool:
    """Whether it is known that an index is on an axis of symbolic length, or that it is not."""
    try:
        return -n <= value < n or True
    except errors.InconclusiveDimensionOperation:
        return False


def _integer(
    value: int, axis: int, inserted: int, shape: Shape, n: int, strict: bool, wrap: bool
) -> Item:
    if is_symbolic(n) and not _decided(value, n):
        return Item("array", axis, np.int32(value))
    if -n <= value < n:
        if value >= 0:
            return Item("int", axis, value)
        return Item("int", axis, value + n) if wrap else Item("array", axis, np.int32(value))
    if strict or n == 0:
        raise IndexError(
            f"index {value} out of bounds for axis {axis - inserted} with size {n}, of an array "
            f"of shape {shape}. (For indices that may be outside, write x.at[i].get(mode='fill') "
            "or mode='clip'.)" + at_user_line()
        )
    # The value itself where it fits the type of indices: `checkify` reports it.
    limit = max(n + 1, np.iinfo(np.int32).max)
    return Item("array", axis, np.asarray(np.clip(value, -limit, limit)))


def get(
    x: Any,
    index: Any,
    mode: Mode = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
) -> Any:
    """`x.at[index].get(...)`: `x[index]` with a choice for indices out of bounds."""
    items, inserted, _ = read_index(
        x.shape, index, strict=mode is None and config.check_static_indices, wrap=wrap
    )
    mode = (
        gather_dimensions.PROMISE_IN_BOUNDS
        if mode is None
        else gather_dimensions.GatherScatterMode.from_any(mode)
    )
    if inserted:
        x = expand_dims(x, inserted)
    layout = Layout(items)
    x, items = _static_part(x, items)
    arrays = [item for item in items if item.kind == "array"]
    if 0 in layout.batch_shape:
        # Nothing is read, possibly from an axis of length 0, where no window fits.
        return zeros(x.aval.update(shape=layout.result_shape))
    as_slice = (
        mode is gather_dimensions.PROMISE_IN_BOUNDS
        or mode is gather_dimensions.CLIP
        and not config.strict
    )
    if arrays and layout.batch_shape == () and as_slice:
        x = _at_scalars(x, arrays, wrap)
    elif arrays:
        indexed = tuple(item.axis for item in arrays)
        if mode is gather_dimensions.FILL_OR_DROP and fill_value is None:
            fill_value = gather_dimensions.default_fill(x.dtype)
        x = gather.gather_p.bind(
            x,
            layout.indices(arrays, x.shape, wrap),
            dimension_numbers=gather_dimensions.GatherDimensionNumbers(
                layout.window_axes, indexed, indexed
            ),
            slice_sizes=tuple(1 if d in indexed else n for d, n in enumerate(x.shape)),
            indices_are_sorted=indices_are_sorted or not layout.has_arrays,
            unique_indices=unique_indices or not layout.has_arrays,
            mode=mode,
            fill_value=static_fill(fill_value) if mode is gather_dimensions.FILL_OR_DROP else None,
        )
    return expand_dims(x, layout.new_axes) if layout.new_axes else x


def static_fill(value: Any) -> Any:
    """The fill value as a parameter of a program: a Python number."""
    if isinstance(value, Tracer):
        value = value.concrete("the fill value of a gather")
    value = getattr(value, "_value", value)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


class Layout:
    """The origin of each axis of the result, by NumPy's rule.

    The axes of index arrays are adjacent: at the position of the arrays if these are neighbours,
    and in front otherwise.  Integers beside arrays count as arrays.

    Attributes:
        axes: for each axis of the result its slice, "array" or "new".
        batch_shape: the common shape of the index arrays.
        result_shape: the shape of `x[index]`.
        has_arrays: whether an index is an array, not only integers and slices.
        new_axes: the axes of the result that None adds.
        inner: `axes` without the new ones.
        window_axes: the axes along slices, counted without the new ones.
    """

    def __init__(self, items: Sequence[Item], lines: Sequence[Item] = ()):
        """The slices in `lines` are treated as indices, each along an axis of its own."""
        shapes = [np.shape(item.value) for item in items if item.kind == "array"]
        self.batch_shape = _common_shape(shapes)
        self.has_arrays = any(shapes)
        batch = ["array"] * len(self.batch_shape)
        group = [i for i, item in enumerate(items) if item.kind in ("array", "int")]
        together = bool(group) and group[-1] - group[0] == len(group) - 1
        self.axes: list[Any] = [] if together else [*batch]
        for i, item in enumerate(items):
            if item.kind == "slice":
                self.axes.append(item)
            elif item.kind == "new":
                self.axes.append("new")
            elif together and i == group[0]:
                self.axes += batch
        self.lines = lines
        lengths = iter(self.batch_shape)
        self.result_shape = tuple(
            1 if axis == "new" else next(lengths) if axis == "array" else axis.value[1]
            for axis in self.axes
        )
        self.new_axes = [i for i, axis in enumerate(self.axes) if axis == "new"]
        self.inner = [axis for axis in self.axes if axis != "new"]
        self.window_axes = tuple(
            i for i, axis in enumerate(self.inner) if axis != "array" and axis not in lines
        )

    def indices(self, items: Sequence[Item], shape: Shape, wrap: bool) -> Any:
        """The operand `indices` of a gather or scatter.

        Args:
            items: what is indexed: arrays, integers, slices (by their start, or their elements).
            shape: the shape of the array.
            wrap: whether negative integers count from the end.
        """
        outer = [axis for i, axis in enumerate(self.inner) if i not in self.window_axes]
        # The index arrays' lengths are those of their common shape, in its order.
        lengths = iter(self.batch_shape)
        batch = tuple(next(lengths) if axis == "array" else axis.value[1] for axis in outer)
        first = outer.index("array") if "array" in outer else 0
        columns: list[tuple[Any, int]] = []
        for item in items:
            if item.kind == "slice":
                start, length, step = item.value
                if item in self.lines:
                    line = (_count(length) * step + start).astype(np.int32)
                    columns.append((line, outer.index(item)))
                else:
                    columns.append((size_array(start, np.int32), 0))
            else:
                value = component(item.value, shape[item.axis], wrap)
                columns.append((value, first + len(self.batch_shape) - np.ndim(value)))
        return _stack(columns, batch)


def _stack(columns: Sequence[tuple[Any, int]], batch: Shape) -> Any:
    """Arrays, each from one axis of `batch` on, side by side along a last axis."""
    shape = (*batch, 1)
    dtype = index_dtype([c for c, _ in columns])
    if any(isinstance(c, Tracer) for c, _ in columns):
        spread = [
            broadcast_in_dim(_converted(c, dtype), shape, range(at, at + np.ndim(c)))
            for c, at in columns
        ]
        return slicing.concatenate(spread, len(batch))
    arrays = [np.zeros((*batch, 0), dtype)]
    for c, at in columns:
        own = (*(1,) * at, *np.shape(c), *(1,) * (len(shape) - at - np.ndim(c)))
        arrays.append(np.broadcast_to(np.reshape(c, own), shape))
    return EagerArray(np.concatenate(arrays, -1, dtype=dtype))


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: index arrays have shapes {list(shapes)}."
            + at_user_line()
        ) from None


def _static_part(x: Any, items: Sequence[Item]) -> tuple[Any, list[Item]]:
    """Apply integers and slices; what remains are arrays and whole axes, of the smaller array."""
    starts, limits, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    backward, gone = [], []
    for kind, axis, value in items:
        if kind == "int":
            starts[axis], limits[axis] = value, value + 1
            gone.append(axis)
        elif kind == "slice":
            start, length, step = value
            first = start if step > 0 else start + (length - 1) * step
            if length == 0:
                first = 0
            elif step < 0 and maybe(operator.gt, length, 1):
                backward.append(axis)
            several = abs(step) > 1 and maybe(operator.gt, length, 1)
            starts[axis], steps[axis] = first, abs(step) if several else 1
            limits[axis] = 0 if length == 0 else first + (length - 1) * steps[axis] + 1
            limits[axis] = _up_to_end(limits[axis], steps[axis], x.shape[axis])
    x = slicing.slice(x, starts, limits, steps if any(s != 1 for s in steps) else None)
    if backward:
        x = rev(x, backward)
    if gone:
        x = squeeze(x, gone)
    kept = [
        item._replace(axis=item.axis - sum(g < item.axis for g in gone))
        for item in items
        if item.kind in ("slice", "array")
    ]
    return x, kept


def _up_to_end(limit: int, step: int, n: int) -> int:
    """The end of the axis where no further element would be taken: then it is the whole axis."""
    if is_symbolic(n) or is_symbolic(limit):
        return limit
    return n if limit and n < limit + step else limit


def _at_scalars(x: Any, arrays: Sequence[Item], wrap: bool) -> Any:
    """`x` at computed integers, one for each of some axes."""
    found = {item.axis: component(item.value, x.shape[item.axis], wrap) for item in arrays}
    dtype = index_dtype(found.values())
    starts = [
        _converted(found[d], dtype) if d in found else np.zeros((), dtype) for d in range(x.ndim)
    ]
    sizes = tuple(1 if d in found else n for d, n in enumerate(x.shape))
    return squeeze(slicing.dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), list(found))


def component(value: Any, n: int, wrap: bool) -> Any:
    """An array of indices into an axis of length n, non-negative where they are in bounds."""
    # Just outside the axis is as good as far outside, and fits the type; but errors name the value.
    kind = np.dtype(np.int64 if exceeds(n, 2**31 - 1) else np.int32)
    if is_symbolic(n) and not isinstance(value, Tracer):
        value = EagerArray(np.asarray(value, kind))
    known = not isinstance(value, Tracer) and not is_symbolic(n)
    exact = known or config.strict
    least, most = (np.iinfo(kind).min, np.iinfo(kind).max) if exact else (-1, n)
    if known:
        value = np.asarray(value)
        if value.dtype.kind != "u":
            value = value.astype(np.int64)
            if wrap:
                value = np.where(value < 0, value + n, value)
        return np.clip(value, least if value.dtype.kind == "i" else 0, most).astype(kind)
    dtype = value.dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        if not exceeds(most, dtypes.iinfo(dtype).max - 1):
            value = min(value, size_array(most, dtype))
        return _converted(value, kind)
    if dtype.itemsize < kind.itemsize:
        value = _converted(value, kind)
    if not wrap:
        return value
    zero, length = EagerArray(np.asarray(0, value.dtype)), size_array(n, value.dtype)
    length = EagerArray(length) if isinstance(length, np.ndarray) else length
    return select(lt(value, zero), add(value, length), value)


def _converted(value: Any, dtype: np.dtype) -> Any:
    """Indices as another type of integers: long axes need 64 bits, even if users have none."""
    if value.dtype == dtype:
        return value
    return convert_element_type_p.bind(value, new_dtype=dtype, weak_type=False)


def index_dtype(components: Any) -> np.dtype:
    """The type that holds all components of an index."""
    wide = any(c.dtype == np.int64 for c in components)
    return np.dtype(np.int64 if wide else np.int32)


attach_shortcuts(globals())
