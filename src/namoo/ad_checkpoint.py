"""Rematerialisation: names for values, policies, and a report of what is kept."""

from namoo._base.source_context import make_entry_points as _guard
from namoo.transforms.remat import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    print_saved_residuals,
    saved_residuals,
)

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
__dir__ = __all__.copy


remat = checkpoint

_guard(globals())
