"""JAX's older interface to save arrays of several processes.

Libraries import the classes when they are loaded. To save arrays use Orbax, or `namoo.checkpoints`.
"""

from __future__ import annotations

import abc
from typing import Any

from namoo._base.stand_in import stand_in

__all__ = ["GlobalAsyncCheckpointManagerBase"]
__dir__ = __all__.copy


_PLACE = "jax.experimental.array_serialization.serialization."
_WHY = "Save arrays with Orbax, or with namoo.checkpoints."


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of objects that save arrays while a program continues."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of a save that failed."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait for all saves."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Any = None
    ) -> Any:
        """Save arrays."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None
    ) -> Any:
        """Load arrays."""


GlobalAsyncCheckpointManager = stand_in(_PLACE + "GlobalAsyncCheckpointManager", _WHY)
get_tensorstore_spec = stand_in(_PLACE + "get_tensorstore_spec", _WHY)
