"""Reductions: sums, products, extremes, means and truth over axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.floating_errors import floating_errors_ignored
from namoo._base.tracer_advice import INTEGER_ADVICE
from namoo.core.array import Array
from namoo.core.trace import Tracer, axis_size
from namoo.eager import attach_shortcuts
from namoo.numpy import arithmetic, elementary, logic
from namoo.numpy.promote import array_of, as_type, broadcast_to, promote_types
from namoo.numpy.same_type import choose, const, is_complex, is_kind
from namoo.primitives import bits, reduction
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes
from namoo.primitives.compare import ne_p
from namoo.primitives.dimensions import size_array


class Reduction:
    """The parts in which reductions differ."""

    def __init__(self, name: str, reduce: Any, combine: Any, identity: Any, has_identity=True):
        self.name, self.reduce, self.combine = name, reduce, combine
        self.identity, self.has_identity = identity, has_identity


_sum = Reduction("sum", shapes.reduce_sum, lax.add, 0)
_prod = Reduction("prod", reduction.reduce_prod, lax.mul, 1)
_max = Reduction("max", reduction.reduce_max, lax.max, -np.inf, False)
_min = Reduction("min", reduction.reduce_min, lax.min, np.inf, False)
_any = Reduction("any", reduction.reduce_or, bits.bitwise_or, False)
_all = Reduction("all", reduction.reduce_and, bits.bitwise_and, True)
_xor = Reduction("xor", reduction.reduce_xor, bits.bitwise_xor, 0)
_and = Reduction("bitwise_and", reduction.reduce_and, bits.bitwise_and, -1)
_or = Reduction("bitwise_or", reduction.reduce_or, bits.bitwise_or, 0)


# The collective that reduces over axes that `vmap` or another transformation named.
_ACROSS = {"sum": "psum", "max": "pmax", "min": "pmin"}


def static_axes(axis: Any, name: str) -> Any:
    """The `axis` argument as None, an integer or a tuple of integers; axes may have names."""
    if axis is None or type(axis) is int or isinstance(axis, str):
        return axis
    if isinstance(axis, Tracer):
        axis.refuse(
            errors.TracerIntegerConversionError,
            f"a concrete axis for jnp.{name}",
            INTEGER_ADVICE,
        )
    try:
        return operator.index(axis)
    except TypeError:
        return tuple(a if isinstance(a, str) else operator.index(a) for a in axis)


def named_axes(axis: Any) -> tuple[tuple[str, ...], Any]:
    """The axes in an `axis` argument that a transformation named, and the rest of it."""
    if axis is None or type(axis) is int:
        return (), axis
    if isinstance(axis, str):
        return (axis,), ()
    if isinstance(axis, (tuple, list)) and (names := [a for a in axis if isinstance(a, str)]):
        return tuple(names), tuple(a for a in axis if not isinstance(a, str))
    return (), axis


def reduced_axes(axis: Any, ndim: int, name: str = "reduction") -> tuple[int, ...]:
    """The axes that an `axis` argument means: all for None."""
    axis = static_axes(axis, name)
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(shapes.canonical_axis(a, ndim) for a in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis: duplicate value in 'axis': {axis}")
    return axes


def refuse_out(name: str, out: Any) -> None:
    """Raise where an `out` argument is given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable. Use the "
            "result instead."
        )


def check_where(name: str, where: Any) -> Array | None:
    """The `where` argument as a boolean array."""
    if where is None:
        return None
    where = array_of(name, where)
    if where.dtype != np.bool_:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got where.dtype={where.dtype}."
        )
    return where


def identity_of(x: Array, value: Any) -> np.ndarray:
    """An identity of a reduction in the type of `x`: infinities become the extreme numbers."""
    if x.dtype == np.bool_:
        return np.asarray(value > 0)
    if np.isinf(value) and not dtypes.supports_inf(x.dtype):
        info = dtypes.iinfo if is_kind(x, np.integer) else dtypes.finfo
        return np.asarray(info(x.dtype).min if value < 0 else info(x.dtype).max, x.dtype)
    return np.asarray(value).astype(x.dtype)


def wide_integer(dtype: Any) -> Any:
    """Integers narrower than the default one are summed in that one."""
    if dtype == dtypes.bool_:
        return dtypes.default_int_dtype()
    for kind, default in (
        (np.unsignedinteger, dtypes.default_uint_dtype()),
        (np.signedinteger, dtypes.default_int_dtype()),
    ):
        if dtypes.issubdtype(dtype, kind) and dtypes.iinfo(dtype).bits < default.itemsize * 8:
            return default
    return dtype


def wide_float(dtype: Any) -> Any:
    """16-bit floats are summed in 32 bits."""
    if dtype == dtypes.float16 or dtype == dtypes.bfloat16:
        return dtypes.float32
    return dtype


