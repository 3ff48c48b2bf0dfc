"""Pallas, JAX's kernel language, is not part of namoo. Libraries that import some of its kernels
for TPUs can still be loaded; see `namoo.experimental.pallas.ops`."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {"experimental.pallas.ops": "."}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
