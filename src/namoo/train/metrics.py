"""Metrics as trees: sums that are updated, merged over steps and devices, and finally evaluated.

Every metric is a dataclass whose leaves are sums, so it can be carried by `scan`, returned by a
compiled step, stacked by `vmap` and added up by `psum`. A mask, such as that of a padded batch,
says which examples count.
"""

from __future__ import annotations

import operator
from typing import Any, TypeVar

from namoo import lax, struct, tree
from namoo import numpy as jnp

T = TypeVar("T", bound="Metric")


class Metric:
    """The base class of metrics; the leaves are sums over examples."""

    def merge(self: T, other: T) -> T:
        """Return the metric of the examples of both metrics."""
        return tree.map(operator.add, self, other)

    def reduce(self: T, axis_name: Any) -> T:
        """Return the metric over all devices, in a function mapped by `pmap` or `vmap`."""
        return lax.psum(self, axis_name)

    def sum(self: T, axis: int = 0) -> T:
        """Return the metric over all metrics that `vmap`, `scan` or `pmap` stacked."""
        return tree.map(lambda x: jnp.sum(x, axis), self)

    def compute(self) -> Any:
        """Return the value."""
        raise TypeError(f"{type(self).__name__} does not define compute().")


def _count(mask: Any, like: Any) -> Any:
    """Return integers in the shape of the examples: 1 where an example counts, else 0."""
    ones = jnp.ones(jnp.shape(like), jnp.int32)
    return ones if mask is None else ones * _aligned(mask, like).astype(jnp.int32)


def _aligned(mask: Any, like: Any) -> Any:
    """Broadcast a mask of the leading axes to all axes."""
    mask = jnp.asarray(mask)
    return mask.reshape(mask.shape + (1,) * (jnp.ndim(like) - mask.ndim))


def _guesses(scores: Any, labels: Any) -> Any:
    """Return the classes with the highest scores, or the given classes, one per label."""
    scores = jnp.asarray(scores)
    are_scores = scores.ndim > labels.ndim
    guesses = jnp.argmax(scores, -1) if are_scores else scores
    if guesses.shape != labels.shape or (
        not are_scores and labels.ndim and jnp.issubdtype(scores.dtype, jnp.inexact)
    ):
        raise ValueError(
            f"scores of shape {scores.shape} and labels of shape {labels.shape} do not fit "
            "together: labels are the numbers of classes; scores have one axis more, or are "
            "predicted classes like the labels. For one-hot labels take jnp.argmax(labels, -1); "
            "for probabilities of a single class take scores > 0.5."
        )
    return guesses


def _ratio(part: Any, whole: Any) -> Any:
    """Return a quotient that is zero where the divisor is zero."""
    part, whole = jnp.asarray(part, jnp.float32), jnp.asarray(whole, jnp.float32)
    return jnp.where(whole == 0, 0.0, part / jnp.where(whole == 0, 1.0, whole))


@struct.dataclass
class Mean(Metric):
    """The mean of numbers, such as losses.

        Σ w·x / Σ w

    Args:
        total: the weighted sum.
        weight: the sum of the weights.

    Example:
        >>> import namoo.numpy as jnp
        >>> Mean.empty().update(jnp.array([1.0, 2.0])).update(6.0).compute()
        Array(3., dtype=float32)
    """

    total: Any
    weight: Any

    @classmethod
    def empty(cls) -> Mean:
        """Return the metric of no numbers."""
        return cls(jnp.zeros((), jnp.float32), jnp.zeros((), jnp.float32))

    def update(self, values: Any, mask: Any = None) -> Mean:
        """Return the metric after more numbers.

        Args:
            values: numbers of any shape.
            mask: their weights, or those of their first axes; all one by default.
        """
        values = jnp.asarray(values, jnp.float32)
        if mask is None:
            return Mean(self.total + jnp.sum(values), self.weight + values.size)
        weights = jnp.broadcast_to(_aligned(mask, values), values.shape).astype(jnp.float32)
        # Masked values may be NaN.
        kept = jnp.where(weights == 0, 0.0, values)
        return Mean(self.total + jnp.sum(kept * weights), self.weight + jnp.sum(weights))

    def compute(self) -> Any:
        """Return the mean, or 0 if there are no numbers."""
        return _ratio(self.total, self.weight)


@struct.dataclass
class Perplexity(Mean):
    """The exponential of the mean negative log-likelihood of tokens.

        exp(Σ w·nll / Σ w)

    Example:
        >>> import namoo.numpy as jnp
        >>> Perplexity.empty().update(jnp.log(jnp.array([2.0, 8.0]))).compute()
        Array(4., dtype=float32)
    """

    def update(self, values: Any, mask: Any = None) -> Perplexity:
        """Return the metric after more tokens, given their negative log-likelihoods."""
        return Perplexity(*super().update(values, mask).to_tuple())  # type: ignore[attr-defined]

    def compute(self) -> Any:
        """Return the perplexity."""
        return jnp.exp(super().compute())


