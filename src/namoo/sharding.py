"""How arrays are distributed over devices: meshes with named axes, partition specs, shardings.

Example:
    >>> import namoo
    >>> from namoo.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = namoo.make_mesh((1,), ("data",))
    >>> NamedSharding(mesh, P("data")).shard_shape((4, 3))
    (4, 3)
"""

from namoo._base.lazy import lazy as _lazily
from namoo.devices.sharding.current_mesh import get_abstract_mesh as get_abstract_mesh
from namoo.devices.sharding.current_mesh import get_mesh as get_mesh
from namoo.devices.sharding.current_mesh import set_mesh as set_mesh
from namoo.devices.sharding.current_mesh import use_abstract_mesh as use_abstract_mesh
from namoo.devices.sharding.mesh import AbstractDevice as AbstractDevice
from namoo.devices.sharding.mesh import AbstractMesh as AbstractMesh
from namoo.devices.sharding.mesh import AxisType as AxisType
from namoo.devices.sharding.mesh import Mesh as Mesh
from namoo.devices.sharding.partition_spec import PartitionSpec as PartitionSpec
from namoo.devices.sharding.shardings import NamedSharding as NamedSharding
from namoo.devices.sharding.shardings import Sharding as Sharding
from namoo.devices.sharding.shardings import SingleDeviceSharding as SingleDeviceSharding
from namoo.devices.sharding.shardings import (
    make_single_device_sharding as make_single_device_sharding,
)

_TABLE = {"devices.constraints": "auto_axes explicit_axes reshard"}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
