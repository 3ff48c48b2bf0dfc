"""The loss of sequences whose alignment is not known (connectionist temporal classification)."""

from __future__ import annotations

from typing import Any

from namoo import lax, nn
from namoo import numpy as jnp
from namoo.optim.losses.checks import check_rank, check_same_shape

__all__ = ["ctc_loss", "ctc_loss_with_forward_probs"]

Array = Any


def ctc_loss_with_forward_probs(
    logits: Array,
    logit_paddings: Array,
    labels: Array,
    label_paddings: Array,
    *,
    blank_id: int = 0,
    log_epsilon: Any = -1e5,
) -> tuple[Array, Array, Array]:
    """`ctc_loss`, and the logarithms of the probabilities it was computed from.

    Returns:
        the loss of each sequence; for each time and each number of emitted labels the logarithm of
        the probability of a blank, or of the last of these labels, at that time: shapes (times,
        examples, labels + 1) and (times, examples, labels).

    Example:
        >>> zeros = jnp.zeros
        >>> outs = ctc_loss_with_forward_probs(
        ...     zeros((1, 3, 2)), zeros((1, 3)), jnp.ones((1, 1), int), zeros((1, 1))
        ... )
        >>> [x.shape for x in outs]
        [(1,), (3, 1, 2), (3, 1, 1)]
    """
    check_rank("ctc_loss", "logits", logits, 3)
    check_rank("ctc_loss", "labels", labels, 2)
    check_same_shape("ctc_loss", labels=labels, label_paddings=label_paddings)
    batch, _, classes = logits.shape
    if labels.shape[0] != batch or logit_paddings.shape != logits.shape[:2]:
        raise ValueError(
            "ctc_loss: expected logits (examples, times, classes), logit_paddings (examples, "
            f"times) and labels (examples, labels), got {logits.shape}, {logit_paddings.shape} and "
            f"{labels.shape}."
        )
    most = labels.shape[1]
    lengths = most - jnp.sum(label_paddings, axis=1).astype(jnp.int32)
    log_p = nn.log_softmax(logits)

    # Between equal labels there must be a blank.
    repeats = (labels[:, :-1] == labels[:, 1:]).astype(jnp.float32)
    repeats = jnp.pad(repeats, ((0, 0), (0, 1)))

    chosen = nn.one_hot(labels, classes)
    emit_log_p = jnp.einsum("btk,bnk->tbn", log_p, chosen)
    blank_log_p = jnp.transpose(log_p[:, :, blank_id : blank_id + 1], (1, 0, 2))

    def arrive(blank, emitted):
        """Blanks after n labels are also reached from the n-th label."""
        return jnp.concatenate([blank[:, :1], jnp.logaddexp(blank[:, 1:], emitted)], axis=-1)

    def step(carry, now):
        blank, emit = carry
        emit_p, blank_p, pad = now
        ready = arrive(blank, emit + log_epsilon * repeats)
        new_emit = jnp.logaddexp(ready[:, :-1], emit) + emit_p
        new_blank = arrive(ready + blank_p, emit + blank_p + log_epsilon * (1.0 - repeats))
        pad = pad.reshape(batch, 1)
        new = (
            pad * blank + (1.0 - pad) * new_blank,
            pad * emit + (1.0 - pad) * new_emit,
        )
        return new, new

    start = (
        jnp.full((batch, most + 1), log_epsilon, log_p.dtype).at[:, 0].set(0.0),
        jnp.full((batch, most), log_epsilon, log_p.dtype),
    )
    times = (emit_log_p, blank_log_p, jnp.transpose(logit_paddings).astype(log_p.dtype))
    _, (blanks, emits) = lax.scan(step, start, times)
    last = arrive(blanks[-1], emits[-1])
    loss = -jnp.einsum("bn,bn->b", last, nn.one_hot(lengths, most + 1))
    return loss, blanks.at[-1].set(last), emits


def ctc_loss(
    logits: Array,
    logit_paddings: Array,
    labels: Array,
    label_paddings: Array,
    *,
    blank_id: int = 0,
    log_epsilon: Any = -1e5,
) -> Array:
    """Minus the logarithm of the probability of a sequence of labels, over all alignments.

    Args:
        logits: floats of shape (examples, times, classes).
        logit_paddings: 1 at padded times, else 0; shape (examples, times).
        labels: integers of shape (examples, labels).
        label_paddings: 1 for padded labels, else 0; of the labels' shape.
        blank_id: the class that stands for no label.
        log_epsilon: a large negative number, instead of log 0.

    Returns:
        the loss of each sequence, of shape (examples,).

    Example:
        >>> zeros = jnp.zeros
        >>> ctc_loss(zeros((1, 3, 2)), zeros((1, 3)), jnp.ones((1, 1), int), zeros((1, 1)))
        Array([0.28768206], dtype=float32)
    """
    return ctc_loss_with_forward_probs(
        logits, logit_paddings, labels, label_paddings, blank_id=blank_id, log_epsilon=log_epsilon
    )[0]
