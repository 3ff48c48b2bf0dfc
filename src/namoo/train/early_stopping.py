"""`EarlyStopping`: stop when a value no longer improves."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo import struct


@struct.dataclass
class EarlyStopping:
    """Decide whether to stop, from a value that should improve.

    It is a tree: save it with the parameters, carry it through `scan`, or use it in a loop.

    Args:
        best: the best value so far.
        waited: how many values have come since then without an improvement.
        patience: how many such values to wait for.
        min_delta: by how much a value must be better to count.
        mode: "min" or "max".

    Example:
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
        """Return the state before the first value.

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
        """Return the state after one more value; NaN is never an improvement."""
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
        """Whether the last value was the best so far: the moment to save."""
        return (self.waited == 0) & jnp.isfinite(self.best)

    @property
    def should_stop(self) -> Any:
        """Whether the last `patience` values were no improvement."""
        return self.waited >= self.patience