def _reduce(
    kind: Reduction,
    x: Array,
    *,
    axis: Any,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = False,
    widen: bool = False,
) -> Array:
    """The common implementation of all reductions; `x` is checked, apart from its dtype."""
    name = kind.name
    names, axis = named_axes(axis)
    refuse_out(name, out)
    where = check_where(name, where)
    axes = reduced_axes(axis, x.ndim, name)
    if initial is None and not kind.has_identity:
        if where is not None:
            raise ValueError(
                f"reduction operation {name} does not have an identity, so to use a where mask "
                "one has to specify 'initial'"
            )
        if 0 in [x.shape[a] for a in axes]:
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: the shape "
                f"is {x.shape}. Pass initial=… for the result of an empty reduction."
            )
    if dtype is None:
        result_dtype = wide_integer(x.dtype) if promote_integers else x.dtype
    else:
        result_dtype = dtypes.check_user_dtype_supported(dtype, name)
    work_dtype = wide_float(result_dtype) if widen and dtype is None else result_dtype
    x = as_type(x, work_dtype)
    reduce, combine = kind.reduce, kind.combine
    if x.dtype == dtypes.bool_ and name in ("sum", "prod"):
        other = _any if name == "sum" else _all
        reduce, combine = other.reduce, other.combine
    if where is not None:
        x = choose(where, x, identity_of(x, kind.identity))
    result = reduce(x, axes) if axes else x
    if names:
        if name not in _ACROSS:
            raise NotImplementedError(
                f"jnp.{name} cannot reduce over the named axes {names}; jnp.sum, mean, max and min "
                "can, or gather them first: lax.all_gather(x, name)."
            )
        from namoo.control import collectives  # imported here because few programs need it

        result = getattr(collectives, _ACROSS[name])(result, names)
    if initial is not None:
        first = as_type(array_of(name, initial), x.dtype)
        if first.shape:
            raise ValueError(f"initial value must be a scalar. Got array of shape {first.shape}")
        result = combine(first, result)
    if keepdims:
        result = shapes.expand_dims(result, axes)
    return as_type(result, result_dtype)


