"""User-defined contexts: values besides its arguments that a compiled function depends on."""

from __future__ import annotations

from typing import Any

from namoo._base.config import Scope, config, set_for_all


class UserContext:
    """A value that is part of the cache key of every function under `jit`.

    Example:
        >>> import namoo
        >>> layout = namoo.make_user_context("rows")
        >>> with layout("columns"):
        ...     layout.value
        'columns'
        >>> layout.value
        'rows'
    """

    def __init__(self, default_value: Any = None):
        self._default = default_value

    def __call__(self, value: Any) -> Scope:
        """Return a context manager that sets the value for the current thread."""
        return _UserScope(self, value)

    @property
    def value(self) -> Any:
        """The current value, for this thread."""
        return dict(config.user_contexts).get(self, self._default)

    def get_global(self) -> Any:
        """Return the value that threads without a context of their own see."""
        return dict(type(config).user_contexts).get(self, self._default)

    def set_global(self, value: Any) -> None:
        """Set the value for all threads, except where a context manager overrides it."""
        set_for_all("user_contexts", _changed(type(config).user_contexts, self, value))


class _UserScope(Scope):
    """Overrides one user context for the current thread while it is entered."""

    __slots__ = ("_context", "_own")

    def __init__(self, context: UserContext, value: Any):
        super().__init__("user_contexts", None)
        self._context, self._own = context, value

    def _recreate_cm(self) -> Scope:
        return _UserScope(self._context, self._own)

    def __enter__(self) -> None:
        # Other contexts may have changed since this scope was made.
        self._value = _changed(config.user_contexts, self._context, self._own)
        super().__enter__()


def _changed(pairs: tuple[Any, ...], context: UserContext, value: Any) -> tuple[Any, ...]:
    """The pairs of contexts and their values with one of them changed."""
    return (*(pair for pair in pairs if pair[0] is not context), (context, value))


def make_user_context(default_value: Any = None) -> UserContext:
    """Create a context; functions under `jit` are traced again when its value changes.

    Args:
        default_value: The value outside of the context; values need a hash.

    Returns:
        An object to be called with a value: `with context(value): ...`.

    Example:
        >>> import namoo
        >>> mode = namoo.make_user_context()
        >>> f = namoo.jit(lambda x: x if mode.value is None else -x)
        >>> f(1.0)
        Array(1., dtype=float32, weak_type=True)
        >>> with mode("negative"):
        ...     f(1.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    return UserContext(default_value)
