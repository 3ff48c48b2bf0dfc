"""Meshes of devices, under the names that older programs use.

Example:
    >>> Mesh.__name__
    'Mesh'
"""

from namoo.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = ["Mesh", "NamedSharding", "PartitionSpec"]
__dir__ = __all__.copy
