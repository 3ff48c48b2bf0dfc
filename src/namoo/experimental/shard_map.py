"""`shard_map` under its older name and with its older arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo._base.source_context import make_entry_points as _guard
from namoo.devices.shard_map import shard_map as _shard_map
from namoo.sharding import Mesh

__all__ = ["shard_map"]
__dir__ = __all__.copy


def shard_map(
    f: Callable,
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset = frozenset(),
) -> Callable:
    """Call `namoo.shard_map`; `auto` has the mesh axes that are left to the compiler.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> from namoo.sharding import PartitionSpec as P
        >>> mesh = namoo.make_mesh((1,), ("data",))
        >>> shard_map(lambda x: x + 1, mesh, P("data"), P("data"))(jnp.arange(2))
        Array([1, 2], dtype=int32)
    """
    names = tuple(name for name in mesh.axis_names if name not in auto)
    return _shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=check_rep,
        axis_names=names,
    )


_guard(globals())
