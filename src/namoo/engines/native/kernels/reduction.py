"""Reductions: elements combined along axes, in blocks where there are many."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.dimensions.sizes import exceeds
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import PART, REDUCE, Node, Reduction
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.extents import is_dynamic
from namoo.engines.native.ir.types import elem_of, is_complex, is_narrow, limit

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def reduce(
    emit: Emitter,
    name: str,
    xs: Sequence[Node],
    axes: Sequence[int],
    combine: Callable,
    identity: Sequence[Any],
) -> list[Node]:
    """Combine elements along axes: `combine(f, left, right)` maps tuples of values to tuples.

    It must be associative and commutative up to rounding; `identity` changes nothing.
    """
    if not all(elem_of(x.dtype) for x in xs):
        raise emit.unsupported()
    shape = xs[0].shape
    axes = tuple(sorted(axes))
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    if 0 in shape:
        return [emit.filled(i, x.dtype, kept) for i, x in zip(identity, xs, strict=True)]
    dynamic = any(map(is_dynamic, shape))
    terms = 0 if dynamic else math.prod(shape[i] for i in axes)
    few = (
        not dynamic
        and math.prod(kept) < tuning.FEW_RESULTS
        and math.prod(shape) > tuning.MANY_TERMS
    )
    if few or terms > tuning.LONG_REDUCTION:
        parts = _in_blocks(emit, name, xs, axes, combine, identity)
        if parts is not None:
            return parts
    reduction = Reduction(name, axes, combine, tuple(identity))
    key = ("reduce", name, axes, tuple(map(str, identity)))
    if len(xs) == 1:
        return [emit.add(Node(REDUCE, kept, xs[0].dtype, tuple(xs), data=reduction, key=key))]
    node = emit.add(Node(REDUCE, kept, xs[0].dtype, tuple(xs), data=reduction, key=key))
    return [
        emit.add(Node(PART, kept, x.dtype, (node,), data=i, key=("part", i)))
        for i, x in enumerate(xs)
    ]


def _in_blocks(emit: Emitter, name, xs, axes, combine, identity):
    """Reduce in blocks of fixed size, recursively: the result does not depend on threads."""
    shape = xs[0].shape
    # Blocks of the first axis are contiguous in memory.
    axis = next((i for i in axes if shape[i] >= 8), max(axes, key=lambda i: shape[i]))
    n, rest = shape[axis], math.prod(shape[i] for i in axes if i != axis)
    size = tuning.REDUCTION_BLOCK
    most, least = max(size // rest, 1), max(size // 16 // rest, 1)
    block = next((b for b in range(most, least - 1, -1) if n % b == 0), n)
    if n * rest <= 2 * size:
        return None
    if n // block < 2:
        if n * rest <= tuning.LONG_REDUCTION >> 4 or len(xs) > 1:
            return None
        return _in_two(emit, name, xs[0], axes, combine, identity, axis, n - n % most)
    split = (*shape[:axis], n // block, block, *shape[axis + 1 :])
    xs = [emit.reshape(x, split) for x in xs]
    inner = tuple(i + (i >= axis) for i in axes if i != axis) + (axis + 1,)
    parts = emit.reduce(name, xs, inner, combine, identity)
    left = (sum(i not in inner for i in range(axis)),)
    return emit.reduce(name, parts, left, combine, identity)


def _in_two(emit: Emitter, name, x, axes, combine, identity, axis: int, cut: int) -> list[Node]:
    """Split an axis at `cut`, reduce both parts, and combine them."""
    sums = []
    for start, stop in ((0, cut), (cut, x.shape[axis])):
        part = emit.reindex(
            x,
            lambda index, start=start: [i + start * (a == axis) for a, i in enumerate(index)],
            key=("part of an axis", axis, start),
            shape=(*x.shape[:axis], stop - start, *x.shape[axis + 1 :]),
        )
        sums += emit.reduce(name, [part], axes, combine, identity)
    return [
        emit.compute(
            sums,
            lambda k, index, a, b: combine(k.f, (k.at(a, index),), (k.at(b, index),))[0],
            shape=sums[0].shape,
            dtype=x.dtype,
            key=("both parts", name),
        )
    ]


def fold(emit: Emitter, name: str, x: Node, axes: Sequence[int], identity: Any) -> Node:
    """Combine elements along axes by an operation of `ops`; narrow floats are rounded once."""
    operation = ops.TABLE[name]
    if not ops.accepts(name, x.dtype):
        raise emit.unsupported()
    if is_narrow(x.elem) and name not in ops.EXACT:
        wide = emit.convert(x, np.float32)
        return emit.convert(emit.fold(name, wide, axes, identity), x.dtype)
    combine = lambda f, a, b: (operation(f, a[0], b[0]),)  # noqa: E731
    if x.dtype == np.bool_:
        identity = bool(identity)
    elif x.dtype.kind == "u":
        identity = identity % (1 << 8 * x.dtype.itemsize)
    return emit.reduce(name, [x], axes, combine, [identity])[0]


def total(emit: Emitter, x: Node, axes: Sequence[int]) -> Node:
    """The sum along axes."""
    return emit.fold("add", x, axes, 0)


def extreme(emit: Emitter, x: Node, axes: Sequence[int], name: str) -> Node:
    """The greatest ("max") or least ("min") along axes."""
    return emit.fold(name, x, axes, limit(x.dtype, name == "max"))


def locate(emit: Emitter, x: Node, axis: int, dtype: Any, relation: str) -> Node:
    """The index of the greatest ("gt") or least ("lt") along an axis: the first of equals."""
    wide = exceeds(x.shape[axis], 2**31 - 1)
    places = emit.iota(np.int64 if wide else np.int32, x.shape, axis)

    def combine(f, a, b):
        (u, i), (v, j) = a, b
        better = f.compare(relation, u, v)
        equal = f.compare("eq", u, v)
        if u.elem[0] in "fb":
            # NaN is greater than all others, and equal to itself.
            nan_u, nan_v = f.unordered(u), f.unordered(v)
            better = f.or_(better, f.and_(nan_u, f.not_(nan_v)))
            equal = f.or_(equal, f.and_(nan_u, nan_v))
        first = f.or_(better, f.and_(equal, f.compare("lt", i, j)))
        return f.select(first, u, v), f.select(first, i, j)

    if is_complex(x.elem or "c64"):
        raise emit.unsupported()
    worst = limit(x.dtype, relation == "gt")
    _, place = emit.reduce(f"locate_{relation}", [x, places], (axis,), combine,
                           [worst, 2**63 - 1 if wide else 2**31 - 1])  # fmt: skip
    return emit.convert(place, dtype)
