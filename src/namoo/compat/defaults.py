"""Behaviour that changes when namoo stands in for JAX."""

from namoo._base.config import config
from namoo.api.jit import Jitted


def use_jax_defaults() -> None:
    """Use JAX's behaviour, and its class names, where namoo's differ."""
    config.update("check_static_indices", False)
    config.update("trace_new_arrays", True)
    config.update("flush_subnormals", True)
    Jitted.__name__ = Jitted.__qualname__ = "PjitFunction"
