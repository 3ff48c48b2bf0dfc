"""Bessel functions, hypergeometric functions, spherical harmonics."""

from __future__ import annotations

import operator
from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact, promote_types, to_array
from namoo.primitives.elementwise import abs, exp
from namoo.primitives.special import incomplete, more_functions
from namoo.primitives.special.hypergeometric import hyp1f1 as _hyp1f1
from namoo.primitives.special.hypergeometric import hyp2f1 as _hyp2f1
from namoo.scipy.special.arguments import concrete, strong, strong_reals


def i0e(x: Any) -> Array:
    """The modified Bessel function of order 0, scaled.

        i0e(x) = e⁻|ˣ| · I₀(x)

    Args:
        x: real numbers.

    Example:
        >>> i0e(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("i0e", x)
    return incomplete.bessel_i0e(x)


def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Args:
        x: real numbers.

    Example:
        >>> i0(1.0).round(4)
        Array(1.2661, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("i0", x)
    return exp(abs(x)) * incomplete.bessel_i0e(x)


def i1e(x: Any) -> Array:
    """The modified Bessel function of order 1, scaled.

        i1e(x) = e⁻|ˣ| · I₁(x)

    Args:
        x: real numbers.

    Example:
        >>> i1e(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("i1e", x)
    return incomplete.bessel_i1e(x)


def i1(x: Any) -> Array:
    """The modified Bessel function of the first kind, of order 1.

    Args:
        x: real numbers.

    Example:
        >>> i1(1.0).round(4)
        Array(0.5652, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("i1", x)
    return exp(abs(x)) * incomplete.bessel_i1e(x)


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind J₀ … Jᵥ.

    Args:
        z: real numbers.
        v: the last order, a Python integer.
        n_iter: the length of a recurrence; values are exact for any, so it has no effect here.

    Returns:
        An array of shape (v + 1, *z.shape).

    Raises:
        ValueError: complex numbers, or a negative order.
        ConcretizationTypeError: `v` is traced.

    Example:
        >>> bessel_jn(1.0, v=1).round(4)
        Array([0.7652, 0.4401], dtype=float32)
    """
    (z,) = strong_reals("bessel_jn", jnp.asarray(z))
    v = operator.index(concrete("bessel_jn", "v", v))
    int(concrete("bessel_jn", "n_iter", n_iter))
    if v < 0:
        raise ValueError(f"special.bessel_jn: the order v must not be negative, got {v}.")
    return jnp.stack([more_functions.bessel_jn(z, order) for order in range(v + 1)])


def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Kummer's confluent hypergeometric function.

        hyp1f1(a, b, x) = Σ (a)ₖ / (b)ₖ · xᵏ / k!, k = 0, 1, 2, …

    Args:
        a, b: parameters; b is not an integer below 1.
        x: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> hyp1f1(1.0, 1.0, 0.0)
        Array(1., dtype=float32)
    """
    return _hyp1f1(*strong_reals("hyp1f1", *map(jnp.asarray, (a, b, x))))


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Gauss' hypergeometric function.

        hyp2f1(a, b, c, x) = Σ (a)ₖ (b)ₖ / (c)ₖ · xᵏ / k!, k = 0, 1, 2, …

    Args:
        a, b, c: parameters; c is not an integer below 1.
        x: real numbers below 1. Derivatives with respect to a, b and c are NaN where their series
            takes too many terms: for x within about 0.01 of 1, and below about -100.

    Example:
        >>> hyp2f1(1.0, 1.0, 2.0, 0.5).round(4)
        Array(1.3863, dtype=float32)
    """
    arrays = promote_inexact("hyp2f1", *map(jnp.asarray, (a, b, c, x)))
    return _hyp2f1(*map(strong, arrays))


def sph_harm_y(
    n: Any, m: Any, theta: Any, phi: Any, diff_n: Any = None, n_max: Any = None
) -> Array:
    """Spherical harmonics.

        Yₙᵐ(θ, φ) = √((2n+1)/4π · (n-m)!/(n+m)!) · Pₙᵐ(cos θ) · eⁱᵐᵠ

    Args:
        n: degrees, integers not below 0.
        m: orders, integers with |m| ≤ n; elsewhere the result is 0.
        theta: polar angles, from 0 to π; a Python number counts as an array of one.
        phi: azimuths.
        diff_n: must be None; use `jvp` or `jacfwd` for derivatives.
        n_max: the largest degree; the result does not depend on it.

    Returns:
        Complex numbers.

    Raises:
        NotImplementedError: `diff_n` is given.

    Example:
        >>> import namoo.numpy as jnp
        >>> sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0])).round(4)
        Array([0.4886+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError(
            "sph_harm_y does not take diff_n: differentiate with jvp or jacfwd instead."
            + at_user_line()
        )
    if n_max is not None:
        int(concrete("sph_harm_y", "n_max", n_max))
    if jnp.isscalar(theta):
        theta = jnp.array([theta])
    n, m = promote_types("sph_harm_y", n, m)
    theta, phi = (to_array(x) for x in promote_inexact("sph_harm_y", theta, phi))
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    return more_functions.sph_harm_y(n, m, theta, phi)
