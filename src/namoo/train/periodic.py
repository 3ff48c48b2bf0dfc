"""`every`: call an action at regular intervals of steps or seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class every:
    """Return, when called with a step, whether a periodic action is due.

    Args:
        steps: due at each step that this number divides, but not at step 0.
        seconds: due when this much time has passed since it was last due, or since the start.
        action: a function to call when it is due, with what is given after the step.

    Raises:
        ValueError: if neither or both of steps and seconds are given, or one is not positive.

    Example:
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
        """Return whether the action is due at a step, and call it if it is."""
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
