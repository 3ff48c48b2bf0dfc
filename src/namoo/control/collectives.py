"""Collectives: add, gather and exchange values among the examples of a named axis.

`vmap(f, axis_name="i")` names the axis that it maps over; inside of `f` these functions refer to it
by that name.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.control.collective_primitives import (
    Groups,
    Reduce,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    check_groups,
    group_size,
    pbroadcast_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
    vary_p,
)
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import Tracer, context
from namoo.core.trace import axis_size as size_of_axis
from namoo.primitives.bits import bitwise_and
from namoo.primitives.elementwise import add, div, full_like, ge, lt, mul, select, sub
from namoo.primitives.gather import gather
from namoo.primitives.gather_dimensions import GatherDimensionNumbers
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    canonical_axis,
    convert_element_type,
    iota,
    moveaxis,
    reshape,
    shape_of,
    zeros,
)
from namoo.primitives.slicing import index_in_dim


def _names(axis_name: Any) -> tuple:
    """The names in an argument `axis_name`: one name, or a tuple or list of them."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _groups(name: str, groups: Any, names: Sequence[Hashable]) -> Groups:
    """The argument `axis_index_groups`, as tuples; it refers to the indices along one axis."""
    if groups is None:
        return None
    if len(names) != 1:
        raise ValueError(
            f"{name}: axis_index_groups is for a collective over one named axis, got {names}."
        )
    return tuple(tuple(map(operator.index, group)) for group in groups)


def _leaves(fun: Callable[[Any], Any], x: Any) -> Any:
    """`fun` of each array of a tree."""

    def each(leaf):
        aval_of(leaf)  # refuses anything that is not an array
        return fun(leaf)

    return tree_util.tree_map(each, x)


def _is_constant(x: Any) -> bool:
    return not isinstance(x, Tracer)


def _reduce(prim: Reduce, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    """A reduction over named axes, and over numbered ones of the array itself."""
    axes = _names(axis_name)
    names = tuple(a for a in axes if not isinstance(a, int))
    numbers = [a for a in axes if isinstance(a, int)]
    if len(set(names)) < len(names):
        raise ValueError(f"{prim.name}: duplicate axis names in {axes}.")
    if numbers and axis_index_groups is not None:
        raise ValueError(f"{prim.name}: axis_index_groups is for named axes only, got {axes}.")
    groups = None if axis_index_groups is None else _groups(prim.name, axis_index_groups, names)
    size = size_of_axis(names)
    check_groups(prim.name, groups, size, equal=False)

    def each(leaf):
        if numbers:
            ndim = len(shape_of(leaf))
            leaf = prim.reduce(leaf, sorted(canonical_axis(a, ndim) for a in numbers))
        if not names:
            return leaf
        if _is_constant(leaf) and (groups is None or len({len(g) for g in groups}) == 1):
            # All examples hold the same value, so the result is known while the program is traced.
            count = size if groups is None else len(groups[0])
            if dtypes.is_python_scalar(leaf):
                return leaf * count if prim is psum_p else leaf
            return prim.same(leaf, count)
        return prim.bind(leaf, axes=names, axis_index_groups=groups)

    return _leaves(each, x)


@entry_point
def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Add the values of all examples along a named axis; each of them gets the sum.

    The sum of a constant is a constant: `psum(1, axis_name)` is the size of the axis, as a Python
    integer.

    Args:
        x: a tree of arrays; booleans are counted.
        axis_name: the name of an axis, or a tuple of names. Integers are axes of the arrays.
        axis_index_groups: lists of indices along the axis that are added separately.

    Returns:
        a tree like `x`.

    Raises:
        NameError: there is no axis of that name here.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: x / psum(x, "i"), axis_name="i")(jnp.array([1.0, 1.0, 2.0]))
        Array([0.25, 0.25, 0.5 ], dtype=float32)
    """
    return _reduce(psum_p, _leaves(_counted, x), axis_name, axis_index_groups)


def _counted(x: Any) -> Any:
    return convert_element_type(x, np.int32) if aval_of(x).dtype == np.bool_ else x


@entry_point
def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of the values of all examples along a named axis.

    Args:
        x: a tree of arrays; integers have a floating-point mean.
        axis_name: the name of an axis, or a tuple of names.
        axis_index_groups: lists of indices along the axis that are averaged separately.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0, 6.0]))
        Array([-2., -1.,  3.], dtype=float32)
    """
    names = tuple(a for a in _names(axis_name) if not isinstance(a, int))
    groups = _groups("pmean", axis_index_groups, names)
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count: Any = group_size(names, groups)
    if groups is not None and len({len(g) for g in groups}) > 1:
        one = EagerArray(np.ones((), np.int32))
        count = psum_p.bind(one, axes=names, axis_index_groups=groups)

    def mean(s, leaf):
        n = math.prod(shape_of(leaf)[a] for a in _names(axis_name) if isinstance(a, int))
        if dtypes.is_python_scalar(s):
            return s / count
        aval = aval_of(s)
        dtype = dtypes.to_inexact_dtype(aval.dtype)
        s = convert_element_type(s, dtype, aval.weak_type)
        if isinstance(count, Tracer):
            divisor = mul(convert_element_type(count, dtype), np.asarray(n, dtype))
        else:
            divisor = full_like(s, count * n)
        return div(s, divisor)

    return tree_util.tree_map(mean, total, x)


