"""How often functions are traced: over the whole program, and with a limit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from namoo.api.jit import traced_functions
from namoo.api.retrace import Explanation


class Explanations(list):
    """The traces of all functions, the most traced first; prints as one text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no function under jit has been traced"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from namoo._base import html

        return html.fragment("".join(one.table() for one in self) or html.escape(self))


def explain() -> Explanations:
    """Return the traces of every function under `jit` so far, and why each was needed.

    Returns:
        a list with an `f.explain()` for each function, the most traced first.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> namoo.clear_caches()
        >>> twice = namoo.jit(lambda x: 2 * x)
        >>> _ = twice(jnp.zeros(2)), twice(jnp.zeros(3))
        >>> [len(function) for function in namoo.explain()]
        [2]
    """
    return Explanations(traced_functions())


@contextlib.contextmanager
def max_traces(fun: Any, limit: int) -> Iterator[None]:
    """Raise if a function is traced more often than `limit` times in a `with` block.

    In a test, it makes sure that a training step is compiled once. (In pytest, the fixture of the
    same name does it after `pytest_plugins = ["namoo.pytest_plugin"]`.)

    Args:
        fun: a function under `jit`.
        limit: how many traces are allowed.

    Raises:
        AssertionError: at the end of the block; it says why each further trace was needed.
        TypeError: the function is not under `jit`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> step = namoo.jit(lambda x: x - 1)
        >>> with namoo.max_traces(step, 1):
        ...     for _ in range(3):
        ...         _ = step(jnp.zeros(2))
    """
    if not hasattr(fun, "explain"):
        raise TypeError("max_traces takes a function under jit: write max_traces(jit(f), limit).")
    before = len(fun.explain())
    yield
    new = fun.explain()[before:]
    if len(new) > limit:
        raise AssertionError(
            f"more traces than the allowed {limit}: {Explanation(fun.explain().name, new)}"
        )
