"""`namoo.interpreters`: the rules of primitives, in tables with JAX's names."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "interpreters.ad": ".",
    "interpreters.batching": ".",
    "interpreters.mlir": ".",
    "interpreters.partial_eval": ".",
    "interpreters.pxla": ".",
    "interpreters.xla": ".",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
