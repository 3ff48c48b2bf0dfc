"""Products of arrays summed over shared axes: `dot_general`, and functions based on it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.config import config
from namoo._base.lazy import later
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero, is_linear
from namoo.primitives.families import add_any
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import argsort, convert_element_type_p, shape_of, transpose

__all__ = ["batch_matmul", "dot", "dot_general", "dot_general_p", "DotDimensionNumbers"]

precisions = later("namoo.primitives.precision")

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""`((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`"""


class _Dimensions(tuple):
    """Dimension numbers as tuples, printed as programs show them."""

    __slots__ = ()

    def __str__(self) -> str:
        (xc, yc), (xb, yb) = self
        return f"(({list(xc)}, {list(yc)}), ({list(xb)}, {list(yb)}))"


def _is_algorithm(precision: Any) -> bool:
    return precision is not None and precisions.is_algorithm(precision)


def _axes(axes: Any) -> tuple[int, ...]:
    try:
        return (operator.index(axes),)
    except TypeError:
        return tuple(map(operator.index, axes))


def _tuples(dimension_numbers: Any) -> _Dimensions:
    (xc, yc), (xb, yb) = dimension_numbers
    return _Dimensions(((_axes(xc), _axes(yc)), (_axes(xb), _axes(yb))))


_tuples_cached = cached(
    "primitives.contract dimension numbers", bound=4096, keyed_by="dimension numbers"
)(_tuples)


def _canonical_dimensions(dimension_numbers: Any) -> _Dimensions:
    if type(dimension_numbers) is _Dimensions:
        return dimension_numbers
    try:
        return _tuples_cached(dimension_numbers)
    except TypeError:  # lists are not hashable
        return _tuples(dimension_numbers)


