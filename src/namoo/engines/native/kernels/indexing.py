"""Gathers and scatters: windows at data-dependent indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.engines.native import tuning
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import bits_of, constant, is_signed
from namoo.engines.native.ir.index import Index
from namoo.engines.native.ir.types import is_compound, is_narrow, limit

if TYPE_CHECKING:
    from namoo.engines.native.graph.node import Node
    from namoo.engines.native.kernels.emitter import Emitter


def start_at(k: Any, indices: Node, at: list[Index], last: int) -> tuple[Any, Index, Any]:
    """Load a start: its value, the index clamped to [0, last], and whether it is in bounds.

    The condition is None if it always holds.
    """
    f = k.f
    raw = k.at(indices, at)
    if raw.constant is not None:
        number = int(raw.constant)
        inside = None if 0 <= number <= last else constant("i1", False)
        return raw, Index.of(min(max(number, 0), last)), inside
    value, elem = raw, "i64"
    if raw.elem == "u64":  # values that do not fit i64 are out of bounds anyway
        value = f.minimum(raw, constant("u64", np.iinfo(np.int64).max))
    elif is_signed(raw.elem) and bits_of(raw.elem) <= 32 and last < 2**31:
        elem = "i32"  # twice as many lanes
    value = f.convert(value, elem)
    moved = f.minimum(f.maximum(value, constant(elem, 0)), constant(elem, last))
    return raw, k.symbol(moved, 0, last), f.compare("eq", moved, value)


def gather(
    emit: Emitter, x: Node, indices: Node, numbers, slice_sizes: Sequence[int], filling: Any
) -> Node:
    """Windows of `x`; those out of bounds are `filling`, or clamped where it is None."""
    fill = None if filling is None else emit.literal(filling, x.dtype)
    offset, collapsed, starts, batching, indices_batching = numbers
    if not x.elem or not indices.elem or 0 in x.shape:
        raise emit.unsupported()
    hidden = {*collapsed, *batching}

    def element(k, index, x, indices):
        batch = [i for d, i in enumerate(index) if d not in offset]
        window = iter([index[d] for d in offset])
        at = [Index.of(0) if d in hidden else next(window) for d in range(len(x.shape))]
        for d, e in zip(batching, indices_batching, strict=True):
            at[d] = batch[e]
        inside = None
        for c, d in enumerate(starts):
            last = x.shape[d] - slice_sizes[d]
            _, start, check = start_at(k, indices, [*batch, Index.of(c)], last)
            at[d] = at[d] + start
            if check is not None:
                inside = check if inside is None else k.f.and_(inside, check)
        value = k.at(x, at)
        if fill is None or inside is None:
            return value
        return k.choose(inside, value, k.at(fill, []))

    key = ("gather", tuple(numbers), tuple(slice_sizes), fill and (fill.key, fill.dtype))
    return emit.compute([x, indices], element, dtype=x.dtype, key=key, cost=2 + 3 * len(starts))


def scatter(
    emit: Emitter, x: Node, indices: Node, updates: Node, numbers, name: str | None, clip: bool
) -> Node:
    """`x` with windows combined with it by an operation of `ops`, or overwritten."""
    if not x.elem or not indices.elem or (name and not ops.accepts(name, x.dtype)):
        raise emit.unsupported()
    if updates.size == 0 or x.size == 0:
        return x
    window, _, _, _, indices_batching = numbers
    count = math.prod(n for d, n in enumerate(indices.shape[:-1]) if d not in indices_batching)
    from namoo.engines.native.kernels.scatter import Scatter

    if count == 1 and (indices_batching or x.size <= tuning.SCATTER_IN_PLACE):
        return _one_each(emit, x, indices, updates, numbers, name, clip)

    fill, value, numbers = constant_of(x), None, tuple(numbers)
    if updates.size > tuning.REGISTER_ELEMENTS and not is_compound(x.elem):
        value = constant_of(updates)
    combined = [indices] if value is not None else [indices, updates]
    copies = _copies(x, indices, updates, numbers, name)
    if copies > 1 and name is not None:
        # Adding a zero of this sign changes nothing.
        identity = {"add": 0 if fill is not None else -0.0, "mul": 1}.get(
            name, limit(x.dtype, name == "max")
        )
        start = emit.literal(identity, x.dtype)
        step = Scatter(x, indices, updates, numbers, name, clip, start, value, copies)
        (parts,) = emit.call(step, combined, [ShapedArray((copies, *x.shape), x.dtype)])
        return emit.map(name, x, emit.fold(name, parts, (0,), identity), dtype=x.dtype)
    step = Scatter(x, indices, updates, numbers, name, clip, fill, value)
    return emit.call(step, combined if fill is not None else [x, *combined], [x])[0]


def _copies(x: Node, indices: Node, updates: Node, numbers, name: str | None) -> int:
    """How many copies of a result are combined with a part of the updates each."""
    if name not in ("add", "mul", "min", "max") or is_compound(x.elem) or is_narrow(x.elem):
        return 1
    if x.dtype == np.bool_ or numbers[4] or updates.size < tuning.SCATTER_COPIED_UPDATES:
        return 1
    most = updates.size // (tuning.SCATTER_UPDATES_OF_A_COPY * x.size)
    leading = next((n for n in indices.shape[:-1] if n > 1), 1)
    return min(most, tuning.SCATTER_COPIES, leading)


def constant_of(x: Node) -> Node | None:
    """The literal that a node repeats, if it is a broadcast of one."""
    while x.kind == "compute" and len(x.operands) == 1 and x.key and x.key[0] in _MOVES:
        x = x.operands[0]
    return x if x.kind == "literal" else None


_MOVES = ("broadcast", "broadcast_in_dim", "reshape", "transpose", "slice", "rev", "copy")


def _one_each(emit: Emitter, x, indices, updates, numbers, name, clip) -> Node:
    """A scatter of one window per example: every element tests whether it is inside."""
    window, inserted, starts, batching, indices_batching = numbers
    hidden = {*inserted, *batching}
    rest = [e for e in range(len(updates.shape)) if e not in window]
    shown = [d for d in range(len(x.shape)) if d not in hidden]
    sizes = [1] * len(x.shape)
    for d, e in zip(shown, window, strict=True):
        sizes[d] = updates.shape[e]

    def element(k, index, x, indices, updates):
        f = k.f
        batch = [Index.of(0)] * len(rest)
        for d, e in zip(batching, indices_batching, strict=True):
            batch[e] = index[d]
        within, places = None, list(index)

        def must(check):
            nonlocal within
            if check is not None:
                within = check if within is None else f.and_(within, check)

        for c, d in enumerate(starts):
            last = x.shape[d] - sizes[d]
            raw, start, inside = start_at(k, indices, [*batch, Index.of(c)], last)
            if sizes[d] == 1 and not clip and bits_of(raw.elem) >= 32 and last < 2**31:
                # Compared in the narrow type: the element's own index is always in bounds.
                must(f.compare("eq", k.integer(index[d], raw.elem), raw))
                places[d] = Index.of(0)
                continue
            if not clip:
                must(inside)
            if sizes[d] == 1:
                must(f.compare("eq", k.integer(index[d]), k.integer(start)))
                places[d] = Index.of(0)
            else:
                moved = index[d] - start
                must(k.within(moved, 0, sizes[d]))
                places[d] = k.clamp(moved, 0, sizes[d] - 1)
        # Along other axes the window starts at 0.
        for d in shown:
            if d not in starts and sizes[d] < x.shape[d]:
                must(k.within(places[d], 0, sizes[d]))
                places[d] = k.clamp(places[d], 0, sizes[d] - 1)
        at: list[Any] = [None] * len(updates.shape)
        for d, e in zip(shown, window, strict=True):
            at[e] = places[d]
        for i, e in enumerate(rest):
            at[e] = batch[i]
        old = k.at(x, index)
        new = k.at(updates, at)
        if name is not None:
            new = ops.apply(f, name, [old, new], x.elem, {})
        return new if within is None else k.choose(within, new, old)

    key = ("scatter", tuple(numbers), name, clip)
    operands = [x, indices, updates]
    return emit.compute(
        operands, element, shape=x.shape, dtype=x.dtype, key=key, cost=2 + 3 * len(starts)
    )
