"""Losses of segmentations: how much predicted and true regions overlap."""

from __future__ import annotations

from typing import Any

from namoo import nn
from namoo import numpy as jnp
from namoo.core.trace import Tracer
from namoo.optim.losses.checks import check_rank, check_same_shape

__all__ = ["binary_dice_loss", "dice_loss", "multiclass_generalized_dice_loss"]

Array = Any

_REDUCTIONS = {
    "mean": lambda x: jnp.mean(x, axis=-1),
    "sum": lambda x: jnp.sum(x, axis=-1),
    "none": lambda x: x,
}


def dice_loss(
    predictions: Array,
    targets: Array,
    *,
    class_weights: Array | None = None,
    smooth: Any = 1.0,
    alpha: Any = 0.5,
    beta: Any = 0.5,
    apply_softmax: bool = True,
    reduction: str = "mean",
    ignore_background: bool = False,
    axis: Any = None,
) -> Array:
    """One minus the overlap of predicted and true regions (Dice, or with α ≠ β Tversky).

        1 - (I + s) / (I + α·(P - I) + β·(T - I) + s),    I = Σ p·t,  P = Σ p,  T = Σ t

    Args:
        predictions: logits of shape (examples, *space, classes).
        targets: one-hot labels of that shape.
        class_weights: a weight for each class.
        smooth: the term s.
        alpha: the weight of false positives.
        beta: the weight of false negatives.
        apply_softmax: False takes predictions as probabilities. For one class the logistic function
          is applied.
        reduction: 'mean', 'sum' or 'none', over the classes.
        ignore_background: leave out class 0.
        axis: the axes of space; all between the first and the last by default.

    Example:
        >>> dice_loss(jnp.array([[[9.0, 0.0], [0.0, 9.0]]]), jnp.array([[[1.0, 0.0], [1.0, 0.0]]]))
        Array([0.26666665], dtype=float32)
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(
            f"dice_loss: reduction must be one of {list(_REDUCTIONS)}, got {reduction!r}."
        )
    predictions, targets = jnp.asarray(predictions), jnp.asarray(targets)
    if predictions.ndim == targets.ndim - 1:
        predictions = predictions[..., None]
    if targets.ndim == predictions.ndim - 1:
        targets = targets[..., None]
    check_same_shape("dice_loss", predictions=predictions, targets=targets)
    if apply_softmax and predictions.shape[-1] == 1:
        p = nn.sigmoid(predictions)
    elif apply_softmax:
        p = nn.softmax(predictions, axis=-1)
    else:
        p = predictions
        _check_probabilities(p)
    axis = tuple(range(1, p.ndim - 1)) if axis is None else axis
    both = jnp.sum(p * targets, axis=axis)
    only_p = jnp.sum(p, axis=axis) - both
    only_t = jnp.sum(targets, axis=axis) - both
    loss = 1.0 - (both + smooth) / (both + alpha * only_p + beta * only_t + smooth)
    if class_weights is not None:
        check_rank("dice_loss", "class_weights", class_weights, 1)
        loss = loss * class_weights
    if ignore_background and p.shape[-1] > 1:
        loss = loss[..., 1:]
    return _REDUCTIONS[reduction](loss)


def _check_probabilities(p):
    """Probabilities sum to 1; while a program is traced they are not known yet."""
    sums = jnp.sum(p, axis=-1)
    if not isinstance(sums, Tracer) and not jnp.allclose(sums, 1.0, rtol=1e-5):
        raise ValueError(
            "dice_loss: with apply_softmax=False predictions must be probabilities that sum to 1 "
            f"over the classes; the sums are between {float(sums.min()):.6f} and "
            f"{float(sums.max()):.6f}."
        )


def multiclass_generalized_dice_loss(
    predictions: Array,
    targets: Array,
    *,
    smooth: Any = 1.0,
    apply_softmax: bool = True,
    ignore_background: bool = False,
) -> Array:
    """`dice_loss` in which rare classes weigh more.

        weight of a class ∝ 1 / (its number of pixels)²

    Args:
        predictions: logits of shape (examples, *space, classes).
        targets: one-hot labels of that shape.
        smooth: the term s of `dice_loss`.
        apply_softmax: False takes predictions as probabilities.
        ignore_background: leave out class 0.

    Example:
        >>> t = jnp.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> multiclass_generalized_dice_loss(2 * t, t)
        Array(0.08161393, dtype=float32)
    """
    check_same_shape("multiclass_generalized_dice_loss", predictions=predictions, targets=targets)
    counts = jnp.sum(targets, axis=tuple(range(targets.ndim - 1)))
    weights = 1.0 / (counts**2 + 1e-7)
    weights = weights / jnp.sum(weights) * len(weights)
    loss = dice_loss(
        predictions,
        targets,
        class_weights=weights,
        smooth=smooth,
        apply_softmax=apply_softmax,
        reduction="none",
        ignore_background=ignore_background,
    )
    return jnp.mean(loss)


def binary_dice_loss(
    predictions: Array, targets: Array, *, smooth: Any = 1.0, apply_sigmoid: bool = True
) -> Array:
    """`dice_loss` of one class.

    Args:
        predictions: logits of shape (examples, *space), or with a last axis of length 1.
        targets: labels of that shape.
        smooth: the term s of `dice_loss`.
        apply_sigmoid: False takes predictions as probabilities.

    Example:
        >>> binary_dice_loss(jnp.array([[9.0, -9.0]]), jnp.array([[1.0, 1.0]]))
        Array([0.19999999], dtype=float32)
    """
    if predictions.ndim == targets.ndim and predictions.shape[-1] != 1:
        predictions, targets = predictions[..., None], targets[..., None]
    return dice_loss(predictions, targets, smooth=smooth, apply_softmax=apply_sigmoid)
