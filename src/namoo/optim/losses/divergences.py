"""Losses of distributions: log p predictions, q targets; and smoothed labels."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.optim.losses.checks import check_floating

__all__ = [
    "convex_kl_divergence", "generalized_kl_divergence", "kl_divergence",
    "kl_divergence_with_log_targets", "smooth_labels",
]  # fmt: skip

Array = Any


def kl_divergence(
    log_predictions: Array, targets: Array, axis: Any = -1, where: Array | None = None
) -> Array:
    """How far predicted probabilities are from true ones (Kullback and Leibler).

        Σ q·(log q - log p)

    Args:
        log_predictions: logarithms of probabilities.
        targets: probabilities.
        axis: the axis, or axes, of the outcomes.
        where: which outcomes to include.

    Example:
        >>> kl_divergence(jnp.log(jnp.array([0.5, 0.5])), jnp.array([1.0, 0.0]))
        Array(0.6931472, dtype=float32)
    """
    check_floating("kl_divergence", log_predictions=log_predictions, targets=targets)
    log_targets = jnp.where(targets == 0, 0, jnp.log(targets))
    return jnp.sum(targets * (log_targets - log_predictions), axis=axis, where=where)


def kl_divergence_with_log_targets(
    log_predictions: Array, log_targets: Array, axis: Any = -1, where: Array | None = None
) -> Array:
    """`kl_divergence` with logarithms of the true probabilities.

    Example:
        >>> p, q = jnp.array([0.5, 0.5]), jnp.array([0.25, 0.75])
        >>> kl_divergence_with_log_targets(jnp.log(p), jnp.log(q))
        Array(0.13081202, dtype=float32)
    """
    check_floating(
        "kl_divergence_with_log_targets", log_predictions=log_predictions, log_targets=log_targets
    )
    terms = jnp.exp(log_targets) * (log_targets - log_predictions)
    return jnp.sum(terms, axis=axis, where=where)


def generalized_kl_divergence(
    log_predictions: Array, targets: Array, axis: Any = -1, where: Array | None = None
) -> Array:
    """`kl_divergence` of measures that need not sum to 1.

        Σ q·(log q - log p) + Σ (p - q)

    Args:
        log_predictions: logarithms of measures.
        targets: measures.
        axis: the axis, or axes, of the outcomes.
        where: which outcomes to include.

    Example:
        >>> generalized_kl_divergence(jnp.log(jnp.array([2.0, 1.0])), jnp.array([1.0, 1.0]))
        Array(0.30685282, dtype=float32)
    """
    excess = jnp.sum(jnp.exp(log_predictions) - targets, axis=axis, where=where)
    return kl_divergence(log_predictions, targets, axis, where) + excess


convex_kl_divergence = generalized_kl_divergence


def smooth_labels(
    labels: Array, alpha: Any, *, axis: Any = -1, where: Array | None = None
) -> Array:
    """Labels mixed with the uniform distribution.

        (1 - α)·y + α / n

    Args:
        labels: probabilities of n classes along `axis`.
        alpha: the part of the uniform distribution.
        axis: the axis, or axes, of the classes.
        where: which classes to count.

    Example:
        >>> smooth_labels(jnp.array([0.0, 1.0]), 0.1)
        Array([0.05, 0.95], dtype=float32)
    """
    check_floating("smooth_labels", labels=labels)
    count = jnp.size(labels, axis) if where is None else jnp.sum(where, axis, keepdims=True)
    return (1.0 - alpha) * labels + alpha / count
