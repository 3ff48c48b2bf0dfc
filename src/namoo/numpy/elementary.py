"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.numpy.promote import promote_inexact, to_array
from namoo.numpy.same_type import choose, const, is_complex, refuse_complex, strong
from namoo.numpy.ufuncs import elementwise
from namoo.primitives import bits
from namoo.primitives import elementwise as lax
from namoo.transforms.custom import custom_jvp


def exp(x: Any, /) -> Array:
    """eˣ.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.exp(jnp.array([0.0, 1.0])).round(4)
        Array([1.    , 2.7183], dtype=float32)
    """
    return lax.exp(*promote_inexact("exp", x))


def exp2(x: Any, /) -> Array:
    """2ˣ.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.exp2(jnp.array([0, 3]))
        Array([1., 8.], dtype=float32)
    """
    return lax.exp2(*promote_inexact("exp2", x))


def expm1(x: Any, /) -> Array:
    """eˣ - 1, exact for small x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.expm1(jnp.array([1e-10]))
        Array([1.e-10], dtype=float32)
    """
    return lax.expm1(*promote_inexact("expm1", x))


def log(x: Any, /) -> Array:
    """The natural logarithm.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.log(jnp.array([1.0, 10.0])).round(4)
        Array([0.    , 2.3026], dtype=float32)
    """
    return lax.log(*promote_inexact("log", x))


def _scaled_log(x: Array, factor: float) -> Array:
    y = lax.log(x)
    if not is_complex(y):
        return lax.mul(y, strong(y, factor))
    real, imag = lax.real(y), lax.imag(y)
    return lax.complex(lax.mul(real, strong(real, factor)), lax.mul(imag, strong(imag, factor)))


def log2(x: Any, /) -> Array:
    """The logarithm to base 2.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.log2(jnp.array([1, 8]))
        Array([0., 3.], dtype=float32)
    """
    (x,) = promote_inexact("log2", x)
    if is_complex(x):
        return _scaled_log(x, 1 / np.log(2))
    # Dividing by the rounded log 2 gives exact results for powers of two.
    return lax.div(lax.log(x), strong(x, np.log(2)))


def log10(x: Any, /) -> Array:
    """The logarithm to base 10.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.log10(jnp.array([1, 100]))
        Array([0., 2.], dtype=float32)
    """
    (x,) = promote_inexact("log10", x)
    return _scaled_log(x, 1 / np.log(10))


def log1p(x: Any, /) -> Array:
    """log(1 + x), exact for small x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.log1p(jnp.array([1e-10]))
        Array([1.e-10], dtype=float32)
    """
    return lax.log1p(*promote_inexact("log1p", x))


def sqrt(x: Any, /) -> Array:
    """The square root; NaN for negative real numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sqrt(jnp.array([4, 9]))
        Array([2., 3.], dtype=float32)
    """
    return lax.sqrt(*promote_inexact("sqrt", x))


def cbrt(x: Any, /) -> Array:
    """The real cube root.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cbrt(jnp.array([-8, 27])).round(4)
        Array([-2.,  3.], dtype=float32)
    """
    return lax.cbrt(*promote_inexact("cbrt", x))


def sin(x: Any, /) -> Array:
    """The sine of an angle in radians.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sin(jnp.array([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
    return lax.sin(*promote_inexact("sin", x))


def cos(x: Any, /) -> Array:
    """The cosine of an angle in radians.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cos(jnp.array([0.0, 1.0])).round(4)
        Array([1.    , 0.5403], dtype=float32)
    """
    return lax.cos(*promote_inexact("cos", x))


def tan(x: Any, /) -> Array:
    """The tangent of an angle in radians.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tan(jnp.array([0.0, 0.5])).round(4)
        Array([0.    , 0.5463], dtype=float32)
    """
    return lax.tan(*promote_inexact("tan", x))


def arcsin(x: Any, /) -> Array:
    """The angle in [-π/2, π/2] whose sine is x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arcsin(jnp.array([0.0, 0.5])).round(4)
        Array([0.    , 0.5236], dtype=float32)
    """
    return lax.asin(*promote_inexact("arcsin", x))


def arccos(x: Any, /) -> Array:
    """The angle in [0, π] whose cosine is x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arccos(jnp.array([1.0, -1.0])).round(4)
        Array([0.    , 3.1416], dtype=float32)
    """
    return lax.acos(*promote_inexact("arccos", x))


def arctan(x: Any, /) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arctan(jnp.array([0.0, 1.0])).round(4)
        Array([0.    , 0.7854], dtype=float32)
    """
    return lax.atan(*promote_inexact("arctan", x))


def sinh(x: Any, /) -> Array:
    """The hyperbolic sine (eˣ - e⁻ˣ) / 2.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sinh(jnp.array([0.0, 1.0])).round(4)
        Array([0.    , 1.1752], dtype=float32)
    """
    return lax.sinh(*promote_inexact("sinh", x))


