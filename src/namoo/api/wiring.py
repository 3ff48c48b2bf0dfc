"""Late attachments: attributes of lower rooms that higher rooms set. All of them are in this file.

A room imports only from the rooms below it. A few classes need something that is written above
them; they declare an attribute for it, and this module fills it in. Importing it does so: `api.jit`
and `devices.placement` do, before any of the attributes is read.

One attachment is not here: `numpy._methods` gives `Array` and `Tracer` their operators and methods.
`_base.late_methods` loads it when the first of them is used, and eager programs do not load `api`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo._base.lazy import later
from namoo.core import avals
from namoo.core.array import PlacedArray
from namoo.dimensions.expression import DimExpr
from namoo.engines import base
from namoo.engines.select import compile as compile_program
from namoo.primitives import resharding
from namoo.primitives.dimensions import dim_as_value
from namoo.transforms import transpose
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.refs import AbstractRef
from namoo.transforms.stage import stage

placed_array = later("namoo.devices.placed_array")


def _apply(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    # Loaded late: most programs run on the host.
    from namoo.api.placed_operations import apply

    return apply(prim, args, params)


def _member(name: str) -> Any:
    """Make a method of `PlacedArray` that calls a function of `devices.placed_array`."""

    def member(self: PlacedArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(placed_array, name)(self, *args, **kwargs)

    member.__name__ = name
    return member


def _place(x: Any, sharding: Any) -> Any:
    from namoo.devices.constraints import placed

    return placed(x, sharding)


def _resolve(name: str, given: Any) -> Any:
    from namoo.devices.constraints import output_sharding

    return output_sharding(name, given)


def _sum_over(x: Any, axes: tuple) -> Any:
    from namoo.control.collective_primitives import psum_p

    return psum_p.bind(x, axes=axes, axis_index_groups=None)


# 1. Evaluating a primitive that holds a program (`scan`, a nested `jit`) compiles it. Transforms do
#    not know engines. Until this is set such programs are interpreted: a process that never uses
#    `jit` does not pay for loading a compiler.
ProgramPrimitive.compiler = staticmethod(compile_program)

# 2. The same for a program that names several devices.
ProgramPrimitive.on_devices = staticmethod(_apply)

# 3. The XLA engine lowers some primitives by tracing functions of others. Engines do not know
#    transforms.
base.stage = stage

# 4. An eager operation on an array with an explicit placement runs on its devices, compiled.
PlacedArray.apply = staticmethod(_apply)

# 5. Such an array knows its values, shards and devices. The core does not know devices.
PlacedArray.fetch = staticmethod(lambda x: placed_array.fetch(x))
for _name in (
    "addressable_shards",
    "committed",
    "device",
    "global_shards",
    "is_fully_addressable",
    "is_fully_replicated",
    "sharding",
):
    setattr(PlacedArray, _name, property(_member(_name)))
for _name in (
    "addressable_data",
    "block_until_ready",
    "devices",
    "is_deleted",
    "is_ready",
    "on_device_size_in_bytes",
    "to_device",
):
    setattr(PlacedArray, _name, _member(_name))

# 6. Reverse mode sums the cotangents of a value that several devices of a `shard_map` share.
#    Transforms do not know collectives.
transpose.sum_over = _sum_over

# 7. A symbolic dimension in a computation is an array. Dimensions do not know operations.
DimExpr.as_array = staticmethod(dim_as_value)

# 8. A `ShapeDtypeStruct` may be the type of a reference. The core does not know references.
avals.ref_type = AbstractRef

# 9. Functions take `out_sharding`, and reverse mode gives cotangents the shardings of their types.
#    Primitives do not know meshes and devices.
resharding.Reshard.place = staticmethod(_place)
resharding.resolve = _resolve
