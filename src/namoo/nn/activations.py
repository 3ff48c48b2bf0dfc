"""Activation functions, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._lazy import later
from namoo.numpy.promote import promote_inexact
from namoo.primitives import elementwise as ops
from namoo.transforms.custom import custom_jvp
from namoo.transforms.recall import recalled

special = later("namoo.primitives.special")

Array = Any


def _inexact(name: str, x: Any) -> Any:
    return promote_inexact(name, x)[0]


def identity(x: Any) -> Array:
    """x itself, as an array.

    >>> identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return jnp.asarray(x)


@custom_jvp
def relu(x: Any) -> Array:
    r"""The rectified linear unit, whose derivative at 0 is 0.

        relu(x) = max(x, 0)

    >>> import namoo.numpy as jnp
    >>> relu(jnp.array([-2.0, 0.0, 3.0]))
    Array([0., 0., 3.], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.recall()
relu.defjvps(lambda t, out, x: jnp.where(x > 0, t, jnp.zeros_like(t)))


@custom_jvp
def relu6(x: Any) -> Array:
    """The rectified linear unit, limited to 6.

        relu6(x) = min(max(x, 0), 6)

    >>> relu6(8.0)
    Array(6., dtype=float32, weak_type=True)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.recall()
relu6.defjvps(lambda t, out, x: jnp.where((x > 0) & (x < 6), t, jnp.zeros_like(t)))


@recalled
def sigmoid(x: Any) -> Array:
    """The logistic function.

        sigmoid(x) = 1 / (1 + e⁻ˣ)

    >>> sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return ops.logistic(jnp.asarray(x))


@recalled
def softplus(x: Any) -> Array:
    """A smooth form of relu.

        softplus(x) = log(1 + eˣ)

    >>> softplus(0.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return jnp.logaddexp(x, 0)


def sparse_plus(x: Any) -> Array:
    """A smooth form of relu that is exactly 0 below -1 and exactly x above 1.

        sparse_plus(x) = 0 for x ≤ -1, x for x ≥ 1, (x + 1)² / 4 between

    >>> sparse_plus(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    x = _inexact("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x: Any) -> Array:
    """The derivative of `sparse_plus`: a straight line between 0 and 1.

        sparse_sigmoid(x) = clip((x + 1) / 2, 0, 1)

    >>> sparse_sigmoid(0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return 0.5 * jnp.clip(_inexact("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@recalled
def soft_sign(x: Any) -> Array:
    """A smooth form of the sign.

        soft_sign(x) = x / (|x| + 1)

    >>> soft_sign(1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = _inexact("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@recalled
def silu(x: Any) -> Array:
    """The sigmoid-weighted linear unit, also called swish.

        silu(x) = x · sigmoid(x)

    >>> silu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = jnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@recalled
def mish(x: Any) -> Array:
    """A smooth activation without monotony.

        mish(x) = x · tanh(softplus(x))

    >>> mish(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = _inexact("mish", x)
    return x * jnp.tanh(softplus(x))


@recalled
def log_sigmoid(x: Any) -> Array:
    """The logarithm of the logistic function.

        log_sigmoid(x) = -softplus(-x)

    >>> log_sigmoid(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return -softplus(-_inexact("log_sigmoid", x))


@recalled
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """The exponential linear unit.

        elu(x) = x for x > 0, α·(eˣ - 1) elsewhere

    >>> elu(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    x = _inexact("elu", x)
    # Where x > 0 the other branch is computed at 0, so that its derivative stays finite.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@recalled
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """A rectified linear unit with a small slope below 0.

        leaky_relu(x) = x for x ≥ 0, slope·x elsewhere

    >>> leaky_relu(-1.0)
    Array(-0.01, dtype=float32, weak_type=True)
    """
    x = _inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: Any) -> Array:
    """x limited to [-1, 1].

    >>> hard_tanh(3.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = jnp.asarray(x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@recalled
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """The exponential linear unit with a continuous derivative for every α.

        celu(x) = max(x, 0) + α·(exp(min(x, 0) / α) - 1)

    >>> celu(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    x = _inexact("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@recalled
def selu(x: Any) -> Array:
    """The scaled exponential linear unit, which keeps mean 0 and variance 1.

        selu(x) = λ·elu(x, α)

    Reference: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    >>> selu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@recalled
def gelu(x: Any, approximate: bool = True) -> Array:
    """The Gaussian error linear unit.

        gelu(x) = x · Φ(x),  approximately  x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))

    Args:
      x: an array.
      approximate: use the tanh formula.

    Reference: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    >>> gelu(0.0)
    Array(0., dtype=float32)
    """
    x = _inexact("gelu", x)
    if approximate:
        scale = np.sqrt(2 / np.pi).astype(x.dtype)
        return x * (0.5 * (1.0 + jnp.tanh(scale * (x + 0.044715 * (x**3)))))
    return (0.5 * x * special.erfc(-x * np.sqrt(0.5).astype(x.dtype))).astype(x.dtype)


def glu(x: Any, axis: int = -1) -> Array:
    """A gated linear unit: half of the features, weighted by the sigmoid of the other half.

    Args:
      x: an array whose axis has even length.
      axis: the axis to halve.

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
    """A smooth form of relu without exponentials.

        squareplus(x) = (x + √(x² + b)) / 2

    >>> squareplus(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = _inexact("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@recalled
def hard_sigmoid(x: Any) -> Array:
    """A sigmoid made of straight lines.

        hard_sigmoid(x) = relu6(x + 3) / 6

    >>> hard_sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return relu6(_inexact("hard_sigmoid", x) + 3.0) / 6.0


@recalled
def hard_silu(x: Any) -> Array:
    """A silu made of straight lines and a parabola.

        hard_silu(x) = x · hard_sigmoid(x)

    >>> hard_silu(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    x = _inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def log1mexp(x: Any) -> Array:
    """The logarithm of 1 - e⁻ˣ, exact for small and for large x.

        log1mexp(x) = log(1 - e⁻ˣ)

    >>> log1mexp(1.0)
    Array(-0.4586751, dtype=float32, weak_type=True)
    """
    x = _inexact("log1mexp", x)
    split = math.log(2.0)
    small = x < split
    # Each formula is computed only where it is used, so that the other's derivative stays finite.
    return jnp.where(
        small,
        jnp.log(-jnp.expm1(-jnp.where(small, x, split))),
        jnp.log1p(-jnp.exp(-jnp.where(small, split, x))),
    )


def tanh(x: Any, /) -> Array:
    """The hyperbolic tangent.

    >>> tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return jnp.tanh(x)
