"""`namoo.export`: symbolic shapes under JAX's names."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "dimensions.expression": "is_symbolic_dim",
    "dimensions.scope": "symbolic_shape SymbolicScope",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
