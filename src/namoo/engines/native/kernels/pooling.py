"""Pooling and its derivatives: reductions over sliding windows.

The derivative of a maximum is computed per element of the operand: each one visits the windows that
contain it, so nothing is accumulated in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import constant
from namoo.engines.native.ir.index import Index, ravel
from namoo.engines.native.ir.types import is_complex, is_narrow

if TYPE_CHECKING:
    from namoo.engines.native.graph.node import Node
    from namoo.engines.native.kernels.emitter import Emitter


class Window:
    """The parameters of a sliding window, one of each per axis."""

    def __init__(
        self, *, window_dimensions, window_strides, padding, base_dilation, window_dilation
    ):
        self.sizes = tuple(window_dimensions)
        self.strides = tuple(window_strides)
        self.low = tuple(low for low, _ in padding)
        self.gaps = tuple(base_dilation)
        self.steps = tuple(window_dilation)
        self.key = (self.sizes, self.strides, tuple(map(tuple, padding)), self.gaps, self.steps)

    @property
    def overlaps(self) -> bool:
        """Whether an element may be in several windows."""
        return any(n > stride for n, stride in zip(self.sizes, self.strides, strict=True))

    def place(self, k: Any, shape, window: Sequence[Index], at: Sequence[Any]):
        """The operand's index at position `at` of a window, and whether there is an element."""
        inside, index = None, []
        for d, n in enumerate(shape):
            i = window[d] * self.strides[d] + Index.of(at[d]) * self.steps[d] - self.low[d]
            span = (n - 1) * self.gaps[d] + 1
            checks = [k.within(i, 0, span)]
            i = k.clamp(i, 0, span - 1)
            if self.gaps[d] > 1:
                checks.append(k.within(i % self.gaps[d], 0, 1))
                i = i // self.gaps[d]
            for check in checks:
                if check is not None:
                    inside = check if inside is None else k.f.and_(inside, check)
            index.append(i)
        return index, inside

    def folded(self, element: Callable[[tuple[int, ...]], Any], combine) -> Any:
        """Combine all elements of a window: along the last axis first, as the host does."""

        def level(at: tuple[int, ...]) -> Any:
            if len(at) == len(self.sizes):
                return element(at)
            total = level((*at, 0))
            for i in range(1, self.sizes[len(at)]):
                total = combine(total, level((*at, i)))
            return total

        return level(())


def reduce(emit: Emitter, x: Node, name: str, identity: Any, params: dict) -> Node:
    """An operation of `ops` over every window; narrow floats are rounded once."""
    if not ops.accepts(name, x.dtype) or 0 in x.shape:
        raise emit.unsupported()
    if is_narrow(x.elem) and name not in ops.EXACT:
        wide = emit.convert(x, np.float32)
        return emit.convert(reduce(emit, wide, name, np.float32(identity), params), x.dtype)
    window = Window(**params)
    shape = tuple(emit.avals[0].shape)
    nothing = emit.literal(identity, x.dtype)
    combine = ops.TABLE[name]

    def read(k, x, index, at):
        place, inside = window.place(k, x.shape, index, at)
        value = k.at(x, place)
        return value if inside is None else k.choose(inside, value, k.at(nothing, []))

    if math.prod(window.sizes) <= tuning.UNROLLED_WINDOW:

        def element(k, index, x):
            return window.folded(lambda at: read(k, x, index, at), lambda a, b: combine(k.f, a, b))

        return emit.compute(
            [x],
            element,
            dtype=x.dtype,
            key=("reduce_window", name, window.key),
            cost=2 * math.prod(window.sizes),
            rereads=window.overlaps,
        )
    rank = len(shape)
    wide = [d for d in range(rank) if window.sizes[d] > 1]

    def spread(k, index, x):
        at = [Index.of(0)] * rank
        for d, i in zip(wide, index[rank:], strict=True):
            at[d] = i
        return read(k, x, index[:rank], at)

    windows = emit.compute(
        [x],
        spread,
        shape=shape + tuple(window.sizes[d] for d in wide),
        dtype=x.dtype,
        key=("windows", name, window.key),
        cost=2,
    )
    return emit.fold(name, windows, range(rank, rank + len(wide)), identity[()])


