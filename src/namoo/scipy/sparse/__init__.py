"""Linear systems given by functions: what JAX has as `jax.scipy.sparse`."""

from namoo.scipy.sparse import linalg as linalg