class DotGeneral(Primitive):
    """Multiply, and sum over contracted axes; batch axes are common to both operands.

    The result's axes are the batch axes, the other axes of the left operand, and those of the
    right one.
    """

    name = "dot_general"
    quiet_params = ("precision", "preferred_element_type")

    def evaluate(self, x, y, *, dimension_numbers, precision, preferred_element_type):
        multiply = _plan(dimension_numbers, x.ndim, y.ndim)
        dtype = x.dtype
        if (
            dtype == y.dtype
            and dtype.char in "fdFD"
            and (preferred_element_type is None or preferred_element_type == dtype)
            and not _is_algorithm(precision)
        ):
            return multiply(x, y)
        return _multiply_any(multiply, x, y, precision, preferred_element_type)

    def kernel(self, x, y, *, dimension_numbers, precision, preferred_element_type):
        if (
            x.dtype == y.dtype
            and x.dtype.char in "fdFD"
            and preferred_element_type in (None, x.dtype)
            and not _is_algorithm(precision)
        ):
            return _plan(dimension_numbers, x.ndim, y.ndim)
        params = dict(precision=precision, preferred_element_type=preferred_element_type)
        return super().kernel(x, y, dimension_numbers=dimension_numbers, **params)

    def abstract(self, x, y, *, dimension_numbers, precision, preferred_element_type):
        shape = _result_shape(x.shape, y.shape, dimension_numbers)
        dtype = _result_dtype(x.dtype, y.dtype, preferred_element_type, _is_algorithm(precision))
        return ShapedArray(shape, dtype, x.weak_type and y.weak_type)

    def sharded(self, x, y, *, dimension_numbers, **params):
        (xc, yc), (xb, yb) = dimension_numbers
        for what, left, right in (
            ("lhs batch dimensions and rhs batch", xb, yb),
            ("contracting", xc, yc),
        ):
            both = [[x.entries[i] for i in left], [y.entries[i] for i in right]]
            if any(None not in pair and pair[0] != pair[1] for pair in zip(*both, strict=True)):
                rules.refuse(
                    f"dot_general requires {what} dimensions to have "
                    f"{'the ' * (what[0] == 'l')}consistent sharding, got {both[0]} and {both[1]}."
                )
        contracted = [(x.entries[i], y.entries[j]) for i, j in zip(xc, yc, strict=True)]
        if any(None not in pair for pair in contracted):
            rules.refuse(
                "Contracting dimensions are sharded and it is ambiguous how the output should be "
                "sharded. Please specify the output sharding via the `out_sharding` parameter. Got "
                f"lhs {x.spec} and rhs {y.spec}."
            )
        batch = [x.entries[i] or y.entries[j] for i, j in zip(xb, yb, strict=True)]
        return [
            *batch,
            *rules.without(x.entries, (*xc, *xb)),
            *rules.without(y.entries, (*yc, *yb)),
        ]

    def jvp(self, primals, tangents, **params):
        return bilinear_jvp(self, primals, tangents, **params)

    def transpose(self, ct, x, y, *, dimension_numbers, precision, preferred_element_type):
        (xc, yc), (xb, yb) = dimension_numbers
        batch = tuple(range(len(xb)))
        n = len(batch)
        if is_linear(x):
            x_free = _others(x.aval.ndim, xc, xb)
            y_free = _others(len(shape_of(y)), yc, yb)
            in_ct = tuple(range(n + len(x_free), n + len(x_free) + len(y_free)))
            out = dot_general(
                ct, y, ((in_ct, y_free), (batch, yb)), precision, preferred_element_type
            )
            axes = (*xb, *x_free, *(xc[i] for i in argsort(yc)))
            return [_as_operand(out, axes, x.aval), None]
        x_free = _others(len(shape_of(x)), xc, xb)
        y_free = _others(y.aval.ndim, yc, yb)
        in_ct = tuple(range(n, n + len(x_free)))
        # The known operand is on the left, so that the gradient of a matrix needs no transposition.
        out = dot_general(x, ct, ((x_free, in_ct), (xb, batch)), precision, preferred_element_type)
        axes = (*yb, *(yc[i] for i in argsort(xc)), *y_free)
        return [None, _as_operand(out, axes, y.aval)]

    def batch(self, xs, dims, *, dimension_numbers, **params):
        (x, y), (dx, dy) = xs, dims
        (xc, yc), (xb, yb) = dimension_numbers
        if dx is not None:
            xc, xb = _after(xc, dx), _after(xb, dx)
        if dy is not None:
            yc, yb = _after(yc, dy), _after(yb, dy)
        if dx is not None and dy is not None:
            xb, yb, out = (dx, *xb), (dy, *yb), 0
        elif dx is not None:
            out = len(xb) + _others(len(shape_of(x)), xc, xb).index(dx)
        else:
            x_free = _others(len(shape_of(x)), xc, xb)
            out = len(xb) + len(x_free) + _others(len(shape_of(y)), yc, yb).index(dy)
        numbers = _Dimensions(((xc, yc), (xb, yb)))
        return self.bind(x, y, dimension_numbers=numbers, **params), out

    def native(self, emit, x, y, *, dimension_numbers, precision, preferred_element_type):
        if _is_algorithm(precision):
            raise emit.unsupported()  # the algorithm rounds operands in its own way
        contract, batch = dimension_numbers
        return emit.contraction(x, y, contract, batch)

    def stablehlo(self, hlo, x, y, *, dimension_numbers, precision, preferred_element_type):
        (xc, yc), (xb, yb) = dimension_numbers
        numbers = hlo.record(
            "dot",
            lhs_batching_dimensions=xb,
            rhs_batching_dimensions=yb,
            lhs_contracting_dimensions=xc,
            rhs_contracting_dimensions=yc,
        )
        return product_in_xla(
            hlo, "dot_general", x, y, precision, {"dot_dimension_numbers": numbers}
        )


