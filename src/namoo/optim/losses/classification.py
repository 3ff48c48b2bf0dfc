"""Losses of classes: z logits (or scores), y labels, σ the logistic function."""

from __future__ import annotations

import operator
from typing import Any

from namoo import nn
from namoo import numpy as jnp
from namoo.api.map import vmap
from namoo.optim.losses.checks import check_dtype, check_floating, check_same_shape
from namoo.optim.projections import projection_simplex
from namoo.transforms.custom import custom_jvp

__all__ = [
    "hinge_loss", "make_fenchel_young_loss", "multiclass_hinge_loss",
    "multiclass_perceptron_loss", "multiclass_sparsemax_loss", "perceptron_loss",
    "poly_loss_cross_entropy", "safe_softmax_cross_entropy", "sigmoid_binary_cross_entropy",
    "sigmoid_focal_loss", "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels",
    "sparsemax_loss",
]  # fmt: skip

Array = Any


def sigmoid_binary_cross_entropy(logits: Array, labels: Array) -> Array:
    """The cross entropy of each of several independent classes.

        -y·log σ(z) - (1 - y)·log σ(-z)

    Args:
        logits: an array of floats.
        labels: probabilities or bools, of a shape that broadcasts.

    Example:
        >>> sigmoid_binary_cross_entropy(jnp.array([0.0, 2.0]), jnp.array([1, 0]))
        Array([0.6931472, 2.126928 ], dtype=float32)
    """
    check_floating("sigmoid_binary_cross_entropy", logits=logits)
    logits = jnp.asarray(logits)
    labels = jnp.asarray(labels).astype(logits.dtype)
    return -labels * nn.log_sigmoid(logits) - (1.0 - labels) * nn.log_sigmoid(-logits)


def sigmoid_focal_loss(
    logits: Array, labels: Array, *, alpha: Any = None, gamma: Any = 2.0
) -> Array:
    """Binary cross entropy that counts less where the prediction is good already.

        (1 - pₜ)ᵞ·cross entropy,   pₜ the probability given to the label

    Args:
        logits: an array of floats.
        labels: probabilities or bools.
        alpha: the weight of positive labels, 1 - alpha that of negative ones; None: no weights.
        gamma: the exponent γ.

    Example:
        >>> sigmoid_focal_loss(jnp.array([0.0, 2.0]), jnp.array([1, 0]))
        Array([0.1732868, 1.6500783], dtype=float32)
    """
    check_floating("sigmoid_focal_loss", logits=logits)
    logits = jnp.asarray(logits)
    labels = jnp.asarray(labels).astype(logits.dtype)
    log_p, log_q = nn.log_sigmoid(logits), nn.log_sigmoid(-logits)
    log_miss = nn.logsumexp(
        jnp.stack([log_p, log_q], axis=-1), axis=-1, b=jnp.stack([1 - labels, labels], axis=-1)
    )
    loss = jnp.exp(gamma * log_miss) * sigmoid_binary_cross_entropy(logits, labels)
    if alpha is None:
        return loss
    return (alpha * labels + (1.0 - alpha) * (1.0 - labels)) * loss


def hinge_loss(predictor_outputs: Array, targets: Array) -> Array:
    """The hinge loss of labels ±1.

        max(0, 1 - z·y)

    Example:
        >>> hinge_loss(jnp.array([0.5, 2.0]), jnp.array([1.0, -1.0]))
        Array([0.5, 3. ], dtype=float32)
    """
    return jnp.maximum(0, 1 - predictor_outputs * targets)


def perceptron_loss(predictor_outputs: Array, targets: Array) -> Array:
    """The perceptron's loss of labels ±1.

        max(0, -z·y)

    Example:
        >>> perceptron_loss(jnp.array([0.5, 2.0]), jnp.array([1.0, -1.0]))
        Array([0., 2.], dtype=float32)
    """
    check_same_shape("perceptron_loss", predictor_outputs=predictor_outputs, targets=targets)
    return jnp.maximum(0, -predictor_outputs * targets)


def sparsemax_loss(logits: Array, labels: Array) -> Array:
    """The loss of a binary sparsemax.

        s(-z) where y, else s(z);   s(x) = 0 for x ≤ -1,  ¼·(x + 1)² to 1,  then x

    Args:
        logits: an array of floats.
        labels: bools.

    Example:
        >>> sparsemax_loss(jnp.array([0.5, 2.0]), jnp.array([1, 0]))
        Array([0.0625, 2.    ], dtype=float32)
    """
    return nn.sparse_plus(jnp.where(labels, -logits, logits))


