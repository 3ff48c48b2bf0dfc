"""Losses of numbers: how far predictions are from targets. p predictions, t targets."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.optim.losses.checks import check_floating, check_same_shape

__all__ = [
    "cosine_distance", "cosine_similarity", "huber_loss", "l2_loss", "log_cosh", "squared_error",
]  # fmt: skip

Array = Any


def _errors(predictions, targets):
    return predictions if targets is None else predictions - targets


def squared_error(predictions: Array, targets: Array | None = None) -> Array:
    """The squared error of each element.

        (p - t)²

    Args:
        predictions: an array of floats.
        targets: an array of the same shape; 0 by default.

    Example:
        >>> squared_error(jnp.array([1.0, 3.0]), jnp.array([1.0, 1.0]))
        Array([0., 4.], dtype=float32)
    """
    check_floating("squared_error", predictions=predictions)
    if targets is not None:
        check_same_shape("squared_error", predictions=predictions, targets=targets)
    return _errors(predictions, targets) ** 2


def l2_loss(predictions: Array, targets: Array | None = None) -> Array:
    """Half the squared error of each element.

        ½·(p - t)²

    Args:
        predictions: an array of floats.
        targets: an array of the same shape; 0 by default.

    Example:
        >>> l2_loss(jnp.array([1.0, 3.0]), jnp.array([1.0, 1.0]))
        Array([0., 2.], dtype=float32)
    """
    return 0.5 * squared_error(jnp.asarray(predictions), targets)


def huber_loss(predictions: Array, targets: Array | None = None, *, delta: Any = 1.0) -> Array:
    """The Huber loss: squared near zero, linear from `delta` on.

        ½·e²   for |e| ≤ δ,   else   δ·(|e| - ½·δ),    e = p - t

    Args:
        predictions: an array of floats.
        targets: an array; 0 by default.
        delta: where the line begins.

    Example:
        >>> huber_loss(jnp.array([0.5, 3.0]))
        Array([0.125, 2.5  ], dtype=float32)
    """
    check_floating("huber_loss", predictions=predictions)
    size = jnp.abs(_errors(predictions, targets))
    near = jnp.minimum(size, delta)
    return 0.5 * near**2 + delta * (size - near)


def log_cosh(predictions: Array, targets: Array | None = None) -> Array:
    """The logarithm of the hyperbolic cosine: squared near zero, linear far away.

        log cosh(p - t)

    Args:
        predictions: an array of floats.
        targets: an array; 0 by default.

    Example:
        >>> log_cosh(jnp.array([0.0, 100.0]))
        Array([ 0.      , 99.306854], dtype=float32)
    """
    check_floating("log_cosh", predictions=predictions)
    errors = jnp.asarray(_errors(predictions, targets))
    return jnp.logaddexp(errors, -errors) - jnp.log(2.0).astype(errors.dtype)


def cosine_similarity(
    predictions: Array,
    targets: Array,
    *,
    epsilon: Any = 0.0,
    axis: Any = -1,
    where: Array | None = None,
) -> Array:
    """The cosine of the angle between vectors.

        ⟨p, t⟩ / (‖p‖·‖t‖)

    Args:
        predictions: vectors along `axis`.
        targets: vectors along `axis`.
        epsilon: the smallest squared norm.
        axis: the axis, or axes.
        where: which elements to include.

    Example:
        >>> cosine_similarity(jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0]))
        Array(0.70710677, dtype=float32)
    """
    check_floating("cosine_similarity", predictions=predictions, targets=targets)

    def unit(x):
        square = jnp.square(x).sum(axis=axis, where=where, keepdims=True)
        return x / jnp.sqrt(jnp.clip(square, epsilon))

    return (unit(jnp.asarray(predictions)) * unit(jnp.asarray(targets))).sum(axis=axis, where=where)


def cosine_distance(
    predictions: Array,
    targets: Array,
    *,
    epsilon: Any = 0.0,
    axis: Any = -1,
    where: Array | None = None,
) -> Array:
    """One minus the cosine of the angle between vectors; see `cosine_similarity`.

    Example:
        >>> cosine_distance(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
        Array(1., dtype=float32)
    """
    return 1.0 - cosine_similarity(predictions, targets, epsilon=epsilon, axis=axis, where=where)
