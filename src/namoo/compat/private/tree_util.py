"""Trees, with the registry of node classes."""

from namoo.compat.private._names import names_of
from namoo.tree.registry import nodes as _registry

__all__ = ["_registry"]

__getattr__ = names_of(__name__, "namoo.tree_util")
