"""Predicates of whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array, EagerArray
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.numpy.creation import asarray
from namoo.numpy.logic import equal
from namoo.numpy.number_parts import isclose, isnan
from namoo.numpy.promote import check_arraylike, check_mixing
from namoo.numpy.reductions import all
from namoo.primitives import bits


def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close: |a - b| ≤ atol + rtol · |b|.

    Args:
        a, b, rtol, atol, equal_nan: as for `isclose`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
        Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    check_mixing("allclose", a, b)
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
        a1, a2: the arrays.
        equal_nan: whether NaN equals NaN.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
        Array(True, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return EagerArray(np.asarray(False))
    check_mixing("array_equal", x, y)
    same = equal(x, y)
    if equal_nan:
        same = bits.bitwise_or(same, bits.bitwise_and(isnan(x), isnan(y)))
    return all(same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays broadcast to equal ones.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.array_equiv(jnp.array([1, 1]), jnp.array(1))
        Array(True, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    try:
        sizes.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return EagerArray(np.asarray(False))
    return all(equal(x, y))


def isscalar(element: Any) -> bool:
    """Whether something is a number or an array without axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isscalar(3.0), jnp.isscalar(jnp.array(3.0)), jnp.isscalar(jnp.zeros(1))
        (True, True, False)
    """
    if isinstance(element, (np.ndarray, Array)):
        return element.ndim == 0
    if getattr(element, "__jax_array__", None) is not None:
        return asarray(element).ndim == 0
    return np.isscalar(element)


def iscomplexobj(x: Any) -> bool:
    """Whether something has complex elements, even if their imaginary parts are zero.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.iscomplexobj(jnp.array([1j])), jnp.iscomplexobj(2.0)
        (True, False)
    """
    if isinstance(x, (complex, np.complexfloating)):
        return True
    if x is None or isinstance(x, (bool, int, float, str, np.generic)):
        return False
    dtype = x.dtype if hasattr(x, "dtype") else asarray(x).dtype
    return dtypes.issubdtype(dtype, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether something has no complex elements.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.isrealobj(jnp.array([1.0]))
        True
    """
    return not iscomplexobj(x)


def iterable(y: Any) -> bool:
    """Whether something can be iterated over.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.iterable(jnp.zeros(3)), jnp.iterable(jnp.zeros(()))
        (True, False)
    """
    return np.iterable(y)


attach_shortcuts(globals())
