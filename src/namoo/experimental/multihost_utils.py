"""Communication between the processes of a job: exchange values, and wait for each other.

Example:
    >>> import numpy as np
    >>> process_allgather(np.arange(3))  # alone, one row
    array([[0, 1, 2]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import distributed, tree_util
from namoo._base.source_context import make_entry_points as _guard
from namoo.api.jit import jit
from namoo.core.array import PlacedArray
from namoo.core.avals import aval_of
from namoo.devices.available import devices, local_device_count, process_count, process_index
from namoo.devices.make_array import make_array_from_process_local_data
from namoo.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]
__dir__ = __all__.copy


def _mesh() -> Mesh:
    box = np.array(devices(), object).reshape(process_count(), local_device_count())
    return Mesh(box, ("processes", "local_devices"))


def _is_global(x: Any) -> bool:
    return isinstance(x, PlacedArray) and not x._sharding.is_fully_addressable


def _everywhere(x: PlacedArray) -> np.ndarray:
    """Return the whole of an array that is spread over several processes, in each of them."""
    whole = NamedSharding(x._sharding.mesh, PartitionSpec())
    return np.asarray(jit(_identity, out_shardings=whole)(x))


def _identity(x: Any) -> Any:
    return x


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gather the values of all processes in each of them.

    Args:
        in_tree: a tree of arrays and numbers, of the same shapes in all processes; or of arrays
            over the devices of several processes.
        tiled: join the values along their first axis; by default along a new one. Arrays over the
            devices of several processes are gathered whole, and need True.

    Returns:
        the tree of NumPy arrays.

    Raises:
        ValueError: an array over the devices of several processes, and not `tiled`.
    """

    def gather(x: Any) -> np.ndarray:
        if _is_global(x):
            if not tiled:
                raise ValueError(
                    f"process_allgather: {aval_of(x).str_short()} is on devices of several "
                    "processes, so each has a part and not a value; pass tiled=True."
                )
            return _everywhere(x)
        value = np.asarray(x)
        if process_count() == 1:
            return value if tiled else value[None]
        rows = value[None] if not tiled or not value.ndim else value
        split = NamedSharding(_mesh(), PartitionSpec("processes"))
        shape = (len(rows) * process_count(), *rows.shape[1:])
        return _everywhere(make_array_from_process_local_data(split, rows, shape))

    return tree_util.tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Send the values of one process to all.

    Args:
        in_tree: a tree of arrays and numbers, of the same shapes in all processes.
        is_source: whether this process is the source; by default process 0 is.

    Returns:
        the tree of NumPy arrays.

    Example:
        >>> broadcast_one_to_all({"seed": 3})
        {'seed': array(3)}
    """
    if process_count() == 1:
        return tree_util.tree_map(np.asarray, in_tree)
    mine = process_index() == 0 if is_source is None else is_source
    source = int(np.argmax(process_allgather(bool(mine))))
    return tree_util.tree_map(lambda x: x[source], process_allgather(in_tree))


def sync_global_devices(name: str) -> None:
    """Wait until all processes have reached this point.

    Args:
        name: the name of the point, the same in all processes.

    Raises:
        AssertionError: if processes reached points with different names.
        TimeoutError: not all arrived; the message names the missing ones.
    """
    distributed.barrier("sync_global_devices")
    letters = np.frombuffer(name.encode()[:200].ljust(200), np.uint8)
    names = {bytes(row).decode(errors="replace").rstrip() for row in process_allgather(letters)}
    if len(names) > 1:
        raise AssertionError(
            f"sync_global_devices name mismatch: this process reached {name!r}, and all reached "
            f"{sorted(names)}."
        )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise an error if processes have different values.

    Args:
        in_tree: a tree of arrays and numbers, of the same shapes in all processes.
        fail_message: what to say where they differ.

    Raises:
        AssertionError: if values differ; the message names their paths and the processes.
    """

    def check(path: Any, x: Any) -> None:
        if _is_global(x):
            return
        rows = process_allgather(x)
        other = [i for i, row in enumerate(rows) if not np.array_equal(row, rows[0])]
        if other:
            raise AssertionError(
                f"{fail_message + ': ' if fail_message else ''}processes {other} differ from "
                f"process 0 in {tree_util.keystr(path) or 'the value'}; process {other[0]} has "
                f"{rows[other[0]]}, process 0 has {rows[0]}."
            )

    tree_util.tree_map_with_path(check, in_tree)


def _specs(what: str, pspecs: Any, tree: Any) -> list[PartitionSpec]:
    if pspecs is None:
        raise ValueError(
            f"{what}: pspecs is None; write PartitionSpec() where all processes have all of an "
            "array."
        )
    return tree_util.broadcast_prefix(
        pspecs, tree, is_leaf=lambda x: isinstance(x, PartitionSpec) or x is None
    )


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Make arrays over the devices of all processes, given the part of each process.

    Args:
        local_inputs: a tree of this process' parts.
        global_mesh: the devices.
        pspecs: how the whole arrays are sharded; a spec for all, or a tree of specs.
    """
    leaves, tree = tree_util.tree_flatten(local_inputs)
    specs = _specs("host_local_array_to_global_array", pspecs, local_inputs)

    def join(x: Any, spec: PartitionSpec) -> Any:
        if _is_global(x):
            return x
        return make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)

    return tree.unflatten(map(join, leaves, specs))


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Return this process's parts of arrays over the devices of all processes.

    Args:
        global_inputs: a tree of arrays over the devices of all processes.
        global_mesh: the devices.
        pspecs: how the arrays are sharded; a spec for all, or a tree of specs.
    """
    leaves, tree = tree_util.tree_flatten(global_inputs)
    specs = _specs("global_array_to_host_local_array", pspecs, global_inputs)

    def part(x: Any, spec: PartitionSpec) -> Any:
        if not _is_global(x):
            return make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)
        from namoo.engines.xla import spmd

        local = NamedSharding(global_mesh.local_mesh, spec)
        own = x._sharding.shard_shape(x.shape)
        counts = local._tiling(x.ndim).parts
        aval = aval_of(x).update(shape=tuple(n * c for n, c in zip(own, counts, strict=True)))
        parts = [buffer for _, buffer in spmd.pieces(x._buffer, x._sharding)]
        return PlacedArray(aval, local, spmd.join(parts, aval, local))

    return tree.unflatten(map(part, leaves, specs))


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes should save at this step, because one of them will be stopped.

    Always False: there is no preemption service that notifies the processes, as in JAX without
    one.

    Example:
        >>> reached_preemption_sync_point(3)
        False
    """
    return False


_guard(globals())
