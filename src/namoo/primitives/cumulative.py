"""Running sums, products, extremes and log-sums along an axis.

The derivative of a running product, extreme or log-sum is itself a scan, of pairs (value,
tangent), so that nothing is divided by an element: zeros, infinities and ties are safe.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.analysis import sharding_rules as rules
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive
from namoo.primitives import elementwise as ew
from namoo.primitives.families import accepted, floating, inexact, number
from namoo.primitives.shape import broadcast_to, checks, reshape, rev, shape_of
from namoo.primitives.slicing import concatenate, pad, slice_in_dim
from namoo.primitives.slicing import slice as lax_slice

__all__ = [
    "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod",
    "cumprod_p", "cumsum", "cumsum_p",
]  # fmt: skip

Pair = tuple[Any, ...]


class Cumulative(Primitive):
    """Combine all elements up to each position along `axis`; `reverse` starts from the end."""

    dtypes: tuple[type, ...] = number

    def __init__(self, name: str, accumulate: Callable[..., Any], combine: Any = None):
        self.name = name
        self.accumulate = accumulate
        self.combine = combine
        self.accepted = accepted(self.dtypes)

    def guards(self, x, **params):
        return checks.overflow(self, x, params) if self.name in ("cumsum", "cumprod") else ()

    def evaluate(self, x, *, axis, reverse):
        if x.dtype not in self.accepted:  # NumPy would accept some of them
            self.abstract(EagerArray(x).aval, axis=axis, reverse=reverse)
        if not reverse:
            return self.accumulate(x, axis)
        return np.flip(self.accumulate(np.flip(x, axis), axis), axis)

    def abstract(self, x, *, axis, reverse):
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"{self.name}: axis {axis} is out of bounds for array of shape {x.shape}; "
                "axes count from 0, and may not be negative."
            )
        if x.dtype not in self.accepted:
            kinds = ", ".join(kind.__name__ for kind in self.dtypes)
            raise TypeError(
                f"{self.name} does not accept dtype {x.dtype}. "
                f"Accepted dtypes are subtypes of {kinds}."
            )
        return x

    def sharded(self, x, *, axis, reverse):
        return rules.unsplit("Input should be unsharded over the axis being reduced", x, [axis])

    def jvp(self, primals, tangents, *, axis, reverse):
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if reverse:
            x, t = rev(x, (axis,)), rev(t, (axis,))
        _, t = scan_pairs(self.combine, (x, t), axis)
        return out, rev(t, (axis,)) if reverse else t

    def batch(self, xs, dims, *, axis, reverse):
        (x,), (d,) = xs, dims
        return self.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    def native(self, emit, x, *, axis, reverse):
        return emit.cumulative(x, axis, reverse, _OPERATIONS[self.name])

    def stablehlo(self, hlo, x, *, axis, reverse):
        combine = _COMBINE[_OPERATIONS[self.name]]

        def scan(x):
            x = rev(x, (axis,)) if reverse else x
            (out,) = scan_pairs(lambda a, b: (combine(*a, *b),), (x,), axis)
            return rev(out, (axis,)) if reverse else out

        return hlo.convert(hlo.apply(scan, hlo.widen(x)), x.dtype)


_OPERATIONS = {
    "cumsum": "add",
    "cumprod": "mul",
    "cummax": "max",
    "cummin": "min",
    "cumlogsumexp": "logsumexp",
}


def scan_pairs(combine: Callable[[Pair, Pair], Pair], xs: Pair, axis: int) -> Pair:
    """All running combinations along an axis, by an associative function of two pairs.

    Neighbours are combined, the results (half as many) scanned, and the gaps filled in:
    2n combinations, at a depth of 2 log n.
    """
    n = shape_of(xs[0])[axis]
    if n < 2:
        return xs
    neighbours = combine(_part(xs, axis, 0, n - 1, 2), _part(xs, axis, 1, n, 2))
    odd = scan_pairs(combine, neighbours, axis)
    later = combine(_part(odd, axis, 0, (n - 1) // 2), _part(xs, axis, 2, n, 2))
    first = _part(xs, axis, 0, 1)
    even = [concatenate(both, axis) for both in zip(first, later, strict=True)]
    return tuple(_interleave(e, o, axis) for e, o in zip(even, odd, strict=True))


def _part(xs: Pair, axis: int, start: int, stop: int, step: int = 1) -> Pair:
    """A slice of each array along one axis."""
    shape = shape_of(xs[0])
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return tuple(lax_slice(x, starts, stops, steps) for x in xs)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """An array whose elements along an axis alternate between two arrays."""
    shape, size = shape_of(even), shape_of(odd)[axis]
    pairs = [
        reshape(slice_in_dim(x, 0, size, axis=axis), (*shape[:axis], size, 1, *shape[axis + 1 :]))
        for x in (even, odd)
    ]
    joined = reshape(concatenate(pairs, axis + 1), (*shape[:axis], 2 * size, *shape[axis + 1 :]))
    if shape[axis] == size:
        return joined
    return concatenate([joined, slice_in_dim(even, size, size + 1, axis=axis)], axis)


def products_of_others(x: Any, axis: int) -> Any:
    """For each element, the product of all others along an axis."""
    one = ew.full_like(x, 1)
    shift = [(0, 0, 0)] * len(shape_of(x))
    shift[axis] = (1, -1, 0)
    before = cumprod(pad(x, one, shift), axis)
    shift[axis] = (-1, 1, 0)
    after = cumprod(pad(x, one, shift), axis, reverse=True)
    return ew.mul(before, after)


def _narrow(x: np.ndarray) -> bool:
    """Whether NumPy lacks good arithmetic for a type."""
    return x.dtype.isbuiltin != 1 or x.dtype == np.float16


def _wide(x: np.ndarray) -> Any:
    return np.float32 if x.dtype in accepted(floating) else np.int8


# A sum of n terms one after the other loses log₁₀(n) digits; in the wider type it loses none.
_SUM_TYPES = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def _running_sum(x, axis):
    dtype = _wide(x) if _narrow(x) else _SUM_TYPES.get(x.dtype, x.dtype)
    return x.cumsum(axis, dtype).astype(x.dtype, copy=False)


def _running_product(x, axis):
    if _narrow(x):
        return np.cumprod(x, axis, dtype=_wide(x)).astype(x.dtype)
    if x.dtype.kind == "c":
        # Programs begin with one, and 1 · (∞ + i) has a part 0 · ∞: as in JAX, it is NaN.
        one = np.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        x = np.concatenate([one, x], axis)
        return np.cumprod(x, axis, dtype=x.dtype)[(*[slice(None)] * axis, slice(1, None))]
    return np.cumprod(x, axis, dtype=x.dtype)


def _running(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    return lambda x, axis: ufunc.accumulate(x, axis).astype(x.dtype, copy=False)


def _running_log_sum(x, axis):
    if x.dtype.kind != "c":
        wide = x.astype(np.float64)
        return np.logaddexp.accumulate(wide, axis).astype(x.dtype)
    out = np.moveaxis(x.astype(np.complex128), axis, 0)
    for i in range(1, len(out)):
        a, b = out[i - 1], out[i]
        top = np.maximum(a.real, b.real)
        top = np.where(np.isfinite(top), top, 0)
        out[i] = top + np.log(np.exp(a - top) + np.exp(b - top))
    return np.moveaxis(out, 0, axis).astype(x.dtype)


def _combine_products(a: Pair, b: Pair) -> Pair:
    (x, dx), (y, dy) = a, b
    return ew.mul(x, y), ew.add(ew.mul(dx, y), ew.mul(x, dy))


def _combine_extremes(extreme: Callable[[Any, Any], Any]) -> Callable[[Pair, Pair], Pair]:
    def combine(a: Pair, b: Pair) -> Pair:
        (x, dx), (y, dy) = a, b
        out = extreme(x, y)
        one, half, zero = (broadcast_to(ew.full_like(x, v), shape_of(x)) for v in (1, 0.5, 0))
        tie = ew.eq(x, y)
        share_x = ew.select(tie, half, ew.select(ew.eq(x, out), one, zero))
        share_y = ew.select(tie, half, ew.select(ew.eq(y, out), one, zero))
        return out, ew.add(ew.mul(dx, share_x), ew.mul(dy, share_y))

    return combine


def _combine_log_sums(a: Pair, b: Pair) -> Pair:
    """log(eˣ + eʸ), with shares eˣ and eʸ of the sum, also where x or y are infinite."""
    (x, dx), (y, dy) = a, b
    share_x = ew.logistic(_difference(x, y))
    share_y = ew.logistic(_difference(y, x))
    out = _log_sum(x, y)
    return out, ew.add(ew.mul(dx, share_x), ew.mul(dy, share_y))


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": ew.add,
    "mul": ew.mul,
    "max": ew.max,
    "min": ew.min,
    "logsumexp": lambda x, y: _log_sum(x, y),
}


def _difference(x: Any, y: Any) -> Any:
    """x - y, which is 0 where they are equal, even if infinite."""
    return ew.select(ew.eq(x, y), broadcast_to(ew.full_like(x, 0), shape_of(x)), ew.sub(x, y))


def _log_sum(x: Any, y: Any) -> Any:
    if aval_of(x).dtype.kind == "c":
        # The larger one is where the real part of the difference is positive.
        swap = ew.lt(ew.real(x), ew.real(y))
        big, small = ew.select(swap, y, x), ew.select(swap, x, y)
        return ew.add(big, ew.log1p(ew.exp(_difference(small, big))))
    return ew.add(ew.max(x, y), ew.log1p(ew.exp(ew.neg(ew.abs(_difference(x, y))))))


class CumSum(Cumulative):
    linear = True

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct, x, *, axis, reverse):
        return [self.bind(ct, axis=axis, reverse=not reverse)]


class CumLogSumExp(Cumulative):
    dtypes = inexact


cumsum_p = CumSum("cumsum", _running_sum)
cumprod_p = Cumulative("cumprod", _running_product, _combine_products)
cummax_p = Cumulative("cummax", _running(np.maximum), _combine_extremes(ew.max))
cummin_p = Cumulative("cummin", _running(np.minimum), _combine_extremes(ew.min))
cumlogsumexp_p = CumLogSumExp("cumlogsumexp", _running_log_sum, _combine_log_sums)


def _cumulative(prim: Primitive, x: Any, axis: int, reverse: bool) -> Any:
    axis = operator.index(axis)
    if not 0 <= axis < len(shape_of(x)):  # NumPy would accept negative axes.
        prim.abstract(aval_of(x), axis=axis, reverse=reverse)
    return prim.bind(x, axis=axis, reverse=bool(reverse))


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Sums of all elements up to each position: yₖ = x₀ + … + xₖ.

    Args:
        operand: an array of numbers.
        axis: the axis to add along, not negative.
        reverse: whether to add up from the end: yₖ = xₖ + … + xₙ.

    Example:
        >>> import namoo.numpy as jnp
        >>> cumsum(jnp.array([1, 2, 3])), cumsum(jnp.array([1, 2, 3]), reverse=True)
        (Array([1, 3, 6], dtype=int32), Array([6, 5, 3], dtype=int32))
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Products of all elements up to each position: yₖ = x₀ · … · xₖ.

    Args:
        operand: an array of numbers.
        axis: the axis to multiply along, not negative.
        reverse: whether to start from the end.

    Example:
        >>> import namoo.numpy as jnp
        >>> cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The largest element up to each position, or NaN from the first NaN on.

    Args:
        operand: an array of numbers.
        axis: the axis to go along, not negative.
        reverse: whether to start from the end.

    Example:
        >>> import namoo.numpy as jnp
        >>> cummax(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The smallest element up to each position, or NaN from the first NaN on.

    Args:
        operand: an array of numbers.
        axis: the axis to go along, not negative.
        reverse: whether to start from the end.

    Example:
        >>> import namoo.numpy as jnp
        >>> cummin(jnp.array([3, 1, 2]))
        Array([3, 1, 1], dtype=int32)
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Logarithms of running sums of exponentials: yₖ = log(exp x₀ + … + exp xₖ), without overflow.

    Args:
        operand: an array of floats or complex numbers.
        axis: the axis to go along, not negative.
        reverse: whether to start from the end.

    Example:
        >>> import namoo.numpy as jnp
        >>> cumlogsumexp(jnp.array([1000.0, 1000.0]))
        Array([1000.    , 1000.6932], dtype=float32)
    """
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)
