"""Small libraries of examples: `optimizers` and `stax`."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {"example_libraries.optimizers": ".", "example_libraries.stax": "."}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
