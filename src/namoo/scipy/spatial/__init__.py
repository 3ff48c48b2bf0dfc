"""Geometry: what JAX has as `jax.scipy.spatial`."""

from namoo.scipy.spatial import transform as transform
