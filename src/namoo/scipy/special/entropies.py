"""Logits, x·log y, entropies, power transformations, sums of exponentials."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.core.array import Array
from namoo.nn import normalize
from namoo.nn.normalize import logsumexp as logsumexp
from namoo.numpy.promote import promote_inexact, to_array
from namoo.primitives.elementwise import log, log1p, logistic
from namoo.primitives.shape import convert_element_type
from namoo.scipy.special.arguments import reals
from namoo.transforms.custom import custom_jvp


@custom_jvp
def _logit(x):
    x = to_array(x)
    return log(x / (1 - x))


_logit.defjvps(lambda t, out, x: jnp.true_divide(t, x * (1 - x)))


def logit(x: Any) -> Array:
    """The logarithm of odds: the inverse of `expit`.

        logit(x) = log(x / (1 - x))

    Args:
        x: probabilities; NaN outside of [0, 1].

    Example:
        >>> logit(0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("logit", x)
    return _logit(x)


def expit(x: Any) -> Array:
    """The logistic function.

        expit(x) = 1 / (1 + e⁻ˣ)

    Args:
        x: numbers.

    Example:
        >>> expit(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("expit", x)
    return logistic(x)


@custom_jvp
def _xlogy(x, y):
    x, y = to_array(x), to_array(y)
    return jnp.where((x != 0) | jnp.isnan(y), x * log(y), jnp.zeros_like(x))


_xlogy.defjvps(
    lambda t, out, x, y: convert_element_type(t * log(y), out.dtype),
    lambda t, out, x, y: convert_element_type(jnp.true_divide(t * x, y), out.dtype),
)


def xlogy(x: Any, y: Any) -> Array:
    """x · log(y), which is 0 where x is 0.

    Args:
        x, y: numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> xlogy(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]))
        Array([0., 0.], dtype=float32)
    """
    return _xlogy(*promote_inexact("xlogy", x, y))


@custom_jvp
def _xlog1py(x, y):
    x, y = to_array(x), to_array(y)
    return jnp.where((x != 0) | jnp.isnan(y), x * log1p(y), jnp.zeros_like(x))


_xlog1py.defjvps(
    lambda t, out, x, y: convert_element_type(t * log1p(y), out.dtype),
    lambda t, out, x, y: convert_element_type(jnp.true_divide(t * x, 1 + y), out.dtype),
)


def xlog1py(x: Any, y: Any) -> Array:
    """x · log(1 + y), which is 0 where x is 0.

    Args:
        x, y: numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> xlog1py(jnp.array([0.0, 1.0]), jnp.array([-1.0, 0.0]))
        Array([0., 0.], dtype=float32)
    """
    return _xlog1py(*promote_inexact("xlog1py", x, y))


@custom_jvp
def _xlogx(x):
    return xlogy(x, x)


_xlogx.defjvps(lambda t, out, x: t * (log(x) + 1))


def entr(x: Any) -> Array:
    """The contribution of a probability to an entropy.

        entr(x) = -x · log(x) for x > 0, 0 for x = 0, -∞ below

    Args:
        x: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> entr(0.0)
        Array(-0., dtype=float32, weak_type=True)
    """
    (x,) = reals("entr", x)
    return jnp.where(x < 0, -jnp.inf, -_xlogx(x))


def rel_entr(p: Any, q: Any) -> Array:
    """The contribution of a pair of probabilities to a relative entropy.

        rel_entr(p, q) = p · log(p/q) for p, q > 0, 0 for p = 0 and q ≥ 0, ∞ elsewhere

    Args:
        p, q: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> rel_entr(0.5, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    p, q = reals("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    # Elsewhere the logarithms are taken of 1, so that their derivatives stay finite.
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    value = _xlogx(safe_p) - xlogy(safe_p, safe_q)
    return jnp.where(both, value, jnp.where((p == 0) & (q >= 0), 0.0, jnp.inf))


def kl_div(p: Any, q: Any) -> Array:
    """The contribution of a pair of numbers to a Kullback-Leibler divergence.

        kl_div(p, q) = p · log(p/q) - p + q for p, q > 0, q for p = 0 and q ≥ 0, ∞ elsewhere

    Args:
        p, q: real numbers.

    Raises:
        ValueError: complex numbers.

    Example:
        >>> kl_div(0.5, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    p, q = reals("kl_div", p, q)
    return rel_entr(p, q) - p + q


def _power_transform(log_x: Array, lmbda: Array) -> Array:
    """(exp(λ·log x) - 1) / λ, which is log x at λ = 0."""
    zero = lmbda == 0
    power = jnp.where(zero, jnp.ones_like(lmbda), lmbda)
    return jnp.where(zero, log_x, jnp.expm1(power * log_x) / power)


def boxcox(x: Any, lmbda: Any) -> Array:
    """The power transformation of Box and Cox.

        boxcox(x, λ) = (x**λ - 1) / λ, and log(x) for λ = 0

    Args:
        x: numbers above 0; NaN below.
        lmbda: exponents.

    Example:
        >>> boxcox(3.0, 1.0).round(4)
        Array(2., dtype=float32, weak_type=True)
    """
    x, lmbda = promote_inexact("boxcox", x, lmbda)
    return _power_transform(log(x), lmbda)


def boxcox1p(x: Any, lmbda: Any) -> Array:
    """The power transformation of Box and Cox, of 1 + x.

        boxcox1p(x, λ) = ((1 + x)**λ - 1) / λ, and log(1 + x) for λ = 0

    Args:
        x: numbers above -1; NaN below.
        lmbda: exponents.

    Example:
        >>> boxcox1p(2.0, 1.0).round(4)
        Array(2., dtype=float32, weak_type=True)
    """
    x, lmbda = promote_inexact("boxcox1p", x, lmbda)
    return _power_transform(log1p(x), lmbda)


def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """Probabilities in proportion to exponentials.

        softmax(x) = exp(x) / Σ exp(x)

    Args:
        x: an array.
        axis: the axis, or axes, to sum over; all by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> softmax(jnp.array([0.0, 0.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    return normalize.softmax(x, axis=axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """The logarithm of `softmax`, computed without overflow.

    Args:
        x: an array.
        axis: the axis, or axes, to sum over; all by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> log_softmax(jnp.array([0.0, 0.0]))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return normalize.log_softmax(x, axis=axis)