def cosh(x: Any, /) -> Array:
    """The hyperbolic cosine (eˣ + e⁻ˣ) / 2.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cosh(jnp.array([0.0, 1.0])).round(4)
        Array([1.    , 1.5431], dtype=float32)
    """
    return lax.cosh(*promote_inexact("cosh", x))


def tanh(x: Any, /) -> Array:
    """The hyperbolic tangent.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tanh(jnp.array([0.0, 0.5])).round(4)
        Array([0.    , 0.4621], dtype=float32)
    """
    return lax.tanh(*promote_inexact("tanh", x))


def arcsinh(x: Any, /) -> Array:
    """The inverse of sinh.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arcsinh(jnp.array([0.0, 1.0])).round(4)
        Array([0.    , 0.8814], dtype=float32)
    """
    return lax.asinh(*promote_inexact("arcsinh", x))


def arccosh(x: Any, /) -> Array:
    """The inverse of cosh: the one that is not negative.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arccosh(jnp.array([1.0, 2.0])).round(4)
        Array([0.   , 1.317], dtype=float32)
    """
    (x,) = promote_inexact("arccosh", x)
    y = lax.acosh(x)
    if not is_complex(y):
        return y
    real = lax.real(y)
    return choose(lax.lt(real, const(real, 0)), lax.neg(y), y)


def arctanh(x: Any, /) -> Array:
    """The inverse of tanh.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arctanh(jnp.array([0.0, 0.5])).round(4)
        Array([0.    , 0.5493], dtype=float32)
    """
    return lax.atanh(*promote_inexact("arctanh", x))


def arctan2(x1: Any, x2: Any, /) -> Array:
    """The angle of the point (x2, x1): arctan(x1 / x2) in the right quadrant.

    Args:
        x1: the ordinate, on the y axis.
        x2: the abscissa, on the x axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([-1.0, 0.0])).round(4)
        Array([ 2.3562, -1.5708], dtype=float32)
    """
    return lax.atan2_p.bind(*promote_inexact("arctan2", x1, x2))


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


def deg2rad(x: Any, /) -> Array:
    """Degrees as radians: x · π / 180.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.deg2rad(jnp.array([90, 180]))
        Array([1.5707964, 3.1415927], dtype=float32)
    """
    (x,) = promote_inexact("deg2rad", x)
    return lax.mul(x, const(x, np.pi / 180))


def rad2deg(x: Any, /) -> Array:
    """Radians as degrees: x · 180 / π.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.rad2deg(jnp.array([jnp.pi]))
        Array([180.], dtype=float32)
    """
    (x,) = promote_inexact("rad2deg", x)
    return lax.mul(x, const(x, 180 / np.pi))


radians, degrees = deg2rad, rad2deg


def hypot(x1: Any, x2: Any, /) -> Array:
    """√(x1² + x2²), without overflow on the way.

    Args:
        x1, x2: the legs of right triangles.

    Raises:
        ValueError: complex operands.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.hypot(jnp.array([3, 5]), jnp.array([4, 12]))
        Array([ 5., 13.], dtype=float32)
    """
    x, y = promote_inexact("hypot", x1, x2)
    if is_complex(x):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs; take jnp.abs of the operands "
            "first."
        )
    x, y = lax.abs(x), lax.abs(y)
    large, small = lax.max(x, y), lax.min(x, y)
    empty = lax.eq(large, const(x, 0))
    ratio = lax.div(small, choose(empty, const(x, 1), large))
    length = lax.mul(large, lax.sqrt(lax.add(lax.square(ratio), const(x, 1))))
    infinite = lax.eq(large, const(x, np.inf))
    # A vector of NaN and infinity has infinite length, so the smaller one is tested, too.
    infinite = bits.bitwise_or(infinite, bits.bitwise_or(_is_inf(x), _is_inf(y)))
    return choose(infinite, const(length, np.inf), choose(empty, large, length))


def _is_inf(x: Array) -> Array:
    return lax.eq(x, const(x, np.inf))


def _finite_above(x: Array) -> Array:
    """x with +∞ replaced by 0, so that the difference of two infinities is 0."""
    real = lax.real(x) if is_complex(x) else x
    return choose(_is_inf(real), const(x, 0), x)


def _log_add(power: Any, log1p: Any, turn: float, x: Array, y: Array) -> Array:
    """max + log(1 + exp(-|x - y|)), in the base of `power`; complex angles repeat after `turn`."""
    top = lax.max(x, y)
    if not is_complex(x):
        gap = lax.sub(x, y)
        tail = log1p(power(lax.neg(lax.abs(gap))))
        # Equal infinities have no gap; their sum is as infinite, and NaN stays NaN.
        return choose(lax.ne(gap, gap), lax.add(x, y), lax.add(top, tail))
    gap = lax.sub(lax.add(x, y), lax.mul(top, const(x, 2)))
    out = lax.add(top, log1p(power(gap)))
    imag = lax.imag(out)
    turns = lax.floor(lax.div(lax.add(imag, const(imag, turn / 2)), const(imag, turn)))
    return lax.complex(lax.real(out), lax.sub(imag, lax.mul(turns, const(imag, turn))))


