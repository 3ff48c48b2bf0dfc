"""The identity of this process in a distributed program."""

from __future__ import annotations

from typing import Any

from namoo.devices.available import process_count, process_index


class _State:
    """The state that `jax.distributed.initialize` sets."""

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return process_index()

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return process_count()

    client: Any = None
    service: Any = None
    coordinator_address: str | None = None


global_state = _State()
