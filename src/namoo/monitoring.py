"""Events: a program records that something happened, and registered listeners are called.

namoo records how long it traces and compiles, as JAX does: `TRACE` and `COMPILE`.

Example:
    >>> heard = []
    >>> listener = lambda event, seconds, fun_name: heard.append((event, fun_name))
    >>> register_event_duration_secs_listener(listener)
    >>> import namoo, namoo.numpy as jnp
    >>> @namoo.jit
    ... def double(x):
    ...     return x + x
    >>> double(jnp.ones(2)), double(jnp.ones(2))
    (Array([2., 2.], dtype=float32), Array([2., 2.], dtype=float32))
    >>> for event in heard:
    ...     print(event)
    ('/jax/core/compile/jaxpr_trace_duration', 'double')
    ('/jax/core/compile/backend_compile_duration', 'jit(double)')
    >>> unregister_event_duration_listener(listener)

Listeners are called in the order in which they were registered, in the thread where the event
happened, and what they raise is raised there.
"""

from __future__ import annotations

import time
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from namoo._base import instrument
from namoo._base.source_context import make_entry_points as _guard

__all__ = [
    "COMPILE",
    "TRACE",
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "timed",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]
__dir__ = __all__.copy


TRACE = "/jax/core/compile/jaxpr_trace_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"

Listener = Callable[..., Any]

_events: list[Listener] = []
_durations: list[Listener] = []
_time_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell that something happened: listeners get `(event, **kwargs)`.

    Example:
        >>> register_event_listener(print)
        >>> record_event("/my/checkpoint_saved")
        /my/checkpoint_saved
        >>> unregister_event_listener(print)
    """
    for listener in (*_events,):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell how many seconds something took: listeners get `(event, duration, **kwargs)`.

    Example:
        >>> register_event_duration_secs_listener(print)
        >>> record_event_duration_secs("/my/epoch", 1.5)
        /my/epoch 1.5
        >>> unregister_event_duration_listener(print)
    """
    for listener in (*_durations,):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell when something began and ended: listeners get `(event, start_time, end_time, **kwargs)`.

    Times are seconds, as `time.time()` has them.

    Example:
        >>> register_event_time_span_listener(print)
        >>> record_event_time_span("/my/epoch", 100.0, 101.5)
        /my/epoch 100.0 101.5
        >>> unregister_event_time_span_listener(print)
    """
    for listener in (*_time_spans,):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell a number: listeners get `(event, value, **kwargs)`.

    Example:
        >>> register_scalar_listener(print)
        >>> record_scalar("/my/queue_length", 3)
        /my/queue_length 3
        >>> unregister_scalar_listener(print)
    """
    for listener in (*_scalars,):
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Call a function at every `record_event`."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call a function at every `record_event_duration_secs`."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call a function at every `record_event_time_span`."""
    _time_spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call a function at every `record_scalar`."""
    _scalars.append(callback)


def _unregister(callback: Listener, listeners: list[Listener], register: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(
            f"{callback!r} is no listener: it was not given to {register.__name__}, or was "
            "unregistered already."
        )
    listeners.remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """No longer call a function at `record_event`.

    Raises:
        AssertionError: it is not registered.
    """
    _unregister(callback, _events, register_event_listener)


def unregister_event_duration_listener(callback: Listener) -> None:
    """No longer call a function at `record_event_duration_secs`.

    Raises:
        AssertionError: it is not registered.
    """
    _unregister(callback, _durations, register_event_duration_secs_listener)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """No longer call a function at `record_event_time_span`.

    Raises:
        AssertionError: it is not registered.
    """
    _unregister(callback, _time_spans, register_event_time_span_listener)


def unregister_scalar_listener(callback: Listener) -> None:
    """No longer call a function at `record_scalar`.

    Raises:
        AssertionError: it is not registered.
    """
    _unregister(callback, _scalars, register_scalar_listener)


def clear_event_listeners() -> None:
    """Forget all listeners, of every kind.

    Example:
        >>> register_scalar_listener(print)
        >>> clear_event_listeners()
        >>> record_scalar("/my/queue_length", 3)
    """
    for listeners in (_events, _durations, _time_spans, _scalars):
        listeners.clear()


class _Running(_local):
    """The events of this thread that have begun."""

    def __init__(self) -> None:
        self.events: set[str] = set()


_running = _Running()


_nothing = nullcontext()


def timed(event: str, fun_name: str) -> AbstractContextManager[None]:
    """Tell how long something took, even if it fails: as a scalar when it begins, then as a
    duration and a time span.

    What begins inside an event of the same name belongs to it, so that durations can be summed.

    Example:
        >>> register_event_duration_secs_listener(lambda event, seconds, fun_name: print(fun_name))
        >>> with timed("/my/work", "outer"), timed("/my/work", "inner"):
        ...     pass
        outer
        >>> clear_event_listeners()
    """
    if not (_durations or _time_spans or _scalars) or event in _running.events:
        return _nothing
    return _timed(event, fun_name)


@contextmanager
def _timed(event: str, fun_name: str) -> Iterator[None]:
    _running.events.add(event)
    started, begin = time.time(), time.perf_counter()
    try:
        record_scalar(event, started, fun_name=fun_name)
        yield
    finally:
        _running.events.discard(event)
        duration = time.perf_counter() - begin
        record_event_duration_secs(event, duration, fun_name=fun_name)
        record_event_time_span(event, started, started + duration, fun_name=fun_name)


def _told(what: str, name: str) -> AbstractContextManager[None]:
    """What the library does, by the names that JAX has for it."""
    return timed(TRACE, name) if what == "trace" else timed(COMPILE, f"jit({name})")


instrument.timed = _told

_guard(globals())
