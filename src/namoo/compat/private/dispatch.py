"""Calls of single operations."""

from __future__ import annotations

from typing import Any

from namoo.api.device import effects_barrier as wait_for_tokens
from namoo.interpreters.xla import apply_primitive

__all__ = ["apply_primitive", "runtime_tokens", "wait_for_tokens"]


class _Tokens:
    """The effects that have not happened yet: on namoo's CPU engines there are never any."""

    def block_until_ready(self) -> None:
        """Wait for all effects."""
        wait_for_tokens()

    def clear(self) -> None:
        """Forget effects that were waited for."""


runtime_tokens: Any = _Tokens()
