"""JAX's older interface to save arrays; see the module `serialization`."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {"experimental.array_serialization.serialization": "."}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
