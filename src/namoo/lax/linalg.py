"""Linear algebra: the names of `jax.lax.linalg`."""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

_TABLE = {"lax.qdwh": "qdwh", **_PUBLIC["primitives.linalg"]}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