def _numeric(x: Array) -> Array:
    return as_type(x, dtypes.to_numeric_dtype(x.dtype)) if x.dtype == np.bool_ else x


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of the elements over axes.

    Args:
        a: the array.
        axis: an axis, a tuple of axes, or None for all. The name of an axis that is mapped over
            (`vmap(f, axis_name="i")`) is an axis, too.
        dtype: type to sum in; 16-bit floats are summed in 32 bits by default.
        out: not supported.
        keepdims: keep the axes, with length 1.
        initial: a number that is added.
        where: boolean array; elements where it is false are left out.
        promote_integers: whether narrow integers are summed in the default integer type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
    """
    return _reduce(
        _sum,
        _numeric(array_of("sum", a)),
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
        promote_integers=promote_integers,
        widen=True,
    )


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """The product of the elements over axes.

    Args:
        a, axis, dtype, out, keepdims, where, promote_integers: as for `sum`.
        initial: a factor.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([ 2, 12], dtype=int32)
    """
    return _reduce(
        _prod,
        _numeric(array_of("prod", a)),
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
        promote_integers=promote_integers,
        widen=True,
    )


def max(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The largest element over axes; NaN where one is.

    Args:
        a, axis, out, keepdims: as for `sum`.
        initial: a least value of the result.
        where: boolean array; elements where it is false are left out. Needs `initial`.

    Raises:
        ValueError: no elements and no `initial`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
        Array([3, 5], dtype=int32)
    """
    return _reduce(
        _max,
        array_of("max", a),
        axis=axis,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def min(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The smallest element over axes; NaN where one is.

    Args:
        a, axis, out, keepdims: as for `sum`.
        initial: a largest value of the result.
        where: boolean array; elements where it is false are left out. Needs `initial`.

    Raises:
        ValueError: no elements and no `initial`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=1)
        Array([1, 3], dtype=int32)
    """
    return _reduce(
        _min,
        array_of("min", a),
        axis=axis,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


amax, amin = max, min


def _truth(x: Array) -> Array:
    return as_type(lax.real(x) if is_complex(x) else x, np.dtype(np.bool_))


def all(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Whether all elements over axes are true (not zero).

    Args:
        a, axis, out, keepdims, where: as for `sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    x = _truth(array_of("all", a))
    return _reduce(_all, x, axis=axis, out=out, keepdims=keepdims, where=where)


def any(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Whether any element over axes is true (not zero).

    Args:
        a, axis, out, keepdims, where: as for `sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=1)
        Array([ True, False], dtype=bool)
    """
    x = _truth(array_of("any", a))
    return _reduce(_any, x, axis=axis, out=out, keepdims=keepdims, where=where)


def count(x: Array, axis: Any, keepdims: bool, where: Array | None, dtype: Any) -> Any:
    """The number of elements that are reduced, in the type of the computation."""
    if where is not None:
        return sum(broadcast_to(where, x.shape), axis, dtype=dtype, keepdims=keepdims)
    names, axis = named_axes(axis)
    axes = reduced_axes(axis, x.ndim)
    size = math.prod(x.shape[a] for a in axes) * axis_size(names)
    return size_array(size, dtype)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """The arithmetic mean over axes.

    Args:
        a, axis, out, keepdims, where: as for `sum`.
        dtype: type to compute in; a float type by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.mean(jnp.array([[1, 2], [3, 6]]), axis=0)
        Array([2., 4.], dtype=float32)
    """
    x = array_of("mean", a)
    refuse_out("mean", out)
    where = check_where("mean", where)
    if dtype is None:
        result_dtype = dtypes.to_inexact_dtype(x.dtype)
        work_dtype = wide_float(result_dtype)
    else:
        result_dtype = work_dtype = dtypes.check_user_dtype_supported(dtype, "mean")
    axis = static_axes(axis, "mean")
    total = sum(x, axis, dtype=work_dtype, keepdims=keepdims, where=where)
    return as_type(lax.div(total, count(x, axis, keepdims, where, work_dtype)), result_dtype)


def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean Σ w·a / Σ w over axes.

    Args:
        a, axis, keepdims: as for `sum`.
        weights: of the shape of `a`, or of its axes `axis`; ones by default.
        returned: also return the sum of the weights.

    Raises:
        ValueError: weights whose shape does not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.average(jnp.array([1.0, 4.0]), weights=jnp.array([2.0, 1.0]))
        Array(2., dtype=float32)
    """
    axis = static_axes(axis, "average")
    if weights is None:
        (x,) = promote_types("average", a, to=dtypes.to_inexact_dtype)
        axes = reduced_axes(axis, x.ndim)
        out = mean(x, axis, keepdims=keepdims)
        total = shapes.full((), size_array(math.prod(x.shape[i] for i in axes), out.dtype))
    else:
        x, w = promote_types("average", a, weights, to=dtypes.to_inexact_dtype)
        axes = reduced_axes(axis, x.ndim)
        if x.shape != w.shape:
            if axis is None:
                raise ValueError("Axis must be specified when shapes of a and weights differ.")
            if w.shape != tuple(x.shape[i] for i in axes):
                raise ValueError(
                    "Shape of weights must be consistent with shape of a along specified axis, "
                    f"got weights of shape {w.shape} for a of shape {x.shape} and axis {axis}."
                )
            full = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
            w = shapes.reshape(w, full, np.argsort(axes).tolist())
        total = sum(w, axis, keepdims=keepdims)
        out = sum(arithmetic.multiply(x, w), axis, keepdims=keepdims)
        out = arithmetic.true_divide(out, total)
    return (out, broadcast_to(total, out.shape)) if returned else out


def degrees_removed(ddof: Any, correction: Any) -> Any:
    """What is subtracted from the count in a variance."""
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def variance_dtypes(dtype: Any, given: Any, name: str) -> tuple[Any, Any]:
    """The type in which a variance is computed, and that of the result."""
    if given is not None:
        given = dtypes.check_user_dtype_supported(given, name)
        if dtypes.issubdtype(dtype, np.complexfloating) and not dtypes.issubdtype(
            given, np.complexfloating
        ):
            raise ValueError(
                f"jnp.{name} of complex numbers does not take the real dtype {given}: take the "
                "variance of the real and imaginary parts, or leave dtype out."
            )
        return wide_float(given), given
    work = dtypes.to_inexact_dtype(dtype)
    return wide_float(work), dtypes.finfo(work).dtype if work.kind == "c" else work


def squared_size(x: Array) -> Array:
    """|x|²"""
    return lax.real(lax.mul(x, lax.conj(x))) if is_complex(x) else lax.square(x)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The variance Σ |a - mean|² / (n - ddof) over axes.

    Args:
        a, axis, out, keepdims, where: as for `sum`.
        dtype: type to compute in; a float type by default.
        ddof: what is subtracted from the count.
        mean: the mean, if it is already known, with the axes kept.
        correction: another name of `ddof`.

    Returns:
        The variance; NaN where n ≤ ddof.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.var(jnp.array([1.0, 2.0, 3.0])), jnp.var(jnp.array([1.0, 3.0]), ddof=1)
        (Array(0.6666667, dtype=float32), Array(2., dtype=float32))
    """
    correction = degrees_removed(ddof, correction)
    x = array_of("var", a)
    refuse_out("var", out)
    where = check_where("var", where)
    work_dtype, result_dtype = variance_dtypes(x.dtype, dtype, "var")
    axis = static_axes(axis, "var")
    x = as_type(x, work_dtype)
    if mean is None:
        center = _mean(x, axis, dtype=work_dtype, keepdims=True, where=where)
    else:
        center = as_type(array_of("var", mean), work_dtype)
    square = squared_size(arithmetic.subtract(x, center))
    n = count(x, axis, keepdims, where, square.dtype)
    total = sum(square, axis, dtype=square.dtype, keepdims=keepdims, where=where)
    if isinstance(n, np.ndarray) and isinstance(correction, (int, float)):
        with floating_errors_ignored():
            n = np.asarray(np.subtract(n, square.dtype.type(correction)))
        result = as_type(lax.div(total, n), result_dtype)
        return result if n > 0 else choose(np.asarray(False), result, const(result, np.nan))
    n = lax.sub(n, as_type(correction, square.dtype))
    result = as_type(lax.div(total, n), result_dtype)
    return choose(lax.gt(n, const(n, 0)), result, const(result, np.nan))


_mean = mean


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The standard deviation, the root of `var`, over axes.

    Args:
        a, axis, dtype, out, ddof, keepdims, where, mean, correction: as for `var`.

    Raises:
        ValueError: a dtype that is neither floating nor complex.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.std(jnp.array([1.0, 3.0]))
        Array(1., dtype=float32)
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "std")
        if not dtypes.issubdtype(dtype, np.inexact):
            raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    array_of("std", a)
    refuse_out("std", out)
    correction = degrees_removed(ddof, correction)
    return lax.sqrt(
        var(
            a,
            axis,
            dtype,
            keepdims=keepdims,
            where=check_where("std", where),
            mean=mean,
            correction=correction,
        )
    )


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
    """The difference of the largest and the smallest element over axes.

    Args:
        a, axis, out, keepdims: as for `sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ptp(jnp.array([[1, 5], [3, 4]]), axis=1)
        Array([4, 1], dtype=int32)
    """
    refuse_out("ptp", out)
    x = array_of("ptp", a)
    return lax.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements over axes are not zero.

    Args:
        a, axis, keepdims: as for `sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.count_nonzero(jnp.array([[0, 5], [3, 4]]), axis=1)
        Array([1, 2], dtype=int32)
    """
    x = array_of("count_nonzero", a)
    nonzero = ne_p.bind(x, const(x, 0))
    return sum(nonzero, axis, dtype=dtypes.default_int_dtype(), keepdims=keepdims)


def _log_sum(x: Array, *, axis, dtype, keepdims, initial, where):
    """log Σ exp x, without overflow."""
    (x,) = promote_types("logaddexp.reduce", x, to=dtypes.to_inexact_dtype)
    real = lax.real(x) if is_complex(x) else x
    top = max(real, axis, keepdims=True, where=where, initial=-np.inf)
    top = choose(lax.is_finite(top), top, const(top, 0))
    top = as_type(shapes.stop_gradient_p.bind(top), x.dtype)
    total = sum(elementary.exp(arithmetic.subtract(x, top)), axis, keepdims=keepdims, where=where)
    out = lax.add(elementary.log(total), shapes.reshape(top, total.shape))
    return out if initial is None else elementary.logaddexp(initial, out)


def _log_sum2(x: Array, *, axis, dtype, keepdims, initial, where):
    scale = float(np.log(2))
    initial = None if initial is None else arithmetic.multiply(initial, scale)
    x = arithmetic.multiply(x, scale)
    out = _log_sum(x, axis=axis, dtype=None, keepdims=keepdims, initial=initial, where=where)
    return arithmetic.true_divide(out, scale)


def _of_bits(kind: Reduction) -> Callable[..., Array]:
    def reduce(x, **options):
        if is_kind(x, np.inexact):
            raise ValueError(f"integer argument required; got dtype={x.dtype}")
        return _reduce(kind, x, **options)

    return reduce


def _of_truth(kind: Reduction) -> Callable[..., Array]:
    return lambda x, **options: _reduce(kind, _truth(x), **options)


def _of_order(kind: Reduction) -> Callable[..., Array]:
    return lambda x, **options: _reduce(kind, x, **options)


attach_shortcuts(globals())

arithmetic.add.define(reduce=sum)
arithmetic.multiply.define(reduce=prod)
logic.maximum.define(reduce=_of_order(_max))
logic.minimum.define(reduce=_of_order(_min))
logic.bitwise_and.define(reduce=_of_bits(_and))
logic.bitwise_or.define(reduce=_of_bits(_or))
logic.bitwise_xor.define(reduce=_of_bits(_xor))
logic.logical_and.define(reduce=_of_truth(_all))
logic.logical_or.define(reduce=_of_truth(_any))
logic.logical_xor.define(reduce=_of_truth(_xor))
elementary.logaddexp.define(reduce=_log_sum)
elementary.logaddexp2.define(reduce=_log_sum2)
