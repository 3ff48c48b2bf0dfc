"""Operations among the examples of an axis that has a name, as primitives.

A collective is an ordinary equation until it is processed by the trace that maps over its axis.
There the axis is an ordinary one of the operand, and `batch_collective` computes on it; the name is
then gone.  In the rules, `x` with the mapped axis in front is the stack of what each example holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive
from namoo.core.trace import axis_size as size_of_axis
from namoo.core.trace import context
from namoo.primitives.elementwise import div, eq, full_like, mul, select
from namoo.primitives.gather import gather
from namoo.primitives.gather_dimensions import GatherDimensionNumbers
from namoo.primitives.reduction import reduce_max, reduce_min
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    convert_element_type,
    iota,
    moveaxis,
    reduce_sum,
    reshape,
    shape_of,
    zeros,
)
from namoo.primitives.slicing import concatenate, index_in_dim

Groups = tuple[tuple[int, ...], ...] | None


def check_groups(name: str, groups: Groups, size: int, equal: bool = True) -> None:
    """Refuse groups that do not partition the indices along the axis."""
    if groups is None:
        return
    if sorted(i for group in groups for i in group) != list(range(size)):
        raise ValueError(
            f"{name}: axis_index_groups must contain each index from 0 to {size - 1} exactly once, "
            f"got {[list(g) for g in groups]}."
        )
    if equal and len({len(group) for group in groups}) > 1:
        raise ValueError(
            f"{name}: axis_index_groups must all be the same size, got {[list(g) for g in groups]}."
        )


def _rows(x: Any, indices: Sequence[int]) -> Any:
    """The slices of `x` along its first axis at indices that are known."""
    if list(indices) == list(range(shape_of(x)[0])):
        return x
    inner = shape_of(x)[1:]
    starts = EagerArray(np.asarray(indices, np.int32).reshape(-1, 1))
    dims = GatherDimensionNumbers(tuple(range(1, len(inner) + 1)), (0,), (0,))
    return gather(x, starts, dims, (1, *inner), mode="promise_in_bounds")


def _stacked(x: Any, dim: int | None, size: int) -> Any:
    """Stack the operands of all examples: move the mapped axis to the front, or add it."""
    return broadcast(x, (size,)) if dim is None else moveaxis(x, dim, 0)


def _by_groups(fun: Callable[[Any], Any], x: Any, groups: Groups) -> Any:
    """A function of the stack, applied to each group of examples by itself."""
    if groups is None:
        return fun(x)
    order = [i for group in groups for i in group]
    return _rows(
        concatenate([fun(_rows(x, group)) for group in groups], 0), np.argsort(order).tolist()
    )


def group_size(axis_name: tuple, groups: Groups) -> int:
    """How many examples take part together."""
    return size_of_axis(axis_name) if groups is None else len(groups[0])


class Collective(Primitive):
    """The base class of collectives; `axis_name` is a tuple of one name, or the bare name."""

    bare_name = False

    def collective_axes(self, params):
        return (params["axis_name"],) if self.bare_name else params["axis_name"]

    def evaluate(self, *values, **params) -> NoReturn:
        names = self.collective_axes(params)
        for name in names:
            size_of_axis(name)
        raise NameError(
            f"{self.name} over the axis {names[0]!r} was computed outside of the function that is "
            "mapped over it."
        )

    def batch_collective(self, axis, xs, dims, *, axis_index_groups=None, **params):
        """The results if the axis of this name is the one that is mapped over."""
        x = _stacked(xs[0], dims[0], axis.size)
        return _by_groups(lambda part: self.among(part, **params), x, axis_index_groups), 0

    def among(self, x: Any, **params: Any) -> Any:
        """The results of all examples, stacked, from what each of them holds."""
        raise NotImplementedError(type(self))


class Reduce(Collective):
    """Combine all examples: each of them gets the same result."""

    def __init__(self, name: str, reduce: Callable[[Any, Sequence[int]], Any]):
        self.name = name
        self.reduce = reduce

    def collective_axes(self, params):
        return params["axes"]

    def varies(self, vma, params):
        return vma if params["axis_index_groups"] else vma - set(params["axes"])

    def abstract(self, x, *, axes, axis_index_groups):
        check_groups(self.name, axis_index_groups, size_of_axis(axes), equal=False)
        return x

    def batch(self, xs, dims, **params):
        return self.bind(*xs, **params), dims[0]

    def batch_collective(self, axis, xs, dims, *, axes, axis_index_groups):
        (x,), (d,) = xs, dims
        if axis_index_groups is not None:
            same = lambda part: broadcast(self.reduce(part, (0,)), shape_of(part)[:1])  # noqa: E731
            return _by_groups(same, _stacked(x, d, axis.size), axis_index_groups), 0
        out = self.same(x, axis.size) if d is None else self.reduce(x, (d,))
        rest = tuple(name for name in axes if name != axis.name)
        if rest:
            out = self.bind(out, axes=rest, axis_index_groups=None)
        return out, None

    def same(self, x: Any, size: int) -> Any:
        """The result where all examples hold the same `x`."""
        return x

    def stablehlo(self, hlo, x, *, axes, axis_index_groups):
        operation = {"psum": "add", "pmax": "maximum", "pmin": "minimum"}[self.name]
        return hlo.all_reduce(operation, x, axes, axis_index_groups)


class Sum(Reduce):
    linear = True

    def same(self, x, size):
        return mul(x, full_like(x, size))

    def transpose(self, ct, x, **params):
        # If all devices are known to hold the same cotangent, it is the cotangent of each term;
        # otherwise each device holds a part of it.
        if context.checked.issuperset(params["axes"]) and not aval_of(ct).vma & {*params["axes"]}:
            return [vary_p.bind(ct, axes=params["axes"])]
        return [self.bind(ct, **params)]


class Extreme(Reduce):
    """The derivative belongs to the examples that hold the extreme value, in equal shares."""

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        chosen = convert_element_type(eq(x, out), aval_of(t).dtype)
        total = psum_p.bind(mul(t, chosen), **params)
        return out, div(total, psum_p.bind(chosen, **params))


psum_p = Sum("psum", reduce_sum)
pmax_p = Extreme("pmax", reduce_max)
pmin_p = Extreme("pmin", reduce_min)


class Permute(Collective):
    """Send each example's value to another; those that receive none get zeros."""

    name, linear = "ppermute", True

    def abstract(self, x, *, axis_name, perm):
        size = size_of_axis(axis_name)
        for pair in perm:
            if not all(0 <= i < size for i in pair):
                raise IndexError(
                    f"ppermute: the pair {pair} is out of range for the axis {axis_name[0]!r} of "
                    f"size {size}."
                )
        return x

    def among(self, x, *, axis_name, perm):
        size = shape_of(x)[0]
        source = {to: i for i, to in perm}
        out = _rows(x, [source.get(i, 0) for i in range(size)])
        if len(source) < size:
            gets = EagerArray(np.asarray([i in source for i in range(size)]))
            out = select(broadcast_in_dim(gets, shape_of(x), (0,)), out, zeros(aval_of(out)))
        return out

    def stablehlo(self, hlo, x, *, axis_name, perm):
        return hlo.permute(x, axis_name[0], perm)

    def transpose(self, ct, x, *, axis_name, perm):
        return [self.bind(ct, axis_name=axis_name, perm=tuple((j, i) for i, j in perm))]

    def batch(self, xs, dims, **params):
        return self.bind(*xs, **params), dims[0]


ppermute_p = Permute()


class Broadcast(Collective):
    """All examples get the value that one of them holds."""

    name, linear, bare_name = "pbroadcast", True, True

    def abstract(self, x, *, axis_name, source):
        size = size_of_axis((axis_name,))
        if not 0 <= source < size:
            raise ValueError(
                f"pbroadcast: the source {source} is out of range for the axis {axis_name!r} of "
                f"size {size}."
            )
        return x

    def among(self, x, *, axis_name, source):
        return broadcast(index_in_dim(x, source, 0, keepdims=False), shape_of(x)[:1])

    def batch_collective(self, axis, xs, dims, *, axis_name, source):
        (x,), (d,) = xs, dims
        return (x if d is None else index_in_dim(x, source, d, keepdims=False)), None

    def stablehlo(self, hlo, x, *, axis_name, source):
        here = hlo.compare(hlo.axis_index(axis_name), hlo.constant(source, np.int32), "EQ")
        own = hlo.select(hlo.broadcast(here, x.shape, ()), x, hlo.constant(0, x.dtype, x.shape))
        return hlo.all_reduce("or" if x.dtype == bool else "add", own, (axis_name,))

    def transpose(self, ct, x, *, axis_name, source):
        total = psum_p.bind(ct, axes=(axis_name,), axis_index_groups=None)
        here = eq(axis_index_p.bind(axis_name=axis_name), np.int32(source))
        return [select(broadcast(here, shape_of(ct)), total, zeros(aval_of(total)))]

    def batch(self, xs, dims, **params):
        return self.bind(*xs, **params), dims[0]