@struct.dataclass
class Accuracy(Metric):
    """The fraction of labels that are the class with the highest score.

    Args:
        correct: how many are.
        count: the number of labels.

    Example:
        >>> import namoo.numpy as jnp
        >>> logits = jnp.array([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
        >>> Accuracy.empty().update(logits, jnp.array([1, 0, 0])).compute()
        Array(0.6666667, dtype=float32)
    """

    correct: Any
    count: Any

    @classmethod
    def empty(cls) -> Any:
        """Return the metric of no examples."""
        return cls(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    def update(self, scores: Any, labels: Any, mask: Any = None) -> Any:
        """Return the metric after more examples.

        Args:
            scores: scores of classes along the last axis, or predicted classes, as `labels`.
            labels: the true classes.
            mask: which examples count.

        Raises:
            ValueError: if the shapes do not fit together.
        """
        labels = jnp.asarray(labels)
        counted = _count(mask, labels)
        correct = jnp.sum((_guesses(scores, labels) == labels) * counted)
        return struct.replace(
            self, correct=self.correct + correct, count=self.count + jnp.sum(counted)
        )

    def compute(self) -> Any:
        """Return the accuracy, in [0, 1]."""
        return _ratio(self.correct, self.count)


@struct.dataclass
class TopK(Accuracy):
    """The fraction of labels that are among the k classes with the highest scores.

    Of classes with equal scores, the one with the smaller index comes first.

    Args:
        k: how many classes.

    Example:
        >>> import namoo.numpy as jnp
        >>> logits = jnp.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
        >>> TopK.empty(k=2).update(logits, jnp.array([1, 2])).compute()
        Array(0.5, dtype=float32)
    """

    k: int = struct.field(static=True, default=5)

    @classmethod
    def empty(cls, k: int = 5) -> TopK:
        """Return the metric of no examples."""
        return cls(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), k)

    def update(self, scores: Any, labels: Any, mask: Any = None) -> TopK:
        """Return the metric after more examples: scores along the last axis, and labels."""
        scores, labels = jnp.asarray(scores), jnp.asarray(labels)
        own = jnp.take_along_axis(scores, labels[..., None], -1)
        earlier = jnp.arange(scores.shape[-1]) < labels[..., None]
        rank = jnp.sum((scores > own) | ((scores == own) & earlier), -1)
        counted = _count(mask, labels)
        correct = jnp.sum((rank < self.k) * counted)
        return TopK(self.correct + correct, self.count + jnp.sum(counted), self.k)


@struct.dataclass
class Confusion(Metric):
    """How often each class was predicted for each true class.

    Args:
        matrix: integers; rows are true classes, columns predicted ones.

    Example:
        >>> import namoo.numpy as jnp
        >>> guesses, labels = jnp.array([0, 1, 1, 1]), jnp.array([0, 1, 0, 1])
        >>> Confusion.empty(2).update(guesses, labels).compute()
        Array([[1, 1],
               [0, 2]], dtype=int32)
    """

    matrix: Any

    @classmethod
    def empty(cls, classes: int) -> Any:
        """Return the metric of no examples, for a number of classes."""
        return cls(jnp.zeros((classes, classes), jnp.int32))

    def update(self, scores: Any, labels: Any, mask: Any = None) -> Any:
        """Return the metric after more examples.

        Args:
            scores: scores of classes along the last axis, or predicted classes, as `labels`.
            labels: the true classes; those outside the matrix are not counted.
            mask: which examples count.

        Raises:
            ValueError: if the shapes do not fit together.
        """
        labels = jnp.asarray(labels)
        guess = _guesses(scores, labels)
        size = self.matrix.shape[0]
        inside = (labels >= 0) & (labels < size) & (guess >= 0) & (guess < size)
        place = jnp.where(inside, labels * size + guess, 0).ravel()
        counted = (_count(mask, labels) * inside).ravel()
        counts = jnp.zeros(size * size, jnp.int32).at[place].add(counted)
        return struct.replace(self, matrix=self.matrix + counts.reshape(size, size))

    def compute(self) -> Any:
        """Return the matrix."""
        return self.matrix


