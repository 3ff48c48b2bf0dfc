"""The gamma and beta functions, factorials, and the zeta function."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import at_user_line
from namoo.api.grad import jvp
from namoo.core.array import Array
from namoo.dimensions import sizes
from namoo.numpy.promote import promote_inexact, to_array
from namoo.numpy.same_type import is_complex
from namoo.primitives.elementwise import exp, log1p
from namoo.primitives.special import functions, incomplete, more_functions
from namoo.scipy.special.arguments import concrete, reals, strong, strong_reals
from namoo.transforms.custom import custom_jvp


def gammaln(x: Any) -> Array:
    """The logarithm of the size of the gamma function.

        gammaln(x) = log |Γ(x)|

    Args:
        x: real numbers.

    Example:
        >>> gammaln(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("gammaln", x)
    return functions.lgamma(x)


def gammasgn(x: Any) -> Array:
    """The sign of the gamma function; NaN at its poles, the negative integers.

    Args:
        x: real numbers; the sign at ±0 is that of the zero.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> gammasgn(jnp.array([-1.5, -0.5, 2.0]))
        Array([ 1., -1.,  1.], dtype=float32)
    """
    (x,) = reals("gammasgn", x)
    below = jnp.floor(x)
    pole = (x < 0) & (x == below)
    negative = (x < 0) & (below % 2 != 0) | (x == 0) & jnp.signbit(x)
    one, nan = (np.asarray(value, x.dtype) for value in (1, np.nan))
    return jnp.where(pole | jnp.isnan(x), nan, jnp.where(negative, -one, one))


def loggamma(x: Any) -> Array:
    """The logarithm of the gamma function, on its principal branch.

    Args:
        x: real or complex numbers. Of negative real numbers the result is NaN; of complex ones
            it is continuous but for a cut along the negative real axis.

    Example:
        >>> loggamma(1 + 1j).round(3)
        Array(-0.651-0.302j, dtype=complex64)
    """
    (x,) = promote_inexact("loggamma", x)
    if is_complex(x):
        return more_functions.loggamma(strong(x))
    return jnp.where(x > 0, functions.lgamma(x), jnp.nan)


def gamma(x: Any) -> Array:
    """The gamma function, which continues the factorial: Γ(n + 1) = n!.

        Γ(x) = ∫ tˣ⁻¹ e⁻ᵗ dt, t from 0 to ∞

    Args:
        x: real or complex numbers; NaN at the negative integers.

    Example:
        >>> import namoo.numpy as jnp
        >>> gamma(jnp.array([1.0, 0.5])).round(4)
        Array([1.    , 1.7725], dtype=float32)
    """
    (x,) = promote_inexact("gamma", x)
    if is_complex(x):
        return exp(more_functions.loggamma(strong(x)))
    return gammasgn(x) * exp(functions.lgamma(x))


def betaln(a: Any, b: Any) -> Array:
    """The logarithm of the size of the beta function.

        betaln(a, b) = log |Γ(a) Γ(b) / Γ(a + b)|

    Args:
        a, b: real numbers.

    Example:
        >>> betaln(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return more_functions.betaln(*promote_inexact("betaln", a, b))


def beta(a: Any, b: Any) -> Array:
    """The beta function.

        B(a, b) = Γ(a) Γ(b) / Γ(a + b)

    Args:
        a, b: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> beta(2.0, 2.0).round(4)
        Array(0.1667, dtype=float32)
    """
    a, b = reals("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * exp(more_functions.betaln(a, b))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The regularised incomplete beta function.

        betainc(a, b, x) = 1/B(a, b) · ∫ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt, t from 0 to x

    Args:
        a, b: parameters above 0; there is no derivative with respect to them.
        x: the upper limit, between 0 and 1.

    Raises:
        ValueError: complex numbers, or a derivative with respect to a or b.

    Example:
        >>> betainc(1.0, 1.0, 0.25)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return incomplete.betainc(*reals("betainc", a, b, x))


def factorial(n: Any, exact: bool = False) -> Array:
    """The factorial n!, continued to real numbers by the gamma function; 0 below 0.

    Args:
        n: real numbers.
        exact: must be False; integers of any size are `math.factorial`'s.

    Raises:
        NotImplementedError: `exact` is True.

    Example:
        >>> import namoo.numpy as jnp
        >>> factorial(jnp.array([0, 1, 2, 3])).round(3)
        Array([1., 1., 2., 6.], dtype=float32)
    """
    if exact:
        raise NotImplementedError(
            "factorial with exact=True: arrays have no integers that large. Use exact=False for "
            "floating point, or math.factorial for a Python integer." + at_user_line()
        )
    (n,) = promote_inexact("factorial", n)
    return jnp.where(n < 0, 0, exp(functions.lgamma(n + 1)))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things.

        comb(N, k) = N! / (k! (N - k)!)

    Args:
        N: the number of things.
        k: the number chosen; 0 where k < 0 or k > N.
        repetition: whether a thing may be chosen more than once.

    Example:
        >>> comb(4, 2).round(3)
        Array(6., dtype=float32, weak_type=True)
    """
    N, k = promote_inexact("comb", N, k)
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1.0, comb(N + k - 1, k))
    possible = (k <= N) & (N >= 0) & (k >= 0)
    n, m = jnp.where(possible, N, 0.0), jnp.where(possible, k, 0.0)
    # By the beta function, whose large terms have already cancelled.
    ways = -log1p(n) - more_functions.betaln(n - m + 1, m + 1)
    return jnp.where(possible, exp(ways), 0.0)