pbroadcast_p = Broadcast()


class AllGather(Collective):
    """Each example gets the values of all, along a new axis or (`tiled`) joined along one."""

    name, linear = "all_gather", True

    def abstract(self, x, *, all_gather_dimension, axis_index_groups, axis_name, axis_size, tiled):
        check_groups(self.name, axis_index_groups, size_of_axis(axis_name))
        shape, dim = list(x.shape), all_gather_dimension
        if tiled:
            shape[dim] *= axis_size
        else:
            shape.insert(dim, axis_size)
        return x.update(shape=tuple(shape))

    def among(self, x, **params):
        return broadcast(self.gathered(x, **params), shape_of(x)[:1])

    def gathered(self, x, *, all_gather_dimension, tiled, **sizes):
        """The result of each example, from the stacked operands."""
        dim, shape = all_gather_dimension, list(shape_of(x)[1:])
        out = moveaxis(x, 0, dim)
        if tiled:
            shape[dim] *= shape_of(x)[0]
            out = reshape(out, shape)
        return out

    def batch_collective(self, axis, xs, dims, *, axis_index_groups, **params):
        if axis_index_groups is not None:
            return super().batch_collective(
                axis, xs, dims, axis_index_groups=axis_index_groups, **params
            )
        return self.gathered(_stacked(xs[0], dims[0], axis.size), **params), None

    def stablehlo(self, hlo, x, *, all_gather_dimension, axis_name, axis_index_groups, **sizes):
        dim = all_gather_dimension
        if not sizes["tiled"]:
            x = hlo.reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))
        return hlo.all_gather(x, dim, axis_name, axis_index_groups)

    def transpose(self, ct, x, *, all_gather_dimension, **params):
        return [reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)]

    def batch(self, xs, dims, *, all_gather_dimension, **params):
        x = moveaxis(xs[0], dims[0], 0)
        return self.bind(x, all_gather_dimension=all_gather_dimension + 1, **params), 0


all_gather_p = AllGather()


class ReduceScatter(Collective):
    """Sum over the examples, of which each gets one slice or (`tiled`) one part of an axis."""

    name, linear = "reduce_scatter", True

    def abstract(self, x, *, axis_index_groups, axis_name, axis_size, scatter_dimension, tiled):
        check_groups(self.name, axis_index_groups, size_of_axis(axis_name))
        shape, dim = list(x.shape), scatter_dimension
        if tiled:
            shape[dim] //= axis_size
        else:
            del shape[dim]
        return x.update(shape=tuple(shape))

    def among(self, x, *, scatter_dimension, tiled, **sizes):
        total, size = reduce_sum(x, (0,)), shape_of(x)[0]
        if tiled:
            total = _split_axis(total, scatter_dimension, size)
        return moveaxis(total, scatter_dimension, 0)

    def stablehlo(self, hlo, x, *, axis_name, axis_index_groups, scatter_dimension, **sizes):
        out = hlo.reduce_scatter(x, scatter_dimension, axis_name, axis_index_groups)
        return hlo.reshape(out, hlo.avals[0].shape)

    def transpose(self, ct, x, *, scatter_dimension, **params):
        return [all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)]

    def batch(self, xs, dims, *, scatter_dimension, **params):
        x = moveaxis(xs[0], dims[0], 0)
        return self.bind(x, scatter_dimension=scatter_dimension + 1, **params), 0


