"""Mutable references: `new_ref` makes one, `ref[...]` reads it, `ref[...] = x` writes to it."""

from namoo._base.source_context import make_entry_points as _guard
from namoo.transforms.refs import (
    AbstractRef,
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
__dir__ = __all__.copy

_guard(globals())
