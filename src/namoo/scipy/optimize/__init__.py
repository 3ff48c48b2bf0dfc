"""Minimisation: JAX's `jax.scipy.optimize`.

Example:
    >>> import namoo.numpy as jnp
    >>> import namoo.scipy.optimize
    >>> f = lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 2)
    >>> namoo.scipy.optimize.minimize(f, jnp.zeros(2), method="BFGS").x.round(3)
    Array([1., 2.], dtype=float32)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.optimize.quasi_newton import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
__dir__ = __all__.copy

_guard(globals())