@entry_point
def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest of the values of all examples along a named axis, element by element.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        axis_index_groups: lists of indices along the axis that are compared separately.

    Returns:
        A tree like `x`. The derivative is shared equally by the examples with the largest value.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: pmax(x, "i"), axis_name="i")(jnp.array([1, 5, 2]))
        Array([5, 5, 5], dtype=int32)
    """
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


@entry_point
def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest of the values of all examples along a named axis, element by element.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        axis_index_groups: lists of indices along the axis that are compared separately.

    Returns:
        A tree like `x`. The derivative is shared equally by the examples with the smallest value.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
        Array([1, 1, 1], dtype=int32)
    """
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


@entry_point
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values from one example to another along a named axis.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names (indices then count in row-major order).
        perm: pairs `(source, destination)` of indices; no destination occurs twice.

    Returns:
        a tree like `x`. Examples that nothing is sent to get zeros.

    Raises:
        ValueError: a source or a destination occurs twice.
        IndexError: an index is out of range.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> shift = lambda x: ppermute(x, "i", [(0, 1), (1, 2)])
        >>> namoo.vmap(shift, axis_name="i")(jnp.array([7, 8, 9]))
        Array([0, 7, 8], dtype=int32)
    """
    names = _names(axis_name)
    pairs = tuple((operator.index(i), operator.index(j)) for i, j in perm)
    for what, indices in zip(("source", "destination"), zip(*pairs, strict=True), strict=False):
        if len(set(indices)) < len(indices):
            raise ValueError(f"ppermute: a {what} occurs twice in perm, {list(pairs)}.")
    if len(names) == 1:
        ppermute_p.abstract(ShapedArray((), np.dtype(np.int32)), axis_name=names, perm=pairs)
        return _leaves(lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=pairs), x)
    size = size_of_axis(names)
    for pair in pairs:
        if not all(0 <= i < size for i in pair):
            raise IndexError(f"ppermute: the pair {pair} is out of range for axes of size {size}.")
    source = np.full(size, -1, np.int32)
    source[[j for _, j in pairs]] = [i for i, _ in pairs]

    def each(leaf):
        everything = all_gather(leaf, names)
        wanted = _dynamic_row(EagerArray(source), axis_index(names))
        found = _dynamic_row(everything, wanted)
        gets = broadcast(ge(wanted, np.int32(0)), shape_of(found))
        return select(gets, found, zeros(aval_of(found)))

    return _leaves(each, x)


def _dynamic_row(x: Any, index: Any) -> Any:
    """One slice of `x` along its first axis; an index out of range takes the nearest."""
    inner = shape_of(x)[1:]
    dims = GatherDimensionNumbers(tuple(range(len(inner))), (0,), (0,))
    return gather(x, reshape(index, (1,)), dims, (1, *inner), mode="clip")


@entry_point
def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Reorder the examples along a named axis: example `i` gets what `perm[i]` holds.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        perm: a permutation of the indices along the axis.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([7, 8, 9]))
        Array([9, 7, 8], dtype=int32)
    """
    size = size_of_axis(_names(axis_name))
    if sorted(perm) != list(range(size)):
        raise ValueError(
            f"pshuffle: `perm` does not represent a permutation of the {size} indices of the axis: "
            f"{list(perm)}."
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


@entry_point
def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Give all examples along a named axis the value that one of them holds.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        source: the index of the example whose value is taken.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(jnp.array([7, 8, 9]))
        Array([8, 8, 8], dtype=int32)
    """
    names = _names(axis_name)
    size = size_of_axis(names)
    if not 0 <= source < size:
        raise ValueError(
            f"pbroadcast: the source {source} is out of range for the axis {axis_name!r} of size "
            f"{size}."
        )
    places = np.unravel_index(source, [size_of_axis((name,)) for name in names])

    def each(leaf):
        for name, place in zip(names, places, strict=True):
            leaf = pbroadcast_p.bind(leaf, axis_name=name, source=int(place))
        return leaf

    return _leaves(each, x)


def _one_name(name: str, axis_name: Any, axis_index_groups: Any):
    """Names, groups and size of a collective that is done axis by axis."""
    names = _names(axis_name)
    groups = _groups(name, axis_index_groups, names)
    check_groups(name, groups, size_of_axis(names))
    return names, groups, group_size(names, groups)


@entry_point
def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Give every example the values of all examples along a named axis.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        axis_index_groups: lists of indices along the axis, of equal length, that are gathered
          separately.
        axis: where the new axis goes in each array.
        tiled: join the values along the existing axis `axis` instead.
        to: 'varying' or 'reduced'; the value is the same.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> gather = lambda x: all_gather(x, "i")
        >>> namoo.vmap(gather, axis_name="i", out_axes=None)(jnp.array([7, 8, 9]))
        Array([7, 8, 9], dtype=int32)
    """
    if to not in ("varying", "reduced"):
        raise ValueError(f"all_gather: `to` must be 'varying' or 'reduced', got {to!r}.")
    names, groups, _ = _one_name("all_gather", axis_name, axis_index_groups)

    def each(leaf):
        ndim = len(shape_of(leaf))
        dim = canonical_axis(axis, ndim if tiled else ndim + 1)
        # The last name varies fastest, so it is gathered first and is the innermost.
        for i, name in enumerate(reversed(names)):
            leaf = all_gather_p.bind(
                leaf,
                all_gather_dimension=dim,
                axis_index_groups=groups,
                axis_name=(name,),
                axis_size=group_size((name,), groups),
                tiled=tiled or i > 0,
            )
        return leaf

    return _leaves(each, x)


@entry_point
def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Add the values of all examples, and give each of them one slice of the sum.

    Args:
        x: a tree of arrays, whose axis `scatter_dimension` is as long as the named axis (or, if
          `tiled`, a multiple of that).
        axis_name: the name of an axis, or a tuple of names.
        scatter_dimension: the axis that is distributed.
        axis_index_groups: lists of indices along the axis, of equal length, that are added
          separately.
        tiled: keep the axis, divided among the examples, instead of removing it.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [10, 20]]))
        Array([11, 22], dtype=int32)
    """
    names, groups, size = _one_name("psum_scatter", axis_name, axis_index_groups)

    def each(leaf):
        dim = canonical_axis(scatter_dimension, len(shape_of(leaf)), "scatter_dimension")
        _check_length("psum_scatter", "scatter_dimension", shape_of(leaf), dim, size, tiled)
        # The first name counts slowest: it takes the large parts of the axis.
        for i, name in enumerate(names):
            leaf = reduce_scatter_p.bind(
                leaf,
                axis_index_groups=groups,
                axis_name=(name,),
                axis_size=group_size((name,), groups),
                scatter_dimension=dim,
                tiled=tiled or i < len(names) - 1,
            )
        return leaf

    return _leaves(each, x)


def _check_length(name: str, what: str, shape: tuple, axis: int, size: int, tiled: bool) -> None:
    """Check that the distributed axis fits the number of examples."""
    if tiled and shape[axis] % size:
        raise ValueError(
            f"{name}: the axis {axis} ({what}) of an operand of shape {shape} must be divisible by "
            f"the size of the named axis, {size}."
        )
    if not tiled and shape[axis] != size:
        raise ValueError(
            f"{name}: the axis {axis} ({what}) of an operand of shape {shape} must be as long as "
            f"the named axis, {size}. Use tiled=True for a multiple of it."
        )


@entry_point
def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Send slice `j` along `split_axis` to example `j`, stack those received along `concat_axis`.

    Args:
        x: a tree of arrays, whose axis `split_axis` is as long as the named axis (or, if `tiled`, a
          multiple of that).
        axis_name: the name of an axis, or a tuple of names.
        split_axis: the axis whose slices are sent.
        concat_axis: the axis along which received slices are stacked (or, if `tiled`, joined).
        axis_index_groups: lists of indices along the axis, of equal length, among which slices are
          exchanged.
        tiled: divide `split_axis` and lengthen `concat_axis`, instead of removing and making them.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> swap = lambda x: all_to_all(x, "i", 0, 0)
        >>> namoo.vmap(swap, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    names, groups, size = _one_name("all_to_all", axis_name, axis_index_groups)

    def each(leaf):
        shape = shape_of(leaf)
        split = canonical_axis(split_axis, len(shape), "split_axis")
        concat = canonical_axis(concat_axis, len(shape), "concat_axis")
        _check_length("all_to_all", "split_axis", shape, split, size, tiled)
        params = dict(axis_index_groups=groups)
        if len(names) == 1:
            return all_to_all_p.bind(
                leaf,
                axis_name=names[0],
                concat_axis=concat,
                split_axis=split,
                tiled=tiled,
                **params,
            )
        # Row-major indices: exchange along one axis for each name, then put them together.
        sizes = [size_of_axis((name,)) for name in names]
        part = [shape[split] // size] if tiled else []
        leaf = reshape(leaf, (*shape[:split], *sizes, *part, *shape[split + 1 :]))
        for i, name in enumerate(names):
            place = split + i
            leaf = all_to_all_p.bind(
                leaf, axis_name=name, concat_axis=place, split_axis=place, tiled=False, **params
            )
        whole = (*shape[:split], size, *part, *shape[split + 1 :])
        leaf = moveaxis(reshape(leaf, whole), split, concat)
        if tiled:
            out = list(whole[:split] + whole[split + 1 :])
            out[concat] *= size
            leaf = reshape(leaf, out)
        return leaf

    return _leaves(each, x)


@entry_point
def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange a named axis with an axis of the array of the same length.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        axis: the axis of the arrays.
        axis_index_groups: lists of indices along the axis, of equal length, that are exchanged
          separately.

    Returns:
        a tree like `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@entry_point
def axis_index(axis_name: Any) -> Any:
    """The number of the example along a named axis.

    Args:
        axis_name: the name of an axis, or a tuple of names; then indices count in row-major order.

    Returns:
        an int32 scalar.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: x + axis_index("i"), axis_name="i")(jnp.array([10, 10, 10]))
        Array([10, 11, 12], dtype=int32)
    """
    out: Any = None
    for name in _names(axis_name):
        index = axis_index_p.bind(axis_name=name)
        size = np.int32(size_of_axis((name,)))
        out = index if out is None else add(mul(out, size), index)
    return EagerArray(np.zeros((), np.int32)) if out is None else out


@entry_point
def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or the product of several, as a Python integer.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> namoo.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.array([1, 2, 3]))
        Array([3, 6, 9], dtype=int32)
    """
    return size_of_axis(axis_name)


