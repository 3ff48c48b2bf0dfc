"""Sorting: which of the kernels sorts rows of a given length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.types import is_key
from namoo.engines.native.kernels.sort import network, parallel, radix, short_rows, top_k

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def sort(
    emit: Emitter, xs: Sequence[Node], axis: int, keys: int, top: int | None = None
) -> list[Node]:
    """Operands sorted by the first `keys`; or the `top` greatest elements and their indices."""
    if not all(x.elem for x in xs) or any(is_key(x.elem) for x in xs[:keys]):
        raise emit.unsupported()
    if xs[0].size == 0 or xs[0].shape[axis] >= 2**32:
        raise emit.unsupported()
    writes: list[int | None] = [0, None]
    if top is None:
        # An iota along the axis need not be read: its sorted values are the indices.
        known = [x.key == ("iota", axis) and x.dtype.kind in "iu" for x in xs]
        read = [x for i, x in enumerate(xs) if i < keys or not known[i]]
        writes = [read.index(x) if x in read else None for x in xs]
        xs = read
    if emit.eqn is not None:
        writes = [
            w if v in emit.used else network.UNUSED
            for v, w in zip(emit.eqn.outvars, writes, strict=True)
        ]
    return _sorted(emit, xs, axis, keys, writes, top)


def _sorted(
    emit: Emitter,
    xs: Sequence[Node],
    axis: int,
    keys: int,
    writes: Sequence[int | None],
    top: int | None,
) -> list[Node]:
    """Choose a kernel by the length of rows; the arguments are those of `SortRows`."""
    n = xs[0].shape[axis]
    rows = xs[0].size // n
    beside = short_rows.suits(xs, axis, writes, top)
    longest = tuning.LONGEST_SHORT_ROW if beside else tuning.LONGEST_NETWORK
    if n <= tuning.ALWAYS_NETWORK or n <= longest and rows >= 8:
        step = (short_rows.ShortRows if beside else network.SortRows)(xs, axis, keys, writes, top)
    elif top is not None and top_k.suits(xs[0], axis, top):
        step = top_k.TopRows(xs[0], top)
    elif parallel.suits(xs, axis, keys):
        return parallel.sort(emit, xs, axis, keys, writes, top)
    else:
        step = radix.RadixRows(xs, axis, keys, writes, top)
    return emit.call(step, xs, emit.avals)
