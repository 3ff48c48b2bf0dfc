"""Linear systems given by functions: JAX's `jax.scipy.sparse`."""

from namoo.scipy.sparse import linalg

__all__ = ["linalg"]
__dir__ = __all__.copy
