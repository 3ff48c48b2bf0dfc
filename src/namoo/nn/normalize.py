"""Log-sum-exp, softmax, standardisation and one-hot vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.source_context import warn_user
from namoo.core.trace import axis_size
from namoo.dimensions.sizes import dimension
from namoo.eager import attach_shortcuts
from namoo.memo.recalled import recalled
from namoo.numpy.creation import concrete
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import rsqrt
from namoo.primitives.shape import stop_gradient_p
from namoo.transforms.custom import custom_jvp

Array = Any
Axis = Any


def _fixed(x: Any) -> Any:
    """Return x without derivatives."""
    return stop_gradient_p.bind(x)


@recalled
def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Return the logarithm of a sum of exponentials, computed without overflow.

        logsumexp(a) = log Σ b·exp(a)

    Args:
        a: an array.
        axis: the axis, or axes, to sum over; all by default.
        b: factors of the exponentials.
        keepdims: keep the summed axes with length 1.
        return_sign: return the logarithm of the sum's size, and its sign.
        where: which elements to include.

    Example:
        >>> import namoo.numpy as jnp
        >>> logsumexp(jnp.array([1000.0, 1000.0]))
        Array(1000.6932, dtype=float32)
    """
    if b is None:
        (a,) = promote_inexact("logsumexp", a)
    else:
        a, b = promote_inexact("logsumexp", a, b)
        a = jnp.where(b != 0, a, -np.inf)
    if where is not None:
        # Masked elements must not overflow: their derivative would be 0 · ∞.
        a = jnp.where(where, a, -np.inf)
    top = jnp.max(jnp.real(a), axis=axis, keepdims=True, initial=-np.inf)
    top = _fixed(jnp.where(jnp.isfinite(top), top, 0.0).astype(top.dtype))
    terms = jnp.exp(a - top)
    terms = terms if b is None else b * terms
    total = jnp.sum(terms, axis=axis, keepdims=keepdims, where=where)
    sign = jnp.sign(total)
    if return_sign or not jnp.issubdtype(a.dtype, jnp.complexfloating):
        if return_sign:
            total = jnp.abs(total)
        elif b is not None:
            total = jnp.where(sign < 0, np.nan, total)
    shift = top if keepdims else jnp.squeeze(top, axis=axis)
    out = jnp.log(total) + shift
    return (out, sign) if return_sign else out


def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Array:
    """Return the logarithm of a mean of exponentials, computed without overflow.

        logmeanexp(x) = log (1/n · Σ exp(x))

    Example:
        >>> import namoo.numpy as jnp
        >>> logmeanexp(jnp.array([3.0, 3.0]))
        Array(3., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    ones = jnp.ones_like(x, dtype=total.dtype)
    count = jnp.sum(ones, axis=axis, where=where, keepdims=keepdims)
    return total - jnp.log(count)


@recalled
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    """Return the logarithm of `softmax`, computed without overflow.

        log_softmax(x) = x - log Σ exp(x)

    Args:
        x: an array.
        axis: the axis, or axes, along which probabilities sum to 1.
        where: which elements to include; the others become -inf.

    Example:
        >>> import namoo.numpy as jnp
        >>> log_softmax(jnp.array([0.0, 0.0]))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    (x,) = promote_inexact("log_softmax", x)
    top = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    x_safe = x if where is None else jnp.where(where, x, -np.inf)
    shifted = x_safe - _fixed(top)
    total = jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    out = shifted - total
    return out if where is None else jnp.where(where, out, -np.inf)


@recalled
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    """Return probabilities proportional to exponentials.

        softmax(x) = exp(x) / Σ exp(x)

    Args:
        x: an array.
        axis: the axis, or axes, along which probabilities sum to 1.
        where: which elements to include; the others become 0.

    Example:
        >>> import namoo.numpy as jnp
        >>> softmax(jnp.array([0.0, 0.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    (x,) = promote_inexact("softmax", x)
    if config.softmax_custom_jvp:
        return _softmax_with_rule(x, axis, where)
    return _softmax(x, axis, where)


def _softmax(x, axis, where):
    top = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    x_safe = x if where is None else jnp.where(where, x, -np.inf)
    weights = jnp.exp(x_safe - _fixed(top))
    out = weights / jnp.sum(weights, axis, where=where, keepdims=True)
    return out if where is None else jnp.where(where, out, 0)


def _softmax_with_rule(x, axis, where):
    @custom_jvp
    def probabilities(x):
        return _softmax(x, axis, where)

    @probabilities.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        y = probabilities(x)
        return y, y * (t - (y * t).sum(axis, where=where, keepdims=True))

    return probabilities(x)


@recalled
def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Scale features to mean 0 and variance 1.

        standardize(x) = (x - mean(x)) / √(var(x) + ε)

    Args:
        x: an array.
        axis: the axis, or axes, to take mean and variance over.
        mean: the mean, where it is known.
        variance: the variance, where it is known.
        epsilon: added to the variance.
        where: which elements to take into account.
        algorithm: 'fast' computes the variance as E[x²] - E[x]², 'stable' as E[(x - E[x])²].

    Example:
        >>> import namoo.numpy as jnp
        >>> standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
        Array([-1.,  1.], dtype=float32)
    """
    (x,) = promote_inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            # Rounding can make E[x²] - E[x]² negative.
            square = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            variance = jnp.clip(square - jnp.square(mean), 0)
        elif algorithm == "stable":
            variance = jnp.var(x, axis, keepdims=True, where=where)
        else:
            raise ValueError(
                f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}."
            )
    return jnp.subtract(x, jnp.asarray(mean)) * rsqrt(jnp.asarray(variance) + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Array:
    """Return vectors that are 1 at one index and 0 elsewhere.

    Args:
        x: indices; those outside of [0, num_classes) give zeros.
        num_classes: the length of the vectors.
        dtype: the type of the result; the default float type if None.
        axis: where the new axis goes, or the name of a mapped axis.

    Example:
        >>> one_hot(1, 3)
        Array([0., 1., 0.], dtype=float32)
    """
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        warn_user(
            f"jax.nn.one_hot input should be integer-typed, got dtype={x.dtype}: write "
            "one_hot(x.astype(int), n).",
            DeprecationWarning,
        )
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.canonicalize_dtype(dtype)
    try:
        axis = operator.index(axis)
    except TypeError:
        size = axis_size(axis)
        if num_classes != size:
            raise ValueError(
                f"one_hot: expected num_classes to match the size of axis {axis!r}, but "
                f"{num_classes} != {size}."
            ) from None
        from namoo.control.collectives import axis_index  # rarely needed, so loaded late

        return jnp.asarray(x == axis_index(axis), dtype)
    num_classes = dimension(
        concrete(num_classes, "the number in jax.nn.one_hot argument `num_classes`")
    )
    ndim = x.ndim + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"one_hot: axis {axis} is out of range for a result of rank {ndim}.")
    axis %= ndim
    left = jnp.expand_dims(x, axis)
    shape = [num_classes if i == axis else 1 for i in range(ndim)]
    known = np.arange if isinstance(num_classes, int) else jnp.arange
    right = known(num_classes).astype(x.dtype).reshape(shape)
    return jnp.asarray(left == right, dtype)


attach_shortcuts(globals())
