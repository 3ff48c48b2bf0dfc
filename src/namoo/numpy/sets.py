"""Arrays as sets: unique elements, intersections, unions, differences.

Everything follows from one sort.  Equal elements are neighbours in the sorted array, as *groups*;
a function returns one element, index or count for some of the groups.  How many groups
there are depends on the values, so compiled programs must give the number: `size=`.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.core.avals import ShapedArray
from namoo.eager import attach_shortcuts
from namoo.numpy.number_parts import isnan
from namoo.numpy.promote import array_of, arrays_of, check_arraylike, promote_types
from namoo.numpy.reductions import any
from namoo.numpy.same_type import is_kind
from namoo.numpy.searching import nonzero, searchsorted
from namoo.numpy.selection import where
from namoo.numpy.sorting import lexsort, sort
from namoo.primitives import cumulative
from namoo.primitives import elementwise as lax
from namoo.primitives.shape import canonical_axis, expand_dims, iota, moveaxis, ones, reshape, zeros
from namoo.primitives.slicing import concatenate


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


class Groups(NamedTuple):
    """The rows of an array in sorted order, and which of them begin a group of equal ones."""

    order: Array
    first: Array

    @property
    def ids(self) -> Array:
        """The number of the group of each sorted row."""
        return cumulative.cumsum(self.first.astype(np.int32), 0) - np.int32(1)

    def gather(self, values: Array, combine: str) -> Array:
        """One number for each group, from one for each sorted row; unused groups are at the end."""
        out = zeros(values.aval.update(shape=self.first.shape))
        return getattr(out.at[self.ids], combine)(values, indices_are_sorted=True)


def group(rows: Array, equal_nan: bool) -> Groups:
    """Sort the rows of a matrix, or the elements of a vector, into groups."""
    n = rows.shape[0]
    if rows.size:
        keys = rows[None] if rows.ndim == 1 else moveaxis(rows, 1, 0)[::-1]
        order = lexsort(keys)
    else:
        order = iota(_index_dtype(), n)
    sorted_rows = rows[order]
    before, after = sorted_rows[:-1], sorted_rows[1:]
    differs = lax.ne(before, after)
    if equal_nan and is_kind(rows, np.inexact):
        differs = differs & ~(isnan(before) & isnan(after))
    if rows.ndim == 2:
        differs = any(differs, axis=1)
    begin = ones(differs.aval.update(shape=(min(n, 1),)))
    return Groups(order, concatenate([begin, differs], 0))


def _size(size: Any) -> int | None:
    return None if size is None else operator.index(size)


def _chosen(mask: Array, size: int | None) -> tuple[Array, Array]:
    """The indices where a mask holds (len(mask) beyond the last one), and which are valid."""
    (places,) = nonzero(mask, size=size, fill_value=mask.shape[0])
    return places, places < mask.shape[0]


def _filled(values: Array, there: Array, fill: Any) -> Array:
    """Rows where they are valid, else a fill value."""
    there = reshape(there, (*there.shape, *(1,) * (values.ndim - 1)))
    fill = array_of("fill_value", fill).astype(values.dtype)
    return lax.select(
        lax.broadcast_to(there, values.shape), values, lax.broadcast_to(fill, values.shape)
    )


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The different elements of an array, in ascending order.

    Args:
        ar: the array.
        return_index: also return where each is found first.
        return_inverse: also return, for every element, its index in the result.
        return_counts: also return how often each is found.
        axis: compare slices along this axis; elements of the flat array by default.
        equal_nan: whether all NaN count as equal.
        size: length of the result, needed under `jit`: cut, or filled up.
        fill_value: what it is filled up with; the least element by default.
        sorted: whether the order matters; it is ascending in any case.

    Returns:
        The unique elements; with any of the `return_` arguments a tuple.

    Raises:
        ValueError: the axis is out of range; or an empty array, `size` and no `fill_value`.
        ConcretizationTypeError: under `jit` without `size`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unique(jnp.array([3, 1, 3, 2]), return_counts=True)
        (Array([1, 2, 3], dtype=int32), Array([1, 1, 2], dtype=int32))
    """
    x = array_of("unique", ar)
    if is_kind(x, np.complexfloating):
        x = where(isnan(x), np.asarray(complex(np.nan, 0), x.dtype), x)  # NaN in either part
    # The slices that are compared are along the first axis; those of a flat array are elements.
    axis = None if axis is None else canonical_axis(axis, x.ndim)
    slices = reshape(x, (x.size,)) if axis is None else moveaxis(x, axis, 0)
    values, indices, inverse, counts = _unique_slices(slices, equal_nan, _size(size), fill_value)
    values = moveaxis(values, 0, axis or 0)
    if axis is None:
        inverse = reshape(inverse, x.shape)
    parts = (
        (return_index, indices),
        (return_inverse, inverse),
        (return_counts, counts),
    )
    extra = tuple(part for wanted, part in parts if wanted)
    return (values, *extra) if extra else values


