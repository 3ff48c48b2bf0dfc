"""How arrays are distributed over devices: meshes with named axes, partition specs, shardings.

Example:
    >>> import namoo
    >>> from namoo.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = namoo.make_mesh((1,), ("data",))
    >>> NamedSharding(mesh, P("data")).shard_shape((4, 3))
    (4, 3)
"""

from namoo._base.lazy import lazy as _lazily
from namoo.devices.sharding.current_mesh import (
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from namoo.devices.sharding.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from namoo.devices.sharding.partition_spec import PartitionSpec
from namoo.devices.sharding.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "set_mesh",
    "use_abstract_mesh",
]


_TABLE = {"devices.axis_types": "auto_axes explicit_axes", "devices.constraints": "reshard"}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
