"""Numbers taken apart: sign, exponent, mantissa, neighbours; and divisors of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import absolute
from namoo.numpy.number_parts import isinf
from namoo.numpy.promote import (
    array_of,
    arrays_of,
    as_type,
    broadcast_arrays,
    check_ranks,
    promote,
    promote_inexact,
    promote_types,
    to_array,
)
from namoo.numpy.same_type import choose, const, is_complex, is_kind, refuse_complex, strong
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.primitives.arithmetic import nextafter_p
from namoo.primitives.compare import eq_p, ge_p, gt_p, lt_p, ne_p
from namoo.primitives.reduction import reduce_or
from namoo.primitives.shape import broadcast_to, convert_element_type
from namoo.transforms.custom import custom_jvp


def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set: true of negative numbers and of -0.0.

    Raises:
        ValueError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.signbit(jnp.array([-1.0, -0.0, 2.0]))
        Array([ True,  True, False], dtype=bool)
    """
    x = array_of("signbit", x)
    if x.dtype == np.bool_:
        return broadcast_to(strong(x, False), x.shape)
    if is_kind(x, np.integer):
        return lt_p.bind(x, strong(x, 0))
    if not is_kind(x, np.floating):
        raise ValueError(f"jax.numpy.signbit is not well defined for {x.dtype}")
    integers = bits.bitcast_convert_type(x, integer_twin(x.dtype))
    return lt_p.bind(integers, strong(integers, 0))


def integer_twin(dtype: Any) -> np.dtype:
    """The signed integer type of the width of a float type."""
    width = dtypes.finfo(dtype).bits
    return np.dtype(f"int{width}")


def copysign(x1: Any, x2: Any, /) -> Array:
    """The size of x1 with the sign of x2.

    Raises:
        TypeError: complex operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.copysign(jnp.array([1.0, -2.0]), jnp.array([-0.0, 3.0]))
        Array([-1.,  2.], dtype=float32)
    """
    x, y = promote_types("copysign", x1, x2, to=dtypes.to_inexact_dtype)
    check_ranks("copysign", [x.shape, y.shape])
    x, y = broadcast_arrays(x, y)
    refuse_complex("copysign", x, TypeError)
    return choose(signbit(y), lax.neg(lax.abs(x)), lax.abs(x))


