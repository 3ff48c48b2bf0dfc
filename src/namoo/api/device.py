"""Devices, and moving arrays to and from them.  On a CPU arrays are where they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import tree_util
from namoo.api.arguments import is_array, to_array
from namoo.core.array import Array, EagerArray
from namoo.core.trace import Tracer
from namoo.engines.base import Device, require_device

_cpu = Device(0)


def devices(backend: str | None = None) -> list[Device]:
    """All devices.

    >>> devices()
    [CpuDevice(id=0)]
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(
            f"Unknown backend {backend!r}. Available backends are ['cpu']; others come with the "
            "XLA engine."
        )
    return [_cpu]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process."""
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}: there is one process, 0.")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among all that work together."""
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes work together."""
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes."""
    return [0]


def default_backend() -> str:
    """The platform that programs run on."""
    return "cpu"


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias=None
):
    """A tree of arrays on a device.

    Args:
      x: a tree of arrays and numbers.
      device: a device or a sharding; or a tree of them, for parts of `x`.
      src: has no effect.
      donate: has no effect: arrays stay where they are.
      may_alias: has no effect.

    Raises:
      ValueError: something else than devices, or a tree of them that does not fit `x`.

    >>> import numpy as np
    >>> device_put(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """

    for path, place in tree_util.tree_leaves_with_path(device):
        require_device(f"device_put, device{tree_util.keystr(path)}", place)
    tree_util.broadcast_prefix(device, x, is_leaf=lambda place: place is None)

    def put(path, leaf):
        if not is_array(leaf):
            raise TypeError(
                f"device_put: {tree_util.keystr(path) or 'the argument'} is {leaf!r} of type "
                f"{type(leaf).__name__}, which is not an array."
            )
        return to_array(leaf)

    return tree_util.tree_map_with_path(put, x)


def device_put_replicated(x: Any, devices: list[Device]) -> Any:
    """A tree of arrays copied to several devices, stacked along a new leading axis."""
    return tree_util.tree_map(
        lambda leaf: EagerArray(np.stack([np.asarray(leaf)] * len(devices))), x
    )


def device_get(x: Any) -> Any:
    """A tree of NumPy arrays.

    >>> import namoo.numpy as jnp
    >>> device_get(jnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    return tree_util.tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait until the arrays of a tree are computed: on a CPU they always are."""
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a tree to the host: on a CPU they are there."""
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that are in memory now."""
    import gc

    return [x for x in gc.get_objects() if type(x) is EagerArray and not isinstance(x, Tracer)]


def effects_barrier() -> None:
    """Wait for side effects: on a CPU they have happened."""