def _with_rank(where, logits, axis):
    if where is None or jnp.ndim(where) == jnp.ndim(logits):
        return where
    return jnp.expand_dims(where, axis)


def softmax_cross_entropy(
    logits: Array, labels: Array, axis: Any = -1, where: Array | None = None
) -> Array:
    """The cross entropy of one among several classes, with probabilities as labels.

        -Σ y·log softmax(z)

    Args:
        logits: an array of floats with classes along `axis`.
        labels: probabilities, of a shape that broadcasts.
        axis: the axis, or axes, of the classes.
        where: which classes to include.

    Example:
        >>> softmax_cross_entropy(jnp.array([1.0, 2.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
        Array(0.407606, dtype=float32)
    """
    check_floating("softmax_cross_entropy", logits=logits)
    if jnp.ndim(labels) < jnp.ndim(logits) and jnp.issubdtype(jnp.result_type(labels), jnp.integer):
        raise ValueError(
            "softmax_cross_entropy takes probabilities of the classes, but the labels are integers "
            f"of shape {jnp.shape(labels)}. Write softmax_cross_entropy_with_integer_labels("
            "logits, labels), or nn.one_hot(labels, classes)."
        )
    where = _with_rank(where, logits, axis)
    return -(labels * nn.log_softmax(logits, axis, where)).sum(axis, where=where)


def softmax_cross_entropy_with_integer_labels(
    logits: Array, labels: Array, axis: Any = -1, where: Array | None = None
) -> Array:
    """The cross entropy of one among several classes, with the class as label.

        log Σ exp(z) - z[y]

    Args:
        logits: an array of floats with classes along `axis`.
        labels: integers, of the shape of the logits without `axis`.
        axis: the axis of the classes; several are taken as one, in their order.
        where: which classes to include.

    Example:
        >>> softmax_cross_entropy_with_integer_labels(jnp.array([1.0, 2.0, 0.0]), jnp.array(1))
        Array(0.40760612, dtype=float32)
    """
    name = "softmax_cross_entropy_with_integer_labels"
    check_floating(name, logits=logits)
    check_dtype(name, "labels", labels, jnp.integer)
    logits = jnp.asarray(logits)
    where = _with_rank(where, logits, axis)
    if isinstance(axis, tuple):
        moved = tuple(operator.index(a) % logits.ndim for a in axis)
        kept = tuple(i for i in range(logits.ndim) if i not in moved)

        def joined(x):
            x = jnp.transpose(x, kept + moved)
            return x.reshape(*x.shape[: len(kept)], -1)

        logits, where = joined(logits), None if where is None else joined(where)
        axis = len(kept)
    else:
        axis = operator.index(axis)
        if not -logits.ndim <= axis < logits.ndim:
            raise ValueError(f"{name}: axis {axis} is out of range for shape {logits.shape}.")
        axis %= logits.ndim
    chosen = jnp.take_along_axis(logits, jnp.expand_dims(labels, axis), axis=axis)
    loss = nn.logsumexp(logits, axis=axis, where=where) - jnp.squeeze(chosen, axis)
    return loss if where is None else jnp.where(jnp.any(where, axis), loss, 0.0)


@custom_jvp
def _weighted_log_softmax(logits, weights):
    log_p = nn.log_softmax(logits, axis=-1)
    return jnp.where(weights != 0.0, weights * log_p, jnp.zeros_like(log_p))


@_weighted_log_softmax.defjvp
def _weighted_log_softmax_jvp(primals, tangents):
    (logits, weights), (logits_dot, weights_dot) = primals, tangents
    # Without 0·(-inf): the derivative of log softmax is finite where its value is not.
    mean = jnp.sum(logits_dot * nn.softmax(logits, axis=-1), axis=-1, keepdims=True)
    tangent = weights * (logits_dot - mean) + weights_dot * nn.log_softmax(logits, axis=-1)
    return _weighted_log_softmax(logits, weights), tangent


