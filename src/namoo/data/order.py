"""The order of examples, drawn on the host from a key and the number of the epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from namoo import dtypes, random


def typed(key: Any) -> Any:
    """Return a typed key, given one of `random.key` or the raw bits of `random.PRNGKey`."""
    if dtypes.issubdtype(key.dtype, dtypes.prng_key):
        return key
    return random.wrap_key_data(key)


# Up to this size, an order is drawn at once; a larger one would take seconds and much memory.
LARGE = 2**20


def permutation(key: Any, epoch: int, size: int) -> np.ndarray:
    """Return the order of an epoch.

    For up to 2²⁰ examples it is `random.permutation(random.fold_in(key, epoch), size)`. For more,
    each element is computed independently, so that a loader need not store the order: a Feistel
    network (Luby and Rackoff, 1988), applied until the result is below `size`.

    Args:
        key: a key.
        epoch: the number of the epoch.
        size: the number of examples.

    Returns:
        The numbers of the examples, each once.

    Example:
        >>> from namoo import random
        >>> permutation(random.key(0), 0, 5)
        array([0, 2, 4, 1, 3], dtype=int32)
    """
    return order_of(key, epoch, size)(np.arange(size))


def order_of(key: Any, epoch: int, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the order of an epoch as a function of positions."""
    key = random.fold_in(key, epoch)
    if size > LARGE:
        return Feistel(key, size)
    return np.asarray(random.permutation(key, size)).__getitem__


class Feistel:
    """A random permutation of the integers below `size`; each element is computed by itself.

    Args:
        key: a key.
        size: how many numbers; at most 2⁶³.
    """

    ROUNDS = 8

    def __init__(self, key: Any, size: int):
        self.size = size
        self.half = np.uint64(((size - 1).bit_length() + 1) // 2)
        self.mask = np.uint64((1 << int(self.half)) - 1)
        high, low = np.asarray(random.bits(key, (2, self.ROUNDS), np.uint32)).astype(np.uint64)
        self.keys = high << np.uint64(32) | low

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        out = self._once(np.asarray(numbers).astype(np.uint64))
        # The network permutes a power of four. From a number outside, its cycle leads back below
        # `size`, to a number that no other start leads to.
        outside = np.flatnonzero(out >= self.size)
        while len(outside):
            out[outside] = self._once(out[outside])
            outside = outside[out[outside] >= self.size]
        return out.astype(np.int64)

    def _once(self, x: np.ndarray) -> np.ndarray:
        left, right = x >> self.half, x & self.mask
        for key in self.keys:
            left, right = right, left ^ (_mixed(right ^ key) & self.mask)
        return left << self.half | right


def _mixed(x: np.ndarray) -> np.ndarray:
    """Return integers of which every bit depends on all input bits (Stafford, 2011, variant 13)."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _uniform(key: Any, size: int) -> np.ndarray:
    """Return numbers in [0, 1) with 53 random bits, independent of `enable_x64`."""
    high, low = np.asarray(random.bits(key, (2, size), np.uint32)).astype(np.uint64)
    return ((high << np.uint64(21)) ^ (low >> np.uint64(11))) * 2.0**-53


def weighted(
    key: Any, epoch: int, weights: Any, samples: int | None = None, replace: bool = True
) -> np.ndarray:
    """Draw examples with probabilities proportional to their weights.

    Args:
        key: a key.
        epoch: the number of the epoch.
        weights: one number ≥ 0 for each example; they need not sum to 1.
        samples: how many to draw; by default, the number of examples (without replacement: of
            those with positive weight).
        replace: whether an example can be drawn more than once.

    Returns:
        The numbers of the examples.

    Raises:
        ValueError: if weights are negative, not finite, or all zero; or if more examples are drawn
            without replacement than have a positive weight.

    Example:
        >>> from namoo import random
        >>> weighted(random.key(0), 0, [0.0, 1.0, 3.0], samples=6)
        array([2, 1, 1, 1, 1, 2])
    """
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            "weights must be one finite number >= 0 for each example; got "
            f"an array of shape {weights.shape} with minimum {np.min(weights, initial=np.inf)}."
        )
    positive = np.flatnonzero(weights)
    if not len(positive):
        raise ValueError("all weights are zero: no example can be drawn.")
    key = random.fold_in(key, epoch)
    if replace:
        ends = np.cumsum(weights[positive])
        points = _uniform(key, len(weights) if samples is None else samples) * ends[-1]
        return positive[np.searchsorted(ends[:-1], points, side="right")]
    samples = len(positive) if samples is None else samples
    if samples > len(positive):
        raise ValueError(
            f"{samples} samples without replacement from {len(positive)} examples of positive "
            "weight. Draw fewer, or use replace=True."
        )
    # Efraimidis and Spirakis (2006): the largest u^(1/w) are a weighted sample.
    scores = np.log1p(-_uniform(key, len(positive))) / weights[positive]
    return positive[np.argsort(-scores, kind="stable")[:samples]]


def shuffled(items: Iterable[Any], size: int, key: Any) -> Iterator[Any]:
    """Yield the items of a stream in random order, using a buffer of `size` items."""
    buffer: list[Any] = []
    slots = _slots(size, key)
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
        else:
            slot = next(slots)
            buffer[slot], item = item, buffer[slot]
            yield item
    yield from (buffer[i] for i in permutation(key, 0, len(buffer)))


def _slots(size: int, key: Any) -> Iterator[int]:
    """Yield random positions in a buffer without end; they are drawn in blocks for speed."""
    block = 0
    while True:
        block += 1
        yield from (_uniform(random.fold_in(key, block), 4096) * size).astype(np.int64).tolist()
