"""Small decisions of a loop: when to act, when to stop, what to average, how to split a batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from namoo import lax, struct, tree
from namoo import numpy as jnp
from namoo.api.inspect import eval_shape
from namoo.optim.base import incremental_update
from namoo.train.metrics import Metric


class every:
    """Says when a periodic action is due.

    Args:
      steps: due at each step that this number divides, but not at step 0.
      seconds: due when so much time has passed since it was due last, or since this was made.
      action: a function to call when it is due, with what is given after the step.

    Raises:
      ValueError: if neither or both of steps and seconds are given, or one is not positive.

    >>> due = every(2)
    >>> [step for step in range(7) if due(step)]
    [2, 4, 6]
    >>> report = every(3, action=lambda loss: print("loss", loss))
    >>> for step in range(1, 7):
    ...     fired = report(step, 1 / step)
    loss 0.3333333333333333
    loss 0.16666666666666666
    """

    def __init__(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        action: Callable[..., Any] | None = None,
    ):
        if (steps is None) == (seconds is None) or (steps or seconds or 0) <= 0:
            raise ValueError(
                f"every needs a positive number of steps or of seconds: every(100) or "
                f"every(seconds=60); got steps={steps}, seconds={seconds}."
            )
        self.steps, self.seconds, self.action = steps, seconds, action
        self._last = time.monotonic()

    def __call__(self, step: int, *args: Any, **kwargs: Any) -> bool:
        """Whether it is due at a step; the action is called if it is."""
        if self.steps is not None:
            is_due = step > 0 and step % self.steps == 0
        else:
            now = time.monotonic()
            is_due = now - self._last >= self.seconds  # type: ignore[operator]
            if is_due:
                self._last = now
        if is_due and self.action is not None:
            self.action(*args, **kwargs)
        return bool(is_due)


@struct.dataclass
class EarlyStopping:
    """Whether to stop, decided from a value that should become better.

    It is a tree: save it with the parameters, carry it through `scan`, or use it in a loop.

    Args:
      best: the best value so far.
      waited: how many values came since it without being better.
      patience: how many such values to wait for.
      min_delta: by how much a value must be better to count.
      mode: "min" or "max".

    >>> stopping = EarlyStopping.create(patience=2)
    >>> for loss in [3.0, 2.0, 2.5, 2.1, 1.0]:
    ...     stopping = stopping.update(loss)
    ...     if stopping.should_stop:
    ...         break
    >>> loss, float(stopping.best)
    (2.1, 2.0)
    """

    best: Any
    waited: Any
    patience: int = struct.field(static=True, default=5)
    min_delta: float = struct.field(static=True, default=0.0)
    mode: str = struct.field(static=True, default="min")

    @classmethod
    def create(cls, patience: int = 5, min_delta: float = 0.0, mode: str = "min") -> EarlyStopping:
        """The decision before the first value.

        Raises:
          ValueError: if the mode is neither "min" nor "max", or the patience is not positive.
        """
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', not {mode!r}.")
        if patience < 1:
            raise ValueError(f"patience must be positive, not {patience}.")
        worst = jnp.array(jnp.inf if mode == "min" else -jnp.inf, jnp.float32)
        return cls(worst, jnp.zeros((), jnp.int32), patience, min_delta, mode)

    def update(self, value: Any) -> EarlyStopping:
        """The decision after one more value; nan is never better."""
        value = jnp.asarray(value, self.best.dtype)
        gain = self.best - value if self.mode == "min" else value - self.best
        is_better = gain > self.min_delta
        return EarlyStopping(
            jnp.where(is_better, value, self.best),
            jnp.where(is_better, 0, self.waited + 1),
            self.patience,
            self.min_delta,
            self.mode,
        )

    @property
    def improved(self) -> Any:
        """Whether the last value was the best: the moment to save."""
        return (self.waited == 0) & jnp.isfinite(self.best)

    @property
    def should_stop(self) -> Any:
        """Whether as many values as the patience were not better."""
        return self.waited >= self.patience


@struct.dataclass
class EMA:
    """An exponential moving average of parameters.

        a ← d·a + (1 - d)·p,        average = a / (1 - dⁿ)

    Args:
      biased: the sum before it is corrected for its start at zero.
      count: how many trees went into it.
      decay: d.
      debias: whether it starts at zero and is corrected, or starts at the first parameters.

    >>> import namoo.numpy as jnp
    >>> ema = EMA.create({"w": jnp.zeros(1)}, decay=0.5)
    >>> ema = ema.update({"w": jnp.array([1.0])}).update({"w": jnp.array([4.0])})
    >>> ema.average
    {'w': Array([3.], dtype=float32)}
    """

    biased: Any
    count: Any
    decay: float = struct.field(static=True, default=0.999)
    debias: bool = struct.field(static=True, default=True)

    @classmethod
    def create(cls, params: Any, decay: float = 0.999, debias: bool = True) -> EMA:
        """The average before the first update.

        Raises:
          ValueError: if the decay is not in [0, 1).
        """
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and below 1, not {decay}.")
        start = tree.map(jnp.zeros_like, params) if debias else params
        return cls(start, jnp.zeros((), jnp.int32), decay, debias)

    def update(self, params: Any) -> EMA:
        """The average with one more tree."""
        biased = incremental_update(params, self.biased, 1 - self.decay)
        return EMA(biased, self.count + 1, self.decay, self.debias)

    @property
    def average(self) -> Any:
        """The averaged parameters; those it began with, before the first update."""
        if not self.debias:
            return self.biased
        weight = 1 - self.decay ** jnp.maximum(self.count, 1).astype(jnp.float32)
        return tree.map(lambda a: (a / weight).astype(a.dtype), self.biased)


def accumulate(value_and_grad: Callable[..., Any], parts: int) -> Callable[..., Any]:
    """Computes the gradient of a large batch in parts, one after another, in less memory.

        grad = (1/k)·Σ grad(part),  which is that of the batch if the loss is a mean

    Args:
      value_and_grad: a function `(params, batch, …)` that returns `(value, grads)`, as
        `namoo.value_and_grad` makes. The value may be a tree, as with `has_aux`.
      parts: how many parts the first axes of the batch are split into.

    Returns:
      A function of the same arguments with the same results: numbers of the value are averaged over
      the parts, metrics are merged, and of integers the last is kept. To split over calls instead,
      use `namoo.optim.MultiSteps`.

    Raises:
      ValueError: when called, if an axis cannot be split into so many parts.

    >>> import namoo, namoo.numpy as jnp
    >>> loss = lambda w, x: jnp.mean((w - x) ** 2)
    >>> grad = accumulate(namoo.value_and_grad(loss), parts=2)
    >>> grad(1.0, jnp.arange(4.0))
    (Array(1.5, dtype=float32), Array(-1., dtype=float32))
    """

    def split(x: Any) -> Any:
        size = jnp.shape(x)[0] if jnp.ndim(x) else 0
        if size % parts or not size:
            raise ValueError(
                f"a batch with an array of shape {jnp.shape(x)} cannot be split into {parts} "
                "equal parts along its first axis."
            )
        return jnp.reshape(x, (parts, size // parts, *jnp.shape(x)[1:]))

    def merged(x: Any) -> Any:
        if isinstance(x, Metric):
            return x.sum()
        return jnp.mean(x, 0) if jnp.issubdtype(x.dtype, jnp.inexact) else x[-1]

    def in_parts(params: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        def of_part(part: Any) -> Any:
            return value_and_grad(params, part, *args, **kwargs)

        def step(total: Any, part: Any) -> Any:
            value, grads = of_part(part)
            return tree.map(jnp.add, total, grads), value

        pieces = tree.map(split, batch)
        _, shapes = eval_shape(of_part, tree.map(lambda x: x[0], pieces))
        zeros = tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        total, values = lax.scan(step, zeros, pieces)
        value = tree.map(merged, values, is_leaf=lambda x: isinstance(x, Metric))
        return value, tree.map(lambda g: g / parts, total)

    return in_parts
