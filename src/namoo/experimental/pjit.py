"""`pjit`, which is `jit`: programs over many devices need no other name any more."""

from namoo.api.jit import jit as pjit
from namoo.api.sharded import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
