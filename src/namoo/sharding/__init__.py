"""How arrays lie on devices: meshes with named axes, specs that refer to them, and shardings.

>>> import namoo
>>> from namoo.sharding import NamedSharding, PartitionSpec as P
>>> mesh = namoo.make_mesh((1,), ("data",))
>>> NamedSharding(mesh, P("data")).shard_shape((4, 3))
(4, 3)
"""

from namoo._lazy import lazy as _lazily
from namoo.sharding.context import get_abstract_mesh as get_abstract_mesh
from namoo.sharding.context import get_mesh as get_mesh
from namoo.sharding.context import set_mesh as set_mesh
from namoo.sharding.context import use_abstract_mesh as use_abstract_mesh
from namoo.sharding.mesh import AbstractDevice as AbstractDevice
from namoo.sharding.mesh import AbstractMesh as AbstractMesh
from namoo.sharding.mesh import AxisType as AxisType
from namoo.sharding.mesh import Mesh as Mesh
from namoo.sharding.shardings import NamedSharding as NamedSharding
from namoo.sharding.shardings import Sharding as Sharding
from namoo.sharding.shardings import SingleDeviceSharding as SingleDeviceSharding
from namoo.sharding.shardings import make_single_device_sharding as make_single_device_sharding
from namoo.sharding.specs import PartitionSpec as PartitionSpec

_TABLE = {"api.sharded": "auto_axes explicit_axes reshard"}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
