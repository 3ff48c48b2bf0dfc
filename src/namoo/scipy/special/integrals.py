"""Integrals of elementary functions: exponential, sine, cosine, Fresnel, the dilogarithm."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.numpy.same_type import is_complex
from namoo.primitives.special import more_functions
from namoo.scipy.special.arguments import single_or_double, strong, strong_reals


def expi(x: Any) -> Array:
    """The exponential integral.

        expi(x) = ∫ eᵗ/t dt, t from -∞ to x

    Args:
        x: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> expi(1.0).round(4)
        Array(1.8951, dtype=float32)
    """
    (x,) = strong_reals("expi", x)
    return more_functions.expi(x)


def expn(n: Any, x: Any) -> Array:
    """The exponential integral of order n.

        expn(n, x) = ∫ e⁻ˣᵗ / tⁿ dt, t from 1 to ∞

    Args:
        n: orders; there is no derivative with respect to them.
        x: real numbers, not below 0.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> expn(2, 1.0).round(4)
        Array(0.1485, dtype=float32)
    """
    return more_functions.expn(*strong_reals("expn", jnp.asarray(n), jnp.asarray(x)))


def exp1(x: Any) -> Array:
    """The exponential integral of order 1.

        exp1(x) = ∫ e⁻ˣᵗ / t dt, t from 1 to ∞

    Args:
        x: real numbers above 0.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> exp1(1.0).round(4)
        Array(0.2194, dtype=float32)
    """
    n, x = strong_reals("exp1", 1, x)
    return more_functions.expn(n, x)


def sici(x: Any) -> tuple[Array, Array]:
    """The sine and the cosine integral.

        si(x) = ∫ sin(t)/t dt,  ci(x) = γ + log|x| + ∫ (cos(t) - 1)/t dt,  t from 0 to x

    Args:
        x: real numbers.

    Returns:
        si and ci.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> si, ci = sici(1.0)
        >>> si.round(4), ci.round(4)
        (Array(0.9461, dtype=float32), Array(0.3374, dtype=float32))
    """
    (x,) = strong_reals("sici", x)
    return more_functions.si(x), more_functions.ci(x)


def fresnel(x: Any) -> tuple[Array, Array]:
    """The Fresnel integrals.

        S(x) = ∫ sin(πt²/2) dt,  C(x) = ∫ cos(πt²/2) dt,  t from 0 to x

    Args:
        x: real numbers.

    Returns:
        S and C.

    Raises:
        NotImplementedError: complex numbers.

    Example:
        >>> s, c = fresnel(1.0)
        >>> s.round(4), c.round(4)
        (Array(0.4383, dtype=float32), Array(0.7799, dtype=float32))
    """
    (x,) = promote_inexact("fresnel", x)
    if is_complex(x):
        raise NotImplementedError(
            f"special.fresnel takes real numbers, got {x.dtype}." + at_user_line()
        )
    return more_functions.fresnel_s(strong(x)), more_functions.fresnel_c(strong(x))


def spence(x: Any) -> Array:
    """Spence's function, a form of the dilogarithm.

        spence(x) = ∫ log(t) / (1 - t) dt, t from 1 to x

    Args:
        x: float32 or float64; NaN below 0.

    Raises:
        TypeError: another type.

    Example:
        >>> spence(0.0).round(4)
        Array(1.6449, dtype=float32)
    """
    return more_functions.spence(single_or_double("spence", x))
