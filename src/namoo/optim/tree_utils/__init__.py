"""Arithmetic, types, randomness and states of trees.

`namoo.optim.tree` has the same functions without `tree_`.
"""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

_TABLE = _PUBLIC["optim.tree_utils"]

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
