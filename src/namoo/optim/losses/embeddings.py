"""Losses of embeddings and of rankings: related items are near, relevant ones come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import lax, nn
from namoo import numpy as jnp
from namoo.optim.losses.checks import check_floating
from namoo.optim.losses.regression import cosine_similarity

__all__ = ["ntxent", "ranking_softmax_loss", "triplet_margin_loss"]

Array = Any


def ntxent(embeddings: Array, labels: Array, temperature: Any = 0.07) -> Array:
    """The contrastive loss of embeddings: equal labels attract, others repel (SimCLR).

        mean over pairs i ≠ j of one label of
        -log( e(i, j) / (e(i, j) + Σ over k of other labels e(i, k)) ),   e = exp(cos / temperature)

    Args:
        embeddings: floats of shape (examples, features).
        labels: integers of shape (examples,).
        temperature: the scale of the cosines.

    Example:
        >>> ntxent(jnp.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), jnp.array([0, 0, 1]), 1.0)
        Array(0.33043772, dtype=float32)
    """
    check_floating("ntxent", embeddings=embeddings)
    embeddings, labels = jnp.asarray(embeddings), jnp.asarray(labels)
    if labels.shape[0] != embeddings.shape[0]:
        raise ValueError(
            "ntxent: every example needs a label, got embeddings of shape "
            f"{embeddings.shape} and labels of shape {labels.shape}."
        )
    cosines = cosine_similarity(
        embeddings[None, :, :], embeddings[:, None, :], epsilon=jnp.finfo(embeddings.dtype).eps
    )
    same = labels[:, None] == labels[None, :]
    pairs = same & ~jnp.eye(labels.shape[0], dtype=bool)
    others = jnp.where(same, -jnp.inf, cosines / temperature)
    matches = jnp.where(pairs, cosines / temperature, -jnp.inf)
    top = lax.stop_gradient(jnp.max(jnp.maximum(others, matches), axis=1, keepdims=True))
    repelled = jnp.sum(jnp.exp(others - top), axis=1, keepdims=True)
    log_p = (matches - top) - jnp.log(repelled + jnp.exp(matches - top))
    return -jnp.where(pairs, log_p, 0.0).sum() / pairs.sum()


def triplet_margin_loss(
    anchors: Array,
    positives: Array,
    negatives: Array,
    axis: int = -1,
    norm_degree: Any = 2,
    margin: Any = 1.0,
    eps: Any = 1e-6,
) -> Array:
    """Anchors are nearer to positives than to negatives, by a margin.

        max(d(a, p) - d(a, n) + margin, 0),   d(x, y) = (Σ (x - y)ᵏ + ε)^(1/k)

    Args:
        anchors: vectors along `axis`.
        positives: vectors that should be near.
        negatives: vectors that should be far.
        axis: the axis of the vectors.
        norm_degree: the degree k.
        margin: by how much.
        eps: added under the root.

    Example:
        >>> a = jnp.array([0.0, 0.0])
        >>> triplet_margin_loss(a, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.5]))
        Array(0.5000001, dtype=float32)
    """
    check_floating("triplet_margin_loss", anchors=anchors, positives=positives, negatives=negatives)

    def distance(x, y):
        return jnp.power(jnp.power(x - y, norm_degree).sum(axis) + eps, 1 / norm_degree)

    return jnp.maximum(distance(anchors, positives) - distance(anchors, negatives) + margin, 0)


def ranking_softmax_loss(
    logits: Array,
    labels: Array,
    *,
    where: Array | None = None,
    weights: Array | None = None,
    reduce_fn: Callable[..., Array] | None = jnp.mean,
) -> Array:
    """The cross entropy of a list's scores with its labels as relevances.

        -Σ y·log softmax(z)

    Args:
        logits: scores, with lists along the last axis.
        labels: relevances.
        where: which items are present.
        weights: weights of the items.
        reduce_fn: how the losses of lists are combined, `jnp.mean` or `jnp.sum`; None keeps them.

    Example:
        >>> ranking_softmax_loss(jnp.array([1.0, 2.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
        Array(0.407606, dtype=float32)
    """
    check_floating("ranking_softmax_loss", logits=logits)
    logits = jnp.asarray(logits)
    labels = jnp.asarray(labels).astype(logits.dtype)
    if where is not None:
        labels = jnp.where(where, labels, 0)
        logits = jnp.where(where, logits, -jnp.inf)
    if weights is not None:
        labels = labels * weights
    loss = -jnp.sum(labels * nn.log_softmax(logits, axis=-1), axis=-1, where=where)
    if where is not None:
        where = jnp.any(where, axis=-1)
    if reduce_fn is None:
        return loss if where is None else jnp.where(where, loss, 0.0)
    result = reduce_fn(loss, where=where)
    if reduce_fn is jnp.mean:
        # The mean of no lists is 0; nan in the losses stays nan.
        result = jnp.where(jnp.isnan(result) & ~jnp.any(jnp.isnan(loss)), 0.0, result)
    return result
