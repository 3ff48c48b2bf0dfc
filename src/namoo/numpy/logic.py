"""Comparison, logic and bits, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import absolute
from namoo.numpy.promote import promote, promote_numeric
from namoo.numpy.same_type import is_complex, is_kind, to_bool
from namoo.numpy.ufuncs import elementwise
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.compare import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from namoo.primitives.shape import convert_element_type


def equal(x: Any, y: Any, /) -> Array:
    """Whether x = y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.equal(jnp.array([1, 2]), 2)
        Array([False,  True], dtype=bool)
    """
    return eq_p.bind(*promote("equal", x, y))


def not_equal(x: Any, y: Any, /) -> Array:
    """Whether x ≠ y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.not_equal(jnp.array([1, 2]), 2)
        Array([ True, False], dtype=bool)
    """
    return ne_p.bind(*promote("not_equal", x, y))


def _ordered(compare: Any, x: Array, y: Array) -> Array:
    """Complex numbers are ordered by their real, then by their imaginary parts."""
    if not is_complex(x):
        return compare.bind(x, y)
    real, imag = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
    return lax.select(lax.eq(*real), compare.bind(*imag), compare.bind(*real))


def greater(x: Any, y: Any, /) -> Array:
    """Whether x > y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.greater(jnp.array([1, 2, 3]), 2)
        Array([False, False,  True], dtype=bool)
    """
    return _ordered(gt_p, *promote("greater", x, y))


def greater_equal(x: Any, y: Any, /) -> Array:
    """Whether x ≥ y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
        Array([False,  True,  True], dtype=bool)
    """
    return _ordered(ge_p, *promote("greater_equal", x, y))


def less(x: Any, y: Any, /) -> Array:
    """Whether x < y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.less(jnp.array([1, 2, 3]), 2)
        Array([ True, False, False], dtype=bool)
    """
    return _ordered(lt_p, *promote("less", x, y))


def less_equal(x: Any, y: Any, /) -> Array:
    """Whether x ≤ y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
        Array([ True,  True, False], dtype=bool)
    """
    return _ordered(le_p, *promote("less_equal", x, y))


@elementwise(2)
def minimum(x: Any, y: Any, /) -> Array:
    """The smaller of x and y; NaN where either is.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.minimum(jnp.array([1.0, 3.0]), 2.0)
        Array([1., 2.], dtype=float32)
    """
    return lax.min_p.bind(*promote("minimum", x, y))


@elementwise(2)
def maximum(x: Any, y: Any, /) -> Array:
    """The larger of x and y; NaN where either is.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.maximum(jnp.array([1.0, 3.0]), 2.0)
        Array([2., 3.], dtype=float32)
    """
    return lax.max_p.bind(*promote("maximum", x, y))


@elementwise(2, identity=True)
def logical_and(x: Any, y: Any, /) -> Array:
    """Whether x and y are both not zero.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logical_and(jnp.array([0, 1, 2]), True)
        Array([False,  True,  True], dtype=bool)
    """
    return bits.bitwise_and(*map(to_bool, promote("logical_and", x, y)))


@elementwise(2, identity=False)
def logical_or(x: Any, y: Any, /) -> Array:
    """Whether x or y is not zero.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logical_or(jnp.array([0, 1, 2]), False)
        Array([False,  True,  True], dtype=bool)
    """
    return bits.bitwise_or(*map(to_bool, promote("logical_or", x, y)))


@elementwise(2, identity=False)
def logical_xor(x: Any, y: Any, /) -> Array:
    """Whether exactly one of x and y is not zero.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logical_xor(jnp.array([0, 1, 2]), True)
        Array([ True, False, False], dtype=bool)
    """
    return bits.bitwise_xor(*map(to_bool, promote("logical_xor", x, y)))


def logical_not(x: Any, /) -> Array:
    """Whether x is zero.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logical_not(jnp.array([0, 1, 2]))
        Array([ True, False, False], dtype=bool)
    """
    (x,) = promote("logical_not", x)
    return bits.bitwise_not(to_bool(x))


@elementwise(2, identity=-1)
def bitwise_and(x: Any, y: Any, /) -> Array:
    """The bits that are set in both integers.

    Args:
        x, y: integers or booleans, broadcast against one another.

    Raises:
        TypeError: floating operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bitwise_and(jnp.array([12, 10]), 6)
        Array([4, 2], dtype=int32)
    """
    return bits.bitwise_and(*promote("bitwise_and", x, y))


@elementwise(2, identity=0)
def bitwise_or(x: Any, y: Any, /) -> Array:
    """The bits that are set in either integer.

    Args:
        x, y: integers or booleans, broadcast against one another.

    Raises:
        TypeError: floating operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bitwise_or(jnp.array([12, 10]), 6)
        Array([14, 14], dtype=int32)
    """
    return bits.bitwise_or(*promote("bitwise_or", x, y))


@elementwise(2, identity=0)
def bitwise_xor(x: Any, y: Any, /) -> Array:
    """The bits that are set in exactly one integer.

    Args:
        x, y: integers or booleans, broadcast against one another.

    Raises:
        TypeError: floating operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bitwise_xor(jnp.array([12, 10]), 6)
        Array([10, 12], dtype=int32)
    """
    return bits.bitwise_xor(*promote("bitwise_xor", x, y))


def bitwise_not(x: Any, /) -> Array:
    """All bits flipped; for booleans, the opposite.

    Raises:
        TypeError: a floating array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bitwise_not(jnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
    """
    return bits.bitwise_not(*promote("bitwise_not", x))


invert = bitwise_not


bitwise_invert = bitwise_not


def left_shift(x: Any, y: Any, /) -> Array:
    """The bits of x moved up by y places: x · 2ʸ while nothing falls out.

    Args:
        x, y: integers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.left_shift(jnp.array([1, 3]), 2)
        Array([ 4, 12], dtype=int32)
    """
    return bits.shift_left(*promote_numeric("left_shift", x, y))


bitwise_left_shift = left_shift


def right_shift(x1: Any, x2: Any, /) -> Array:
    """The bits of x1 moved down by x2 places; signed integers keep their sign.

    Args:
        x1, x2: integers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.right_shift(jnp.array([-8, 12]), 2)
        Array([-2,  3], dtype=int32)
    """
    x, y = promote_numeric("right_shift", x1, x2)
    if is_kind(x, np.unsignedinteger):
        return bits.shift_right_logical(x, y)
    return bits.shift_right_arithmetic(x, y)


bitwise_right_shift = right_shift


def bitwise_count(x: Any, /) -> Array:
    """How many bits are set in |x|.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.bitwise_count(jnp.array([0, 7, -8]))
        Array([0, 3, 1], dtype=uint8)
    """
    (x,) = promote_numeric("bitwise_count", x)
    return convert_element_type(bits.population_count(absolute(x)), np.uint8)


attach_shortcuts(globals())