def heaviside(x1: Any, x2: Any, /) -> Array:
    """The step function: 0 below zero, x2 at zero, 1 above.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.heaviside(jnp.array([-2.0, 0.0, 3.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = promote_types("heaviside", x1, x2, to=dtypes.to_inexact_dtype)
    zero, one = const(x, 0), const(x, 1)
    x, y = broadcast_arrays(x, y)
    out = choose(ne_p.bind(x, x), x, y)
    out = choose(gt_p.bind(x, zero), one, out)
    return choose(lt_p.bind(x, zero), zero, out)


def nextafter(x: Any, y: Any, /) -> Array:
    """The next representable number after x towards y.

    Example:
        >>> import namoo.numpy as jnp
        >>> float(jnp.nextafter(1.0, 2.0)) - 1.0
        1.1920928955078125e-07
    """
    return nextafter_p.bind(*promote_inexact("nextafter", x, y))


def spacing(x: Any, /) -> Array:
    """The distance to the next larger number (in size) of the type, with the sign of x.

    Raises:
        ValueError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.spacing(jnp.array([1.0, -1.0]))
        Array([ 1.1920929e-07, -1.1920929e-07], dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    refuse_complex("spacing", x, ValueError)
    infinity = const(x, np.inf)
    if x.dtype == np.float16:
        return lax.sub(nextafter_p.bind(x, infinity), x)
    gap = lax.sub(nextafter_p.bind(x, copysign(infinity, x)), x)
    least = strong(x, dtypes.finfo(x.dtype).smallest_subnormal)
    return choose(eq_p.bind(gap, const(x, 0)), copysign(least, x), gap)


def modf(x: Any, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part, both with the sign of x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.modf(jnp.array([2.5, -1.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -1.], dtype=float32))
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.modf is not supported.")
    (x,) = promote_inexact("modf", x)
    whole = choose(ge_p.bind(x, const(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


def frexp(x: Any, /) -> tuple[Array, Array]:
    """Mantissa m in [½, 1) and exponent e with x = m · 2ᵉ.

    Raises:
        TypeError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.frexp(jnp.array([1.0, 6.0]))
        (Array([0.5 , 0.75], dtype=float32), Array([1, 3], dtype=int32))
    """
    (x,) = promote_inexact("frexp", x)
    refuse_complex("frexp", x, TypeError)
    return _frexp(x)


@custom_jvp
def _frexp(x):
    x = to_array(x)
    info = dtypes.finfo(x.dtype)
    integer = integer_twin(x.dtype)
    # Subnormal numbers are scaled up first, so that the bits of the exponent give the exponent.
    tiny = lax.lt(lax.abs(x), const(x, info.smallest_normal))
    scaled = choose(tiny, lax.mul(x, const(x, 2.0**info.nmant)), x)
    shift = choose(tiny, np.asarray(-info.nmant, integer), np.asarray(0, integer))
    word = bits.bitcast_convert_type(scaled, integer)
    mask, bias = (1 << info.nexp) - 1, 1 - info.minexp
    field = bits.bitwise_and(
        bits.shift_right_arithmetic(word, np.asarray(info.nmant, integer)),
        np.asarray(mask, integer),
    )
    exponent = lax.add(lax.add(field, shift), np.asarray(1 - bias, integer))
    rest = bits.bitwise_and(word, np.asarray(~(mask << info.nmant), integer))
    word = bits.bitwise_or(rest, np.asarray((bias - 1) << info.nmant, integer))
    mantissa = bits.bitcast_convert_type(word, x.dtype)
    special = bits.bitwise_or(lax.eq(x, const(x, 0)), bits.bitwise_not(lax.is_finite(x)))
    exponent = choose(special, np.asarray(0, integer), exponent)
    return choose(special, x, mantissa), convert_element_type(exponent, np.int32)


@_frexp.defjvp
def _frexp_jvp(primals, tangents):
    (x,), (t,) = map(to_array, primals), map(to_array, tangents)
    mantissa, exponent = _frexp(x)
    scale = lax.exp2(convert_element_type(lax.neg(exponent), t.dtype))
    return (mantissa, exponent), (lax.mul(t, scale), np.zeros(exponent.shape, dtypes.float0))


def ldexp(x1: Any, x2: Any, /) -> Array:
    """x1 · 2ˣ².

    Args:
        x1: an array of real numbers.
        x2: an array of integers.

    Raises:
        ValueError: complex x1, or x2 not of integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([2, -1]))
        Array([2. , 1.5], dtype=float32)
    """
    x1, x2 = arrays_of("ldexp", x1, x2)
    if is_complex(x1) or is_kind(x2, np.inexact):
        raise ValueError(f"ldexp not supported for input types {(x1.dtype, x2.dtype)}")
    (x,) = promote_inexact("ldexp", x1)
    x, power = promote("ldexp", x, convert_element_type(x2, x.dtype))
    mantissa, exponent = frexp(x)
    exponent = lax.add(convert_element_type(exponent, x.dtype), power)
    # 2ᵉ itself may overflow where the result does not: one factor of two goes to the mantissa.
    large = lax.gt(exponent, const(x, 0))
    mantissa = choose(large, lax.mul(mantissa, const(x, 2)), mantissa)
    exponent = choose(large, lax.sub(exponent, const(x, 1)), exponent)
    out = lax.mul(mantissa, lax.pow(const(x, 2), exponent))
    return choose(bits.bitwise_or(isinf(x), lax.eq(x, const(x, 0))), x, out)


def _gcd_integers(name: str, x1: Any, x2: Any) -> tuple[Array, Array]:
    x, y = promote(name, x1, x2)
    if not is_kind(x, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers, got {x.dtype}.")
    shape = sizes.broadcast_shapes(x.shape, y.shape)
    return absolute(broadcast_to(x, shape)), absolute(broadcast_to(y, shape))


def gcd(x1: Any, x2: Any) -> Array:
    """The greatest common divisor, by Euclid's algorithm.

    Raises:
        ValueError: arrays that are not of integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.gcd(jnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    from namoo.control.loops import while_loop

    x, y = _gcd_integers("gcd", x1, x2)
    if x.ndim:
        x, y = as_type(x, x.dtype), as_type(y, y.dtype)

    def going(pair):
        return _any_nonzero(pair[1])

    def step(pair):
        x, y = pair
        more = lax.ne(y, const(y, 0))
        return choose(more, y, x), lax.rem(x, choose(more, y, const(y, 1)))

    return while_loop(going, step, (x, y))[0]


def _any_nonzero(x: Array) -> Array:
    return reduce_or(lax.ne(x, const(x, 0)), tuple(range(x.ndim)))


def lcm(x1: Any, x2: Any) -> Array:
    """The least common multiple.

    Raises:
        ValueError: arrays that are not of integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.lcm(jnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x, y = _gcd_integers("lcm", x1, x2)
    divisor = gcd(x, y)
    zero = lax.eq(divisor, const(x, 0))
    quotient = lax.div(y, choose(zero, const(x, 1), divisor))
    return choose(zero, const(x, 0), lax.mul(x, quotient))


attach_shortcuts(globals())
