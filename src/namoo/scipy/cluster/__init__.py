"""Clusters of points: what JAX has as `jax.scipy.cluster`."""

from namoo.scipy.cluster import vq as vq
