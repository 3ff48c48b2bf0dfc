"""Products of matrices, vectors and tensors: all become one `dot_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import multiply
from namoo.numpy.number_parts import conjugate
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    as_type,
    check_mixing,
    check_ranks,
    promote_types,
)
from namoo.numpy.reductions import refuse_out
from namoo.numpy.same_type import is_complex
from namoo.primitives import shape as lax
from namoo.primitives.contract import dot_general
from namoo.primitives.resharding import with_out_sharding

Shape = tuple[int, ...]


def _product_type(name: str, x: Array, y: Array, preferred: Any) -> tuple[Any, bool]:
    """The type of a product, and whether it is weak."""
    if preferred is None:
        if x.dtype is y.dtype and not (x.weak_type and y.weak_type):
            return x.dtype, False
        return dtypes.result_type(x, y, return_weak_type_flag=True)
    return dtypes.check_user_dtype_supported(preferred, name), False


def _contract(
    name: str, x: Array, y: Array, dimensions: Any, precision: Any, preferred: Any
) -> Array:
    dtype, weak = _product_type(name, x, y, preferred)
    out = dot_general(x, y, dimensions, precision, dtype)
    return as_type(out, dtype, weak)


def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The dot product: of vectors, of matrices, or over the last axis of `a`.

    Args:
        a, b: arrays; the last axis of `a` is summed over with the second to last of `b` (the
            only one of a vector). With a scalar it is the ordinary product.
        precision: how exactly to multiply, as for `lax.dot_general`.
        preferred_element_type: type of the sums and the result.
        out_sharding: the sharding of the result; it has no effect on one device.

    Raises:
        TypeError: axes of different length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
        Array(11., dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            dot,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    x, y = arrays_of("dot", a, b)
    if not x.ndim or not y.ndim:
        contract: Any = ((), ())
    else:
        contract = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
    _check_contracted("dot", x.shape, y.shape, *contract)
    return _contract("dot", x, y, (contract, ((), ())), precision, preferred_element_type)


def _check_contracted(name: str, x: Shape, y: Shape, xs: Sequence[int], ys: Sequence[int]) -> None:
    lengths = [x[i] for i in xs], [y[i] for i in ys]
    if lengths[0] != lengths[1]:
        raise TypeError(
            f"{name}: dot_general requires contracting dimensions to have the same shape, got "
            f"{tuple(lengths[0])} and {tuple(lengths[1])}. They are axes {tuple(xs)} of shape {x} "
            f"and {tuple(ys)} of shape {y}." + at_user_line()
        )


def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of matrices, as the operator `@` computes it.

    Args:
        a, b: matrices, stacks of matrices whose leading axes broadcast, or vectors.
        precision, preferred_element_type, out_sharding: as for `dot`.

    Raises:
        ValueError: a scalar operand, or leading axes that do not broadcast.
        TypeError: axes to sum over of different length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
        (5, 2, 4)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            matmul,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    x, y = arrays_of("matmul", a, b)
    for i, operand in enumerate((x, y)):
        if not operand.ndim:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it is a scalar; use * "
                "to multiply by a number." + at_user_line()
            )
    place = _batch_axes(x.shape, y.shape)
    if place.x_dropped or place.y_dropped:
        x, y = lax.squeeze(x, place.x_dropped), lax.squeeze(y, place.y_dropped)
    out = _contract("matmul", x, y, place.dimensions, precision, preferred_element_type)
    out = lax.transpose(out, place.permutation)
    return lax.expand_dims(out, place.ones) if place.ones else out


@cached("numpy.contraction batch axes", bound=1024, keyed_by="leading shapes of the operands")
def _batch_axes(x: Shape, y: Shape) -> _BatchAxes:
    return _BatchAxes(x, y)


class _BatchAxes:
    """How the leading axes of two stacks of matrices pair up.

    An axis of length 1 that is paired with a longer one is dropped, so that the longer one stays
    free: the product then needs no repeated copies.
    """

    def __init__(self, x: Shape, y: Shape):
        y_matrix = len(y) > 1
        _check_contracted("matmul", x, y, (len(x) - 1,), (len(y) - 1 - y_matrix,))
        lead_x, lead_y = (shape[:-2] if len(shape) > 1 else () for shape in (x, y))
        n = max(len(lead_x), len(lead_y))
        sizes_x = [None] * (n - len(lead_x)) + list(lead_x)
        sizes_y = [None] * (n - len(lead_y)) + list(lead_y)
        self.x_dropped: list[int] = []
        self.y_dropped: list[int] = []
        self.x_batch: list[int] = []
        self.y_batch: list[int] = []
        self.common: list[int] = []
        self.x_free: list[int] = []
        self.y_free: list[int] = []
        self.ones: list[int] = []
        for i, (m, k) in enumerate(zip(sizes_x, sizes_y, strict=True)):
            at_x, at_y = i - (n - len(lead_x)), i - (n - len(lead_y))
            if m == 1 and k == 1:
                self.ones.append(i)
                self.x_dropped.append(at_x)
                self.y_dropped.append(at_y)
            elif m is None or (m == 1 and k is not None):
                self.y_free.append(i)
                if m is not None:
                    self.x_dropped.append(at_x)
            elif k is None or k == 1:
                self.x_free.append(i)
                if k is not None:
                    self.y_dropped.append(at_y)
            elif m == k:
                self.common.append(i)
                self.x_batch.append(at_x - len(self.x_dropped))
                self.y_batch.append(at_y - len(self.y_dropped))
            else:
                raise ValueError(
                    f"matmul: leading axes do not broadcast, got shapes {x} and {y}."
                    + at_user_line()
                )
        if len(x) > 1:
            self.x_free.append(n)
        if y_matrix:
            self.y_free.append(n + 1)
        in_x = len(x) - len(self.x_dropped) - 1
        in_y = len(y) - len(self.y_dropped) - 1 - y_matrix
        self.dimensions = (
            ((in_x,), (in_y,)),
            (tuple(self.x_batch), tuple(self.y_batch)),
        )
        order = [*self.common, *self.x_free, *self.y_free]
        self.permutation = tuple(np.argsort(order, kind="stable").tolist())


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """The inner product of two arrays taken as vectors; the first one is conjugated.

    Args:
        a, b: arrays of equal size.
        precision, preferred_element_type: as for `dot`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 2]))
        Array(5.+0.j, dtype=complex64)
    """
    x, y = arrays_of("vdot", a, b)
    x, y = (lax.reshape(v, (v.size,)) for v in (conjugate(x) if is_complex(x) else x, y))
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The inner products of vectors along an axis; the first ones are conjugated.

    Args:
        x1, x2: arrays whose other axes broadcast.
        axis: the axis of the vectors.
        precision, preferred_element_type: as for `dot`.

    Raises:
        ValueError: vectors of different length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.vecdot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 1.0]))
        Array([3., 7.], dtype=float32)
    """
    x, y = arrays_of("vecdot", x1, x2)
    check_ranks("vecdot", [x.shape, y.shape])
    places = (lax.canonical_axis(axis, x.ndim), lax.canonical_axis(axis, y.ndim))
    if x.shape[places[0]] != y.shape[places[1]]:
        raise ValueError(f"axes must match; got shapes {x.shape} and {y.shape} with {axis=}")
    x = lax.moveaxis(conjugate(x) if is_complex(x) else x, places[0], x.ndim - 1)
    y = lax.moveaxis(y, places[1], y.ndim - 1)
    out = matmul(
        lax.expand_dims(x, (x.ndim - 1,)),
        lax.expand_dims(y, (y.ndim,)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.squeeze(out, (out.ndim - 2, out.ndim - 1))


def matvec(x1: Any, x2: Any, /) -> Array:
    """Products of matrices and vectors, both in stacks that broadcast.

    Args:
        x1: matrices in the last two axes.
        x2: vectors in the last axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.matvec(jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    x, y = arrays_of("matvec", x1, x2)
    check_ranks("matvec", [x.shape, (*y.shape, 1)])
    _check_core("matvec", x, y, 2, 1)
    out = matmul(x, lax.expand_dims(y, (y.ndim,)))
    return lax.squeeze(out, (out.ndim - 1,))


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Products of conjugated vectors and matrices, both in stacks that broadcast.

    Args:
        x1: vectors in the last axis.
        x2: matrices in the last two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.vecmat(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.0], [0.0, 2.0]]))
        Array([1., 4.], dtype=float32)
    """
    x, y = arrays_of("vecmat", x1, x2)
    check_ranks("vecmat", [(*x.shape, 1), y.shape])
    _check_core("vecmat", x, y, 1, 2)
    out = matmul(lax.expand_dims(conjugate(x), (x.ndim - 1,)), y)
    return lax.squeeze(out, (out.ndim - 2,))


def _check_core(name: str, x: Array, y: Array, x_ndim: int, y_ndim: int) -> None:
    if x.ndim < x_ndim or y.ndim < y_ndim:
        raise ValueError(
            f"{name} takes operands of at least {x_ndim} and {y_ndim} axes, got shapes "
            f"{x.shape} and {y.shape}."
        )
    inner, outer = x.shape[-1], y.shape[-min(y_ndim, 2)]
    if inner != outer:
        raise ValueError(
            f"{name}: axes that are summed over must have equal length, got shapes {x.shape} and "
            f"{y.shape}."
        )


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of two tensors, summed over pairs of axes.

    Args:
        a, b: the tensors.
        axes: how many last axes of `a` are summed with first axes of `b`; or a pair of axes, or a
            pair of lists of axes.
        precision, preferred_element_type, out_sharding: as for `dot`.

    Raises:
        TypeError: axes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3)), axes=((1, 2), (1, 0))).shape
        (2,)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding,
            tensordot,
            a,
            b,
            axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    x, y = arrays_of("tensordot", a, b)
    if isinstance(axes, int):
        if axes > min(x.ndim, y.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {axes}) exceeds input ranks ({x.shape} and "
                f"{y.shape})"
            )
        contract: Any = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        contract = _paired_axes(x, y, *axes)
    else:
        raise TypeError(
            "tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of "
            f"ints, got {axes!r}."
        )
    _check_contracted("tensordot", x.shape, y.shape, *contract)
    return _contract("tensordot", x, y, (contract, ((), ())), precision, preferred_element_type)