@entry_point
def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Mark a value as the same, or not, for all examples along named axes; the value is unchanged.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        to: 'varying', 'unreduced' or 'reduced'.

    Returns:
        `x`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> mark = lambda x: pcast(x, "i", to="varying")
        >>> namoo.vmap(mark, axis_name="i")(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(f"pcast: `to` must be 'varying', 'unreduced' or 'reduced', got {to!r}.")
    size_of_axis(_names(axis_name))
    names = tuple(n for n in _names(axis_name) if n in context.checked)
    if to != "varying" or not names:
        return _leaves(lambda leaf: leaf, x)
    return _leaves(lambda leaf: vary_p.bind(leaf, axes=names), x)


@entry_point
def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Send pieces of different lengths, cut from the first axis of `operand`, to all examples.

    Example `i` sends `operand[input_offsets[j] :][: send_sizes[j]]` to example `j`, which writes it
    to its `output` from row `output_offsets[j]` of example `i` on.

    Args:
        operand: the array to send from.
        output: the array to write to; rows that nothing is written to stay unchanged.
        input_offsets: for each receiver, where its piece starts in `operand`.
        send_sizes: for each receiver, the length of its piece.
        output_offsets: for each receiver, where the piece goes in the receiver's `output`.
        recv_sizes: for each sender, the length of its piece; it also follows from the others.
        axis_name: the name of an axis, or a tuple of names.
        axis_index_groups: must be None.

    Returns:
        an array like `output`.

    Raises:
        TypeError: `operand` and `output` differ in their types.
        ValueError: the offsets and sizes are not integer vectors as long as the named axis.
    """
    if axis_index_groups is not None:
        raise ValueError("ragged_all_to_all: axis_index_groups is not supported.")
    size = size_of_axis(_names(axis_name))
    if aval_of(operand).dtype != aval_of(output).dtype:
        raise TypeError(
            "ragged_all_to_all: operand and output must have the same dtype, got "
            f"{aval_of(operand).dtype} and {aval_of(output).dtype}."
        )
    if not shape_of(operand) or shape_of(operand)[1:] != shape_of(output)[1:]:
        raise ValueError(
            "ragged_all_to_all: operand and output must agree in all axes but the first, got "
            f"shapes {shape_of(operand)} and {shape_of(output)}."
        )
    given = dict(
        input_offsets=input_offsets,
        send_sizes=send_sizes,
        output_offsets=output_offsets,
        recv_sizes=recv_sizes,
    )
    for name, x in given.items():
        if shape_of(x) != (size,) or not dtypes.issubdtype(aval_of(x).dtype, np.integer):
            raise ValueError(
                f"ragged_all_to_all: {name} must hold one integer for each of the {size} examples, "
                f"got {aval_of(x).str_short()}."
            )
    # Row s of each: what sender s specifies for the piece of this example.
    starts, lengths, places = (
        convert_element_type(all_to_all(x, axis_name, 0, 0), np.int32)
        for x in (input_offsets, send_sizes, output_offsets)
    )
    pieces = all_gather(operand, axis_name)
    rows, shape = iota(np.int32, shape_of(output)[0]), shape_of(output)
    for sender in range(size):
        start, length, place = (
            index_in_dim(x, sender, 0, keepdims=False) for x in (starts, lengths, places)
        )
        into = sub(rows, place)
        inner = shape[1:]
        dims = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
        piece = gather(
            index_in_dim(pieces, sender, 0, keepdims=False),
            reshape(add(into, start), (shape[0], 1)),
            dims,
            (1, *inner),
            mode="clip",
        )
        written = bitwise_and(ge(into, np.int32(0)), lt(into, length))
        output = select(broadcast_in_dim(written, shape, (0,)), piece, output)
    return output
