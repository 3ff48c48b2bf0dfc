"""Arithmetic, with NumPy's promotion and broadcasting."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo.core.array import Array, EagerArray
from namoo.core.trace import Tracer
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import (
    array_of,
    fit_shapes,
    promote,
    promote_inexact,
    promote_numeric,
    promote_types,
)
from namoo.numpy.same_type import (
    choose,
    const,
    is_kind,
    refuse_complex,
    strong,
    weak,
)
from namoo.numpy.ufuncs import elementwise
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p


@elementwise(2, identity=0)
def add(x: Any, y: Any, /) -> Array:
    """The sum x + y; of booleans, whether either holds.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.add(jnp.arange(3), 1.5)
        Array([1.5, 2.5, 3.5], dtype=float32, weak_type=True)
    """
    x, y = promote("add", x, y)
    return bits.bitwise_or(x, y) if x.dtype == dtypes.bool_ else add_p.bind(x, y)


@elementwise(2, identity=1)
def multiply(x: Any, y: Any, /) -> Array:
    """The product x · y; of booleans, whether both hold.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.multiply(jnp.array([1.0, 2.0]), jnp.array([[3.0], [4.0]]))
        Array([[3., 6.],
               [4., 8.]], dtype=float32)
    """
    x, y = promote("multiply", x, y)
    return bits.bitwise_and(x, y) if x.dtype == dtypes.bool_ else mul_p.bind(x, y)


@elementwise(2)
def subtract(x: Any, y: Any, /) -> Array:
    """The difference x - y.

    Args:
        x, y: arrays or numbers, broadcast against one another.

    Raises:
        TypeError: both are boolean.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.subtract(jnp.arange(3), 1)
        Array([-1,  0,  1], dtype=int32)
    """
    return sub_p.bind(*promote("subtract", x, y))


def true_divide(x1: Any, x2: Any, /) -> Array:
    """The quotient x1 / x2; integers are divided as floats.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.true_divide(jnp.array([1, 2]), 4)
        Array([0.25, 0.5 ], dtype=float32)
    """
    return div_p.bind(*promote_inexact("true_divide", x1, x2))


divide = true_divide


def _floor_divide_integers(x: Array, y: Array) -> Array:
    quotient = lax.div(x, y)
    if is_kind(x, np.unsignedinteger):
        return quotient
    uneven = lax.ne(lax.rem(x, y), const(x, 0))
    down = bits.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), uneven)
    # Not `where(down, quotient - 1, quotient)`, which would overflow in strict mode.
    return lax.sub(quotient, lax.convert_element_type(down, x.dtype, quotient.weak_type))


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    remainder = lax.rem(x, y)
    exact = choose(lax.eq(y, const(y, 0)), x, lax.sub(x, remainder))
    quotient = lax.div(exact, y)
    opposite = bits.bitwise_and(
        lax.ne(remainder, const(x, 0)), lax.ne(lax.sign(y), lax.sign(remainder))
    )
    return (
        lax.round(choose(opposite, lax.sub(quotient, weak(x, 1)), quotient)),
        choose(opposite, lax.add(remainder, y), remainder),
    )


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """The quotient x1 / x2 rounded down.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Raises:
        TypeError: complex operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.floor_divide(jnp.array([-7, 7]), 2)
        Array([-4,  3], dtype=int32)
    """
    x, y = promote_numeric("floor_divide", x1, x2)
    refuse_complex("floor_divide", x, TypeError)
    if is_kind(x, np.integer):
        return _floor_divide_integers(x, y)
    return _float_divmod(x, y)[0]


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotient rounded down, and the remainder that has the sign of the divisor.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.divmod(jnp.array([-7, 7]), 2)
        (Array([-4,  3], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = promote_numeric("divmod", x1, x2)
    refuse_complex("divmod", x, TypeError)
    if is_kind(x, np.integer):
        return floor_divide(x, y), remainder(x, y)
    return _float_divmod(x, y)


def remainder(x1: Any, x2: Any, /) -> Array:
    """The remainder of x1 / x2, with the sign of x2.

    x1 - floor(x1 / x2) · x2, and 0 for integers divided by zero.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.remainder(jnp.array([-7, 7]), 3)
        Array([2, 1], dtype=int32)
    """
    x, y = promote_numeric("remainder", x1, x2)
    zero = const(x, 0)
    if is_kind(x, np.integer) and not config.strict:
        y = choose(lax.eq(y, zero), weak(y, 1), y)
    rest = lax.rem(x, y)
    opposite = bits.bitwise_and(lax.ne(lax.lt(rest, zero), lax.lt(y, zero)), lax.ne(rest, zero))
    return choose(opposite, lax.add(rest, y), rest)


mod = remainder


def fmod(x1: Any, x2: Any, /) -> Array:
    """The remainder of x1 / x2, with the sign of x1, as in C.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fmod(jnp.array([-7, 7]), 3)
        Array([-1,  1], dtype=int32)
    """
    x, y = promote_numeric("fmod", x1, x2)
    if is_kind(x, np.integer) and not config.strict:
        y = choose(lax.eq(y, const(y, 0)), weak(y, 1), y)
    return lax.rem(x, y)


def power(x1: Any, x2: Any, /) -> Array:
    """x1 to the power x2.

    A concrete integer exponent is a chain of multiplications, whose derivative is exact at 0;
    integers to the power of an array stay integers.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Raises:
        TypeError: an integer base with a negative concrete integer exponent.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.power(jnp.array([1, 2, 3]), 2), jnp.power(2.0, jnp.array([1, 2]))
        (Array([1, 4, 9], dtype=int32), Array([2., 4.], dtype=float32))
    """
    if type(x2) is int:
        exponent = x2
    else:
        exponent = _concrete_integer(x2)
    if exponent is not None:
        (x,) = promote_types("power", x1, to=dtypes.to_numeric_dtype)
        return lax.integer_pow(x, exponent)
    x, y = promote_numeric("power", x1, x2)
    if is_kind(x, np.integer):
        return _integer_power(x, y)
    exponents = array_of("power", x2)
    if is_kind(exponents, np.integer):
        base = array_of("power", x1)
        if is_kind(base, np.inexact):
            return lax.pow_p.bind(*fit_shapes("power", [base, exponents]))
    return lax.pow_p.bind(x, y)


def _concrete_integer(x: Any) -> int | None:
    """The value of a concrete integer scalar, else None."""
    if isinstance(x, Tracer):
        return None
    if isinstance(x, EagerArray):
        if x._value.ndim or x._value.dtype.kind not in "iu":
            return None
        return int(x._value)
    try:
        return operator.index(x)
    except TypeError:
        return None


def _integer_power(x: Array, y: Array) -> Array:
    """Repeated squaring over the bits of the exponents; negative ones give 0 or 1 as shifts do."""
    zero, one = strong(y, 0), strong(y, 1)
    start = bits.bitwise_and(lax.eq(x, const(x, 0)), lax.ne(y, zero))
    out = choose(start, zero, one)
    for _ in range(6):
        odd = lax.ne(bits.bitwise_and(y, one), zero)
        out = choose(odd, lax.mul(out, x), out)
        x = lax.mul(x, x)
        y = bits.shift_right_logical(y, one)
    return out


pow = power


def float_power(x: Any, y: Any, /) -> Array:
    """x to the power y, computed in floating point even for integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.float_power(jnp.array([1, 2]), -1)
        Array([1. , 0.5], dtype=float32)
    """
    return lax.pow_p.bind(*promote_inexact("float_power", x, y))


@elementwise(1)
def negative(x: Any, /) -> Array:
    """The numerical negative -x.

    Raises:
        TypeError: a boolean array; use `logical_not`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.negative(jnp.array([1, -2]))
        Array([-1,  2], dtype=int32)
    """
    return neg_p.bind(*promote("negative", x))


def positive(x: Any, /) -> Array:
    """The array itself.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.positive(jnp.array([1, -2]))
        Array([ 1, -2], dtype=int32)
    """
    return promote("positive", x)[0]


def absolute(x: Any, /) -> Array:
    """The absolute value; the modulus of complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.absolute(jnp.array([-1.0, 2.0])), jnp.absolute(3 + 4j)
        (Array([1., 2.], dtype=float32), Array(5., dtype=float32, weak_type=True))
    """
    (x,) = promote("absolute", x)
    if x.dtype == np.bool_ or is_kind(x, np.unsignedinteger):
        return x
    return lax.abs(x)


abs = absolute


def fabs(x: Any, /) -> Array:
    """The absolute value, as a float.

    Raises:
        TypeError: a complex array; use `abs`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fabs(jnp.array([-1, 2]))
        Array([1., 2.], dtype=float32)
    """
    (x,) = promote_inexact("fabs", x)
    refuse_complex("fabs", x, TypeError, " Use jnp.abs for the modulus.")
    return lax.abs(x)


def sign(x: Any, /) -> Array:
    """-1, 0 or 1 by the sign of x; x / |x| for complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sign(jnp.array([-2.0, 0.0, 5.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return lax.sign(*promote("sign", x))


def square(x: Any, /) -> Array:
    """x².

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.square(jnp.array([1, -3]))
        Array([1, 9], dtype=int32)
    """
    return lax.square(*promote_numeric("square", x))


def reciprocal(x: Any, /) -> Array:
    """1 / x, as a float.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.reciprocal(jnp.array([1, 4]))
        Array([1.  , 0.25], dtype=float32)
    """
    (x,) = promote_inexact("reciprocal", x)
    return lax.integer_pow(x, -1)


def _on_integers(change: str) -> Any:
    """How a ufunc changes elements at indices; booleans are counted in integers on the way."""

    def at(x: Any, indices: Any, y: Any) -> Array:
        if x.dtype != np.bool_:
            return getattr(x.at[indices], change)(y)
        whole = getattr(x.astype(np.int32).at[indices], change)
        return whole(y.astype(np.bool_).astype(np.int32)).astype(np.bool_)

    return at


add.define(at=_on_integers("add"))
multiply.define(at=_on_integers("multiply"))
subtract.define(at=lambda x, indices, y: x.at[indices].subtract(y))

attach_shortcuts(globals())
