"""Programs, traces and types: `jax.core`, `jax.extend.core` and some private names."""

from __future__ import annotations

from typing import Any

from namoo.compat.private._names import names_of
from namoo.core.array import Array as ArrayImpl
from namoo.core.trace import EvalTrace, Tracer, context

__all__ = ["ArrayImpl", "full_lower", "is_concrete", "to_concrete_value", "trace_state_clean"]

__getattr__ = names_of(__name__, "namoo.core", "namoo.extend.core", "namoo.errors", "namoo.ref")


def trace_state_clean() -> bool:
    """Return whether no transformation is active."""
    return isinstance(context.trace, EvalTrace)


def full_lower(x: Any) -> Any:
    """Return a value as it is: namoo's traces have no levels."""
    return x


def to_concrete_value(x: Any) -> Any:
    """Return the value, or None if it is traced."""
    return None if isinstance(x, Tracer) else x


def is_concrete(x: Any) -> bool:
    """Return whether a value is known."""
    return to_concrete_value(x) is not None
