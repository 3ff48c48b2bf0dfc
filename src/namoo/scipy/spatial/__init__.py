"""Geometry: JAX's `jax.scipy.spatial`."""

from namoo.scipy.spatial import transform

__all__ = ["transform"]
__dir__ = __all__.copy