reduce_scatter_p = ReduceScatter()


class AllToAll(Collective):
    """Each example sends one slice along `split_axis` to each, and stacks those it receives along
    `concat_axis`; `tiled` splits and joins axes instead of removing and making them."""

    name, linear, bare_name = "all_to_all", True, True

    def abstract(self, x, *, axis_index_groups, axis_name, concat_axis, split_axis, tiled):
        check_groups(self.name, axis_index_groups, size_of_axis((axis_name,)))
        size = group_size((axis_name,), axis_index_groups)
        shape = list(x.shape)
        if tiled:
            shape[split_axis] //= size
            shape[concat_axis] *= size
        else:
            shape.insert(concat_axis, shape.pop(split_axis))
        return x.update(shape=tuple(shape))

    def among(self, x, *, axis_name, concat_axis, split_axis, tiled):
        size = shape_of(x)[0]
        if tiled:
            x = _split_axis(x, split_axis + 1, size)
        x = moveaxis(x, split_axis + 1, 0)  # now the receiver comes first, the sender second
        x = moveaxis(x, 1, concat_axis + 1)
        if tiled:
            shape = list(shape_of(x))
            shape[concat_axis + 1 : concat_axis + 3] = [size * shape[concat_axis + 2]]
            x = reshape(x, shape)
        return x

    def stablehlo(self, hlo, x, *, axis_index_groups, axis_name, concat_axis, split_axis, tiled):
        if tiled:
            return hlo.all_to_all(x, split_axis, concat_axis, (axis_name,), axis_index_groups)
        out = hlo.all_to_all(x, split_axis, split_axis, (axis_name,), axis_index_groups)
        order = [i for i in range(x.ndim) if i != split_axis]
        order.insert(concat_axis, split_axis)
        return hlo.transpose(out, order)

    def transpose(self, ct, x, *, concat_axis, split_axis, **params):
        return [self.bind(ct, concat_axis=split_axis, split_axis=concat_axis, **params)]

    def batch(self, xs, dims, *, concat_axis, split_axis, **params):
        x = moveaxis(xs[0], dims[0], 0)
        return self.bind(x, concat_axis=concat_axis + 1, split_axis=split_axis + 1, **params), 0


all_to_all_p = AllToAll()


class Vary(Primitive):
    """The identity; its result counts as varying along mesh axes."""

    name, linear = "pvary", True

    def evaluate(self, x, *, axes):
        return x

    def abstract(self, x, *, axes):
        return x

    def varies(self, vma, params):
        return vma | (context.checked & set(params["axes"]))

    def transpose(self, ct, x, *, axes):
        # A value that all devices share exists only where varying axes are tracked.
        tracked = tuple(name for name in axes if name in context.checked)
        return [psum_p.bind(ct, axes=tracked, axis_index_groups=None) if tracked else ct]

    def batch(self, xs, dims, **params):
        return self.bind(*xs, **params), dims[0]

    def native(self, emit, x, *, axes):
        return x

    def stablehlo(self, hlo, x, *, axes):
        return x


vary_p = Vary()


class AxisIndex(Collective):
    """The number of the example along the axis."""

    name, bare_name = "axis_index", True

    def abstract(self, *, axis_name):
        size_of_axis((axis_name,))
        return ShapedArray((), np.dtype(np.int32))

    def varies(self, vma, params):
        return vma | (context.checked & {params["axis_name"]})

    def batch_collective(self, axis, xs, dims, *, axis_name):
        return iota(np.int32, axis.size), 0

    def stablehlo(self, hlo, *, axis_name):
        return hlo.axis_index(axis_name)


axis_index_p = AxisIndex()


def _split_axis(x: Any, axis: int, parts: int) -> Any:
    """`x` with one axis cut into (parts, length of a part)."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :]))
