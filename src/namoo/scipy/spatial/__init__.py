"""Geometry: JAX's `jax.scipy.spatial`."""

from namoo.scipy.spatial import transform as transform
