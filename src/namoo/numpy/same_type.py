"""Arrays of one type: scalars of an array's type, tests of its kind, choosing elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.dimensions import sizes
from namoo.numpy.promote import arrays_of, broadcast_shapes, promote_types
from namoo.primitives import elementwise as lax
from namoo.primitives.compare import ne_p
from namoo.primitives.dimensions import size_array
from namoo.primitives.shape import broadcast_to


def const(x: Array, value: Any) -> EagerArray:
    """A scalar of the type of `x`, weak only if `x` is a weak scalar."""
    if sizes.is_symbolic(value):
        return size_array(value, x.dtype)
    return EagerArray(np.asarray(value, x.dtype), x.weak_type and not x.ndim)


def strong(x: Array, value: Any) -> np.ndarray:
    """A scalar of the dtype of `x` that is not weak."""
    return size_array(value, x.dtype)


def weak(x: Array, value: Any) -> EagerArray:
    """A scalar of the dtype of `x` that does not change whether an operand is weak."""
    return EagerArray(np.asarray(value, x.dtype), True)


def is_kind(x: Array, kind: type) -> bool:
    """Whether the elements of `x` are of an abstract NumPy kind."""
    return dtypes.issubdtype(x.dtype, kind)


def is_complex(x: Array) -> bool:
    return dtypes.issubdtype(x.dtype, np.complexfloating)


def refuse_complex(name: str, x: Array, error: type[Exception], advice: str = "") -> None:
    """Raise if a function is not defined for complex numbers."""
    if is_complex(x):
        raise error(f"jnp.{name} does not support complex inputs, got {x.dtype}.{advice}")


def to_bool(x: Array) -> Array:
    """Whether each element is not zero."""
    return x if x.dtype == np.bool_ else ne_p.bind(x, const(x, 0))


def choose(condition: Any, x: Any, y: Any) -> Array:
    """`x` where the condition holds, else `y`; operands of one type, scalars repeated."""
    shape = sizes.broadcast_shapes(condition.shape, np.shape(x), np.shape(y))
    if condition.shape and condition.shape != shape:
        condition = broadcast_to(condition, shape)
    return lax.select(condition, broadcast_to(x, shape), broadcast_to(y, shape))


def choose_promoted(condition: Any, x: Any, y: Any) -> Array:
    """`x` where the condition is not zero, else `y`; promoted and broadcast, as `where` does."""
    (test,) = arrays_of("where", condition)
    test = to_bool(test)
    x, y = promote_types("where", x, y)
    shape = broadcast_shapes(test.shape, x.shape, y.shape)
    if test.shape:
        test = broadcast_to(test, shape)
    return lax.select(test, broadcast_to(x, shape), broadcast_to(y, shape))
