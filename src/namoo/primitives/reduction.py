"""Reductions: extremes, products, logical operations, argmax and argmin.

`reduce_sum` is in `shape`, next to its transpose; running sums are in `cumulative`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes as _dtypes
from namoo._base.lazy import later
from namoo.analysis import sharding_rules as rules
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero
from namoo.dimensions.sizes import exceeds
from namoo.primitives.elementwise import div, eq, mul
from namoo.primitives.families import (
    Elementwise,
    accepted,
    accepts,
    bits,
    floating,
    number,
    ordered,
)
from namoo.primitives.shape import (
    broadcast_in_dim,
    convert_element_type,
    reduce_sum,
    reduced_shape,
    reshape,
    shape_of,
    transpose,
)

__all__ = [
    "argmax", "argmax_p", "argmin", "argmin_p", "reduce_and", "reduce_and_p", "reduce_max",
    "reduce_max_p", "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_precision",
    "reduce_precision_p", "reduce_prod", "reduce_prod_p", "reduce_xor", "reduce_xor_p",
]  # fmt: skip

checks = later("namoo.analysis.checks")
cumulative = later("namoo.primitives.cumulative")

Axes = Sequence[int]


class Reduction(Primitive):
    """A reduction over `axes`, which the result does not have."""

    dtypes: tuple[type, ...] = number

    def __init__(self, name: str, ufunc: np.ufunc):
        self.name = f"reduce_{name}"
        self.kind = name
        self.ufunc = ufunc
        self.accepted = accepted(self.dtypes)

    def evaluate(self, x, *, axes):
        if x.dtype not in self.accepted:  # NumPy would reduce some of them in other types
            self.abstract(EagerArray(x).aval, axes=axes)
        return self.reduce(x, axes)

    def reduce(self, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """The value, for a type that is accepted."""
        raise NotImplementedError(type(self))

    def abstract(self, x, *, axes):
        if x.dtype not in self.accepted:
            kinds = ", ".join(kind.__name__.rstrip("_") for kind in self.dtypes)
            raise TypeError(
                f"{self.name} does not accept dtype {x.dtype}. "
                f"Accepted dtypes are subtypes of {kinds}."
            )
        return x.update(shape=reduced_shape(self.name, x.shape, axes))

    def sharded(self, x, *, axes):
        return rules.without(x.entries, axes)

    def batch(self, xs, dims, *, axes):
        (x,), (d,) = xs, dims
        axes = tuple(a + (a >= d) for a in axes)
        return self.bind(x, axes=axes), d - sum(a < d for a in axes)


def identity(name: str, dtype: Any) -> Any:
    """The identity of a reduction: 0 for "sum", -∞ for "max", and so on."""
    if name in ("sum", "or", "xor"):
        return np.zeros((), dtype)
    if name == "prod":
        return np.ones((), dtype)
    if name == "and":
        return np.array(True) if dtype == np.bool_ else np.array(-1).astype(dtype)
    low = name == "max"
    if dtype == np.bool_:
        return np.array(not low)
    if accepts(dtype, (np.integer,)):
        info = _dtypes.iinfo(dtype)
        return np.array(info.min if low else info.max).astype(dtype)
    if _dtypes.supports_inf(dtype):
        return np.array(-np.inf if low else np.inf, dtype)
    info = _dtypes.finfo(dtype)
    return np.array(info.min if low else info.max, dtype)


class Choose(Reduction):
    """The largest or the smallest element; NaN where there is one."""

    dtypes = (*number, np.bool_)

    def reduce(self, x, axes):
        if x.size:
            # NumPy treats the narrow integers of ml_dtypes as int8.
            return self.ufunc.reduce(x, axis=axes).astype(x.dtype, copy=False)
        return np.full(reduced_shape(self.name, x.shape, axes), identity(self.kind, x.dtype))

    def jvp(self, primals, tangents, *, axes):
        """Ties share the derivative equally."""
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        kept = [i for i in range(len(shape_of(x))) if i not in axes]
        chosen = eq(x, broadcast_in_dim(out, shape_of(x), kept))
        chosen = convert_element_type(chosen, aval_of(t).dtype)
        return out, div(reduce_sum(mul(t, chosen), axes), reduce_sum(chosen, axes))

    def native(self, emit, x, *, axes):
        return emit.extreme(x, axes, self.name.removeprefix("reduce_"))

    def stablehlo(self, hlo, x, *, axes):
        return hlo.reduce(f"{self.kind}imum", x, identity(self.kind, x.dtype), axes)


reduce_max_p = Choose("max", np.maximum)
reduce_min_p = Choose("min", np.minimum)


class ReduceProd(Reduction):
    """Multiply elements along axes."""

    def guards(self, x, *, axes):
        return checks.overflow(self, x, {"axes": axes})

    def reduce(self, x, axes):
        if x.dtype.isbuiltin != 1 or x.dtype == np.float16:
            wide = np.float32 if accepts(x.dtype, floating) else np.int8
            return x.prod(axis=axes, dtype=wide).astype(x.dtype)
        return x.prod(axis=axes, dtype=x.dtype)

    def jvp(self, primals, tangents, *, axes):
        """Each tangent is scaled by the product of all the other elements: no division, so that
        zeros are safe."""
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        kept = [i for i in range(len(shape_of(x))) if i not in axes]
        order = [*kept, *axes]
        shape = (*(shape_of(x)[i] for i in kept), -1)
        size = aval_of(x).size
        shape = (*shape[:-1], size // max(1, int(np.prod(shape[:-1]))))
        x, t = (reshape(transpose(v, order), shape) for v in (x, t))
        return out, reduce_sum(mul(t, cumulative.products_of_others(x, len(kept))), [len(kept)])

    def native(self, emit, x, *, axes):
        return emit.fold("mul", x, axes, 1)

    def stablehlo(self, hlo, x, *, axes):
        return hlo.convert(hlo.reduce("multiply", hlo.widen(x), 1, axes), x.dtype)


reduce_prod_p = ReduceProd("prod", np.multiply)


class Logical(Reduction):
    """Bitwise and, or, exclusive or of integers; logical of booleans."""

    dtypes = bits
    sets_weak = True

    def reduce(self, x, axes):
        if x.dtype.kind == "V":  # the narrow integers of ml_dtypes have no bitwise operations
            return self.ufunc.reduce(x.astype(np.int8), axis=axes).astype(x.dtype)
        return self.ufunc.reduce(x, axis=axes)

    def abstract(self, x, *, axes):
        if not accepts(x.dtype, bits):
            raise TypeError(
                f"{self.name}: logical reduction requires operand dtype bool or int, got {x.dtype}."
            )
        return super().abstract(x, axes=axes).strong()

    def weak_result(self, weak, params):
        return False

    def native(self, emit, x, *, axes):
        name = self.name.removeprefix("reduce_")
        return emit.fold(name, x, axes, -1 if name == "and" else 0)

    def stablehlo(self, hlo, x, *, axes):
        return hlo.reduce(self.kind, x, identity(self.kind, x.dtype), axes)


reduce_and_p = Logical("and", np.bitwise_and)
reduce_or_p = Logical("or", np.bitwise_or)
reduce_xor_p = Logical("xor", np.bitwise_xor)


def _reduce(prim: Primitive, x: Any, axes: Axes) -> Any:
    axes = tuple(map(operator.index, axes))
    if axes and (min(axes) < 0 or not shape_of(x)):
        # NumPy would accept negative axes, and scalars as vectors.
        reduced_shape(prim.name, shape_of(x), axes)
    return prim.bind(x, axes=axes)


def reduce_max(operand: Any, axes: Axes) -> Any:
    """The largest element along `axes`, NaN where there is one, -∞ if there are none.

    The derivative is shared equally by all elements that are the largest.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_max(jnp.array([[1, 5], [3, 2]]), (1,))
        Array([5, 3], dtype=int32)
    """
    return _reduce(reduce_max_p, operand, axes)


def reduce_min(operand: Any, axes: Axes) -> Any:
    """The smallest element along `axes`, NaN where there is one, ∞ if there are none.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_min(jnp.array([[1, 5], [3, 2]]), (1,))
        Array([1, 2], dtype=int32)
    """
    return _reduce(reduce_min_p, operand, axes)


def reduce_prod(operand: Any, axes: Axes) -> Any:
    """The product of the elements along `axes`, 1 if there are none.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_prod(jnp.array([[1, 5], [3, 2]]), (0, 1))
        Array(30, dtype=int32)
    """
    return _reduce(reduce_prod_p, operand, axes)


def reduce_and(operand: Any, axes: Axes) -> Any:
    """Bitwise (for booleans: logical) and of the elements along `axes`.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_and(jnp.array([6, 3]), (0,))
        Array(2, dtype=int32)
    """
    return _reduce(reduce_and_p, operand, axes)


def reduce_or(operand: Any, axes: Axes) -> Any:
    """Bitwise (for booleans: logical) or of the elements along `axes`.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_or(jnp.array([6, 3]), (0,))
        Array(7, dtype=int32)
    """
    return _reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: Any, axes: Axes) -> Any:
    """Bitwise (for booleans: logical) exclusive or of the elements along `axes`.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_xor(jnp.array([6, 3]), (0,))
        Array(5, dtype=int32)
    """
    return _reduce(reduce_xor_p, operand, axes)


def check_places(name: str, shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    """Raise if the indices along an axis do not fit the index type.

    Raises:
        ValueError: the axis is too long for it.
    """
    if exceeds(shape[axis] - 1, _dtypes.iinfo(dtype).max):
        raise ValueError(
            f"{name} of shape {shape} along axis {axis}: its {dtype} indices would overflow. "
            "Choose a wider type of indices; int64 needs config.update('jax_enable_x64', True)."
        )


class Locate(Primitive):
    """The index of the largest or smallest element along an axis, or of the first NaN."""

    sets_weak = True

    def __init__(self, name: str, find: Any):
        self.name = name
        self.find = find

    def evaluate(self, x, *, axes, index_dtype):
        (axis,) = axes
        kind = x.dtype.kind
        if (
            kind == "c"
            or not 0 <= axis < x.ndim
            or index_dtype.kind not in "iu"
            or x.shape[axis] >> 8 * index_dtype.itemsize - 1
        ):
            # NumPy would accept all of these.
            self.abstract(EagerArray(x).aval, axes=axes, index_dtype=index_dtype)
        if kind == "V":
            x = x.astype(np.float32 if accepts(x.dtype, floating) else np.int8)
        return self.find(x, axis).astype(index_dtype)

    def abstract(self, x, *, axes, index_dtype):
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"Invalid axis {axis} for operand of {self.name} with shape {x.shape}: it must be "
                f"in [0, {x.ndim})."
            )
        if not accepts(index_dtype, (np.integer,)):
            raise TypeError(f"{self.name}: index_dtype must be an integer type, got {index_dtype}")
        if not accepts(x.dtype, ordered):
            raise TypeError(
                f"{self.name} needs numbers that can be ordered: integers, floats or booleans; "
                f"got {x.dtype}."
            )
        check_places(self.name, x.shape, axis, index_dtype)
        if x.shape[axis] == 0:
            raise ValueError(
                f"argmin and argmax require non-empty reduced dimension: axis {axis} of operand "
                f"shape {x.shape} is empty."
            )
        return ShapedArray(reduced_shape(self.name, x.shape, axes), index_dtype)

    def sharded(self, x, *, axes, index_dtype):
        return rules.without(x.entries, axes)

    def weak_result(self, weak, params):
        return False

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        return out, Zero.of(out)

    def batch(self, xs, dims, *, axes, index_dtype):
        (x,), (d,) = xs, dims
        (axis,) = axes
        axis += axis >= d
        return self.bind(x, axes=(axis,), index_dtype=index_dtype), d - (axis < d)

    def native(self, emit, x, *, axes, index_dtype):
        return emit.locate(x, axes[0], index_dtype, "gt" if self.name == "argmax" else "lt")

    def stablehlo(self, hlo, x, *, axes, index_dtype):
        kind, op = self.name.removeprefix("arg"), hlo.combine

        def earlier(a, i, b, j):
            """Whether the element a at i comes before b at j: NaN first, and ties in order."""
            nan_a, nan_b = hlo.compare(a, a, "NE"), hlo.compare(b, b, "NE")
            better = hlo.compare(a, b, "GT" if kind == "max" else "LT")
            same = op("or", hlo.compare(a, b, "EQ"), op("and", nan_a, nan_b))
            better = op("or", better, op("and", nan_a, hlo.op("not", nan_b, result=nan_b)))
            return op("or", better, op("and", same, hlo.compare(i, j, "LT")))

        def choose(a, i, b, j):
            first = earlier(a, i, b, j)
            return hlo.select(first, a, b), hlo.select(first, i, j)

        places = hlo.iota(x.shape, index_dtype, axes[0])
        starts = hlo.constant(identity(kind, x.dtype)), hlo.constant(0, index_dtype)
        return hlo.reduce_by(choose, [x, places], starts, axes)[1]


argmax_p = Locate("argmax", np.ndarray.argmax)
argmin_p = Locate("argmin", np.ndarray.argmin)


def _locate(prim: Primitive, x: Any, axis: int, index_dtype: Any) -> Any:
    dtype = _dtypes.canonicalize_dtype(index_dtype)
    return prim.bind(x, axes=(operator.index(axis),), index_dtype=dtype)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first largest element along an axis, or of the first NaN.

    Args:
        operand: an array of integers, floats or booleans.
        axis: the axis, not negative.
        index_dtype: the integer type of the result.

    Raises:
        ValueError: the axis is out of range or empty.
        TypeError: the operand is complex, or the index type is not an integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> argmax(jnp.array([[1, 5], [3, 2]]), 1, jnp.int32)
        Array([1, 0], dtype=int32)
    """
    return _locate(argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first smallest element along an axis, or of the first NaN.

    Args:
        operand: an array of integers, floats or booleans.
        axis: the axis, not negative.
        index_dtype: the integer type of the result.

    Raises:
        ValueError: the axis is out of range or empty.
        TypeError: the operand is complex, or the index type is not an integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> argmin(jnp.array([[1, 5], [3, 2]]), 1, jnp.int32)
        Array([0, 1], dtype=int32)
    """
    return _locate(argmin_p, operand, axis, index_dtype)


def _reduce_precision(x, *, exponent_bits, mantissa_bits):
    """Round the mantissa to nearest (ties to even), then the exponent: to infinity above its
    range, to zero below."""
    info = _dtypes.finfo(x.dtype)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    code = np.asarray(x, order="C").view(unsigned)
    one = unsigned.type(1)
    sign = code & (one << unsigned.type(info.bits - 1))
    code = code ^ sign
    drop = info.nmant - mantissa_bits
    if drop > 0:
        last = (code >> unsigned.type(drop)) & one
        code = code + ((one << unsigned.type(drop - 1)) - one) + last
        code = code & ~((one << unsigned.type(drop)) - one)
    if exponent_bits < info.nexp:
        bias, reach = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = code >> unsigned.type(info.nmant)
        infinity = unsigned.type((1 << info.nexp) - 1) << unsigned.type(info.nmant)
        code = np.where(exponent > bias + reach, infinity, code)
        code = np.where(exponent <= bias - reach, unsigned.type(0), code)
    return np.where(np.isnan(x), x, (code | sign).astype(unsigned).view(x.dtype))


class ReducePrecision(Elementwise):
    def transpose(self, ct, x, **params):
        return [self.bind(ct, **params)]

    def native(self, emit, x, **params):
        # Native code computes float16 in float32, where its subnormal numbers have other bits.
        if x.dtype == np.float16:
            raise emit.unsupported()
        return emit.map(self.name, x, **params)


reduce_precision_p = ReducePrecision(
    "reduce_precision",
    _reduce_precision,
    jvp=[lambda t, y, x, **params: reduce_precision_p.bind(t, **params)],
    dtypes=floating,
    stablehlo=lambda hlo, x, **bits: hlo.op(
        "reduce_precision", x, **{name: f"{n} : i32" for name, n in bits.items()}
    ),
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to the values of a narrower floating type, in the same type.

    Args:
        operand: an array of floats.
        exponent_bits: at least 1: above its range is infinity, below it zero.
        mantissa_bits: at least 0: rounding is to nearest, ties to even.

    Example:
        >>> reduce_precision(1.1, 5, 10)
        Array(1.0996094, dtype=float32, weak_type=True)
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    return reduce_precision_p.bind(
        operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )
