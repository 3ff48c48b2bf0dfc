"""Clusters of points: JAX's `jax.scipy.cluster`."""

from namoo.scipy.cluster import vq as vq