def _paired_axes(x: Array, y: Array, xs: Any, ys: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(xs, int) and isinstance(ys, int):
        xs, ys = (xs,), (ys,)
    if not isinstance(xs, (tuple, list)) or not isinstance(ys, (tuple, list)):
        raise TypeError(
            "tensordot requires both axes lists to be either ints, tuples or lists, got "
            f"{xs} and {ys}"
        )
    if len(xs) != len(ys):
        raise TypeError(f"tensordot requires axes lists to have equal length, got {xs} and {ys}.")
    return (
        tuple(lax.canonical_axis(i, x.ndim) for i in xs),
        tuple(lax.canonical_axis(i, y.ndim) for i in ys),
    )


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """The sum over the last axes of two arrays.

    Args:
        a, b: arrays whose last axes have equal length; with a scalar it is the ordinary product.
        precision, preferred_element_type: as for `dot`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.inner(jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0], [5.0, 6.0]]))
        Array([11., 17.], dtype=float32)
    """
    x, y = arrays_of("inner", a, b)
    if not x.ndim or not y.ndim:
        if preferred_element_type is not None:
            x, y = (v.astype(preferred_element_type) for v in (x, y))
        check_mixing("inner", x, y)
        return multiply(x, y)
    return tensordot(
        x, y, (-1, -1), precision=precision, preferred_element_type=preferred_element_type
    )


def outer(a: Any, b: Any, out: None = None) -> Array:
    """The products of every element of `a` with every element of `b`.

    Args:
        a, b: arrays, taken as vectors.
        out: not supported.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    refuse_out("outer", out)
    x, y = promote_types("outer", a, b)
    return multiply(lax.reshape(x, (x.size, 1)), lax.reshape(y, (1, y.size)))


def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: each element of `a` times all of `b`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
        Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    x, y = promote_types("kron", a, b)
    n = max(x.ndim, y.ndim)
    x, y = (lax.reshape(v, (*(1,) * (n - v.ndim), *v.shape)) for v in (x, y))
    shape = tuple(p * q for p, q in zip(x.shape, y.shape, strict=True))
    left = lax.expand_dims(x, range(1, 2 * n, 2))
    right = lax.expand_dims(y, range(0, 2 * n, 2))
    return lax.reshape(multiply(left, right), shape)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of 2 or 3 components.

    Args:
        a, b: arrays of vectors; their other axes broadcast.
        axisa, axisb: the axes of the vectors.
        axisc: their axis in the result, if it has three components.
        axis: sets all three.

    Raises:
        ValueError: vectors of another length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_types("cross", a, b)
    x = lax.moveaxis(x, lax.canonical_axis(axisa, x.ndim), x.ndim - 1)
    y = lax.moveaxis(y, lax.canonical_axis(axisb, y.ndim), y.ndim - 1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            "Dimension must be either 2 or 3 for cross product, got vectors of "
            f"{x.shape[-1]} and {y.shape[-1]} components."
        )
    (x0, x1, *x2), (y0, y1, *y2) = ([v[..., i] for i in range(v.shape[-1])] for v in (x, y))
    last = x0 * y1 - x1 * y0
    if not x2 and not y2:
        return last
    from namoo.numpy.joining import stack

    # A missing third component is zero.
    first = (x1 * y2[0] if y2 else 0 * x1) - (x2[0] * y1 if x2 else 0 * y1)
    middle = (x2[0] * y0 if x2 else 0 * y0) - (x0 * y2[0] if y2 else 0 * x0)
    out = stack([first, middle, last])
    return lax.moveaxis(out, 0, lax.canonical_axis(axisc, out.ndim))


def trace(
    a: Any,
    offset: Any = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Array:
    """The sum of the elements on a diagonal.

    Args:
        a: an array of at least two axes.
        offset: the offset of the diagonal above the main one.
        axis1, axis2: the axes of the matrices.
        dtype: type to sum in.
        out: not supported.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    from namoo.numpy.grids import eye
    from namoo.numpy.reductions import sum
    from namoo.numpy.selection import where

    x = array_of("trace", a)
    refuse_out("trace", out)
    rows, columns = lax.canonical_axis(axis1, x.ndim), lax.canonical_axis(axis2, x.ndim)
    if rows == columns:
        raise ValueError(f"axis1 and axis2 can not be same. {axis1=} and {axis2=}")
    others = [i for i in range(x.ndim) if i not in (rows, columns)]
    x = lax.transpose(x, (*others, rows, columns))
    mask = eye(x.shape[-2], x.shape[-1], offset, bool)
    kept = where(mask, x, np.zeros((), x.dtype))
    return sum(kept, axis=(-2, -1), dtype=dtype)


attach_shortcuts(globals())
