"""Comparison, and selection between arrays by its results.

They have their own module because derivatives of other elementwise operations use them.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive, is_linear
from namoo.primitives.families import anything, compare, operands, ordered
from namoo.primitives.shape import (
    INTEGERS,
    broadcast,
    broadcast_in_dim,
    instantiate,
    moveaxis,
    shape_of,
    zeros,
)

__all__ = [
    "eq", "eq_p", "ge", "ge_p", "gt", "gt_p", "le", "le_p", "lt", "lt_p", "ne", "ne_p", "select",
    "select_n", "select_n_p",
]  # fmt: skip

_comparable = (*anything, dtypes.extended)


def _in_xla(direction):
    def rule(hlo, x, y):
        x, y = hlo.alike(x, y)
        if not isinstance(hlo.inputs[0].dtype, dtypes.ExtendedDType):
            return hlo.compare(x, y, direction)
        # Keys are equal by their words: as numbers they may be NaN.
        words = zip(hlo.words(x), hlo.words(y), strict=True)
        parts = [hlo.compare(v, w, direction) for v, w in words]
        join = "and" if direction == "EQ" else "or"
        return functools.reduce(lambda a, b: hlo.combine(join, a, b), parts)

    return rule


# Python's operators, unlike NumPy's functions, also compare random keys.
eq_p = compare("eq", operator.eq, dtypes=_comparable, stablehlo=_in_xla("EQ"))
ne_p = compare("ne", operator.ne, dtypes=_comparable, stablehlo=_in_xla("NE"))
lt_p = compare("lt", np.less, dtypes=ordered, stablehlo=_in_xla("LT"))
le_p = compare("le", np.less_equal, dtypes=ordered, stablehlo=_in_xla("LE"))
gt_p = compare("gt", np.greater, dtypes=ordered, stablehlo=_in_xla("GT"))
ge_p = compare("ge", np.greater_equal, dtypes=ordered, stablehlo=_in_xla("GE"))


def eq(x: Any, y: Any) -> Any:
    """x = y

    Example:
        >>> eq(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return eq_p.bind(*operands("eq", x, y))


def ne(x: Any, y: Any) -> Any:
    """x ≠ y

    Example:
        >>> ne(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return ne_p.bind(*operands("ne", x, y))


def lt(x: Any, y: Any) -> Any:
    """x < y

    Example:
        >>> lt(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return lt_p.bind(*operands("lt", x, y))


def le(x: Any, y: Any) -> Any:
    """x ≤ y

    Example:
        >>> le(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return le_p.bind(*operands("le", x, y))


def gt(x: Any, y: Any) -> Any:
    """x > y

    Example:
        >>> gt(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return gt_p.bind(*operands("gt", x, y))


def ge(x: Any, y: Any) -> Any:
    """x ≥ y

    Example:
        >>> ge(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return ge_p.bind(*operands("ge", x, y))


class SelectN(Primitive):
    """Choose each element from one of several arrays: `which` is boolean or an index."""

    name = "select_n"
    weak_operands = slice(1, None)

    def evaluate(self, which, *cases):
        first = cases[0]
        shape, dtype = first.shape, first.dtype
        if which.shape and which.shape != shape:
            raise TypeError(shape)
        for case in cases:
            if case.shape != shape or case.dtype is not dtype and case.dtype != dtype:
                raise TypeError(dtype)
        if which.dtype == np.bool_ and len(cases) == 2:
            return np.where(which, cases[1], first)
        if which.dtype not in INTEGERS and len(cases) > 1:
            raise TypeError(which.dtype)
        out = first
        for i, case in enumerate(cases):
            out = np.where(which >= i, case, out)
        return out

    def kernel(self, which, *cases):
        if which.dtype == np.bool_ and len(cases) == 2:
            return lambda which, no, yes: np.where(which, yes, no)
        return self.evaluate

    def abstract(self, which, *cases):
        first = cases[0]
        if any((c.shape, c.dtype) != (first.shape, first.dtype) for c in cases):
            raise TypeError(
                "select cases must have the same shapes and dtypes, got "
                f"{', '.join(c.str_short() for c in cases)}."
            )
        if which.dtype != np.bool_ and which.dtype not in INTEGERS:
            raise TypeError(f"select `which` must be boolean or integer, got {which.dtype}.")
        if which.dtype == np.bool_ and len(cases) > 2:
            raise TypeError(
                f"select with boolean `which` takes at most two cases, got {len(cases)}."
            )
        if which.shape and which.shape != first.shape:
            raise TypeError(
                "select `which` must be scalar or have the same shape as cases, got `which` shape "
                f"{which.shape} but case shape {first.shape}."
            )
        return first.update(weak_type=all(c.weak_type for c in cases))

    def sharded(self, which, *cases):
        entries = rules.same("select", cases, "cases must have the same shardings, got")
        if any(which.entries) and any(entries) and which.entries != tuple(entries):
            rules.refuse(
                "select `which` must be scalar or have the same sharding as cases, got "
                f"{which.spec} and {cases[0].spec}."
            )
        return entries or which.entries

    def jvp(self, primals, tangents):
        which, *cases = primals
        out = self.bind(which, *cases)
        return out, self.bind(which, *map(instantiate, tangents[1:]))

    def transpose(self, ct, which, *cases):
        zero = zeros(aval_of(ct))
        return [
            None,
            *(
                select_n(which, *(ct if i == j else zero for j in range(len(cases))))
                if is_linear(case)
                else None
                for i, case in enumerate(cases)
            ),
        ]

    def batch(self, xs, dims):
        if len(set(dims)) == 1 and len(set(map(shape_of, xs))) == 1:
            return self.bind(*xs), dims[0]
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        which, *cases = (
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        )
        shape = shape_of(cases[0])
        if dims[0] is None and not shape_of(xs[0]):
            which = xs[0]
        elif len(shape_of(which)) < len(shape):
            which = broadcast_in_dim(which, shape, (0,))
        return self.bind(which, *cases), 0

    def native(self, emit, which, *cases):
        return emit.map("select_n", which, *cases)

    def stablehlo(self, hlo, which, *cases):
        out = cases[0]
        for i, case in enumerate(cases[1:], 1):
            chosen = which
            if which.dtype != np.bool_:
                chosen = hlo.compare(which, hlo.constant(i, which.dtype, which.shape), "GE")
            out = hlo.select(chosen, case, out)
        return out


select_n_p = SelectN()


def select_n(which: Any, *cases: Any) -> Any:
    """Choose from `cases` by `which`: false/0 takes the first, true/1 the second, and so on.

    Example:
        >>> import namoo.numpy as jnp
        >>> select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
        Array([10,  2], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` holds, `on_false` elsewhere.

    Example:
        >>> select(True, 1.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return select_n_p.bind(pred, on_false, on_true)
