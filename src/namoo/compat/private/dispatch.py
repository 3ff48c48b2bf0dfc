"""Calls of single primitives."""

from __future__ import annotations

from typing import Any

from namoo.devices.device_put import effects_barrier as wait_for_tokens
from namoo.interpreters.xla import apply_primitive

__all__ = ["apply_primitive", "runtime_tokens", "wait_for_tokens"]


class _Tokens:
    """Pending effects: namoo's CPU engines never have any."""

    def block_until_ready(self) -> None:
        """Wait for all effects."""
        wait_for_tokens()

    def clear(self) -> None:
        """Drop the effects that were waited for."""


runtime_tokens: Any = _Tokens()
