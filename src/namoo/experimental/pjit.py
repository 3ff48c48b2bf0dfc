"""`pjit`, an older name of `jit`."""

from namoo._base.source_context import make_entry_points as _guard
from namoo.api.jit import jit as pjit
from namoo.devices.constraints import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
__dir__ = __all__.copy


_guard(globals())
