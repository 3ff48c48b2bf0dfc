"""Analyses of values and programs: checks, leaks, dead code, and names of `jax.core`."""