def _chosen(k: Any, x: Node, window: Window, index, relation: str, worst: Node, carry) -> Any:
    """`carry(index, inside)` of the first best element of a window."""

    def element(at):
        place, inside = window.place(k, x.shape, index, at)
        value = k.at(x, place)
        if inside is not None:
            value = k.choose(inside, value, k.at(worst, []))
        return value, carry(place, inside)

    def combine(a, b):
        keep = k.f.compare(relation, a[0], b[0])
        return k.choose(keep, a[0], b[0]), k.choose(keep, a[1], b[1])

    return window.folded(element, combine)[1]


def _check(emit: Emitter, x: Node, window: Window) -> None:
    if not x.elem or is_complex(x.elem) or 0 in x.shape or x.size >= 2**31:
        raise emit.unsupported()
    if math.prod(window.sizes) > tuning.UNROLLED_WINDOW:
        raise emit.unsupported()


def select_and_gather(emit: Emitter, t: Node, x: Node, relation: str, worst, params) -> Node:
    """For each window, the element of `t` at the index of the best one of `x`."""
    window = Window(**params)
    _check(emit, x, window)
    least, zero = emit.literal(worst, x.dtype), emit.literal(0, t.dtype)

    def element(k, index, t, x):
        def carry(place, inside):
            value = k.at(t, place)
            return value if inside is None else k.choose(inside, value, k.at(zero, []))

        return _chosen(k, x, window, index, relation, least, carry)

    return emit.compute(
        [t, x],
        element,
        dtype=t.dtype,
        key=("select_and_gather", relation, window.key),
        cost=4 * math.prod(window.sizes),
        rereads=window.overlaps,
    )


def select_and_scatter(emit: Emitter, source: Node, x: Node, relation: str, worst, params) -> Node:
    """Add each element of `source` at the index of the best one of `x` in its window."""
    window = Window(**params)
    _check(emit, x, window)
    spans = [(n - 1) * step + 1 for n, step in zip(window.sizes, window.steps, strict=True)]
    reach = [-(-span // stride) for span, stride in zip(spans, window.strides, strict=True)]
    if math.prod(reach) > tuning.UNROLLED_WINDOW:
        raise emit.unsupported()
    least = emit.literal(worst, x.dtype)

    def place_of(k, index, x):
        def carry(place, inside):
            number = k.integer(ravel(place, x.shape), "i32")
            return number if inside is None else k.choose(inside, number, constant("i32", -1))

        return _chosen(k, x, window, index, relation, least, carry)

    places = emit.compute(
        [x],
        place_of,
        shape=source.shape,
        dtype=np.dtype(np.int32),
        key=("select_place", relation, window.key),
        cost=4 * math.prod(window.sizes),
        rereads=window.overlaps,
    )

    def element(k, index, source, places):
        f = k.f
        own = k.integer(ravel(index, x.shape), "i32")
        total = k.at(zero, [])
        # From the first window that may contain this element to the last.
        for back in product(*(range(n - 1, -1, -1) for n in reach)):
            at, inside = [], None
            for d, i in enumerate(index):
                w = (i * window.gaps[d] + window.low[d]) // window.strides[d] - back[d]
                check = k.within(w, 0, source.shape[d])
                if check is not None:
                    inside = check if inside is None else f.and_(inside, check)
                at.append(k.clamp(w, 0, source.shape[d] - 1))
            here = f.compare("eq", k.at(places, at), own)
            if inside is not None:
                here = f.and_(here, inside)
            value = k.choose(here, k.at(source, at), k.at(zero, []))
            total = value if math.prod(reach) == 1 else f.add(total, value)
        return total

    zero = emit.literal(0, source.dtype)
    return emit.compute(
        [source, places],
        element,
        shape=x.shape,
        dtype=source.dtype,
        key=("select_and_scatter", x.shape, window.key),
        cost=6 * math.prod(reach),
        rereads=math.prod(reach) > 1,
    )
