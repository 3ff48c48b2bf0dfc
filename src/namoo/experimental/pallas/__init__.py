"""Pallas, JAX's kernel language, is not part of namoo. Libraries that import its names, or kernels
written in it, can still be loaded: the names raise `NotImplementedError` when they are called."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "experimental.pallas.kernels": (
        "BlockSpec CompilerParams CostEstimate ds dslice GridSpec num_programs pallas_call "
        "program_id when"
    ),
    "experimental.pallas.ops": ".",
    "experimental.pallas.triton": ".",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
