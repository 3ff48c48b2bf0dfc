"""Elementwise activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base.lazy import later
from namoo._base.source_context import make_entry_points
from namoo.eager import attach_shortcuts
from namoo.memo.recalled import recalled, recalled_jvp
from namoo.numpy.promote import promote_inexact
from namoo.primitives import elementwise as ops

special = later("namoo.primitives.special.functions")

Array = Any


def _inexact(name: str, x: Any) -> Any:
    return promote_inexact(name, x)[0]


def identity(x: Any) -> Array:
    """Return x as an array.

    Example:
        >>> identity(2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return jnp.asarray(x)


@recalled_jvp
def relu(x: Any) -> Array:
    r"""Return the rectified linear unit, whose derivative at 0 is 0.

        relu(x) = max(x, 0)

    Example:
        >>> import namoo.numpy as jnp
        >>> relu(jnp.array([-2.0, 0.0, 3.0]))
        Array([0., 0., 3.], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, out, x: jnp.where(x > 0, t, jnp.zeros_like(t)))


@recalled_jvp
def relu6(x: Any) -> Array:
    """Return the rectified linear unit, limited to 6.

        relu6(x) = min(max(x, 0), 6)

    Example:
        >>> relu6(8.0)
        Array(6., dtype=float32, weak_type=True)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, out, x: jnp.where((x > 0) & (x < 6), t, jnp.zeros_like(t)))


@recalled
def sigmoid(x: Any) -> Array:
    """Return the logistic function.

        sigmoid(x) = 1 / (1 + e⁻ˣ)

    Example:
        >>> sigmoid(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return ops.logistic(jnp.asarray(x))


@recalled
def softplus(x: Any) -> Array:
    """Return a smooth form of relu.

        softplus(x) = log(1 + eˣ)

    Example:
        >>> softplus(0.0)
        Array(0.6931472, dtype=float32, weak_type=True)
    """
    return jnp.logaddexp(x, 0)


def sparse_plus(x: Any) -> Array:
    """Return a smooth form of relu that is exactly 0 below -1 and exactly x above 1.

        sparse_plus(x) = 0 for x ≤ -1, x for x ≥ 1, (x + 1)² / 4 between

    Example:
        >>> sparse_plus(0.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    x = _inexact("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x: Any) -> Array:
    """Return the derivative of `sparse_plus`: a straight line between 0 and 1.

        sparse_sigmoid(x) = clip((x + 1) / 2, 0, 1)

    Example:
        >>> sparse_sigmoid(0.5)
        Array(0.75, dtype=float32, weak_type=True)
    """
    return 0.5 * jnp.clip(_inexact("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@recalled
def soft_sign(x: Any) -> Array:
    """Return a smooth form of the sign.

        soft_sign(x) = x / (|x| + 1)

    Example:
        >>> soft_sign(1.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x = _inexact("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@recalled
def silu(x: Any) -> Array:
    """Return the sigmoid-weighted linear unit, also called swish.

        silu(x) = x · sigmoid(x)

    Example:
        >>> silu(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x = jnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@recalled
def mish(x: Any) -> Array:
    """Return a smooth activation that is not monotonic.

        mish(x) = x · tanh(softplus(x))

    Example:
        >>> mish(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x = _inexact("mish", x)
    return x * jnp.tanh(softplus(x))


@recalled
def log_sigmoid(x: Any) -> Array:
    """Return the logarithm of the logistic function.

        log_sigmoid(x) = -softplus(-x)

    Example:
        >>> log_sigmoid(0.0)
        Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return -softplus(-_inexact("log_sigmoid", x))


@recalled
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """Return the exponential linear unit.

        elu(x) = x for x > 0, α·(eˣ - 1) elsewhere

    Example:
        >>> elu(2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    x = _inexact("elu", x)
    # Where x > 0, the other branch is evaluated at 0 to keep its derivative finite.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@recalled
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """Return a rectified linear unit with a small slope below 0.

        leaky_relu(x) = x for x ≥ 0, slope·x elsewhere

    Example:
        >>> leaky_relu(-1.0)
        Array(-0.01, dtype=float32, weak_type=True)
    """
    x = _inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: Any) -> Array:
    """Clip x to [-1, 1].

    Example:
        >>> hard_tanh(3.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x = jnp.asarray(x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@recalled
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """Return the exponential linear unit with a continuous derivative for every α.

        celu(x) = max(x, 0) + α·(exp(min(x, 0) / α) - 1)

    Example:
        >>> celu(2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    x = _inexact("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@recalled
def selu(x: Any) -> Array:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1.

        selu(x) = λ·elu(x, α)

    Reference: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    Example:
        >>> selu(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@recalled
def gelu(x: Any, approximate: bool = True) -> Array:
    """Return the Gaussian error linear unit.

        gelu(x) = x · Φ(x),  approximately  x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))

    Args:
        x: an array.
        approximate: use the tanh formula.

    Reference: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    Example:
        >>> gelu(0.0)
        Array(0., dtype=float32)
    """
    x = _inexact("gelu", x)
    if approximate:
        scale = np.sqrt(2 / np.pi).astype(x.dtype)
        return x * (0.5 * (1.0 + jnp.tanh(scale * (x + 0.044715 * (x**3)))))
    return (0.5 * x * special.erfc(-x * np.sqrt(0.5).astype(x.dtype))).astype(x.dtype)


def glu(x: Any, axis: int = -1) -> Array:
    """Return a gated linear unit: half of the features, weighted by the sigmoid of the other half.

    Args:
        x: an array whose axis has even length.
        axis: the axis to halve.

    Example:
        >>> import namoo.numpy as jnp
        >>> glu(jnp.array([2.0, 0.0]))
        Array([1.], dtype=float32)
    """
    x = _inexact("glu", x)
    size = x.shape[axis]
    if size % 2:
        raise ValueError(f"glu: the axis to halve must have even length, got shape {x.shape}.")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@recalled
def squareplus(x: Any, b: Any = 4) -> Array:
    """Return a smooth form of relu without exponentials.

        squareplus(x) = (x + √(x² + b)) / 2

    Example:
        >>> squareplus(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x = _inexact("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@recalled
def hard_sigmoid(x: Any) -> Array:
    """Return a sigmoid made of straight lines.

        hard_sigmoid(x) = relu6(x + 3) / 6

    Example:
        >>> hard_sigmoid(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return relu6(_inexact("hard_sigmoid", x) + 3.0) / 6.0


@recalled
def hard_silu(x: Any) -> Array:
    """Return a silu made of straight lines and a parabola.

        hard_silu(x) = x · hard_sigmoid(x)

    Example:
        >>> hard_silu(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    x = _inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def log1mexp(x: Any) -> Array:
    """Return the logarithm of 1 - e⁻ˣ, exact for small and for large x.

        log1mexp(x) = log(1 - e⁻ˣ)

    Example:
        >>> log1mexp(1.0)
        Array(-0.4586751, dtype=float32, weak_type=True)
    """
    x = _inexact("log1mexp", x)
    split = math.log(2.0)
    small = x < split
    # Each formula is evaluated only where it is used, to keep the derivatives finite.
    return jnp.where(
        small,
        jnp.log(-jnp.expm1(-jnp.where(small, x, split))),
        jnp.log1p(-jnp.exp(-jnp.where(small, split, x))),
    )


def tanh(x: Any, /) -> Array:
    """Return the hyperbolic tangent.

    Example:
        >>> tanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return jnp.tanh(x)


# Defined here, not in `namoo.nn`: layers hold these functions, so each must be one object.
attach_shortcuts(globals())
make_entry_points(globals())
