"""`namoo.interpreters`: the rules of operations, in the tables where JAX has them."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "interpreters.ad": ".",
    "interpreters.batching": ".",
    "interpreters.mlir": ".",
    "interpreters.partial_eval": ".",
    "interpreters.pxla": ".",
    "interpreters.xla": ".",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
