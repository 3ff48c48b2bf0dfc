"""The error function and its relatives, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.numpy.promote import check_arraylike, promote_complex, promote_inexact
from namoo.numpy.same_type import is_complex
from namoo.primitives.elementwise import complex as make_complex
from namoo.primitives.elementwise import imag, neg, real
from namoo.primitives.special import functions, more_functions
from namoo.scipy.special.arguments import single_or_double, strong, strong_reals


def erf(x: Any) -> Array:
    """The error function.

        erf(x) = 2/√π · ∫ exp(-t²) dt, t from 0 to x

    Args:
        x: real numbers.

    Example:
        >>> erf(1.0).round(4)
        Array(0.8427, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("erf", x)
    return functions.erf(x)


def erfc(x: Any) -> Array:
    """1 - erf(x), exact where erf(x) is close to 1.

    Args:
        x: real numbers.

    Example:
        >>> erfc(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("erfc", x)
    return functions.erfc(x)


def erfinv(x: Any) -> Array:
    """The inverse of `erf`.

    Args:
        x: numbers between -1 and 1; NaN outside.

    Example:
        >>> erfinv(0.5).round(4)
        Array(0.4769, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("erfinv", x)
    return functions.erf_inv(x)


def erfcx(x: Any) -> Array:
    """The scaled complement of the error function, which does not underflow.

        erfcx(x) = exp(x²) · erfc(x)

    Args:
        x: real or complex numbers.

    Example:
        >>> erfcx(1.0).round(4)
        Array(0.4276, dtype=float32)
    """
    (x,) = promote_inexact("erfcx", x)
    if is_complex(x):
        return more_functions.wofz(strong(make_complex(neg(imag(x)), real(x))))
    return more_functions.erfcx(strong(x))


def wofz(z: Any) -> Array:
    """The Faddeeva function.

        wofz(z) = exp(-z²) · erfc(-iz)

    Args:
        z: real or complex numbers; the result is complex.

    Example:
        >>> wofz(1j).round(4)
        Array(0.4276+0.j, dtype=complex64)
    """
    (z,) = promote_complex("wofz", z)
    return more_functions.wofz(strong(z))


def dawsn(x: Any) -> Array:
    """Dawson's integral.

        dawsn(x) = exp(-x²) · ∫ exp(t²) dt, t from 0 to x

    Args:
        x: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> dawsn(1.0).round(4)
        Array(0.5381, dtype=float32)
    """
    (x,) = strong_reals("dawsn", x)
    return more_functions.dawsn(x)


def ndtr(x: Any) -> Array:
    """The distribution function of the standard normal distribution.

        ndtr(x) = Φ(x) = 1/√2π · ∫ exp(-t²/2) dt, t from -∞ to x

    Args:
        x: float32 or float64.

    Raises:
        TypeError: another type.

    Example:
        >>> ndtr(0.0)
        Array(0.5, dtype=float32)
    """
    x = single_or_double("ndtr", x)
    half, scale = np.asarray(0.5, x.dtype), np.asarray(-math.sqrt(0.5), x.dtype)
    return half * functions.erfc(scale * x)


def ndtri(p: Any) -> Array:
    """The quantile of the standard normal distribution: the inverse of `ndtr`.

    Args:
        p: probabilities, float32 or float64; NaN outside of [0, 1].

    Raises:
        TypeError: another type.

    Example:
        >>> ndtri(0.975).round(3)
        Array(1.96, dtype=float32)
    """
    check_arraylike("ndtri", p)
    return more_functions.ndtri(single_or_double("ndtri", p))


def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """The logarithm of the distribution function of the standard normal distribution.

        log_ndtr(x) = log Φ(x)

    Args:
        x: float32 or float64.
        series_order: how many terms of an asymptotic series to use where x is far below 0; values
            are exact for any, so it has no effect here.

    Raises:
        TypeError: another type of x, or `series_order` is not an integer.
        ValueError: `series_order` is not between 0 and 30.

    Example:
        >>> log_ndtr(-20.0).round(2)
        Array(-203.92, dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order must be a Python integer, got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be between 0 and 30, got {series_order}.")
    return more_functions.log_ndtr(single_or_double("log_ndtr", x))


def owens_t(h: Any, a: Any) -> Array:
    """Owen's function: the probability of X > h and 0 < Y < aX for independent normal X and Y.

        owens_t(h, a) = 1/2π · ∫ exp(-h²(1 + t²)/2) / (1 + t²) dt, t from 0 to a

    Args:
        h, a: real numbers.

    Example:
        >>> owens_t(0.0, 1.0)
        Array(0.125, dtype=float32)
    """
    # JAX integrates in the default type, so the result has at least that.
    at_least = np.zeros((), dtypes.default_float_dtype())
    h, a, _ = promote_inexact("owens_t", h, a, at_least)
    return more_functions.owens_t(h, a)