def bilinear_jvp(prim: Primitive, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    """The jvp rule of an operation that is linear in each of two operands."""
    (x, y), (dx, dy) = primals, tangents
    out = prim.bind(x, y, **params)
    left = dx if type(dx) is Zero else prim.bind(dx, y, **params)
    right = dy if type(dy) is Zero else prim.bind(x, dy, **params)
    return out, add_any(left, right)


def _others(ndim: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """The axes that are in no group, in order."""
    used = {i for group in taken for i in group}
    return tuple(i for i in range(ndim) if i not in used)


def _after(axes: tuple[int, ...], d: int) -> tuple[int, ...]:
    """Axes of an array after a new axis was inserted at `d`."""
    return tuple(i + (i >= d) for i in axes)


def _as_operand(out: Any, axes: Sequence[int], aval: ShapedArray) -> Any:
    """Give a cotangent the operand's order of axes and dtype."""
    out = transpose(out, argsort(axes))
    if aval_of(out).dtype == aval.dtype:
        return out
    return convert_element_type_p.bind(out, new_dtype=aval.dtype, weak_type=aval.weak_type)


@cached("primitives.contract result shapes", bound=4096, keyed_by="shapes, dimension numbers")
def _result_shape(
    x_shape: tuple[int, ...], y_shape: tuple[int, ...], dimension_numbers: _Dimensions
) -> tuple[int, ...]:
    """The shape of a product, or an error that names the mismatch."""
    _check_dimensions(dimension_numbers, len(x_shape), len(y_shape))
    (xc, yc), (xb, yb) = dimension_numbers
    for kind, xs, ys in (("batch", xb, yb), ("contracting", xc, yc)):
        left, right = tuple(x_shape[i] for i in xs), tuple(y_shape[i] for i in ys)
        if left != right:
            raise TypeError(
                f"dot_general requires {kind} dimensions to have the same shape, got {left} "
                f"and {right}: axes {xs} of the left operand, of shape {x_shape}, and axes "
                f"{ys} of the right operand, of shape {y_shape}."
            )
    return (
        *(x_shape[i] for i in xb),
        *(x_shape[i] for i in _others(len(x_shape), xc, xb)),
        *(y_shape[i] for i in _others(len(y_shape), yc, yb)),
    )


def _check_dimensions(dimension_numbers: Any, x_ndim: int, y_ndim: int) -> None:
    (xc, yc), (xb, yb) = dimension_numbers
    for side, ndim, contracting, batch in (("lhs", x_ndim, xc, xb), ("rhs", y_ndim, yc, yb)):
        both = (*contracting, *batch)
        if not all(0 <= d < ndim for d in both):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {side}_batch {batch} and "
                f"{side}_contracting {contracting} for {side} of rank {ndim}."
            )
        for kind, group in (("batch", batch), ("contracting", contracting)):
            if len(set(group)) != len(group):
                raise TypeError(
                    f"dot_general requires {side} {kind} dimensions to be distinct, got {group}."
                )
        if len(set(both)) != len(both):
            raise TypeError(
                f"dot_general requires {side} batch dimensions to be disjoint from contracting "
                f"dimensions, got {side}_batch {batch} and {side}_contracting {contracting}."
            )
    if len(xb) != len(yb):
        raise TypeError(
            "dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got "
            f"lhs_batch {xb} and rhs_batch {yb}."
        )
    if len(xc) != len(yc):
        raise TypeError(
            "dot_general requires equal numbers of contracting dimensions, got lhs_contracting "
            f"{xc} and rhs_contracting {yc}."
        )


@cached("primitives.contract result types", bound=1024, keyed_by="types, preferred type")
def _result_dtype(x: np.dtype, y: np.dtype, preferred: Any, has_algorithm: bool) -> np.dtype:
    """The more precise of two types, or the preferred one."""
    rank_x, rank_y = _rank("dot_general", x), _rank("dot_general", y)
    if rank_x == rank_y and x != y:
        raise TypeError(
            f"dot_general cannot multiply {x} and {y}: convert one of them to the other's type."
        )
    dtype = x if rank_x >= rank_y else y
    if preferred is None or preferred == dtype:
        return dtype
    if (
        not has_algorithm
        and not dtypes.issubdtype(dtype, np.floating)
        and _rank("dot_general", preferred)[3] < rank_x[3]
    ):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type {preferred} for a result of type {dtype}."
        )
    return preferred


def _rank(name: str, dtype: Any) -> tuple:
    """Types in order of precision: complex, range, mantissa, width, sign."""
    if dtype == np.bool_:
        return False, -1, -1, 1, True
    if dtypes.issubdtype(dtype, np.integer):
        signed = not dtypes.issubdtype(dtype, np.unsignedinteger)
        return False, -1, -1, dtypes.iinfo(dtype).bits, signed
    if not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"{name} multiplies numbers; got an operand of dtype {dtype}.")
    info = dtypes.finfo(dtype)
    return dtypes.issubdtype(dtype, np.complexfloating), info.maxexp, info.nmant, info.bits, True


Multiply = Callable[[np.ndarray, np.ndarray], np.ndarray]


@cached("primitives.contract plans", bound=4096, keyed_by="dimension numbers, ranks")
def _plan(dimension_numbers: Any, x_ndim: int, y_ndim: int) -> Multiply:
    """A function that contracts arrays of the given ranks, made once per set of ranks and axes."""
    _check_dimensions(dimension_numbers, x_ndim, y_ndim)
    (xc, yc), (xb, yb) = dimension_numbers
    if not xb and len(xc) == 1 and x_ndim <= 2 and y_ndim <= 2:
        return _matrix_plan(xc[0] == 0 and x_ndim == 2, yc[0] == 1)
    return _general_plan(xc, yc, xb, yb, x_ndim, y_ndim)