@struct.dataclass
class F1(Confusion):
    """The harmonic mean of precision and recall.

        F1 = 2·tp / (2·tp + fp + fn)

    Args:
        average: "macro" is the mean over classes, "micro" counts all classes together, "binary" is
            that of class 1, and None is that of each class.

    Example:
        >>> import namoo.numpy as jnp
        >>> guesses, labels = jnp.array([0, 1, 1, 1]), jnp.array([0, 1, 0, 1])
        >>> F1.empty(2, average=None).update(guesses, labels).compute()
        Array([0.6666667, 0.8      ], dtype=float32)
    """

    average: str | None = struct.field(static=True, default="macro")

    @classmethod
    def empty(cls, classes: int, average: str | None = "macro") -> F1:
        """Return the metric of no examples, for a number of classes.

        Raises:
            ValueError: if the average is unknown.
        """
        if average not in ("macro", "micro", "binary", None):
            raise ValueError(
                f"average must be 'macro', 'micro', 'binary' or None, not {average!r}."
            )
        return cls(jnp.zeros((classes, classes), jnp.int32), average)

    def compute(self) -> Any:
        """Return the score, in [0, 1]; 0 for a class that neither occurs nor is predicted."""
        hits = jnp.diagonal(self.matrix)
        both = jnp.sum(self.matrix, 0) + jnp.sum(self.matrix, 1)
        if self.average == "micro":
            return _ratio(2 * jnp.sum(hits), jnp.sum(both))
        each = _ratio(2 * hits, both)
        if self.average == "binary":
            return each[1]
        return each if self.average is None else jnp.mean(each)


@struct.dataclass
class AUC(Metric):
    """The area under the receiver operating characteristic, of scores in [0, 1].

        P(score of a positive > score of a negative) + ½·P(they are equal)

    Scores are counted in bins of equal width, so the result is that of scores rounded to bins. It
    is NaN if a score, such as a logit, is outside of [0, 1].

    Args:
        counts: how many negatives (row 0) and positives (row 1) are in each bin.
        outside: how many scores are outside of [0, 1], or nan.

    Example:
        >>> import namoo.numpy as jnp
        >>> scores, labels = jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1])
        >>> AUC.empty().update(scores, labels).compute()
        Array(0.75, dtype=float32)
    """

    counts: Any
    outside: Any

    @classmethod
    def empty(cls, bins: int = 2048) -> AUC:
        """Return the metric of no examples, with a number of bins."""
        return cls(jnp.zeros((2, bins), jnp.int32), jnp.zeros((), jnp.int32))

    def update(self, scores: Any, labels: Any, mask: Any = None) -> AUC:
        """Return the metric after more examples: scores in [0, 1], and labels 0 or 1."""
        bins, scores = self.counts.shape[1], jnp.asarray(scores)
        inside, counted = (scores >= 0) & (scores <= 1), _count(mask, scores)
        place = jnp.minimum(jnp.where(inside, scores, 0) * bins, bins - 1).astype(jnp.int32)
        place = place + bins * (jnp.asarray(labels) != 0)
        added = jnp.zeros(2 * bins, jnp.int32).at[place.ravel()].add(counted.ravel())
        outside = jnp.sum(counted * ~inside)
        return AUC(self.counts + added.reshape(2, bins), self.outside + outside)

    def compute(self) -> Any:
        """Return the area: 0 without positives or negatives, NaN if a score is out of range."""
        # Fractions instead of counts: products of counts would not be exact in float32.
        negative, positive = (_ratio(row, jnp.sum(row)) for row in self.counts)
        above = jnp.cumsum(positive[::-1])[::-1] - positive
        area = jnp.sum(negative * (above + positive / 2))
        return jnp.where(self.outside > 0, jnp.nan, area)


def _is_metric(x: Any) -> bool:
    return isinstance(x, Metric)


def merge(first: Any, *others: Any) -> Any:
    """Merge trees of metrics, such as those of several steps.

    Args:
        first: a tree whose leaves are metrics.
        *others: trees of the same structure.

    Returns:
        A tree like them.

    Example:
        >>> a, b = {"loss": Mean.empty().update(1.0)}, {"loss": Mean.empty().update(3.0)}
        >>> compute(merge(a, b))
        {'loss': 2.0}
    """
    for other in others:
        first = tree.map(lambda a, b: a.merge(b), first, other, is_leaf=_is_metric)
    return first


def compute(metrics: Any) -> Any:
    """Return the values of a tree of metrics: Python numbers, or arrays if they have axes.

    Args:
        metrics: a tree whose leaves are metrics.

    Returns:
        A tree of values.

    Example:
        >>> compute({"loss": Mean.empty().update(1.5), "confusion": Confusion.empty(2)})
        {'confusion': Array([[0, 0],
               [0, 0]], dtype=int32), 'loss': 1.5}
    """

    def value(metric: Metric) -> Any:
        result = metric.compute()
        return result.item() if jnp.ndim(result) == 0 else result

    return tree.map(value, metrics, is_leaf=_is_metric)
