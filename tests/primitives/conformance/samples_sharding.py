"""Samples of what speaks of devices: a mesh of names stands for them."""

import numpy as np

from conformance.harness import Sample
from namoo.control import collective_primitives
from namoo.core.avals import ShapedArray
from namoo.devices.primitives import (
    device_put_p,
    inspect_sharding_p,
    sharding_constraint_p,
)
from namoo.devices.shard_map_primitive import axes_in_scope, shard_map_p, varying
from namoo.primitives.elementwise import mul, sin
from namoo.primitives.resharding import reshard_p
from namoo.sharding import AbstractMesh, NamedSharding, PartitionSpec
from namoo.transforms.stage import stage_closed

x = np.random.default_rng(0).normal(size=(4, 6))
mesh = AbstractMesh((2, 3), ("x", "y"))
names = ("x", "y")


def mapped(fun, part, layout, out, checked):
    """The parameters of a function that is mapped over the mesh."""
    aval = varying(ShapedArray(part, np.dtype(np.float64)), layout, checked)
    with axes_in_scope(mesh, names, checked):
        jaxpr = stage_closed(fun, [aval], "f")
    return {
        "jaxpr": jaxpr,
        "mesh": mesh,
        "axes": names,
        "ins": (layout,),
        "outs": (out,),
        "checked": checked,
        "name_sharding": None,
    }


def total(a):
    return collective_primitives.psum_p.bind(a, axes=("x",), axis_index_groups=None)


def weighed(a):
    return [mul(sin(a), total(a))]


SPLIT = (("x",), ("y",))

SAMPLES = [
    Sample(collective_primitives.vary_p, [x], {"axes": ("i",)}, axis=("i", 4)),
    Sample(sharding_constraint_p, [x], {"sharding": NamedSharding(mesh, PartitionSpec("x"))}),
    Sample(reshard_p, [x], {"sharding": NamedSharding(mesh, PartitionSpec("x"))}),
    Sample(
        device_put_p,
        [x],
        {
            "sharding": NamedSharding(mesh, PartitionSpec("x")),
            "src": NamedSharding(mesh, PartitionSpec()),
        },
    ),
    Sample(inspect_sharding_p, [x], {"callback": str}),
    *(
        Sample(
            shard_map_p,
            [x],
            mapped(weighed, (2, 2), SPLIT, SPLIT, checked),
            name=f"checked={checked}",
            oracle=lambda v: [np.sin(v) * np.tile(v[:2] + v[2:], (2, 1))],
            dtypes=(),
        )
        for checked in (True, False)
    ),
    Sample(
        shard_map_p,
        [x],
        mapped(lambda a: [total(sin(a))], (2, 2), SPLIT, ((), ("y",)), True),
        name="joined along one axis",
        oracle=lambda v: [np.sin(v[:2]) + np.sin(v[2:])],
        dtypes=(),
    ),
]