def _matrix_plan(flip_x: bool, flip_y: bool) -> Multiply:
    """A product of matrices and vectors: BLAS reads transposed matrices without a copy."""

    def multiply(x, y):
        if flip_x:
            x = x.T
        if flip_y:
            y = y.T
        if not (x.flags.forc and y.flags.forc):
            x, y = _for_blas(x), _for_blas(y)
        return matrix_product(x, y)

    return multiply


def matrix_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the product of NumPy arrays with one or two axes.

    `dot` reaches BLAS sooner than `matmul`. But it scales an array by a single element with
    `axpy`, which skips the factor 0, and 0·inf is NaN.
    """
    return np.matmul(x, y) if x.size == 1 or y.size == 1 else x.dot(y)


def _for_blas(x: np.ndarray) -> np.ndarray:
    """The array itself if BLAS can read its last two axes, else a copy."""
    if x.ndim < 2 or x.itemsize in x.strides[-2:] and all(s > 0 for s in x.strides[-2:]):
        return x
    return np.ascontiguousarray(x)


def _general_plan(xc, yc, xb, yb, x_ndim: int, y_ndim: int) -> Multiply:
    x_free, y_free = _others(x_ndim, xc, xb), _others(y_ndim, yc, yb)
    order = argsort(xc)
    x_inner, y_inner = [xc[i] for i in order], [yc[i] for i in order]
    # Where the contracted axes are already first in x (or last in y), merging them in this
    # order needs no copy; the matrices are then transposed, which costs nothing.
    flip_x = bool(xc) and (*xb, *x_inner, *x_free) == tuple(range(x_ndim))
    flip_y = bool(yc) and (*yb, *y_free, *y_inner) == tuple(range(y_ndim))
    x_order = (*xb, *x_inner, *x_free) if flip_x else (*xb, *x_free, *x_inner)
    y_order = (*yb, *y_free, *y_inner) if flip_y else (*yb, *y_inner, *y_free)

    def multiply(x, y):
        xs, ys = x.shape, y.shape
        batch = [xs[i] for i in xb]
        inner = [xs[i] for i in x_inner]
        if batch != [ys[i] for i in yb] or inner != [ys[i] for i in y_inner]:
            raise TypeError(f"shapes {xs} and {ys} do not fit")
        outer_x, outer_y = [xs[i] for i in x_free], [ys[i] for i in y_free]
        m, k, n = math.prod(outer_x), math.prod(inner), math.prod(outer_y)
        x = x.transpose(x_order).reshape((*batch, k, m) if flip_x else (*batch, m, k))
        y = y.transpose(y_order).reshape((*batch, n, k) if flip_y else (*batch, k, n))
        x = x.swapaxes(-1, -2) if flip_x else x
        y = y.swapaxes(-1, -2) if flip_y else y
        if not inner:
            out = x * y
        elif batch:
            out = np.matmul(_for_blas(x), _for_blas(y))
        else:
            out = matrix_product(_for_blas(x), _for_blas(y))
        return out.reshape((*batch, *outer_x, *outer_y))

    return multiply


def _multiply_any(multiply: Multiply, x, y, precision, preferred) -> np.ndarray:
    """A product of any types: computed in a type that NumPy multiplies well, then rounded once."""
    dtype = _result_dtype(x.dtype, y.dtype, preferred, _is_algorithm(precision))
    if _is_algorithm(precision):
        x, y = precisions.round_operands(precision, x, y)
    return cast(multiply_in(multiply, x, y, dtype), dtype)


def multiply_in(multiply: Multiply, x: np.ndarray, y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`multiply`, a sum of products, in a type wide enough for a result of type `dtype`."""
    wide = _sum_type(x.dtype, y.dtype, dtype)
    if wide.kind in "iu" and max(dtypes.itemsize_bits(v.dtype) for v in (x, y)) <= 16:
        # Products of short integers are exact in float64, far beyond any real length of the sum.
        return multiply(x.astype(np.float64), y.astype(np.float64)).astype(np.int64)
    return multiply(x.astype(wide, copy=False), y.astype(wide, copy=False))