def digamma(x: Any) -> Array:
    """The derivative of log Γ(x).

    Args:
        x: real numbers; NaN at 0 and the negative integers.

    Example:
        >>> digamma(1.0).round(4)
        Array(-0.5772, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("digamma", x)
    return functions.digamma(x)


def polygamma(n: Any, x: Any) -> Array:
    """The derivative of order n of `digamma`.

    Args:
        n: integers.
        x: real numbers.

    Raises:
        ValueError: n is not of integer type, or x is complex.

    Example:
        >>> polygamma(1, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    if not dtypes.issubdtype(dtypes.dtype_of(n), np.integer):
        raise ValueError(
            f"special.polygamma: the order n must be of integer type, got {dtypes.dtype_of(n)}."
            + at_user_line()
        )
    return functions.polygamma(*reals("polygamma", n, x))


def gammainc(a: Any, x: Any) -> Array:
    """The regularised lower incomplete gamma function.

        gammainc(a, x) = 1/Γ(a) · ∫ tᵃ⁻¹ e⁻ᵗ dt, t from 0 to x

    Args:
        a: parameters above 0.
        x: the upper limit, not below 0.

    Example:
        >>> gammainc(1.0, 1.0).round(4)
        Array(0.6321, dtype=float32, weak_type=True)
    """
    return incomplete.igamma(*promote_inexact("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Array:
    """The regularised upper incomplete gamma function, 1 - gammainc(a, x).

        gammaincc(a, x) = 1/Γ(a) · ∫ tᵃ⁻¹ e⁻ᵗ dt, t from x to ∞

    Args:
        a: parameters above 0.
        x: the lower limit, not below 0.

    Example:
        >>> gammaincc(1.0, 1.0).round(4)
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return incomplete.igammac(*promote_inexact("gammaincc", a, x))


def multigammaln(a: Any, d: Any) -> Array:
    """The logarithm of the multivariate gamma function.

        multigammaln(a, d) = d(d-1)/4 · log π + Σ log Γ(a - i/2), i = 0 … d-1

    Args:
        a: real numbers above (d-1)/2.
        d: the dimension, a Python integer.

    Raises:
        ConcretizationTypeError: d is traced.

    Example:
        >>> multigammaln(2.0, 1)
        Array(0., dtype=float32)
    """
    d = int(concrete("multigammaln", "d", d))
    a, _ = promote_inexact("multigammaln", a, d)
    steps = jnp.arange(d, dtype=a.dtype) / 2
    constant = np.asarray(d * (d - 1) / 4 * math.log(math.pi), a.dtype)
    return jnp.sum(functions.lgamma(a[..., None] - steps), axis=-1) + constant


def poch(z: Any, m: Any) -> Array:
    """The rising factorial, or Pochhammer symbol.

        poch(z, m) = Γ(z + m) / Γ(z) = z (z+1) … (z+m-1)

    Args:
        z, m: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> poch(2.0, 3.0).round(3)
        Array(24., dtype=float32)
    """
    return more_functions.poch(*strong_reals("poch", z, m))


def bernoulli(n: Any) -> Array:
    """The Bernoulli numbers B₀ … Bₙ, with B₁ = -1/2.

    Args:
        n: the last index, a Python integer.

    Raises:
        ValueError: n is negative.
        ConcretizationTypeError: n is traced.

    Example:
        >>> bernoulli(4).round(4)
        Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)
    """
    n = operator.index(concrete("bernoulli", "n", n))
    if n < 0:
        raise ValueError(f"special.bernoulli: n must not be negative, got {n}.")
    import scipy.special

    with np.errstate(over="ignore"):
        numbers = np.asarray(scipy.special.bernoulli(n), dtypes.default_float_dtype())
    return to_array(numbers[: n + 1])


# B₂ₖ / (2k)! for k = 1 … 8.
_EULER_MACLAURIN = np.array(
    [
        1 / 12,
        -1 / 720,
        1 / 30240,
        -1 / 1209600,
        1 / 47900160,
        -691 / 1307674368000,
        1 / 74724249600,
        -3617 / 10670622842880000,
    ]
)
_SUMMED = 16


def _hurwitz(s: Array, q: Array) -> Array:
    """ζ(s, q) by the formula of Euler and Maclaurin: which is differentiable with respect to s.

    Σ (q+k)⁻ˢ, k < N; then with a = q+N: a¹⁻ˢ/(s-1) + a⁻ˢ/2 + Σ B₂ₖ/(2k)! (s)₂ₖ₋₁ a⁻ˢ⁻²ᵏ⁺¹.
    """
    total = jnp.sum((q[..., None] + jnp.arange(_SUMMED, dtype=q.dtype)) ** -s[..., None], -1)
    a = q + _SUMMED
    power = a**-s
    total = total + a * power / (s - 1) + power / 2
    # Each term is made from the one before, so that nothing overflows.
    term = power * s / a / 12
    for k, ratio in enumerate(_EULER_MACLAURIN[1:] / _EULER_MACLAURIN[:-1], 1):
        total = total + term
        term = term * ((s + (2 * k - 1)) / a) * ((s + 2 * k) / a) * float(ratio)
    return total + term


@custom_jvp
def _zeta(x, q):
    return functions.zeta(x, q)


@_zeta.defjvp
def _zeta_jvp(primals, tangents):
    x, q = map(to_array, primals)
    dx, dq = tangents
    _, by_x = jvp(lambda x: _hurwitz(x, q), (x,), (dx,))
    by_q = -x * _zeta(x + 1, q) * dq
    return _zeta(x, q), by_x + by_q


def zeta(x: Any, q: Any = None) -> Array:
    """The zeta function of Hurwitz; Riemann's is that of q = 1.

        zeta(x, q) = Σ (n + q)⁻ˣ, n = 0, 1, 2, …

    Args:
        x: exponents above 1.
        q: shifts; they must be given.

    Raises:
        NotImplementedError: q is None.

    Example:
        >>> zeta(2.0, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    if q is None:
        raise NotImplementedError(
            "special.zeta needs q; Riemann's zeta function is zeta(x, 1)." + at_user_line()
        )
    x, q = promote_inexact("zeta", x, q)
    shape = sizes.broadcast_shapes(x.shape, q.shape)
    return _zeta(jnp.broadcast_to(x, shape), jnp.broadcast_to(q, shape))
