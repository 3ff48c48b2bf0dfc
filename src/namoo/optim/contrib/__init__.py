"""Newer optimisers: Optax's `contrib`. All are in `namoo.optim`, too."""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

_TABLE = _PUBLIC["optim.contrib"]

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
