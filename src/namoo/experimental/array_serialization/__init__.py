"""JAX's older interface to save arrays; see the module `serialization`."""