def _log1p_base2(x: Array) -> Array:
    y = lax.log1p(x)
    return lax.mul(y, const(y, 1 / np.log(2)))


# Functions with a custom rule may get plain numbers: a transformation passes on what
# the user passed.
@custom_jvp
def _logaddexp(x, y):
    return _log_add(lax.exp, lax.log1p, 2 * np.pi, to_array(x), to_array(y))


@custom_jvp
def _logaddexp2(x, y):
    return _log_add(lax.exp2, _log1p_base2, 2 * np.pi / np.log(2), to_array(x), to_array(y))


def _log_add_jvp(fun, power, primals, tangents):
    (x, y), (dx, dy) = map(to_array, primals), map(to_array, tangents)
    out = fun(x, y)
    peak = _finite_above(out)
    return out, lax.add(
        lax.mul(dx, power(lax.sub(_finite_above(x), peak))),
        lax.mul(dy, power(lax.sub(_finite_above(y), peak))),
    )


_logaddexp.defjvp(partial(_log_add_jvp, _logaddexp, lax.exp))
_logaddexp2.defjvp(partial(_log_add_jvp, _logaddexp2, lax.exp2))


@elementwise(2, identity=-np.inf)
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(exp(x1) + exp(x2)), without overflow.

    Its derivative is also correct where an operand is infinite.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logaddexp(jnp.array([1000.0, -jnp.inf]), jnp.array([1000.0, 2.0])).round(2)
        Array([1000.69,    2.  ], dtype=float32)
    """
    return _logaddexp(*_same_shape(promote_inexact("logaddexp", x1, x2)))


@elementwise(2, identity=-np.inf)
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """log₂(2ˣ¹ + 2ˣ²), without overflow.

    Args:
        x1, x2: arrays or numbers, broadcast against one another.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.logaddexp2(jnp.array([1000.0, 0.0]), jnp.array([1000.0, 0.0]))
        Array([1001.,    1.], dtype=float32)
    """
    return _logaddexp2(*_same_shape(promote_inexact("logaddexp2", x1, x2)))


def _same_shape(arrays: list[Array]) -> list[Array]:
    """Scalars repeated: a rule with its own derivative sees operands of one shape."""
    shape = sizes.broadcast_shapes(*(x.shape for x in arrays))
    return [lax.broadcast_to(x, shape) for x in arrays]


def sinc(x: Any, /) -> Array:
    """The normalised sinc function sin(πx) / (πx), which is 1 at 0.

    Derivatives of every order are correct at 0, where the quotient itself has none.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.sinc(jnp.array([0.0, 0.5, 1.0])).round(4)
        Array([ 1.    ,  0.6366, -0.    ], dtype=float32)
    """
    (x,) = promote_inexact("sinc", x)
    zero = lax.eq(x, const(x, 0))
    angle = lax.mul(x, const(x, np.pi))
    safe = choose(zero, const(x, 1), angle)
    return choose(zero, _sinc_series(0, angle), lax.div(lax.sin(safe), safe))


@partial(custom_jvp, nondiff_argnums=(0,))
def _sinc_series(order, x):
    """The derivative of that order of sin(x) / x at 0, in the shape of x."""
    x = to_array(x)
    value = 0.0 if order % 2 else (-1) ** (order // 2) / (order + 1)
    return lax.add(lax.mul(x, const(x, 0)), const(x, value))


@_sinc_series.defjvp
def _sinc_series_jvp(order, primals, tangents):
    (x,), (t,) = primals, tangents
    return _sinc_series(order, x), lax.mul(_sinc_series(order + 1, x), t)


@custom_jvp
def _i0(x):
    from namoo.primitives.special import incomplete  # imported here because few programs need it

    size = lax.abs(to_array(x))
    return lax.mul(lax.exp(size), incomplete.bessel_i0e(size))


@_i0.defjvp
def _i0_jvp(primals, tangents):
    from namoo.primitives.special import incomplete

    (x,), (t,) = primals, tangents
    x = to_array(x)
    slope = lax.mul(lax.exp(lax.abs(x)), incomplete.bessel_i1e(x))
    return _i0(x), lax.mul(slope, t)


def i0(x: Any, /) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Raises:
        ValueError: a complex array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.i0(jnp.array([0.0, 1.0])).round(4)
        Array([1.    , 1.2661], dtype=float32)
    """
    (x,) = promote_inexact("i0", x)
    refuse_complex("i0", x, ValueError)
    return _i0(x)


attach_shortcuts(globals())
