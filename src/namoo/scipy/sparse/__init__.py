"""Linear systems given by functions: JAX's `jax.scipy.sparse`."""

from namoo.scipy.sparse import linalg as linalg