def _unique_slices(
    slices: Array, equal_nan: bool, size: int | None, fill_value: Any
) -> tuple[Array, Array, Array, Array]:
    """All that `unique` can return, for slices along the first axis."""
    n = slices.shape[0]
    if not n:
        return _unique_of_none(slices, size, fill_value)
    rows = slices if slices.ndim == 1 else reshape(slices, (n, slices.size // n))
    groups = group(rows, equal_nan)
    starts, there = _chosen(groups.first, size)
    indices = groups.order[where(there, starts, 0)]
    values = slices[indices]
    if fill_value is not None:
        values = _filled(values, there, fill_value)
    counts = groups.gather(ones(groups.order.aval.update(dtype=_index_dtype())), "add")
    counts = where(there, counts[where(there, iota(np.int32, there.size), 0)], 0)
    inverse = zeros(groups.order.aval).at[groups.order].set(groups.ids, unique_indices=True)
    return values, indices, inverse, counts


def _index_dtype() -> Any:
    return dtypes.default_int_dtype()


def _unique_of_none(
    slices: Array, size: int | None, fill_value: Any
) -> tuple[Array, Array, Array, Array]:
    if size and fill_value is None:
        raise ValueError(
            f"jnp.unique: an array without elements has nothing to fill up size={size} with; pass "
            "fill_value."
        )
    values = zeros(slices.aval.update(shape=(size or 0, *slices.shape[1:])))
    if size:
        values = _filled(values, zeros(_flags(size)), fill_value)
    none = zeros(_flags(0).update(dtype=_index_dtype()))
    return values, none, none, none


def _flags(n: int) -> ShapedArray:
    return ShapedArray((n,), np.dtype(np.bool_))


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueAllResult:
    """The different elements of an array, where each is first, the inverse, and the counts.

    Each NaN is a separate element.

    Args:
        x: the array, flattened.
        size, fill_value: as for `unique`.

    Returns:
        The named tuple (values, indices, inverse_indices, counts).

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
        Array([1, 2], dtype=int32)
    """
    x = array_of("unique_all", x)
    out = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueAllResult(*out)


def unique_counts(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> _UniqueCountsResult:
    """The different elements of an array, and how often each is found.

    Args:
        x, size, fill_value: as for `unique_all`.

    Returns:
        The named tuple (values, counts).

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
        Array([1, 3], dtype=int32)
    """
    x = array_of("unique_counts", x)
    out = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueCountsResult(*out)


def unique_inverse(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> _UniqueInverseResult:
    """The different elements of an array, and the index among them of every element.

    Args:
        x, size, fill_value: as for `unique_all`.

    Returns:
        The named tuple (values, inverse_indices).

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
        Array([1, 0, 1], dtype=int32)
    """
    x = array_of("unique_inverse", x)
    out = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueInverseResult(*out)


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The different elements of an array.

    Args:
        x, size, fill_value: as for `unique_all`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unique_values(jnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    x = array_of("unique_values", x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


class Merged(NamedTuple):
    """Two vectors sorted together into groups of equal elements."""

    values: Array
    groups: Groups
    in_first: Array
    in_second: Array


def _flat(name: str, ar1: Any, ar2: Any) -> list[Array]:
    """Two arrays as vectors of their common type."""
    return [reshape(x, (x.size,)) for x in promote_types(name, ar1, ar2)]


def _merge(a: Array, b: Array) -> Merged:
    """Which groups of the elements of two vectors are found in the one and in the other."""
    values = concatenate([a, b], 0)
    groups = group(values, equal_nan=True)
    from_first = groups.order < a.size
    if is_kind(values, np.inexact):
        # NaN of the two vectors are different; those of the first one are sorted first.
        parts = isnan(values[groups.order])[1:] & (from_first[1:] != from_first[:-1])
        groups = groups._replace(first=groups.first.at[1:].set(groups.first[1:] | parts))
    found = [groups.gather(flag.astype(np.int32), "max") > 0 for flag in (from_first, ~from_first)]
    return Merged(values, groups, *found)


def _members(
    merged: Merged, mask: Array, size: int | None, fill_value: Any
) -> tuple[Array, Array, Array]:
    """One element of each chosen group; the numbers of the groups; and which are valid."""
    chosen, there = _chosen(mask, size)
    total = mask.shape[0]
    # Where each group begins in the sorted order.
    places = iota(np.int32, total)
    starts = merged.groups.gather(where(merged.groups.first, places, 0), "max")
    numbers = where(there, chosen, 0)
    values = merged.values[merged.groups.order[starts[numbers]]]
    if size is not None:
        if fill_value is None:
            # The least chosen element, which is the first one, or 0 if there is none.
            fill_value = where(there[0], values[0], 0) if size else 0
        values = where(there, values, fill_value)
    return values, numbers, there


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements that two arrays have in common, once each, in ascending order.

    Args:
        ar1, ar2: the arrays, taken as flat.
        assume_unique: promise that neither has equal elements; it has no effect.
        return_indices: also return where each is found first in `ar1`, and in `ar2`.
        size: length of the result, needed under `jit`: cut, or filled up.
        fill_value: what it is filled up with; the least common element by default.

    Returns:
        The elements; or the tuple of elements, indices in `ar1` and indices in `ar2`, which are
        filled up with the arrays' lengths.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.intersect1d(jnp.array([3, 1, 3, 2]), jnp.array([3, 4, 1]))
        Array([1, 3], dtype=int32)
    """
    a, b = _flat("intersect1d", ar1, ar2)
    size = _size(size)
    if not a.size or not b.size:
        values = _only_filling(a, size, fill_value)
        indices = [where(zeros(_flags(size or 0)), 0, x.size) for x in (a, b)]
    else:
        merged = _merge(a, b)
        mask = merged.in_first & merged.in_second
        values, numbers, there = _members(merged, mask, size, fill_value)
        firsts = zip(_first_places(merged, a.size), (a, b), strict=True)
        indices = [where(there, first[numbers], x.size) for first, x in firsts]
    return (values, *indices) if return_indices else values


def _only_filling(a: Array, size: int | None, fill_value: Any) -> Array:
    """A result without elements."""
    nothing = zeros(a.aval.update(shape=(size or 0,)))
    return nothing if fill_value is None else where(zeros(_flags(size or 0)), nothing, fill_value)


def _first_places(merged: Merged, split: int) -> list[Array]:
    """Where the elements of each group are found first, in the first and in the second vector."""
    order = merged.groups.order
    total = order.size
    # The sort is stable, so the first of a group from the first vector begins the group.
    begins = merged.groups.gather(where(merged.groups.first, order, 0), "max")
    second = where(order >= split, total - order, 0)
    return [begins, total - split - merged.groups.gather(second, "max")]


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The elements of two arrays together, once each, in ascending order.

    Args:
        ar1, ar2: the arrays, taken as flat.
        size, fill_value: as for `unique`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
        Array([1, 2, 3], dtype=int32)
    """
    both = concatenate(_flat("union1d", ar1, ar2), 0)
    return unique(both, size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The elements of one array that are not in another, once each, in ascending order.

    Args:
        ar1, ar2: the arrays, taken as flat.
        assume_unique: return the elements in the order of `ar1`, neither sorted nor deduplicated.
        size: length of the result, needed under `jit`: cut, or filled up.
        fill_value: what it is filled up with; 0 by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.setdiff1d(jnp.array([3, 1, 3, 2]), jnp.array([1]))
        Array([2, 3], dtype=int32)
    """
    a, b = arrays_of("setdiff1d", ar1, ar2)
    a = reshape(a, (a.size,))
    size = _size(size)
    fill = 0 if fill_value is None else fill_value
    if a.size and not assume_unique:
        groups = group(a, equal_nan=True)
        a = a[groups.order]
        keep = groups.first & isin(a, b, invert=True)
    else:
        keep = isin(a, b, invert=True)
    places, there = _chosen(keep, size)
    if not a.size:
        return _filled(zeros(a.aval.update(shape=places.shape)), there, fill)
    values = a[where(there, places, 0)]
    return values if size is None else _filled(values, there, fill)


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The elements that are in one of two arrays only, once each, in ascending order.

    Args:
        ar1, ar2: the arrays, taken as flat.
        assume_unique: promise that neither has equal elements; those that occur once in both
            together are returned then.
        size: length of the result, needed under `jit`: cut, or filled up.
        fill_value: what it is filled up with; the least element of the result by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([2, 3]))
        Array([1, 2], dtype=int32)
    """
    a, b = _flat("setxor1d", ar1, ar2)
    size = _size(size)
    if not a.size + b.size:
        return _only_filling(a, size, fill_value)
    merged = _merge(a, b)
    if assume_unique:
        counts = merged.groups.gather(ones(ShapedArray(merged.values.shape, np.int32)), "add")
        chosen = lax.eq(counts, np.int32(1))
    else:
        chosen = merged.in_first ^ merged.in_second
    return _members(merged, chosen, size, fill_value)[0]


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is one of the test elements.

    Args:
        element: the array.
        test_elements: what is looked for, of any shape.
        assume_unique: promise that neither has equal elements; it has no effect.
        invert: whether it is none of them.
        method: 'compare_all' compares each with each; 'binary_search' and 'sort' sort first;
            'auto' chooses.

    Raises:
        ValueError: another method.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 3]))
        Array([[False,  True],
               [ True, False]], dtype=bool)
    """
    check_arraylike("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method {method!r} does not exist; write 'auto', 'compare_all', "
            "'binary_search' or 'sort'."
        )
    x, tests = promote_types("isin", element, test_elements)
    tests = reshape(tests, (tests.size,))
    if not x.size or not tests.size:
        found = zeros(_flags(0).update(shape=x.shape))
    elif method in ("auto", "compare_all") and x.size * tests.size <= _MANY:
        shape = (*x.shape, tests.size)
        each = lax.broadcast_to(expand_dims(x, (x.ndim,)), shape)
        found = any(lax.eq(each, lax.broadcast_to(tests, shape)), axis=-1)
    else:
        tests = sort(tests)
        how = "sort" if method == "sort" else "scan"
        place = searchsorted(tests, x, method=how)
        found = lax.eq(x, tests[where(place < tests.size, place, 0)])
    return ~found if invert else found


_MANY = 1 << 20
"""How many comparisons are quicker than sorting first."""


attach_shortcuts(globals())