def safe_softmax_cross_entropy(logits: Array, labels: Array) -> Array:
    """`softmax_cross_entropy` in which labels of 0 give 0 also where a logit is -inf.

    Args:
        logits: an array of floats with classes along the last axis.
        labels: probabilities of the same shape.

    Example:
        >>> safe_softmax_cross_entropy(jnp.array([0.0, 0.0, -jnp.inf]), jnp.array([1.0, 0.0, 0.0]))
        Array(0.6931472, dtype=float32)
    """
    check_floating("safe_softmax_cross_entropy", logits=logits)
    return -jnp.sum(_weighted_log_softmax(logits, labels), axis=-1)


def poly_loss_cross_entropy(
    logits: Array, labels: Array, *, epsilon: Any = 2.0, axis: Any = -1, where: Array | None = None
) -> Array:
    """Cross entropy plus a linear term, the first of a polynomial.

        -Σ y·log softmax(z) + ε·Σ y·(1 - softmax(z))

    Args:
        logits: an array of floats with classes along `axis`.
        labels: probabilities.
        epsilon: the factor of the linear term.
        axis: the axis, or axes, of the classes.
        where: which classes to include.

    Example:
        >>> poly_loss_cross_entropy(jnp.array([1.0, 2.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
        Array(1.0771241, dtype=float32)
    """
    check_floating("poly_loss_cross_entropy", logits=logits, labels=labels)
    miss = jnp.sum(labels * (1 - nn.softmax(logits, axis, where)), axis=axis, where=where)
    return softmax_cross_entropy(logits, labels, axis, where) + epsilon * miss


def _score_of(scores, labels):
    chosen = nn.one_hot(labels, scores.shape[-1])
    return chosen, jnp.sum(scores * chosen, axis=-1)


def multiclass_hinge_loss(scores: Array, labels: Array) -> Array:
    """The hinge loss of one among several classes.

        max over classes k of (z[k] + 1[k ≠ y]) - z[y]

    Args:
        scores: an array with classes along the last axis.
        labels: integers.

    Example:
        >>> multiclass_hinge_loss(jnp.array([1.0, 2.0, 0.0]), jnp.array(0))
        Array(2., dtype=float32)
    """
    scores = jnp.asarray(scores)
    chosen, score = _score_of(scores, labels)
    return jnp.max(scores + 1.0 - chosen, axis=-1) - score


def multiclass_perceptron_loss(scores: Array, labels: Array) -> Array:
    """The perceptron's loss of one among several classes.

        max z - z[y]

    Args:
        scores: an array with classes along the last axis.
        labels: integers.

    Example:
        >>> multiclass_perceptron_loss(jnp.array([1.0, 2.0, 0.0]), jnp.array(0))
        Array(1., dtype=float32)
    """
    scores = jnp.asarray(scores)
    return jnp.max(scores, axis=-1) - _score_of(scores, labels)[1]


def multiclass_sparsemax_loss(scores: Array, labels: Array) -> Array:
    """The loss of sparsemax, the projection of scores to probabilities.

        ⟨q, z - z[y]⟩ + ½·(1 - ‖q‖²),   q = sparsemax(z)

    Args:
        scores: an array of shape (examples, classes).
        labels: integers of shape (examples,).

    Example:
        >>> multiclass_sparsemax_loss(jnp.array([[1.0, 1.5, 0.0]]), jnp.array([0]))
        Array([0.5625], dtype=float32)
    """

    def one(scores, label):
        q = projection_simplex(scores)
        # The entry of the label is 0, also where its score is infinite.
        relative = (scores - scores[label]).at[label].set(0.0)
        return jnp.dot(q, jnp.where(q, relative, 0.0)) + 0.5 * (1.0 - jnp.dot(q, q))

    return vmap(one)(jnp.asarray(scores), jnp.asarray(labels))


def make_fenchel_young_loss(max_fun: Any) -> Any:
    """The Fenchel-Young loss of a convex maximum over predictions.

        loss(z, y) = max_fun(z) - ⟨y, z⟩

    Args:
        max_fun: a function of a vector of scores, such as `logsumexp`.

    Returns:
        a function of scores and targets, both with classes along the last axis.

    Example:
        >>> loss = make_fenchel_young_loss(nn.logsumexp)
        >>> loss(jnp.array([1.0, 2.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
        Array(0.40760612, dtype=float32)
    """

    def fenchel_young_loss(scores, targets, *args, **kwargs):
        largest = jnp.vectorize(lambda z: max_fun(z, *args, **kwargs), signature="(n)->()")
        inner = jnp.vectorize(jnp.vdot, signature="(n),(n)->()")
        return largest(scores) - inner(targets, scores)

    return fenchel_young_loss
