"""Names for parts of a program, to find them in a trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter_ns as now
from typing import Any

from namoo._base import instrument


class TraceAnnotation:
    """Context manager: record the block as a span of the running trace.

    Args:
        name: the name of the span.
        **kwargs: values to show with the span, as text.

    Example:
        >>> with TraceAnnotation("load", epoch=3):
        ...     batch = [1, 2, 3]
    """

    __slots__ = ("_args", "_kwargs", "_name", "_session", "_start")

    def __init__(self, name: str, /, **kwargs: Any):
        if not isinstance(name, str):
            raise TypeError(
                f"{type(self).__name__}: the name must be a string, got {name!r} of type "
                f"{type(name).__name__}."
            )
        self._name, self._kwargs, self._session = name, kwargs, None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether a trace that records annotations is running.

        Example:
            >>> TraceAnnotation.is_enabled()
            False
        """
        session = instrument.session
        return session is not None and session.level > 0

    def __enter__(self) -> TraceAnnotation:
        if self.is_enabled():
            self._session: Any = instrument.session
            self._args: dict[str, str] = {}
            self.set_metadata(**self._kwargs)
            self._start = now()
        return self

    def __exit__(self, *_: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.add(self._name, self._start, self._args)

    def set_metadata(self, **kwargs: Any) -> None:
        """Attach more values to the current span.

        Example:
            >>> with TraceAnnotation("load") as span:
            ...     span.set_metadata(rows=3)
        """
        if self._session is not None:
            # Converted to text now: an array may be donated before the span ends.
            self._args.update((key, str(value)) for key, value in kwargs.items())


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: record the block as a step of training, or of another loop.

    Args:
        name: the name of the span.
        **kwargs: values to show with the span, as text; `step_num` is the number of the step.

    Example:
        >>> for step in range(2):
        ...     with StepTraceAnnotation("train", step_num=step):
        ...         loss = 1.0 / (step + 1)
    """

    __slots__ = ()

    def __init__(self, name: str, /, **kwargs: Any):
        # TensorBoard recognises a step by `_r`.
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """Decorator: record each call of the function as a span of the running trace.

    Args:
        func: the function.
        name: the name of the span, instead of the function's.
        **decorator_kwargs: values to show with the span, as text.

    Example:
        >>> @annotate_function
        ... def load(rows):
        ...     return [0] * rows
        >>> load(2)
        [0, 0]
    """
    label: str = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if instrument.session is None:
            return func(*args, **kwargs)
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper
