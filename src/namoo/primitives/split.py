"""Cut an array into parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.analysis import sharding_rules as rules
from namoo.core.avals import aval_of, canonical_shape
from namoo.core.primitive import Primitive, Zero
from namoo.primitives.shape import canonical_axis, instantiate, shape_of
from namoo.primitives.slicing import concatenate

__all__ = ["split", "split_p"]


class Split(Primitive):
    """Cut an array into parts along an axis."""

    name, linear, multiple_results = "split", True, True

    def evaluate(self, x, *, sizes, axis):
        before = (slice(None),) * axis
        ends = np.cumsum(sizes).tolist()
        return [x[(*before, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]

    def abstract(self, x, *, sizes, axis):
        if any(size < 0 for size in sizes):
            raise ValueError(f"Sizes passed to split must be nonnegative, got {sizes}.")
        if sum(sizes) != x.shape[axis]:
            raise ValueError(
                f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
                f"{list(x.shape)} in split, got sizes {sizes}."
            )
        return [x.update(shape=(*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes]

    def sharded(self, x, *, sizes, axis):
        where = (*x.shape[:axis], *x.shape[axis + 1 :])
        return [rules.resized("split", x, (*where[:axis], size, *where[axis:])) for size in sizes]

    def transpose(self, cts, x, *, sizes, axis):
        if all(type(ct) is Zero for ct in cts):
            return [None]
        return [concatenate(list(map(instantiate, cts)), axis)]

    def batch(self, xs, dims, *, sizes, axis):
        (x,), (d,) = xs, dims
        return self.bind(x, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)

    def native(self, emit, x, *, sizes, axis):
        outs, start = [], 0
        for size in sizes:

            def where(index, start=start):
                return [i + start if d == axis else i for d, i in enumerate(index)]

            shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
            outs.append(emit.reindex(x, where, key=("split", axis, start), shape=shape))
            start += size
        return outs

    def stablehlo(self, hlo, x, *, sizes, axis):
        ends = np.cumsum(sizes).tolist()
        return [hlo.part(x, axis, e - n, e) for n, e in zip(sizes, ends, strict=True)]


split_p = Split()


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Cut an array into parts of the given sizes along an axis.

    Raises:
        ValueError: the sizes do not add up to the length of the axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> split(jnp.arange(5), (2, 3))
        [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    params = {
        "sizes": canonical_shape(sizes),
        "axis": canonical_axis(axis, len(shape_of(operand))),
    }
    split_p.abstract(aval_of(operand), **params)
    return split_p.bind(operand, **params)