def product_in_xla(hlo: Any, name: str, x: Any, y: Any, precision: Any, options: dict) -> Any:
    """A sum of products in XLA: in types that it multiplies well, then converted."""
    shape, dtype = hlo.avals[0].shape, hlo.avals[0].dtype
    x, y, words = precisions.in_xla(hlo, precision, x, y)
    wide = dtype
    if not (x.dtype == y.dtype and (x.dtype, dtype) in _MULTIPLIED):
        wide = _sum_type(x.dtype, y.dtype, dtype)
        x, y = hlo.convert(x, wide), hlo.convert(y, wide)
    out = hlo.op(name, x, y, result=(shape, wide), precision_config=words, **options)
    return hlo.convert(hlo.parts(out)[0] if wide.kind == "c" != dtype.kind else out, dtype)


# Types of operands and result that XLA multiplies without conversion.
_MULTIPLIED = {(np.dtype(t), np.dtype(t)) for t in "efdFDilqILQ"} | {
    (np.dtype(t), np.dtype(r)) for t in (np.float16, dtypes.bfloat16) for r in (t, np.float32)
}


def _sum_type(x: np.dtype, y: np.dtype, dtype: np.dtype) -> np.dtype:
    """A type wide enough for products of two types, and for a result of type `dtype`."""
    types = (x, y, dtype)
    if any(t.kind == "c" for t in types):
        return np.dtype("D" if any(t in (np.float64, np.complex128) for t in types) else "F")
    if dtype == np.bool_ or any(dtypes.issubdtype(t, np.floating) for t in types):
        return np.dtype(np.float64 if np.float64 in types else np.float32)
    return dtype if dtype.itemsize >= 4 else np.dtype(np.int32)


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert a result; integers wrap around, and complex numbers lose their imaginary part."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = np.real(x)
    if x.dtype == np.int64 and dtype.kind == "V":
        # The narrow integers of ml_dtypes wrap from 8 bits.
        return x.astype(np.int8).astype(dtype)
    return x.astype(dtype, copy=False)


dot_general_p = DotGeneral()


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Multiply two arrays, summing over some axes and pairing others.

    Args:
        lhs, rhs: the operands.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`: which
            axes are summed over together, and which are paired.
        precision: None, a `Precision`, its name, a pair of these, or a `DotAlgorithm`.
        preferred_element_type: the type of the sums and of the result; by default that of the
            more precise operand.
        out_sharding: the sharding of the result.

    Returns:
        An array whose axes are the batch axes, then the remaining ones of `lhs`, then of `rhs`.

    Raises:
        TypeError: the dimension numbers do not fit the operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
        >>> dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
        (5, 2, 4)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            dot_general,
            lhs,
            rhs,
            dimension_numbers,
            precision,
            preferred_element_type,
        )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_dtype(preferred_element_type)
    if precision is not None or config.default_matmul_precision is not None:
        precision = precisions.canonicalize_precision(precision)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=_canonical_dimensions(dimension_numbers),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product of two matrices, of a matrix and a vector, or of two vectors.

    Args:
        lhs, rhs: the operands, of rank 1 or 2.
        dimension_numbers: makes it a `dot_general`, of operands of any rank.
        precision, preferred_element_type, out_sharding: as for `dot_general`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
        Array(11., dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            dot,
            lhs,
            rhs,
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    if dimension_numbers is None:
        x, y = shape_of(lhs), shape_of(rhs)
        if not (1 <= len(x) <= 2 and 1 <= len(y) <= 2 and x[-1] == y[0]):
            raise ValueError(
                "lax.dot: dimension_numbers must be given unless the operands are matrices or "
                f"vectors that fit; got lhs of shape {x} and rhs of shape {y}, where the last "
                "axis of lhs must be as long as the first axis of rhs."
            )
        dimension_numbers = _DOT[len(x) - 1]
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


_DOT = tuple(_Dimensions((((d,), (0,)), ((), ()))) for d in (0, 1))


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The products of many pairs of matrices: all axes but the last two are batch axes.

    Raises:
        ValueError: an operand has less than two axes, or they differ in rank.

    Example:
        >>> import namoo.numpy as jnp
        >>> batch_matmul(jnp.ones((7, 2, 3)), jnp.ones((7, 3, 4))).shape
        (7, 2, 4)
    """
    ndim, other = len(shape_of(lhs)), len(shape_of(rhs))
    if min(ndim, other) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {ndim}, {other}")
    if ndim != other:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {ndim}, {other}")
    batch = tuple(range(ndim - 2))
    return dot_general(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)
