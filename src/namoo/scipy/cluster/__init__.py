"""Clusters of points: JAX's `jax.scipy.cluster`."""

from namoo.scipy.cluster import vq

__all__ = ["vq"]
__dir__ = __all__.copy
